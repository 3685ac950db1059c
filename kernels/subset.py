"""Choosing k points of a front for their joint hypervolume."""

import heapq
from typing import Any

import numpy as np

from moopt.kernels import reference_engine
from moopt.kernels.conditioning import condition, needs_conditioning
from moopt.kernels.improvement import improvement_one
from moopt.kernels.inputs import FloatArray, IntArray, Maximize, NanPolicy, Points, check_choice, read_points, read_ref


def hv_subset(
    Y: Points,
    k: int,
    ref: Any,
    *,
    maximize: Maximize = True,
    mask: Any = None,
    method: str = "auto",
    nan_policy: NanPolicy = "raise",
) -> Any:
    """Choose k points of a front whose joint hypervolume is large.

    Args:
        Y: One front (n, d), NumPy or torch.
        k: How many points to choose, 0 <= k.
        ref: Reference point in the orientation of ``Y``: a scalar or (d,).
        maximize: One direction for all objectives, or one bool per objective.
        mask: Booleans (n,): rows that may be chosen.
        method: ``"exact"`` (d <= 2, dynamic programming), ``"greedy"`` (at least 1 - 1/e of the best, any d), or
            ``"auto"``: exact for d <= 2, else greedy.
        nan_policy: ``"raise"``, or ``"omit"``: rows with NaN are never chosen.

    Returns:
        Indices (min(k, rows that count),) like ``Y``: in order of choice for greedy, ascending for exact. When
        fewer than k points add volume the rest are filled up in order of index. Ties go to the lowest index.

    Raises:
        ValueError: On wrong shapes, a negative k, NaN, or ``"exact"`` with more than two objectives.

    Example:
        >>> hv_subset([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]], 1, [0.0, 0.0]).tolist()
        [1]
    """
    check_choice("method", method, ("auto", "exact", "greedy"))
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    if batch.shape:
        raise ValueError(f"hv_subset takes one front (n, d), got batch dimensions {batch.shape}")
    if k < 0:
        raise ValueError(f"k must not be negative, got {k}")
    ref_min = read_ref(ref, batch)[0]
    points, rows = batch.compact(0)
    if method == "exact" and batch.dim > 2:
        raise ValueError(f"exact subset selection needs at most 2 objectives, got {batch.dim}; use method='greedy'")
    if needs_conditioning(batch.energy, ref_min):
        scaled = condition(points[None], ref_min[None])
        points, ref_min = scaled.values[0], scaled.refs[0]
    exact = batch.dim <= 2 and method != "greedy"
    chosen = _subset_exact2(points, k, ref_min) if exact else _subset_greedy(points, k, ref_min)
    filled = _fill(chosen, min(k, len(points)), len(points))
    indices = filled if rows is None else rows[filled]
    if batch.like is None:
        return indices
    import torch

    return torch.from_numpy(indices).to(batch.like.device)


def _fill(chosen: list[int], k: int, n: int) -> IntArray:
    taken = set(chosen)
    rest = (i for i in range(n) if i not in taken)
    return np.array(chosen + [next(rest) for _ in range(k - len(chosen))], dtype=np.int64)


def _subset_greedy(points: FloatArray, k: int, ref: FloatArray) -> list[int]:
    """Greedy with lazy updates: gains only shrink as points enter, so an old gain is an upper bound."""
    widths = np.where((points < ref).all(axis=1, keepdims=True), ref - points, 0.0)
    heap = [(-gain, i) for i, gain in enumerate(np.prod(widths, axis=1)) if gain > 0.0]
    heapq.heapify(heap)
    stamp = dict.fromkeys(range(len(points)), 0)
    chosen: list[int] = []
    while heap and len(chosen) < k:
        bound, i = heapq.heappop(heap)
        if stamp[i] == len(chosen):
            if bound == 0.0:
                break
            chosen.append(i)
            continue
        gain = improvement_one(points[i : i + 1], points[chosen], ref, 1.0, "auto", 1)[0]
        stamp[i] = len(chosen)
        heapq.heappush(heap, (-float(gain), i))
    return chosen


def _subset_exact2(points: FloatArray, k: int, ref: FloatArray) -> list[int]:
    """Dynamic programme over the sorted front: best[j] is the most volume with the last chosen point at j."""
    if points.shape[1] == 1:
        points = np.column_stack([points[:, 0], np.full(len(points), -1.0)])
        ref = np.array([ref[0], 0.0])
    rows = np.flatnonzero((points < ref).all(axis=1))
    rows = rows[reference_engine.non_dominated_one(points[rows], keep_duplicates=False)]
    rows = rows[np.argsort(points[rows, 0])]
    x, y = points[rows, 0], points[rows, 1]
    k = min(k, len(rows))
    if k == 0:
        return []
    # Volume right of x[j] below y[i] that j adds when i < j is chosen just before it.
    added = (ref[0] - x)[None, :] * (y[:, None] - y[None, :])
    added[np.tril_indices(len(rows))] = -np.inf
    best = (ref[0] - x) * (ref[1] - y)
    parents = np.zeros((k, len(rows)), dtype=np.int64)
    for level in range(1, k):
        total = best[:, None] + added
        parents[level] = np.argmax(total, axis=0)
        best = np.max(total, axis=0)
    last = int(np.argmax(best))
    chosen = [last]
    for level in range(k - 1, 0, -1):
        chosen.append(int(parents[level, chosen[-1]]))
    return sorted(int(rows[i]) for i in chosen)
