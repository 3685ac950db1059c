"""Corrections of third-party environments whose randomness ignores `reset(seed=...)`.

Minecart (MO-Gymnasium 1.3) draws the mined ore from SciPy distributions tied to NumPy's global generator, so
the same seed gives other episodes each time. The wrapper ties them to the environment's own generator; the
distribution of rewards is unchanged.
"""

from typing import Any

import gymnasium as gym

__all__ = ["SeededMines", "repair"]


class SeededMines(gym.Wrapper[Any, Any, Any, Any]):
    """Minecart whose ore draws come from the generator that `reset(seed=...)` seeds."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and hand its generator to the mines."""
        result = self.env.reset(seed=seed, options=options)
        base: Any = self.env.unwrapped
        for mine in base.mines:
            for distribution in mine.distributions:
                distribution.random_state = base.np_random
        return result


def repair(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return `env`, with a wrapper put around its innermost environment if that needs a correction."""
    base: Any = env.unwrapped
    kind = type(base)
    if kind.__name__ != "Minecart" or not kind.__module__.startswith("mo_gymnasium."):
        return env
    if env is base:
        return SeededMines(base)
    outer: Any = env
    while outer.env is not base:
        outer = outer.env
    outer.env = SeededMines(base)
    return env
