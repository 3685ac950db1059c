import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

from moopt.agents import CMORL, CMORLConfig
from moopt.envs import EnvError, make_env, make_vec_env
from moopt.runs import MooptError
from moopt.testing.agents import AgentContract

GOLDEN = Path(__file__).parent / "golden_cmorl.json"

TINY = CMORLConfig(
    num_policies=3,
    num_envs=4,
    num_steps=16,
    batch_size=32,
    num_epochs=3,
    num_select=2,
    round_updates=3,
    eval_interval=2,
    eval_episodes=2,
    final_eval_episodes=4,
    checkpoint_interval=2,
    hidden_sizes=(16,),
    learning_rate=1e-2,
)


class TradeOff(gym.Env):
    """One continuous choice a per step, ten steps: rewards 1 - (a - 1/2)^2 and 1 - (a + 1/2)^2; a noisy observation."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (2,), np.float64)
    action_space = gym.spaces.Box(-2.0, 2.0, (1,), np.float32)
    reward_space = gym.spaces.Box(-30.0, 10.0, (2,), np.float64)
    ref_point = (-20.0, -20.0)
    gamma_eval = 1.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.np_random.normal(size=2), {}

    def step(self, action):
        self.t += 1
        a = float(action[0])
        reward = np.array([1 - (a - 0.5) ** 2, 1 - (a + 0.5) ** 2])
        return self.np_random.normal(size=2), reward, self.t == 10, False, {}


class NaNReward(TradeOff):
    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, reward * np.nan, *rest


class TestTradeOff(AgentContract):
    total_steps = 3000

    def make_agent(self, seed):
        return CMORL(TradeOff, TINY, seed=seed, device="cpu")

    def load_agent(self, directory):
        return CMORL.load(directory, env=TradeOff, device="cpu")

    def observation(self, agent):
        return np.array([0.3, -0.2])


class TestDiscrete(AgentContract):
    total_steps = 3000

    def make_agent(self, seed):
        return CMORL("deep-sea-treasure-v0", TINY, seed=seed, device="cpu")

    def load_agent(self, directory):
        return CMORL.load(directory, device="cpu")

    def observation(self, agent):
        return np.array([2, 1], dtype=np.int32)


def test_the_front_of_a_known_trade_off_is_found():
    config = CMORLConfig(**{**vars(TINY), "num_envs": 8, "num_steps": 40, "num_policies": 2, "max_episode_steps": None})
    result = CMORL(TradeOff, config, seed=0, device="cpu").train(120_000)
    front = result.front
    a = np.linspace(-0.5, 0.5, 201)
    exact = np.stack([10 * (1 - (a - 0.5) ** 2), 10 * (1 - (a + 0.5) ** 2)], axis=1)
    from moopt.pareto import hypervolume

    best = hypervolume(exact, ref=front.ref_point)
    assert front.hypervolume() <= best
    assert front.hypervolume() > 0.99 * best
    assert len(front) > 8
    sample = np.random.default_rng(0).normal(size=(5, 2))
    agent = CMORL(TradeOff, config, seed=0, device="cpu")
    agent.train(20_000)
    first, second = (np.mean([agent.act(o, w)[0] for o in sample]) for w in ([1, 0], [0, 1]))
    assert first > 0.2
    assert second < -0.2


def test_golden_run():
    """The numbers of one tiny run; they change only when the algorithm does."""
    result = CMORL("deep-sea-treasure-v0", TINY, seed=0, device="cpu").train(6000)
    golden = json.loads((GOLDEN).read_text())
    assert result.train_steps == golden["train_steps"]
    np.testing.assert_allclose(result.history["hv"], golden["hv"], rtol=0.02)
    assert len(result.front) == pytest.approx(golden["n_front"], abs=1)


def test_results_do_not_depend_on_the_number_of_workers():
    runs = [
        CMORL("deep-sea-treasure-v0", CMORLConfig(**{**vars(TINY), "num_workers": w}), seed=1, device="cpu").train(2000)
        for w in (0, 2)
    ]
    np.testing.assert_array_equal(runs[0].front.points, runs[1].front.points)


@pytest.mark.parametrize("env", ["mo-hopper-2obj-v5", "deep-sea-treasure-v0"])
def test_export_acts_the_same_in_sb3(tmp_path, env):
    from stable_baselines3 import PPO

    config = CMORLConfig(**{**vars(TINY), "eval_episodes": 1, "final_eval_episodes": 1, "max_episode_steps": 50})
    agent = CMORL(env, config, seed=0, device="cpu")
    agent.train(2000)
    member = int(agent.front().solutions[0])
    zip_file = agent.export_sb3(member, tmp_path / "policy", preference=[0.2, 0.8])
    model = PPO.load(zip_file, device="cpu")
    gym_env = make_env(env, max_episode_steps=50)
    obs, _ = gym_env.reset(seed=5)
    returns = np.zeros((2, 2))
    for row, act in enumerate((lambda o: model.predict(o, deterministic=True)[0], lambda o: agent.act_with(member, o))):
        obs, _ = gym_env.reset(seed=5)
        done = False
        while not done:
            action = act(obs)
            if row == 0:
                np.testing.assert_allclose(action, agent.act_with(member, obs), atol=1e-5)
            obs, reward, terminated, truncated, _ = gym_env.step(action)
            returns[row] += reward
            done = terminated or truncated
    np.testing.assert_allclose(returns[0], returns[1], rtol=1e-3)
    policy = agent.members[member].policy
    from moopt.agents.common.networks import StackedActorCritic

    network = StackedActorCritic(agent.shape, 1)
    network.flat.data.copy_(torch.from_numpy(policy.parameters[None]))
    raw = np.asarray(obs, dtype=np.float64).reshape(1, -1)
    normalised = torch.from_numpy((raw - policy.obs_moments.mean) / policy.obs_moments.std()).float()
    values = network.critic(normalised[None]).detach().numpy()[0, 0] * np.sqrt(policy.return_moments.var[0])
    tensor, _ = model.policy.obs_to_tensor(obs)
    assert model.policy.predict_values(tensor).item() == pytest.approx(values @ [0.2, 0.8], rel=1e-3, abs=1e-4)


KILL_SCRIPT = """
import sys
from moopt.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def run_cli(*args):
    return [sys.executable, "-c", KILL_SCRIPT, *map(str, args)]


