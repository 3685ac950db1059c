"""Dominance: non-dominated filter, ranks and crowding distance, NumPy or torch, batched."""

from typing import Any

import numpy as np

from moopt.kernels import reference_engine
from moopt.kernels.inputs import Batch, FloatArray, IntArray, Maximize, NanPolicy, Points, is_tensor, read_points


def is_non_dominated(
    Y: Points,
    *,
    maximize: Maximize = True,
    keep_duplicates: bool = False,
    mask: Any = None,
    nan_policy: NanPolicy = "raise",
) -> Any:
    """Return which points no other point of their front dominates.

    Point a dominates b when a is no worse in every objective and better in one.

    Args:
        Y: Fronts (..., n, d), NumPy or torch, or a list of fronts (n_i, d).
        maximize: One direction for all objectives, or one bool per objective.
        keep_duplicates: Keep every copy of a non-dominated point; by default the first (lowest index) stays.
        mask: Booleans (..., n): rows that count. Others come out False.
        nan_policy: ``"raise"``, or ``"omit"``: rows with NaN come out False and dominate nothing.

    Returns:
        Booleans (..., n) of the array type of ``Y``.

    Raises:
        ValueError: On wrong shapes, or NaN under ``"raise"``.

    Example:
        >>> is_non_dominated([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]]).tolist()
        [True, True, False]
    """
    if is_tensor(Y) and Y.device.type != "cpu":  # type: ignore[union-attr]
        return _non_dominated_on_device(Y, maximize, keep_duplicates, mask, nan_policy)
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    keep = np.zeros(batch.values.shape[:2], dtype=np.bool_)
    for b in range(len(keep)):
        points, rows = batch.compact(b)
        keep[b, slice(None) if rows is None else rows] = reference_engine.non_dominated_one(points, keep_duplicates)
    return batch.restore(keep, (keep.shape[1],))


def _non_dominated_on_device(Y: Any, maximize: Maximize, keep_duplicates: bool, mask: Any, nan_policy: str) -> Any:
    import torch

    from moopt.kernels import torch_engine
    from moopt.kernels.device import read_tensor

    points, present = read_tensor(Y, maximize, mask=mask, nan_policy=nan_policy)
    if present is None:
        present = torch.ones(points.shape[:-1], dtype=torch.bool, device=points.device)
    return torch_engine.non_dominated(points, keep_duplicates=keep_duplicates, present=present)


def non_dominated_rank(
    Y: Points, *, maximize: Maximize = True, mask: Any = None, nan_policy: NanPolicy = "raise"
) -> Any:
    """Return each point's non-domination rank: 0 is the front, 1 the front once that is removed, and so on.

    Equal points share a rank. Arguments as in ``is_non_dominated``; absent rows get -1.

    Returns:
        Integers (..., n) of the array type of ``Y``.

    Raises:
        ValueError: On wrong shapes, or NaN under ``"raise"``.

    Example:
        >>> non_dominated_rank([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]]).tolist()
        [0, 0, 1]
    """
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    ranks = np.full(batch.values.shape[:2], -1, dtype=np.int64)
    for b in range(len(ranks)):
        points, rows = batch.compact(b)
        ranks[b, slice(None) if rows is None else rows] = reference_engine.rank_one(points)
    return batch.restore(ranks, (ranks.shape[1],))


def crowding_distance(
    Y: Points,
    ranks: Any = None,
    *,
    maximize: Maximize = True,
    mask: Any = None,
    nan_policy: NanPolicy = "raise",
) -> Any:
    """Return NSGA-II's crowding distance within each front (Deb, Pratap, Agarwal and Meyarivan, 2002).

    The distance of a point is the sum, over objectives, of the gap between its two neighbours divided by the
    front's range. Points at the end of an objective get ``inf``; an objective in which all points are equal adds 0.

    Args:
        Y: Points (..., n, d), NumPy or torch.
        ranks: Integers (..., n) that split the points into fronts, as ``non_dominated_rank`` gives them;
            one front by default.
        maximize: Accepted so that all kernels read alike; the distance does not depend on it.
        mask: Booleans (..., n): rows that count. Others come out 0.
        nan_policy: ``"raise"``, or ``"omit"``: rows with NaN come out 0.

    Returns:
        Distances (..., n) of the array type of ``Y``.

    Raises:
        ValueError: On wrong shapes, or NaN under ``"raise"``.

    Example:
        >>> crowding_distance([[0.0, 4.0], [1.0, 2.0], [4.0, 0.0]]).tolist()
        [inf, 2.0, inf]
    """
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    distances = np.zeros(batch.values.shape[:2])
    groups = _read_ranks(ranks, batch)
    for b in range(len(distances)):
        points, rows = batch.compact(b)
        rows = np.arange(len(points)) if rows is None else rows
        labels = groups[b, rows]
        for label in np.unique(labels):
            chosen = labels == label
            distances[b, rows[chosen]] = _crowding_one(points[chosen])
    return batch.restore(distances, (distances.shape[1],))


def _read_ranks(ranks: Any, batch: Batch) -> IntArray:
    shape = batch.values.shape[:2]
    if ranks is None:
        return np.zeros(shape, dtype=np.int64)
    array = np.asarray(ranks.detach().cpu().numpy() if is_tensor(ranks) else ranks)
    if array.dtype.kind not in "iu" or array.shape != (*batch.shape, shape[1]):
        raise ValueError(
            f"ranks must be integers of shape {(*batch.shape, shape[1])}, got {array.dtype} of shape {array.shape}"
        )
    return array.reshape(shape).astype(np.int64)


def _crowding_one(points: FloatArray) -> FloatArray:
    n, d = points.shape
    distance = np.zeros(n)
    for k in range(d):
        order = np.argsort(points[:, k], kind="stable")
        values = points[order, k]
        if n == 0 or values[0] == values[-1]:
            continue
        with np.errstate(over="ignore"):
            span = values[-1] - values[0]
        if n > 2:
            distance[order[1:-1]] += _relative_gaps(values, float(span))
        distance[order[[0, -1]]] = np.inf
    return distance


def _relative_gaps(values: FloatArray, span: float) -> FloatArray:
    """Return neighbour gaps over the span; equal infinite neighbours are 0 apart, finite gaps vanish in an infinite span."""
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.where(values[2:] == values[:-2], 0.0, values[2:] - values[:-2])
        if np.isinf(span):
            return np.where(np.isinf(gaps), np.inf, 0.0)
        return np.asarray(gaps / span)
