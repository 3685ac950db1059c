import importlib.util

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from moopt.envs import EnvError, describe_env, make_env
from moopt.envs.repairs import SeededMines
from moopt.runs.errors import MissingExtraError
from moopt.testing.envs import ToyEnv


def test_unknown_id_names_the_nearest_one():
    with pytest.raises(EnvError, match=r"unknown environment 'mo-hoper-v5'.*did you mean 'mo-hopper-v5'\?"):
        make_env("mo-hoper-v5")


def test_unknown_module_of_an_id():
    with pytest.raises(EnvError, match="'no_such_module' cannot be imported"):
        make_env("no_such_module:thing-v0")


def test_scalar_reward_of_a_registered_id():
    with pytest.raises(EnvError, match="'CartPole-v1' has a scalar reward"):
        make_env("CartPole-v1")


def test_one_objective_is_refused():
    with pytest.raises(EnvError, match="one objective only"):
        make_env(ToyEnv, reward_dim=1)


@pytest.mark.skipif(importlib.util.find_spec("highway_env") is not None, reason="highway-env is installed")
def test_missing_package_names_the_command():
    with pytest.raises(MissingExtraError, match=r"highway_env: pip install highway-env"):
        make_env("mo-highway-v0")


def test_wrong_keyword_is_one_clear_error():
    with pytest.raises(EnvError, match=r"refuses its arguments {'depht': 5}"):
        make_env("fruit-tree-v0", depht=5)


def test_a_constructor_that_fails_is_named():
    with pytest.raises(EnvError, match="making environment 'ToyEnv' failed: RuntimeError: no such map"):
        make_env(ToyEnv, fault="constructor")


@pytest.mark.parametrize("bad", [3, None, ["deep-sea-treasure-v0"]])
def test_wrong_kind_of_env(bad):
    with pytest.raises(TypeError, match="must be an id"):
        make_env(bad)


def test_instance_is_refused():
    with pytest.raises(TypeError, match="instance of ToyEnv"):
        make_env(ToyEnv())


def test_callable_that_returns_something_else():
    with pytest.raises(EnvError, match=r"returned builtins.int; expected a gymnasium.Env"):
        make_env(lambda: 3)


def test_max_episode_steps_must_be_positive():
    with pytest.raises(ValueError, match="max_episode_steps must be at least 1"):
        make_env("deep-sea-treasure-v0", max_episode_steps=0)


@pytest.mark.parametrize(
    "env", [ToyEnv, lambda: ToyEnv(), lambda: TimeLimit(ToyEnv(), 9)], ids=["class", "fn", "limit"]
)
def test_class_and_callable(env):
    made = make_env(env)
    made.reset(seed=0)
    assert made.step(1)[1].dtype == np.float64
    assert made.reward_dim == 2


def test_list_rewards_become_arrays():
    for made in (make_env("breakable-bottles-v0"), make_env(ToyEnv, as_list=True, declare=False)):
        made.reset(seed=0)
        reward = made.step(0)[1]
        assert isinstance(reward, np.ndarray)
        assert reward.dtype == np.float64


def test_time_limit_is_set_and_overridden():
    assert make_env("deep-sea-treasure-v0", max_episode_steps=5).get_wrapper_attr("_max_episode_steps") == 5
    assert describe_env("mo-hopper-v4", max_episode_steps=500).max_episode_steps == 500
    assert describe_env(ToyEnv, max_episode_steps=4).max_episode_steps == 4
    assert describe_env(ToyEnv).max_episode_steps is None


def test_reward_of_wrong_width_is_caught():
    made = make_env(ToyEnv, fault="scalar", at=1)
    made.reset(seed=0)
    with pytest.raises(EnvError, match=r"must have shape \(2,\), got array"):
        made.step(0)


def test_old_versions_and_box_precision_are_silent(recwarn, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for env_id in ("mo-hopper-v4", "mo-halfcheetah-v5", "minecart-v0"):
        make_env(env_id).close()
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_other_warnings_pass():
    class Warner(ToyEnv):
        def __init__(self):
            super().__init__()
            gym.logger.warn("something a user can act on")

    with pytest.warns(UserWarning, match="can act on"):
        make_env(Warner)


def test_minecart_mines_draw_from_the_seeded_generator():
    made = make_env("minecart-v0")
    draws = []
    for _ in range(2):
        made.reset(seed=3)
        np.random.random()  # noqa: NPY002 - the global generator must not matter
        draws.append([mine.mine() for mine in made.unwrapped.mines])
    assert draws[0] == draws[1]
    made.reset(seed=4)
    assert [mine.mine() for mine in made.unwrapped.mines] != draws[0]


def test_minecart_class_is_repaired_too():
    kind = type(make_env("minecart-v0").unwrapped)
    assert isinstance(make_env(kind).env, SeededMines)


class OddSpaces(ToyEnv):
    def __init__(self, observation_space=None, action_space=None):
        super().__init__()
        self.observation_space = observation_space or self.observation_space
        self.action_space = action_space or self.action_space


def test_unsupported_spaces():
    with pytest.raises(EnvError, match="no fixed flat size"):
        describe_env(OddSpaces, observation_space=spaces.Sequence(spaces.Discrete(2)))
    with pytest.raises(EnvError, match="allowed are Box of floats and Discrete"):
        describe_env(OddSpaces, action_space=spaces.MultiDiscrete([2, 2]))
    with pytest.raises(EnvError, match="pixel observations of shape"):
        describe_env("minecart-rgb-v0")
