"""The phi^4 chain: a lattice field with two wells and an exact oracle by transfer matrices."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import simpson
from scipy.optimize import minimize
from torch import Tensor

from moopt.envs.targets.base import Target, positive, whole

_HALF_WIDTH = 3.0
_GRID = 1201  # the half lines hold an even number of intervals, as Simpson's rule wants


class Phi4(Target):
    r"""The one-dimensional lattice phi^4 model with field b, fixed to 0 at both ends.

    ``-log_prob(x) / beta = a d sum_i (x_{i+1} - x_i)^2 / 2 + sum_i [(1 - x_i^2)^2 / 4 + b x_i] / (a d)``.

    Neighbours only interact, so integrating one site after the other on a grid (transfer matrices) gives
    log Z and P(x_{d/2} < 0) to about 1e-8. Mode 0 is ``x_{d/2} < 0``.

    Args:
        dim: Number of sites d.
        b: External field; 0 gives two equal modes, positive values favour the negative well.
        a: Lattice constant of the coupling.
        beta: Inverse temperature.
    """

    def __init__(self, dim: int = 32, b: float = 0.0, a: float = 0.1, beta: float = 20.0) -> None:
        self.name = "phi4"
        self.dim = whole("dim", dim, 2)
        self.b, self.a, self.beta = float(b), positive("a", a), positive("beta", beta)
        self._coupling = self.a * self.dim
        self.log_z, below = self._oracle()
        self.mode_weights = torch.tensor([below, 1 - below], dtype=torch.float64)
        self.modes = self._minima()

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the unnormalised log-density (n,) of fields (n, d)."""
        padded = torch.nn.functional.pad(x, (1, 1))
        bonds = self._coupling * padded.diff(dim=-1).square().sum(-1) / 2
        sites = ((1 - x.square()).square() / 4 + self.b * x).sum(-1) / self._coupling
        return -self.beta * (bonds + sites)

    def mode_of(self, x: Tensor) -> Tensor:
        """Return 0 where the middle site is negative, else 1."""
        return (x[:, self.dim // 2] >= 0).long()

    def _oracle(self) -> tuple[float, float]:
        """Return log Z and P(x_{d/2} < 0)."""
        grid = np.linspace(-_HALF_WIDTH, _HALF_WIDTH, _GRID)
        step = grid[1] - grid[0]
        c = self._coupling
        site = np.exp(-self.beta * ((1 - grid**2) ** 2 / 4 + self.b * grid) / c)
        edge = np.exp(-self.beta * c * grid**2 / 2)
        bond = step * np.exp(-self.beta * c * (grid[:, None] - grid[None]) ** 2 / 2)
        middle = self.dim // 2
        left, log_left = _pass(bond, edge * site, site, middle)
        right, log_right = _pass(bond, edge * site, site, self.dim - 1 - middle)
        # ``left`` and ``right`` both hold the factor of the middle site.
        density = left * right / site
        half = _GRID // 2
        below, above = simpson(density[: half + 1], dx=step), simpson(density[half:], dx=step)
        return math.log(below + above) + log_left + log_right, float(below / (below + above))

    def _minima(self) -> Tensor:
        """Return the two minima of the energy (2, d): the negative well, the positive well."""

        def energy(v: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            x = torch.tensor(v[None], requires_grad=True)
            value = -self.log_prob(x).sum()
            (gradient,) = torch.autograd.grad(value, x)
            return value.item(), gradient[0].numpy()

        options = {"maxiter": 5000, "gtol": 1e-9, "ftol": 1e-15}
        found = [
            minimize(energy, np.full(self.dim, s), jac=True, method="L-BFGS-B", options=options).x for s in (-1.0, 1.0)
        ]
        return torch.from_numpy(np.stack(found))


def _pass(
    bond: NDArray[np.float64], start: NDArray[np.float64], site: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.float64], float]:
    """Carry a message over ``steps`` bonds; return it scaled to maximum 1 and the log of the scale."""
    message, log_scale = start, 0.0
    for _ in range(steps):
        message = (bond @ message) * site
        top = message.max()
        message, log_scale = message / top, log_scale + math.log(top)
    return message, log_scale
