"""The seed paper's two figures made again, and the sample size that a target error needs against d_eff.

    python experiments/mfld/scaling.py risk|gap|nstar [--seeds 10]

``risk``: test error after 200 iterations against n and d_eff. ``gap``: test minus training error after 3000 iterations.
``nstar``: n at which the test error crosses 0.3, with the slope of log n against log d_eff over 8..64.
"""

import argparse
import time

import numpy as np
import torch
from rows import Rows
from torch import Tensor

from moopt.samplers.mfld import MeanFieldLangevin, TwoLayerRegression, multi_index

PAPER = {"n_particles": 50, "scale": 1.0, "step_size": 0.1, "weight_decay": 0.01, "temperature": 0.001}
LEVEL = 0.3


def errors(
    target: str, d: int, d_eff: float, n: int, seeds: int, n_steps: int, n_test: int, settings: dict[str, float]
) -> list[tuple[float, float]]:
    """Return (training, test) mean squared errors of ``seeds`` independent samples, trained as one ensemble."""
    samples = [multi_index(target, n, d, spectrum=f"deff:{d_eff}", seed=s) for s in range(seeds)]
    X, y = np.stack([s.X for s in samples]), np.stack([s.y for s in samples])
    functional = TwoLayerRegression(X, y, scale=settings["scale"])
    engine = MeanFieldLangevin(
        functional, int(settings["n_particles"]), temperature=settings["temperature"],
        weight_decay=settings["weight_decay"], step_size=settings["step_size"], ensemble=seeds, seed=0,
    )  # fmt: skip
    for _ in range(n_steps):
        engine.step()
    train = 2 * functional.value(engine.particles)
    return [(float(train[s]), _test(engine.particles[s], target, d, d_eff, n_test, s, settings)) for s in range(seeds)]


def _test(W: Tensor, target: str, d: int, d_eff: float, n: int, seed: int, settings: dict[str, float]) -> float:
    total = 0.0
    for part in range(0, n, 10_000):
        size = min(10_000, n - part)
        test = multi_index(target, size, d, spectrum=f"deff:{d_eff}", seed=10_000 + 100 * seed + part // 10_000)
        functional = TwoLayerRegression(test.X, test.y, scale=settings["scale"])
        total += 2 * float(functional.value(W)) * size
    return total / n


def risk(seeds: int) -> None:
    """Figure 1b."""
    table = Rows("risk", ["d_eff", "n", "seed"], ["train_mse", "test_mse"])
    for d_eff in (2, 5, 10, 25, 50):
        for n in (50, 100, 200, 400, 800):
            if not table.has(d_eff=d_eff, n=n):
                for s, (train, test) in enumerate(errors("square", 50, d_eff, n, seeds, 200, 10_000, PAPER)):
                    table.add(d_eff=d_eff, n=n, seed=s, train_mse=train, test_mse=test)


def gap(seeds: int) -> None:
    """Figure 2."""
    table = Rows("gap", ["d_eff", "n", "seed"], ["train_mse", "test_mse"])
    for d_eff in (2, 5, 10, 25, 50):
        for n in (100, 200, 500):
            if not table.has(d_eff=d_eff, n=n):
                for s, (train, test) in enumerate(errors("square", 50, d_eff, n, seeds, 3000, 100_000, PAPER)):
                    table.add(d_eff=d_eff, n=n, seed=s, train_mse=train, test_mse=test)


def crossing(ns: np.ndarray, mse: np.ndarray) -> float:
    """Return the n at which the curve first falls below the level, between points by logarithms; nan if never."""
    below = np.flatnonzero(mse < LEVEL)
    if len(below) == 0 or below[0] == 0:
        return float("nan")
    i = int(below[0])
    x, y = np.log(ns[i - 1 : i + 1]), np.log(mse[i - 1 : i + 1])
    return float(np.exp(x[0] + (np.log(LEVEL) - y[0]) * (x[1] - x[0]) / (y[1] - y[0])))


def nstar(seeds: int) -> None:
    """The slope, with the interval that resampling the seeds gives."""
    settings = {"n_particles": 100, "scale": 4.0, "step_size": 0.05, "weight_decay": 1e-3, "temperature": 1e-4}
    table = Rows("nstar_points", ["d_eff", "n", "seed"], ["train_mse", "test_mse"])
    for d_eff in (4, 8, 16, 32, 64, 128):
        for k in range(6):
            n = round(6 * d_eff * 2 ** (k / 2))
            if not table.has(d_eff=d_eff, n=n):
                start = time.perf_counter()
                for s, (train, test) in enumerate(errors("hermite2", 128, d_eff, n, seeds, 600, 10_000, settings)):
                    table.add(d_eff=d_eff, n=n, seed=s, train_mse=train, test_mse=test)
                print(f"{time.perf_counter() - start:.1f} s")
    out = Rows("nstar", ["what", "d_eff"], ["value", "low", "high"])
    out.path.unlink(missing_ok=True)
    fitted = (8, 16, 32, 64)
    curves = {d: _curve(table, d, seeds) for d in (4, *fitted, 128)}
    for d, (ns, mse) in curves.items():
        values = [crossing(ns, m) for m in mse]
        out.add(what="n*", d_eff=d, value=crossing(ns, mse.mean(axis=0)), low=np.nanmin(values), high=np.nanmax(values))
    rng = np.random.default_rng(0)

    def slope(pick: np.ndarray) -> float:
        stars = [crossing(curves[d][0], curves[d][1][pick[i]].mean(axis=0)) for i, d in enumerate(fitted)]
        return float(np.polyfit(np.log(fitted), np.log(stars), 1)[0])

    every = np.tile(np.arange(seeds), (len(fitted), 1))
    draws = [slope(rng.integers(seeds, size=(len(fitted), seeds))) for _ in range(2000)]
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    out.add(what="slope", d_eff="8..64", value=slope(every), low=float(low), high=float(high))


def _curve(table: Rows, d_eff: int, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    ns = sorted({int(r["n"]) for r in table.rows if r["d_eff"] == str(d_eff)})
    mse = [[table.numbers("test_mse", d_eff=d_eff, n=n, seed=s)[0] for n in ns] for s in range(seeds)]
    return np.array(ns, dtype=float), np.array(mse)


def main() -> None:
    """Run one of the three."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["risk", "gap", "nstar"])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    {"risk": risk, "gap": gap, "nstar": nstar}[args.what](args.seeds)


if __name__ == "__main__":
    main()
