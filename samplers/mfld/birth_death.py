"""Birth and death: the particles of largest first variation become copies of those of the smallest."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from moopt.samplers.mfld.langevin import MeanFieldLangevin


@dataclass(frozen=True)
class BirthDeath:
    """Rule that jumps particles to where the measure is wanted (the reaction part of a Wasserstein-Fisher-Rao flow).

    The functional must have ``first_variation(W) -> (N,)``, or ``birth_scores() -> (N,)`` that it kept from its
    latest drift; no ensembles.
    """

    every: int = 10
    """Steps between events."""
    fraction: float = 0.05
    """Share of the particles that is moved, at least one."""
    jitter: float = 0.01
    """Standard deviation of the noise on the copies, in the particles' own units."""
    until: int | None = None
    """Last step with an event; None for no end."""
    mutation: float = 0.0
    """Probability that a coordinate of a copy jumps by Laplace noise; jumps cross barriers that the drift cannot."""
    jump: float = 0.05
    """Scale of the jumps, in the particles' own units."""

    crossover: float = 0.0
    """Probability that a coordinate of a copy is that of another of the best particles; it joins what is good apart."""

    def __post_init__(self) -> None:
        if not (
            self.every >= 1
            and 0 < self.fraction <= 0.5
            and min(self.jitter, self.jump) >= 0
            and 0 <= self.mutation <= 1
            and 0 <= self.crossover <= 1
        ):
            raise MooptError(
                "BirthDeath needs every >= 1, 0 < fraction <= 0.5, jitter, jump >= 0, mutation, crossover in [0, 1]; "
                f"got {self}"
            )

    def __call__(self, engine: "MeanFieldLangevin") -> None:
        """Act on the engine's particles if it is time to."""
        step = engine.n_steps
        if step % self.every or (self.until is not None and step > self.until):
            return
        kept = getattr(engine.functional, "birth_scores", None)
        first_variation: Any = getattr(engine.functional, "first_variation", None)
        if (kept is None and first_variation is None) or engine.particles.ndim != 2:
            raise MooptError("birth_death needs a functional with first_variation and no ensemble")
        scores: Tensor = kept() if kept is not None else first_variation(engine.particles)
        order = scores.argsort()
        count = max(1, int(self.fraction * len(order)))
        dead, born = order.flip(0)[:count], order[:count]
        copies = engine.particles[born]
        if self.crossover > 0:
            mates = torch.randint(count, (count,), generator=engine.generator, device=copies.device)
            chosen = torch.rand(copies.shape, generator=engine.generator, device=copies.device) < self.crossover
            copies = torch.where(chosen, engine.particles[born[mates]], copies)
        noise = torch.randn(copies.shape, generator=engine.generator, dtype=copies.dtype, device=copies.device)
        noise.mul_(self.jitter)
        if self.mutation > 0:
            uniform = torch.rand(2, *copies.shape, generator=engine.generator, dtype=copies.dtype, device=copies.device)
            centred = uniform[0] - 0.5
            laplace = -self.jump * centred.sign() * torch.log1p(-2 * centred.abs().clamp_max(0.5 - 1e-12))
            noise += torch.where(uniform[1] < self.mutation, laplace, 0.0)
        engine.particles[dead] = engine.manifold.move_(copies, noise)
        if engine.adam is not None:
            engine.adam.move(dead, born)
