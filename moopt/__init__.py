"""Multi-objective optimization and reinforcement learning on one Pareto-front core."""

from importlib import import_module
from typing import TYPE_CHECKING

from moopt.version import __version__

if TYPE_CHECKING:
    from moopt.agents.cmorl.agent import CMORL as CMORL
    from moopt.pareto.front import Front as Front

_HOME = {"CMORL": "moopt.agents.cmorl.agent", "Front": "moopt.pareto.front"}

__all__ = ["CMORL", "Front", "__version__"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for; ``import moopt`` itself loads nothing heavy."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *__all__})
