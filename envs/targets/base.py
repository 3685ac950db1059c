"""What every sampling target offers: a batched log-density and, where known, the exact answers."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from moopt.runs.errors import MooptError


class Target(ABC):
    """A density on R^d, known up to a constant, with its exact log Z and mode masses where they are known.

    Attributes:
        name: The name in ``moopt list targets``.
        dim: Dimension d.
        log_z: Exact log of the normalising constant, or None when it is not known.
        modes: Starting points (S, d) float64, at least one in each mode, or None when they must be searched.
        mode_weights: Exact masses (M,) of the regions told apart by :meth:`mode_of`, or None.
        mode_variances: Exact variances (M, d) inside each mode, or None.
    """

    name: str
    dim: int
    log_z: float | None = None
    modes: Tensor | None = None
    mode_weights: Tensor | None = None
    mode_variances: Tensor | None = None

    @abstractmethod
    def log_prob(self, x: Tensor) -> Tensor:
        """Return the unnormalised log-density (n,) of points (n, d), in the dtype and on the device of x."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return :meth:`log_prob`."""
        return self.log_prob(x)

    @property
    def n_modes(self) -> int:
        """Number M of regions told apart by :meth:`mode_of`."""
        return 1 if self.mode_weights is None else len(self.mode_weights)

    def mode_of(self, x: Tensor) -> Tensor:
        """Return the index (n,) of the mode each point (n, d) belongs to; one region unless overridden."""
        return torch.zeros(len(x), dtype=torch.long, device=x.device)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n independent points (n, d) float64.

        Raises:
            MooptError: If the target has no direct sampler.
        """
        raise MooptError(f"target {self.name!r} has no direct sampler")

    def __repr__(self) -> str:
        """Class and dimension."""
        return f"{type(self).__name__}(dim={self.dim})"


def whole(name: str, value: object, low: int) -> int:
    """Return ``value`` as an integer of at least ``low``; raise otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or int(value) != value or value < low:
        raise MooptError(f"{name} must be an integer >= {low}, got {value!r}")
    return int(value)


def positive(name: str, value: object) -> float:
    """Return ``value`` as a positive finite float; raise otherwise."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
    if not 0 < number < float("inf"):
        raise MooptError(f"{name} must be a positive number, got {value!r}")
    return number
