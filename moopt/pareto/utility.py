"""Utility-based indicators: what a front is worth to users whose preferences are weights.

References:
    Zintgraf, Kanters, Roijers, Oliehoek, Beau. Quality assessment of MORL algorithms: a utility-based
        approach. Benelearn 2015.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto.arrays import (
    FloatArray,
    Maximize,
    Points,
    as_array,
    as_points,
    difference,
    is_tensor,
    like,
    namespace,
    same_width,
    scalar,
    together,
)
from moopt.pareto.scalarizations import linear
from moopt.pareto.weights import lattice_size, simplex_weights
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from torch import Tensor

Utility: TypeAlias = Callable[[Any, Any], Any]
"""``utility(points (..., n, m), weights (..., m)) -> (..., n)``, larger is better."""
_MAX_DEFAULT_WEIGHTS = 5000


def default_weights(m: int) -> FloatArray:
    """Return the default weights: the finest lattice with step >= 0.01 and at most 5000 points.

    Two objectives get 101 weights (step 0.01), three 4950, six 4368.

    Args:
        m: Number of objectives.
    """
    H = 1
    while H < 100 and lattice_size(m, H + 1) <= _MAX_DEFAULT_WEIGHTS:
        H += 1
    return simplex_weights(m, H=H)


@overload
def expected_utility(
    points: "Tensor",
    /,
    weights: Points | None = None,
    *,
    maximize: Maximize = True,
    utility: Utility = linear,
) -> "Tensor": ...
@overload
def expected_utility(
    points: ArrayLike,
    /,
    weights: ArrayLike | None = None,
    *,
    maximize: Maximize = True,
    utility: Utility = linear,
) -> float: ...
def expected_utility(
    points: Points, /, weights: Points | None = None, *, maximize: Maximize = True, utility: Utility = linear
) -> "float | Tensor":
    """Return the mean over ``weights`` of the utility of each weight's favourite point.

    Args:
        points: Array (n, m); a tensor may have batch dimensions (..., n, m).
        weights: Preferences (k, m), non-negative; not rescaled. Default: :func:`default_weights`.
        maximize: True, False, or one bool per objective. Minimised objectives enter with their sign changed,
            so the result is larger-is-better whatever the direction.
        utility: ``utility(points, weights)``; default the weighted sum. Any function of
            :mod:`moopt.pareto.scalarizations` with its other arguments bound will do.

    Returns:
        The expected utility: float, or tensor (...). ``-inf`` if ``points`` is empty.

    Raises:
        ValueError: If the widths differ, a weight is negative or a value is NaN.

    Examples:
        >>> expected_utility([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
        0.8333333333333334
    """
    ours = as_points(points, maximize)
    prefs = _preferences(weights, ours)
    return scalar(_best(ours, prefs, utility).mean(axis=-1))


@overload
def maximum_utility_loss(
    points: "Tensor",
    /,
    ref: Points,
    weights: Points | None = None,
    *,
    maximize: Maximize = True,
    utility: Utility = linear,
) -> "Tensor": ...
@overload
def maximum_utility_loss(
    points: ArrayLike,
    /,
    ref: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    maximize: Maximize = True,
    utility: Utility = linear,
) -> float: ...
def maximum_utility_loss(
    points: Points,
    /,
    ref: Points,
    weights: Points | None = None,
    *,
    maximize: Maximize = True,
    utility: Utility = linear,
) -> "float | Tensor":
    """Return the largest utility any of ``weights`` loses by having ``points`` instead of the set ``ref``.

    Args:
        points: Array (n, m); a tensor may have batch dimensions (..., n, m).
        ref: Reference set (r, m), for example the exact front.
        weights: Preferences (k, m), non-negative; not rescaled. Default: :func:`default_weights`.
        maximize: True, False, or one bool per objective.
        utility: As in :func:`expected_utility`.

    Returns:
        The loss: float, or tensor (...). Negative if ``points`` beats ``ref`` for every weight; ``inf`` if
        ``points`` is empty.

    Raises:
        ValueError: If the widths differ, ``ref`` is empty, a weight is negative or a value is NaN.

    Examples:
        >>> maximum_utility_loss([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
        1.0
    """
    ours, theirs = as_points(points), as_points(ref, name="ref")
    same_width(ours, theirs, "points", "ref")
    if theirs.shape[-2] == 0:
        raise MooptError(f"ref is empty, shape {tuple(theirs.shape)}: the loss is not defined")
    ours, theirs = together(as_points(ours, maximize), as_points(theirs, maximize))
    prefs = _preferences(weights, ours)
    if ours.shape[-2] == 0:
        return scalar(-_best(ours, prefs, utility).mean(axis=-1))
    loss = difference(_best(theirs, prefs, utility), _best(ours, prefs, utility))
    return scalar(namespace(loss).amax(loss, axis=-1))


def _preferences(weights: Points | None, points: Any) -> Any:
    m = points.shape[-1]
    array: Any = default_weights(m) if weights is None else as_array(weights, "weights")
    if array.ndim != 2 or len(array) == 0:
        raise MooptError(f"weights must have shape (k, {m}) with k >= 1, got {tuple(array.shape)}")
    same_width(points, array, "points", "weights")
    if not bool(((array >= 0) & (array < np.inf)).all()):
        raise MooptError("weights must be finite and not negative")
    if is_tensor(array) and not is_tensor(points):
        return array.detach().cpu().numpy().astype(np.float64)
    return array.to(points) if is_tensor(array) else like(array, points)


def _best(points: Any, prefs: Any, utility: Utility) -> Any:
    """Return the largest utility for each preference: (..., k)."""
    xp = namespace(points)
    if points.shape[-2] == 0:
        shape = (*points.shape[:-2], len(prefs))
        return points.new_full(shape, -np.inf) if is_tensor(points) else np.full(shape, -np.inf)
    if utility is linear and bool(xp.isfinite(points).all()):
        # One matrix product instead of a (k, n, m) array.
        return xp.amax(points @ prefs.T, axis=-2)
    return xp.amax(utility(points[..., None, :, :], prefs[:, None, :]), axis=-1)