@pytest.mark.slow
def test_three_kills_change_nothing(tmp_path):
    """SIGKILL at three moments, resume each time: front.csv is the same, byte for byte."""
    settings = [
        "--num-policies",
        "3",
        "--num-envs",
        "4",
        "--num-steps",
        "32",
        "--num-select",
        "2",
        "--round-updates",
        "4",
    ]
    settings += ["--eval-episodes", "1", "--checkpoint-interval", "3", "--quiet"]
    start = [
        "train",
        "cmorl",
        "--env",
        "minecart-deterministic-v0",
        "--total-steps",
        "40000",
        "--seed",
        "3",
        *settings,
    ]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(run_cli(*start, "--out", tmp_path / "whole"), check=True, env=env)
    rng = np.random.default_rng(0)
    kills = 0
    command = run_cli(*start, "--out", tmp_path / "parts")
    while kills < 3:
        process = subprocess.Popen(command, env=env)
        wait_for_checkpoint(tmp_path / "parts", process, newer_than=kills)
        time.sleep(rng.uniform(0.0, 0.5))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
        else:
            pytest.fail("the run ended before it could be killed three times: make it longer")
        command = run_cli("train", "--resume", tmp_path / "parts", "--quiet")
    subprocess.run(command, check=True, env=env)
    assert (tmp_path / "parts" / "front.csv").read_bytes() == (tmp_path / "whole" / "front.csv").read_bytes()


def wait_for_checkpoint(folder, process, newer_than):
    seen = sorted((folder / "checkpoints").glob("*.npz"))
    newest = seen[-1].name if seen else ""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        now = sorted((folder / "checkpoints").glob("*.npz"))
        if now and now[-1].name > newest:
            return
        time.sleep(0.02)


