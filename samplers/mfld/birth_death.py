"""Birth and death: the particles of largest first variation become copies of those of the smallest."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from moopt.samplers.mfld.langevin import MeanFieldLangevin


@dataclass(frozen=True)
class BirthDeath:
    """Rule that jumps particles to where the measure is wanted (the reaction part of a Wasserstein-Fisher-Rao flow).

    The functional must have ``first_variation(W) -> (N,)``; no ensembles.
    """

    every: int = 10
    """Steps between events."""
    fraction: float = 0.05
    """Share of the particles that is moved, at least one."""
    jitter: float = 0.01
    """Standard deviation of the noise on the copies, in the particles' own units."""
    until: int | None = None
    """Last step with an event; None for no end."""

    def __post_init__(self) -> None:
        if self.every < 1 or not 0 < self.fraction <= 0.5 or self.jitter < 0:
            raise MooptError(
                f"BirthDeath needs every >= 1, 0 < fraction <= 0.5, jitter >= 0, got {self.every}, "
                f"{self.fraction}, {self.jitter}"
            )

    def __call__(self, engine: "MeanFieldLangevin") -> None:
        """Act on the engine's particles if it is time to."""
        step = engine.n_steps
        if step % self.every or (self.until is not None and step > self.until):
            return
        first_variation = getattr(engine.functional, "first_variation", None)
        if first_variation is None or engine.particles.ndim != 2:
            raise MooptError("birth_death needs a functional with first_variation and no ensemble")
        order = first_variation(engine.particles).argsort()
        count = max(1, int(self.fraction * len(order)))
        dead, born = order.flip(0)[:count], order[:count]
        copies = engine.particles[born]
        noise = torch.randn(copies.shape, generator=engine.generator, dtype=copies.dtype, device=copies.device)
        engine.particles[dead] = engine.manifold.move_(copies, noise.mul_(self.jitter))
        if engine.adam is not None:
            engine.adam.move(dead, born)
