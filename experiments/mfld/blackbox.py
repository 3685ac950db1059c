"""ParetoMFLD on Gaussian-process surrogates of black boxes, beside scrambled Sobol points, at equal evaluations.

python experiments/mfld/blackbox.py [--seeds 5 6 7 8 9]
"""

import argparse
import time
from typing import Any

import numpy as np
import torch
from botorch.test_functions.multi_objective import ZDT1, BraninCurrin, VehicleSafety
from rows import Rows

from moopt.pareto import Front
from moopt.samplers.mfld import surrogate_search

PROBLEMS = {"BraninCurrin": (BraninCurrin(), 40), "VehicleSafety": (VehicleSafety(), 40), "ZDT1-d4": (ZDT1(4), 40)}


def main() -> None:
    """Run what is not in the table yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 6, 7, 8, 9])
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = Rows("blackbox", ["problem", "method", "seed"], ["hv", "max_hv", "evaluations", "seconds"])
    for name, (problem, budget) in PROBLEMS.items():
        box, ref = np.asarray(problem.bounds).T, np.asarray(problem.ref_point)

        def f(x: Any, problem: Any = problem) -> Any:
            return problem.evaluate_true(torch.from_numpy(x)).numpy()

        for seed in args.seeds:
            for method in ("surrogate", "sobol"):
                if table.has(problem=name, method=method, seed=seed):
                    continue
                start = time.perf_counter()
                if method == "surrogate":
                    front = surrogate_search(
                        f, bounds=box, directions="min", ref_point=ref, budget=budget, batch=4, seed=seed
                    ).front
                else:
                    sobol = torch.quasirandom.SobolEngine(len(box), scramble=True, seed=seed)  # type: ignore[no-untyped-call]
                    unit = sobol.draw(budget, dtype=torch.float64).numpy()
                    points = f(box[:, 0] + (box[:, 1] - box[:, 0]) * unit)
                    front = Front.from_user(points, directions="min", ref_point=ref)
                above = bool(np.any(np.all(front.user_points < ref, axis=1)))
                table.add(
                    problem=name, method=method, seed=seed, hv=front.hypervolume() if above else 0.0,
                    max_hv=float(problem.max_hv), evaluations=budget, seconds=time.perf_counter() - start,
                )  # fmt: skip


if __name__ == "__main__":
    main()
