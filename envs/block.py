"""A block of environment copies stepped one after another, with automatic resets.

The same code runs in this process and in the workers, so results do not depend on where it runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray

from moopt.envs.errors import EnvError
from moopt.envs.make import EnvSource, VectorReward
from moopt.envs.seeding import EpisodeSeeds
from moopt.envs.spaces import ActionCodec, ObservationCodec

__all__ = ["EnvBlock", "StepBuffers", "peel"]


@dataclass(frozen=True)
class StepBuffers:
    """Arrays a step writes into; row i belongs to copy i.

    Attributes:
        obs: (n, D) float32, the observation to act on next (of the new episode where one ended).
        rewards: (n, m) float64.
        terminated: (n,) bool.
        truncated: (n,) bool.
        final_obs: (n, D) float32, the observation that the step itself returned.
        active: (n,) bool, the copies that the next step moves.
    """

    obs: NDArray[np.float32]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    final_obs: NDArray[np.float32]
    active: NDArray[np.bool_]

    @classmethod
    def zeros(cls, num_envs: int, obs_size: int, reward_dim: int) -> "StepBuffers":
        """Allocate the arrays."""
        return cls(
            np.zeros((num_envs, obs_size), np.float32),
            np.zeros((num_envs, reward_dim), np.float64),
            np.zeros(num_envs, np.bool_),
            np.zeros(num_envs, np.bool_),
            np.zeros((num_envs, obs_size), np.float32),
            np.ones(num_envs, np.bool_),
        )

    def part(self, start: int, stop: int) -> "StepBuffers":
        """Return views of rows start to stop."""
        rows = slice(start, stop)
        return StepBuffers(
            self.obs[rows],
            self.rewards[rows],
            self.terminated[rows],
            self.truncated[rows],
            self.final_obs[rows],
            self.active[rows],
        )


def peel(env: gym.Env[Any, Any]) -> tuple[gym.Env[Any, Any], int | None]:
    """Take off the outer wrappers whose work the block does itself, cheaper.

    Returns:
        The inner environment and the smallest time limit found.
    """
    limit: int | None = None
    while type(env) in (VectorReward, TimeLimit, OrderEnforcing, PassiveEnvChecker):
        if type(env) is TimeLimit:
            own = env._max_episode_steps
            limit = own if limit is None else min(limit, own)
        env = env.env  # type: ignore[attr-defined]
    return env, limit


class EnvBlock:
    """Copies `first .. first + n - 1` of an environment.

    Args:
        source: Recipe of the environment.
        first: Index of the first copy among all.
        buffers: Arrays written by `reset`, `step` and `replay`; their rows number the copies.
        seeds: Seeds of the episodes.

    Raises:
        EnvError: The constructor of a copy failed.
    """

    def __init__(self, source: EnvSource, first: int, buffers: StepBuffers, seeds: EpisodeSeeds) -> None:
        self.source = source
        self.first = first
        self.buffers = buffers
        self.seeds = seeds
        n = len(buffers.obs)
        self.envs: list[gym.Env[Any, Any]] = []
        for i in range(n):
            try:
                self.envs.append(source.build())
            except Exception as error:
                self.close()
                if isinstance(error, EnvError):
                    raise EnvError(f"copy {first + i}: {error}") from error
                raise
        peeled = [peel(env) for env in self.envs]
        self._inner = [env for env, _ in peeled]
        self._limit = peeled[0][1]
        self._steps: list[Callable[[Any], Any]] = [env.step for env in self._inner]
        self._obs_codec = ObservationCodec.of(self.envs[0].observation_space, source.name)
        self._action_codec = ActionCodec.of(self.envs[0].action_space, source.name)
        self._obs_rows = self._obs_codec.rows(buffers.obs)
        self._final_rows = self._obs_codec.rows(buffers.final_obs)
        self._width = buffers.rewards.shape[1]
        self.episodes = np.full(n, -1, np.int64)
        self.elapsed = np.zeros(n, np.int64)

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        for i in range(len(self.envs)):
            self._begin(i, int(self.episodes[i]) + 1)
        self._check_finite(self.buffers.obs, "observation after reset")

    def step(self, actions: NDArray[Any]) -> None:
        """Step every active copy once and reset those whose episode ended.

        An inactive copy keeps its observation; its reward is zero.

        Args:
            actions: (n, *action shape), not reused by the caller while the copies may hold rows of it.

        Raises:
            EnvError: A copy raised, or returned a wrong reward or a number that is not finite.
        """
        b = self.buffers
        final, rewards, terminated, truncated = self._final_rows, b.rewards, b.terminated, b.truncated
        direct, encode, width = self._obs_codec.direct, self._obs_codec.encode, self._width
        active = b.active.tolist()
        if not all(active):
            idle = ~b.active
            b.final_obs[idle], rewards[idle] = b.obs[idle], 0.0
            terminated[idle] = truncated[idle] = False
        i = 0
        try:
            for i, (step, action) in enumerate(zip(self._steps, self._action_codec.to_env(actions), strict=True)):
                if not active[i]:
                    continue
                obs, reward, terminated[i], truncated[i], _ = step(action)
                final[i] = obs if direct else encode(obs)
                if _width(reward) != width:
                    raise self._failure(i, f"returned the reward {reward!r}; expected {width} numbers")
                rewards[i] = reward
        except EnvError:
            raise
        except Exception as error:
            raise self._failure(i, f"raised {_describe(error)} on action {actions[i]!r}{_hint(error)}") from error
        self.elapsed += b.active
        if self._limit is not None:
            np.logical_or(truncated, (self.elapsed >= self._limit) & b.active, out=truncated)
        self._check_finite(b.rewards, "reward", actions)
        self._check_finite(b.final_obs, "observation", actions)
        b.obs[:] = b.final_obs
        ended = np.flatnonzero(terminated | truncated)
        if len(ended):
            for i in ended.tolist():
                self._begin(i, int(self.episodes[i]) + 1)
            self._check_finite(b.obs, "observation after reset")

    def replay(self, episodes: Sequence[int], actions: Sequence[NDArray[Any]]) -> None:
        """Bring every copy back into a running episode.

        Args:
            episodes: Number of the episode of each copy.
            actions: For each copy, the actions taken so far in it, shape (steps, *action shape).

        Raises:
            EnvError: An episode ends before its actions are used up: the environment is not determined by its
                seed.
        """
        for i, (episode, taken) in enumerate(zip(episodes, actions, strict=True)):
            self._begin(i, int(episode))
            obs: Any = None
            for action in self._action_codec.to_env(np.array(taken)):
                try:
                    obs, _, terminated, truncated, _ = self._steps[i](action)
                except Exception as error:
                    raise self._failure(i, f"raised {_describe(error)} while replaying its episode") from error
                self.elapsed[i] += 1
                if terminated or truncated:
                    raise self._failure(
                        i,
                        "ended its episode early in the replay: its randomness is not set by reset(seed=...)",
                    )
            if len(taken):
                self._obs_rows[i] = self._obs_codec.encode(obs)
        self.buffers.final_obs[:] = self.buffers.obs
        self._check_finite(self.buffers.obs, "observation")

    def close(self) -> None:
        """Close every copy."""
        for env in self.envs:
            env.close()
        self.envs = []

    def _begin(self, i: int, episode: int) -> None:
        seed = self.seeds(self.first + i, episode)
        env = self._inner[i]
        self.episodes[i] = episode
        self.elapsed[i] = 0
        try:
            obs, _ = env.reset(seed=seed)
            env.action_space.seed(seed)
            self._obs_rows[i] = obs if self._obs_codec.direct else self._obs_codec.encode(obs)
        except Exception as error:
            raise self._failure(i, f"raised {_describe(error)} in reset(seed={seed}){_hint(error)}") from error

    def _check_finite(self, values: NDArray[Any], what: str, actions: NDArray[Any] | None = None) -> None:
        # The sum is finite when every value is (up to overflow), and costs no temporary array.
        with np.errstate(all="ignore"):
            if np.isfinite(values.sum()):
                return
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            i = int(bad[0])
            taken = "" if actions is None else f" on action {actions[i]!r}"
            raise self._failure(i, f"returned the {what} {values[i]!r}{taken}; numbers must be finite")

    def _failure(self, i: int, what: str) -> EnvError:
        place = f"copy {self.first + i}, episode {self.episodes[i]}, step {self.elapsed[i]}"
        return EnvError(f"environment {self.source.name!r} ({place}) {what}")


def _width(reward: Any) -> int:
    try:
        return len(reward)
    except TypeError:  # a number, or an array without dimensions
        return 0


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _hint(error: BaseException) -> str:
    """Say what `step` and `reset` must return if that is what went wrong."""
    if "values to unpack (expected 5" in str(error):
        return "; step must return observation, reward, terminated, truncated and info"
    return "; reset must return observation and info" if "values to unpack (expected 2" in str(error) else ""
