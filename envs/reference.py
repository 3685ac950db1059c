"""Returns of a uniformly random policy, and the reference point they suggest.

`python -m moopt.envs.reference ID ...` prints them; the measured reference points of `moopt.envs.defaults`
come from it.
"""

import sys

import numpy as np
from numpy.typing import NDArray

from moopt.envs.describe import describe_env
from moopt.envs.make import EnvLike, make_env

__all__ = ["random_returns", "suggest_ref_point"]


def random_returns(
    env: EnvLike,
    *,
    episodes: int = 50,
    gamma: float | None = None,
    seed: int = 0,
    max_episode_steps: int | None = None,
) -> NDArray[np.float64]:
    """Measure the discounted returns of a policy that draws actions uniformly.

    Args:
        env: Registered id, `gymnasium.Env` class, or callable that returns a new environment.
        episodes: Number of episodes; each is cut after 10,000 steps.
        gamma: Discount factor; None takes the environment's own `gamma_eval`.
        seed: Seed of the first episode and of the actions; later episodes count up.
        max_episode_steps: Time limit; None keeps the environment's own.

    Returns:
        Array (episodes, m), larger is better.
    """
    discount = describe_env(env).gamma_eval if gamma is None else gamma
    made = make_env(env, max_episode_steps=max_episode_steps)
    try:
        made.action_space.seed(seed)
        returns = []
        for k in range(episodes):
            made.reset(seed=seed + k)
            total, weight = np.zeros(made.get_wrapper_attr("reward_dim")), 1.0
            for _ in range(10_000):
                _, reward, terminated, truncated, _ = made.step(made.action_space.sample())
                total += weight * np.asarray(reward)
                weight *= discount
                if terminated or truncated:
                    break
            returns.append(total)
    finally:
        made.close()
    return np.array(returns)


def suggest_ref_point(
    env: EnvLike,
    *,
    episodes: int = 50,
    gamma: float | None = None,
    seed: int = 0,
    max_episode_steps: int | None = None,
) -> NDArray[np.float64]:
    """Suggest a reference point for an environment that has none: a tenth of the range below random's worst.

    Args:
        env: Registered id, `gymnasium.Env` class, or callable that returns a new environment.
        episodes: Number of episodes of the random policy.
        gamma: Discount factor; None takes the environment's own `gamma_eval`.
        seed: Seed of the episodes and actions.
        max_episode_steps: Time limit; None keeps the environment's own.

    Returns:
        Point (m,), larger is better. Fix it once and report it: hypervolumes to different points do not
        compare.
    """
    returns = random_returns(env, episodes=episodes, gamma=gamma, seed=seed, max_episode_steps=max_episode_steps)
    worst = returns.min(axis=0)
    spread = returns.max(axis=0) - worst
    return np.asarray(worst - np.maximum(0.1 * spread, 1.0))


def main(ids: list[str]) -> None:
    """Write a line of worst, mean and best random returns for each id, and the shipped reference point."""
    for env_id in ids:
        returns = random_returns(env_id)
        point = describe_env(env_id).ref_point
        columns = (
            ("worst", returns.min(0)),
            ("mean", returns.mean(0)),
            ("best", returns.max(0)),
            ("ref", point),
        )
        text = "  ".join(f"{name} {np.round(value, 2).tolist()}" for name, value in columns if value is not None)
        sys.stdout.write(f"{env_id}: {text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
