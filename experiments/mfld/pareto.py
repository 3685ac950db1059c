"""ParetoMFLD beside NSGA-II and NSGA-III (pymoo's defaults, 100 individuals) at an equal budget.

A budget is a number of evaluations. Methods: ``mfld`` leaves gradients uncharged, ``mfld-charged`` counts the
gradient of a row as one more evaluation, so it takes half the steps. ``nsga2+mfld`` starts ParetoMFLD from the
population that NSGA-II has after three quarters of the budget, gradients charged. ``mfld-quiet`` has no noise,
``mfld-no-births`` no births and deaths. For many local optima: ``mfld-hot`` tempers with large noise, ``mfld-mutation``
lets copies jump, ``mfld-multimodal`` also crosses them, every step, ``mfld-restarts`` joins four short runs.

    python experiments/mfld/pareto.py [--seeds 0 1 2 3 4] [--problems ZDT1 ...] [--methods mfld nsga2 ...]
"""

import argparse
import time
from typing import Any

import numpy as np
import torch
from problems import CASES, Case
from rows import Rows

from moopt.kernels import hypervolume
from moopt.samplers.mfld import MULTIMODAL, ParetoMFLD

N = 100
MFLD: dict[str, dict[str, Any]] = {
    "mfld": {"gradient_cost": 0.0},
    "mfld-charged": {"gradient_cost": 1.0},
    "mfld-quiet": {"gradient_cost": 0.0, "temperature": 0.0},
    "mfld-no-births": {"gradient_cost": 0.0, "birth_every": 0},
    "mfld-hot": {"gradient_cost": 1.0, "temperature": 0.03, "step_size": 0.02, "final_step": 0.02, "birth_every": 0},
    "mfld-mutation": {
        "gradient_cost": 1.0, "n_particles": 20, "mutation": 0.2, "birth_every": 15, "birth_fraction": 0.5,
        "tau": 0.01, "step_size": 0.004, "final_step": 0.1,
    },
    "mfld-multimodal": {"gradient_cost": 0.0, "config": MULTIMODAL},
    "mfld-multimodal-charged": {"gradient_cost": 1.0, "config": MULTIMODAL},
}  # fmt: skip
MAIN = ["mfld", "mfld-charged", "nsga2", "nsga3", "nsga2+mfld"]


def volume(Y: Any, case: Case) -> float:
    """Return the hypervolume of minimised points."""
    return float(hypervolume(np.asarray(Y, dtype=np.float64), case.ref_point, maximize=False))


def mfld(case: Case, seed: int, budget: float, gradient_cost: float, **settings: Any) -> tuple[Any, int, int]:
    """Return the final points, evaluations and gradients of one run."""
    sampler = ParetoMFLD(
        case.f, bounds=case.bounds, directions="min", ref_point=case.ref_point, seed=seed,
        **{"n_particles": N, **settings},
    )  # fmt: skip
    front = sampler.run(max_cost=budget, gradient_cost=gradient_cost).front
    return front.user_points, sampler.n_evals, sampler.n_grads


def nsga(case: Case, name: str, seed: int, budget: int) -> tuple[Any, Any]:
    """Return decision vectors and objectives of pymoo's final population."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.algorithms.moo.nsga3 import NSGA3
    from pymoo.core.problem import Problem
    from pymoo.optimize import minimize
    from pymoo.util.ref_dirs import get_reference_directions

    low, high = np.array(case.bounds).T
    m = len(case.ref_point)

    class Wrapped(Problem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=len(low), n_obj=m, xl=low, xu=high)

        def _evaluate(self, x: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            out["F"] = case.f(torch.from_numpy(np.asarray(x, dtype=np.float64))).numpy()

    if name == "nsga2":
        algorithm = NSGA2(pop_size=N)
    else:
        directions = get_reference_directions("das-dennis", m, n_partitions=99 if m == 2 else 12)
        algorithm = NSGA3(ref_dirs=directions, pop_size=N)
    result = minimize(Wrapped(), algorithm, ("n_eval", budget), seed=seed)
    return result.pop.get("X"), result.pop.get("F")


def run(problem: str, method: str, seed: int, budget: int, table: Rows) -> None:
    """Run one method and add its row."""
    case, start = CASES[problem], time.perf_counter()
    evals, grads = budget, 0
    if method in ("nsga2", "nsga3"):
        Y = nsga(case, method, seed, budget)[1]
    elif method == "nsga2+mfld":
        first = 3 * budget // 4
        X, _ = nsga(case, "nsga2", seed, first)
        polish = {"init": X, "step_size": 0.01, "final_step": 0.1, "tau": 0.02}
        Y, evals, grads = mfld(case, seed, budget - first, 1.0, **polish)
        evals += first
    elif method == "mfld-restarts":
        runs = [mfld(case, 1000 * seed + i, budget / 4, 1.0) for i in range(4)]
        Y, evals, grads = np.concatenate([r[0] for r in runs]), sum(r[1] for r in runs), sum(r[2] for r in runs)
    else:
        settings = dict(MFLD[method])
        Y, evals, grads = mfld(case, seed, budget, settings.pop("gradient_cost"), **settings)
    table.add(
        problem=problem, method=method, budget=budget, seed=seed, hv=volume(Y, case), evaluations=evals,
        gradients=grads, seconds=time.perf_counter() - start,
    )  # fmt: skip


def main() -> None:
    """Run what is not in the table yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--problems", nargs="+", default=list(CASES))
    parser.add_argument("--methods", nargs="+", default=MAIN)
    parser.add_argument("--budgets", type=int, nargs="+", default=[20_000, 10_000])
    args = parser.parse_args()
    torch.set_num_threads(1)
    table = Rows("pareto", ["problem", "method", "budget", "seed"], ["hv", "evaluations", "gradients", "seconds"])
    for budget in args.budgets:
        for problem in args.problems:
            for method in args.methods:
                for seed in args.seeds:
                    if not table.has(problem=problem, method=method, budget=budget, seed=seed):
                        run(problem, method, seed, budget, table)


if __name__ == "__main__":
    main()
