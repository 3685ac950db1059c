import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecCheckNan, VecEnvWrapper, VecMonitor

from moopt.envs import EnvError, make_vec_env
from moopt.envs.vec import VecStep
from moopt.testing.envs import ToyEnv, random_actions, rollout


def toy(num_envs=3, **kwargs):
    limit = kwargs.pop("max_episode_steps", 6)
    own = {name: kwargs.pop(name) for name in ("num_workers",) if name in kwargs}
    seed = kwargs.pop("seed", 0)
    return make_vec_env(ToyEnv, num_envs, seed=seed, max_episode_steps=limit, env_kwargs=kwargs, **own)


def drive(vec, steps):
    for t in range(steps):
        vec.step_arrays([t % 2] * vec.num_envs)


def test_shapes_and_types():
    vec = toy(4, reward_dim=3, integers=True)
    obs = vec.reset()
    assert obs.shape == (4, 2)
    assert obs.dtype == np.float32
    step = vec.step_arrays(np.ones(4, int))
    assert step.rewards.shape == (4, 3)
    assert step.rewards.dtype == np.float64
    assert step.terminated.dtype == step.truncated.dtype == bool
    assert step.final_obs.dtype == np.float32
    assert vec.reward_dim == 3
    assert vec.observation_space.dtype == np.float32
    assert isinstance(vec.action_space, spaces.Discrete)
    assert vec.max_episode_steps == 6


def test_automatic_reset_keeps_the_last_observation():
    vec = toy(1)
    start = vec.reset()[0, 0]
    steps = int(3 - start)
    for _ in range(steps):
        step = vec.step_arrays([1])
    assert step.terminated[0]
    assert step.final_obs[0].tolist() == [3, steps]
    assert step.obs[0, 1] == 0
    assert abs(step.obs[0, 0]) <= 1
    assert step.rewards[0].tolist() == [3, -1]


def test_truncation_is_kept_apart_from_termination():
    vec = toy(1, max_episode_steps=4)
    start = vec.reset()[0, 0]
    for t in range(4):
        step = vec.step_arrays([t % 2])
        assert step.truncated[0] == (t == 3)
        assert not step.terminated[0]
    assert step.final_obs[0].tolist() == [start, 4]
    assert step.obs[0, 1] == 0


def test_both_flags_when_both_happen():
    vec = toy(1, max_episode_steps=2)
    while vec.reset()[0, 0] != 1:
        pass
    vec.step_arrays([1])
    step = vec.step_arrays([1])
    assert step.terminated[0]
    assert step.truncated[0]


def test_inner_time_limits_count_too():
    vec = make_vec_env(lambda: TimeLimit(ToyEnv(), 3), 1, seed=0, max_episode_steps=50)
    assert vec.max_episode_steps == 3
    vec.reset()
    assert [bool(vec.step_arrays([t % 2]).truncated[0]) for t in range(3)] == [False, False, True]


def test_every_episode_starts_from_a_fresh_seed():
    vec = make_vec_env("mo-mountaincar-v0", 3, seed=0, max_episode_steps=2)
    starts = [tuple(row) for row in vec.reset()]
    for _ in range(40):
        step = vec.step_arrays([1, 1, 1])
        starts += [tuple(row) for row in step.obs[step.truncated]]
    assert len(starts) == 63
    assert len(set(starts)) == len(starts)
    first = vec.reset()
    assert not np.array_equal(first, vec.reset())


def test_copies_do_not_depend_on_how_many_there_are():
    few, many = toy(2), toy(5)
    assert np.array_equal(few.reset(), many.reset()[:2])


def test_other_seeds_give_other_episodes():
    a = make_vec_env("mo-mountaincar-v0", 2, seed=0).reset()
    assert np.array_equal(a, make_vec_env("mo-mountaincar-v0", 2, seed=0).reset())
    assert not np.array_equal(a, make_vec_env("mo-mountaincar-v0", 2, seed=1).reset())
    child = np.random.SeedSequence(0).spawn(1)[0]
    assert not np.array_equal(a, make_vec_env("mo-mountaincar-v0", 2, seed=child).reset())


