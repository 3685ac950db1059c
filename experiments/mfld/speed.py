"""Milliseconds per step, sides interleaved in one process; medians over rounds, 1 thread.

Memory that a large tensor frees goes back to the system or stays with the process, depending on what the process
freed before (glibc's moving threshold). It decides how fast autograd's temporaries are, so each pair is timed in a
fresh process, and all three sides together in another, where the largest temporaries make the others' cheap.

python experiments/mfld/speed.py [--rounds 15]
"""

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rows import Rows
from torch import Tensor

from moopt.samplers.mfld import MeanFieldLangevin, TwoLayerRegression

ETA, DECAY, TEMP, SCALE = 0.01, 1e-3, 1e-4, 4.0
Step = Callable[[], object]


def data(n: int, dim: int, members: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (n, dim - 1) and targets, with a leading dimension for own data of members."""
    shape = (members, n, dim - 1) if members else (n, dim - 1)
    X = np.random.default_rng(0).standard_normal(shape)
    return X, X[..., 0] * X[..., 1]


def closed(n: int, m: int, dim: int) -> Step:
    """The engine with the closed-form drift."""
    X, y = data(n, dim)
    functional = TwoLayerRegression(X, y, scale=SCALE)
    return MeanFieldLangevin(functional, m, temperature=TEMP, weight_decay=DECAY, step_size=ETA).step


def _tensors(n: int, m: int, dim: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    X, y = data(n, dim)
    rows = torch.cat([torch.from_numpy(X).float(), torch.ones(n, 1)], dim=1)
    signs = torch.ones(m)
    signs[m // 2 :] = -1
    W = torch.randn(m, dim)
    return rows, torch.from_numpy(y).float(), signs, W / W.norm(dim=1, keepdim=True)


def autograd(n: int, m: int, dim: int) -> Step:
    """The same step with reverse-mode differentiation of the mean network: SGLD as one writes it."""
    rows, y, signs, W = _tensors(n, m, dim)
    W.requires_grad_(True)

    def step() -> None:
        out = torch.relu(rows @ W.T) @ signs * (SCALE / m)
        (grad,) = torch.autograd.grad((out - y).square().mean() / 2, W)
        with torch.no_grad():
            W.add_(m * grad + DECAY * W, alpha=-ETA)
            W.add_(torch.randn_like(W), alpha=math.sqrt(2 * ETA * TEMP))

    return step


def vmapped(n: int, m: int, dim: int) -> Step:
    """The same step with the gradient of the first variation of one particle, vmapped over particles."""
    rows, y, signs, W = _tensors(n, m, dim)

    def variation(w: Tensor, sign: Tensor, residual: Tensor) -> Tensor:
        return (residual * (SCALE * sign) * torch.relu(rows @ w)).mean()

    gradient = torch.func.vmap(torch.func.grad(variation), in_dims=(0, 0, None))

    def step() -> None:
        residual = torch.relu(rows @ W.T) @ signs * (SCALE / m) - y
        W.add_(gradient(W, signs, residual) + DECAY * W, alpha=-ETA)
        W.add_(torch.randn_like(W), alpha=math.sqrt(2 * ETA * TEMP))

    return step


def interleaved(sides: dict[str, Step], rounds: int, seconds: float = 0.15) -> dict[str, float]:
    """Return the median milliseconds of every side; each round times all of them in turn."""
    counts = {}
    for name, step in sides.items():
        step()
        start = time.perf_counter()
        step()
        counts[name] = max(1, int(seconds / (time.perf_counter() - start)))
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, step in sides.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                step()
            times[name].append((time.perf_counter() - start) / counts[name] * 1e3)
    return {name: float(np.median(v)) for name, v in times.items()}


def ensemble(rounds: int) -> dict[str, float]:
    """Return milliseconds per step of 20 members, together and one after the other."""
    X, y = data(400, 51, members=20)
    shared: dict[str, Any] = {"temperature": TEMP, "weight_decay": DECAY, "step_size": ETA}
    together = MeanFieldLangevin(TwoLayerRegression(X, y, scale=SCALE), 50, ensemble=20, **shared)
    alone = [MeanFieldLangevin(TwoLayerRegression(X[i], y[i], scale=SCALE), 50, **shared) for i in range(20)]

    def one_by_one() -> None:
        for engine in alone:
            engine.step()

    return interleaved({"together": together.step, "one by one": one_by_one}, rounds)


SHAPES = [(1000, 200, 50), (4000, 200, 50), (500, 50, 51), (1000, 1600, 50), (1000, 200, 400)]
SIDES = {"autograd": autograd, "vmap": vmapped}


def steps(table: Rows, shape: tuple[int, int, int], others: list[str], rounds: int) -> None:
    """Time the closed form beside others, in the process as it is."""
    times = interleaved({"closed": closed(*shape), **{k: SIDES[k](*shape) for k in others}}, rounds)
    n, m, dim = shape
    for side, ms in times.items():
        what = f"step beside {' and '.join(others)}"
        table.add(what=what, n=n, m=m, dim=dim, side=side, ms=ms, ratio=ms / times["closed"])


def rest(table: Rows, rounds: int) -> None:
    """Time the ensemble, and the cost against each size."""
    times = ensemble(rounds)
    for side, ms in times.items():
        table.add(what="ensemble of 20", n=400, m=50, dim=51, side=side, ms=ms, ratio=ms / times["together"])
    base = {"n": 2000, "m": 200, "dim": 100}
    for axis, values in {
        "n": (500, 1000, 2000, 4000, 8000), "m": (50, 100, 200, 400, 800), "dim": (50, 100, 200, 400, 800),
    }.items():  # fmt: skip
        shapes = [{**base, axis: v} for v in values]
        times = interleaved({str(v): closed(**s) for v, s in zip(values, shapes, strict=True)}, rounds)
        slope = float(np.polyfit(np.log(values), np.log(list(times.values())), 1)[0])
        for v, s in zip(values, shapes, strict=True):
            table.add(what=f"cost against {axis}", side="closed", ms=times[str(v)], ratio=slope, **s)


def main() -> None:
    """Measure everything anew, every group of sides in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--part", help="one group of sides; for the processes this script starts")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    table = Rows("speed", ["what", "n", "m", "dim", "side"], ["ms", "ratio"])
    if args.part == "rest":
        rest(table, args.rounds)
    elif args.part:
        shape, others = args.part.split(":")
        steps(table, SHAPES[int(shape)], others.split("+"), args.rounds)
    else:
        table.path.unlink(missing_ok=True)
        groups = ["autograd", "vmap", "autograd+vmap"]
        for part in [f"{i}:{group}" for i in range(len(SHAPES)) for group in groups] + ["rest"]:
            command = [sys.executable, __file__, "--rounds", str(args.rounds), "--part", part]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
