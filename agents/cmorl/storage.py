"""Saving, loading and exporting trained C-MORL policies; every file is JSON, CSV or npz without pickle."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from moopt.agents.cmorl.config import CMORLConfig
from moopt.agents.cmorl.members import Member
from moopt.agents.common.networks import StackedActorCritic
from moopt.envs import make_env
from moopt.pareto import Front
from moopt.runs import (
    MooptError,
    atomic_write_text,
    config_from_mapping,
    config_to_dict,
    load_state,
    save_state,
)

if TYPE_CHECKING:
    from moopt.agents.cmorl.agent import CMORL, EnvSource

_FORMAT = 1


def save_agent(agent: "CMORL", directory: Path) -> None:
    """Write ``agent.json``, ``members.npz`` and the front to ``directory``."""
    front = agent.front()
    directory.mkdir(parents=True, exist_ok=True)
    save_state(directory / "members.npz", {"members": [m.state_dict() for m in agent.members.values()]})
    front.to_json(directory / "front.json")
    about = {
        "format": _FORMAT,
        "method": "cmorl",
        "env": agent.env if isinstance(agent.env, str) else None,
        "env_name": agent.description.id,
        "obs_size": agent.description.obs_size,
        "action_size": agent.description.action_size,
        "reward_dim": agent.description.reward_dim,
        "seed": agent.seed,
        "config": config_to_dict(agent.config),
    }
    atomic_write_text(directory / "agent.json", json.dumps(about, indent=2) + "\n")


def write_constraints(path: Path, rows: Sequence[Mapping[str, float]]) -> None:
    """Write one line per constrained problem of stage 2: round, parent, objective, slack (in ranges), gain."""
    names = ("round", "parent", "objective", "slack", "gain")
    lines = [",".join(names), *(",".join(repr(row[name]) for name in names) for row in rows)]
    atomic_write_text(path, "\n".join(lines) + "\n")


def load_agent(cls: "type[CMORL]", directory: Path, env: "EnvSource | None", device: str) -> "CMORL":
    """Rebuild an agent from ``save_agent``'s folder or from a run folder that holds one in ``policies/``."""
    if (directory / "policies" / "agent.json").is_file():
        directory = directory / "policies"
    try:
        about = json.loads((directory / "agent.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MooptError(
            f"no trained C-MORL agent in {directory}: it has no agent.json (did the run finish?)"
        ) from None
    except (OSError, ValueError) as error:
        raise MooptError(f"cannot read {directory / 'agent.json'}: {error}") from None
    if not isinstance(about, dict) or about.get("method") != "cmorl" or about.get("format") != _FORMAT:
        raise MooptError(f"{directory / 'agent.json'} is not a C-MORL agent of format {_FORMAT}")
    source = env if env is not None else about["env"]
    if source is None:
        raise MooptError(f"the agent was trained on {about['env_name']}, which has no id: give env=")
    agent = cls(source, config_from_mapping(CMORLConfig, about["config"]), seed=about["seed"], device=device)
    found = agent.description
    for name in ("obs_size", "action_size", "reward_dim"):
        if getattr(found, name) != about[name]:
            raise MooptError(f"{found.id} has {name} {getattr(found, name)}, the agent was trained with {about[name]}")
    members = [Member.from_state_dict(state) for state in load_state(directory / "members.npz")["members"]]
    agent.members = {member.id: member for member in members}
    agent._front = Front.from_json(directory / "front.json")
    return agent


def export_sb3(agent: "CMORL", member: int, path: Path, preference: ArrayLike | None) -> Path:
    """Write one member as an SB3 PPO zip.

    Observation and action scaling are folded into the first and last layers, so that the zip needs neither moopt nor
    ``VecNormalize``; the vector critic becomes its sum weighted by ``preference`` in raw rewards.
    """
    from stable_baselines3 import PPO

    if member not in agent.members:
        raise MooptError(f"unknown member {member}; there are {sorted(agent.members)}")
    env = make_env(agent.env, max_episode_steps=agent.config.max_episode_steps)
    observation_space, action_space = env.observation_space, env.action_space
    env.close()
    if not isinstance(observation_space, gym.spaces.Box | gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        raise MooptError(f"SB3's MlpPolicy takes Box, Discrete or MultiDiscrete observations, not {observation_space}")
    model = PPO("MlpPolicy", env=None, device="cpu", _init_setup_model=False)  # type: ignore[arg-type]
    model.observation_space, model.action_space, model.n_envs = observation_space, action_space, 1
    hidden = list(agent.config.hidden_sizes)
    model.policy_kwargs = {"net_arch": {"pi": hidden, "vf": hidden}, "normalize_images": False}
    model._setup_model()
    model.policy.load_state_dict(_sb3_parameters(agent, agent.members[member], preference))
    target = path if path.suffix == ".zip" else path.with_name(path.name + ".zip")
    temporary = target.with_name(f".{target.name}.tmp.zip")
    try:
        model.save(temporary)
        temporary.replace(target)
    except OSError as error:
        raise MooptError(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _sb3_parameters(agent: "CMORL", member: Member, preference: ArrayLike | None) -> dict[str, torch.Tensor]:
    shape, policy = agent.shape, member.policy
    network = StackedActorCritic(shape, 1)
    with torch.no_grad():
        network.flat.copy_(torch.from_numpy(policy.parameters[None]))
    raw = {name: value.detach().numpy()[0].astype(np.float64) for name, value in network.parameters.items()}
    mean, std = policy.obs_moments.mean[0], policy.obs_moments.std()[0]
    n = shape.num_values
    weights = np.full(n, 1.0 / n) if preference is None else np.asarray(preference, dtype=np.float64)
    if weights.shape != (n,):
        raise MooptError(f"preference must be {n} numbers, got shape {weights.shape}")
    value_mix = weights * np.maximum(np.sqrt(policy.return_moments.var[0]), 1e-8)
    last = len(shape.hidden_sizes)
    names = {"actor": ("policy_net", "action_net"), "critic": ("value_net", "value_net")}
    state: dict[str, Any] = {}
    for part, (body, head) in names.items():
        for k in range(last + 1):
            weight, bias = raw[f"{part}.{k}.weight"], raw[f"{part}.{k}.bias"][0]
            if k == 0:
                bias = bias - (mean / std) @ weight
                weight = weight / std[:, None]
            if k == last:
                weight, bias = _fold_output(agent, part, weight, bias, value_mix)
            prefix = head if k == last else f"mlp_extractor.{body}.{2 * k}"
            state[f"{prefix}.weight"], state[f"{prefix}.bias"] = weight.T, bias
    if shape.action_kind == "box":
        state["log_std"] = raw["log_std"][0] + np.log(agent.adapter.half)
    return {name: torch.tensor(np.ascontiguousarray(value), dtype=torch.float32) for name, value in state.items()}


def _fold_output(
    agent: "CMORL",
    part: str,
    weight: NDArray[np.float64],
    bias: NDArray[np.float64],
    value_mix: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if part == "critic":
        return (weight @ value_mix)[:, None], np.array([bias @ value_mix])
    if agent.shape.action_kind == "box":
        return weight * agent.adapter.half, bias * agent.adapter.half + agent.adapter.middle
    return weight, bias
