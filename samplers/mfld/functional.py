"""Functionals of a measure: the protocol, the autograd form, and the linear potential."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from moopt.runs.errors import MooptError


@runtime_checkable
class MeasureFunctional(Protocol):
    """A functional F of a measure mu, evaluated on the particles W (..., N, D) that carry it.

    Leading dimensions are independent ensemble members.
    """

    convex: bool
    """Whether F is convex in mu (linear interpolation of measures), as the convergence theory asks."""
    n_data: int | None
    """Rows of data that minibatches are drawn from; None if F has none."""

    def value(self, W: Tensor) -> Tensor:
        """Return F(mu_W), shape (...)."""
        ...

    def drift(self, W: Tensor, *, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Return the gradient of the first variation at each particle, shape of W.

        It equals N times the derivative of ``value`` with respect to the particle; the integrator subtracts
        it. The tensor may be a buffer that the next call overwrites.

        Args:
            W: Particles (..., N, D).
            batch: Row indices (b,), or (..., b) per member, to estimate it from; None for all rows.
            generator: Source of randomness of functionals whose drift is an unbiased estimate.
        """
        ...


class AutogradFunctional:
    """A functional given by a torch function of the particles.

    Args:
        fn: Maps particles (..., N, D) to values (...); members must not mix.
        convex: What to report about convexity in the measure.

    Raises:
        MooptError: From ``drift``, if ``fn`` returns another shape.
    """

    n_data: int | None = None

    def __init__(self, fn: Callable[[Tensor], Tensor], *, convex: bool = False) -> None:
        self.fn = fn
        self.convex = convex

    def value(self, W: Tensor) -> Tensor:
        """Return F(mu_W), shape (...)."""
        with torch.no_grad():
            return self._checked(W)

    def drift(self, W: Tensor, *, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Return N times the gradient of ``fn``, shape of W."""
        if batch is not None:
            raise MooptError("this functional has no data to draw minibatches from; use gradient='full'")
        with torch.enable_grad():
            leaf = W.detach().requires_grad_(True)
            (grad,) = torch.autograd.grad(self._checked(leaf).sum(), leaf)
        return grad.mul_(W.shape[-2])

    def _checked(self, W: Tensor) -> Tensor:
        values = self.fn(W)
        if values.shape != W.shape[:-2]:
            raise MooptError(
                f"the functional must return one value per member, shape {tuple(W.shape[:-2])}, "
                f"got {tuple(values.shape)}"
            )
        return values


class LinearPotential:
    """F(mu) = integral of V over mu: ordinary Langevin sampling of exp(-V / temperature).

    Args:
        potential: Maps points (..., D) to V (...), differentiable by torch unless ``gradient`` is given.
        gradient: Maps points (..., D) to the gradient of V, same shape; None uses autograd.
    """

    convex = True
    n_data: int | None = None

    def __init__(
        self, potential: Callable[[Tensor], Tensor], gradient: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.potential = potential
        self.gradient = gradient

    def value(self, W: Tensor) -> Tensor:
        """Return the mean potential, shape (...)."""
        with torch.no_grad():
            return self.potential(W).mean(dim=-1)

    def drift(self, W: Tensor, *, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Return the gradient of V at each particle."""
        if batch is not None:
            raise MooptError("a linear potential has no data to draw minibatches from; use gradient='full'")
        if self.gradient is not None:
            return self.gradient(W)
        with torch.enable_grad():
            leaf = W.detach().requires_grad_(True)
            (grad,) = torch.autograd.grad(self.potential(leaf).sum(), leaf)
        return grad

    def first_variation(self, W: Tensor) -> Tensor:
        """Return V at each particle, shape (..., N)."""
        with torch.no_grad():
            return self.potential(W)
