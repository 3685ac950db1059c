"""Hypervolume as a node of torch's graph, with the analytic gradient of the compiled kernels."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from moopt.kernels.dispatch import volumes_and_grads
from moopt.kernels.inputs import sum_of_squares


class _Hypervolume(torch.autograd.Function):
    """Volumes (B,) of minimised fronts (B, n, d); the reference point's derivative follows from translation."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, ref: Tensor, backend: str, force: bool, num_threads: int) -> Tensor:
        values = np.ascontiguousarray(points.detach().numpy())
        refs = np.ascontiguousarray(ref.detach().numpy())
        energy = sum_of_squares(np.where(np.isinf(values) & (values > 0), 0.0, values))
        volume, gradient = volumes_and_grads(values, refs, energy, backend, force, num_threads)
        ctx.save_for_backward(torch.from_numpy(gradient))
        return torch.from_numpy(volume)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        by_points = gradient * upstream[:, None, None]
        return by_points, -by_points.sum(1), None, None, None


def hypervolume(points: Tensor, ref: Tensor, backend: str, force: bool, num_threads: int) -> Tensor:
    """Return differentiable volumes (...) of minimised CPU fronts (..., n, d)."""
    shape = points.shape[:-2]
    n, d = points.shape[-2:]
    flat = points.reshape(shape.numel(), n, d)
    corner = ref.expand((*shape, d)).reshape(shape.numel(), d)
    result: Tensor = _Hypervolume.apply(flat, corner, backend, force, num_threads)  # type: ignore[no-untyped-call]
    return result.reshape(shape)
