"""Two-dimensional targets with awkward shapes: rings and a checkerboard."""

import math

import torch
from torch import Tensor

from moopt.envs.targets.base import Target, positive


class Rings(Target):
    """Three concentric rings of radius 1, 3, 5 with masses proportional to the radius.

    The radius is a Gaussian mixture of standard deviation ``width``, the angle uniform. log Z is 0 up to the
    mass of the radius below 0 (less than 1e-20 at the default width).

    Args:
        width: Standard deviation of the radius.
    """

    modes: Tensor
    mode_weights: Tensor

    def __init__(self, width: float = 0.1) -> None:
        self.name, self.dim, self.log_z = "rings", 2, 0.0
        self._width = positive("width", width)
        self._radii = torch.tensor([1.0, 3.0, 5.0], dtype=torch.float64)
        self.mode_weights = self._radii / self._radii.sum()
        angles = torch.arange(32, dtype=torch.float64) * (2 * math.pi / 32)
        circle = torch.stack([angles.cos(), angles.sin()], -1)
        self.modes = (self._radii[:, None, None] * circle).reshape(-1, 2)

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density (n,) of points (n, 2)."""
        r: Tensor = torch.linalg.vector_norm(x, dim=-1).clamp_min(1e-12)
        parts = self.mode_weights.to(x).log() - 0.5 * ((r[:, None] - self._radii.to(x)) / self._width).square()
        radial = torch.logsumexp(parts, -1) - math.log(self._width) - 0.5 * math.log(2 * math.pi)
        return radial - r.log() - math.log(2 * math.pi)

    def mode_of(self, x: Tensor) -> Tensor:
        """Return the nearest ring (n,)."""
        r: Tensor = torch.linalg.vector_norm(x, dim=-1)
        return (r[:, None] - self._radii.to(x)).abs().argmin(-1)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n independent points (n, 2) float64."""
        ring = torch.multinomial(self.mode_weights, n, replacement=True, generator=generator)
        r = self._radii[ring] + self._width * torch.randn(n, dtype=torch.float64, generator=generator)
        angle = 2 * math.pi * torch.rand(n, dtype=torch.float64, generator=generator)
        return torch.stack([r * angle.cos(), r * angle.sin()], -1)


class Checkerboard(Target):
    """Eight 2 x 2 squares of a checkerboard on [-4, 4]^2, masses 3 : 1 in turn; zero density elsewhere."""

    modes: Tensor
    mode_weights: Tensor

    def __init__(self) -> None:
        self.name, self.dim, self.log_z = "checkerboard", 2, 0.0
        corners = [(x, y) for y, xs in ((2, (-2, 2)), (0, (-4, 0)), (-2, (-2, 2)), (-4, (-4, 0))) for x in xs]
        self._low = torch.tensor(corners, dtype=torch.float64)
        weights = torch.tensor([3.0, 1.0] * 4, dtype=torch.float64)
        self.mode_weights = weights / weights.sum()
        self.modes = self._low + 1.0

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log-density (n,) of points (n, 2): constant in each square, -inf outside."""
        low = self._low.to(x)
        inside = ((x[:, None] >= low) & (x[:, None] < low + 2)).all(-1)
        density = (inside * (self.mode_weights.to(x) / 4)).sum(-1)
        return density.log() + 0.0 * x.sum(-1)  # keeps the (zero) gradient defined for gradient samplers

    def mode_of(self, x: Tensor) -> Tensor:
        """Return the square (n,) whose centre is nearest."""
        return (x[:, None] - self.modes.to(x)).abs().amax(-1).argmin(-1)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n independent points (n, 2) float64."""
        square = torch.multinomial(self.mode_weights, n, replacement=True, generator=generator)
        return self._low[square] + 2 * torch.rand(n, 2, dtype=torch.float64, generator=generator)
