"""Hypervolume and its gradient: one entry point, the engine chosen by device, size, gradient and what is loaded."""

import math
from typing import Any

import numpy as np

from moopt.kernels import numba_engine, reference_engine, table
from moopt.kernels.conditioning import condition, needs_conditioning
from moopt.kernels.errors import HypervolumeBudgetError
from moopt.kernels.inputs import (
    BACKENDS,
    FloatArray,
    IntArray,
    Maximize,
    NanPolicy,
    Points,
    check_choice,
    is_tensor,
    read_points,
    read_ref,
)
from moopt.kernels.jit import STORE

QUICK_SIZE = 64
ESSENTIAL_SECONDS = 1e-3
"""From this predicted time a front on, dominated rows and copies are looked for first."""
_QUICK = {2: "front2", 3: "front3"}


def hypervolume(
    Y: Points,
    ref: Any,
    *,
    maximize: Maximize = True,
    mask: Any = None,
    backend: str = "auto",
    nan_policy: NanPolicy = "raise",
    force: bool = False,
    num_threads: int = 1,
) -> Any:
    """Return the volume dominated by each front and bounded by the reference point, exactly.

    Dominated and duplicate points change nothing; points not strictly better than ``ref`` in every objective add 0;
    an empty front has 0. ``inf`` is the answer for a point infinitely better than ``ref``.

    Args:
        Y: Fronts (..., n, d), NumPy or torch, or a list of fronts (n_i, d). A tensor that requires gradients gives a
            differentiable result (first derivatives only).
        ref: Reference points in the orientation of ``Y``: a scalar, (d,), or broadcastable to (..., d).
        maximize: One direction for all objectives, or one bool per objective.
        mask: Booleans (..., n): rows that count.
        backend: ``"auto"``, ``"numba"``, ``"torch"`` (at most 4 objectives) or ``"moocore"``.
        nan_policy: ``"raise"``, or ``"omit"``: rows with NaN do not count.
        force: Compute even where the predicted time exceeds the work budget.
        num_threads: Threads over the fronts of a batch (compiled kernels only).

    Returns:
        A Python float for one NumPy front; otherwise an array or tensor (...) like ``Y``.

    Raises:
        ValueError: On wrong shapes, or NaN.
        HypervolumeBudgetError: If the predicted time exceeds ``table.BUDGET_SECONDS``; use ``hv_approx``.

    Example:
        >>> hypervolume([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0])
        3.0
    """
    if backend == "auto" and mask is None and type(Y) is np.ndarray and Y.ndim == 2:
        quick = _quick(Y, ref, maximize)
        if quick == quick:
            return quick
    check_choice("backend", backend, BACKENDS)
    if is_tensor(Y) and _stays_torch(Y, ref, backend):
        return _on_tensors(Y, ref, maximize, mask, backend, nan_policy, force, num_threads)
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    refs = read_ref(ref, batch)
    return batch.restore_scalar(volumes(batch.values, refs, batch.energy, backend, force, num_threads))


def _quick(Y: np.ndarray[Any, Any], ref: Any, maximize: Maximize) -> float:
    """Serve one plain float64 front from a loaded kernel; NaN when the full path must look at it."""
    n, d = Y.shape
    if Y.dtype != np.float64 or not Y.flags.carray or (maximize is not True and maximize is not False):
        return math.nan
    if type(ref) is not np.ndarray or ref.dtype != np.float64 or ref.shape != (d,) or not ref.flags.carray:
        return math.nan
    kernel = STORE.loaded.get(_QUICK.get(d, "volume_slices"))
    if kernel is None or n == 0:
        return math.nan
    if n <= QUICK_SIZE and d in _QUICK:
        return float(kernel(Y, ref, maximize))
    return _quick_long(Y, ref, maximize)


def _quick_long(Y: FloatArray, ref: FloatArray, maximize: Maximize) -> float:
    """Serve one larger front, or one of more than three objectives, without the batch machinery."""
    n, d = Y.shape
    energy = float(np.vdot(Y, Y)) + float(np.vdot(ref, ref))
    if d < 2 or not table.QUICK_LOW < energy < table.QUICK_HIGH:
        return math.nan
    if d > 5 and min(table.moocore_seconds(d, n), table.numba_seconds(d, n)) > table.BUDGET_SECONDS:
        return math.nan
    if d > 3 and not table.numba_wins(d, n, alone=True):
        return reference_engine.moocore_hypervolume(Y, ref, bool(maximize))
    if numba_engine.kernel_name(d) not in STORE.loaded:
        return math.nan
    values, corner = (np.negative(Y), np.negative(ref)) if maximize else (Y, ref)
    return float(numba_engine.hypervolume(values[None], corner[None])[0])


