"""Disjoint boxes that tile the dominated or the non-dominated region of a front.

Lacour, Klamroth and Fonseca, "A box decomposition algorithm to compute the hypervolume indicator", Computers and
Operations Research 79 (2017): points enter one by one; each splits the local upper bounds above it.
"""

from typing import Any

import numpy as np

from moopt.kernels import reference_engine, table
from moopt.kernels.inputs import FloatArray, Maximize, Points, check_choice, read_points, read_ref
from moopt.kernels.jit import STORE

# Seconds of the NumPy decomposition over front sizes, to weigh against loading the compiled one.
_NUMPY_SECONDS = {2: 6e-5, 3: 1e-4, 4: 2e-4}


def box_decomposition(
    front: Points,
    ref: Any,
    *,
    kind: str = "nondominated",
    maximize: Maximize = True,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Tile the region that a front dominates, or leaves open, with disjoint boxes.

    Args:
        front: Fronts (..., n, d), NumPy or torch, d >= 1. Dominated, duplicate and outside points are ignored.
        ref: Reference points in the orientation of ``front``: a scalar, (d,), or broadcastable to (..., d).
        kind: ``"nondominated"``: what is better than ``ref`` and not dominated (boxes reach to infinity), as
            expected-hypervolume-improvement needs it; ``"dominated"``: what the front dominates, bounded by ``ref``.
        maximize: One direction for all objectives, or one bool per objective.
        mask: Booleans (..., n): rows that count.
        backend: ``"auto"``, ``"numba"`` or ``"numpy"``.

    Returns:
        Corners (2, ..., cells, d), lower then upper in the caller's orientation, of the array type of ``front``.
        In a batch, fronts with fewer cells are padded with empty ones at the reference point. An empty front has
        no dominated cell and one non-dominated cell.

    Raises:
        ValueError: On wrong shapes, or NaN.

    Example:
        >>> lower, upper = box_decomposition([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0], kind="dominated")
        >>> float((upper - lower).prod(-1).sum())
        3.0
    """
    check_choice("kind", kind, ("nondominated", "dominated"))
    check_choice("backend", backend, ("auto", "numba", "numpy"))
    batch = read_points(front, maximize, mask=mask, name="front")
    refs = read_ref(ref, batch)
    cells = []
    for b, values in enumerate(batch.values):
        corner = refs[min(b, len(refs) - 1)]
        cells.append(decompose(values, corner, kind == "dominated", backend))
    most = max((len(lower) for lower, _ in cells), default=0)
    corners = np.empty((2, len(cells), most, batch.dim))
    for b, (lower, upper) in enumerate(cells):
        corners[:, b] = refs[min(b, len(refs) - 1)]
        corners[0, b, : len(lower)] = lower
        corners[1, b, : len(lower)] = upper
    oriented = np.sort(corners * batch.signs, axis=0)
    shaped = oriented.reshape((2, *batch.shape, most, batch.dim))
    if batch.like is None:
        return shaped
    import torch

    return torch.from_numpy(shaped).to(batch.like.dtype if batch.like.dtype.is_floating_point else torch.float64)


def decompose(
    front: FloatArray, ref: FloatArray, dominated: bool, backend: str = "auto"
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper corners (cells, d) for one minimised front."""
    inside = front[(front < ref).all(axis=1)]
    points = inside[reference_engine.non_dominated_one(inside, keep_duplicates=False)]
    points = np.ascontiguousarray(points[np.lexsort(points.T[::-1])])
    n, d = points.shape
    if backend == "numba" or (backend == "auto" and STORE.ready("decompose_boxes", _numpy_seconds(n, d))):
        lower, upper = STORE.get("decompose_boxes")(points, ref, dominated)
        return lower, upper
    return _decompose_numpy(points, ref, dominated)


def _numpy_seconds(n: int, d: int) -> float:
    per_point = _NUMPY_SECONDS.get(max(d, 2), 1e-3 if d > 4 else 1e-4)
    growth = max(1.0, (n / 20.0) ** max(0, d - 3))
    return per_point * n * growth + table.CALL_SECONDS


def _decompose_numpy(points: FloatArray, ref: FloatArray, dominated: bool) -> tuple[FloatArray, FloatArray]:
    bounds, defining = _local_upper_bounds(points, ref)
    if dominated:
        return _boxes_below(bounds, defining, ref)
    far = np.full(len(ref), np.inf)
    lower, upper = _boxes_below(*_local_upper_bounds(-bounds, far), far)
    return -upper, -lower


def _local_upper_bounds(points: FloatArray, ref: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds U (m, d) and their defining points Z (m, d, d): Z[u, k] fixes coordinate k of U[u]."""
    d = len(ref)
    bounds = ref[None].copy()
    defining = np.full((1, d, d), -np.inf)
    defining[0, np.arange(d), np.arange(d)] = ref
    own = np.eye(d, dtype=np.bool_)
    for point in points:
        hit = (point < bounds).all(axis=1)
        above, their = bounds[hit], defining[hit]
        # A child along j stays only if the point is no lower than the other defining points in coordinate j.
        floor = np.where(own, -np.inf, their).max(axis=1)
        parent, axis = np.nonzero(point >= floor)
        children, child_points = above[parent].copy(), their[parent].copy()
        rows = np.arange(len(parent))
        children[rows, axis] = point[axis]
        child_points[rows, axis] = point
        bounds = np.concatenate([bounds[~hit], children])
        defining = np.concatenate([defining[~hit], child_points])
    return bounds, defining


def _boxes_below(bounds: FloatArray, defining: FloatArray, ref: FloatArray) -> tuple[FloatArray, FloatArray]:
    d = len(ref)
    lower, upper = np.empty_like(bounds), bounds.copy()
    lower[:, 0] = defining[:, 0, 0]
    upper[:, 0] = ref[0]
    for j in range(1, d):
        lower[:, j] = defining[:, :j, j].max(axis=1)
    keep = (lower < upper).all(axis=1)
    return lower[keep], upper[keep]
