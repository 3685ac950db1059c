import itertools

import numpy as np
import pytest

from moopt.envs import EnvError, describe_env, list_envs, make_env, random_returns, suggest_ref_point
from moopt.envs.defaults import FAMILIES, lookup
from moopt.kernels import hypervolume
from moopt.pareto import Front
from moopt.testing.envs import ToyEnv

KNOWN = [
    ("deep-sea-treasure-v0", {}, 1.0, (0, -50), 10, 994.3),
    ("deep-sea-treasure-v0", {}, 0.99, (0, -50), 10, 854.850350),
    ("deep-sea-treasure-v0", {}, 0.98, (0, -50), 10, 731.613904),
    ("deep-sea-treasure-v0", {}, 1.0, (0, -25), 10, 401.8),
    ("deep-sea-treasure-v0", {}, 0.99, (0, -100), 10, 1843.749157),
    ("deep-sea-treasure-concave-v0", {}, 1.0, (0, -50), 10, 4255.0),
    ("deep-sea-treasure-concave-v0", {}, 0.99, (0, -50), 10, 3688.377090),
    ("deep-sea-treasure-mirrored-v0", {}, 0.98, (0, -50), 10, 3175.197125),
    ("fruit-tree-v0", {}, 1.0, (0,) * 6, 64, 12575.873297),
    ("fruit-tree-v0", {}, 0.99, (-1,) * 6, 64, 46034.801698),
    ("fruit-tree-v0", {"depth": 5}, 0.99, (0,) * 6, 32, 6920.58),
    ("fruit-tree-v0", {"depth": 7}, 0.99, (-1,) * 6, 128, 56718.68),
    ("resource-gathering-v0", {}, 1.0, (-1, -1, -2), 3, 5.729),
    ("resource-gathering-v0", {}, 0.99, (-1, -1, -2), 3, 5.231495),
    ("resource-gathering-v0", {}, 0.9, (-1, -1, -2), 6, 3.083729),
    ("minecart-v0", {}, 1.0, (-1, -1, -200), 10, 879.695313),
    ("minecart-v0", {}, 0.98, (-1, -1, -200), 20, 668.183286),
    ("minecart-v0", {}, 0.98, (0, 0, -200), 20, 100.322234),
    ("minecart-deterministic-v0", {}, 0.99, (-1, -1, -200), 20, 823.792816),
    ("minecart-deterministic-v0", {}, 0.98, (-1, -1, -200), 20, 723.048170),
]


@pytest.mark.parametrize(("env_id", "kwargs", "gamma", "ref", "points", "expected"), KNOWN)
def test_exact_fronts(env_id, kwargs, gamma, ref, points, expected):
    front = describe_env(env_id, **kwargs).exact_front(gamma)
    assert len(front) == points
    digits = len(str(expected).partition(".")[2])
    assert hypervolume(front, np.array(ref, float)) == pytest.approx(expected, abs=0.51 * 10.0**-digits)


def test_facts_of_minecart():
    facts = describe_env("minecart-v0")
    assert (facts.obs_size, facts.action_kind, facts.action_size, facts.reward_dim) == (7, "discrete", 6, 3)
    assert facts.reward_names == ("ore 1", "ore 2", "fuel")
    assert facts.ref_point.tolist() == [-1, -1, -200]
    assert facts.gamma_eval == 0.98
    assert facts.max_episode_steps == 1000
    assert facts.action_low.size == 0


def test_facts_of_hopper_follow_its_arguments():
    facts = describe_env("mo-hopper-v5", cost_objective=False)
    assert facts.reward_names == ("forward speed", "height")
    assert facts.ref_point.tolist() == [-100, -100]
    assert facts.exact_front is None
    assert (facts.action_kind, facts.action_size) == ("box", 3)
    assert facts.action_low.tolist() == [-1, -1, -1]
    assert facts.action_low.dtype == np.float32


def test_unbounded_actions():
    facts = describe_env("water-reservoir-v0")
    assert facts.action_low.tolist() == [0]
    assert facts.action_high.tolist() == [np.inf]


def test_unknown_environment_has_no_reference_point():
    facts = describe_env(ToyEnv, reward_dim=3)
    assert facts.id == "ToyEnv"
    assert facts.ref_point is None
    assert facts.reward_names == ("objective 1", "objective 2", "objective 3")
    assert facts.reward_units == ("", "", "")
    assert facts.gamma_eval == 0.99


class Documented(ToyEnv):
    reward_names = ("place", "time")
    reward_units = ("m", "s")
    ref_point = (-9, -99)
    gamma_eval = 1.0

    def pareto_front(self, gamma):
        return [[3.0, -3.0 * gamma]]


def test_own_environment_may_state_its_facts():
    facts = describe_env(Documented)
    assert facts.reward_names == ("place", "time")
    assert facts.reward_units == ("m", "s")
    assert facts.ref_point.tolist() == [-9, -99]
    assert facts.gamma_eval == 1.0
    assert facts.exact_front(0.5).tolist() == [[3.0, -1.5]]


def test_own_facts_of_wrong_length():
    with pytest.raises(EnvError, match=r"reward_names .* one entry for each of its 3 objectives"):
        describe_env(Documented, reward_dim=3)


