"""M actor-critics of one shape as stacked tensors: one batched matrix product per layer for all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ActionKind = Literal["discrete", "box"]


@dataclass(frozen=True)
class ActorCriticShape:
    """Sizes of an actor-critic.

    Attributes:
        obs_size: Features of an observation.
        action_kind: ``discrete`` (categorical) or ``box`` (diagonal Gaussian, state-independent deviation).
        action_size: Number of actions, or dimensions of one.
        num_values: Outputs of the critic: one per objective.
        hidden_sizes: Hidden layers of the actor, and of the critic.
    """

    obs_size: int
    action_kind: ActionKind
    action_size: int
    num_values: int
    hidden_sizes: tuple[int, ...] = (64, 64)

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter of one member, by name, in storage order."""
        shapes: dict[str, tuple[int, ...]] = {}
        for part, out in (("actor", self.action_size), ("critic", self.num_values)):
            sizes = [self.obs_size, *self.hidden_sizes, out]
            for k in range(len(sizes) - 1):
                shapes[f"{part}.{k}.weight"] = (sizes[k], sizes[k + 1])
                shapes[f"{part}.{k}.bias"] = (1, sizes[k + 1])
        if self.action_kind == "box":
            shapes["log_std"] = (1, self.action_size)
        return shapes

    @property
    def num_parameters(self) -> int:
        """Parameters of one member."""
        return sum(math.prod(shape) for shape in self.parameter_shapes().values())


def tanh_(x: Tensor) -> Tensor:
    """Replace ``x`` by its hyperbolic tangent, on a CPU as ``2 sigmoid(2 x) - 1``: a third of the time, within 2e-7."""
    return x.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0) if x.device.type == "cpu" else x.tanh_()


class _StackedMLP(torch.autograd.Function):
    """A tanh MLP of M members as one node of the graph: no gradient of the input, activations changed in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        """Return the outputs (M, B, out) of inputs (M, B, in); parameters are weight, bias, weight, bias, ..."""
        weights, biases = parameters[::2], parameters[1::2]
        inputs = [x]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            inputs.append(tanh_(torch.baddbmm(bias, inputs[-1], weight)))
        ctx.save_for_backward(*inputs, *weights)
        return torch.baddbmm(biases[-1], inputs[-1], weights[-1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Back-propagate layer by layer."""
        depth = len(ctx.saved_tensors) // 2
        inputs, weights = ctx.saved_tensors[:depth], ctx.saved_tensors[depth:]
        (grad,) = grads
        result: list[Tensor | None] = []
        for k in reversed(range(depth)):
            result[:0] = [torch.bmm(inputs[k].transpose(1, 2), grad), grad.sum(1, keepdim=True)]
            if k:
                grad = torch.ops.aten.tanh_backward(torch.bmm(grad, weights[k].transpose(1, 2)), inputs[k])
        return (None, *result)


