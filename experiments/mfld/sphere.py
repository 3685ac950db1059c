"""Sphere beside Euclidean space on ten settings, five seeds: steps until the test error is below 0.1, and its end.

Both sides have the same data, start, step size, temperature and scale; the Euclidean side has weight decay D * temp, so
that its Gaussian reference has mean square norm 1, as on the sphere. "clumped": all particles start at one direction
that is orthogonal to the target's.

    python experiments/mfld/sphere.py
"""

import argparse
from dataclasses import dataclass

import numpy as np
import torch
from rows import Rows
from torch import Tensor

from moopt.samplers.mfld import MeanFieldLangevin, TwoLayerRegression, multi_index

LEVEL, EVERY = 0.1, 20


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    target: str
    d: int
    n: int
    scale: float
    temperature: float
    activation: str = "relu"
    clumped: bool = False
    n_particles: int = 200
    step_size: float = 0.05
    n_steps: int = 1500


SETTINGS = {
    "parity2 d30": Setting("parity2", 30, 900, 8, 1e-3),
    "parity3 d20": Setting("parity3", 20, 2500, 8, 1e-3),
    "parity4 d16": Setting("parity4", 16, 3000, 8, 1e-3),
    "hermite3 d16": Setting("hermite3", 16, 2000, 8, 1e-3),
    "hermite2 d30": Setting("hermite2", 30, 900, 8, 1e-3),
    "staircase3 d20": Setting("staircase3", 20, 2000, 8, 1e-3),
    "parity2 d30 hot": Setting("parity2", 30, 900, 32, 1e-2, step_size=0.002),
    "hermite2 d20 clumped": Setting("hermite2", 20, 2000, 16, 1e-3, "relu", True, 60, 0.02, 600),
    "parity2 d20 tanh clumped": Setting("parity2", 20, 2000, 16, 1e-3, "tanh", True, 60, 0.02, 600),
    "parity2 d20 clumped": Setting("parity2", 20, 2000, 16, 1e-3, "relu", True, 60, 0.02, 600),
}


def run(setting: Setting, manifold: str, seeds: int) -> tuple[list[float], list[float]]:
    """Return the steps to the level (nan: never) and the final test error of every seed."""
    s, members = setting, range(seeds)
    samples = [multi_index(s.target, s.n, s.d, seed=i) for i in members]
    tests = [multi_index(s.target, 4000, s.d, seed=10_000 + i) for i in members]
    functional = TwoLayerRegression(
        np.stack([x.X for x in samples]), np.stack([x.y for x in samples]), scale=s.scale, activation=s.activation
    )
    held = TwoLayerRegression(
        np.stack([x.X for x in tests]), np.stack([x.y for x in tests]), scale=s.scale, activation=s.activation
    )
    engine = MeanFieldLangevin(
        functional, s.n_particles, temperature=s.temperature, step_size=s.step_size, manifold=manifold, ensemble=seeds,
        weight_decay=(s.d + 1) * s.temperature if manifold == "euclidean" else None, init=_start(s, seeds), seed=0,
    )  # fmt: skip
    reached, mse = [float("nan")] * seeds, [float("nan")] * seeds
    for step in range(EVERY, s.n_steps + 1, EVERY):
        for _ in range(EVERY):
            engine.step()
        mse = (2 * held.value(engine.particles)).tolist()
        reached = [step if np.isnan(r) and m < LEVEL else r for r, m in zip(reached, mse, strict=True)]
    return reached, mse


def _start(s: Setting, seeds: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(seeds, s.n_particles, s.d + 1, generator=generator)
    if s.clumped:  # a little spread, so that particles are not equal
        start *= 0.01
        start[..., s.d - 1] += 1.0
    norm: Tensor = torch.linalg.vector_norm(start, dim=-1, keepdim=True)
    return start / norm


def main() -> None:
    """Run what is not in the table yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = Rows("sphere", ["setting", "manifold", "seed"], ["steps_to_level", "final_mse"])
    for name, setting in SETTINGS.items():
        for manifold in ("sphere", "euclidean"):
            if not table.has(setting=name, manifold=manifold):
                for i, (steps, mse) in enumerate(zip(*run(setting, manifold, args.seeds), strict=True)):
                    table.add(setting=name, manifold=manifold, seed=i, steps_to_level=steps, final_mse=mse)


if __name__ == "__main__":
    main()
