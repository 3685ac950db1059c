"""Training speed of C-MORL's first stage against Stable-Baselines3 PPO at the same sizes, in turn in one process.

Both sides run 8 environments of mo-hopper-2obj-v5 per policy, 512 steps per rollout, 64-64 tanh networks, minibatches
of 128, 10 epochs, one torch thread. PPO trains one policy on the mean of the two rewards, on environments from SB3's
own make_vec_env; C-MORL trains six policies with vector critics. Both keep track of episode returns. What is compared
is environment steps per second of wall time, learning included.

    taskset -c 0 python experiments/cmorl/throughput.py --workers 0       # one core
    taskset -c 0,1 python experiments/cmorl/throughput.py --workers 2     # two cores, two worker processes
"""

import argparse
import csv
import os
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import mo_gymnasium as mo_gym
import numpy as np
import torch
from mo_gymnasium.wrappers import LinearReward
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from moopt.agents import CMORL
from moopt.agents.cmorl.config import CMORLConfig
from moopt.agents.cmorl.training import Training, TrainingPlan

ENV = "mo-hopper-2obj-v5"
POLICIES, COPIES, STEPS = 6, 8, 512


def scalar_env() -> gym.Env[Any, Any]:
    """Return the environment with the mean of its two rewards."""
    return LinearReward(mo_gym.make(ENV), weight=np.array([0.5, 0.5]))


def sb3(envs: VecEnv) -> PPO:
    """Return SB3's PPO at C-MORL's sizes."""
    net_arch = {"pi": [64, 64], "vf": [64, 64]}
    return PPO("MlpPolicy", envs, n_steps=STEPS, batch_size=128, n_epochs=10, device="cpu", seed=0,
               policy_kwargs={"net_arch": net_arch})  # fmt: skip


def main() -> None:
    """Time rounds of one update each, in turn, and append the medians to throughput.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of C-MORL")
    parser.add_argument("--rounds", type=int, default=9, help="timed updates of each side")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(1)  # more slow both sides down: the networks are small
    sides: dict[str, list[float]] = {"moopt": [], "sb3": [], "sb3-subproc": []}
    ppos = {"sb3": sb3(make_vec_env(scalar_env, COPIES))}
    if args.workers:
        ppos["sb3-subproc"] = sb3(make_vec_env(scalar_env, COPIES, vec_env_cls=SubprocVecEnv))
    config = CMORLConfig(num_policies=POLICIES, num_envs=COPIES, num_steps=STEPS, num_workers=args.workers)
    agent = CMORL(ENV, config, seed=0, device="cpu")
    with Training(agent, TrainingPlan.of(config, 2, 10**9), None, resume=False) as training:
        for i in range(args.rounds + 1):
            start = time.perf_counter()
            training.learn(training.plan.preferences)
            rates = {"moopt": POLICIES * COPIES * STEPS / (time.perf_counter() - start)}
            for name, ppo in ppos.items():
                start = time.perf_counter()
                ppo.learn(COPIES * STEPS, reset_num_timesteps=False)
                rates[name] = COPIES * STEPS / (time.perf_counter() - start)
            if i:  # the first round warms up
                for name, rate in rates.items():
                    sides[name].append(rate)
            print("  ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items()), flush=True)
    path = Path(__file__).parent / "throughput.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(["cores", "workers", "rounds", "moopt_steps_s", "baseline", "baseline_steps_s",
                             "ratio_min", "ratio_median", "ratio_max"])  # fmt: skip
        for name in ppos:
            ratios = np.array(sides["moopt"]) / np.array(sides[name])
            writer.writerow([
                cores, args.workers, args.rounds, round(float(np.median(sides["moopt"]))), name,
                round(float(np.median(sides[name]))), *(f"{f(ratios):.2f}" for f in (np.min, np.median, np.max)),
            ])  # fmt: skip
            print(f"C-MORL / {name}: median {np.median(ratios):.2f}x (min {ratios.min():.2f}, max {ratios.max():.2f})")


if __name__ == "__main__":
    main()