@pytest.mark.parametrize("gamma", [0.0, -1.0, 1.5, float("nan")])
def test_own_gamma_out_of_range(gamma):
    class Odd(Documented):
        gamma_eval = gamma

    with pytest.raises(EnvError, match=r"gamma_eval must lie in \(0, 1\]"):
        describe_env(Odd)


def test_gamma_of_the_exact_front_is_checked():
    with pytest.raises(ValueError, match="gamma must lie in"):
        describe_env("fruit-tree-v0").exact_front(1.5)


def test_every_usable_id_has_facts():
    listed = list_envs()
    ids = [facts.id for facts in listed]
    assert len(ids) >= 30
    assert ids == sorted(ids)
    assert "minecart-rgb-v0" not in ids
    assert {"mo-hopper-2d-v4", "mo-humanoid-v5", "water-reservoir-v0", "four-room-v0"} <= set(ids)
    assert [facts.id for facts in listed if facts.ref_point is None or lookup(facts.id, facts.reward_dim) is None] == []


def test_table_is_consistent():
    for family, entries in FAMILIES.items():
        for facts in entries:
            m = len(facts.names)
            assert len(facts.units) == m == len(facts.ref_point), family
            assert 0 < facts.gamma_eval <= 1, family
        assert len({len(facts.names) for facts in entries}) == len(entries), family


@pytest.mark.parametrize(
    "env_id",
    [
        "breakable-bottles-v0",
        "fishwood-v0",
        "four-room-v0",
        "mo-mountaincar-v0",
        "mo-reacher-v5",
        "water-reservoir-v0",
    ],
)
def test_chosen_reference_points_lie_below_a_random_policy(env_id):
    returns = random_returns(env_id, episodes=5, seed=100)
    assert (returns > describe_env(env_id).ref_point).all()


def test_suggested_reference_point_lies_below_every_random_return():
    point = suggest_ref_point(ToyEnv, episodes=20, gamma=1.0)
    returns = random_returns(ToyEnv, episodes=20, gamma=1.0)
    assert point.shape == (2,)
    assert (point < returns.min(axis=0)).all()
    assert np.array_equal(returns, random_returns(ToyEnv, episodes=20, gamma=1.0))
    assert not np.array_equal(returns, random_returns(ToyEnv, episodes=20, gamma=1.0, seed=50))


APPROXIMATE = {"minecart-v0", "minecart-deterministic-v0", "resource-gathering-v0"}


def test_a_front_that_policies_can_beat_is_called_approximate():
    kinds = {env.id: env.front_kind for env in list_envs()}
    assert {env_id for env_id, kind in kinds.items() if kind == "approximate"} == APPROXIMATE
    exact = {env_id for env_id, kind in kinds.items() if kind == "exact"}
    assert exact == {f"deep-sea-treasure-{kind}v0" for kind in ("", "concave-", "mirrored-")} | {"fruit-tree-v0"}


def plan_returns(env_id, plans, gamma):
    """Discounted returns (n, m) of fixed sequences of actions."""
    env = make_env(env_id)
    returns = []
    for plan in plans:
        env.reset(seed=0)
        rewards = [env.step(action)[1] for action in plan]
        returns.append(gamma ** np.arange(len(plan)) @ np.array(rewards))
    env.close()
    return np.array(returns)


def shortest_plans(env_id):
    """One shortest sequence of actions to each state that ends the episode, by breadth-first search."""
    env = make_env(env_id)
    layer, seen, found = [()], set(), []
    while layer:
        longer = []
        for plan in ((*p, action) for p in layer for action in range(env.action_space.n)):
            env.reset(seed=0)
            *_, (obs, _, terminated, _, _) = (env.step(action) for action in plan)
            if tuple(obs) not in seen:
                seen.add(tuple(obs))
                (found if terminated else longer).append(plan)
        layer = longer
    env.close()
    return found


def undominated(points):
    front = Front(np.unique(points.round(5), axis=0)).points
    return front[np.lexsort(front.T)]


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("kind", ["", "concave-", "mirrored-"])
def test_fronts_called_exact_are_those_of_all_plans(kind, gamma):
    env_id = f"deep-sea-treasure-{kind}v0"
    own = undominated(plan_returns(env_id, shortest_plans(env_id), gamma))
    np.testing.assert_allclose(undominated(describe_env(env_id).exact_front(gamma)), own, atol=2e-5)


def test_the_front_of_the_fruit_tree_is_that_of_all_leaves():
    own = undominated(plan_returns("fruit-tree-v0", list(itertools.product(range(2), repeat=6)), 0.9))
    np.testing.assert_allclose(undominated(describe_env("fruit-tree-v0").exact_front(0.9)), own, atol=2e-5)


def test_a_plan_beats_the_front_of_resource_gathering():
    up, down, left, right = range(4)
    plan = [left, up, up, up, up, right, left, down, down, right, right, right, up, down, down, down, left, left]
    (reached,) = plan_returns("resource-gathering-v0", [plan], 0.99)
    known = describe_env("resource-gathering-v0").exact_front(0.99)
    assert (reached > known).all(axis=1).any()
    assert reached[0] == 0.0  # past all enemies
