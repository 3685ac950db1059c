"""Contract kit of environments: run it over an id, a class or a callable.

Examples:
    >>> from moopt.testing.envs import check_mo_env, check_vec_env
    >>> description = check_mo_env("deep-sea-treasure-v0")
    >>> check_vec_env("deep-sea-treasure-v0", num_workers=0)
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from moopt.envs.describe import EnvDescription, describe_env
from moopt.envs.make import EnvLike, make_env
from moopt.envs.spaces import ActionCodec, ObservationCodec
from moopt.envs.vec import MOVecEnv, VecStep, make_vec_env
from moopt.testing.toy_env import ToyEnv

__all__ = ["ToyEnv", "check_mo_env", "check_vec_env", "random_actions", "rollout"]


def random_actions(vec: MOVecEnv, generator: np.random.Generator) -> NDArray[Any]:
    """Draw one action for each copy: uniform, or exponential beyond the finite bound where there is no other.

    Returns:
        (E, A) of the space's dtype for boxes, (E,) int64 for discrete actions.
    """
    if isinstance(vec.action_space, spaces.Discrete):
        return generator.integers(0, vec.action_space.n, vec.num_envs)
    low, high = vec.action_low, vec.action_high
    bounded = np.isfinite(low) & np.isfinite(high)
    shape = (vec.num_envs, len(low))
    inner = generator.uniform(np.where(bounded, low, 0.0), np.where(bounded, high, 1.0), shape)
    outer = np.where(np.isfinite(low), low, 0.0) + generator.exponential(10.0, shape)
    return np.where(bounded, inner, outer).astype(np.float32)


def rollout(vec: MOVecEnv, steps: int, generator: np.random.Generator) -> list[VecStep]:
    """Take `steps` random steps and return copies of the results."""
    taken = []
    for _ in range(steps):
        result = vec.step_arrays(random_actions(vec, generator))
        taken.append(
            VecStep(
                result.obs.copy(),
                result.rewards.copy(),
                result.terminated.copy(),
                result.truncated.copy(),
                result.final_obs.copy(),
            )
        )
    return taken


def check_mo_env(
    env: EnvLike, *, steps: int = 60, max_episode_steps: int | None = None, **kwargs: Any
) -> EnvDescription:
    """Check the contract of one environment; an AssertionError says what it breaks.

    Rewards are finite float64 vectors of the described width; observations lie in the space's shape; `reset`
    with the same seed repeats the episode; stepping works after a reset; the description fits.

    Args:
        env: Registered id, `gymnasium.Env` class, or callable that returns a new environment.
        steps: Random steps to take.
        max_episode_steps: Time limit; None keeps the environment's own.
        kwargs: Passed to the environment's constructor.

    Returns:
        The description.
    """
    facts = describe_env(env, max_episode_steps=max_episode_steps, **kwargs)
    _check_description(facts)
    made = make_env(env, max_episode_steps=max_episode_steps, **kwargs)
    try:
        codec = ObservationCodec.of(made.observation_space, facts.id)
        actions = ActionCodec.of(made.action_space, facts.id)
        assert codec.size == facts.obs_size, f"observations have size {codec.size}, described {facts.obs_size}"
        assert actions.size == facts.action_size, f"actions {actions.size}, described {facts.action_size}"
        first = _episode(made, facts, codec, steps)
        second = _episode(made, facts, codec, steps)
        assert len(first) == len(second), "the same seed and actions give episodes of another length"
        for t, (a, b) in enumerate(zip(first, second, strict=True)):
            assert np.array_equal(a, b), f"the same seed and actions differ at step {t}: {a} and {b}"
    finally:
        made.close()
    return facts


def _episode(
    env: gym.Env[Any, Any], facts: EnvDescription, codec: ObservationCodec, steps: int
) -> list[NDArray[np.float64]]:
    row = np.zeros((1, codec.size), np.float32)
    rows = codec.rows(row)
    obs, _ = env.reset(seed=7)
    env.action_space.seed(7)
    rows[0] = codec.encode(obs)
    trace = [row[0].astype(np.float64)]
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        given: Any = reward
        assert isinstance(given, np.ndarray), f"the reward is {type(given)}, not an array"
        assert given.dtype == np.float64, f"the reward has dtype {given.dtype}"
        assert given.shape == (facts.reward_dim,), f"the reward has shape {given.shape}"
        assert np.isfinite(given).all(), f"the reward {given} is not finite"
        rows[0] = codec.encode(obs)
        assert np.isfinite(row).all(), f"the observation {row[0]} is not finite"
        trace.append(np.concatenate([row[0].astype(np.float64), given]))
        if terminated or truncated:
            break
    return trace


def _check_description(facts: EnvDescription) -> None:
    m = facts.reward_dim
    assert m >= 2, f"{m} objectives"
    assert len(facts.reward_names) == m == len(facts.reward_units), "one name and unit for each objective"
    assert len(set(facts.reward_names)) == m, f"names repeat: {facts.reward_names}"
    assert 0.0 < facts.gamma_eval <= 1.0, f"gamma_eval {facts.gamma_eval}"
    assert facts.ref_point is None or facts.ref_point.shape == (m,), f"ref_point {facts.ref_point}"
    if facts.action_kind == "box":
        assert facts.action_low.shape == facts.action_high.shape == (facts.action_size,), "bounds of actions"
    if facts.exact_front is not None:
        front = facts.exact_front(facts.gamma_eval)
        assert front.ndim == 2, f"the exact front has shape {front.shape}"
        assert front.shape[1] == m, f"the exact front has {front.shape[1]} objectives"
        if facts.ref_point is not None:
            assert (front >= facts.ref_point).all(), "the exact front does not dominate the reference point"


def check_vec_env(
    env: EnvLike,
    *,
    num_envs: int = 3,
    steps: int = 80,
    num_workers: int = 2,
    seed: int = 11,
    max_episode_steps: int | None = None,
    **kwargs: Any,
) -> None:
    """Check that many copies behave as the single environment does; an AssertionError says what differs.

    Steps equal those of a plain loop over single environments bit for bit (rewards, flags, automatic resets,
    last observations); so do steps in workers, and steps continued from a saved state, also with other
    workers.

    Args:
        env: Registered id, `gymnasium.Env` class, or callable that returns a new environment.
        num_envs: Number of copies.
        steps: Steps to take, half of them before the state is saved.
        num_workers: Workers to compare with; 0 leaves that out.
        seed: Root seed.
        max_episode_steps: Time limit; None keeps the environment's own.
        kwargs: Passed to the environment's constructor.
    """

    def make(root: int, workers: int) -> MOVecEnv:
        return make_vec_env(
            env,
            num_envs,
            seed=root,
            num_workers=workers,
            max_episode_steps=max_episode_steps,
            env_kwargs=kwargs,
        )

    half = steps // 2
    vec = make(seed, 0)
    try:
        start = vec.reset()
        before = rollout(vec, half, np.random.default_rng(1))
        saved = vec.state_dict()
        after = rollout(vec, steps - half, np.random.default_rng(2))
        _compare_with_loop(env, vec, start, before, max_episode_steps, kwargs)
    finally:
        vec.close()
    for workers in {0, num_workers}:
        other = make(seed, workers)
        try:
            assert np.array_equal(other.reset(), start), f"first observations differ with {workers} workers"
            _same(before, rollout(other, half, np.random.default_rng(1)), f"{workers} workers")
        finally:
            other.close()
        resumed = make(seed + 1, workers)
        try:
            obs = resumed.load_state_dict(saved)
            assert np.array_equal(obs, before[-1].obs), "the observation after loading differs"
            _same(after, rollout(resumed, steps - half, np.random.default_rng(2)), f"resumed, {workers} workers")
        finally:
            resumed.close()


def _same(expected: list[VecStep], got: list[VecStep], where: str) -> None:
    for t, (a, b) in enumerate(zip(expected, got, strict=True)):
        for name, x, y in zip(VecStep._fields, a, b, strict=True):
            assert np.array_equal(np.asarray(x), np.asarray(y)), f"{where}: {name} differ at step {t}"


def _compare_with_loop(
    env: EnvLike,
    vec: MOVecEnv,
    start: NDArray[np.float32],
    taken: list[VecStep],
    max_episode_steps: int | None,
    kwargs: dict[str, Any],
) -> None:
    generator = np.random.default_rng(1)
    copies = [make_env(env, max_episode_steps=max_episode_steps, **kwargs) for _ in range(vec.num_envs)]
    codec = ObservationCodec.of(copies[0].observation_space, "copy")
    actions = ActionCodec.of(copies[0].action_space, "copy")
    episodes = [0] * vec.num_envs

    def begin(i: int) -> Any:
        seed = vec.episode_seed(i, episodes[i])
        obs = copies[i].reset(seed=seed)[0]
        copies[i].action_space.seed(seed)
        return _row(codec, obs)

    for i in range(vec.num_envs):
        assert np.array_equal(begin(i), start[i]), f"copy {i}: the first observation differs"
    for t, step in enumerate(taken):
        for i, action in enumerate(actions.to_env(random_actions(vec, generator))):
            obs, given, terminated, truncated, _ = copies[i].step(action)
            reward: Any = given
            row = _row(codec, obs)
            assert np.array_equal(reward, step.rewards[i]), f"copy {i}, step {t}: rewards differ"
            assert terminated == step.terminated[i], f"copy {i}, step {t}: terminated differs"
            assert truncated == step.truncated[i], f"copy {i}, step {t}: truncated differs"
            assert np.array_equal(row, step.final_obs[i]), f"copy {i}, step {t}: final_obs differs"
            if terminated or truncated:
                episodes[i] += 1
                row = begin(i)
            assert np.array_equal(row, step.obs[i]), f"copy {i}, step {t}: obs differs"
    for copy in copies:
        copy.close()


def _row(codec: ObservationCodec, obs: Any) -> NDArray[np.float32]:
    buffer = np.zeros((1, codec.size), np.float32)
    codec.rows(buffer)[0] = codec.encode(obs)
    return buffer.reshape(codec.size)
