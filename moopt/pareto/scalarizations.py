"""Scalarizations: a vector of objectives and a preference become one number, **larger is better** always.

``values`` have shape (..., m), ``weights`` (m,) or any shape that broadcasts against them; the result has the
broadcast shape without the last axis. NumPy in, NumPy out (a float for one vector); a tensor in, a tensor
with gradient out. The distance-based forms are written as the *negative* of the cost found in papers, so that
the same ``argmax`` serves all of them.

References:
    Zhang, Li. MOEA/D. IEEE Transactions on Evolutionary Computation 11(6), 2007 (Tchebycheff, PBI).
    Steuer, Choo. An interactive weighted Tchebycheff procedure. Mathematical Programming 26, 1983
    (augmentation). Lin et al. Smooth Tchebycheff scalarization for multi-objective optimization. ICML 2024.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto.arrays import (
    FloatArray,
    Maximize,
    Points,
    as_array,
    as_vector,
    difference,
    is_tensor,
    like,
    namespace,
    same_width,
    signs,
    together,
    total,
    unknown,
    weighted,
)
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from torch import Tensor


@overload
def linear(values: "Tensor", /, weights: Points, *, maximize: Maximize = True) -> "Tensor": ...
@overload
def linear(values: ArrayLike, /, weights: ArrayLike, *, maximize: Maximize = True) -> FloatArray: ...
def linear(values: Points, /, weights: Points, *, maximize: Maximize = True) -> "FloatArray | Tensor":
    """Return the weighted sum ``sum_k w_k y_k``.

    Args:
        values: Objectives (..., m).
        weights: Preferences, broadcastable to (..., m), non-negative.
        maximize: True, False, or one bool per objective; minimised objectives enter with their sign changed.

    Returns:
        Utilities (...).

    Raises:
        ValueError: If the widths differ, a weight is negative or a value is NaN.

    Examples:
        >>> linear([[1.0, 3.0], [2.0, 0.0]], [0.5, 0.5]).tolist()
        [2.0, 1.0]
    """
    y, w = _read(values, weights, maximize)
    return _out(total(weighted(w, y)))


@overload
def tchebycheff(
    values: "Tensor", /, weights: Points, ideal: Points, *, rho: float = 0.0, maximize: Maximize = True
) -> "Tensor": ...
@overload
def tchebycheff(
    values: ArrayLike, /, weights: ArrayLike, ideal: ArrayLike, *, rho: float = 0.0, maximize: Maximize = True
) -> FloatArray: ...
def tchebycheff(
    values: Points, /, weights: Points, ideal: Points, *, rho: float = 0.0, maximize: Maximize = True
) -> "FloatArray | Tensor":
    """Return the negative Tchebycheff distance ``-max_k w_k (z_k - y_k) - rho sum_k w_k (z_k - y_k)``.

    Args:
        values: Objectives (..., m).
        weights: Preferences, broadcastable to (..., m), non-negative.
        ideal: Point z (m,) at least as good as all values, in the orientation of ``values``.
        rho: 0 is the plain form, whose optimum may be only weakly Pareto optimal; a small positive number is
            the augmented form.
        maximize: True, False, or one bool per objective.

    Returns:
        Utilities (...), 0 at the ideal point.

    Raises:
        ValueError: If the widths differ, ``rho`` or a weight is negative or a value is NaN.

    Examples:
        >>> tchebycheff([[1.0, 3.0], [2.0, 2.0]], [0.5, 0.5], [3.0, 3.0]).tolist()
        [-1.0, -0.5]
    """
    if not rho >= 0:
        raise MooptError(f"rho must not be negative, got {rho!r}")
    y, w = _read(values, weights, maximize)
    short = weighted(w, _shortfall(y, ideal, maximize))
    cost = namespace(short).amax(short, axis=-1)
    return _out(total(-short) * rho - cost if rho else -cost)


@overload
def smooth_tchebycheff(
    values: "Tensor", /, weights: Points, ideal: Points, *, mu: float = 0.1, maximize: Maximize = True
) -> "Tensor": ...
@overload
def smooth_tchebycheff(
    values: ArrayLike, /, weights: ArrayLike, ideal: ArrayLike, *, mu: float = 0.1, maximize: Maximize = True
) -> FloatArray: ...
def smooth_tchebycheff(
    values: Points, /, weights: Points, ideal: Points, *, mu: float = 0.1, maximize: Maximize = True
) -> "FloatArray | Tensor":
    """Return ``-mu log sum_k exp(w_k (z_k - y_k) / mu)``: Tchebycheff with the maximum made smooth.

    At most ``mu log m`` below :func:`tchebycheff`, and equal to it in the limit ``mu -> 0``.

    Args:
        values: Objectives (..., m).
        weights: Preferences, broadcastable to (..., m), non-negative.
        ideal: Point z (m,) at least as good as all values, in the orientation of ``values``.
        mu: Smoothing, in the unit of the weighted objectives.
        maximize: True, False, or one bool per objective.

    Returns:
        Utilities (...).

    Raises:
        ValueError: If the widths differ, ``mu`` is not positive, a weight is negative or a value is NaN.

    Examples:
        >>> round(float(smooth_tchebycheff([3.0, 3.0], [0.5, 0.5], [3.0, 3.0], mu=1.0)), 6)
        -0.693147
    """
    if not mu > 0:
        raise MooptError(f"mu must be positive, got {mu!r}")
    y, w = _read(values, weights, maximize)
    short = weighted(w, _shortfall(y, ideal, maximize)) / mu
    xp = namespace(short)
    # Subtracting the maximum keeps exp from overflowing; an infinite maximum is the answer itself.
    top = xp.amax(short, axis=-1, keepdims=True)
    soft = xp.log(xp.exp(difference(short, top)).sum(axis=-1)) + top[..., 0]
    return _out(-mu * soft)


@overload
def pbi(
    values: "Tensor", /, weights: Points, ideal: Points, *, theta: float = 5.0, maximize: Maximize = True
) -> "Tensor": ...
@overload
def pbi(
    values: ArrayLike,
    /,
    weights: ArrayLike,
    ideal: ArrayLike,
    *,
    theta: float = 5.0,
    maximize: Maximize = True,
) -> FloatArray: ...
def pbi(
    values: Points, /, weights: Points, ideal: Points, *, theta: float = 5.0, maximize: Maximize = True
) -> "FloatArray | Tensor":
    """Return the negative penalty-based boundary intersection cost ``-(d1 + theta d2)``.

    d1 is the distance from the ideal point along the direction ``weights``, d2 the distance from that line.

    Args:
        values: Objectives (..., m), finite.
        weights: Direction, broadcastable to (..., m), non-negative and not all zero.
        ideal: Point z (m,) at least as good as all values, in the orientation of ``values``.
        theta: Penalty of leaving the line.
        maximize: True, False, or one bool per objective.

    Returns:
        Utilities (...); ``-inf`` where an objective is infinitely bad.

    Raises:
        ValueError: If the widths differ, ``theta`` or a weight is negative, all weights are zero or a value
            is NaN.

    Examples:
        >>> pbi([[2.0, 2.0], [3.0, 1.0]], [1.0, 1.0], [3.0, 3.0], theta=1.0).round(6).tolist()
        [-1.414214, -2.828427]
    """
    if not theta >= 0:
        raise MooptError(f"theta must not be negative, got {theta!r}")
    y, w = _read(values, weights, maximize)
    size = (w**2).sum(axis=-1)
    if not bool((size > 0).all()):
        raise MooptError("pbi needs at least one positive weight in every preference")
    unit = w / size[..., None] ** 0.5
    gap = _shortfall(y, ideal, maximize)
    xp = namespace(gap)
    lost = xp.isinf(gap).any(axis=-1)
    gap = xp.where(xp.isinf(gap), xp.zeros_like(gap), gap)
    along = (gap * unit).sum(axis=-1)
    squared = ((gap - along[..., None] * unit) ** 2).sum(axis=-1)
    # sqrt has no finite derivative at 0: points on the line get gradient 0 there.
    on_line = squared == 0
    away = xp.where(on_line, xp.zeros_like(squared), xp.where(on_line, xp.ones_like(squared), squared) ** 0.5)
    cost = along + theta * away
    return _out(xp.where(lost, xp.full_like(cost, -np.inf), -cost))


SCALARIZATIONS = ("linear", "tchebycheff", "augmented_tchebycheff", "smooth_tchebycheff", "pbi")
"""Names that :func:`scalarize` knows."""


def scalarize(
    values: Points,
    /,
    weights: Points,
    *,
    method: str | Callable[[Any, Any], Any] = "linear",
    ideal: Points | None = None,
    maximize: Maximize = True,
) -> Any:
    """Apply a scalarization by name.

    Args:
        values: Objectives (..., m).
        weights: Preferences, broadcastable to (..., m), non-negative.
        method: One of :data:`SCALARIZATIONS` (``augmented_tchebycheff`` has ``rho=0.05``), or a function of
            larger-is- better values and weights.
        ideal: Ideal point for the distance-based methods. Default: the best of ``values`` in each objective.
        maximize: True, False, or one bool per objective.

    Returns:
        Utilities (...), larger is better.

    Raises:
        ValueError: If the method is unknown, or as the method itself raises.

    Examples:
        >>> scalarize([[1.0, 3.0], [2.0, 2.5]], [0.5, 0.5], method="tchebycheff").tolist()
        [-0.5, -0.25]
    """
    y, w = _read(values, weights, maximize)
    if callable(method):
        return method(y, w)
    if method == "linear":
        return linear(y, w)
    table: dict[str, Callable[..., Any]] = {
        "tchebycheff": tchebycheff,
        "augmented_tchebycheff": partial(tchebycheff, rho=0.05),
        "smooth_tchebycheff": smooth_tchebycheff,
        "pbi": pbi,
    }
    if method not in table:
        raise unknown("scalarization", method, SCALARIZATIONS)
    m = y.shape[-1]
    if ideal is None:
        flat = y.reshape(-1, m)
        best = namespace(y).amax(flat, axis=0)
    else:
        best = as_vector(ideal, m, maximize, name="ideal")
    return table[method](y, w, best)


def _read(values: Points, weights: Points, maximize: Maximize) -> tuple[Any, Any]:
    y, w = as_array(values, "values"), as_array(weights, "weights")
    if y.ndim == 0 or w.ndim == 0:
        raise MooptError(f"values and weights need a last axis of objectives, got {tuple(y.shape)}, {tuple(w.shape)}")
    same_width(y, w, "values", "weights")
    if not bool(((w >= 0) & (w < np.inf)).all()):
        raise MooptError("weights must be finite and not negative")
    y = y * like(signs(maximize, y.shape[-1]), y)
    return together(y, w)


def _shortfall(y: Any, ideal: Points, maximize: Maximize) -> Any:
    """Return how far each larger-is-better value is from the ideal point."""
    z = as_vector(ideal, y.shape[-1], maximize, name="ideal")
    z, y = together(z, y)
    return difference(z, y)


def _out(result: Any) -> "FloatArray | Tensor":
    return cast("FloatArray | Tensor", result if is_tensor(result) else np.asarray(result, dtype=np.float64)[()])
