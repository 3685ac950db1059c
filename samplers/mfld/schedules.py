"""How temperature, weight decay and step size change along a run, as factors on their settings."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from moopt.runs.errors import MooptError


class Factors(NamedTuple):
    """Multipliers of the settings at one step."""

    temperature: float = 1.0
    weight_decay: float = 1.0
    step_size: float = 1.0


class Schedule(Protocol):
    """Factors at a step, counted from 0."""

    def at(self, step: int) -> Factors:
        """Return the factors of step ``step``."""
        ...


@dataclass(frozen=True)
class Constant:
    """No change."""

    def at(self, step: int) -> Factors:
        """Return ones."""
        return Factors()


@dataclass(frozen=True)
class Geometric:
    """Factors that go from 1 to an end value over ``steps`` steps at a constant ratio, and stay there.

    An end value of 0 falls in a straight line.
    """

    steps: int
    temperature: float = 1.0
    """Final factor of the temperature."""
    weight_decay: float = 1.0
    """Final factor of the weight decay."""
    step_size: float = 1.0
    """Final factor of the step size."""

    def __post_init__(self) -> None:
        _positive("steps", self.steps)
        for name in ("temperature", "weight_decay", "step_size"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise MooptError(f"Geometric: {name} must be a finite number >= 0, got {value}")

    def at(self, step: int) -> Factors:
        """Return the factors of step ``step``."""
        done = min(1.0, step / max(1, self.steps - 1))
        return Factors(*(_toward(v, done) for v in (self.temperature, self.weight_decay, self.step_size)))


@dataclass(frozen=True)
class LogAnneal:
    """Temperature that decays like 1 / log(t), the rate of the annealing theorems (Chizat, arXiv 2202.01009).

    The factor is ``1 / (1 + log(1 + t / delay))``. With ``quiet_after`` the noise is off from that step on.
    """

    delay: float = 10.0
    """Steps before the decay sets in."""
    quiet_after: int | None = None
    """Step from which the temperature is 0; None never."""

    def __post_init__(self) -> None:
        _positive("delay", self.delay)

    def at(self, step: int) -> Factors:
        """Return the factors of step ``step``."""
        if self.quiet_after is not None and step >= self.quiet_after:
            return Factors(temperature=0.0)
        return Factors(temperature=1.0 / (1.0 + math.log1p(step / self.delay)))


@dataclass(frozen=True)
class HalvingRounds:
    """Temperature and weight decay halved together after every round, as in the parity experiments of the literature.

    Their ratio, the variance of the Gaussian reference, stays as it is.
    """

    rounds: int
    """Rounds; the last factor is ``2 ** (1 - rounds)``."""
    steps: int
    """Steps per round."""

    def __post_init__(self) -> None:
        _positive("rounds", self.rounds)
        _positive("steps", self.steps)

    def at(self, step: int) -> Factors:
        """Return the factors of step ``step``."""
        factor = 0.5 ** min(self.rounds - 1, step // self.steps)
        return Factors(temperature=factor, weight_decay=factor)


def _toward(end: float, done: float) -> float:
    return 1.0 - done if end == 0 else math.exp(done * math.log(end))


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise MooptError(f"schedule: {name} must be > 0, got {value}")
