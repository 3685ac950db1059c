"""Quality indicators of a set of points: arrays in, a float out (a tensor in, a tensor out).

All functions take the points first and positionally, and ``maximize`` by keyword. NaN raises. Duplicated rows
never change a value.

References:
    Zitzler, Thiele, Laumanns, Fonseca, Grunert da Fonseca. Performance assessment of multiobjective
        optimizers. IEEE Transactions on Evolutionary Computation 7(2), 2003 (hypervolume, epsilon).
    Ishibuchi, Masuda, Tanigaki, Nojima. Modified distance calculation in generational distance and inverted
        generational distance. EMO 2015 (IGD+).
    Xu et al. Prediction-guided multi-objective reinforcement learning for continuous robot control. ICML 2020
        (sparsity).
"""

from typing import TYPE_CHECKING, Any, cast, overload

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
    namespace,
    same_width,
    scalar,
    signs,
    together,
)
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from torch import Tensor

_MOOCORE_MAX_OBJECTIVES = 31
_CHUNK_ELEMENTS = 2_000_000


@overload
def hypervolume(points: "Tensor", /, ref: Points, *, maximize: Maximize = True) -> "Tensor": ...
@overload
def hypervolume(points: ArrayLike, /, ref: ArrayLike, *, maximize: Maximize = True) -> float: ...
def hypervolume(points: Points, /, ref: Points, *, maximize: Maximize = True) -> "float | Tensor":
    """Return the volume dominated by ``points`` and bounded by ``ref``.

    Points that are not strictly better than ``ref`` in every objective add nothing, and so do dominated and
    repeated points; an empty set has volume 0.

    Args:
        points: Array (n, m); a tensor may have batch dimensions (..., n, m).
        ref: Reference point (m,) in the same orientation as ``points``, or one number for all objectives.
        maximize: True, False, or one bool per objective.

    Returns:
        The volume: float, or tensor (...).

    Raises:
        ValueError: If the widths differ or a value is NaN.

    Examples:
        >>> hypervolume([[5, 5], [4, 6], [2, 7], [7, 4]], [0, 0])
        39.0
        >>> hypervolume([[1, 2], [2, 1]], [3, 3], maximize=False)
        3.0
    """
    from moopt.kernels import hypervolume as kernel

    array, corner = as_points(points), as_array(ref, "ref")
    signs(maximize, array.shape[-1])
    if corner.ndim:
        same_width(array, corner, "points", "ref")
    volume: Any = kernel(array, corner, maximize=maximize)
    return cast("Tensor", volume.reshape(array.shape[:-2])) if is_tensor(volume) else float(volume)


@overload
def igd(points: "Tensor", /, ref: Points, *, maximize: Maximize = True, p: float = 1.0) -> "Tensor": ...
@overload
def igd(points: ArrayLike, /, ref: ArrayLike, *, maximize: Maximize = True, p: float = 1.0) -> float: ...
def igd(points: Points, /, ref: Points, *, maximize: Maximize = True, p: float = 1.0) -> "float | Tensor":
    """Return the inverted generational distance: the mean distance from ``ref`` points to the nearest point.

    Not Pareto compliant: a dominated point can lower it. Prefer :func:`igd_plus` for ranking sets.

    Args:
        points: Array (n, m); a tensor may have batch dimensions (..., n, m).
        ref: Reference set (r, m), or tensor (..., r, m).
        maximize: Accepted for symmetry with the other indicators; the distance has no direction.
        p: The distances d are averaged as ``(mean d^p)^(1/p)``.

    Returns:
        The distance: float, or tensor (...). ``inf`` if ``points`` is empty.

    Raises:
        ValueError: If the widths differ, ``ref`` is empty, ``p`` is not positive or a value is NaN.

    Examples:
        >>> igd([[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
        0.3333333333333333
    """
    return _distance(points, ref, maximize, p, plus=False)


