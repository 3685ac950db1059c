"""Kernels against moocore and BoTorch: both sides in turn in one process, one thread, medians of the ratios.

    python experiments/kernels/bench.py              # all rows: a few minutes; writes results.csv
    python experiments/kernels/bench.py --only boxes

A ratio above 1 means that moopt is faster. Fronts are random points of a concave sphere, minimised, reference 1.1.
"""

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import moocore
import numpy as np
import torch
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from botorch.utils.multi_objective.hypervolume import Hypervolume

from moopt import kernels

Pair = tuple[Callable[[], Any], Callable[[], Any]]


def sphere(n: int, d: int, batch: int | None = None) -> np.ndarray[Any, Any]:
    """Return points (n, d) or (batch, n, d) of the unit sphere's positive part."""
    shape = (n, d) if batch is None else (batch, n, d)
    points = np.abs(np.random.default_rng(0).normal(size=shape))
    return np.ascontiguousarray(points / np.linalg.norm(points, axis=-1, keepdims=True))


def rows() -> Iterator[tuple[str, str, int, int, int, Pair]]:
    """Yield kernel, yardstick, objectives, points, batch, and the two sides."""
    for d, n in [(2, 10), (2, 1000), (2, 10_000), (3, 10), (3, 1000), (3, 10_000), (4, 10), (4, 100), (4, 1000),
                 (5, 10), (5, 100), (5, 300), (6, 100), (6, 1000), (8, 30), (8, 100), (10, 20)]:  # fmt: skip
        Y, ref = sphere(n, d), np.full(d, 1.1)
        yield "hypervolume", "moocore", d, n, 1, (
            lambda Y=Y, ref=ref: kernels.hypervolume(Y, ref, maximize=False),
            lambda Y=Y, ref=ref: moocore.hypervolume(Y, ref=ref),
        )  # fmt: skip
    for d, n, batch in [(2, 50, 1024), (3, 50, 1024), (4, 50, 1024), (2, 10, 16384), (3, 10, 16384), (4, 10, 16384)]:
        Y, ref = sphere(n, d, batch), np.full(d, 1.1)
        yield "hypervolume", "moocore, one by one", d, n, batch, (
            lambda Y=Y, ref=ref: kernels.hypervolume(Y, ref, maximize=False),
            lambda Y=Y, ref=ref: [moocore.hypervolume(front, ref=ref) for front in Y],
        )  # fmt: skip
    for d in (2, 3, 4):
        Y, X, ref = sphere(100, d), sphere(1000, d) * 0.98, np.full(d, 1.1)
        yield "improvement of 1000 candidates", "moocore, one by one", d, 100, 1, (
            lambda Y=Y, X=X, ref=ref: kernels.hv_improvement(X, Y, ref, maximize=False),
            lambda Y=Y, X=X, ref=ref: [moocore.hypervolume(np.vstack([Y, x]), ref=ref) for x in X],
        )  # fmt: skip
    for d, n in [(2, 100), (3, 100), (4, 50), (4, 100)]:
        Y, ref = sphere(n, d), np.full(d, 1.1)
        tensor, corner = torch.from_numpy(-Y), torch.from_numpy(-ref)
        yield "boxes", "BoTorch", d, n, 1, (
            lambda Y=Y, ref=ref: kernels.box_decomposition(Y, ref, maximize=False),
            lambda t=tensor, c=corner: FastNondominatedPartitioning(ref_point=c, Y=t).get_hypercell_bounds(),
        )  # fmt: skip
    for d, n in [(2, 100), (3, 100), (4, 50)]:
        Y, ref = sphere(n, d), np.full(d, 1.1)
        tensor = torch.from_numpy(Y)
        yield "gradient", "autograd through torch's grid", d, n, 1, (
            lambda Y=Y, ref=ref: kernels.hypervolume_and_grad(Y, ref, maximize=False),
            lambda t=tensor, ref=ref: _autograd(t, ref),
        )  # fmt: skip
    for d, n in [(2, 1000), (2, 10_000), (3, 1000), (3, 10_000), (5, 1000), (5, 10_000)]:
        Y = np.random.default_rng(1).random((n, d))
        yield "filter", "moocore", d, n, 1, (
            lambda Y=Y: kernels.is_non_dominated(Y, maximize=False, keep_duplicates=True),
            lambda Y=Y: moocore.is_nondominated(Y, keep_weakly=True),
        )  # fmt: skip
        yield "ranks", "moocore", d, n, 1, (
            lambda Y=Y: kernels.non_dominated_rank(Y, maximize=False),
            lambda Y=Y: moocore.pareto_rank(Y),
        )  # fmt: skip
    for d, n in [(3, 100), (4, 50)]:
        Y = sphere(n, d)
        hv = Hypervolume(ref_point=torch.full((d,), -1.1, dtype=torch.float64))
        yield "hypervolume", "BoTorch", d, n, 1, (
            lambda Y=Y: kernels.hypervolume(Y, 1.1, maximize=False),
            lambda Y=Y, hv=hv: hv.compute(torch.from_numpy(-Y)),
        )  # fmt: skip


def _autograd(points: torch.Tensor, ref: np.ndarray[Any, Any]) -> torch.Tensor:
    leaf = points.clone().requires_grad_()
    kernels.hypervolume(leaf, ref, maximize=False, backend="torch").backward()
    return leaf.grad


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the mean time of a call."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(pair: Pair, rounds: int) -> tuple[float, float, float]:
    """Return both medians and the median ratio over rounds in turn, each of at least 2 ms."""
    ours, theirs = pair
    ours(), theirs()
    counts = [max(1, int(2e-3 / max(seconds(call, 1), 1e-7))) for call in pair]
    times = np.array([[seconds(ours, counts[0]), seconds(theirs, counts[1])] for _ in range(rounds)])
    first, second = np.median(times, axis=0)
    return float(first), float(second), float(np.median(times[:, 1] / times[:, 0]))


def main() -> None:
    """Measure and write results.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose kernel begins with this")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    kernels.warmup()
    lines = []
    for kernel, yardstick, d, n, batch, pair in rows():
        if kernel.startswith(args.only):
            ours, theirs, ratio = measure(pair, args.rounds)
            lines.append([kernel, yardstick, d, n, batch, f"{ours:.3g}", f"{theirs:.3g}", f"{ratio:.2f}"])
            print(f"{kernel:32} v {yardstick:30} d={d:2} n={n:6} batch={batch:6}: {ratio:8.2f}x", flush=True)
    if not args.only:
        with (Path(__file__).parent / "results.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["kernel", "yardstick", "objectives", "points", "batch", "moopt_s", "yardstick_s", "ratio"])
            writer.writerows(lines)


if __name__ == "__main__":
    main()
