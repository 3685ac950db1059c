"""Targets by name: what ``moopt list targets`` shows and ``moopt sample --target`` takes."""

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

from moopt.envs.targets.base import Target
from moopt.runs.errors import MooptError, did_you_mean


@dataclass(frozen=True)
class TargetInfo:
    """One target.

    Attributes:
        name: The name.
        home: Module and class, ``module:Class``.
        truth: Which exact answers are known.
        summary: One line.
    """

    name: str
    home: str
    truth: str
    summary: str

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the target with their defaults."""
        parameters = inspect.signature(_load(self)).parameters.values()
        return {p.name: p.default for p in parameters}


_TARGETS = (
    TargetInfo("two-modes", "mixtures:TwoModes", "log Z, masses, samples", "two Gaussian modes, 2/3 and 1/3"),
    TargetInfo(
        "bracket-two-modes",
        "mixtures:BracketTwoModes",
        "log Z, masses, samples",
        "modes of opposite shape",
    ),
    TargetInfo("many-modes", "mixtures:ManyModes", "log Z, masses, samples", "4 to 64 Gaussian modes, masses 1 : 3"),
    TargetInfo("rings", "planar:Rings", "log Z, masses, samples", "three rings in the plane"),
    TargetInfo("checkerboard", "planar:Checkerboard", "log Z, masses, samples", "eight squares, no gradient anywhere"),
    TargetInfo("phi4", "phi4:Phi4", "log Z, masses", "lattice field with two wells and field b"),
    TargetInfo("two-bananas", "warped:TwoBananas", "log Z, masses, samples", "two modes no Gaussian fits"),
    TargetInfo("log-gamma", "warped:LogGammaModes", "log Z, masses, samples", "skewed modes, log Z not 0"),
    TargetInfo("funnel", "warped:Funnel", "log Z, samples", "Neal's funnel"),
    TargetInfo(
        "logistic",
        "logistic:LogisticRegression",
        "none",
        "Bayesian logistic regression",
    ),
)


def list_targets() -> list[TargetInfo]:
    """Return all targets by name."""
    return list(_TARGETS)


def make_target(name: str, **settings: Any) -> Target:
    """Make a target.

    Args:
        name: A name of ``moopt list targets``.
        **settings: Arguments of the target's class.

    Raises:
        MooptError: If the name or a setting is unknown (with the nearest one), or a value does not fit.

    >>> make_target("phi4", dim=16, b=0.0035).dim
    16
    """
    known = {t.name: t for t in _TARGETS}
    folded = str(name).replace("_", "-").lower()
    if folded not in known:
        raise MooptError(f"unknown target {name!r}{did_you_mean(str(name), known)}")
    info = known[folded]
    for key in settings:
        if key not in info.settings:
            raise MooptError(f"target {folded!r} has no setting {key!r}{did_you_mean(key, info.settings)}")
    try:
        target = _load(info)(**settings)
    except TypeError as error:
        raise MooptError(f"target {folded!r} cannot be made of {settings}: {error}") from error
    assert isinstance(target, Target)  # every home in the table is one
    return target


def _load(info: TargetInfo) -> Any:
    module, _, cls = info.home.partition(":")
    return getattr(importlib.import_module(f"moopt.envs.targets.{module}"), cls)
