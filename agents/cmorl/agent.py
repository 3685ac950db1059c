"""C-MORL: discover a Pareto front of policies with constrained reinforcement learning.

Source:
    Liu et al., "Efficient Discovery of Pareto Front for Multi-Objective Reinforcement Learning", ICLR 2025.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from moopt.agents.cmorl.config import CMORLConfig
from moopt.agents.cmorl.extension import Slot, archive_scale, barrier_weights, choose_parents, threshold
from moopt.agents.cmorl.members import Member
from moopt.agents.cmorl.training import Training, TrainingPlan
from moopt.agents.common.actions import ActionAdapter
from moopt.agents.common.evaluation import Evaluation, evaluate_policies
from moopt.agents.common.networks import ActingPolicies, ActorCriticShape
from moopt.agents.common.population import acting_policies
from moopt.envs import describe_env, make_vec_env
from moopt.parallel import torch_threads
from moopt.pareto import Front
from moopt.runs import (
    Callback,
    MooptError,
    Progress,
    Result,
    RunDir,
    config_from_mapping,
    config_to_dict,
    resolve_device,
    seed_streams,
    torch_generator,
    versions,
)

Array = NDArray[np.float64]
EnvSource = str | type[gym.Env[Any, Any]] | Callable[[], gym.Env[Any, Any]]

_EVAL_COPIES = 128
"""Environment copies an evaluation of many members keeps alive at once."""


class CMORL:
    """A Pareto front of policies: PPO for a lattice of preferences, then constrained extension of the sparse regions.

    Stage 1 trains one policy per preference. Every evaluated snapshot may enter the archive, which keeps the
    non-dominated ones. Stage 2 takes the most isolated members and, from each, maximises every objective in turn
    under constraints on the others, which walks along the front in both directions.

    Args:
        env: Registered id, environment class, or zero-argument callable.
        config: Settings.
        seed: Root of all randomness; the same seed gives the same front on one machine.
        device: ``auto`` (CUDA if there is one), ``cpu``, ``cuda``, ...

    Raises:
        MooptError: The environment is unknown or has no vector reward, or a setting does not fit it.

    Example:
        >>> from moopt.agents import CMORL
        >>> agent = CMORL("deep-sea-treasure-v0", seed=0)  # doctest: +SKIP
        >>> result = agent.train(total_steps=300_000)  # doctest: +SKIP
        >>> action = agent.act(obs, preference=[0.7, 0.3])  # doctest: +SKIP
    """

    def __init__(
        self,
        env: EnvSource,
        config: CMORLConfig | None = None,
        *,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        seed_streams(seed, [])  # refuses what is no seed
        self.env, self.seed = env, int(seed)
        if config is not None and not isinstance(config, CMORLConfig):
            raise MooptError(f"config must be a CMORLConfig, got {type(config).__name__}: CMORLConfig(num_envs=8, ...)")
        self.config = config = config or CMORLConfig()
        read = config_from_mapping(CMORLConfig, config_to_dict(config))
        for name, value in vars(config).items():
            if value != getattr(read, name):
                raise MooptError(f"{name} must be {getattr(read, name)!r} rather than {value!r}: it has the wrong type")
        config.check()
        self.device = resolve_device(device)
        self.description = describe_env(env, max_episode_steps=config.max_episode_steps)
        n = self.description.reward_dim
        self.ref_point = _reference_point(config.ref_point, self.description.ref_point, n, self.description.id)
        self.gamma_eval = self.description.gamma_eval if config.gamma_eval is None else config.gamma_eval
        self.adapter = ActionAdapter(self.description)
        self.shape = ActorCriticShape(
            self.description.obs_size,
            self.description.action_kind,
            self.description.action_size,
            n,
            tuple(config.hidden_sizes),
        )
        self.members: dict[int, Member] = {}
        self._front: Front | None = None
        self._acting: ActingPolicies | None = None

    # -------------------------------------------------------------------------------------------- training

    def train(
        self,
        total_steps: int,
        *,
        run: RunDir | str | Path | None = None,
        resume: bool = False,
        callback: Callback | None = None,
    ) -> Result:
        """Train a Pareto front of policies (algorithm 1 of the paper).

        Args:
            total_steps: Budget of true environment steps of training, all policies together; evaluation is counted
                apart and reported.
            run: Run folder for checkpoints, metrics and the front; ``None`` keeps everything in memory.
            resume: Continue from the newest checkpoint of ``run``; on CPU the result is the same, bit for bit, as
                without the interruption.
            callback: Called after every update with the progress; returning ``False`` stops the training.

        Returns:
            The held-out front with its history.

        Raises:
            MooptError: The budget is too small for one update, or there is nothing to resume.
        """
        plan = TrainingPlan.of(self.config, self.description.reward_dim, total_steps)
        with Training(self, plan, run, resume) as training:
            while training.stage == 1 and training.updates < plan.init_updates and training.goes_on:
                training.learn(plan.preferences)
                self._after_update(training, callback, screen=training.updates == plan.init_updates)
            training.enter_extension()
            while training.can_extend() and training.goes_on:
                if not training.slots:
                    self._open_round(training)
                rollout_returns = training.learn(barrier_weights(training.slots, training.scale, self.config))
                _track(training.slots, rollout_returns)
                last = training.updates == self.config.round_updates or not training.can_extend()
                self._after_update(training, callback, screen=last, close=last)
            return self._finish(training)

    def _open_round(self, training: Training) -> None:
        """Choose the parents, and make one constrained problem of each pair (parent, objective)."""
        archive = training.archive
        training.scale = archive_scale(archive.points)
        parents = choose_parents(archive.points, archive.payloads, training.tries, self.config.num_select)
        kept = training.evaluate([self.members[p].policy for p in parents], "parents", stochastic=True).returns
        training.slots = []
        for parent, returns in zip(parents, kept, strict=True):
            for objective in range(self.description.reward_dim):
                tries = training.tries.get((parent, objective), 0)
                training.tries[parent, objective] = tries + 1
                bound = threshold(returns, training.scale, self.config, tries)
                training.slots.append(Slot(parent, objective, bound, returns.copy()))
        training.start_round([self.members[slot.parent].policy for slot in training.slots])

    def _after_update(
        self, training: Training, callback: Callback | None, *, screen: bool, close: bool = False
    ) -> None:
        """Screen snapshots into the archive, close a round, log, checkpoint, report."""
        if screen or training.updates % self.config.eval_interval == 0:
            training.screen()
        if close:
            training.close_round()
        metrics = training.log()
        if callback is not None:
            progress = Progress(training.train_steps, training.plan.total_steps, metrics)
            training.goes_on = callback(progress) is not False
        training.checkpoint_if_due()

    def _finish(self, training: Training) -> Result:
        """Re-evaluate the archive on held-out episodes and report the front of those returns."""
        if not len(training.archive):
            training.screen()  # stopped before the first screening: report the policies as they are
        self.members = {member: self.members[member] for member in sorted(training.archive.payloads)}
        self._acting = None
        self._front, steps = self._held_out_front(
            self.config.final_eval_episodes, self.gamma_eval, "held-out", deterministic=True
        )
        training.eval_steps += steps
        self._front.meta.update(
            train_steps=training.train_steps,
            eval_steps=training.eval_steps,
            total_steps=training.plan.total_steps,
        )
        if not (self._front.points > self.ref_point).all(axis=1).any():
            warnings.warn(
                f"no policy is better than ref_point {self.ref_point.tolist()} in every objective: the hypervolume "
                "is 0; choose a worse reference point or train longer",
                stacklevel=3,
            )
        result = Result(
            front=self._front,
            history=training.history(),
            config=config_to_dict(self.config),
            versions=versions(),
            seed=self.seed,
            train_steps=training.train_steps,
            eval_steps=training.eval_steps,
            wall_s=training.wall_s,
            path=training.run.path if training.run is not None else None,
        )
        training.write_result(result)
        return result

    # ----------------------------------------------------------------------------------------------- using

    def front(self) -> Front:
        """Return the held-out front; its solutions are member ids.

        Raises:
            MooptError: Nothing was trained or loaded yet.
        """
        if self._front is None:
            raise MooptError("this agent has no front yet: call train() or CMORL.load() first")
        return self._front

    def act(
        self,
        obs: ArrayLike,
        preference: ArrayLike | None = None,
        deterministic: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> Any:
        """Return the action of the member that is best for a preference.

        Args:
            obs: One raw observation as the environment gives it.
            preference: (n,) non-negative weights; ``None`` weighs all objectives alike.
            deterministic: Take the most likely action; else sample it, which needs a ``generator``.
            generator: Source of the sample.

        Returns:
            An action of the environment: an ``int``, or an array (A,).
        """
        n = self.description.reward_dim
        weights = np.full(n, 1.0 / n) if preference is None else np.asarray(preference, dtype=np.float64)
        row = self.front().select(weights)
        return self.act_with(int(self.front().solutions[row]), obs, deterministic, generator=generator)

    def act_with(
        self,
        member: int,
        obs: ArrayLike,
        deterministic: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> Any:
        """Return the action of a given member for one raw observation; see ``act``."""
        if self._acting is None:
            self._acting_ids = list(self.members)
            self._acting = acting_policies([m.policy for m in self.members.values()], self.shape, self.device)
        if member not in self.members:
            raise MooptError(f"unknown member {member}; there are {sorted(self.members)}")
        if not deterministic and generator is None:
            raise MooptError("deterministic=False needs generator=, a torch.Generator")
        row = self._acting_ids.index(member)
        flat = torch.from_numpy(self.description.flatten(obs)).to(self.device)
        policy = self._acting.take([row])
        noise = None if deterministic or generator is None else policy.draw_noise((1, 1), generator)
        action = self.adapter.to_env(policy.act(flat.view(1, 1, -1), noise).cpu().numpy())[0]
        return self.description.to_env_action(action)

    def evaluate(
        self,
        episodes: int = 20,
        gamma_eval: float | None = None,
        seed: int | None = None,
        deterministic: bool = True,
    ) -> Front:
        """Evaluate every member of the front on fresh episodes and return the front of those returns.

        Args:
            episodes: Episodes per member.
            gamma_eval: Discount factor; ``None`` takes the one of training.
            seed: Root of the evaluation's randomness; ``None`` takes a stream that training never uses.
            deterministic: Most likely actions, or sampled ones.
        """
        self.front()
        if episodes < 1:
            raise MooptError(f"episodes must be at least 1, got {episodes}")
        gamma = self.gamma_eval if gamma_eval is None else gamma_eval
        if not 0.0 < gamma <= 1.0:
            raise MooptError(f"gamma_eval must be in (0, 1], got {gamma}")
        front, steps = self._held_out_front(episodes, gamma, "evaluate", deterministic=deterministic, seed=seed)
        front.meta["eval_steps"] = steps
        return front

    def save(self, directory: str | Path) -> None:
        """Write the members and the front to ``directory`` (JSON, CSV and npz; no pickle)."""
        from moopt.agents.cmorl.storage import save_agent

        save_agent(self, Path(directory))

    @classmethod
    def load(cls, directory: str | Path, env: EnvSource | None = None, device: str = "auto") -> "CMORL":
        """Load what ``save`` wrote, or a finished run folder.

        Args:
            directory: Folder of ``save`` or run folder.
            env: Needed if the agent was trained on an environment without an id.
            device: As in the constructor.
        """
        from moopt.agents.cmorl.storage import load_agent

        return load_agent(cls, Path(directory), env, device)

    def export_sb3(self, member: int, path: str | Path, preference: ArrayLike | None = None) -> Path:
        """Write a member as a Stable-Baselines3 PPO zip that ``PPO.load`` reads and that acts the same.

        Args:
            member: Member id (a solution of ``front()``).
            path: Where to write; ``.zip`` is added if missing.
            preference: (n,) weights that reduce the vector critic to SB3's scalar one; ``None`` weighs all alike.
        """
        from moopt.agents.cmorl.storage import export_sb3

        return export_sb3(self, member, Path(path), preference)

    def _held_out_front(
        self, episodes: int, gamma: float, stream: str, *, deterministic: bool, seed: int | None = None
    ) -> tuple[Front, int]:
        """Evaluate all members in groups on a stream of seeds of their own; return the front and the steps taken."""
        streams = seed_streams(self.seed if seed is None else seed, [stream, f"{stream}-actions"])
        generator = None if deterministic else torch_generator(streams[f"{stream}-actions"], self.device)
        members = list(self.members.values())
        group = max(1, min(len(members), _EVAL_COPIES // episodes))
        parts: list[Evaluation] = []
        for start in range(0, len(members), group):
            batch = members[start : start + group]
            policies = acting_policies([m.policy for m in batch], self.shape, self.device)
            # Every group meets the same seeds, so no group is lucky.
            envs = make_vec_env(
                self.env,
                len(batch) * episodes,
                seed=streams[stream],
                num_workers=self.config.num_workers,
                max_episode_steps=self.config.max_episode_steps,
            )
            with closing(envs), torch_threads(self.config.num_threads):
                parts.append(evaluate_policies(policies, envs, self.adapter, gamma=gamma, generator=generator))
        discounted = np.concatenate([part.discounted for part in parts])
        plain = np.concatenate([part.undiscounted for part in parts])
        front = self._make_front(discounted.mean(1), [m.id for m in members]).filter()
        rows = {m.id: i for i, m in enumerate(members)}
        kept = [rows[int(member)] for member in front.solutions]
        front.meta.update(
            method="cmorl",
            env=self.description.id,
            seed=self.seed,
            gamma_eval=gamma,
            episodes=episodes,
            deterministic=deterministic,
            std=discounted.std(1)[kept].tolist(),
            undiscounted=plain.mean(1)[kept].tolist(),
            lineage=[self.members[int(member)].lineage() for member in front.solutions],
        )
        return front, sum(part.steps for part in parts)

    def exact_front(self) -> Front | None:
        """Return the exact Pareto front under the evaluation discount, where the environment knows it."""
        if self.description.exact_front is None:
            return None
        return self._make_front(np.asarray(self.description.exact_front(self.gamma_eval)), None).filter()

    def create_run(self, path: str | Path, total_steps: int) -> RunDir:
        """Create a run folder that ``train`` can write to and the command line can resume."""
        return RunDir.create(
            path,
            algo="cmorl",
            env=self.description.id,
            seed=self.seed,
            config=config_to_dict(self.config),
            total_steps=total_steps,
            device=str(self.device),
        )

    def _make_front(self, points: Array, ids: Sequence[int] | None) -> Front:
        return Front(
            points,
            names=self.description.reward_names,
            ref_point=self.ref_point,
            solutions=ids,
            meta={},
        )


def _track(slots: Sequence[Slot], returns: Array) -> None:
    """Blend each slot's estimate with the returns (S, n) of its newest rollout."""
    for slot, seen in zip(slots, returns, strict=True):
        slot.estimate = 0.5 * (slot.estimate + seen)


def _reference_point(
    given: Sequence[float] | None, default: Sequence[float] | Array | None, n: int, env_id: str
) -> Array:
    chosen = default if given is None else given
    if chosen is None:
        raise MooptError(
            f"{env_id} has no default ref_point: give ref_point, {n} returns that every useful policy exceeds"
        )
    ref = np.asarray(chosen, dtype=np.float64)
    if ref.shape != (n,) or not np.isfinite(ref).all():
        raise MooptError(f"ref_point must be {n} finite numbers, one per objective of {env_id}, got {list(chosen)}")
    return ref