class StackedActorCritic:
    """M independent actor-critics; member i of every result depends on member i of the parameters alone.

    All parameters live in one buffer (M, P), their gradients in another, and the layers are views of them: a
    gradient norm, an optimizer step or a copy of a member is then one operation on a matrix.

    Args:
        shape: Sizes of one member.
        num_members: Members M.
        device: Where the parameters live.
    """

    def __init__(self, shape: ActorCriticShape, num_members: int, device: torch.device | str = "cpu") -> None:
        self.shape = shape
        self.num_members = num_members
        self.flat = torch.zeros(num_members, shape.num_parameters, device=device)
        self.flat_grad = torch.zeros_like(self.flat)
        self.parameters: dict[str, Tensor] = {}
        self._gradients: list[Tensor] = []
        offset = 0
        for name, sizes in shape.parameter_shapes().items():
            length = math.prod(sizes)
            part = slice(offset, offset + length)
            self.parameters[name] = self.flat[:, part].view(num_members, *sizes).requires_grad_()
            self._gradients.append(self.flat_grad[:, part].view(num_members, *sizes))
            offset += length

    def backward(self, loss: Tensor) -> None:
        """Write the gradient of ``loss``, a scalar summed over members, into ``flat_grad``."""
        gradients = torch.autograd.grad(loss, list(self.parameters.values()))
        for target, gradient in zip(self._gradients, gradients, strict=True):
            target.copy_(gradient)

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw fresh parameters: orthogonal with gain sqrt(2), output .01 (actor) and 1 (critic), zero biases."""
        last = len(self.shape.hidden_sizes)
        for name, sizes in self.shape.parameter_shapes().items():
            if not name.endswith("weight"):
                self.parameters[name].zero_()
                continue
            part, layer, _ = name.split(".")
            gain = (0.01 if part == "actor" else 1.0) if int(layer) == last else math.sqrt(2.0)
            for m in range(self.num_members):
                weight = torch.empty(sizes[1], sizes[0])
                torch.nn.init.orthogonal_(weight, gain, generator=generator)
                self.parameters[name][m].copy_(weight.T)

    @torch.no_grad()
    def widen(self, temperature: float) -> None:
        """Widen every action distribution: divide logits, or multiply standard deviations, by ``temperature``."""
        if self.shape.action_kind == "box":
            self.parameters["log_std"].add_(math.log(temperature))
            return
        last = len(self.shape.hidden_sizes)
        for kind in ("weight", "bias"):
            self.parameters[f"actor.{last}.{kind}"].div_(temperature)

    def actor(self, obs: Tensor) -> Tensor:
        """Return logits or action means (M, B, A) of normalised observations (M, B, D)."""
        return self._mlp("actor", obs)

    def critic(self, obs: Tensor) -> Tensor:
        """Return values (M, B, n) of normalised observations (M, B, D)."""
        return self._mlp("critic", obs)

    def log_prob_entropy(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (M, B) of ``actions`` and the entropy (M, B) of the policy at ``obs``.

        Args:
            obs: (M, B, D) normalised observations.
            actions: (M, B) integer actions, or (M, B, A) unclipped normalised ones.
        """
        out = self.actor(obs)
        if self.shape.action_kind == "discrete":
            log_p = torch.log_softmax(out, dim=-1)
            chosen = log_p.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
            return chosen, -(log_p.exp() * log_p).sum(-1)
        log_std = self.parameters["log_std"]
        normal = -0.5 * ((actions - out) * torch.exp(-log_std)).square() - log_std - 0.5 * math.log(2 * math.pi)
        entropy = (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)
        return normal.sum(-1), entropy.expand(out.shape[:2])

    def _mlp(self, part: str, x: Tensor) -> Tensor:
        layers = range(len(self.shape.hidden_sizes) + 1)
        named = [self.parameters[f"{part}.{k}.{kind}"] for k in layers for kind in ("weight", "bias")]
        y: Tensor = _StackedMLP.apply(x, *named)  # type: ignore[no-untyped-call]
        return y


class StackedAdam:
    """Adam on the rows of a parameter matrix: M independent optimizers, each with its own step size.

    Args:
        network: The network whose ``flat`` and ``flat_grad`` are used.
        learning_rate: (M,) or a float.
        eps: Added to the root of the second moment.
        max_grad_norm: Bound on the gradient norm of each member.
    """

    def __init__(
        self,
        network: StackedActorCritic,
        learning_rate: float | Tensor,
        *,
        eps: float = 1e-5,
        max_grad_norm: float = 0.5,
    ) -> None:
        self.network = network
        self.eps = eps
        self.max_grad_norm = max_grad_norm
        self.first = torch.zeros_like(network.flat)
        self.second = torch.zeros_like(network.flat)
        self.steps = 0
        self.set_learning_rate(learning_rate)

    def set_learning_rate(self, learning_rate: float | Tensor) -> None:
        """Set the step size, a float for all or (M,) one per member."""
        rate = torch.as_tensor(learning_rate, dtype=self.first.dtype, device=self.first.device)
        self.learning_rate = rate.expand(self.network.num_members).unsqueeze(1)

    @torch.no_grad()
    def step(self, beta1: float = 0.9, beta2: float = 0.999) -> None:
        """Clip each member's gradient to ``max_grad_norm`` and take one Adam step (Kingma & Ba 2015, alg. 1)."""
        grad = self.network.flat_grad
        norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
        grad.mul_((self.max_grad_norm / (norm + 1e-6)).clamp_(max=1.0))
        self.steps += 1
        self.first.lerp_(grad, 1.0 - beta1)
        self.second.mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
        root = (self.second / (1.0 - beta2**self.steps)).sqrt_().add_(self.eps)
        rate = self.learning_rate / (1.0 - beta1**self.steps)
        self.network.flat.sub_(self.first.div(root).mul_(rate))

    def state_dict(self) -> dict[str, Tensor | int]:
        """Return the moments and the step count."""
        return {"first": self.first.cpu(), "second": self.second.cpu(), "steps": self.steps}

    def load_state_dict(self, state: dict[str, Tensor | int]) -> None:
        """Restore what ``state_dict`` returned."""
        self.first.copy_(torch.as_tensor(state["first"]))
        self.second.copy_(torch.as_tensor(state["second"]))
        self.steps = int(state["steps"])


