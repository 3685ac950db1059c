"""Makes one environment with vector rewards from an id, a class or a callable."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from moopt.envs.errors import EnvError
from moopt.envs.quiet import quiet
from moopt.envs.repairs import repair
from moopt.runs.errors import MissingExtraError, MooptError, did_you_mean

__all__ = ["EnvLike", "EnvSource", "VectorReward", "make_env"]

EnvLike = str | type[gym.Env[Any, Any]] | Callable[..., gym.Env[Any, Any]]
"""What names an environment: a registered id, a class, or a callable that returns a new environment."""

EXTRAS = {
    "Box2D": 'pip install "moopt[box2d]"',
    "box2d": 'pip install "moopt[box2d]"',
    "mujoco": 'pip install "gymnasium[mujoco]"',
    "highway_env": "pip install highway-env",
    "gym_super_mario_bros": 'pip install "mo-gymnasium[mario]"',
    "nes_py": 'pip install "mo-gymnasium[mario]"',
}
"""Module that is missing, and the command that brings it."""


_REFUSALS = ("unexpected keyword argument", "positional argument", "takes no arguments")


def make_env(env: EnvLike, *, max_episode_steps: int | None = None, **kwargs: Any) -> gym.Env[Any, Any]:
    """Make one environment whose rewards are float64 vectors, larger is better.

    Args:
        env: A registered id ("mo-hopper-v5"; MO-Gymnasium's ids are registered here), a `gymnasium.Env`
            class, or a callable that returns a new environment.
        max_episode_steps: Time limit; None keeps the environment's own.
        kwargs: Passed to the environment's constructor.

    Returns:
        The environment: `step` returns rewards of shape (m,), float64; `reward_dim` and `reward_space` are
        attributes.

    Raises:
        EnvError: The id is unknown, the reward is a scalar, or the constructor refuses kwargs or fails.
        MissingExtraError: An optional package is not installed; the message holds the command that installs
            it.
        TypeError: `env` is none of the three kinds.

    Examples:
        >>> env = make_env("deep-sea-treasure-v0")
        >>> obs, info = env.reset(seed=0)
        >>> env.step(1)[1].round(2).tolist()
        [0.7, -1.0]
        >>> env.close()
    """
    return EnvSource.of(env, max_episode_steps=max_episode_steps, kwargs=kwargs).build()


@dataclass(frozen=True)
class EnvSource:
    """Recipe of an environment, the same in every process.

    A registered id is kept as its Gymnasium spec, so that ids registered by a user's script also work in
    workers.
    """

    name: str
    maker: EnvSpec | Callable[..., gym.Env[Any, Any]]
    max_episode_steps: int | None
    kwargs: Mapping[str, Any]

    @classmethod
    def of(
        cls, env: EnvLike, *, max_episode_steps: int | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> "EnvSource":
        """Resolve what the user named.

        Raises:
            EnvError: The id is unknown.
            TypeError: `env` is none of the allowed kinds.
            ValueError: `max_episode_steps` is not positive.
        """
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1 or None, got {max_episode_steps!r}")
        given = dict(kwargs or {})
        if isinstance(env, str):
            return cls(env, find_spec(env), max_episode_steps, given)
        if isinstance(env, gym.Env):
            raise TypeError(
                "env must be an id, a class or a callable that makes a new environment, got an instance of "
                f"{type(env.unwrapped).__qualname__}; several copies are needed: pass its class or a function"
            )
        if not callable(env):
            raise TypeError(f"env must be an id, a gymnasium.Env class or a callable, got {env!r}")
        name = getattr(env, "__qualname__", type(env).__qualname__).replace("<locals>.", "")
        return cls(name, env, max_episode_steps, given)

    def build(self) -> gym.Env[Any, Any]:
        """Make the environment (see `make_env`)."""
        with quiet(mujoco="mujoco" in str(getattr(self.maker, "entry_point", ""))):
            try:
                env = self._construct()
            except (ImportError, gym.error.DependencyNotInstalled) as error:
                raise _missing_package(self.name, error) from error
            except TypeError as error:
                if any(words in str(error) for words in _REFUSALS):
                    raise EnvError(
                        f"environment {self.name!r} refuses its arguments {dict(self.kwargs)}: {error}"
                    ) from error
                raise self._failure(error) from error
            except MooptError:
                raise
            except Exception as error:
                raise self._failure(error) from error
            env = repair(env)
            return VectorReward(env, _reward_width(env, self.name))

    def _failure(self, error: Exception) -> EnvError:
        return EnvError(f"making environment {self.name!r} failed: {type(error).__name__}: {error}")

    def _construct(self) -> gym.Env[Any, Any]:
        if isinstance(self.maker, EnvSpec):
            return gym.make(
                self.maker, max_episode_steps=self.max_episode_steps, disable_env_checker=True, **self.kwargs
            )
        env = self.maker(**self.kwargs)
        if not isinstance(env, gym.Env):
            raise EnvError(
                f"{self.name!r} returned {type(env).__module__}.{type(env).__qualname__}; expected a "
                "gymnasium.Env (environments of the old gym package must be ported)"
            )
        return env if self.max_episode_steps is None else TimeLimit(env, self.max_episode_steps)


class VectorReward(gym.Wrapper[Any, Any, Any, Any]):
    """Casts rewards to float64 vectors of a fixed width.

    Args:
        env: Environment whose `step` returns a sequence of numbers as reward.
        reward_dim: Number of objectives.
    """

    def __init__(self, env: gym.Env[Any, Any], reward_dim: int) -> None:
        super().__init__(env)
        self.reward_dim = reward_dim
        declared = _attribute(env, "reward_space")
        if not isinstance(declared, spaces.Box):
            declared = spaces.Box(-np.inf, np.inf, (reward_dim,), np.float64)
        self.reward_space = declared

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment.

        Raises:
            EnvError: The reward has another width than declared.
        """
        obs, reward, terminated, truncated, info = self.env.step(action)
        vector: NDArray[np.float64] = np.asarray(reward, dtype=np.float64)
        if vector.shape != (self.reward_dim,):
            raise EnvError(f"the reward must have shape ({self.reward_dim},), got {reward!r}")
        return obs, vector, terminated, truncated, info


def find_spec(env_id: str) -> EnvSpec:
    """Return the Gymnasium spec of a registered id.

    Raises:
        EnvError: Not registered; the message names the nearest ids.
    """
    register_mo_gymnasium()
    try:
        if ":" in env_id:
            module, _, env_id = env_id.partition(":")
            importlib.import_module(module)
    except ImportError as error:
        raise EnvError(f"environment {module}:{env_id}: the module {module!r} cannot be imported ({error})") from error
    spec = gym.registry.get(env_id)
    if spec is None:
        hint = did_you_mean(env_id, gym.registry)
        raise EnvError(f"unknown environment {env_id!r} (`moopt list envs` shows what is there){hint}")
    return spec


def register_mo_gymnasium() -> None:
    """Register MO-Gymnasium's ids with Gymnasium."""
    with quiet():
        importlib.import_module("mo_gymnasium")


def _attribute(env: gym.Env[Any, Any], name: str) -> Any:
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None


def _reward_width(env: gym.Env[Any, Any], name: str) -> int:
    """Number of objectives: as declared, else as returned by one step."""
    space = _attribute(env, "reward_space")
    declared = _attribute(env, "reward_dim")
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        width = int(space.shape[0])
    elif isinstance(declared, int | np.integer):
        width = int(declared)
    else:
        env.reset(seed=0)
        env.action_space.seed(0)
        reward: Any = env.step(env.action_space.sample())[1]
        width = len(reward) if np.ndim(reward) == 1 else 0
    if width < 2:
        what = "a scalar reward" if width == 0 else "one objective only"
        env.close()
        raise EnvError(
            f"environment {name!r} has {what}; a reward vector of two or more objectives is needed. Use "
            "an MO-Gymnasium id (`moopt list envs`), or wrap it so that step returns an array of shape (m,)"
        )
    return width


def _missing_package(name: str, error: Exception) -> MissingExtraError:
    text = str(error)
    for module, command in EXTRAS.items():
        if module in text or getattr(error, "name", None) == module:
            return MissingExtraError(f"environment {name!r} needs the package {module}: {command}")
    return MissingExtraError(f"environment {name!r} needs a package that is not installed: {text}")