def _stays_torch(Y: Any, ref: Any, backend: str) -> bool:
    if backend in ("numba", "moocore") and Y.device.type != "cpu":
        return False
    differentiable = Y.requires_grad or (is_tensor(ref) and ref.requires_grad)
    return bool(differentiable or backend == "torch" or Y.device.type != "cpu")


def _on_tensors(
    Y: Any, ref: Any, maximize: Maximize, mask: Any, backend: str, nan_policy: str, force: bool, num_threads: int
) -> Any:
    """Compute on tensors that need a graph or live on another device."""
    from moopt.kernels import autograd, torch_engine
    from moopt.kernels.device import read_ref_tensor, read_tensor

    points, _ = read_tensor(Y, maximize, mask=mask, nan_policy=nan_policy)
    corner = read_ref_tensor(ref, points, maximize)
    if backend == "torch" or Y.device.type != "cpu":
        result = torch_engine.hypervolume(points, corner)
    else:
        result = autograd.hypervolume(points, corner, backend, force, num_threads)
    return result.to(Y.dtype) if Y.dtype.is_floating_point else result


def volumes(
    values: FloatArray, refs: FloatArray, energy: float, backend: str, force: bool = True, num_threads: int = 1
) -> FloatArray:
    """Return hypervolumes (B,) of minimised fronts (B, n, d)."""
    B, n, _ = values.shape
    if B == 0 or n == 0:
        return np.zeros(B)
    if needs_conditioning(energy, refs):
        scaled = condition(values, refs)
        return scaled.volume(_volumes_on(scaled.values, scaled.refs, backend, force, num_threads))
    return _volumes_on(values, refs, backend, force, num_threads)


def _volumes_on(values: FloatArray, refs: FloatArray, backend: str, force: bool, num_threads: int) -> FloatArray:
    values, _ = essential(values, refs)
    B, n, d = values.shape
    if n == 0:
        return np.zeros(B)
    if not force:
        check_budget(d, n, B)
    if backend == "torch":
        import torch

        from moopt.kernels import torch_engine

        return np.asarray(torch_engine.hypervolume(torch.from_numpy(values), torch.from_numpy(refs)).numpy())
    if _use_numba(d, n, B, backend):
        return numba_engine.hypervolume(values, refs, num_threads)
    return reference_engine.hypervolume(values, refs)


def essential(values: FloatArray, refs: FloatArray) -> tuple[FloatArray, IntArray | None]:
    """Pack the rows that matter, where the work ahead repays the search: those inside ``refs``, undominated, first.

    Copies and dominated rows then cost nothing and do not count against the work budget.

    Returns:
        Fronts (B, m, d) with ``+inf`` in absent rows, and their row numbers (B, m), -1 for absent; the fronts as they
        came, and None, when small or when nothing can be left out.
    """
    B, n, d = values.shape
    if d < 5 or min(table.moocore_seconds(d, n), table.numba_seconds(d, n)) < ESSENTIAL_SECONDS:
        return values, None
    last = len(refs) - 1
    kept = []
    for b, front in enumerate(values):
        rows = np.flatnonzero((front < refs[min(b, last)]).all(axis=1))
        kept.append(rows[reference_engine.non_dominated_one(front[rows], keep_duplicates=False)])
    m = max(map(len, kept))
    if m == n:
        return values, None
    packed, numbers = np.full((B, m, d), np.inf), np.full((B, m), -1, dtype=np.int64)
    for b, rows in enumerate(kept):
        packed[b, : len(rows)] = values[b, rows]
        numbers[b, : len(rows)] = rows
    return packed, numbers


def _use_numba(d: int, n: int, B: int, backend: str) -> bool:
    if backend == "numba":
        return True
    if backend != "auto" or d == 1 or not table.numba_wins(d, n, alone=B == 1):
        return False
    saving = B * (table.moocore_seconds(d, n) - table.numba_seconds(d, n))
    if B == 1 and d <= 3 and n <= QUICK_SIZE:
        STORE.ready(_QUICK[d], saving)
    return STORE.ready(numba_engine.kernel_name(d), saving)


