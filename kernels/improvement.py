"""By how much candidates would raise the hypervolume of a front."""

from typing import Any

import numpy as np

from moopt.kernels import numba_engine, reference_engine, table
from moopt.kernels.conditioning import condition, needs_conditioning
from moopt.kernels.inputs import (
    BACKENDS,
    FloatArray,
    IntArray,
    Maximize,
    Points,
    check_choice,
    is_tensor,
    read_points,
    read_ref,
)
from moopt.kernels.jit import STORE


def hv_improvement(
    candidates: Points,
    front: Points,
    ref: Any,
    *,
    maximize: Maximize = True,
    mask: Any = None,
    backend: str = "auto",
    num_threads: int = 1,
) -> Any:
    """Return by how much each candidate, alone, would raise the hypervolume of a front.

    Args:
        candidates: Points (..., N, d), NumPy or torch. A tensor that requires gradients gives a differentiable
            result (computed from boxes).
        front: The front (n, d), or one a batch entry (..., n, d). It is a constant: no gradient flows to it.
        ref: Reference point in the orientation of the points: a scalar or (d,).
        maximize: One direction for all objectives, or one bool per objective.
        mask: Booleans (..., n): rows of ``front`` that count.
        backend: ``"auto"``, ``"numba"``, ``"torch"`` (boxes) or ``"moocore"``.
        num_threads: Threads over the candidates (compiled kernels only).

    Returns:
        Improvements (..., N) like ``candidates``; 0 for candidates that are dominated or outside ``ref``.

    Raises:
        ValueError: On wrong shapes, or NaN.

    Example:
        >>> hv_improvement([[2.0, 2.0], [0.5, 0.5]], [[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0]).tolist()
        [1.0, 0.0]
    """
    check_choice("backend", backend, BACKENDS)
    if is_tensor(front) and front.requires_grad:  # type: ignore[union-attr]
        raise ValueError("hv_improvement differentiates by candidates only; pass front.detach()")
    if is_tensor(candidates) and (
        backend == "torch" or candidates.requires_grad or candidates.device.type != "cpu"  # type: ignore[union-attr]
    ):
        return _improvement_on_tensors(candidates, front, ref, maximize, mask)
    batch = read_points(candidates, maximize, name="candidates")
    fronts = read_points(front, maximize, mask=mask, name="front")
    if fronts.dim != batch.dim:
        raise ValueError(
            f"candidates have {batch.dim} objectives, the front has {fronts.dim}: "
            f"shapes {(*batch.shape, *batch.values.shape[1:])} and {(*fronts.shape, *fronts.values.shape[1:])}"
        )
    refs = read_ref(ref, fronts)
    front_rows = _broadcast_fronts(batch.shape, fronts.shape)
    if len(refs) > 1:
        refs = refs[front_rows]
    values = fronts.values[front_rows] if len(front_rows) > 1 or fronts.shape else fronts.values
    gains = np.empty(batch.values.shape[:2])
    for b, rows in enumerate(batch.values):
        corner = refs[min(b, len(refs) - 1)]
        gains[b] = improvement_one(
            rows, values[min(b, len(values) - 1)], corner, batch.energy + fronts.energy, backend, num_threads
        )
    return batch.restore(gains, gains.shape[1:])


def _broadcast_fronts(batch_shape: tuple[int, ...], front_shape: tuple[int, ...]) -> IntArray:
    """Return, for each batch entry of the candidates, the index of its front."""
    index = np.arange(int(np.prod(front_shape, dtype=np.int64))).reshape(front_shape)
    try:
        return np.asarray(np.broadcast_to(index, batch_shape)).reshape(-1)
    except ValueError:
        raise ValueError(f"fronts of batch shape {front_shape} do not broadcast to candidates {batch_shape}") from None


