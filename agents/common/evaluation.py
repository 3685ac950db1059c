"""Evaluation of policies on whole episodes, apart from training."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from moopt.agents.common.actions import ActionAdapter
from moopt.agents.common.networks import ActingPolicies
from moopt.envs import MOVecEnv

Array = NDArray[np.float64]


@dataclass
class Evaluation:
    """Episode returns of M policies over K episodes each.

    Attributes:
        discounted: (M, K, n) returns under the evaluation discount.
        undiscounted: (M, K, n) plain reward sums.
        lengths: (M, K) steps of each episode.
    """

    discounted: Array
    undiscounted: Array
    lengths: NDArray[np.int64]

    @property
    def returns(self) -> Array:
        """Mean discounted return (M, n)."""
        return np.asarray(self.discounted.mean(1))

    @property
    def steps(self) -> int:
        """Environment steps taken."""
        return int(self.lengths.sum())


def evaluate_policies(
    policies: ActingPolicies,
    envs: MOVecEnv,
    adapter: ActionAdapter,
    *,
    gamma: float,
    generator: torch.Generator | None = None,
) -> Evaluation:
    """Run one fresh episode in every environment copy.

    Args:
        policies: M policies.
        envs: M * K environment copies, policy by policy; their next episodes are used.
        adapter: Between network and environment actions.
        gamma: Discount factor of the returns.
        generator: Source of action noise; ``None`` takes each policy's most likely action.

    Returns:
        The returns and lengths of the M * K episodes; no step is taken beyond an episode's end.
    """
    M, K = policies.num_members, envs.num_envs // policies.num_members
    device = policies.layers[0][0].device
    obs = envs.reset()
    discounted = np.zeros((envs.num_envs, envs.reward_dim))
    undiscounted = np.zeros_like(discounted)
    lengths = np.zeros(envs.num_envs, dtype=np.int64)
    running = np.ones(envs.num_envs, dtype=bool)
    discount = 1.0
    while running.any():
        noise = None if generator is None else policies.draw_noise((M, K), generator)
        raw = torch.from_numpy(obs.reshape(M, K, -1)).to(device)
        with torch.no_grad():
            actions = adapter.to_env(policies.act(raw, noise).cpu().numpy())
        step = envs.step_arrays(actions, active=running)
        discounted[running] += discount * step.rewards[running]
        undiscounted[running] += step.rewards[running]
        lengths += running
        discount *= gamma
        running &= ~(step.terminated | step.truncated)
        obs = step.obs
    shape = (M, K, envs.reward_dim)
    return Evaluation(discounted.reshape(shape), undiscounted.reshape(shape), lengths.reshape(M, K))