class ActingPolicies:
    """Frozen actors that take raw observations: the normalisation is folded into the first layer.

    Args:
        shape: Sizes of one member.
        parameters: Parameters by name, each (M, ...), as in ``StackedActorCritic.parameters``.
        obs_mean: (M, D).
        obs_std: (M, D).
    """

    def __init__(
        self,
        shape: ActorCriticShape,
        parameters: dict[str, Tensor],
        obs_mean: NDArray[np.float64],
        obs_std: NDArray[np.float64],
    ) -> None:
        self.shape = shape
        last = len(shape.hidden_sizes)
        self.layers = [
            (parameters[f"actor.{k}.weight"].detach(), parameters[f"actor.{k}.bias"].detach()) for k in range(last + 1)
        ]
        weight, bias = self.layers[0]
        inverse = torch.as_tensor(1.0 / obs_std, dtype=weight.dtype, device=weight.device)
        shift = torch.as_tensor(obs_mean / obs_std, dtype=weight.dtype, device=weight.device)
        self.layers[0] = (weight * inverse.unsqueeze(-1), bias - torch.bmm(shift.unsqueeze(1), weight))
        self.std = parameters["log_std"].detach().exp() if shape.action_kind == "box" else None

    @property
    def num_members(self) -> int:
        """Members M."""
        return self.layers[0][0].shape[0]

    def take(self, index: Sequence[int]) -> "ActingPolicies":
        """Return the members ``index`` alone."""
        picked = object.__new__(ActingPolicies)
        picked.shape = self.shape
        picked.layers = [(weight[index], bias[index]) for weight, bias in self.layers]
        picked.std = None if self.std is None else self.std[index]
        return picked

    def output(self, obs: Tensor) -> Tensor:
        """Return logits or action means (M, B, A) of raw observations (M, B, D)."""
        x = obs
        for k, (weight, bias) in enumerate(self.layers):
            x = torch.baddbmm(bias, x, weight)
            if k + 1 < len(self.layers):
                x = tanh_(x)
        return x

    def act(self, obs: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return actions of raw observations (M, B, D): (M, B) integers, or (M, B, A) unclipped normalised ones.

        Args:
            obs: (M, B, D).
            noise: From ``draw_noise``, (M, B, A); ``None`` takes the most likely action.
        """
        out = self.output(obs)
        if self.std is None:
            return (out if noise is None else out + noise).argmax(-1)
        return out if noise is None else out + self.std * noise

    def draw_noise(self, sizes: Sequence[int], generator: torch.Generator) -> Tensor:
        r"""Return noise (\*sizes, A) for ``act``: standard normal, or Gumbel so that an argmax samples the softmax."""
        full = (*sizes, self.shape.action_size)
        if self.std is not None:
            return torch.randn(full, generator=generator, device=generator.device)
        uniform = torch.rand(full, generator=generator, device=generator.device)
        return -torch.log(-torch.log(uniform.clamp_(1e-20, 1.0 - 1e-7)))