@overload
def igd_plus(points: "Tensor", /, ref: Points, *, maximize: Maximize = True, p: float = 1.0) -> "Tensor": ...
@overload
def igd_plus(points: ArrayLike, /, ref: ArrayLike, *, maximize: Maximize = True, p: float = 1.0) -> float: ...
def igd_plus(points: Points, /, ref: Points, *, maximize: Maximize = True, p: float = 1.0) -> "float | Tensor":
    """Return IGD+: as :func:`igd`, but a point is only charged for the objectives in which it is worse.

    Weakly Pareto compliant: 0 exactly if every reference point is weakly dominated.

    Args:
        points: Array (n, m); a tensor may have batch dimensions (..., n, m).
        ref: Reference set (r, m), or tensor (..., r, m).
        maximize: True, False, or one bool per objective.
        p: The distances d are averaged as ``(mean d^p)^(1/p)``.

    Returns:
        The distance: float, or tensor (...). ``inf`` if ``points`` is empty.

    Raises:
        ValueError: If the widths differ, ``ref`` is empty, ``p`` is not positive or a value is NaN.

    Examples:
        >>> igd_plus([[3.0, 3.0]], [[1.0, 2.0], [3.0, 5.0]])
        1.0
    """
    return _distance(points, ref, maximize, p, plus=True)


@overload
def epsilon_additive(points: "Tensor", /, ref: Points, *, maximize: Maximize = True) -> "Tensor": ...
@overload
def epsilon_additive(points: ArrayLike, /, ref: ArrayLike, *, maximize: Maximize = True) -> float: ...
def epsilon_additive(points: Points, /, ref: Points, *, maximize: Maximize = True) -> "float | Tensor":
    """Return the smallest shift of all ``points`` after which every ``ref`` point is weakly dominated.

    Negative if ``points`` is better than ``ref`` by a margin everywhere.

    Args:
        points: Array (n, m); a tensor may have batch dimensions (..., n, m).
        ref: Reference set (r, m), or tensor (..., r, m).
        maximize: True, False, or one bool per objective.

    Returns:
        The shift: float, or tensor (...). ``inf`` if ``points`` is empty.

    Raises:
        ValueError: If the widths differ, ``ref`` is empty or a value is NaN.

    Examples:
        >>> epsilon_additive([[1, 3], [3, 1]], [[2, 3], [3, 2]])
        1.0
    """
    ours, theirs = _pair(points, ref, maximize)
    if ours.shape[-2] == 0:
        return _nothing(ours)
    return _worst_of_best(ours, theirs, difference)


@overload
def epsilon_multiplicative(points: "Tensor", /, ref: Points, *, maximize: Maximize = True) -> "Tensor": ...
@overload
def epsilon_multiplicative(points: ArrayLike, /, ref: ArrayLike, *, maximize: Maximize = True) -> float: ...
def epsilon_multiplicative(points: Points, /, ref: Points, *, maximize: Maximize = True) -> "float | Tensor":
    """Return the smallest factor by which all ``points`` must improve to weakly dominate every ``ref`` point.

    Args:
        points: Array (n, m) of positive numbers; a tensor may have batch dimensions (..., n, m).
        ref: Reference set (r, m) of positive numbers, or tensor (..., r, m).
        maximize: True, False, or one bool per objective: a maximised objective is multiplied by the factor, a
            minimised one divided.

    Returns:
        The factor: float, or tensor (...). ``inf`` if ``points`` is empty; below 1 if ``points`` is better
        throughout.

    Raises:
        ValueError: If a value is not positive, the widths differ, ``ref`` is empty or a value is NaN.

    Examples:
        >>> epsilon_multiplicative([[1, 4]], [[2, 4]])
        2.0
    """
    sign = signs(maximize, as_points(points).shape[-1])
    ours, theirs = _pair(points, ref, True)
    for name, values in (("points", ours), ("ref", theirs)):
        if not bool((values > 0).all()):
            raise MooptError(f"epsilon_multiplicative needs strictly positive {name}; use epsilon_additive instead")
    if ours.shape[-2] == 0:
        return _nothing(ours)

    def ratio(b: Any, a: Any) -> Any:
        xp = namespace(a)
        up = xp.asarray(sign > 0)
        high, low = xp.where(up, b, a), xp.where(up, a, b)
        same = high == low
        one = xp.ones_like(high)
        return xp.where(same, one, high) / xp.where(same, one, low)

    return _worst_of_best(ours, theirs, ratio)


