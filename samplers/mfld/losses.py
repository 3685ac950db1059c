"""Convex losses of the network output with their derivatives; outputs are (..., q, rows)."""

from typing import Protocol

import torch
from torch import Tensor

from moopt.runs.errors import MooptError, did_you_mean


class Loss(Protocol):
    """A loss l(f, y), convex in f."""

    name: str

    def value(self, out: Tensor, target: Tensor) -> Tensor:
        """Return the sum over outputs and rows, shape (...)."""
        ...

    def residual_(self, out: Tensor, target: Tensor) -> Tensor:
        """Overwrite ``out`` with dl/df and return it."""
        ...


class SquaredLoss:
    """Half the squared error."""

    name = "squared"

    def value(self, out: Tensor, target: Tensor) -> Tensor:
        """Return the summed loss."""
        return (out - target).square().sum(dim=(-2, -1)) / 2

    def residual_(self, out: Tensor, target: Tensor) -> Tensor:
        """Overwrite ``out`` with f - y."""
        return out.sub_(target)


class HuberLoss:
    """Huber loss: quadratic up to ``delta``, linear beyond (Lipschitz, as the theory asks)."""

    name = "huber"

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def value(self, out: Tensor, target: Tensor) -> Tensor:
        """Return the summed loss."""
        error = (out - target).abs_()
        near = error.clamp(max=self.delta)
        return (near * (error - near / 2)).sum(dim=(-2, -1))

    def residual_(self, out: Tensor, target: Tensor) -> Tensor:
        """Overwrite ``out`` with the clipped error."""
        return out.sub_(target).clamp_(-self.delta, self.delta)


class LogisticLoss:
    """log(1 + exp(-y f)) for labels -1 and 1."""

    name = "logistic"

    def value(self, out: Tensor, target: Tensor) -> Tensor:
        """Return the summed loss."""
        return torch.nn.functional.softplus(-target * out).sum(dim=(-2, -1))

    def residual_(self, out: Tensor, target: Tensor) -> Tensor:
        """Overwrite ``out`` with -y sigmoid(-y f)."""
        return out.mul_(target).neg_().sigmoid_().mul_(target).neg_()


class SoftmaxLoss:
    """Cross-entropy of q classes; targets are one-hot (q, rows)."""

    name = "softmax"

    def value(self, out: Tensor, target: Tensor) -> Tensor:
        """Return the summed loss."""
        return (torch.logsumexp(out, dim=-2) - (out * target).sum(dim=-2)).sum(dim=-1)

    def residual_(self, out: Tensor, target: Tensor) -> Tensor:
        """Return softmax(f) - y."""
        return out.copy_(torch.softmax(out, dim=-2)).sub_(target)


_REGRESSION: dict[str, type[SquaredLoss] | type[HuberLoss]] = {"squared": SquaredLoss, "huber": HuberLoss}


def regression_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name ("squared", "huber"), or the object itself.

    Raises:
        MooptError: If the name is unknown.
    """
    if not isinstance(loss, str):
        return loss
    if loss not in _REGRESSION:
        raise MooptError(f"unknown loss {loss!r}{did_you_mean(loss, _REGRESSION)}")
    return _REGRESSION[loss]()