def improvement_one(
    candidates: FloatArray, front: FloatArray, ref: FloatArray, energy: float, backend: str, num_threads: int
) -> FloatArray:
    """Return the gains (N,) of minimised candidates over one minimised front."""
    if needs_conditioning(energy, ref):
        both = condition(np.concatenate([candidates, front])[None], ref[None])
        if both.infinite.any():
            return _infinite_gains(candidates, front, ref)
        N = len(candidates)
        scaled = _improvement_on(both.values[0, :N], both.values[0, N:], both.refs[0], backend, num_threads)
        return np.asarray(both.row_volume(scaled[None])[0])
    return _improvement_on(candidates, front, ref, backend, num_threads)


def _infinite_gains(candidates: FloatArray, front: FloatArray, ref: FloatArray) -> FloatArray:
    """Return gains by boxes, whose infinite sides cannot cancel: a gain is infinite when an open box is."""
    from moopt.kernels.boxes import decompose

    lower, upper = decompose(front, ref, dominated=False, backend="numpy")
    gains = np.zeros(len(candidates))
    for i, candidate in enumerate(candidates):
        low = np.maximum(lower, candidate)
        open_boxes = (low < upper).all(axis=1)
        with np.errstate(over="ignore"):
            gains[i] = np.prod(upper[open_boxes] - low[open_boxes], axis=1).sum()
    return gains


def _improvement_on(
    candidates: FloatArray, front: FloatArray, ref: FloatArray, backend: str, num_threads: int
) -> FloatArray:
    if backend == "torch":
        import torch

        from moopt.kernels import torch_engine
        from moopt.kernels.boxes import decompose

        lower, upper = decompose(front, ref, dominated=False)
        tensors = (torch.from_numpy(np.ascontiguousarray(part)) for part in (candidates, lower, upper))
        return np.asarray(torch_engine.improvement_from_boxes(*tensors).numpy())
    N, d = candidates.shape
    front = front[(front < ref).all(axis=1)]
    front = front[reference_engine.non_dominated_one(front, keep_duplicates=False)]
    saving = N * table.moocore_seconds(d, max(len(front), 1)) if d > 1 else 0.0
    name = "gain2" if d == 2 else "gain_slices"
    if backend == "numba" or (backend == "auto" and d > 1 and STORE.ready(name, saving)):
        return numba_engine.improvement(np.ascontiguousarray(candidates), front, ref, num_threads)
    return reference_engine.improvement(candidates, front, ref)


def _improvement_on_tensors(candidates: Any, front: Points, ref: Any, maximize: Maximize, mask: Any) -> Any:
    """Sum over boxes of the open region, which is differentiable and runs on any device."""
    import torch

    from moopt.kernels import torch_engine
    from moopt.kernels.boxes import box_decomposition
    from moopt.kernels.device import read_tensor

    points, _ = read_tensor(candidates, maximize)
    constant = front.detach().cpu() if is_tensor(front) else front  # type: ignore[union-attr]
    corner = ref.detach().cpu() if is_tensor(ref) else ref
    minimised = read_points(constant, maximize, mask=mask, name="front")
    if minimised.dim != points.shape[-1]:
        raise ValueError(f"candidates have {points.shape[-1]} objectives, the front has {minimised.dim}")
    refs = read_ref(corner, minimised)
    shaped = minimised.values.reshape((*minimised.shape, *minimised.values.shape[1:]))
    shaped_refs = refs[0] if len(refs) == 1 else refs.reshape((*minimised.shape, minimised.dim))
    cells = box_decomposition(shaped, shaped_refs, maximize=False)
    lower, upper = (torch.from_numpy(part).to(points.device) for part in cells)
    if minimised.shape:
        lower, upper = lower.unsqueeze(-3), upper.unsqueeze(-3)
    gaps = upper - torch.maximum(lower, points.unsqueeze(-2))
    del torch_engine
    result = gaps.clamp_min(0.0).prod(-1).sum(-1)
    return result.to(candidates.dtype) if candidates.dtype.is_floating_point else result
