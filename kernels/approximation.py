"""Approximate hypervolume, in any number of objectives."""

import math
from typing import Any

import numpy as np

from moopt.kernels import reference_engine
from moopt.kernels.conditioning import condition
from moopt.kernels.inputs import FloatArray, Maximize, NanPolicy, Points, check_choice, is_tensor, read_points, read_ref


def hv_approx(
    Y: Points,
    ref: Any,
    *,
    maximize: Maximize = True,
    mask: Any = None,
    n_samples: int = 65536,
    method: str = "Rphi-FWE+",
    seed: int = 0,
    nan_policy: NanPolicy = "raise",
) -> Any:
    """Approximate hypervolume in any number of objectives, from the front's extent along random directions.

    In polar form ``HV = c_d E_w[max_p min_k ((ref_k - p_k) / w_k)^d]`` with w uniform on the unit sphere's positive
    orthant and ``c_d`` that orthant's share of the unit ball (Deng and Zhang, 2019). At 65,536 samples the relative
    error is 1e-4 to 5e-3 for 6 to 10 objectives.

    Args:
        Y: Fronts (..., n, d), NumPy or torch, d >= 2. Tensors that require gradients, or not on the CPU, are sampled in
            torch and differentiable.
        ref: Reference points in the orientation of ``Y``: a scalar, (d,), or broadcastable to (..., d).
        maximize: One direction for all objectives, or one bool per objective.
        mask: Booleans (..., n): rows that count.
        n_samples: Directions.
        method: ``"Rphi-FWE+"``, ``"DZ2019-HW"`` (both deterministic) or ``"DZ2019-MC"``: moocore's names.
        seed: Seed of the random directions.
        nan_policy: ``"raise"``, or ``"omit"``: rows with NaN do not count.

    Returns:
        A Python float for one NumPy front; otherwise an array or tensor (...) like ``Y``.

    Raises:
        ValueError: On wrong shapes, NaN, or fewer than one sample.

    Example:
        >>> abs(hv_approx([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0]) - 3.0) < 0.01
        True
    """
    check_choice("method", method, ("Rphi-FWE+", "DZ2019-HW", "DZ2019-MC"))
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}")
    if is_tensor(Y) and (Y.requires_grad or Y.device.type != "cpu"):  # type: ignore[union-attr]
        return _approx_on_tensors(Y, ref, maximize, mask, n_samples, seed, nan_policy)
    batch = read_points(Y, maximize, mask=mask, nan_policy=nan_policy)
    refs = read_ref(ref, batch)
    scaled = condition(batch.values, refs)
    result = np.array([_approx_one(front, scaled.refs[0], n_samples, method, seed) for front in scaled.values])
    return batch.restore_scalar(scaled.volume(result.reshape(len(scaled.values))))


def _approx_one(front: FloatArray, ref: FloatArray, n_samples: int, method: str, seed: int) -> float:
    inside = front[(front < ref).all(axis=1)]
    n, d = inside.shape
    if n == 0 or d == 1:
        return float((ref - inside).max(initial=0.0))
    if d <= reference_engine.MOOCORE_MAX_DIM:
        import moocore

        random = seed if method == "DZ2019-MC" else None
        return float(moocore.hv_approx(inside, ref=ref, nsamples=n_samples, seed=random, method=method))
    directions = np.abs(np.random.default_rng(seed).standard_normal((n_samples, d)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    extent = np.zeros(n_samples)
    for point in inside:
        np.maximum(extent, ((ref - point) / directions).min(axis=1), out=extent)
    return float(np.mean(extent**d)) * _orthant_ball(d)


def _orthant_ball(d: int) -> float:
    """Return the volume of the unit ball's positive orthant."""
    return math.exp(0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1.0) - d * math.log(2.0))


def _approx_on_tensors(
    Y: Any, ref: Any, maximize: Maximize, mask: Any, n_samples: int, seed: int, nan_policy: str
) -> Any:
    import torch

    from moopt.kernels.device import read_ref_tensor, read_tensor

    points, _ = read_tensor(Y, maximize, mask=mask, nan_policy=nan_policy)
    corner = read_ref_tensor(ref, points, maximize).expand((*points.shape[:-2], points.shape[-1]))
    d = points.shape[-1]
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(n_samples, d, generator=generator, dtype=torch.float64).abs().to(points.device)
    directions = directions / directions.norm(dim=-1, keepdim=True)
    widths = (corner.unsqueeze(-2) - points).clamp_min(0.0)
    chunk = max(1, 2**24 // max(1, widths.numel()))
    total = points.new_zeros(points.shape[:-2])
    for part in directions.split(chunk):
        extent = (widths.unsqueeze(-3) / part[:, None, :]).amin(-1)
        total = total + (extent.amax(-1) if extent.shape[-1] else extent.sum(-1)).pow(d).sum(-1)
    result = total * (_orthant_ball(d) / n_samples)
    return result.to(Y.dtype) if Y.dtype.is_floating_point else result