def sparsity(points: ArrayLike, /, *, maximize: Maximize = True) -> float:
    """Return the sparsity of a front, as PGMORL defines it: ``1/(n-1) * sum_k sum_i (gap_ki)^2``.

    Every objective is sorted on its own and the squares of the gaps between neighbours are summed. Dominated
    and repeated rows are dropped first.

    Warning:
        Smaller is called better, but a front of one point has sparsity 0, a better and wider front can have a
        larger value, and the unit is the square of the rewards'. Report it if you must; never rank methods by
        it.

    Args:
        points: Array (n, m).
        maximize: True, False, or one bool per objective.

    Returns:
        The sparsity; 0 for fewer than two points, ``inf`` if a gap is infinite.

    Raises:
        ValueError: If the shape is wrong or a value is NaN.

    Examples:
        >>> sparsity([[0.0, 4.0], [1.0, 2.0], [3.0, 0.0]])
        6.5
    """
    from moopt.kernels import is_non_dominated

    front = _numpy(as_points(points, maximize))
    front = front[is_non_dominated(front)] if len(front) else front
    if len(front) < 2:
        return 0.0
    ordered = np.sort(front, axis=0)
    gaps = difference(ordered[1:], ordered[:-1])
    return float((gaps**2).sum() / (len(front) - 1))


def _numpy(array: Any) -> FloatArray:
    if is_tensor(array):
        return cast("FloatArray", array.detach().cpu().double().numpy())
    return cast("FloatArray", array)


def _pair(points: Points, ref: Points, maximize: Maximize) -> tuple[Any, Any]:
    """Return both sets as larger-is-better arrays of one kind, checked against each other."""
    ours, theirs = as_points(points), as_points(ref, name="ref")
    same_width(ours, theirs, "points", "ref")
    if theirs.shape[-2] == 0:
        raise MooptError(f"ref is empty, shape {tuple(theirs.shape)}: the indicator is not defined")
    ours, theirs = as_points(ours, maximize), as_points(theirs, maximize)
    return together(ours, theirs)


def _nothing(ours: Any) -> "float | Tensor":
    """Return the value of a distance-like indicator of the empty set."""
    return scalar(ours.new_full(ours.shape[:-2], np.inf) if is_tensor(ours) else np.inf)


def _distance(points: Points, ref: Points, maximize: Maximize, p: float, *, plus: bool) -> "float | Tensor":
    ours, theirs = _pair(points, ref, maximize)
    if not p > 0:
        raise MooptError(f"p must be positive, got {p!r}")
    if ours.shape[-2] == 0:
        return _nothing(ours)
    if p == 1 and _moocore_can(ours, theirs):
        import moocore

        measure = moocore.igd_plus if plus else moocore.igd
        return float(measure(ours, ref=theirs, maximise=True))

    def length(b: Any, a: Any) -> Any:
        gap = difference(b, a)
        return _norm(gap.clip(min=0) if plus else gap)

    nearest = _nearest(ours, theirs, length)
    return scalar(nearest.mean(axis=-1) if p == 1 else (nearest**p).mean(axis=-1) ** (1 / p))


def _moocore_can(ours: Any, theirs: Any) -> bool:
    if is_tensor(ours) or ours.shape[-1] > _MOOCORE_MAX_OBJECTIVES:
        return False
    return bool(np.isfinite(ours).all() and np.isfinite(theirs).all())


def _norm(gap: Any) -> Any:
    """Return the Euclidean length over the last axis, with gradient 0 instead of NaN at length 0."""
    squared = (gap**2).sum(axis=-1)
    if not is_tensor(squared):
        return np.sqrt(squared)
    zero = squared == 0
    return squared.where(~zero, 1.0).sqrt().where(~zero, 0.0)


def _nearest(ours: Any, theirs: Any, length: Any) -> Any:
    """Return, for each reference point, the smallest ``length(ref, point)``: shape (..., r)."""
    xp = namespace(ours)
    if is_tensor(ours):
        return xp.amin(length(theirs[..., :, None, :], ours[..., None, :, :]), axis=-1)
    rows = max(1, _CHUNK_ELEMENTS // ours.size)
    parts = [
        np.amin(length(theirs[i : i + rows, None, :], ours[None, :, :]), axis=-1) for i in range(0, len(theirs), rows)
    ]
    return np.concatenate(parts)


def _worst_of_best(ours: Any, theirs: Any, cost: Any) -> "float | Tensor":
    """Return ``max over ref of min over points of max over objectives`` of ``cost(ref, point)``."""
    xp = namespace(ours)
    return scalar(xp.amax(_nearest(ours, theirs, lambda b, a: xp.amax(cost(b, a), axis=-1)), axis=-1))
