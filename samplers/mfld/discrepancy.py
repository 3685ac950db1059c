"""Distances to a target as functionals: MMD to samples, KSD to a density known by its score."""

import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from moopt.runs.errors import MooptError, did_you_mean
from moopt.samplers.mfld.functional import AutogradFunctional
from moopt.samplers.mfld.network import read_rows

KernelName = Literal["rbf", "imq"]


class RadialKernel:
    """k(x, y) = phi(|x - y|^2) with its first two derivatives in the squared distance.

    Args:
        name: "rbf" exp(-d^2 / (2 h^2)), or "imq" (1 + d^2 / h^2)^(-1/2).
        bandwidth: h > 0.

    Raises:
        MooptError: If the name is unknown or the bandwidth is not > 0.
    """

    def __init__(self, name: str, bandwidth: float) -> None:
        if name not in ("rbf", "imq"):
            raise MooptError(f"unknown kernel {name!r}{did_you_mean(name, ['rbf', 'imq'])}")
        if not (math.isfinite(bandwidth) and bandwidth > 0):
            raise MooptError(f"bandwidth must be a finite number > 0, got {bandwidth}")
        self.name, self.bandwidth = name, float(bandwidth)

    def derivatives(self, squared: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return phi, phi' and phi'' at squared distances, same shape."""
        a = 1.0 / self.bandwidth**2
        if self.name == "rbf":
            phi = torch.exp(-0.5 * a * squared)
            return phi, -0.5 * a * phi, 0.25 * a * a * phi
        base = 1.0 / (1.0 + a * squared)
        phi = base.sqrt()
        return phi, -0.5 * a * phi * base, 0.75 * a * a * phi * base * base


class MMD:
    """Half the squared maximum mean discrepancy to samples, F = MMD^2(mu, samples) / 2; convex.

    Args:
        samples: Target samples (M, D).
        kernel: "rbf" or "imq".
        bandwidth: Length scale h, or "median" for the root of the median squared distance of the samples.
        dtype: Floating type.
        device: Device.

    Raises:
        MooptError: If the samples are not finite (M, D) with M >= 1, or the kernel is unusable.
    """

    convex = True
    n_data: int | None = None

    def __init__(
        self,
        samples: Any,
        *,
        kernel: KernelName = "rbf",
        bandwidth: float | Literal["median"] = "median",
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> None:
        self.X = read_rows(samples, "samples", dtype, device)
        if self.X.ndim != 2 or len(self.X) == 0:
            raise MooptError(f"samples must be (M, D) with M >= 1, got shape {tuple(self.X.shape)}")
        self.dim = int(self.X.shape[1])
        self.kernel = RadialKernel(kernel, median_bandwidth(self.X) if bandwidth == "median" else bandwidth)
        self._constant = self.kernel.derivatives(squared_distances(self.X, self.X))[0].mean()

    def value(self, W: Tensor) -> Tensor:
        """Return MMD^2 / 2, shape (...)."""
        within = self.kernel.derivatives(squared_distances(W, W))[0].mean(dim=(-2, -1))
        across = self.kernel.derivatives(squared_distances(W, self.X))[0].mean(dim=(-2, -1))
        return (within - 2 * across + self._constant) / 2

    def drift(self, W: Tensor, *, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Return the gradient of the first variation, shape of W: the kernel mean of W minus that of the samples."""
        return self._pull(W, W) - self._pull(W, self.X)

    def first_variation(self, W: Tensor) -> Tensor:
        """Return the witness function at each particle, shape (..., N)."""
        within = self.kernel.derivatives(squared_distances(W, W))[0].mean(dim=-1)
        return within - self.kernel.derivatives(squared_distances(W, self.X))[0].mean(dim=-1)

    def _pull(self, W: Tensor, others: Tensor) -> Tensor:
        # mean_j 2 phi'(|w - y_j|^2) (w - y_j), as two products
        slope = self.kernel.derivatives(squared_distances(W, others))[1].mul_(2.0 / others.shape[-2])
        return slope.sum(dim=-1, keepdim=True) * W - slope @ others


class KSD(AutogradFunctional):
    """Half the squared kernel Stein discrepancy to a density p known by its score; convex.

    It can stall between well separated modes, where the score does not tell their weights.

    Args:
        score: Maps points (..., D) to grad log p (..., D), differentiable by torch.
        kernel: "imq" (detects non-convergence) or "rbf".
        bandwidth: Length scale h.
    """

    def __init__(
        self, score: Callable[[Tensor], Tensor], *, kernel: KernelName = "imq", bandwidth: float = 1.0
    ) -> None:
        radial = RadialKernel(kernel, bandwidth)
        super().__init__(
            lambda W: stein_matrix(W, score(W), radial).mean(dim=(-2, -1)) / 2,
            convex=True,
        )


def stein_matrix(points: Tensor, scores: Tensor, kernel: RadialKernel) -> Tensor:
    """Return u_p(x_i, x_j) for points and their scores (..., N, D), shape (..., N, N).

    u_p = s(x)'s(y) k + s(x)'d_y k + s(y)'d_x k + tr d_x d_y k.
    """
    squared = squared_distances(points, points)
    phi, first, second = kernel.derivatives(squared)
    own: Tensor = torch.linalg.vecdot(scores, points).unsqueeze(-1)
    cross = scores @ points.transpose(-1, -2)  # s_i' x_j
    # (s_i - s_j)'(x_i - x_j)
    along = own + own.transpose(-1, -2) - cross - cross.transpose(-1, -2)
    gram = scores @ scores.transpose(-1, -2)
    return gram * phi - 2 * first * along - 2 * points.shape[-1] * first - 4 * second * squared


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Return |x_i - y_j|^2 for x (..., N, D) and y (..., M, D) or (M, D), shape (..., N, M)."""
    # Shifting both to a common origin keeps the cancellation in |x|^2 - 2 x'y + |y|^2 small.
    origin = y.mean(dim=-2, keepdim=True).detach()
    x, y = x - origin, y - origin
    norms = x.square().sum(-1, keepdim=True) + y.square().sum(-1).unsqueeze(-2)
    return (norms - 2 * x @ y.transpose(-1, -2)).clamp_min(0.0)


def median_bandwidth(points: Tensor) -> float:
    """Return the root of the median squared distance between points (n, D), at most 2000 of them; 1 if that is 0."""
    some = points[: min(len(points), 2000)]
    squared = squared_distances(some, some)
    upper = squared[torch.triu(torch.ones_like(squared, dtype=torch.bool), diagonal=1)]
    median = float(upper.median()) if len(upper) else 0.0
    return math.sqrt(median) if median > 0 else 1.0
