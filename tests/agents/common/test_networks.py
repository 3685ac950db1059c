import math

import numpy as np
import pytest
import torch
from torch import nn

from moopt.agents.common.networks import ActingPolicies, ActorCriticShape, StackedActorCritic, StackedAdam, tanh_
from moopt.agents.common.ppo import PPOBatch, PPOSettings, ppo_loss, ppo_update, scalarize_advantages

BOX = ActorCriticShape(5, "box", 3, 2, (16, 8))
DISCRETE = ActorCriticShape(5, "discrete", 4, 3, (16,))


def make_network(shape, members, seed=0):
    network = StackedActorCritic(shape, members)
    network.initialize(torch.Generator().manual_seed(seed))
    return network


def make_batch(network, size, seed=1):
    shape, M = network.shape, network.num_members
    g = torch.Generator().manual_seed(seed)
    obs = torch.randn(M, size, shape.obs_size, generator=g)
    if shape.action_kind == "discrete":
        actions = torch.randint(0, shape.action_size, (M, size), generator=g)
    else:
        actions = torch.randn(M, size, shape.action_size, generator=g)
    log_probs = network.log_prob_entropy(obs, actions)[0].detach() + 0.3 * torch.randn(M, size, generator=g)
    advantages = torch.randn(M, size, generator=g)
    returns = torch.randn(M, size, shape.num_values, generator=g)
    return PPOBatch(obs, actions, log_probs, advantages, returns)


class PlainActorCritic(nn.Module):
    """An ordinary torch actor-critic: the slow reference of one stacked member."""

    def __init__(self, network, member):
        super().__init__()
        shape = network.shape
        self.kind = shape.action_kind
        self.actor = self._copy(network, member, "actor")
        self.critic = self._copy(network, member, "critic")
        if self.kind == "box":
            self.log_std = nn.Parameter(network.parameters["log_std"][member, 0].detach().clone())

    @staticmethod
    def _copy(network, member, part):
        layers = []
        for k in range(len(network.shape.hidden_sizes) + 1):
            weight = network.parameters[f"{part}.{k}.weight"][member].detach()
            layer = nn.Linear(*weight.shape)
            layer.weight.data.copy_(weight.T)
            layer.bias.data.copy_(network.parameters[f"{part}.{k}.bias"][member, 0].detach())
            layers += [layer, nn.Tanh()]
        return nn.Sequential(*layers[:-1])

    def distribution(self, obs):
        if self.kind == "discrete":
            return torch.distributions.Categorical(logits=self.actor(obs))
        return torch.distributions.Independent(torch.distributions.Normal(self.actor(obs), self.log_std.exp()), 1)


def plain_ppo_loss(model, batch, member, settings):
    distribution = model.distribution(batch.obs[member])
    ratio = (distribution.log_prob(batch.actions[member]) - batch.log_probs[member]).exp()
    advantage = batch.advantages[member]
    clipped = torch.clamp(ratio, 1 - settings.clip_range, 1 + settings.clip_range)
    policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
    value_loss = nn.functional.mse_loss(model.critic(batch.obs[member]), batch.returns[member])
    return policy_loss + settings.value_coef * value_loss - settings.entropy_coef * distribution.entropy().mean()


@pytest.mark.parametrize("shape", [BOX, DISCRETE])
def test_one_stacked_step_is_a_plain_torch_ppo_step(shape):
    network = make_network(shape, 1)
    settings = PPOSettings(entropy_coef=0.02)
    batch = make_batch(network, 64)
    model = PlainActorCritic(network, 0)
    plain = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-5)
    stacked = StackedAdam(network, 3e-3, max_grad_norm=0.5)
    for _ in range(5):
        loss = ppo_loss(network, batch, settings).sum()
        expected = plain_ppo_loss(model, batch, 0, settings)
        assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
        network.backward(loss)
        stacked.step()
        plain.zero_grad()
        expected.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        plain.step()
    reference = make_network(shape, 1)
    for name, value in network.parameters.items():
        part, *rest = name.split(".")
        if part == "log_std":
            target = model.log_std[None]
        else:
            layer = getattr(model, part)[2 * int(rest[0])]
            target = layer.weight.T if rest[1] == "weight" else layer.bias[None]
        torch.testing.assert_close(value[0], target, atol=1e-6, rtol=1e-5)
    moved = (network.flat - reference.flat).abs().max()
    assert moved > 1e-3


@pytest.mark.parametrize("shape", [BOX, DISCRETE])
def test_stacked_members_learn_as_if_alone(shape):
    together = make_network(shape, 3)
    batch = make_batch(together, 50)
    rates = torch.tensor([1e-3, 5e-3, 2e-4])
    alone = []
    for m in range(3):
        single = StackedActorCritic(shape, 1)
        single.flat.data.copy_(together.flat[m : m + 1])
        part = PPOBatch(*(field[m : m + 1] for field in vars(batch).values()))
        optimizer = StackedAdam(single, rates[m : m + 1], max_grad_norm=0.1)
        ppo_update(
            single,
            optimizer,
            part,
            PPOSettings(num_epochs=3, batch_size=20),
            torch.Generator().manual_seed(7),
        )
        alone.append(single.flat)
    optimizer = StackedAdam(together, rates, max_grad_norm=0.1)
    ppo_update(together, optimizer, batch, PPOSettings(num_epochs=3, batch_size=20), torch.Generator().manual_seed(7))
    torch.testing.assert_close(together.flat, torch.cat(alone), atol=1e-6, rtol=1e-4)


