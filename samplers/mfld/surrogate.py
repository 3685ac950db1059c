"""Gaussian-process surrogates of black boxes: differentiable problems that ParetoMFLD can work on."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from moopt.kernels import hv_improvement
from moopt.pareto import Front
from moopt.runs.errors import MooptError
from moopt.runs.result import Result
from moopt.samplers.mfld.pareto import ParetoMFLD
from moopt.samplers.mfld.problem import MFLDProblem, as_problem


def surrogate_problem(
    X: Any,
    Y: Any,
    *,
    bounds: Any,
    directions: str | Sequence[str],
    ref_point: Any,
    optimism: float = 0.0,
    names: Sequence[str] = (),
) -> MFLDProblem:
    """Fit a Gaussian process per objective and return its prediction as a problem.

    Args:
        X: Evaluated points (n, d), n >= 2.
        Y: Their objectives (n, m), in the user's orientation.
        bounds: Pairs (low, high) per variable (d, 2).
        directions: "max" or "min", one or one per objective.
        ref_point: Reference point (m,) in the user's orientation.
        optimism: Posterior standard deviations added to the mean, towards better; 0 is the mean.
        names: Objective names.

    Raises:
        MooptError: If shapes do not fit or values are not finite.
    """
    from botorch import fit_gpytorch_mll
    from botorch.models.gp_regression import SingleTaskGP
    from botorch.models.model_list_gp_regression import ModelListGP
    from botorch.models.transforms import Normalize, Standardize
    from gpytorch.mlls import SumMarginalLogLikelihood  # type: ignore[import-untyped]

    rows = torch.as_tensor(np.asarray(X, dtype=np.float64))
    values = torch.as_tensor(np.asarray(Y, dtype=np.float64))
    if rows.ndim != 2 or values.ndim != 2 or len(rows) != len(values) or len(rows) < 2:
        raise MooptError(f"X must be (n >= 2, d) and Y (n, m), got {tuple(rows.shape)} and {tuple(values.shape)}")
    if not bool(torch.isfinite(rows).all() & torch.isfinite(values).all()):
        raise MooptError("X or Y has values that are NaN or infinite")
    box = torch.as_tensor(np.asarray(bounds, dtype=np.float64)).T.contiguous()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ModelListGP(
            *(
                SingleTaskGP(
                    rows,
                    values[:, j : j + 1],
                    input_transform=Normalize(rows.shape[1], bounds=box),
                    outcome_transform=Standardize(1),
                )
                for j in range(values.shape[1])
            )
        )
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    m = values.shape[1]
    ways = (directions,) * m if isinstance(directions, str) else tuple(directions)
    better = torch.tensor([1.0 if w == "max" else -1.0 for w in ways], dtype=torch.float64)

    def predict(x: Tensor) -> Tensor:
        posterior = model.posterior(x.unsqueeze(-2))
        mean: Tensor = posterior.mean.squeeze(-2)
        if optimism:
            mean = mean + optimism * better * posterior.variance.clamp_min(1e-12).sqrt().squeeze(-2)
        return mean

    return as_problem(predict, bounds=bounds, directions=directions, ref_point=ref_point, names=names)


def surrogate_search(
    f: Callable[[np.ndarray[Any, Any]], Any],
    *,
    bounds: Any,
    directions: str | Sequence[str],
    ref_point: Any,
    budget: int,
    n_init: int | None = None,
    batch: int = 5,
    n_steps: int = 100,
    optimism: float = 0.5,
    seed: int = 0,
    **settings: Any,
) -> Result:
    """Optimize a black box: fit surrogates, run ParetoMFLD on them, evaluate the most promising particles, repeat.

    Args:
        f: Maps points (k, d) to objectives (k, m), in the user's orientation.
        bounds: Pairs (low, high) per variable.
        directions: "max" or "min", one or one per objective.
        ref_point: Reference point (m,) in the user's orientation.
        budget: Evaluations of ``f`` in all.
        n_init: Scrambled Sobol points to begin with; default ``2 (d + 1)``.
        batch: Points evaluated per round; they are picked one by one by predicted hypervolume improvement. Where
            none is predicted, a uniform point takes the place.
        n_steps: Steps of ParetoMFLD per round.
        optimism: As for :func:`surrogate_problem`; doubled after every round without improvement, up to 4, and back
            after one with.
        seed: Seed >= 0.
        **settings: Fields of :class:`ParetoMFLDConfig`.

    Returns:
        The front of the evaluated points; the history has ``step`` (evaluations) and ``hv``.

    Raises:
        MooptError: If the budget is smaller than ``n_init``, or ``f`` returns what cannot be used.
    """
    box = np.asarray(bounds, dtype=np.float64)
    d = len(box)
    first = 2 * (d + 1) if n_init is None else n_init
    if not 2 <= first <= budget:
        raise MooptError(f"budget must be at least n_init ({first}, itself >= 2), got {budget}")
    sobol = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed)  # type: ignore[no-untyped-call]
    X = box[:, 0] + (box[:, 1] - box[:, 0]) * sobol.draw(first, dtype=torch.float64).numpy()
    Y = np.asarray(f(X), dtype=np.float64)
    history: dict[str, list[float]] = {"step": [], "hv": []}
    hope = optimism

    def front() -> Front:
        return Front.from_user(Y, directions=directions, ref_point=ref_point, solutions=X).filter()

    while True:
        now = front()
        assert now.ref_point is not None
        history["step"].append(len(X))
        history["hv"].append(now.hypervolume() if (now.points > now.ref_point).all(axis=1).any() else 0.0)
        left = min(batch, budget - len(X))
        if left <= 0:
            break
        stuck = len(history["hv"]) > 1 and history["hv"][-1] <= history["hv"][-2]
        hope = min(4.0, max(2 * hope, 0.5)) if stuck else optimism
        problem = surrogate_problem(X, Y, bounds=bounds, directions=directions, ref_point=ref_point, optimism=hope)
        sampler = ParetoMFLD(problem, seed=seed + len(X), **settings)
        found = sampler.run(n_steps).front
        picked = _greedy(found.points, now.points, now.ref_point, left)
        new = np.asarray(found.solutions)[picked]
        if len(new) < left:
            new = np.concatenate([new, _uniform(box, left - len(new), seed + len(X))])
        X, Y = np.concatenate([X, new]), np.concatenate([Y, np.asarray(f(new), dtype=np.float64)])
    return Result(
        front=front(),
        history={k: np.array(v) for k, v in history.items()},
        seed=seed,
        train_steps=len(X),
    )


def _greedy(predicted: Any, known: Any, ref: Any, count: int) -> list[int]:
    """Pick rows of largest predicted hypervolume improvement, one after the other, while there is any."""
    picked: list[int] = []
    for _ in range(min(count, len(predicted))):
        gains = np.asarray(hv_improvement(predicted, known, ref))
        gains[picked] = -np.inf
        if gains.max() <= 0:
            break
        picked.append(int(gains.argmax()))
        known = np.concatenate([known, predicted[picked[-1:]]])
    return picked


def _uniform(box: Any, count: int, seed: int) -> Any:
    rng = np.random.Generator(np.random.PCG64(seed))
    return rng.uniform(box[:, 0], box[:, 1], (count, len(box)))
