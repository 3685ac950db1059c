"""Density estimation by a Gaussian mixture with a measure of centres, as a convex functional."""

import math
from typing import Any

import torch
from torch import Tensor

from moopt.runs.errors import MooptError
from moopt.samplers.mfld.discrepancy import squared_distances
from moopt.samplers.mfld.network import read_rows


class DensityEstimation:
    """F(mu) = -1/n sum_i log integral N(x_i; w, bandwidth^2 I) dmu(w).

    Convex: minus the log of a linear map. With the entropy it is a regularised nonparametric maximum-likelihood
    mixture.

    Args:
        X: Data (n, D).
        bandwidth: Standard deviation of every component, > 0.
        dtype: Floating type.
        device: Device.

    Raises:
        MooptError: If X is not finite (n, D) with n >= 1, or the bandwidth is not > 0.
    """

    convex = True

    def __init__(
        self,
        X: Any,
        *,
        bandwidth: float,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> None:
        if not (math.isfinite(bandwidth) and bandwidth > 0):
            raise MooptError(f"bandwidth must be a finite number > 0, got {bandwidth}")
        self.X = read_rows(X, "X", dtype, device)
        if self.X.ndim != 2 or len(self.X) == 0:
            raise MooptError(f"X must be (n, D) with n >= 1, got shape {tuple(self.X.shape)}")
        self.bandwidth = float(bandwidth)
        self.dim = int(self.X.shape[1])
        self.n_data: int | None = len(self.X)

    def log_density(self, W: Tensor, points: Any) -> Tensor:
        """Return the log density (..., k) of the mixture at points (k, D)."""
        rows = read_rows(points, "points", W.dtype, W.device)
        return torch.logsumexp(self._log_terms(W, rows), dim=-1) - math.log(W.shape[-2])

    def value(self, W: Tensor) -> Tensor:
        """Return the mean negative log likelihood, shape (...)."""
        logs = torch.logsumexp(self._log_terms(W, self.X), dim=-1)
        return math.log(W.shape[-2]) - logs.mean(dim=-1)

    def drift(self, W: Tensor, *, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Return -1/n sum_i N p_ij (x_i - w_j) / h^2 with responsibilities p_ij, shape of W."""
        X = self.X if batch is None else self.X[batch]
        share = torch.softmax(self._log_terms(W, X), dim=-1)
        share = share.mul_(W.shape[-2] / (X.shape[-2] * self.bandwidth**2))
        return share.sum(dim=-2).unsqueeze(-1) * W - share.transpose(-1, -2) @ X

    def first_variation(self, W: Tensor) -> Tensor:
        """Return -1/n sum_i q(x_i|w_j) / p(x_i) at each particle, shape (..., N)."""
        return -torch.softmax(self._log_terms(W, self.X), dim=-1).mean(dim=-2) * W.shape[-2]

    def _log_terms(self, W: Tensor, X: Tensor) -> Tensor:
        norm = 0.5 * self.dim * math.log(2 * math.pi * self.bandwidth**2)
        return squared_distances(X, W).div_(-2 * self.bandwidth**2).sub_(norm)