def test_initialisation_is_orthogonal_with_the_stated_gains():
    network = make_network(BOX, 4)
    first = network.parameters["actor.0.weight"][2]
    torch.testing.assert_close(first @ first.T, 2.0 * torch.eye(5), atol=1e-5, rtol=0)
    last = network.parameters["actor.2.weight"][1]
    torch.testing.assert_close(last.T @ last, 1e-4 * torch.eye(3), atol=1e-8, rtol=0)
    assert not torch.equal(network.flat[0], network.flat[1])


@pytest.mark.parametrize("shape", [BOX, DISCRETE])
def test_acting_policies_fold_the_normalisation(shape):
    network = make_network(shape, 3)
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(3, 5)), rng.uniform(0.5, 2.0, size=(3, 5))
    raw = torch.from_numpy(rng.normal(size=(3, 7, 5)).astype(np.float32))
    normalised = (raw - torch.from_numpy(mean)[:, None]) / torch.from_numpy(std)[:, None]
    policies = ActingPolicies(shape, network.parameters, mean, std)
    torch.testing.assert_close(policies.output(raw), network.actor(normalised.float()), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(policies.take([2]).output(raw[2:]), policies.output(raw)[2:], atol=1e-6, rtol=0)


def test_discrete_noise_samples_the_softmax():
    network = make_network(DISCRETE, 1)
    network.parameters["actor.1.weight"].data.mul_(500.0)
    policies = ActingPolicies(DISCRETE, network.parameters, np.zeros((1, 5)), np.ones((1, 5)))
    obs = torch.randn(1, 1, 5, generator=torch.Generator().manual_seed(3)).expand(1, 40_000, 5)
    noise = policies.draw_noise((1, 40_000), torch.Generator().manual_seed(0))
    share = torch.bincount(policies.act(obs, noise)[0], minlength=4) / 40_000
    torch.testing.assert_close(share, policies.output(obs[:, :1])[0, 0].softmax(-1), atol=0.01, rtol=0)
    assert share.max() - share.min() > 0.1


def test_box_noise_has_the_policy_deviation():
    network = make_network(BOX, 2)
    network.parameters["log_std"].data.copy_(torch.tensor([[[-1.0, 0.0, 0.5]], [[0.1, 0.2, 0.3]]]))
    policies = ActingPolicies(BOX, network.parameters, np.zeros((2, 5)), np.ones((2, 5)))
    obs = torch.zeros(2, 20_000, 5)
    noise = policies.draw_noise((2, 20_000), torch.Generator().manual_seed(0))
    std = policies.act(obs, noise).std(1)
    torch.testing.assert_close(std, network.parameters["log_std"][:, 0].exp(), atol=0.0, rtol=0.03)


def test_scalarised_advantage_is_standardised_per_member():
    advantages = torch.randn(3, 500, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 50.0]) + 4.0
    weights = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    scalar = scalarize_advantages(advantages, weights)
    torch.testing.assert_close(scalar.mean(1), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(scalar.std(1), torch.ones(3), atol=1e-3, rtol=0)
    assert torch.corrcoef(torch.stack([scalar[2], advantages[2, :, 1]]))[0, 1] > 0.999


def test_entropy_is_exact():
    network = make_network(BOX, 1)
    _, entropy = network.log_prob_entropy(torch.zeros(1, 2, 5), torch.zeros(1, 2, 3))
    assert entropy[0, 0].item() == pytest.approx(3 * 0.5 * math.log(2 * math.pi * math.e), rel=1e-6)


def test_fast_tanh_is_tanh():
    x = torch.linspace(-30.0, 30.0, 20_001)
    torch.testing.assert_close(tanh_(x.clone()), torch.tanh(x), rtol=0.0, atol=2e-7)


@pytest.mark.parametrize("part", ["actor", "critic"])
def test_gradients_of_the_stacked_mlp_are_those_of_autograd(part):
    network = StackedActorCritic(BOX, 3)
    network.initialize(torch.Generator().manual_seed(0))
    obs = torch.randn(3, 7, 5, generator=torch.Generator().manual_seed(1))
    names = [name for name in network.parameters if name.startswith(part)]
    leaves = [network.parameters[name] for name in names]
    x = obs
    for k in range(3):
        x = torch.baddbmm(network.parameters[f"{part}.{k}.bias"], x, network.parameters[f"{part}.{k}.weight"])
        x = torch.tanh(x) if k < 2 else x
    expected = torch.autograd.grad(x.square().sum(), leaves)
    actual = torch.autograd.grad(getattr(network, part)(obs).square().sum(), leaves)
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