def test_a_truncated_checkpoint_falls_back_to_the_one_before(tmp_path):
    whole = CMORL("deep-sea-treasure-v0", TINY, seed=0, device="cpu").train(3000, run=tmp_path / "whole")
    count = 0

    def stop(progress):
        nonlocal count
        count += 1
        return count < 9

    CMORL("deep-sea-treasure-v0", TINY, seed=0, device="cpu").train(3000, run=tmp_path / "parts", callback=stop)
    newest = sorted((tmp_path / "parts" / "checkpoints").glob("*.npz"))[-1]
    newest.write_bytes(newest.read_bytes()[:1000])
    with pytest.warns(UserWarning, match="going back"):
        parts = CMORL("deep-sea-treasure-v0", TINY, seed=0, device="cpu").train(
            3000, run=tmp_path / "parts", resume=True
        )
    np.testing.assert_array_equal(parts.front.points, whole.front.points)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(MooptError, match="deep-sea-treasure-v0"):
        CMORL("deep-sea-tresure-v0")
    with pytest.raises(MooptError, match=r"(?i)scalar|vector"):
        CMORL("CartPole-v1")
    with pytest.raises(MooptError, match="ref_point"):
        CMORL("deep-sea-treasure-v0", CMORLConfig(ref_point=(0.0, 0.0, 0.0)))
    with pytest.raises(MooptError, match="at least 192"):
        CMORL("deep-sea-treasure-v0", TINY).train(100)
    with pytest.raises(EnvError, match=r"(?i)nan"):
        CMORL(NaNReward, TINY, device="cpu").train(1000)
    agent = CMORL("deep-sea-treasure-v0", TINY, device="cpu")
    agent.train(1000)
    with pytest.raises(MooptError, match="unknown member 999"):
        agent.act_with(999, [0, 0])
    with pytest.raises(MooptError, match="generator"):
        agent.act([0, 0], deterministic=False)
    with pytest.raises(MooptError, match="episodes"):
        agent.evaluate(0)
    with pytest.raises(MooptError, match="gamma_eval"):
        agent.evaluate(1, gamma_eval=1.5)
    with pytest.raises(ValueError, match=r"(?i)preference|weights"):
        agent.act([0, 0], preference=[1.0, 2.0, 3.0])
    with pytest.raises(MooptError, match=r"agent\.json"):
        CMORL.load(tmp_path)


def test_wrong_types_are_named():
    with pytest.raises(MooptError, match="config must be a CMORLConfig, got dict"):
        CMORL("deep-sea-treasure-v0", {"num_envs": 3})
    with pytest.raises(MooptError, match="num_envs"):
        CMORL("deep-sea-treasure-v0", CMORLConfig(num_envs="8"))
    for seed in (-1, 0.5, "0"):
        with pytest.raises(MooptError, match="seed must be an integer >= 0"):
            CMORL("deep-sea-treasure-v0", seed=seed)


def test_a_reference_point_above_the_front_is_said():
    config = CMORLConfig(**{**vars(TINY), "ref_point": (1000.0, 1000.0)})
    with pytest.warns(UserWarning, match="hypervolume is 0"):
        CMORL("deep-sea-treasure-v0", config, device="cpu").train(1000)


def test_failure_in_training_keeps_the_run_folder(tmp_path):
    class Fragile(TradeOff):
        steps = 0

        def step(self, action):
            Fragile.steps += 1
            if Fragile.steps > 2500:
                raise RuntimeError("sensor lost")
            return super().step(action)

    with pytest.raises(EnvError, match="sensor lost"):
        CMORL(Fragile, TINY, device="cpu").train(4000, run=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "status.json").read_text())["status"] == "failed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fragile.steps = -10_000
        result = CMORL(Fragile, TINY, device="cpu").train(4000, run=tmp_path / "run", resume=True)
    assert result.train_steps > 3000


def test_training_on_every_action_and_observation_kind():
    for env in ("fruit-tree-v0", "mo-mountaincarcontinuous-v0", "water-reservoir-v0", "breakable-bottles-v0"):
        config = CMORLConfig(
            **{
                **vars(TINY),
                "num_policies": 2,
                "corners_only": env == "fruit-tree-v0",
                "max_episode_steps": 40,
            }
        )
        result = CMORL(env, config, device="cpu").train(1600)
        assert np.isfinite(result.front.points).all()


def test_evaluation_counts_only_the_steps_of_whole_episodes():
    agent = CMORL("deep-sea-treasure-v0", TINY, device="cpu")
    agent.train(1000)
    front = agent.evaluate(3)
    with make_envs(agent, 1) as probe:
        assert front.meta["eval_steps"] >= 3 * len(front)
        assert front.meta["eval_steps"] <= 3 * len(agent.members) * 100
        assert probe.num_envs == 1


def make_envs(agent, count):
    from contextlib import closing

    return closing(make_vec_env(agent.env, count, seed=0))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_training_on_cuda_finds_the_same_trade_off():
    result = CMORL(TradeOff, TINY, seed=0, device="cuda").train(3000)
    reference = CMORL(TradeOff, TINY, seed=0, device="cpu").train(3000)
    assert result.front.hypervolume() == pytest.approx(reference.front.hypervolume(), rel=0.05)


def test_training_holds_torch_to_its_threads():
    before = torch.get_num_threads()
    seen = []
    try:
        torch.set_num_threads(2)
        agent = CMORL("deep-sea-treasure-v0", TINY, seed=0, device="cpu")
        agent.train(500, callback=lambda progress: seen.append(torch.get_num_threads()))
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
