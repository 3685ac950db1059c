"""Running moments of stacked streams, kept as plain NumPy arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_STD_FLOOR = 1e-2
"""Smallest standard deviation an observation is divided by: a feature that was constant so far and then moves must
not explode, since observations are not clipped (clipping could not be folded into an exported first layer)."""


@dataclass
class RunningMoments:
    """Mean and variance of M independent streams of D features, merged batch by batch (Chan et al. 1983).

    Attributes:
        mean: (M, D).
        var: (M, D), population variance.
        count: (M, 1), observations seen.
    """

    mean: Array
    var: Array
    count: Array

    @classmethod
    def create(cls, num_members: int, size: int) -> "RunningMoments":
        """Start from zero mean, unit variance and no observations."""
        return cls(np.zeros((num_members, size)), np.ones((num_members, size)), np.zeros((num_members, 1)))

    def update(self, batch: Array) -> None:
        """Merge a batch (M, B, D) into the moments."""
        n = batch.shape[1]
        batch_mean = batch.mean(axis=1)
        total = self.count + n
        delta = batch_mean - self.mean
        scatter = self.var * self.count + batch.var(axis=1) * n + delta**2 * self.count * n / total
        self.mean = self.mean + delta * n / total
        self.var = scatter / total
        self.count = total

    def std(self, floor: float = _STD_FLOOR) -> Array:
        """Return the standard deviation (M, D), at least ``floor``."""
        return np.maximum(np.sqrt(self.var), floor)

    def take(self, index: NDArray[np.intp]) -> "RunningMoments":
        """Return copies of the streams ``index`` (K,), repeats allowed."""
        return RunningMoments(self.mean[index].copy(), self.var[index].copy(), self.count[index].copy())

    def state_dict(self) -> dict[str, Array]:
        """Return the arrays by name."""
        return {"mean": self.mean, "var": self.var, "count": self.count}

    @classmethod
    def from_state_dict(cls, state: dict[str, Array]) -> "RunningMoments":
        """Rebuild from ``state_dict()``."""
        return cls(state["mean"].copy(), state["var"].copy(), state["count"].copy())


class ReturnScaler:
    """Per-objective reward scale of M members: the running standard deviation of the discounted reward sum.

    Rewards are divided by it and never shifted, so the order of policies under any preference is kept.

    Args:
        num_members: Members M.
        num_envs: Environment copies E per member.
        reward_dim: Objectives n.
        gamma: Discount factor of the running sum.
    """

    def __init__(self, num_members: int, num_envs: int, reward_dim: int, gamma: float) -> None:
        self.gamma = gamma
        self.moments = RunningMoments.create(num_members, reward_dim)
        self.running = np.zeros((num_members, num_envs, reward_dim))

    def update(self, rewards: Array, dones: NDArray[np.bool_]) -> None:
        """Account for a rollout: ``rewards`` (T, M, E, n) and ``dones`` (T, M, E), episode ends."""
        keep = 1.0 - dones[..., None].astype(np.float64)
        sums = np.empty_like(rewards)
        running = self.running
        for t in range(len(rewards)):
            running = self.gamma * running + rewards[t]
            sums[t] = running
            running = running * keep[t]
        self.running = running
        self.moments.update(sums.transpose(1, 0, 2, 3).reshape(sums.shape[1], -1, sums.shape[3]))

    def scale(self) -> Array:
        """Return the scale (M, n) that rewards are divided by; 1 for an objective that never moved."""
        std = np.sqrt(self.moments.var)
        return np.where(std > 1e-8, std, 1.0)

    def seen(self) -> NDArray[np.bool_]:
        """Return which objectives (M, n) have moved: the others hold no information about the policy yet."""
        return np.asarray(self.moments.var > 1e-16)
