"""Activations with their slopes, computed in place on the (rows x particles) buffers that dominate the cost."""

import math
from typing import Protocol

import torch
from torch import Tensor

from moopt.runs.errors import MooptError, did_you_mean


class Activation(Protocol):
    """An activation phi. The in-place pair shares two buffers: ``value_`` first, then ``slope_``."""

    name: str
    needs_spare: bool
    """Whether ``spare`` must be a second buffer."""

    def __call__(self, z: Tensor) -> Tensor:
        """Return phi(z), differentiable by autograd."""
        ...

    def value_(self, z: Tensor, spare: Tensor) -> Tensor:
        """Overwrite ``z`` with phi(z) and return it."""
        ...

    def slope_(self, value: Tensor, spare: Tensor) -> Tensor:
        """Return phi' in one of the buffers, given what ``value_`` left in both."""
        ...


class Relu:
    """max(0, z)."""

    name = "relu"
    needs_spare = False

    def __call__(self, z: Tensor) -> Tensor:
        """Return phi(z)."""
        return torch.relu(z)

    def value_(self, z: Tensor, spare: Tensor) -> Tensor:
        """Overwrite ``z`` with phi(z)."""
        return z.relu_()

    def slope_(self, value: Tensor, spare: Tensor) -> Tensor:
        """Overwrite phi(z) with phi'(z): the sign of max(0, z) is the indicator of z > 0."""
        return value.sign_()


class Tanh:
    """Hyperbolic tangent."""

    name = "tanh"
    needs_spare = False

    def __call__(self, z: Tensor) -> Tensor:
        """Return phi(z)."""
        return torch.tanh(z)

    def value_(self, z: Tensor, spare: Tensor) -> Tensor:
        """Overwrite ``z`` with phi(z)."""
        return z.tanh_()

    def slope_(self, value: Tensor, spare: Tensor) -> Tensor:
        """Overwrite phi(z) with 1 - phi(z)^2."""
        return torch.addcmul(value.new_ones(()), value, value, value=-1.0, out=value)


class SmoothClipped:
    """Smooth clipped ReLU, ``[softplus(k z) - softplus(k (z - c))] / k``: bounded by 0 and c, smooth.

    Args:
        sharpness: k, larger is nearer to the clipped ReLU.
        cap: c, the upper bound.
    """

    name = "sclip"
    needs_spare = True

    def __init__(self, sharpness: float = 4.0, cap: float = 4.0) -> None:
        if not (sharpness > 0 and cap > 0 and sharpness * cap <= 50):
            raise MooptError(f"sclip needs sharpness, cap > 0 and their product <= 50, got {sharpness}, {cap}")
        self.sharpness, self.cap = float(sharpness), float(cap)

    def __call__(self, z: Tensor) -> Tensor:
        """Return phi(z)."""
        k, c = self.sharpness, self.cap
        zero = z.new_zeros(())
        return (torch.logaddexp(k * z, zero) - torch.logaddexp(k * (z - c), zero)) / k

    def value_(self, z: Tensor, spare: Tensor) -> Tensor:
        """Overwrite ``z`` with phi(z) and ``spare`` with phi'(z), from one exponential."""
        k, c = self.sharpness, self.cap
        # Beyond the cap by 30 / k the function is flat to rounding, so the exponential cannot overflow.
        z.mul_(k).clamp_(max=k * c + 30.0).exp_()
        torch.mul(z, math.exp(-k * c), out=spare)
        first, second = z.log1p(), spare.log1p()
        z.div_(1.0 + z)
        spare.div_(1.0 + spare)
        torch.sub(z, spare, out=spare)
        return torch.sub(first, second, out=z).div_(k)

    def slope_(self, value: Tensor, spare: Tensor) -> Tensor:
        """Return the buffer that ``value_`` filled."""
        return spare


_NAMED: dict[str, type[Relu] | type[Tanh] | type[SmoothClipped]] = {"relu": Relu, "tanh": Tanh, "sclip": SmoothClipped}


def as_activation(activation: "str | Activation") -> Activation:
    """Return the activation of a name ("relu", "tanh", "sclip"), or the object itself.

    Raises:
        MooptError: If the name is unknown.
    """
    if not isinstance(activation, str):
        return activation
    if activation not in _NAMED:
        raise MooptError(f"unknown activation {activation!r}{did_you_mean(activation, _NAMED)}")
    return _NAMED[activation]()
