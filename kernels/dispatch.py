"""One entry point per kernel."""

from collections.abc import Sequence
from typing import Any

import moocore
import numpy as np
from numpy.typing import ArrayLike, NDArray

Maximize = bool | Sequence[bool]


def _minimize(Y: ArrayLike, maximize: Maximize) -> NDArray[np.float64]:
    points = np.array(Y, dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"Y must be 2-D (n, d), got shape {points.shape}")
    if np.isnan(points).any():
        raise ValueError("Y contains NaN")
    return points * np.where(np.broadcast_to(maximize, points.shape[1:]), -1.0, 1.0)


def hypervolume(Y: ArrayLike, ref: ArrayLike, *, maximize: Maximize = True, **_: Any) -> float:
    """Return the hypervolume of ``Y`` (n, d) above the reference point ``ref`` (d,)."""
    points = _minimize(Y, maximize)
    ref_min = _minimize(np.broadcast_to(np.asarray(ref, dtype=np.float64), (1, points.shape[1])), maximize)[0]
    inside = (points < ref_min).all(axis=1)
    if not inside.any():
        return 0.0
    return float(moocore.hypervolume(points[inside], ref=ref_min))


def is_non_dominated(Y: ArrayLike, *, maximize: Maximize = True, keep_duplicates: bool = False) -> NDArray[np.bool_]:
    """Return the mask (n,) of rows of ``Y`` (n, d) that no other row dominates; of equal rows the first stays."""
    points = _minimize(Y, maximize)
    if len(points) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(moocore.is_nondominated(points, keep_weakly=keep_duplicates), dtype=bool)


def non_dominated_rank(Y: ArrayLike, *, maximize: Maximize = True) -> NDArray[np.int64]:
    """Return the non-domination rank (n,) of each row of ``Y`` (n, d); 0 is the front."""
    points = _minimize(Y, maximize)
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(moocore.pareto_rank(points), dtype=np.int64)


def crowding_distance(Y: ArrayLike, *, maximize: Maximize = True) -> NDArray[np.float64]:
    """Return NSGA-II's crowding distance (n,) of ``Y`` (n, d), taken as one front; a constant objective adds 0."""
    points = _minimize(Y, maximize)
    n, d = points.shape
    distance = np.zeros(n)
    for k in range(d):
        order = np.argsort(points[:, k], kind="stable")
        values = points[order, k]
        span = values[-1] - values[0] if n else 0.0
        if span > 0:
            distance[order[1:-1]] += (values[2:] - values[:-2]) / span
            distance[order[[0, -1]]] = np.inf
    return distance
