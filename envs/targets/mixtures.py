"""Gaussian mixtures with known weights: two modes in four shapes, and many modes."""

import math
from typing import Literal

import torch
from torch import Tensor

from moopt.envs.targets.base import Target, positive, whole
from moopt.runs.errors import MooptError, did_you_mean


class MixtureTarget(Target):
    """A normalised Gaussian mixture, times exp(log_scale).

    Args:
        weights: Positive masses (M,); normalised.
        means: Means (M, d).
        covariances: Variances (M, d) or covariance matrices (M, d, d).
        log_scale: Constant added to the log-density, so that log Z equals it.
        name: Name for messages and tables.

    Raises:
        MooptError: If shapes disagree or a covariance is not positive definite.
    """

    modes: Tensor
    mode_weights: Tensor

    def __init__(
        self,
        weights: Tensor,
        means: Tensor,
        covariances: Tensor,
        *,
        log_scale: float = 0.0,
        name: str = "mixture",
    ) -> None:
        self.name = name
        self.modes = means.double()
        n_modes, self.dim = self.modes.shape
        weights = weights.double()
        if weights.shape != (n_modes,) or not bool((weights > 0).all()):
            raise MooptError(f"weights must be {n_modes} positive numbers, got shape {tuple(weights.shape)}")
        self.mode_weights = weights / weights.sum()
        covariances = covariances.double()
        if covariances.shape not in ((n_modes, self.dim), (n_modes, self.dim, self.dim)):
            raise MooptError(
                f"covariances must have shape {(n_modes, self.dim)} or {(n_modes, self.dim, self.dim)}, "
                f"got {tuple(covariances.shape)}"
            )
        self._full = covariances.ndim == 3
        if self._full:
            self._factor, failed = torch.linalg.cholesky_ex(covariances)
            if bool(failed.any()):
                raise MooptError("covariances must be positive definite")
            identity = torch.eye(self.dim, dtype=torch.float64).expand_as(covariances)
            self._whiten = torch.linalg.solve_triangular(self._factor, identity, upper=False)
            self.mode_variances = covariances.diagonal(dim1=-2, dim2=-1).clone()
        else:
            if not bool((covariances > 0).all()):
                raise MooptError("covariances must be positive")
            self._factor = covariances.sqrt()
            self._whiten = 1 / self._factor
            self.mode_variances = covariances.clone()
        scales = self._factor.diagonal(dim1=-2, dim2=-1) if self._full else self._factor
        self._constant = self.mode_weights.log() - scales.log().sum(-1) - 0.5 * self.dim * math.log(2 * math.pi)
        self.log_z = float(log_scale)

    def _component_log_prob(self, x: Tensor) -> Tensor:
        d = x[:, None, :] - self.modes.to(x)
        whiten = self._whiten.to(x)
        z = torch.einsum("mij,nmj->nmi", whiten, d) if self._full else d * whiten
        result: Tensor = self._constant.to(x) - z.square().sum(-1) / 2
        return result

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density (n,) of points (n, d)."""
        return torch.logsumexp(self._component_log_prob(x), -1) + (self.log_z or 0.0)

    def mode_of(self, x: Tensor) -> Tensor:
        """Return the component (n,) with the largest weighted density at each point."""
        return self._component_log_prob(x).argmax(-1)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n independent points (n, d) float64."""
        j = torch.multinomial(self.mode_weights, n, replacement=True, generator=generator)
        z = torch.randn(n, self.dim, dtype=torch.float64, generator=generator)
        moved = torch.einsum("nij,nj->ni", self._factor[j], z) if self._full else self._factor[j] * z
        return self.modes[j] + moved


Spread = Literal["not", "medium", "hard"]
_DECADES = {"not": None, "medium": -1.0, "hard": -2.0}


class TwoModes(MixtureTarget):
    """Two Gaussian modes at -a and +a (all coordinates) with masses 2/3 and 1/3.

    Args:
        dim: Dimension d.
        a: Half the distance of the modes per coordinate.
        conditioning: ``not``: variance 0.05 everywhere; ``medium``: 0.05 times logspace(-1, 0, d); ``hard``:
            0.05 times logspace(-2, 0, d).
        rotated: Turn the covariance by a fixed orthogonal matrix, so that it is full.
        log_scale: Constant added to the log-density; equals log Z.
        weight: Mass of the mode at -a.
    """

    def __init__(
        self,
        dim: int = 16,
        a: float = 1.0,
        conditioning: Spread = "not",
        rotated: bool = False,
        log_scale: float = 0.0,
        weight: float = 2 / 3,
    ) -> None:
        d, a = whole("dim", dim, 1), positive("a", a)
        if conditioning not in _DECADES:
            raise MooptError(
                f"conditioning must be one of {', '.join(_DECADES)}, got {conditioning!r}"
                + did_you_mean(conditioning, _DECADES)
            )
        if not 0 < weight < 1:
            raise MooptError(f"weight must lie between 0 and 1, got {weight!r}")
        low = _DECADES[conditioning]
        ones = torch.ones(d, dtype=torch.float64)
        variances = 0.05 * (ones if low is None else torch.logspace(low, 0, d, dtype=torch.float64))
        covariances = variances.expand(2, d)
        if rotated:
            square = 5 * torch.rand(d, d, generator=torch.Generator().manual_seed(42), dtype=torch.float64)
            q = torch.linalg.qr(square).Q
            covariances = (q @ torch.diag(variances) @ q.T).expand(2, d, d)
        super().__init__(
            torch.tensor([weight, 1 - weight], dtype=torch.float64),
            torch.stack([-a * ones, a * ones]),
            covariances,
            log_scale=log_scale,
            name="two-modes",
        )


class BracketTwoModes(MixtureTarget):
    """Two modes at -a and +a with masses 2/3 and 1/3 whose variances run 0.01..0.2 in opposite orders."""

    def __init__(self, dim: int = 16, a: float = 0.75) -> None:
        d, a = whole("dim", dim, 2), positive("a", a)
        ones = torch.ones(d, dtype=torch.float64)
        variances = torch.linspace(0.01, 0.2, d, dtype=torch.float64)
        super().__init__(
            torch.tensor([2 / 3, 1 / 3], dtype=torch.float64),
            torch.stack([-a * ones, a * ones]),
            torch.stack([variances, variances.flip(0)]),
            name="bracket-two-modes",
        )


class ManyModes(MixtureTarget):
    """n modes at random places in [-n, n]^d with variance 0.5; the largest mass is three times the smallest.

    Args:
        n: Number of modes.
        dim: Dimension d.
        seed: Seed of the places.
    """

    def __init__(self, n: int = 16, dim: int = 8, seed: int = 42) -> None:
        n, d = whole("n", n, 2), whole("dim", dim, 1)
        generator = torch.Generator().manual_seed(whole("seed", seed, 0))
        means = 2 * n * torch.rand(n, d, generator=generator, dtype=torch.float64) - n
        weights = torch.logspace(0, 1, n, base=3, dtype=torch.float64)
        variances = torch.full((n, d), 0.5, dtype=torch.float64)
        super().__init__(weights, means, variances, name="many-modes")