def test_action_space_is_seeded():
    a, b, c = toy(), toy(), toy(seed=1)
    drawn = [[vec.action_space.sample() for _ in range(40)] for vec in (a, b, c)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_state_is_plain_and_survives_growth_of_the_log():
    vec = make_vec_env("mo-mountaincar-v0", 2, seed=3)
    vec.reset()
    rollout(vec, 150, np.random.default_rng(0))
    state = vec.state_dict()
    assert {type(value) for value in state.values()} == {np.ndarray}
    assert state["steps"].tolist() == [150, 150]
    assert state["actions"].shape == (300,)
    other = make_vec_env("mo-mountaincar-v0", 2, seed=9)
    other.load_state_dict(state)
    expected = rollout(vec, 60, np.random.default_rng(1))
    got = rollout(other, 60, np.random.default_rng(1))
    for a, b in zip(expected, got, strict=True):
        assert np.array_equal(a.obs, b.obs)
    assert vec.state_dict()["episodes"].tolist() == [1, 1]
    assert all(np.array_equal(vec.state_dict()[k], other.state_dict()[k]) for k in state)


def test_state_before_the_first_reset():
    vec, other = toy(seed=4), toy(seed=5)
    other.load_state_dict(vec.state_dict())
    assert np.array_equal(vec.reset(), other.reset())


def test_state_of_other_sizes_is_refused():
    state = toy(3).state_dict()
    with pytest.raises(EnvError, match="3 environment copies; this one has 2"):
        toy(2).load_state_dict(state)
    hopper = make_vec_env("mo-hopper-v5", 3, seed=0)
    hopper.reset()
    hopper.step_arrays(np.zeros((3, 3), np.float32))
    vec = toy(3)
    with pytest.raises(EnvError, match="saved actions have shape"):
        vec.load_state_dict(hopper.state_dict())


class Shrinking(ToyEnv):
    """Ends its episodes sooner each time it is made, so it cannot be replayed."""

    made = 0

    def __init__(self):
        super().__init__()
        type(self).made += 1
        self.limit = 6 - 2 * (type(self).made // 3)

    def step(self, action):
        obs, reward, over, cut, info = super().step(action)
        return obs, reward, over, cut or bool(obs[1] >= self.limit), info


def test_environment_that_does_not_repeat_itself_is_told():
    vec = make_vec_env(Shrinking, 1, seed=0)
    vec.reset()
    for t in range(5):
        vec.step_arrays([t % 2])
    state = vec.state_dict()
    other = make_vec_env(Shrinking, 1, seed=0)
    with pytest.raises(EnvError, match="ended its episode early in the replay"):
        other.load_state_dict(state)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "nan_reward",
            r"'ToyEnv' \(copy 0, episode 0, step 3\) returned the reward array\(\[nan, -1.*on action",
        ),
        ("inf_obs", "returned the observation array.*inf.*must be finite"),
        ("raise", r"\(copy 0, episode 0, step 2\) raised RuntimeError: the pole broke on action"),
        ("scalar", r"returned the reward array\(1\.\); expected 2 numbers"),
    ],
)
def test_faults_while_stepping(fault, message):
    vec = toy(3, fault=fault, at=3)
    vec.reset()
    with pytest.raises(EnvError, match=message):
        drive(vec, 3)
    with pytest.raises(EnvError, match="is closed"):
        vec.step_arrays([1, 1, 1])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise_reset", r"\(copy 0, episode 0, step 0\) raised RuntimeError: reset went wrong in reset\(seed="),
        ("nan_reset", "returned the observation after reset array"),
    ],
)
def test_faults_in_reset(fault, message):
    with pytest.raises(EnvError, match=message):
        toy(2, fault=fault).reset()


class OldStep(ToyEnv):
    def step(self, action):
        obs, reward, over, _, info = super().step(action)
        return obs, reward, over, info


class OldReset(ToyEnv):
    def reset(self, *, seed=None, options=None):
        return [*super().reset(seed=seed)[0], 0]


