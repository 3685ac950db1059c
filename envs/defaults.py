"""Shipped facts of known environments: names of the objectives, reference point, discount of evaluation.

Names and units follow the documentation of MO-Gymnasium 1.3; a unit is that of one step's reward. Reference
points are larger-is-better. Those published with an algorithm are kept, even where a random policy falls
below them (time in deep-sea-treasure, control cost of mo-ant-v4). The others lie below the discounted returns
of a uniformly random policy, which `python -m moopt.envs.reference ID` measures; the reason stands beside
each group.
"""

from dataclasses import dataclass

__all__ = ["EnvDefaults", "lookup"]


@dataclass(frozen=True)
class EnvDefaults:
    """Facts of one family of environments with a given number of objectives."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    ref_point: tuple[float, ...]
    gamma_eval: float = 0.99


def _same(names: tuple[str, ...], units: tuple[str, ...], level: float) -> EnvDefaults:
    return EnvDefaults(names, units, (level,) * len(names))


_SPEED_COST = (("forward speed", "control cost"), ("m/s", ""))
_TREASURE = EnvDefaults(("treasure", "time"), ("", "steps"), (0.0, -50.0))
_MINECART = EnvDefaults(("ore 1", "ore 2", "fuel"), ("", "", ""), (-1.0, -1.0, -200.0), 0.98)
_HIGHWAY = EnvDefaults(("speed", "right lane", "collision"), ("", "", ""), (-1.0, -1.0, -100.0))
_LANDER = EnvDefaults(
    ("landing", "shaping", "main engine fuel", "side engine fuel"),
    ("",) * 4,
    (-101.0, -1001.0, -101.0, -101.0),
)

FAMILIES: dict[str, tuple[EnvDefaults, ...]] = {
    # Published: MO-Gymnasium's and MORL-Baselines' experiments, C-MORL's scripts.
    "deep-sea-treasure": (_TREASURE,),
    "deep-sea-treasure-concave": (_TREASURE,),
    "deep-sea-treasure-mirrored": (_TREASURE,),
    "fruit-tree": (_same(("protein", "carbs", "fats", "vitamins", "minerals", "water"), ("",) * 6, -1.0),),
    "resource-gathering": (EnvDefaults(("survival", "gold", "diamond"), ("",) * 3, (-1.0, -1.0, -2.0)),),
    "minecart": (_MINECART,),
    "minecart-deterministic": (_MINECART,),
    "mo-lunar-lander": (_LANDER,),
    "mo-lunar-lander-continuous": (_LANDER,),
    "mo-hopper": (
        _same(("forward speed", "height", "control cost"), ("m/s", "dm", ""), -100.0),
        _same(("forward speed", "height"), ("m/s", "dm"), -100.0),
    ),
    "mo-hopper-2d": (_same(("forward speed", "height"), ("m/s", "dm"), -100.0),),
    "mo-hopper-2obj": (_same(("forward speed", "height"), ("m/s", "dm"), -100.0),),
    "mo-halfcheetah": (_same(*_SPEED_COST, -100.0),),
    "mo-ant": (
        _same(("x speed", "y speed", "control cost"), ("m/s", "m/s", ""), -100.0),
        _same(("x speed", "y speed"), ("m/s", "m/s"), -100.0),
    ),
    "mo-ant-2d": (_same(("x speed", "y speed"), ("m/s", "m/s"), -100.0),),
    "mo-ant-2obj": (_same(("x speed", "y speed"), ("m/s", "m/s"), -100.0),),
    "mo-humanoid": (_same(*_SPEED_COST, -100.0),),
    # Own choice where the published -100 would cut off ordinary policies: below the largest control cost that
    # the action bounds allow (v5 of HalfCheetah counts ten times the cost of v4).
    "mo-halfcheetah-v5": (EnvDefaults(*_SPEED_COST, (-100.0, -1000.0)),),
    "mo-walker2d": (EnvDefaults(*_SPEED_COST, (-100.0, -600.0)),),
    "mo-swimmer": (EnvDefaults(*_SPEED_COST, (-100.0, -250.0)),),
    "mo-ant-v5": (
        EnvDefaults(("x speed", "y speed", "control cost"), ("m/s", "m/s", ""), (-100.0, -100.0, -800.0)),
        _same(("x speed", "y speed"), ("m/s", "m/s"), -100.0),
    ),
    # Own choice: below the least return that the reward allows, hence below a random policy.
    "mo-reacher": (_same(("target 1", "target 2", "target 3", "target 4"), ("",) * 4, -50.0),),
    "breakable-bottles": (EnvDefaults(("time", "bottles", "potential"), ("steps", "", ""), (-100.0, -1.0, -2.0)),),
    "fishwood": (EnvDefaults(("wood", "fish"), ("", ""), (-1.0, -1.0)),),
    "four-room": (_same(("blue squares", "green triangles", "red circles"), ("",) * 3, -1.0),),
    "mo-mountaincar": (_same(("time", "reverse", "forward"), ("steps",) * 3, -100.0),),
    "mo-mountaincar-3d": (EnvDefaults(("time", "move", "speed"), ("steps", "steps", ""), (-100.0, -100.0, -1.0)),),
    "mo-mountaincar-timemove": (_same(("time", "move"), ("steps", "steps"), -100.0),),
    "mo-mountaincar-timespeed": (EnvDefaults(("time", "speed"), ("steps", ""), (-100.0, -1.0)),),
    "mo-mountaincarcontinuous": (_same(("time", "fuel"), ("steps", ""), -110.0),),
    "mo-highway": (_HIGHWAY,),
    "mo-highway-fast": (_HIGHWAY,),
    # Own choice: below the worst of 50 episodes of a random policy, (-5816, -923).
    "water-reservoir": (EnvDefaults(("flooding", "water demand"), ("", ""), (-6500.0, -1500.0)),),
}
"""Id or family (id without version; the id comes first) to facts, one entry for each number of objectives."""


_APPROXIMATE = frozenset({"minecart", "minecart-deterministic", "resource-gathering"})
"""Families whose own `pareto_front` looks at some policies only: others dominate points of it. That of
resource-gathering lacks the 18 steps to both resources past all enemies, and discounts a step too much."""


def knows_exactly(env_id: str) -> bool:
    """Tell whether the front that an environment computes of itself is exact."""
    return env_id.rpartition(":")[2].rpartition("-v")[0] not in _APPROXIMATE


def lookup(env_id: str, reward_dim: int) -> EnvDefaults | None:
    """Return the facts of an id used with `reward_dim` objectives, or None.

    Examples:
        >>> lookup("minecart-v0", 3).names
        ('ore 1', 'ore 2', 'fuel')
    """
    own = env_id.rpartition(":")[2]
    entries = FAMILIES.get(own) or FAMILIES.get(own.rpartition("-v")[0], ())
    return next((facts for facts in entries if len(facts.names) == reward_dim), None)
