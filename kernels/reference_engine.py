"""Kernels on moocore and NumPy alone: what runs until compiled kernels pay, and where moocore is the fastest.

All functions minimise and take a batch (B, n, d) with reference points (1 or B, d); absent rows are ``+inf``.
"""

import numpy as np

from moopt.kernels.inputs import BoolArray, FloatArray, IntArray

MOOCORE_MAX_DIM = 31


def hypervolume_one(points: FloatArray, ref: FloatArray) -> float:
    """Return the hypervolume of one front (n, d)."""
    n, d = points.shape
    if n == 0:
        return 0.0
    if d == 1:
        return max(0.0, float(ref[0] - points.min()))
    if d > MOOCORE_MAX_DIM:
        return _hypervolume_by_slices(points, ref)
    import moocore

    return float(moocore.hypervolume(points, ref=ref))


def moocore_hypervolume(points: FloatArray, ref: FloatArray, maximize: bool) -> float:
    """Return moocore's hypervolume of points (n, d) in the caller's orientation, d <= MOOCORE_MAX_DIM."""
    import moocore

    return float(moocore.hypervolume(points, ref=ref, maximise=maximize))


def _hypervolume_by_slices(points: FloatArray, ref: FloatArray) -> float:
    """Slice along the last objective: the sum over points of height times exclusive volume one dimension below."""
    points = points[(points < ref).all(axis=1)]
    if len(points) <= 1:
        return float(np.prod(ref - points[0])) if len(points) else 0.0
    if points.shape[1] <= MOOCORE_MAX_DIM:
        return hypervolume_one(points, ref)
    points = points[np.argsort(points[:, -1], kind="stable")]
    total = 0.0
    for i, point in enumerate(points):
        limited = np.maximum(points[:i, :-1], point[:-1])
        exclusive = float(np.prod(ref[:-1] - point[:-1])) - _hypervolume_by_slices(limited, ref[:-1])
        total += exclusive * float(ref[-1] - point[-1])
    return total


def hypervolume(values: FloatArray, refs: FloatArray) -> FloatArray:
    """Return hypervolumes (B,)."""
    last = len(refs) - 1
    return np.array([hypervolume_one(front, refs[min(b, last)]) for b, front in enumerate(values)], dtype=np.float64)


def hypervolume_and_grad(values: FloatArray, refs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return hypervolumes (B,) and gradients (B, n, d), by sweeping each objective in turn."""
    grads = np.zeros(values.shape)
    last = len(refs) - 1
    for b, front in enumerate(values):
        ref = refs[min(b, last)]
        rows = np.flatnonzero((front < ref).all(axis=1))
        for k in range(front.shape[1]):
            grads[b, rows, k] = -_exclusive_by_sweep(front[rows], ref, k)
    return hypervolume(values, refs), grads


def _exclusive_by_sweep(points: FloatArray, ref: FloatArray, k: int) -> FloatArray:
    """Return each point's exclusive measure among those that come before it in objective ``k``."""
    order = np.argsort(points[:, k], kind="stable")
    if points.shape[1] == 1:
        first = np.zeros(len(points))
        first[order[:1]] = 1.0
        return first
    rest = np.delete(points, k, axis=1)[order]
    rest_ref = np.delete(ref, k)
    measures = [0.0] + [hypervolume_one(rest[: i + 1], rest_ref) for i in range(len(rest))]
    exclusive = np.empty(len(points))
    exclusive[order] = np.maximum(np.diff(measures), 0.0)
    return exclusive


def improvement(candidates: FloatArray, front: FloatArray, ref: FloatArray) -> FloatArray:
    """Return what each candidate (N, d) adds to the front (n, d): its box less what the front covers of it."""
    widths = np.where((candidates < ref).all(axis=1, keepdims=True), ref - candidates, 0.0)
    gains = np.prod(widths, axis=1)
    front = front[(front < ref).all(axis=1)]
    if len(front) == 0:
        return np.asarray(gains)
    for i in np.flatnonzero(gains > 0.0):
        gains[i] -= hypervolume_one(np.maximum(front, candidates[i]), ref)
    return np.asarray(np.maximum(gains, 0.0))


def contributions(points: FloatArray, ref: FloatArray, ignore_dominated: bool) -> FloatArray:
    """Return exclusive contributions (n,) of points strictly inside ``ref``: an antichain if ``ignore_dominated``.

    From four objectives on, and for dominated points, moocore rounds contributions below a fixed threshold to 0,
    whatever the scale of the front; the open part of each point's own box loses nothing.
    """
    d = points.shape[1]
    if ignore_dominated and 2 <= d <= 3:
        import moocore

        return np.asarray(moocore.hv_contributions(points, ref=ref), dtype=np.float64)
    others = ~np.eye(len(points), dtype=np.bool_)
    return np.array([improvement(points[i : i + 1], points[others[i]], ref)[0] for i in range(len(points))])


def non_dominated_one(points: FloatArray, keep_duplicates: bool) -> BoolArray:
    """Return the mask (n,) of the non-dominated rows of one front; of equal rows the first stays."""
    n, d = points.shape
    if n == 0:
        return np.zeros(0, dtype=np.bool_)
    if d == 1:
        best = points[:, 0] == points.min()
        return np.asarray(best if keep_duplicates else np.arange(n) == int(np.argmax(best)))
    if d > MOOCORE_MAX_DIM:
        return _non_dominated_pairwise(points, keep_duplicates)
    import moocore

    return np.asarray(moocore.is_nondominated(points, keep_weakly=keep_duplicates), dtype=np.bool_)


def _non_dominated_pairwise(points: FloatArray, keep_duplicates: bool) -> BoolArray:
    keep = np.ones(len(points), dtype=np.bool_)
    for i, point in enumerate(points):
        no_worse = (points <= point).all(axis=1)
        equal = (points == point).all(axis=1)
        keep[i] = not (no_worse & ~equal).any() and (keep_duplicates or int(np.argmax(equal)) == i)
    return keep


def rank_one(points: FloatArray) -> IntArray:
    """Return the non-domination rank (n,) of each row; 0 is the front, equal rows share a rank."""
    n, d = points.shape
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    if d == 1:
        return np.unique(points[:, 0], return_inverse=True)[1].astype(np.int64)
    if d <= MOOCORE_MAX_DIM:
        import moocore

        return np.asarray(moocore.pareto_rank(points), dtype=np.int64)
    ranks = np.full(n, -1, dtype=np.int64)
    left = np.arange(n)
    level = 0
    while len(left):
        front = _non_dominated_pairwise(points[left], keep_duplicates=True)
        ranks[left[front]] = level
        left = left[~front]
        level += 1
    return ranks
