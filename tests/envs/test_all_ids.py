import importlib.util

import pytest

from moopt.testing.envs import ToyEnv, check_mo_env, check_vec_env

IDS = [
    "breakable-bottles-v0",
    "deep-sea-treasure-v0",
    "deep-sea-treasure-concave-v0",
    "deep-sea-treasure-mirrored-v0",
    "fishwood-v0",
    "four-room-v0",
    "fruit-tree-v0",
    "minecart-v0",
    "minecart-deterministic-v0",
    "mo-ant-v4",
    "mo-ant-2d-v4",
    "mo-ant-v5",
    "mo-ant-2obj-v5",
    "mo-halfcheetah-v4",
    "mo-halfcheetah-v5",
    "mo-hopper-v4",
    "mo-hopper-2d-v4",
    "mo-hopper-v5",
    "mo-hopper-2obj-v5",
    "mo-humanoid-v4",
    "mo-humanoid-v5",
    "mo-mountaincar-v0",
    "mo-mountaincarcontinuous-v0",
    "mo-reacher-v5",
    "mo-swimmer-v5",
    "mo-walker2d-v5",
    "resource-gathering-v0",
    "water-reservoir-v0",
]
BOX2D = pytest.mark.skipif(importlib.util.find_spec("Box2D") is None, reason="the extra box2d is not installed")
LANDERS = [pytest.param(i, marks=BOX2D) for i in ("mo-lunar-lander-v3", "mo-lunar-lander-continuous-v3")]


@pytest.mark.parametrize("env_id", IDS + LANDERS)
def test_every_id_keeps_the_contract(env_id):
    facts = check_mo_env(env_id, steps=25)
    assert facts.id == env_id
    check_vec_env(env_id, num_envs=2, steps=24, num_workers=0, max_episode_steps=9)


TOYS = [{}, {"reward_dim": 3}, {"integers": True}, {"as_list": True, "declare": False}]


@pytest.mark.parametrize("kwargs", TOYS, ids=str)
@pytest.mark.parametrize("num_envs", [1, 4])
def test_own_environment_keeps_the_contract(kwargs, num_envs):
    check_mo_env(ToyEnv, **kwargs)
    check_vec_env(ToyEnv, num_envs=num_envs, num_workers=0, max_episode_steps=6, **kwargs)


def test_kit_finds_a_reward_that_ignores_the_seed():
    with pytest.raises(AssertionError, match="same seed and actions differ at step 1"):
        check_mo_env(ToyEnv, fault="noise", at=1)


def test_kit_finds_a_reward_that_is_not_finite():
    with pytest.raises(AssertionError, match="not finite"):
        check_mo_env(ToyEnv, fault="nan_reward", at=1)


WORKED = [
    pytest.param("deep-sea-treasure-v0", 4, 120),
    pytest.param("minecart-v0", 3, 100),
    pytest.param("mo-hopper-2obj-v5", 3, 80),
    pytest.param("mo-lunar-lander-v3", 3, 200, marks=BOX2D),
    pytest.param(ToyEnv, 5, 60),
]


@pytest.mark.parametrize(("env", "num_envs", "steps"), WORKED)
def test_workers_and_resume_change_nothing(env, num_envs, steps):
    check_vec_env(env, num_envs=num_envs, steps=steps, num_workers=2)