def check_budget(d: int, n: int, count: int) -> None:
    """Raise ``HypervolumeBudgetError`` if ``count`` fronts of n points would take longer than the work budget."""
    if d < 5:
        return
    seconds = count * min(table.moocore_seconds(d, n), table.numba_seconds(d, n))
    if seconds > table.BUDGET_SECONDS:
        raise HypervolumeBudgetError(
            f"exact hypervolume of {count} front(s) of {n} points in {d} objectives would take about {seconds:.0f} s "
            f"(budget {table.BUDGET_SECONDS:.0f} s); use hv_approx, or pass force=True to compute it all the same"
        )


def hypervolume_and_grad(
    Y: Points,
    ref: Any,
    *,
    maximize: Maximize = True,
    mask: Any = None,
    backend: str = "auto",
    nan_policy: NanPolicy = "raise",
    force: bool = False,
    num_threads: int = 1,
) -> tuple[Any, Any]:
    """Return hypervolumes and their derivatives by every coordinate (Emmerich and Deutz, 2014).

    The derivative by coordinate k of a point is the area (in d - 1 dimensions) that only this point covers at its own
    level of objective k. Dominated points, outside points and later duplicates have derivative 0; at ties, where
    the hypervolume has a kink, the point of lower index counts as first, so the answer is a one-sided derivative.

    Args:
        Y: Fronts (..., n, d), NumPy or torch, or a list of fronts (n_i, d).
        ref: Reference points in the orientation of ``Y``: a scalar, (d,), or broadcastable to (..., d).
        maximize: One direction for all objectives, or one bool per objective.
        mask: Booleans (..., n): rows that count; others have derivative 0.
        backend: ``"auto"``, ``"numba"`` or ``"moocore"`` (by differences, slow).
        nan_policy: ``"raise"``, or ``"omit"``: rows with NaN do not count.
        force: Compute even where the predicted time exceeds the work budget.
        num_threads: Threads over the fronts of a batch (compiled kernels only).

    Returns:
        ``(volume, gradient)`` of shapes (...) and (..., n, d): Python float and array for one NumPy front.

    Raises:
        ValueError: On wrong shapes, NaN, or an infinite hypervolume.
        HypervolumeBudgetError: If the predicted time exceeds the budget.

    Example:
        >>> volume, gradient = hypervolume_and_grad([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0])
        >>> volume, gradient.tolist()
        (3.0, [[1.0, 1.0], [1.0, 1.0]])
    """
    check_choice("backend", backend, ("auto", "numba", "moocore"))
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    refs = read_ref(ref, batch)
    volume, gradient = volumes_and_grads(batch.values, refs, batch.energy, backend, force, num_threads)
    return batch.restore_scalar(volume), batch.restore(gradient * batch.signs, gradient.shape[1:])


def volumes_and_grads(
    values: FloatArray, refs: FloatArray, energy: float, backend: str, force: bool = True, num_threads: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return hypervolumes (B,) and gradients (B, n, d) of minimised fronts."""
    B, n = values.shape[:2]
    if B == 0 or n == 0:
        return np.zeros(B), np.zeros(values.shape)
    if needs_conditioning(energy, refs):
        scaled = condition(values, refs)
        volume, gradient = _volumes_and_grads_on(scaled.values, scaled.refs, backend, force, num_threads)
        return scaled.volume(volume), scaled.gradient(gradient)
    return _volumes_and_grads_on(values, refs, backend, force, num_threads)


def _volumes_and_grads_on(
    values: FloatArray, refs: FloatArray, backend: str, force: bool, num_threads: int
) -> tuple[FloatArray, FloatArray]:
    packed, rows = essential(values, refs)
    B, n, d = packed.shape
    if n == 0:
        return np.zeros(B), np.zeros(values.shape)
    if not force:
        check_budget(d, n, B * d)
    # Without compiled kernels a gradient takes n d hypervolumes one dimension below.
    saving = packed[..., 0].size * d * table.moocore_seconds(max(2, d - 1), n)
    if backend == "numba" or (backend == "auto" and d > 1 and STORE.ready(numba_engine.kernel_name(d), saving)):
        volume, gradient = numba_engine.hypervolume_and_grad(packed, refs, num_threads)
    else:
        volume, gradient = reference_engine.hypervolume_and_grad(packed, refs)
    if rows is None:
        return volume, gradient
    full = np.zeros(values.shape)
    front, place = np.nonzero(rows >= 0)
    full[front, rows[front, place]] = gradient[front, place]
    return volume, full
