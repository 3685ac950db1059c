"""Differentiable multi-objective problems, and what is read as one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from moopt.runs.errors import MooptError

Direction = Literal["max", "min"]


@dataclass(frozen=True)
class MFLDProblem:
    """A problem on a box whose objectives torch can differentiate."""

    evaluate: Callable[[Tensor], Tensor]
    """Maps points (n, d) to objectives (n, m), larger is better, by torch operations."""
    bounds: Tensor
    """Lower and upper bounds (2, d)."""
    ref_point: Tensor
    """Reference point (m,), larger is better."""
    directions: tuple[Direction, ...]
    """How the user sees each objective; labels only, ``evaluate`` is larger-is-better always."""
    names: tuple[str, ...] = field(default=())
    """Objective names (m,); () for f1, f2, ..."""

    def __post_init__(self) -> None:
        bounds = self.bounds
        if bounds.ndim != 2 or bounds.shape[0] != 2 or bounds.shape[1] == 0:
            raise MooptError(f"bounds must be (2, d), got shape {tuple(bounds.shape)}")
        if not bool(torch.isfinite(bounds).all() & (bounds[0] < bounds[1]).all()):
            raise MooptError(f"bounds must be finite with lower < upper, got {bounds.tolist()}")
        if self.ref_point.shape != (len(self.directions),) or len(self.directions) < 2:
            raise MooptError(
                f"ref_point of shape {tuple(self.ref_point.shape)} does not fit {len(self.directions)} objectives "
                "(at least 2 are needed)"
            )
        if not bool(torch.isfinite(self.ref_point).all()):
            raise MooptError(f"ref_point must be finite, got {self.ref_point.tolist()}")

    @property
    def dim(self) -> int:
        """Number d of variables."""
        return int(self.bounds.shape[1])

    @property
    def n_obj(self) -> int:
        """Number m of objectives."""
        return len(self.directions)

    def scaled(self, unit: Tensor) -> Tensor:
        """Return points (..., d) of the unit cube in the problem's bounds."""
        low, high = self.bounds.to(unit)
        scaled: Tensor = low + (high - low) * unit
        return scaled


def as_problem(
    problem: Any,
    *,
    bounds: Any = None,
    directions: str | Sequence[str] | None = None,
    ref_point: Any = None,
    names: Sequence[str] = (),
) -> MFLDProblem:
    """Return an object as a differentiable problem.

    Args:
        problem: An :class:`MFLDProblem`; a BoTorch multi-objective test problem (without its noise); or a
            function of torch points (n, d) that returns objectives (n, m), in the user's orientation.
        bounds: Pairs (low, high) per variable (d, 2); needed for a function.
        directions: "max" or "min", one or one per objective; needed for a function.
        ref_point: Reference point (m,) in the user's orientation; default the problem's own.
        names: Objective names.

    Raises:
        MooptError: If something needed is missing, does not fit, or the problem has constraints.

    Examples:
        >>> problem = as_problem(lambda x: torch.cat([x, 1 - x], dim=1), bounds=[(0, 1)], directions="max",
        ...                      ref_point=[0, 0])
        >>> problem.dim, problem.n_obj
        (1, 2)
    """
    if isinstance(problem, MFLDProblem):
        return problem if ref_point is None else _with_ref(problem, ref_point)
    if hasattr(problem, "evaluate_true") and hasattr(problem, "num_objectives"):
        return _from_botorch(problem, ref_point, names)
    if hasattr(problem, "_evaluate") and hasattr(problem, "xl"):
        raise MooptError(
            "a pymoo problem gives no gradients: evaluate it and use moopt.samplers.mfld.surrogate_problem, "
            "or write it as a function of torch tensors"
        )
    if not callable(problem):
        raise MooptError(f"cannot read a {type(problem).__name__} as a problem; give a BoTorch problem or a function")
    missing = [k for k, v in {"bounds": bounds, "directions": directions, "ref_point": ref_point}.items() if v is None]
    if missing:
        raise MooptError(f"a function needs {', '.join(missing)}")
    ref = torch.as_tensor(ref_point, dtype=torch.float64).flatten()
    ways = _directions(directions, len(ref))
    signs = torch.tensor([1.0 if w == "max" else -1.0 for w in ways], dtype=torch.float64)
    box = torch.as_tensor(bounds, dtype=torch.float64)
    if box.ndim != 2 or box.shape[1] != 2:
        raise MooptError(f"bounds must be pairs (low, high), one per variable, got shape {tuple(box.shape)}")

    def evaluate(x: Tensor) -> Tensor:
        return _checked(problem(x), len(x), len(ref)) * signs.to(x)

    return MFLDProblem(evaluate, box.T.contiguous(), ref * signs, ways, tuple(names))


def _from_botorch(problem: Any, ref_point: Any, names: Sequence[str]) -> MFLDProblem:
    if getattr(problem, "num_constraints", 0):
        raise MooptError(f"{type(problem).__name__} has constraints, which ParetoMFLD cannot keep")
    if problem.discrete_inds or problem.categorical_inds:
        raise MooptError(f"{type(problem).__name__} has variables that are not continuous")
    m = int(problem.num_objectives)
    minimised = not problem.negate  # BoTorch's multi-objective problems are minimised unless negated
    sign = -1.0 if minimised else 1.0
    ref = getattr(problem, "ref_point", None) if ref_point is None else ref_point
    if ref is None:
        raise MooptError(f"{type(problem).__name__} has no reference point; give ref_point")
    ref = torch.as_tensor(ref, dtype=torch.float64).flatten()
    way: Direction = "min" if minimised else "max"

    def evaluate(x: Tensor) -> Tensor:
        return sign * _checked(problem(x, noise=False), len(x), m)

    return MFLDProblem(evaluate, problem.bounds.to(torch.float64), sign * ref, (way,) * m, tuple(names))


def _with_ref(problem: MFLDProblem, ref_point: Any) -> MFLDProblem:
    signs = torch.tensor([1.0 if w == "max" else -1.0 for w in problem.directions], dtype=torch.float64)
    ref = torch.as_tensor(ref_point, dtype=torch.float64).flatten()
    if ref.shape != signs.shape:
        raise MooptError(f"ref_point must have {len(signs)} values, got {len(ref)}")
    return MFLDProblem(problem.evaluate, problem.bounds, ref * signs, problem.directions, problem.names)


def _directions(directions: Any, m: int) -> tuple[Direction, ...]:
    ways = (directions,) * m if isinstance(directions, str) else tuple(directions)
    if len(ways) != m or any(w not in ("max", "min") for w in ways):
        raise MooptError(f"directions must be 'max' or 'min', one or {m} of them, got {directions!r}")
    return tuple("max" if w == "max" else "min" for w in ways)


def _checked(Y: Tensor, n: int, m: int) -> Tensor:
    if not isinstance(Y, Tensor) or Y.shape != (n, m):
        got = tuple(Y.shape) if isinstance(Y, Tensor) else type(Y).__name__
        raise MooptError(f"the problem must return a tensor ({n}, {m}) for {n} points, got {got}")
    return Y
