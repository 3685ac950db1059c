"""A small environment to test with, which can be told to go wrong; imports no torch."""

import os
import signal
import time
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

__all__ = ["ToyEnv"]

Fault = Literal[
    "",
    "nan_reward",
    "inf_obs",
    "nan_reset",
    "raise",
    "raise_reset",
    "scalar",
    "hang",
    "kill",
    "constructor",
    "noise",
]


class ToyEnv(gym.Env[Any, Any]):
    """A walk on a line with m objectives: move left or right, end at +3 or -3.

    Args:
        reward_dim: Number of objectives m; the reward is (position after the step, -1, -1, ...).
        integers: Return integer observations.
        as_list: Return the reward as a list.
        declare: Declare `reward_space`.
        fault: What goes wrong, if anything.
        at: Step of the episode at which it goes wrong.
    """

    def __init__(
        self,
        reward_dim: int = 2,
        *,
        integers: bool = False,
        as_list: bool = False,
        declare: bool = True,
        fault: Fault = "",
        at: int = 2,
    ) -> None:
        if fault == "constructor":
            raise RuntimeError("no such map")
        self.reward_dim = reward_dim if declare else None
        if declare:
            self.reward_space = spaces.Box(-10.0, 10.0, (reward_dim,), np.float64)
        self._m, self._list, self._fault, self._at = reward_dim, as_list, fault, at
        dtype = np.int64 if integers else np.float32
        self.observation_space = spaces.Box(-3, 1000, (2,), dtype)
        self.action_space = spaces.Discrete(2)
        self._state: NDArray[Any] = np.zeros(2, dtype)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start at -1, 0 or 1."""
        super().reset(seed=seed)
        self._state[:] = [int(self.np_random.integers(-1, 2)), 0]
        if self._fault == "raise_reset":
            raise RuntimeError("reset went wrong")
        if self._fault == "nan_reset":
            return np.array([np.nan, 0.0], np.float32), {}
        return self._state.copy(), {}

    def step(self, action: int) -> tuple[NDArray[Any], Any, bool, bool, dict[str, Any]]:
        """Move by one."""
        self._state += np.array([2 * action - 1, 1], self._state.dtype)
        reward = [float(self._state[0])] + [-1.0] * (self._m - 1)
        obs = self._state.copy()
        if self._fault and self._state[1] == self._at:
            obs, reward = self._go_wrong(obs, reward)
        over = bool(abs(self._state[0]) >= 3)
        return obs, reward if self._list else np.array(reward), over, False, {}

    def _go_wrong(self, obs: NDArray[Any], reward: list[float]) -> tuple[NDArray[Any], Any]:
        if self._fault == "nan_reward":
            return obs, [float("nan"), *reward[1:]]
        if self._fault == "inf_obs":
            return np.array([np.inf, 0.0], np.float32), reward
        if self._fault == "noise":
            return obs, [float(os.urandom(1)[0]), *reward[1:]]
        if self._fault == "hang":
            time.sleep(60.0)
        elif self._fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._fault == "raise":
            raise RuntimeError("the pole broke")
        return obs, 1.0 if self._fault == "scalar" else reward
