"""Kernels in plain torch: differentiable, any device; minimisation, fronts (..., n, d), reference points (..., d)."""

import torch
from torch import Tensor

MAX_DIM = 4


def hypervolume(points: Tensor, ref: Tensor) -> Tensor:
    """Return hypervolumes (...); exact for up to four objectives.

    Args:
        points: Minimised fronts (..., n, d); rows at ``+inf`` are absent.
        ref: Reference points that broadcast to (..., d).

    Raises:
        ValueError: For more than four objectives.
    """
    d = points.shape[-1]
    if d > MAX_DIM:
        raise ValueError(
            f"the torch backend computes exact hypervolume for at most {MAX_DIM} objectives, got {d}; "
            "use hv_approx, or move the points to the CPU and use backend='numba' or 'moocore'"
        )
    corner = ref.expand((*points.shape[:-2], d))
    if points.shape[-2] == 0:
        return points.sum(dim=(-2, -1)) + points.new_zeros(points.shape[:-2])
    inside = (points < corner.unsqueeze(-2)).all(-1, keepdim=True)
    clipped = torch.where(inside, points, corner.unsqueeze(-2))
    if d == 1:
        return corner[..., 0] - clipped[..., 0].amin(-1)
    return (_area, _volume3, _volume4)[d - 2](clipped, corner)


def _area(points: Tensor, ref: Tensor) -> Tensor:
    x, order = points[..., 0].sort(dim=-1, stable=True)
    low = points[..., 1].gather(-1, order).cummin(-1).values
    above = torch.cat([ref[..., 1:2], low[..., :-1]], -1)
    return ((ref[..., :1] - x) * (above - low)).sum(-1)


def _steps(sorted_values: Tensor, end: Tensor) -> Tensor:
    return torch.cat([sorted_values[..., 1:], end.unsqueeze(-1)], -1) - sorted_values


def _volume3(points: Tensor, ref: Tensor) -> Tensor:
    """Heights on the grid of x and y ranks: each cell is as deep as the best point at its lower left."""
    n = points.shape[-2]
    x, order = points[..., 0].sort(dim=-1, stable=True)
    y_by_x = points[..., 1].gather(-1, order)
    depth = ref[..., 2:3] - points[..., 2].gather(-1, order)
    y, y_order = y_by_x.sort(dim=-1, stable=True)
    heights = depth.new_zeros((*depth.shape[:-1], n, n))
    heights = heights.scatter(-2, y_order.unsqueeze(-2), depth.gather(-1, y_order).unsqueeze(-2))
    heights = heights.cummax(-2).values.cummax(-1).values
    return _integrate(heights, _steps(x, ref[..., 0]), _steps(y, ref[..., 1]))


def _integrate(heights: Tensor, dx: Tensor, dy: Tensor) -> Tensor:
    return ((heights @ dy.unsqueeze(-1)).squeeze(-1) * dx).sum(-1)


def _volume4(points: Tensor, ref: Tensor) -> Tensor:
    """Sweep the last objective; between two steps the body below is a height map over x and y ranks."""
    n = points.shape[-2]
    w, order = points[..., 3].sort(dim=-1, stable=True)
    swept = points.gather(-2, order.unsqueeze(-1).expand(points.shape))
    x, x_order = swept[..., 0].sort(dim=-1, stable=True)
    y, y_order = swept[..., 1].sort(dim=-1, stable=True)
    x_rank, y_rank = x_order.argsort(-1), y_order.argsort(-1)
    dx, dy, dw = _steps(x, ref[..., 0]), _steps(y, ref[..., 1]), _steps(w, ref[..., 3])
    ranks = torch.arange(n, device=points.device)
    heights = points.new_zeros((*w.shape, n))
    total = torch.zeros_like(w[..., 0])
    for k in range(n):
        covered = (ranks >= x_rank[..., k : k + 1]).unsqueeze(-1) & (ranks >= y_rank[..., k : k + 1]).unsqueeze(-2)
        depth = (ref[..., 2] - swept[..., k, 2])[..., None, None]
        heights = torch.maximum(heights, torch.where(covered, depth, 0.0))
        total = total + _integrate(heights, dx, dy) * dw[..., k]
    return total


def improvement_from_boxes(candidates: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return what candidates (..., N, d) add, given boxes (cells, d) of the minimised non-dominated region."""
    gaps = upper - torch.maximum(lower, candidates.unsqueeze(-2))
    return gaps.clamp_min(0.0).prod(-1).sum(-1)


def non_dominated(points: Tensor, *, keep_duplicates: bool, present: Tensor | None = None) -> Tensor:
    """Return the mask (..., n) of non-dominated rows by comparing all pairs."""
    first, second = points.unsqueeze(-2), points.unsqueeze(-3)
    no_worse = (second <= first).all(-1)
    equal = no_worse & no_worse.transpose(-1, -2)
    beats = no_worse & ~equal
    if not keep_duplicates:
        n = points.shape[-2]
        earlier = torch.ones((n, n), dtype=torch.bool, device=points.device).tril(-1)
        beats = beats | (equal & earlier)
    if present is None:
        return ~beats.any(-1)
    return ~(beats & present.unsqueeze(-2)).any(-1) & present
