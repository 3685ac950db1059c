import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from moopt.envs import EnvError, make_vec_env
from moopt.testing.toy_env import ToyEnv

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers need POSIX")


def toy(num_envs=3, num_workers=2, **kwargs):
    return make_vec_env(ToyEnv, num_envs, seed=0, num_workers=num_workers, max_episode_steps=6, env_kwargs=kwargs)


def drive(vec, steps):
    for t in range(steps):
        vec.step_arrays([t % 2] * vec.num_envs)


def pids(vec):
    return [process.pid for process in vec._engine._processes]


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(processes, seconds=3.0):
    end = time.monotonic() + seconds
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(0.02)
    return [pid for pid in processes if alive(pid)]


def run_script(code, **kwargs):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


def test_more_workers_than_copies():
    vec = toy(2, num_workers=5)
    assert vec.num_workers == 2
    assert vec.reset().shape == (2, 2)
    vec.close()


def test_close_ends_the_workers_and_frees_descriptors():
    before = len(os.listdir("/proc/self/fd"))
    vec = toy()
    workers = pids(vec)
    vec.reset()
    vec.close()
    vec.close()
    assert wait_until_gone(workers) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_forgotten_environment_ends_its_workers():
    vec = toy()
    workers = pids(vec)
    del vec
    assert wait_until_gone(workers) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("nan_reward", r"\(copy 0, episode 0, step 3\) returned the reward array\(\[nan"),
        ("inf_obs", "returned the observation array"),
        ("raise", "raised RuntimeError: the pole broke"),
        ("kill", r"worker \d of 'ToyEnv' \(copies \d to \d\) was killed by SIGKILL \(out of memory\?\)"),
    ],
)
def test_faults_in_workers_are_told_and_leave_nothing_behind(fault, message):
    before = len(os.listdir("/proc/self/fd"))
    vec = toy(fault=fault, at=3)
    workers = pids(vec)
    vec.reset()
    with pytest.raises(EnvError, match=message):
        drive(vec, 3)
    with pytest.raises(EnvError, match="is closed"):
        vec.reset()
    assert wait_until_gone(workers) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_worker_killed_between_steps():
    vec = toy()
    workers = pids(vec)
    vec.reset()
    os.kill(workers[1], signal.SIGKILL)
    with pytest.raises(EnvError, match=r"worker 1 .* was killed by SIGKILL"):
        drive(vec, 3)
    assert wait_until_gone(workers) == []


def test_worker_killed_before_an_attribute_is_asked():
    vec = toy()
    os.kill(pids(vec)[0], signal.SIGKILL)
    wait_until_gone(pids(vec)[:1])
    for _ in range(2):
        with pytest.raises(EnvError, match="was killed by SIGKILL"):
            vec.get_attr("reward_dim")
    vec.close()


def test_constructor_that_fails_only_in_workers():
    here = os.getpid()

    def make():
        if os.getpid() != here:
            raise RuntimeError("no display")
        return ToyEnv()

    with pytest.raises(EnvError, match=r"copy 0: making environment .* failed: RuntimeError: no display"):
        make_vec_env(make, 2, seed=0, num_workers=2)


def test_environment_that_cannot_be_sent():
    lock = threading.Lock()

    def make():
        with lock:
            return ToyEnv()

    with pytest.raises(EnvError, match="cannot be sent to worker processes"):
        make_vec_env(make, 2, seed=0, num_workers=2)


def test_close_does_not_wait_for_a_hanging_worker():
    vec = toy(fault="hang", at=1)
    workers = pids(vec)
    vec.reset()
    vec.step_async([1, 1, 1])
    start = time.monotonic()
    vec.close()
    assert time.monotonic() - start < 10.0
    assert wait_until_gone(workers) == []


def test_attributes_in_workers():
    vec = toy()
    assert vec.get_attr("reward_dim") == [2, 2, 2]
    vec.set_attr("colour", "red", indices=[2])
    assert vec.get_attr("colour", indices=2) == ["red"]
    assert not vec.has_attr("colour")
    assert vec.env_is_wrapped(gym.wrappers.TimeLimit) == [True] * 3
    with pytest.raises(EnvError, match="int"):
        vec.env_method("reset", seed="x")
    assert np.isfinite(vec.reset()).all(), "a failed call must not break it"
    vec.close()


def test_registered_id_of_the_calling_script_reaches_the_workers():
    script = """
        import gymnasium as gym
        from moopt.envs import make_vec_env
        from moopt.testing.toy_env import ToyEnv

        class Mine(ToyEnv):
            pass

        gym.register("mine-v0", entry_point=Mine, max_episode_steps=4)
        print("script runs")
        vec = make_vec_env("mine-v0", 2, seed=0, num_workers=2)
        vec.reset()
        print(vec.step_arrays([1, 0]).rewards.shape, vec.max_episode_steps)
    """
    out, err = run_script(script).communicate(timeout=300)
    assert out.split("\n")[:2] == ["script runs", "(2, 2) 4"]
    assert err == ""


def parent_with_workers(fault=""):
    process = run_script(
        f"""
        import time
        from moopt.envs import make_vec_env
        from moopt.testing.toy_env import ToyEnv

        vec = make_vec_env(ToyEnv, 2, seed=0, num_workers=2, env_kwargs=dict(fault={fault!r}, at=1))
        vec.reset()
        print(*[p.pid for p in vec._engine._processes], flush=True)
        vec.step_async([1, 1])
        time.sleep(60)
        """
    )
    return process, [int(pid) for pid in process.stdout.readline().split()]


@pytest.mark.parametrize("fault", ["", "hang"])
def test_workers_end_by_themselves_when_the_parent_is_killed(fault):
    process, workers = parent_with_workers(fault)
    assert len(workers) == 2
    assert all(map(alive, workers))
    process.kill()
    err = process.communicate(timeout=120)[1]
    assert wait_until_gone(workers, 2.5) == []
    assert err == ""


def test_interrupt_ends_everything_without_noise():
    process, workers = parent_with_workers()
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=120)[1]
    assert wait_until_gone(workers) == []
    assert err.count("Traceback") == 1
    assert "KeyboardInterrupt" in err


def test_workers_import_no_torch():
    def make():
        env = ToyEnv()
        env.heavy = "torch" in sys.modules
        return env

    vec = make_vec_env(make, 1, seed=0, num_workers=1)
    assert vec.get_attr("heavy") == [False]
    vec.close()
