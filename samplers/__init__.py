"""Samplers: learned methods that draw points or parameters."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if __name__ != "moopt.samplers":
    raise ImportError("import moopt.samplers, not samplers")

if TYPE_CHECKING:
    from moopt.samplers.mfld import MeanFieldLangevin as MeanFieldLangevin
    from moopt.samplers.mfld import MFLDClassifier as MFLDClassifier
    from moopt.samplers.mfld import MFLDRegressor as MFLDRegressor
    from moopt.samplers.mfld import ParetoMFLD as ParetoMFLD

# Public name -> the method's package that has it.
_WHERE = {
    "MFLDClassifier": "mfld",
    "MFLDRegressor": "mfld",
    "MeanFieldLangevin": "mfld",
    "ParetoMFLD": "mfld",
}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"moopt.samplers.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *__all__})
