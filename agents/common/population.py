"""A population of PPO policies that collect and learn side by side in one process."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moopt.agents.common.actions import ActionAdapter
from moopt.agents.common.advantages import vector_gae
from moopt.agents.common.networks import ActingPolicies, ActorCriticShape, StackedActorCritic, StackedAdam
from moopt.agents.common.ppo import PPOBatch, PPOSettings, ppo_update, scalarize_advantages
from moopt.agents.common.statistics import ReturnScaler, RunningMoments
from moopt.envs import MOVecEnv

Array = NDArray[np.float64]


@dataclass
class PolicyState:
    """Everything that makes one trained policy: what an archive keeps and a new slot starts from.

    Attributes:
        parameters: (P,) float32, in the order of ``ActorCriticShape.parameter_shapes``.
        obs_moments: Observation statistics of one member (M = 1).
        return_moments: Return statistics of one member (M = 1).
    """

    parameters: NDArray[np.float32]
    obs_moments: RunningMoments
    return_moments: RunningMoments

    def state_dict(self) -> dict[str, Any]:
        """Return the state as nested dictionaries of arrays."""
        return {
            "parameters": self.parameters,
            "obs_moments": self.obs_moments.state_dict(),
            "return_moments": self.return_moments.state_dict(),
        }

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> "PolicyState":
        """Rebuild from ``state_dict()``."""
        return cls(
            np.asarray(state["parameters"], dtype=np.float32),
            RunningMoments.from_state_dict(state["obs_moments"]),
            RunningMoments.from_state_dict(state["return_moments"]),
        )


def acting_policies(
    states: list[PolicyState], shape: ActorCriticShape, device: torch.device | str = "cpu"
) -> ActingPolicies:
    """Return the policies of ``states`` ready to act on raw observations."""
    network = StackedActorCritic(shape, len(states), device)
    with torch.no_grad():
        network.flat.copy_(torch.from_numpy(np.stack([state.parameters for state in states])))
    mean = np.concatenate([state.obs_moments.mean for state in states])
    std = np.concatenate([state.obs_moments.std() for state in states])
    return ActingPolicies(shape, network.parameters, mean, std)


@dataclass
class Rollout:
    """T steps of M members with E environment copies each.

    Attributes:
        obs: (T + 1, M, E, D) raw observations.
        actions: (T, M, E) integers or (T, M, E, A) unclipped normalised actions.
        rewards: (T, M, E, n).
        terminated: (T, M, E).
        dones: (T, M, E), terminations and truncations.
        cut: Where episodes were truncated, rows (t, member, copy).
        cut_obs: Their last observations (K, D).
    """

    obs: NDArray[np.float32]
    actions: Tensor
    rewards: Array
    terminated: NDArray[np.bool_]
    dones: NDArray[np.bool_]
    cut: NDArray[np.intp]
    cut_obs: NDArray[np.float32]


class EpisodeReturns:
    """Discounted returns of the episodes that end in training rollouts, averaged per member.

    Args:
        num_members: Members M.
        num_envs: Environment copies E per member.
        reward_dim: Objectives n.
        gamma: Discount factor.
    """

    def __init__(self, num_members: int, num_envs: int, reward_dim: int, gamma: float) -> None:
        self.gamma = gamma
        self.running = np.zeros((num_members, num_envs, reward_dim))
        self.discount = np.ones((num_members, num_envs, 1))

    def update(self, rewards: Array, dones: NDArray[np.bool_]) -> Array:
        """Account for a rollout; return the mean return (M, n) of its finished episodes, NaN where none ended."""
        total = np.zeros((self.running.shape[0], self.running.shape[2]))
        count = np.zeros((self.running.shape[0], 1))
        for t in range(len(rewards)):
            self.running += self.discount * rewards[t]
            self.discount *= self.gamma
            if dones[t].any():
                ended = dones[t][..., None]
                total += (self.running * ended).sum(1)
                count += ended.sum(1)
                self.running[dones[t]] = 0.0
                self.discount[dones[t]] = 1.0
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


class Population:
    """M actor-critics with their environments, statistics and optimizers.

    Args:
        envs: M * E environment copies, member by member.
        shape: Sizes of an actor-critic.
        num_members: Members M.
        adapter: Between normalised and environment actions.
        learning_rate: Adam step size.
        gamma: Discount factor of training.
        gae_lambda: Trace decay.
        gamma_eval: Discount factor of the episode returns reported by ``collect``.
        max_grad_norm: Bound on each member's gradient.
        ppo: Settings of the update.
        device: Where the networks live.
    """

    def __init__(
        self,
        envs: MOVecEnv,
        shape: ActorCriticShape,
        num_members: int,
        adapter: ActionAdapter,
        *,
        learning_rate: float,
        gamma: float,
        gae_lambda: float,
        gamma_eval: float,
        max_grad_norm: float,
        ppo: PPOSettings,
        device: torch.device | str = "cpu",
    ) -> None:
        self.envs, self.shape, self.num_members, self.adapter = envs, shape, num_members, adapter
        self.num_envs = envs.num_envs // num_members
        self.gamma, self.gae_lambda, self.ppo = gamma, gae_lambda, ppo
        self.device = torch.device(device)
        self.network = StackedActorCritic(shape, num_members, self.device)
        self.optimizer = StackedAdam(self.network, learning_rate, max_grad_norm=max_grad_norm)
        self.obs_moments = RunningMoments.create(num_members, shape.obs_size)
        self.scaler = ReturnScaler(num_members, self.num_envs, shape.num_values, gamma)
        self.episodes = EpisodeReturns(num_members, self.num_envs, shape.num_values, gamma_eval)
        self._obs: NDArray[np.float32] | None = None

    def load_members(self, states: list[PolicyState]) -> None:
        """Start every slot from a policy of ``states`` (M,), with fresh optimizers and fresh episodes."""
        with torch.no_grad():
            self.network.flat.copy_(torch.from_numpy(np.stack([state.parameters for state in states])))
        rate, norm = self.optimizer.learning_rate[:, 0], self.optimizer.max_grad_norm
        self.optimizer = StackedAdam(self.network, rate, max_grad_norm=norm)
        self.obs_moments = _join([state.obs_moments for state in states])
        self.scaler.moments = _join([state.return_moments for state in states])
        self.scaler.running[:] = 0.0
        self.episodes.running[:], self.episodes.discount[:] = 0.0, 1.0
        self._obs = None

    def members(self) -> list[PolicyState]:
        """Return copies of the M policies as they are now."""
        flat = self.network.flat.detach().cpu().numpy()
        picks = [np.array([m]) for m in range(self.num_members)]
        return [
            PolicyState(flat[m].copy(), self.obs_moments.take(pick), self.scaler.moments.take(pick))
            for m, pick in enumerate(picks)
        ]

    def policies(self) -> ActingPolicies:
        """Return the M policies as they are now, ready to act on raw observations (shares the parameters)."""
        return ActingPolicies(self.shape, self.network.parameters, self.obs_moments.mean, self.obs_moments.std())

    def collect(self, num_steps: int, generator: torch.Generator) -> tuple[Rollout, Array]:
        """Step every environment copy ``num_steps`` times with the current stochastic policies.

        Returns:
            The rollout, and the mean discounted return (M, n) of the episodes that ended in it (NaN where none did).
        """
        M, E, n = self.num_members, self.num_envs, self.shape.num_values
        policies = self.policies()
        noise = policies.draw_noise((num_steps, M, E), generator)
        obs = np.empty((num_steps + 1, M, E, self.shape.obs_size), dtype=np.float32)
        obs[0] = (self.envs.reset() if self._obs is None else self._obs).reshape(M, E, -1)
        rewards = np.empty((num_steps, M, E, n))
        terminated = np.empty((num_steps, M, E), dtype=bool)
        dones = np.empty_like(terminated)
        actions, cut, cut_obs = [], [], []
        for t in range(num_steps):
            action = policies.act(torch.from_numpy(obs[t]).to(self.device), noise[t])
            actions.append(action)
            step = self.envs.step_arrays(self.adapter.to_env(action.cpu().numpy()))
            obs[t + 1] = step.obs.reshape(M, E, -1)
            rewards[t] = step.rewards.reshape(M, E, n)
            terminated[t] = step.terminated.reshape(M, E)
            dones[t] = (step.terminated | step.truncated).reshape(M, E)
            truncated = np.flatnonzero(step.truncated & ~step.terminated)
            if truncated.size:
                cut.append(np.stack([np.full_like(truncated, t), *np.divmod(truncated, E)], axis=1))
                cut_obs.append(step.final_obs[truncated])
        self._obs = obs[-1].copy()
        rollout = Rollout(
            obs,
            torch.stack(actions),
            rewards,
            terminated,
            dones,
            np.concatenate(cut) if cut else np.zeros((0, 3), dtype=np.intp),
            np.concatenate(cut_obs) if cut_obs else np.zeros((0, self.shape.obs_size), dtype=np.float32),
        )
        return rollout, self.episodes.update(rewards, dones)

    def update(
        self, rollout: Rollout, weights: Array, generator: torch.Generator, strength: Array | None = None
    ) -> None:
        """Improve every member on its rollout.

        Args:
            rollout: From ``collect``.
            weights: (M, n), each member's own over the objectives' raw rewards.
            generator: Source of the shuffles.
            strength: (M,) factors of the standardised advantages; ``None`` for 1.
        """
        M = self.num_members
        T = len(rollout.rewards)
        self.scaler.update(rollout.rewards, rollout.dones)
        scale = self.scaler.scale()
        if not self.obs_moments.count.any():
            # The untrained policy ignores its input, so normalising after the fact changes no probability.
            self._merge_obs(rollout)
        obs = self._normalize(rollout.obs.transpose(1, 0, 2, 3).reshape(M, -1, self.shape.obs_size))
        with torch.no_grad():
            advantages, returns = self._advantages(rollout, obs, scale)
            batch = PPOBatch(
                obs=obs[:, : T * self.num_envs],
                actions=rollout.actions.transpose(0, 1).flatten(1, 2),
                log_probs=torch.empty(0),
                # Where no reward was ever seen the advantage is the critic's noise, which standardising would blow up.
                advantages=scalarize_advantages(advantages, self._tensor(weights * scale * self.scaler.seen()))
                * (1.0 if strength is None else self._tensor(strength[:, None])),
                returns=returns,
            )
            batch.log_probs, _ = self.network.log_prob_entropy(batch.obs, batch.actions)
        ppo_update(self.network, self.optimizer, batch, self.ppo, generator)
        self._merge_obs(rollout)

    def set_schedule(self, learning_rate: float, entropy_coef: float) -> None:
        """Set what may change from update to update."""
        self.optimizer.set_learning_rate(learning_rate)
        self.ppo = replace(self.ppo, entropy_coef=entropy_coef)

    def start_values(self, rollout: Rollout) -> Array:
        """Return the critics' mean value (M, n), in raw rewards, of the observations that open the rollout."""
        with torch.no_grad():
            values = self.network.critic(self._normalize(rollout.obs[0])).mean(1).cpu().numpy()
        return np.asarray(values, dtype=np.float64) * self.scaler.scale()

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next ``collect`` and ``update`` depend on, except what ``set_schedule`` sets."""
        return {
            "flat": self.network.flat.detach().cpu(),
            "optimizer": self.optimizer.state_dict(),
            "obs_moments": self.obs_moments.state_dict(),
            "return_moments": self.scaler.moments.state_dict(),
            "running": self.scaler.running,
            "episodes": {"running": self.episodes.running, "discount": self.episodes.discount},
            "obs": self._obs,
            "envs": self.envs.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        with torch.no_grad():
            self.network.flat.copy_(state["flat"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.obs_moments = RunningMoments.from_state_dict(state["obs_moments"])
        self.scaler.moments = RunningMoments.from_state_dict(state["return_moments"])
        self.scaler.running = state["running"].copy()
        self.episodes.running = state["episodes"]["running"].copy()
        self.episodes.discount = state["episodes"]["discount"].copy()
        self._obs = None if state["obs"] is None else state["obs"].copy()
        self.envs.load_state_dict(state["envs"])

    def _advantages(self, rollout: Rollout, obs: Tensor, scale: Array) -> tuple[Tensor, Tensor]:
        M, E, n = self.num_members, self.num_envs, self.shape.num_values
        T = len(rollout.rewards)
        values = self.network.critic(obs).view(M, T + 1, E, n).transpose(0, 1)
        next_values = values[1:]
        if len(rollout.cut):
            next_values = next_values.clone()
            t, member, copy = (torch.from_numpy(column).to(self.device) for column in rollout.cut.T)
            next_values[t, member, copy] = self._values_at(rollout.cut[:, 1], rollout.cut_obs)
        rewards = self._tensor(rollout.rewards / scale[:, None, :])
        terminated, dones = self._tensor(rollout.terminated), self._tensor(rollout.dones)
        gae = vector_gae(rewards, values[:-1], next_values, terminated, dones, self.gamma, self.gae_lambda)
        flatten = (M, T * E, n)
        return gae.transpose(0, 1).reshape(flatten), (gae + values[:-1]).transpose(0, 1).reshape(flatten)

    def _values_at(self, member: NDArray[np.intp], obs: NDArray[np.float32]) -> Tensor:
        """Return values (K, n) of single observations (K, D) that belong to the members ``member`` (K,)."""
        rank = np.zeros(len(member), dtype=np.intp)
        for m in np.unique(member):
            rank[member == m] = np.arange((member == m).sum())
        padded = np.zeros((self.num_members, rank.max() + 1, obs.shape[1]), dtype=np.float32)
        padded[member, rank] = obs
        values = self.network.critic(self._normalize(padded))
        return values[torch.from_numpy(member).to(self.device), torch.from_numpy(rank).to(self.device)]

    def _merge_obs(self, rollout: Rollout) -> None:
        flat = rollout.obs[:-1].transpose(1, 0, 2, 3).reshape(self.num_members, -1, self.shape.obs_size)
        self.obs_moments.update(flat.astype(np.float64))

    def _normalize(self, obs: NDArray[np.float32]) -> Tensor:
        mean, std = (
            self._tensor(self.obs_moments.mean[:, None]),
            self._tensor(self.obs_moments.std()[:, None]),
        )
        return (torch.from_numpy(obs).to(self.device) - mean) / std

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.float32)).to(self.device)


def _join(parts: list[RunningMoments]) -> RunningMoments:
    return RunningMoments(
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.var for part in parts]),
        np.concatenate([part.count for part in parts]),
    )
