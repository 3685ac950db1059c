"""Which points of a front stand out: knees, and the points some weighted sum would choose.

References:
    Das. On characterizing the "knee" of the Pareto curve based on normal-boundary intersection. Structural
        Optimization 18, 1999.
    Roijers, Vamplew, Whiteson, Dazeley. A survey of multi-objective sequential decision-making. JAIR 48, 2013
        (convex coverage set).
    Clarkson. More output-sensitive geometric algorithms. FOCS 1994.
"""

from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moopt.pareto.arrays import FloatArray, Maximize, as_points
from moopt.runs.errors import MooptError

_TOLERANCE = 1e-9


def knee_points(points: ArrayLike, /, n: int = 1, *, maximize: Maximize = True) -> NDArray[np.int64]:
    """Return the rows that bulge most beyond the plane through the extremes of the front.

    Objectives are scaled to [0, 1] over the non-dominated points; the bulge of a point is its sum minus 1. A
    straight or hollow front has no knee.

    Args:
        points: Array (n, m) of finite values.
        n: Largest number of rows returned.
        maximize: True, False, or one bool per objective.

    Returns:
        Row numbers (<= n,), the strongest knee first, ties by row. Empty if there is no knee; a front of one
        point is its own knee.

    Raises:
        ValueError: If ``n`` is not positive, or a value is NaN or infinite.

    Examples:
        >>> knee_points([[0.0, 10.0], [8.0, 8.0], [10.0, 0.0]]).tolist()
        [1]
        >>> knee_points([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]).tolist()
        []
    """
    if n < 1:
        raise MooptError(f"n must be positive, got {n!r}")
    array, rows = _finite_front(points, maximize)
    if len(rows) <= 1:
        return rows
    front = array[rows]
    low = front.min(axis=0)
    span = front.max(axis=0) - low
    moving = span > 0
    scaled = (front[:, moving] - low[moving]) / span[moving]
    bulge = scaled.sum(axis=1) - 1.0
    order = np.argsort(-bulge, kind="stable")[:n]
    return cast("NDArray[np.int64]", rows[order[bulge[order] > _TOLERANCE]])


def convex_filter(points: ArrayLike, /, *, maximize: Maximize = True) -> NDArray[np.bool_]:
    """Return the mask of the convex coverage set: points that are the only best choice for some weighted sum.

    Points on a segment or face between others are left out (weighted sums need only the ends), as are
    dominated rows; of equal rows the first stays. Straight, flat and repeated inputs are fine: no hull is
    built, a linear program decides.

    Args:
        points: Array (n, m) of finite values.
        maximize: True, False, or one bool per objective.

    Returns:
        Mask (n,).

    Raises:
        ValueError: If a value is NaN or infinite.

    Examples:
        >>> convex_filter([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]).tolist()
        [True, False, True]
    """
    array, rows = _finite_front(points, maximize)
    keep = np.zeros(len(array), dtype=bool)
    if len(rows) == 0:
        return keep
    front = array[rows]
    span = front.max(axis=0) - front.min(axis=0)
    front = (front - front.min(axis=0)) / np.where(span > 0, span, 1.0)
    vertices = _chain(front) if front.shape[1] == 2 else _vertices(front)
    keep[rows[vertices]] = True
    return keep


def _finite_front(points: ArrayLike, maximize: Maximize) -> tuple[FloatArray, NDArray[np.int64]]:
    from moopt.kernels import is_non_dominated

    array = cast("FloatArray", as_points(points, maximize))
    if not np.isfinite(array).all():
        raise MooptError("points contains infinite values")
    if len(array) == 0:
        return array, np.zeros(0, dtype=np.int64)
    return array, np.flatnonzero(is_non_dominated(array))


def _chain(front: FloatArray) -> list[int]:
    """Return the upper hull of a two-objective front by one sweep."""
    hull: list[int] = []
    for i in np.argsort(front[:, 0]):
        while len(hull) >= 2:
            a, b = front[hull[-2]], front[hull[-1]]
            turn = (b[0] - a[0]) * (front[i, 1] - a[1]) - (b[1] - a[1]) * (front[i, 0] - a[0])
            if turn < -_TOLERANCE * 1e-3:
                break
            hull.pop()
        hull.append(int(i))
    return hull


def _vertices(front: FloatArray) -> list[int]:
    """Return the hull vertices, any dimension: a point is tested only against the vertices found so far."""
    found: list[int] = []
    for i in range(len(front)):
        while i not in found:
            weights, gain = _separate(front[i], front[found])
            if gain <= _TOLERANCE:
                break
            found.append(_first_best(front, weights, found))
    return sorted(found)


def _first_best(front: FloatArray, weights: FloatArray, found: list[int]) -> int:
    """Return the best row for ``weights``; among ties the lexicographically largest, which is a vertex."""
    utility = front @ weights
    utility[found] = -np.inf
    tied = np.flatnonzero(utility >= utility.max() - 1e-13)
    return int(tied[np.lexsort(-front[tied].T[::-1])[0]])


def _separate(point: FloatArray, others: FloatArray) -> tuple[FloatArray, float]:
    """Return weights for which ``point`` beats all ``others`` by the widest margin, and that margin."""
    from scipy.optimize import linprog

    m = len(point)
    if len(others) == 0:
        return np.full(m, 1.0 / m), np.inf
    # Variables: the weights and the margin t; maximise t subject to w.(point - other) >= t.
    result = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.column_stack([others - point, np.ones(len(others))]),
        b_ub=np.zeros(len(others)),
        A_eq=np.append(np.ones(m), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * m + [(None, None)],
        method="highs",
    )
    return np.asarray(result.x[:m]), float(result.x[m])
