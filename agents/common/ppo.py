"""Proximal policy optimization of M stacked actor-critics at once, on vector advantages."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from moopt.agents.common.networks import StackedActorCritic, StackedAdam


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """Settings of the clipped update (Schulman et al. 2017)."""

    clip_range: float = 0.2
    num_epochs: int = 10
    batch_size: int = 128
    entropy_coef: float = 0.0
    value_coef: float = 0.5


@dataclass
class PPOBatch:
    """A rollout of each of M members, flattened to B samples.

    Attributes:
        obs: (M, B, D), normalised.
        actions: (M, B) integers or (M, B, A).
        log_probs: (M, B), under the policy that acted.
        advantages: (M, B), already scalarised and standardised.
        returns: (M, B, n), targets of the vector critic.
    """

    obs: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor


def scalarize_advantages(advantages: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted and standardised advantage (M, B).

    Args:
        advantages: (M, B, n).
        weights: (M, n), each member's weight per objective.
    """
    scalar = torch.bmm(advantages, weights.unsqueeze(-1)).squeeze(-1)
    std, mean = torch.std_mean(scalar, dim=1, keepdim=True)
    return (scalar - mean) / (std + 1e-5)


def ppo_loss(network: StackedActorCritic, batch: PPOBatch, settings: PPOSettings) -> Tensor:
    """Return the loss of every member (M,): clipped surrogate, value error, entropy bonus (eq. 7 and 9)."""
    log_prob, entropy = network.log_prob_entropy(batch.obs, batch.actions)
    ratio = torch.exp(log_prob - batch.log_probs)
    clipped = ratio.clamp(1.0 - settings.clip_range, 1.0 + settings.clip_range)
    surrogate = torch.minimum(ratio * batch.advantages, clipped * batch.advantages).mean(1)
    value_error = (network.critic(batch.obs) - batch.returns).square().mean((1, 2))
    loss = settings.value_coef * value_error - surrogate
    return loss - settings.entropy_coef * entropy.mean(1) if settings.entropy_coef else loss


def ppo_update(
    network: StackedActorCritic,
    optimizer: StackedAdam,
    batch: PPOBatch,
    settings: PPOSettings,
    generator: torch.Generator,
) -> None:
    """Improve all members on their own rollouts: ``num_epochs`` passes over shuffled minibatches.

    The members' losses are summed, so each member's gradient is its own; the shuffle is shared.

    Args:
        network: The M members, changed in place.
        optimizer: Their optimizers.
        batch: Their rollouts.
        settings: Clipping, passes, minibatch size, coefficients.
        generator: Source of the shuffles.
    """
    for _ in range(settings.num_epochs):
        for part in _minibatches(batch, settings.batch_size, generator):
            network.backward(ppo_loss(network, part, settings).sum())
            optimizer.step()


def _minibatches(batch: PPOBatch, size: int, generator: torch.Generator) -> Iterator[PPOBatch]:
    total = batch.obs.shape[1]
    order = torch.randperm(total, generator=generator, device=generator.device)
    fields = [field[:, order] for field in vars(batch).values()]
    for start in range(0, total, size):
        # A remainder of a few samples would take a full-size step on noise: it joins no minibatch.
        if start and total - start < size // 2:
            return
        yield PPOBatch(*(field[:, start : start + size] for field in fields))
