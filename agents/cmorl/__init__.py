"""C-MORL: a Pareto front of policies by constrained reinforcement learning."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moopt.agents.cmorl.agent import CMORL as CMORL
    from moopt.agents.cmorl.config import CMORLConfig as CMORLConfig

__all__ = ["CMORL", "CMORLConfig"]


def __getattr__(name: str) -> Any:
    if name == "CMORL":
        from moopt.agents.cmorl.agent import CMORL

        return CMORL
    if name == "CMORLConfig":
        from moopt.agents.cmorl.config import CMORLConfig

        return CMORLConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
