"""What each point of a front alone accounts for."""

from typing import Any

import numpy as np

from moopt.kernels import numba_engine, reference_engine, table
from moopt.kernels.conditioning import condition, needs_conditioning
from moopt.kernels.inputs import (
    FloatArray,
    Maximize,
    NanPolicy,
    Points,
    check_choice,
    is_plain,
    is_plain_ref,
    read_points,
    read_ref,
)
from moopt.kernels.jit import STORE


def hv_contributions(
    Y: Points,
    ref: Any,
    *,
    maximize: Maximize = True,
    mask: Any = None,
    ignore_dominated: bool = True,
    nan_policy: NanPolicy = "raise",
    backend: str = "auto",
) -> Any:
    """Return the hypervolume each point alone accounts for.

    Args:
        Y: Fronts (..., n, d), NumPy or torch, or a list of fronts (n_i, d).
        ref: Reference points in the orientation of ``Y``: a scalar, (d,), or broadcastable to (..., d).
        maximize: One direction for all objectives, or one bool per objective.
        mask: Booleans (..., n): rows that count; others contribute 0.
        ignore_dominated: Leave dominated points out, as moocore does. With False they still contribute 0 but take
            away from the point that dominates them: ``HV(all) - HV(all but it)``.
        nan_policy: ``"raise"``, or ``"omit"``: rows with NaN do not count.
        backend: ``"auto"``, ``"numba"`` or ``"moocore"``.

    Returns:
        Contributions (..., n) like ``Y``. Duplicates contribute 0.

    Raises:
        ValueError: On wrong shapes, or NaN.

    Example:
        >>> hv_contributions([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0]).tolist()
        [1.0, 1.0]
    """
    if backend == "auto" and mask is None and ignore_dominated and is_plain(Y, maximize):
        quick = _quick(Y, ref, bool(maximize))
        if quick is not None:
            return quick
    check_choice("backend", backend, ("auto", "numba", "moocore"))
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    refs = read_ref(ref, batch)
    values = batch.values
    if needs_conditioning(batch.energy, refs):
        scaled = condition(values, refs)
        if scaled.infinite.any():
            raise ValueError("contributions of a front of infinite hypervolume are undefined; clip points or ref")
        result = scaled.row_volume(_contributions_of(scaled.values, scaled.refs, ignore_dominated, backend))
    else:
        result = _contributions_of(values, refs, ignore_dominated, backend)
    return batch.restore(result, (result.shape[1],))


def _quick(Y: Any, ref: Any, maximize: bool) -> FloatArray | None:
    """Serve one plain front in two or three objectives straight from moocore; None when it needs the full path."""
    if Y.shape[1] > 3 or not is_plain_ref(ref, Y.shape[1]):
        return None
    energy = float(np.vdot(Y, Y)) + float(np.vdot(ref, ref))
    if not table.QUICK_LOW < energy < table.QUICK_HIGH:
        return None
    import moocore

    return np.asarray(moocore.hv_contributions(Y, ref=ref, maximise=maximize))


def _contributions_of(values: FloatArray, refs: FloatArray, ignore_dominated: bool, backend: str) -> FloatArray:
    result = np.zeros(values.shape[:2])
    last = len(refs) - 1
    for b, front in enumerate(values):
        result[b] = contributions_one(front, refs[min(b, last)], ignore_dominated, backend)
    return result


def contributions_one(front: FloatArray, ref: FloatArray, ignore_dominated: bool, backend: str) -> FloatArray:
    """Return exclusive contributions (n,) of the rows of one minimised front."""
    n, d = front.shape
    result = np.zeros(n)
    rows = np.flatnonzero((front < ref).all(axis=1))
    if ignore_dominated and len(rows):
        rows = rows[reference_engine.non_dominated_one(front[rows], keep_duplicates=True)]
    if len(rows) == 0:
        return result
    points = np.ascontiguousarray(front[rows])
    if d == 2 and ignore_dominated:
        result[rows] = _contributions2(points, ref)
    elif d > 2 and _use_numba(d, len(rows), ignore_dominated, backend):
        result[rows] = numba_engine.contributions(points, ref)
    else:
        result[rows] = reference_engine.contributions(points, ref, ignore_dominated)
    return result


def _use_numba(d: int, n: int, ignore_dominated: bool, backend: str) -> bool:
    if backend != "auto":
        return backend == "numba"
    if d == 3 and ignore_dominated:
        return False  # moocore's HVC3D takes n log n
    return STORE.ready("gain_slices", table.contributions_saving(d, n))


def _contributions2(points: FloatArray, ref: FloatArray) -> FloatArray:
    """Return the rectangles between neighbours on the staircase of an antichain with duplicates."""
    order = np.argsort(points[:, 0], kind="stable")
    x, y = points[order, 0], points[order, 1]
    right = np.append(x[1:], ref[0]) - x
    above = np.append(ref[1], y[:-1]) - y
    result = np.empty(len(points))
    result[order] = right * above
    return result