class Wider(ToyEnv):
    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, np.append(reward, 0.0), *rest


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (OldStep, "step must return observation, reward, terminated, truncated and info"),
        (OldReset, "reset must return observation and info"),
        (Wider, r"returned the reward array\(\[.*\]\); expected 2 numbers"),
    ],
)
def test_environments_of_another_shape_are_told_what_is_wanted(env, message):
    vec = make_vec_env(env, 2, seed=0)
    with pytest.raises(EnvError, match=message):
        [vec.reset(), vec.step_arrays([0, 1])]


def test_huge_but_finite_values_are_no_fault():
    class Huge(ToyEnv):
        def step(self, action):
            _, _, over, cut, info = super().step(action)
            return np.full(2, 3e38, np.float32), np.array([1.7e308, -1.7e308]), over, cut, info

    vec = make_vec_env(Huge, 3, seed=0)
    vec.reset()
    assert vec.step_arrays([0, 0, 1]).rewards[0].tolist() == [1.7e308, -1.7e308]


@pytest.mark.parametrize(("name", "value"), [("num_envs", 0), ("num_envs", 2.0), ("num_workers", -1)])
def test_wrong_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least"):
        make_vec_env(ToyEnv, **{"num_envs": 1, "seed": 0, name: value})


def test_order_of_calls_is_checked():
    vec = toy(2)
    with pytest.raises(EnvError, match="call reset"):
        vec.step_arrays([0, 0])
    vec.reset()
    with pytest.raises(EnvError, match="without step_async"):
        vec.step_wait()
    vec.step_async([0, 0])
    with pytest.raises(EnvError, match="twice"):
        vec.step_async([0, 0])
    with pytest.raises(EnvError, match="between step_async and step_wait"):
        vec.get_attr("spec")
    with pytest.raises(EnvError, match="between step_async and step_wait"):
        vec.state_dict()
    vec.step_wait()
    vec.close()
    vec.close()
    with pytest.raises(EnvError, match="is closed"):
        vec.reset()


def test_wrong_actions_leave_it_usable():
    vec = toy(2)
    vec.reset()
    with pytest.raises(ValueError, match="shape"):
        vec.step_arrays([0])
    vec.step_arrays([0, 1])
    box = make_vec_env("water-reservoir-v0", 2, seed=0)
    box.reset()
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="actions must be finite; the policy that chose them has diverged"):
            box.step_arrays(np.array([[0.0], [bad]]))
    box.step_arrays(np.zeros((2, 1)))
    box.close()


def test_attributes_and_methods():
    vec = toy(3)
    assert vec.get_attr("reward_dim") == [2, 2, 2]
    vec.set_attr("colour", "red", indices=[0, 2])
    assert vec.get_attr("colour", indices=2) == ["red"]
    assert not vec.has_attr("no_such_attribute")
    assert vec.env_is_wrapped(TimeLimit) == [True, True, True]
    assert vec.env_is_wrapped(VecCheckNan, indices=[1]) == [False]
    assert len(vec.env_method("reset", seed=3)) == 3
    with pytest.raises(EnvError, match="reset options"):
        vec.set_options({"x": 1})


def test_seed_counts_episodes_anew():
    vec = toy(2, seed=0)
    first = vec.reset().copy()
    vec.reset()
    assert vec.seed(0) == [vec.episode_seed(0, 0), vec.episode_seed(1, 0)]
    assert np.array_equal(vec.reset(), first)


class Linear(VecEnvWrapper):
    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        return obs, rewards.mean(axis=1), dones, infos


def test_stable_baselines3_infos():
    vec = toy(1, max_episode_steps=2)
    vec.reset()
    obs, rewards, _, infos = vec.step(np.array([0]))
    assert infos == [{}]
    later = vec.step(np.array([1]))
    assert later[2].tolist() == [True]
    assert later[3][0]["TimeLimit.truncated"] is True
    assert later[3][0]["terminal_observation"][1] == 2
    assert obs[0, 1] == 1, "earlier results must not change"
    assert rewards.shape == (1, 2)


