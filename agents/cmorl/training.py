"""The state of one C-MORL training: budget, population, archive, evaluation, checkpoints."""

import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moopt.agents.cmorl.config import CMORLConfig
from moopt.agents.cmorl.extension import Slot
from moopt.agents.cmorl.members import Member
from moopt.agents.cmorl.storage import write_constraints
from moopt.agents.common.evaluation import Evaluation, evaluate_policies
from moopt.agents.common.population import PolicyState, Population, acting_policies
from moopt.agents.common.ppo import PPOSettings
from moopt.envs import MOVecEnv, make_vec_env
from moopt.parallel import torch_threads
from moopt.pareto import Archive, expected_utility, hypervolume, simplex_weights
from moopt.runs import MooptError, Result, RunDir, seed_streams, torch_generator

if TYPE_CHECKING:
    from moopt.agents.cmorl.agent import CMORL

Array = NDArray[np.float64]

_UTILITY_WEIGHTS = 100
"""Preferences over which the expected utility in the metrics is averaged."""


@dataclass(frozen=True)
class TrainingPlan:
    """How a step budget is spent.

    Attributes:
        config: Settings.
        total_steps: Budget of training steps.
        preferences: (M, n) weights of stage 1.
        init_updates: Updates of stage 1.
    """

    config: CMORLConfig
    total_steps: int
    preferences: Array
    init_updates: int

    @classmethod
    def of(cls, config: CMORLConfig, reward_dim: int, total_steps: int) -> "TrainingPlan":
        """Split ``total_steps``; raise ``MooptError`` if it does not pay for one update."""
        preferences = np.eye(reward_dim) if config.corners_only else _spread(reward_dim, config.num_policies)
        cost = len(preferences) * config.num_envs * config.num_steps
        if isinstance(total_steps, bool) or not isinstance(total_steps, int | float | np.integer) or total_steps % 1:
            raise MooptError(f"total_steps must be a whole number of environment steps, got {total_steps!r}")
        if total_steps < cost:
            raise MooptError(
                f"total_steps must be at least {cost:,} (one update: {len(preferences)} policies x {config.num_envs} "
                f"environments x {config.num_steps} steps), got {total_steps:,}; "
                "lower num_policies, num_envs or num_steps for shorter runs"
            )
        return cls(config, int(total_steps), preferences, max(1, int(config.init_fraction * total_steps) // cost))

    def schedule(self, stage: int, update: int) -> tuple[float, float]:
        """Return the learning rate and the entropy coefficient of an update of stage 1, or of a round of stage 2."""
        config, length = self.config, self.init_updates if stage == 1 else self.config.round_updates
        done = update / length
        first, last = config.entropy_coef, config.final_entropy_coef
        entropy_coef = first if last is None else first + (last - first) * done
        if stage == 1:
            return config.learning_rate * (1.0 - done), entropy_coef
        return config.learning_rate * config.extension_lr_scale, entropy_coef

    def cost(self, num_members: int) -> int:
        """Return the steps of one update of ``num_members`` policies."""
        return num_members * self.config.num_envs * self.config.num_steps


class Training:
    """Context of one call of ``CMORL.train``: owns the environments and the run folder while it is open.

    Attributes:
        population: Policies that are being trained.
        archive: Non-dominated screening returns; payloads are member ids.
        stage: 1 or 2.
        updates: Updates since the stage (stage 1) or the round (stage 2) began.
        slots: Constrained problems of the open round.
        scale: (n,) range of the archive when the round opened.
        tries: How often each (member id, objective) was extended.
        goes_on: Whether the callback wants to go on.
    """

    population: Population

    def __init__(self, agent: "CMORL", plan: TrainingPlan, run: RunDir | str | Path | None, resume: bool) -> None:
        if resume and run is None:
            raise MooptError("resume=True needs run=, the run folder to continue")
        self.agent, self.plan, self.config = agent, plan, agent.config
        self.resume = resume
        self.run: RunDir | None = self._open_run(run)
        self.stage, self.updates, self.round = 1, 0, 0
        self.train_steps = self.eval_steps = self.evaluations = self.total_updates = self.next_id = 0
        self.slots: list[Slot] = []
        self.scale: Array = np.ones(agent.description.reward_dim)
        self.tries: dict[tuple[int, int], int] = {}
        self.constraints: list[dict[str, float]] = []
        self.goes_on = True
        self.archive = Archive(
            self.config.archive_size,
            n_obj=agent.description.reward_dim,
            truncation=self.config.truncation,
            ref_point=agent.ref_point,
        )
        self._rows: list[dict[str, float]] = []
        self._generators = {
            name: torch_generator(seed, agent.device)
            for name, seed in seed_streams(agent.seed, ["actions", "shuffles", "evaluation-actions"]).items()
        }
        self._stack = ExitStack()
        self._eval_envs: dict[int, MOVecEnv] = {}
        self._wall_before = 0.0

    # ------------------------------------------------------------------------------------ opening, closing

    def __enter__(self) -> "Training":
        self._start = time.perf_counter()
        try:
            self._stack.enter_context(torch_threads(self.config.num_threads))
            if self.run is not None:
                self._stack.enter_context(self.run.lock())
            saved = self.run.load_checkpoint() if self.run is not None and self.resume else None
            if saved is None:
                self.agent.members = {}
                self._build_population(len(self.plan.preferences))
                initializer = torch_generator(seed_streams(self.agent.seed, ["parameters"])["parameters"])
                self.population.network.initialize(initializer)
            else:
                self._restore(saved[1])
            if self.run is not None:
                self.run.metrics.truncate(self.train_steps)
                self.run.set_status("running")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.run is not None and kind is not None:
                stopped = issubclass(kind, KeyboardInterrupt)
                self.run.set_status("interrupted" if stopped else "failed", error=str(error))
        finally:
            self._stack.close()

    def _open_run(self, run: RunDir | str | Path | None) -> RunDir | None:
        if run is None or isinstance(run, RunDir):
            return run
        if self.resume:
            return RunDir.open(run)
        return self.agent.create_run(run, self.plan.total_steps)

    # -------------------------------------------------------------------------------------------- learning

    def learn(self, weights: Array) -> Array:
        """Collect one rollout per policy and improve each along its weights (M, n).

        Returns:
            (M, n) discounted returns of the episodes that ended; the critic's estimate where none did.
        """
        self.population.set_schedule(*self.plan.schedule(self.stage, self.updates))
        rollout, returns = self.population.collect(self.config.num_steps, self._generators["actions"])
        strength = None
        if self.stage == 2:
            # Where the objective itself paid nothing, its constraints must not be blown up to full strength: the policy
            # would settle on its parent instead of exploring.
            shares = weights * self.scale
            paid = (rollout.rewards != 0.0).any(axis=(0, 2))
            strength = (shares * paid).sum(1) / shares.sum(1)
        self.population.update(rollout, weights, self._generators["shuffles"], strength)
        self.updates += 1
        self.total_updates += 1
        self.train_steps += self.plan.cost(self.population.num_members)
        missing = np.isnan(returns)
        return np.where(missing, self.population.start_values(rollout), returns) if missing.any() else returns

    def enter_extension(self) -> None:
        """Close stage 1."""
        if self.stage == 1 and self.goes_on:
            self.stage, self.updates = 2, 0

    def can_extend(self) -> bool:
        """Return whether the budget pays for another update of stage 2."""
        wanted = len(self.slots) or min(self.config.num_select, len(self.archive)) * len(self.scale)
        left = self.plan.total_steps - self.train_steps
        return self.config.init_fraction < 1.0 and 0 < self.plan.cost(wanted) <= left

    def start_round(self, states: list[PolicyState]) -> None:
        """Put one policy into each slot, with fresh optimizers and environments."""
        self.round += 1
        self.updates = 0
        self._build_population(len(states))
        self.population.load_members(states)
        self.population.network.widen(self.config.extension_temperature)

    def close_round(self) -> None:
        """Record, on held-out stochastic episodes, how far each child is from its constraints."""
        returns = self.evaluate(self.population.members(), "audit", stochastic=True).returns
        for slot, value in zip(self.slots, returns, strict=True):
            others = np.arange(len(self.scale)) != slot.objective
            slack = ((value - slot.threshold) / self.scale)[others]
            self.constraints.append(
                {
                    "round": self.round,
                    "parent": slot.parent,
                    "objective": slot.objective,
                    "slack": float(slack.min()) if slack.size else np.inf,
                    "gain": float(value[slot.objective]),
                }
            )
        self.slots = []

    # ------------------------------------------------------------------------------------------ evaluating

    def evaluate(self, states: list[PolicyState], stream: str, *, stochastic: bool = False) -> Evaluation:
        """Run screening episodes, or those of constraints with sampled actions, on seeds never used before."""
        episodes = self.config.constraint_episodes if stochastic else self.config.eval_episodes
        copies = len(states) * episodes
        if copies not in self._eval_envs:
            self._eval_envs[copies] = self._make_envs(copies, "evaluation")
        envs = self._eval_envs[copies]
        name = f"{stream}-{self.evaluations}"
        envs.seed(seed_streams(self.agent.seed, [name])[name])
        self.evaluations += 1
        result = evaluate_policies(
            acting_policies(states, self.agent.shape, self.agent.device),
            envs,
            self.agent.adapter,
            gamma=self.agent.gamma_eval,
            generator=self._generators["evaluation-actions"] if stochastic else None,
        )
        self.eval_steps += result.steps
        return result

    def screen(self) -> None:
        """Evaluate the population as it is and put every policy forward for the archive."""
        states = self.population.members()
        evaluation = self.evaluate(states, "screening")
        for m, state in enumerate(states):
            slot = self.slots[m] if self.stage == 2 else None
            self.agent.members[self.next_id] = Member(
                id=self.next_id,
                returns=evaluation.returns[m],
                std=evaluation.discounted[m].std(0),
                stage=self.stage,
                parent=slot.parent if slot else -1,
                objective=slot.objective if slot else -1,
                preference=self.plan.preferences[m] if slot is None else np.zeros(0),
                update=self.updates,
                policy=state,
            )
            self.next_id += 1
        self.archive.add(evaluation.returns, list(range(self.next_id - len(states), self.next_id)))
        kept = set(self.archive.payloads)
        self.agent.members = {i: member for i, member in self.agent.members.items() if i in kept}

    # --------------------------------------------------------------------------------------------- keeping

    @property
    def wall_s(self) -> float:
        """Seconds of training so far, over all resumptions."""
        return self._wall_before + time.perf_counter() - self._start

    def log(self) -> dict[str, float]:
        """Write one row of metrics and return it; the values are screening estimates, not held-out ones."""
        points = self.archive.points
        row: dict[str, float] = {
            "step": self.train_steps,
            "eval_steps": self.eval_steps,
            "wall_s": round(self.wall_s, 3),
            "stage": self.stage,
            "round": self.round,
            "hv": float(hypervolume(points, ref=self.agent.ref_point)) if len(points) else 0.0,
            "eu": _utility(points),
            "n_front": len(points),
        }
        self._rows.append(row)
        if self.run is not None:
            self.run.metrics.write(self.train_steps, **{k: v for k, v in row.items() if k != "step"})
        return row

    def history(self) -> dict[str, Array]:
        """Return the metrics by name, one value an update."""
        names = self._rows[0] if self._rows else {}
        return {name: np.array([row[name] for row in self._rows]) for name in names}

    def checkpoint_if_due(self) -> None:
        """Write a checkpoint every ``checkpoint_interval`` updates, and when the training stops."""
        if self.run is None:
            return
        done = self.train_steps + self.plan.cost(len(self.plan.preferences)) > self.plan.total_steps
        if not self.goes_on or done or self.total_updates % self.config.checkpoint_interval == 0:
            self.run.save_checkpoint(self.train_steps, self._state())

    def write_result(self, result: Result) -> None:
        """Write the front, the policies and the constraint record to the run folder."""
        if self.run is None:
            return
        self.run.write_front(result.front)
        exact = self.agent.exact_front()
        if exact is not None:
            self.run.write_front(exact, name="exact_front")
        write_constraints(self.run.path / "constraints.csv", self.constraints)
        self.agent.save(self.run.path / "policies")
        self.run.set_status(
            "finished" if self.goes_on else "interrupted",
            train_steps=self.train_steps,
            eval_steps=self.eval_steps,
        )

    def _state(self) -> dict[str, Any]:
        return {
            "counters": {name: int(getattr(self, name)) for name in _COUNTERS},
            "wall_s": self.wall_s,
            "slots": [asdict(slot) for slot in self.slots],
            "scale": self.scale,
            "tries": [[member, objective, count] for (member, objective), count in self.tries.items()],
            "constraints": self.constraints,
            "archive": self.archive.state_dict(),
            "members": [member.state_dict() for member in self.agent.members.values()],
            "num_members": self.population.num_members,
            "population": self.population.state_dict(),
            "generators": {name: generator.get_state() for name, generator in self._generators.items()},
            "rows": {name: column.tolist() for name, column in self.history().items()},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        for name in _COUNTERS:
            setattr(self, name, state["counters"][name])
        self._wall_before = state["wall_s"]
        self.slots = [Slot(**slot) for slot in state["slots"]]
        self.scale = state["scale"]
        self.tries = {(member, objective): count for member, objective, count in state["tries"]}
        self.constraints = list(state["constraints"])
        self.archive.load_state_dict(state["archive"])
        members = [Member.from_state_dict(member) for member in state["members"]]
        self.agent.members = {member.id: member for member in members}
        self._build_population(state["num_members"])
        self.population.load_state_dict(state["population"])
        for name, generator in self._generators.items():
            generator.set_state(state["generators"][name])
        columns = state["rows"]
        self._rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    # -------------------------------------------------------------------------------------------- building

    def _build_population(self, num_members: int) -> None:
        config, agent = self.config, self.agent
        if hasattr(self, "population") and self.population.num_members == num_members:
            stream = f"round-{self.round}"
            self.population.envs.seed(seed_streams(agent.seed, [stream])[stream])
            return
        if hasattr(self, "population"):
            self.population.envs.close()
        self.population = Population(
            self._make_envs(num_members * config.num_envs, f"round-{self.round}"),
            agent.shape,
            num_members,
            agent.adapter,
            learning_rate=config.learning_rate,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            gamma_eval=agent.gamma_eval,
            max_grad_norm=config.max_grad_norm,
            ppo=PPOSettings(
                clip_range=config.clip_range,
                num_epochs=config.num_epochs,
                batch_size=config.batch_size,
                entropy_coef=config.entropy_coef,
                value_coef=config.value_coef,
            ),
            device=agent.device,
        )

    def _make_envs(self, copies: int, stream: str) -> MOVecEnv:
        envs = make_vec_env(
            self.agent.env,
            copies,
            seed=seed_streams(self.agent.seed, [stream])[stream],
            num_workers=self.config.num_workers,
            max_episode_steps=self.config.max_episode_steps,
        )
        self._stack.callback(envs.close)
        return envs


_COUNTERS = (
    "stage",
    "updates",
    "round",
    "train_steps",
    "eval_steps",
    "evaluations",
    "total_updates",
    "next_id",
)


def _utility(points: Array) -> float:
    if len(points) == 0:
        return float("-inf")
    weights = simplex_weights(points.shape[1], _UTILITY_WEIGHTS, method="sobol", seed=0)
    return float(expected_utility(points, weights))


def _spread(reward_dim: int, count: int) -> Array:
    """Return a lattice of exactly ``count`` preferences where one exists, else as even a spread as can be."""
    try:
        return simplex_weights(reward_dim, count, method="lattice")
    except MooptError:
        return simplex_weights(reward_dim, count, method="riesz", seed=0)
