"""Describes environments: sizes, objectives, reference point, known front."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from moopt.envs.block import peel
from moopt.envs.defaults import EnvDefaults, knows_exactly, lookup
from moopt.envs.errors import EnvError
from moopt.envs.make import EnvLike, EnvSource, VectorReward, register_mo_gymnasium
from moopt.envs.spaces import ActionCodec, ObservationCodec
from moopt.runs.errors import MooptError

__all__ = ["EnvDescription", "describe_env", "list_envs"]

DEFAULT_GAMMA = 0.99


@dataclass(frozen=True, eq=False)
class EnvDescription:
    """What a learner needs to know about an environment with m objectives.

    Attributes:
        id: Registered id, or the name of the class or function.
        obs_size: Length D of a flat observation.
        action_kind: "discrete" or "box".
        action_size: Number of choices, or of action components A.
        action_low: Lower bounds (A,), may be -inf; empty if discrete.
        action_high: Upper bounds (A,), may be inf; empty if discrete.
        reward_dim: Number of objectives m.
        reward_names: Names of the objectives.
        reward_units: Unit of one step's reward, "" where it has none.
        ref_point: Reference point (m,), larger is better; None if unknown.
        gamma_eval: Discount factor of evaluation.
        max_episode_steps: Time limit, None if there is none outside the environment itself.
        exact_front: Maps a discount factor to the Pareto front (n, m) that the environment computes of itself, or
            None; `front_kind` tells whether it is exact. Of stochastic environments it is the front of expected
            returns, which a finite evaluation may exceed.
    """

    id: str
    obs_size: int
    action_kind: Literal["discrete", "box"]
    action_size: int
    action_low: NDArray[np.float32]
    action_high: NDArray[np.float32]
    reward_dim: int
    reward_names: tuple[str, ...]
    ref_point: NDArray[np.float64] | None
    gamma_eval: float
    max_episode_steps: int | None
    exact_front: Callable[[float], NDArray[np.float64]] | None = field(repr=False)
    reward_units: tuple[str, ...] = ()
    _observations: ObservationCodec | None = field(default=None, repr=False)
    _actions: ActionCodec | None = field(default=None, repr=False)

    @property
    def front_kind(self) -> str:
        """``exact`` or ``approximate`` where the environment computes its own Pareto front, else ``-``."""
        if self.exact_front is None:
            return "-"
        return "exact" if knows_exactly(self.id) else "approximate"

    def flatten(self, obs: Any) -> NDArray[np.float32]:
        """Return one observation, as the environment gives it, as a flat row (D,).

        Raises:
            EnvError: The observation does not have the environment's shape.
        """
        assert self._observations is not None
        row = np.empty((1, self.obs_size), dtype=np.float32)
        try:
            self._observations.rows(row)[0] = self._observations.encode(obs)
        except (ValueError, TypeError, IndexError, KeyError) as error:
            raise EnvError(f"an observation of {self.id} must fit {self._observations.space}, got {obs!r}") from error
        return np.asarray(row[0])

    def to_env_action(self, action: Any) -> Any:
        """Return one action row, (A,) or a choice counted from 0, as the environment takes it."""
        assert self._actions is not None
        return self._actions.to_env(self._actions.check(np.asarray(action)[None], 1))[0]


def describe_env(env: EnvLike, *, max_episode_steps: int | None = None, **kwargs: Any) -> EnvDescription:
    """Describe an environment without keeping it.

    Own environments may carry the attributes `reward_names`, `reward_units`, `ref_point`, `gamma_eval` and
    the method `pareto_front(gamma)`; they take precedence over the shipped facts.

    Args:
        env: Registered id, `gymnasium.Env` class, or callable that returns a new environment.
        max_episode_steps: Time limit; None keeps the environment's own.
        kwargs: Passed to the environment's constructor.

    Raises:
        EnvError: The environment cannot be made or its spaces are not supported.

    Examples:
        >>> describe_env("deep-sea-treasure-v0").exact_front(1.0).shape
        (10, 2)
    """
    source = EnvSource.of(env, max_episode_steps=max_episode_steps, kwargs=kwargs)
    made = source.build()
    try:
        return _describe(source, made)
    finally:
        made.close()


def list_envs() -> list[EnvDescription]:
    """Describe every registered environment of MO-Gymnasium that can be used here.

    Left out are those that need packages not installed, and those with pixel observations.
    """
    register_mo_gymnasium()
    found = []
    for env_id, spec in sorted(gym.registry.items()):
        if str(spec.entry_point).startswith("mo_gymnasium."):
            try:
                found.append(describe_env(env_id))
            except MooptError:
                continue
    return found


def _describe(source: EnvSource, env: gym.Env[Any, Any]) -> EnvDescription:
    assert isinstance(env, VectorReward)
    m = env.reward_dim
    facts = lookup(source.name, m) if isinstance(source.maker, EnvSpec) else None
    names, units, ref_point, gamma = _facts(env, facts, m)
    observations = ObservationCodec.of(env.observation_space, source.name)
    actions = ActionCodec.of(env.action_space, source.name)
    knows_front = callable(getattr(env.unwrapped, "pareto_front", None))
    return EnvDescription(
        id=source.name,
        obs_size=observations.size,
        action_kind=actions.kind,
        action_size=actions.size,
        action_low=actions.low,
        action_high=actions.high,
        reward_dim=m,
        reward_names=names,
        reward_units=units,
        ref_point=ref_point,
        gamma_eval=gamma,
        max_episode_steps=peel(env)[1],
        exact_front=partial(_exact_front, source) if knows_front else None,
        _observations=observations,
        _actions=actions,
    )


def _facts(
    env: gym.Env[Any, Any], facts: EnvDefaults | None, m: int
) -> tuple[tuple[str, ...], tuple[str, ...], NDArray[np.float64] | None, float]:
    own = env.unwrapped
    names = getattr(own, "reward_names", None) or (
        facts.names if facts else tuple(f"objective {i + 1}" for i in range(m))
    )
    units = getattr(own, "reward_units", None) or (facts.units if facts else ("",) * m)
    ref = getattr(own, "ref_point", None)
    if ref is None and facts:
        ref = facts.ref_point
    gamma = getattr(own, "gamma_eval", None)
    if gamma is None:
        gamma = facts.gamma_eval if facts else DEFAULT_GAMMA
    elif not 0.0 < gamma <= 1.0:
        raise EnvError(f"the environment's gamma_eval must lie in (0, 1], got {gamma!r}")
    for what, value in (("reward_names", names), ("reward_units", units), ("ref_point", ref)):
        if value is not None and len(value) != m:
            raise EnvError(f"the environment's {what} {value!r} must have one entry for each of its {m} objectives")
    point = None if ref is None else np.array(ref, dtype=np.float64)
    return tuple(map(str, names)), tuple(map(str, units)), point, float(gamma)


def _exact_front(source: EnvSource, gamma: float) -> NDArray[np.float64]:
    """Return the front (n, m) that the environment itself knows."""
    if not 0.0 < gamma <= 1.0:
        raise ValueError(f"gamma must lie in (0, 1], got {gamma!r}")
    env = source.build()
    try:
        points: Any = env.get_wrapper_attr("pareto_front")(gamma)
        return np.array(points, dtype=np.float64)
    finally:
        env.close()
