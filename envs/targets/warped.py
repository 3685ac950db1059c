"""Targets that no Gaussian fits: two bananas, a funnel, two skewed modes."""

import math

import torch
from torch import Tensor

from moopt.envs.targets.base import Target, positive, whole
from moopt.runs.errors import MooptError


class TwoBananas(Target):
    """Two bent modes at -2 and +2 (all coordinates) with masses 2/3 and 1/3, bent in opposite directions.

    Each mode is d/2 independent pairs (u, v): u ~ N(0, 0.5^2), v -+ bend (u^2 - 0.25) ~ N(0, 0.15^2).

    Args:
        dim: Dimension d, even.
        bend: Curvature; 0 gives Gaussian modes, 1 the hard case.
        distance: Half the distance of the modes per coordinate.
    """

    modes: Tensor
    mode_weights: Tensor

    def __init__(self, dim: int = 8, bend: float = 1.0, distance: float = 2.0) -> None:
        self.name, self.log_z = "two-bananas", 0.0
        self.dim = whole("dim", dim, 2)
        if self.dim % 2:
            raise MooptError(f"dim must be even for two-bananas, got {dim}")
        if not math.isfinite(bend):
            raise MooptError(f"bend must be finite, got {bend!r}")
        self.bend = float(bend)
        distance = positive("distance", distance)
        self.mode_weights = torch.tensor([2 / 3, 1 / 3], dtype=torch.float64)
        self._sign = torch.tensor([-1.0, 1.0], dtype=torch.float64)
        self._centers = distance * self._sign[:, None].expand(2, self.dim).clone()
        # The density of (u, v) peaks at u = 0, where v is -+ bend / 4 off the centre.
        self.modes = self._centers.clone()
        self.modes[:, 1::2] -= self._sign[:, None] * self.bend * 0.25
        within = torch.empty(2, self.dim, dtype=torch.float64)
        within[:, ::2] = 0.25
        within[:, 1::2] = 0.15**2 + self.bend**2 * 2 * 0.25**2
        self.mode_variances = within

    def _component_log_prob(self, x: Tensor) -> Tensor:
        z = (x[:, None] - self._centers.to(x)).reshape(len(x), 2, -1, 2)
        u = z[..., 0]
        v = z[..., 1] - self._sign.to(x)[:, None] * self.bend * (u.square() - 0.25)
        quad = (u / 0.5).square() + (v / 0.15).square()
        each = -0.5 * quad - math.log(0.5 * 0.15 * 2 * math.pi)
        result: Tensor = each.sum(-1) + self.mode_weights.to(x).log()
        return result

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density (n,) of points (n, d)."""
        return torch.logsumexp(self._component_log_prob(x), -1)

    def mode_of(self, x: Tensor) -> Tensor:
        """Return the banana (n,) with the larger density."""
        return self._component_log_prob(x).argmax(-1)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n independent points (n, d) float64."""
        j = torch.multinomial(self.mode_weights, n, replacement=True, generator=generator)
        z = torch.randn(n, self.dim // 2, 2, dtype=torch.float64, generator=generator)
        u = 0.5 * z[..., 0]
        v = 0.15 * z[..., 1] + self._sign[j, None] * self.bend * (u.square() - 0.25)
        return self._centers[j] + torch.stack([u, v], -1).flatten(1)


class Funnel(Target):
    """Neal's funnel: x_0 ~ N(0, 9), the others N(0, exp(x_0)).

    Args:
        dim: Dimension d.
    """

    modes: Tensor
    mode_weights: Tensor

    def __init__(self, dim: int = 10) -> None:
        self.name, self.log_z = "funnel", 0.0
        self.dim = whole("dim", dim, 2)
        self.modes = torch.zeros(1, self.dim, dtype=torch.float64)
        # d log p / d x_0 = -x_0 / 9 - (d - 1) / 2 at x_1.. = 0
        self.modes[0, 0] = -4.5 * (self.dim - 1)
        self.mode_weights = torch.ones(1, dtype=torch.float64)

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density (n,) of points (n, d)."""
        neck, rest = x[:, 0], x[:, 1:]
        n_rest = self.dim - 1
        first = -0.5 * (neck / 3).square() - math.log(3 * math.sqrt(2 * math.pi))
        others = -0.5 * rest.square().sum(-1) * (-neck).exp() - 0.5 * n_rest * (neck + math.log(2 * math.pi))
        return first + others

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n independent points (n, d) float64."""
        z = torch.randn(n, self.dim, dtype=torch.float64, generator=generator)
        neck = 3 * z[:, :1]
        return torch.cat([neck, z[:, 1:] * (neck / 2).exp()], -1)


class LogGammaModes(Target):
    """Two skewed modes at -s and +s, unnormalised on purpose: log Z = d log Gamma(k), masses 0.7 and 0.3.

    Every coordinate of a mode is the log of a Gamma(k) variable, density exp(k y - exp(y)) / Gamma(k). The
    target is asymmetric in every respect, so that errors of sign cannot cancel.

    Args:
        dim: Dimension d.
        k: Shape; small values are more skewed.
        distance: Shift s of the modes.
    """

    modes: Tensor
    mode_weights: Tensor

    def __init__(self, dim: int = 4, k: float = 3.0, distance: float = 4.0) -> None:
        self.name = "log-gamma"
        self.dim, self.k = whole("dim", dim, 1), positive("k", k)
        distance = positive("distance", distance)
        self._shift = torch.tensor([-distance, distance], dtype=torch.float64)
        self.mode_weights = torch.tensor([0.7, 0.3], dtype=torch.float64)
        self.modes = (self._shift + math.log(self.k))[:, None].expand(2, self.dim).clone()
        self.log_z = self.dim * math.lgamma(self.k)
        trigamma = float(torch.polygamma(1, torch.tensor(self.k, dtype=torch.float64)))
        self.mode_variances = torch.full((2, self.dim), trigamma, dtype=torch.float64)

    def _component_log_prob(self, x: Tensor) -> Tensor:
        y = x[:, None] - self._shift.to(x)[:, None]
        return (self.k * y - y.exp()).sum(-1) + self.mode_weights.to(x).log()

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the unnormalised log-density (n,) of points (n, d)."""
        return torch.logsumexp(self._component_log_prob(x), -1)

    def mode_of(self, x: Tensor) -> Tensor:
        """Return the mode (n,) with the larger density."""
        return self._component_log_prob(x).argmax(-1)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n independent points (n, d) float64."""
        import numpy as np

        j = torch.multinomial(self.mode_weights, n, replacement=True, generator=generator)
        # torch's gamma takes no generator; a NumPy stream seeded from the generator keeps draws reproducible.
        seed = int(torch.randint(2**62, (1,), generator=generator))
        y = np.random.Generator(np.random.PCG64(seed)).gamma(self.k, size=(n, self.dim))
        return torch.from_numpy(np.log(y)) + self._shift[j, None]
