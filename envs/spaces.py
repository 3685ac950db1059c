"""Observation and action spaces as flat arrays."""

from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from moopt.envs.errors import EnvError
from moopt.envs.quiet import quiet

__all__ = ["ActionCodec", "ObservationCodec"]


@dataclass(frozen=True)
class ObservationCodec:
    """How observations of one space become float32 rows.

    Box and MultiBinary observations are cast and raveled; Discrete, MultiDiscrete, Tuple and Dict go through
    `gymnasium.spaces.flatten` (one-hot for discrete parts).
    """

    space: gym.Space[Any]
    flat_space: spaces.Box
    direct: bool

    @property
    def size(self) -> int:
        """Length of a flat observation."""
        return int(self.flat_space.shape[0])

    @classmethod
    def of(cls, space: gym.Space[Any], env_name: str) -> "ObservationCodec":
        """Build the codec of `space`.

        Raises:
            EnvError: The space cannot be flattened to a vector, or holds pixels.
        """
        if is_pixels(space):
            raise EnvError(
                f"environment {env_name!r} has pixel observations of shape {space.shape}; policies here are "
                "networks on flat vectors. Use the vector version of the environment, or wrap it with an "
                "encoder (gymnasium.wrappers.FlattenObservation if raw pixels are really wanted)"
            )
        try:
            with quiet():
                flat = spaces.flatten_space(space)
        except (NotImplementedError, TypeError) as error:
            raise _bad_observations(space, env_name) from error
        if not isinstance(flat, spaces.Box):
            raise _bad_observations(space, env_name)
        low = flat.low.astype(np.float32).reshape(-1)
        high = flat.high.astype(np.float32).reshape(-1)
        return cls(space, spaces.Box(low, high, dtype=np.float32), isinstance(space, spaces.Box | spaces.MultiBinary))

    def rows(self, buffer: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return `buffer (n, D)` as the view whose items take observations: `rows[i] = encode(obs)`."""
        if self.direct and self.space.shape is not None:
            return buffer.reshape(len(buffer), *self.space.shape)
        return buffer

    def encode(self, obs: Any) -> Any:
        """Return what is assigned to an item of `rows`."""
        return obs if self.direct else spaces.flatten(self.space, obs)


@dataclass(frozen=True)
class ActionCodec:
    """How rows of actions reach the environment.

    `kind` is "box" (float rows) or "discrete" (integers 0 to n-1; the space's own start is added here).
    `size` is the number of action components, or of choices. `low` and `high` have shape (size,) for boxes
    and are empty otherwise.
    """

    kind: Literal["box", "discrete"]
    size: int
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int

    @classmethod
    def of(cls, space: gym.Space[Any], env_name: str) -> "ActionCodec":
        """Build the codec of `space`.

        Raises:
            EnvError: The space is neither Box nor Discrete.
        """
        if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
            low = space.low.astype(np.float32).reshape(-1)
            high = space.high.astype(np.float32).reshape(-1)
            return cls("box", len(low), low, high, space.shape, np.dtype(space.dtype), 0)
        if isinstance(space, spaces.Discrete):
            empty = np.zeros(0, dtype=np.float32)
            return cls("discrete", int(space.n), empty, empty, (), np.dtype(np.int64), int(space.start))
        raise EnvError(
            f"environment {env_name!r} has the action space {space}; allowed are Box of floats and Discrete. "
            "Wrap the environment to translate its actions"
        )

    def check(self, actions: Any, num_envs: int) -> NDArray[Any]:
        """Return `actions` as a fresh array (num_envs, *shape) of the space's dtype.

        Raises:
            ValueError: The shape or the type is wrong, a discrete action is out of range, or a component of a box
                is not finite.
        """
        given = np.asarray(actions)
        if given.size != num_envs * int(np.prod(self.shape)) or len(given) != num_envs:
            raise ValueError(f"actions must have shape {(num_envs, *self.shape)}, got {given.shape}")
        if self.kind == "box":
            rows = np.array(given, dtype=self.dtype).reshape(num_envs, *self.shape)
            with np.errstate(all="ignore"):
                if not np.isfinite(rows.sum()) and not np.isfinite(rows).all():
                    raise ValueError("actions must be finite; the policy that chose them has diverged")
            return rows
        if given.dtype.kind not in "iu":
            raise ValueError(f"discrete actions must be integers, got dtype {given.dtype}")
        whole = given.reshape(num_envs).astype(np.int64)
        if whole.min() < 0 or whole.max() >= self.size:
            raise ValueError(f"discrete actions must lie in 0..{self.size - 1}, got {whole.min()}..{whole.max()}")
        return whole

    def to_env(self, actions: NDArray[Any]) -> Any:
        """Return the actions one by one as the environment takes them: array rows or Python integers."""
        if self.kind == "box":
            return actions
        return (actions + self.start).tolist() if self.start else actions.tolist()


def is_pixels(space: gym.Space[Any]) -> bool:
    """Tell whether `space` is an image (2-D or 3-D box of bytes)."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) >= 2


def _bad_observations(space: gym.Space[Any], env_name: str) -> EnvError:
    return EnvError(
        f"environment {env_name!r} has the observation space {space}, which has no fixed flat size; allowed "
        "are Box, Discrete, MultiBinary, MultiDiscrete, and Tuple or Dict of them"
    )
