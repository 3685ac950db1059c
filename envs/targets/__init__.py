"""Densities to sample from, with the exact answers where they are known."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moopt.envs.targets.base import Target
    from moopt.envs.targets.logistic import LogisticRegression
    from moopt.envs.targets.mixtures import BracketTwoModes, ManyModes, MixtureTarget, TwoModes
    from moopt.envs.targets.phi4 import Phi4
    from moopt.envs.targets.planar import Checkerboard, Rings
    from moopt.envs.targets.registry import TargetInfo, list_targets, make_target
    from moopt.envs.targets.warped import Funnel, LogGammaModes, TwoBananas

_WHERE = {
    "BracketTwoModes": "mixtures",
    "Checkerboard": "planar",
    "Funnel": "warped",
    "LogGammaModes": "warped",
    "LogisticRegression": "logistic",
    "ManyModes": "mixtures",
    "MixtureTarget": "mixtures",
    "Phi4": "phi4",
    "Rings": "planar",
    "Target": "base",
    "TargetInfo": "registry",
    "TwoBananas": "warped",
    "TwoModes": "mixtures",
    "list_targets": "registry",
    "make_target": "registry",
}
__all__ = [
    "BracketTwoModes",
    "Checkerboard",
    "Funnel",
    "LogGammaModes",
    "LogisticRegression",
    "ManyModes",
    "MixtureTarget",
    "Phi4",
    "Rings",
    "Target",
    "TargetInfo",
    "TwoBananas",
    "TwoModes",
    "list_targets",
    "make_target",
]


def __getattr__(name: str) -> object:
    if name in _WHERE:
        return getattr(importlib.import_module(f"moopt.envs.targets.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'moopt.envs.targets' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *__all__})