def test_stable_baselines3_ppo_learns_on_it():
    vec = VecMonitor(VecCheckNan(Linear(toy(4, max_episode_steps=5)), raise_exception=True))
    model = PPO("MlpPolicy", vec, n_steps=8, batch_size=16, n_epochs=1, seed=0, device="cpu")
    model.learn(64)
    assert model.num_timesteps == 64
    assert model.ep_info_buffer[0]["l"] <= 5
    assert vec.unwrapped.num_envs == 4


def test_boxes_of_any_shape():
    class Grid(ToyEnv):
        def __init__(self):
            super().__init__()
            self.observation_space = spaces.Box(0, 9, (2, 3), np.float64)
            self.action_space = spaces.Box(-1, 1, (2, 2))

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.arange(6.0).reshape(2, 3), {}

        def step(self, action):
            assert action.shape == (2, 2)
            return np.full((2, 3), action.sum()), [1.0, 2.0], False, False, {}

    vec = make_vec_env(Grid, 2, seed=0)
    assert vec.reset()[1].tolist() == [0, 1, 2, 3, 4, 5]
    assert vec.step_arrays(np.ones((2, 4), np.float32)).obs.tolist() == [[4] * 6] * 2
    assert vec.action_low.shape == (4,)
    assert random_actions(vec, np.random.default_rng(0)).shape == (2, 4)
    state = vec.state_dict()
    assert make_vec_env(Grid, 2, seed=0).load_state_dict(state).tolist() == [[4] * 6] * 2


@pytest.mark.parametrize("workers", [0, 2])
def test_only_active_copies_step(workers):
    """Stepping some copies is stepping them alone; the others lose nothing, their episodes resume exactly."""
    plain, masked = toy(4, num_workers=workers), toy(4, num_workers=workers)
    plain.reset()
    before = masked.reset().copy()
    active = np.array([True, False, True, False])
    for t in range(5):
        expected = plain.step_arrays([t % 2] * 4)
        step = masked.step_arrays([t % 2] * 4, active=active)
        for name in VecStep._fields:
            np.testing.assert_array_equal(getattr(step, name)[active], getattr(expected, name)[active])
        np.testing.assert_array_equal(step.obs[~active], before[~active])
        assert not step.rewards[~active].any()
        assert not (step.terminated | step.truncated)[~active].any()
    state = masked.state_dict()
    np.testing.assert_array_equal(state["steps"][~active], 0)
    again = toy(4, num_workers=workers)
    again.load_state_dict(state)
    for t in range(4):
        first, second = masked.step_arrays([t % 2] * 4), again.step_arrays([t % 2] * 4)
        np.testing.assert_array_equal(first.obs, second.obs)
        np.testing.assert_array_equal(first.rewards, second.rewards)
    for vec in (plain, masked, again):
        vec.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_idle_copies_are_not_stepped(workers):
    """The environments themselves count; a mask holds for one step, also where the step fails."""

    class Counting(ToyEnv):
        calls = 0

        def step(self, action):
            self.calls += 1
            return super().step(action)

    vec = make_vec_env(Counting, 3, seed=0, num_workers=workers)
    first = vec.reset()
    step = vec.step_arrays([0, 0, 0], active=[False, False, False])
    np.testing.assert_array_equal(step.obs, first)
    np.testing.assert_array_equal(step.final_obs, first)
    assert vec.get_attr("calls") == [0, 0, 0]
    vec.step_arrays([0, 1, 0], active=[False, True, True])
    with pytest.raises(ValueError, match="action"):
        vec.step_arrays([0, 7, 0], active=[False, True, True])
    assert vec.get_attr("calls") == [0, 1, 1]
    vec.step_arrays([0, 1, 0])
    vec.step_async([0, 1, 0])
    with pytest.raises(EnvError, match="between step_async and step_wait"):
        vec.step_arrays([0, 1, 0], active=[False, True, True])
    vec.step_wait()
    assert vec.get_attr("calls") == [2, 3, 3]
    vec.close()


def test_a_wrong_mask_is_refused():
    vec = toy(3)
    vec.reset()
    for active in (np.ones(2, bool), [1, 0, 1], True, np.ones((3, 1), bool)):
        with pytest.raises(ValueError, match=r"active must be \(3,\) booleans"):
            vec.step_arrays([0, 0, 0], active=active)
