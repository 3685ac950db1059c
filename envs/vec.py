"""Many copies of an environment with vector rewards, stepped together; a Stable-Baselines3 `VecEnv`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from moopt.envs.block import StepBuffers, peel
from moopt.envs.errors import EnvError
from moopt.envs.make import EnvLike, EnvSource, VectorReward
from moopt.envs.pool import ProcessEngine
from moopt.envs.seeding import EpisodeSeeds, as_seed_sequence
from moopt.envs.serial import Engine, SerialEngine
from moopt.envs.shared import Layout
from moopt.envs.spaces import ActionCodec, ObservationCodec

__all__ = ["MOVecEnv", "VecStep", "make_vec_env"]

Indices = None | int | Iterable[int]


class VecStep(NamedTuple):
    """Result of one step of E copies; the arrays are reused by the next step, copy what must last.

    Attributes:
        obs: (E, D) float32, the observation to act on next: the new episode's first one where an episode
            ended.
        rewards: (E, m) float64, larger is better.
        terminated: (E,) bool, the episode ended by its own rules; do not bootstrap.
        truncated: (E,) bool, the episode was cut (time limit); bootstrap from `final_obs` unless also
            terminated.
        final_obs: (E, D) float32, the observation this step returned; equals `obs` where no episode ended.
    """

    obs: NDArray[np.float32]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    final_obs: NDArray[np.float32]


def make_vec_env(
    env: EnvLike,
    num_envs: int,
    *,
    seed: np.random.SeedSequence | int,
    num_workers: int = 0,
    max_episode_steps: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> "MOVecEnv":
    """Make E copies of an environment, stepped here or in worker processes.

    Args:
        env: Registered id, `gymnasium.Env` class, or callable that returns a new environment.
        num_envs: Number of copies E.
        seed: Root of all episode seeds. Episode k of copy e gets its own seed, a function of (seed, e, k).
        num_workers: Processes; 0 steps in this process. Results do not depend on it.
        max_episode_steps: Time limit of an episode; None keeps the environment's own.
        env_kwargs: Passed to the environment's constructor.

    Raises:
        EnvError: The environment cannot be made or its spaces are not supported.
        ValueError: A number is out of range.

    Examples:
        >>> vec = make_vec_env("deep-sea-treasure-v0", 2, seed=0)
        >>> vec.reset().shape
        (2, 2)
        >>> vec.step_arrays([1, 3]).rewards.round(2).tolist()
        [[0.7, -1.0], [0.0, -1.0]]
        >>> vec.close()
    """
    for name, value, least in (("num_envs", num_envs, 1), ("num_workers", num_workers, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    source = EnvSource.of(env, max_episode_steps=max_episode_steps, kwargs=env_kwargs)
    return MOVecEnv(source, int(num_envs), seed=seed, num_workers=int(num_workers))


class MOVecEnv(VecEnv):
    """E copies of an environment with m objectives; made by `make_vec_env`.

    Copies whose episode ends are reset in the same step. Actions reach the environments as given: clip Box
    actions to `action_low` and `action_high` before, if the policy is unbounded. The environments' own info
    dicts are dropped.

    `state_dict` holds what is needed to continue exactly: the number of the running episode of each copy and
    the actions taken in it. `load_state_dict` resets each copy with that episode's seed and takes the actions
    again, so any environment can be resumed whose randomness comes from `reset(seed=...)`.

    Args:
        source: Recipe of the environment.
        num_envs: Number of copies E.
        seed: Root of all episode seeds.
        num_workers: Worker processes; 0 steps in this process.
    """

    def __init__(
        self, source: EnvSource, num_envs: int, *, seed: np.random.SeedSequence | int, num_workers: int = 0
    ) -> None:
        self._closed = True
        self.name = source.name
        self._seed_source = EpisodeSeeds(as_seed_sequence(seed))
        sample = source.build()
        try:
            assert isinstance(sample, VectorReward)
            self.reward_dim: int = sample.reward_dim
            self._obs_codec = ObservationCodec.of(sample.observation_space, source.name)
            self._action_codec = ActionCodec.of(sample.action_space, source.name)
            self.max_episode_steps: int | None = peel(sample)[1]
            action_space: gym.Space[Any] = sample.action_space
        finally:
            sample.close()
        self.num_workers = min(num_workers, num_envs)
        self._engine = self._start(source, num_envs)
        self._closed = False
        self._episodes = np.full(num_envs, -1, np.int64)
        self._elapsed = np.zeros(num_envs, np.int64)
        self._log = np.zeros((num_envs, 64, *self._action_codec.shape), self._action_codec.dtype)
        self._rows = np.arange(num_envs)
        self._pending = False
        super().__init__(num_envs, self._obs_codec.flat_space, action_space)
        action_space.seed(self._seed_source(num_envs, 0))

    def _start(self, source: EnvSource, num_envs: int) -> Engine:
        sizes = (num_envs, self._obs_codec.size, self.reward_dim)
        if self.num_workers == 0:
            return SerialEngine(source, StepBuffers.zeros(*sizes), self._seed_source)
        layout = Layout(*sizes, self._action_codec.shape, self._action_codec.dtype.str)
        return ProcessEngine(source, layout, self._seed_source, self.num_workers)

    @property
    def action_low(self) -> NDArray[np.float32]:
        """Lower bounds of a Box action, shape (A,); empty for discrete actions."""
        return self._action_codec.low

    @property
    def action_high(self) -> NDArray[np.float32]:
        """Upper bounds of a Box action, shape (A,); empty for discrete actions."""
        return self._action_codec.high

    def episode_seed(self, env_index: int, episode: int) -> int:
        """Return the seed that `reset` of copy `env_index` gets for episode `episode` (from 0)."""
        return self._seed_source(env_index, episode)

    def reset(self) -> NDArray[np.float32]:
        """Begin a new episode, with a fresh seed, in every copy.

        Returns:
            Observations (E, D), float32, a fresh array.
        """
        self._check_open()
        if self._pending:
            self._finish()
        with self._closing_on_failure():
            self._engine.reset()
        self._episodes += 1
        self._elapsed[:] = 0
        return self._engine.buffers.obs.copy()

    def step_arrays(self, actions: Any, active: "NDArray[np.bool_] | Sequence[bool] | None" = None) -> VecStep:
        """Step every copy once, or only some.

        Args:
            actions: (E, A) floats for Box actions, (E,) integers 0..n-1 for discrete ones.
            active: (E,) booleans, the copies to step; the others stay where they are, with reward zero and no end of
                the episode, whatever their (valid) action says. ``None`` steps all.

        Raises:
            ValueError: The actions have a wrong shape, type or range.
            EnvError: An environment raised or returned numbers that are not finite; a worker died. All is
                closed then.
        """
        if active is None:
            self.step_async(actions)
            return self._finish()
        self._check_open()
        mask = np.asarray(active)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"active must be ({self.num_envs},) booleans, got {mask.dtype} {mask.shape}")
        if self._pending:  # workers may be reading the mask
            raise EnvError("step_arrays between step_async and step_wait; finish the step first")
        self._engine.buffers.active[:] = mask
        try:
            self.step_async(actions)
            return self._finish()
        finally:
            if not self._closed:
                self._engine.buffers.active[:] = True

    def step_async(self, actions: Any) -> None:
        """Start a step (see `step_arrays`); `step_wait` finishes it."""
        self._check_open()
        if self._pending:
            raise EnvError("step_async was called twice without step_wait")
        if self._episodes[0] < 0:
            raise EnvError("call reset() or load_state_dict() before the first step")
        checked = self._action_codec.check(actions, self.num_envs)
        self._remember(checked)
        with self._closing_on_failure():
            self._engine.send(checked)
        self._pending = True

    def step_wait(self) -> Any:
        """Finish a step, the way Stable-Baselines3 expects.

        Returns:
            Observations (E, D), rewards (E, m), dones (E,) and E info dicts; where an episode ended the info
            holds "terminal_observation" and "TimeLimit.truncated". Fresh arrays.
        """
        result = self._finish()
        dones = result.terminated | result.truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = result.final_obs[i].copy()
            infos[i]["TimeLimit.truncated"] = bool(result.truncated[i] and not result.terminated[i])
        return result.obs.copy(), result.rewards.copy(), dones, infos

    def _finish(self) -> VecStep:
        self._check_open()
        if not self._pending:
            raise EnvError("step_wait was called without step_async")
        self._pending = False
        with self._closing_on_failure():
            self._engine.wait()
        b = self._engine.buffers
        self._elapsed += b.active
        done = b.terminated | b.truncated
        self._episodes += done
        self._elapsed[done] = 0
        return VecStep(b.obs, b.rewards, b.terminated, b.truncated, b.final_obs)

    def _remember(self, actions: NDArray[Any]) -> None:
        length = self._log.shape[1]
        if self._elapsed.max() >= length:
            self._log = np.concatenate([self._log, np.zeros_like(self._log)], axis=1)
        self._log[self._rows, self._elapsed] = actions

    def state_dict(self) -> dict[str, Any]:
        """Return what is needed to continue exactly, as plain arrays.

        Returns:
            "episodes" (E,) and "steps" (E,): running episode of each copy and steps taken in it; "actions":
            these steps' actions, copy after copy; "entropy", "spawn_key": the root seed.

        Raises:
            EnvError: A step is under way.
        """
        if self._pending:
            raise EnvError("state_dict between step_async and step_wait; finish the step first")
        entropy, spawn_key = self._seed_source.words()
        taken = [self._log[i, :steps] for i, steps in enumerate(self._elapsed)]
        return {
            "episodes": self._episodes.copy(),
            "steps": self._elapsed.copy(),
            "actions": np.concatenate(taken),
            "entropy": entropy,
            "spawn_key": spawn_key,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> NDArray[np.float32]:
        """Continue where `state_dict` was taken; the number of workers may differ.

        Returns:
            The current observations (E, D), float32, a fresh array.

        Raises:
            EnvError: The state belongs to another number of copies or other actions, or the environment does
                not repeat itself when its seed and actions are repeated.
        """
        self._check_open()
        episodes, steps, actions = (np.asarray(state[key]) for key in ("episodes", "steps", "actions"))
        if episodes.shape != (self.num_envs,) or steps.shape != (self.num_envs,):
            raise EnvError(f"the saved state has {len(episodes)} environment copies; this one has {self.num_envs}")
        if actions.shape != (int(steps.sum()), *self._action_codec.shape):
            raise EnvError(f"the saved actions have shape {actions.shape}; actions here are {self.action_space}")
        self._seed_source = EpisodeSeeds.from_words(state["entropy"], state["spawn_key"])
        self._pending = False
        self._elapsed = steps.astype(np.int64)
        self._episodes = episodes.astype(np.int64)
        if self._episodes[0] < 0:
            self._engine.reseed(self._seed_source)
            return self._engine.buffers.obs.copy()
        while self._elapsed.max() > self._log.shape[1]:
            self._log = np.concatenate([self._log, np.zeros_like(self._log)], axis=1)
        taken = np.split(actions.astype(self._action_codec.dtype), np.cumsum(steps)[:-1])
        for i, rows in enumerate(taken):
            self._log[i, : len(rows)] = rows
        with self._closing_on_failure():
            self._engine.replay(self._seed_source, self._episodes.tolist(), taken)
        return self._engine.buffers.obs.copy()

    def seed(self, seed: int | np.random.SeedSequence | None = None) -> Sequence[int | None]:
        """Use another root seed from the next `reset` on (None draws one), counting episodes from zero.

        Returns:
            The seeds of the copies' first episodes.
        """
        self._check_open()
        root = np.random.SeedSequence() if seed is None else as_seed_sequence(seed)
        self._seed_source = EpisodeSeeds(root)
        self._engine.reseed(self._seed_source)
        self._episodes[:] = -1
        return [self._seed_source(i, 0) for i in range(self.num_envs)]

    def set_options(self, options: Any = None) -> None:
        """Refuse reset options: they would not be part of the saved state.

        Raises:
            EnvError: Options are given.
        """
        if options:
            raise EnvError("reset options are not supported; pass them to the constructor through env_kwargs")

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the chosen copies, looking through their wrappers."""
        return self._call(indices, "get", attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute in the chosen copies."""
        self._call(indices, "set", attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the chosen copies."""
        return self._call(indices, "method", method_name, *method_args, **method_kwargs)

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Tell which of the chosen copies carry a wrapper."""
        return self._call(indices, "wrapped", wrapper_class)

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Return the rendered images of all copies (needs `render_mode="rgb_array"`)."""
        return self.env_method("render")

    def close(self) -> None:
        """Close all copies and end the workers; may be called twice."""
        if not self._closed:
            self._closed = True
            self._engine.close()

    def _call(self, indices: Indices, what: str, *args: Any, **kwargs: Any) -> list[Any]:
        self._check_open()
        if self._pending:
            raise EnvError("an environment was accessed between step_async and step_wait; finish the step first")
        return self._engine.call(list(self._get_indices(indices)), what, *args, **kwargs)

    def _check_open(self) -> None:
        if self._closed:
            raise EnvError(f"the vector environment of {self.name!r} is closed")

    def _closing_on_failure(self) -> "_ClosingOnFailure":
        return _ClosingOnFailure(self)


class _ClosingOnFailure:
    """Closes the vector environment when its engine fails, as the copies are no longer in step."""

    def __init__(self, vec: MOVecEnv) -> None:
        self._vec = vec

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self._vec.close()
