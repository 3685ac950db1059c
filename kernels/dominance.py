"""Dominance: non-dominated filter, ranks and crowding distance, NumPy or torch, batched."""

from typing import Any

import numpy as np

from moopt.kernels import numba_engine, reference_engine
from moopt.kernels.inputs import (
    Batch,
    BoolArray,
    FloatArray,
    IntArray,
    Maximize,
    NanPolicy,
    Points,
    is_plain,
    is_tensor,
    read_points,
    sum_of_squares,
)
from moopt.kernels.jit import STORE

SMALL = 48
"""Fronts up to this size are compared pair by pair in one compiled loop."""

BATCH_PAIRWISE = 300
"""Fronts up to this size, in a batch, are filtered by the compiled kernel rather than one by one in moocore."""

SMALL_SAVING = 4e-6
"""Seconds a compiled loop saves on a small front: moocore's call."""


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
    if mask is None and is_plain(Y, maximize) and Y.shape[1] <= reference_engine.MOOCORE_MAX_DIM:
        quick = _filter_quick(Y, bool(maximize), keep_duplicates)
        if quick is not None:
            return quick
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    B, n, _ = batch.values.shape
    if B > 1 and n <= BATCH_PAIRWISE and STORE.ready("rank_batch", B * SMALL_SAVING):
        keep = numba_engine.ranks(batch.values, batch.present, 1, keep_duplicates) == 0
        return batch.restore(keep, (n,))
    keep = np.zeros((B, n), dtype=np.bool_)
    for b in range(B):
        points, rows = batch.compact(b)
        keep[b, slice(None) if rows is None else rows] = reference_engine.non_dominated_one(points, keep_duplicates)
    return batch.restore(keep, (n,))


def _filter_quick(Y: FloatArray, maximize: bool, keep_duplicates: bool) -> BoolArray | None:
    """Serve one plain front with little overhead; None when it holds NaN."""
    n, d = Y.shape
    if n <= SMALL and STORE.ready("dominance_small", SMALL_SAVING):
        ranks = np.empty(n, dtype=np.int64)
        served = STORE.loaded["dominance_small"](Y, maximize, keep_duplicates, False, ranks)
        return ranks == 0 if served else None
    if np.isnan(sum_of_squares(Y)):
        return None
    if d == 2 and n > SMALL and STORE.ready("filter2", 3e-8 * n):
        values = np.negative(Y) if maximize else Y
        keep = np.zeros(n, dtype=np.bool_)
        STORE.loaded["filter2"](values, np.argsort(values[:, 0]), keep_duplicates, keep)
        return keep
    import moocore

    return np.asarray(moocore.is_nondominated(Y, maximise=maximize, keep_weakly=keep_duplicates), dtype=np.bool_)


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
    if mask is None and is_plain(Y, maximize) and Y.shape[1] <= reference_engine.MOOCORE_MAX_DIM:
        quick = _rank_quick(Y, bool(maximize))
        if quick is not None:
            return quick
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    B, n, _ = batch.values.shape
    if B > 1 and n <= BATCH_PAIRWISE and STORE.ready("rank_batch", B * SMALL_SAVING):
        return batch.restore(numba_engine.ranks(batch.values, batch.present, n, True), (n,))
    ranks = np.full((B, n), -1, dtype=np.int64)
    for b in range(B):
        points, rows = batch.compact(b)
        ranks[b, slice(None) if rows is None else rows] = reference_engine.rank_one(points)
    return batch.restore(ranks, (n,))


def _rank_quick(Y: FloatArray, maximize: bool) -> IntArray | None:
    """Serve one plain front with little overhead; None when it holds NaN."""
    n = len(Y)
    if n <= SMALL and STORE.ready("dominance_small", SMALL_SAVING):
        ranks = np.empty(n, dtype=np.int64)
        return ranks if STORE.loaded["dominance_small"](Y, maximize, True, True, ranks) else None
    if np.isnan(sum_of_squares(Y)):
        return None
    import moocore

    return np.asarray(moocore.pareto_rank(Y, maximise=maximize), dtype=np.int64)


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
    return batch.restore(distances, distances.shape[1:])


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
    """Return neighbour gaps over the span; equal infinite neighbours are 0 apart, finite gaps vanish beside them."""
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.where(values[2:] == values[:-2], 0.0, values[2:] - values[:-2])
        if np.isinf(span):
            return np.where(np.isinf(gaps), np.inf, 0.0)
        return np.asarray(gaps / span)
