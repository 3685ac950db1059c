"""Agents: learned methods that act in an environment or choose the next evaluation."""

from typing import TYPE_CHECKING, Any

if __name__ != "moopt.agents":
    raise ImportError("import moopt.agents, not agents")

if TYPE_CHECKING:
    from moopt.agents.cmorl import CMORL as CMORL
    from moopt.agents.cmorl import CMORLConfig as CMORLConfig

__all__ = ["CMORL", "CMORLConfig"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        import moopt.agents.cmorl as cmorl

        return getattr(cmorl, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *__all__})
