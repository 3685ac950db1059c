"""Mean-field Langevin against tuned kernels on multi-index targets; every setting is chosen on a validation split.

python experiments/mfld/separation.py [--seeds 0 1 2 3 4] [--cases parity4-d25-n3000 ...]
"""

import argparse
import time
from typing import Any

import numpy as np
import torch
from rows import Rows

from moopt.samplers.mfld import KernelBaseline, MFLDRegressor, alignment, multi_index

CASES = [
    ("parity4", 25, 3000), ("parity2", 50, 800), ("staircase3", 40, 1500), ("parity3", 40, 1500),
    ("parity3", 40, 2500), ("parity3", 30, 2500), ("parity2", 100, 1600), ("parity2", 100, 800),
    ("hermite3", 32, 2000), ("product2", 60, 800),
]  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "annealed": {
        "n_particles": 400, "scale": (4.0, 8.0, 16.0), "temperature": (1e-3, 1e-2), "weight_decay": 1e-2,
        "n_steps": 2500, "schedule": "halving",
    },
    # Found on parity3-d40-n1500 with seed 100, which is not among the reported seeds.
    "patient": {
        "n_particles": 100, "scale": (4.0, 8.0), "temperature": (1e-3, 3e-3), "weight_decay": 0.1, "n_steps": 20_000,
    },
}  # fmt: skip
KERNEL = "kernel"
N_TEST = 10_000


def run(case: tuple[str, int, int], method: str, seed: int, table: Rows) -> None:
    """Fit one method to one sample and add its row."""
    target, d, n = case
    train = multi_index(target, n, d, seed=seed)
    test = multi_index(target, N_TEST, d, seed=10_000 + seed)
    start = time.perf_counter()
    extra: dict[str, Any]
    if method == KERNEL:
        kernel = KernelBaseline(seed=seed).fit(train.X, train.y)
        predicted = kernel.predict(test.X)
        extra = {
            "chosen": f"{kernel.choice_['kernel']} b={kernel.choice_['bandwidth']} ridge={kernel.choice_['ridge']}"
        }
    else:
        model = MFLDRegressor(random_state=seed).set_params(**METHODS[method]).fit(train.X, train.y)
        predicted = model.predict(test.X)
        extra = {
            "chosen": f"scale={model.scale_:g} temperature={model.temperature_:g} steps={model.n_iter_}",
            "alignment": float(alignment(torch.from_numpy(model.particles_), train.basis)),
        }
    table.add(
        case=f"{target}-d{d}-n{n}", method=method, seed=seed,
        test_mse=float(np.mean((predicted - test.y) ** 2) / np.var(test.y)),
        sign_accuracy=float(np.mean(np.sign(predicted) == np.sign(test.y))),
        seconds=time.perf_counter() - start, **extra,
    )  # fmt: skip


def main() -> None:
    """Run what is not in the table yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--methods", nargs="+", default=["default", KERNEL])
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = Rows(
        "separation", ["case", "method", "seed"], ["test_mse", "sign_accuracy", "alignment", "chosen", "seconds"]
    )
    for seed in args.seeds:
        for case in CASES:
            name = f"{case[0]}-d{case[1]}-n{case[2]}"
            for method in args.methods:
                if (args.cases and name not in args.cases) or table.has(case=name, method=method, seed=seed):
                    continue
                run(case, method, seed, table)


if __name__ == "__main__":
    main()
