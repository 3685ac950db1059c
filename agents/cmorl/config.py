"""Settings of C-MORL; imports nothing heavy so that the command line starts fast."""

from dataclasses import dataclass
from typing import Literal

from moopt.runs.errors import MooptError


@dataclass(frozen=True, kw_only=True)
class CMORLConfig:
    """Settings of C-MORL (Constrained MORL, ICLR 2025). The defaults suit two to three objectives on MuJoCo."""

    num_policies: int = 6
    """Policies of stage 1, one per preference weight of the initial lattice."""
    corners_only: bool = False
    """Start stage 1 from the corners of the simplex only (one policy per objective); overrides num_policies."""
    num_envs: int = 8
    """Environment copies per policy."""
    num_steps: int = 512
    """Steps per environment copy and update (rollout length)."""
    init_fraction: float = 0.65
    """Share of the step budget spent in stage 1; the rest goes to the constrained extension of stage 2."""
    num_select: int = 5
    """Members of the archive extended per round of stage 2."""
    round_updates: int = 20
    """Updates of each extended policy per round of stage 2."""

    learning_rate: float = 3e-4
    """Adam step size, annealed linearly to zero over stage 1."""
    extension_lr_scale: float = 1.0
    """Stage 2 starts every policy at learning_rate times this."""
    extension_temperature: float = 1.0
    """Stage 2 starts every policy with its action distribution this much wider: logits divided by it (discrete) or
    deviations multiplied by it (continuous). Above 1 it explores anew; the most likely action stays the same."""
    gamma: float = 0.99
    """Discount factor of training."""
    gae_lambda: float = 0.95
    """Lambda of generalized advantage estimation."""
    clip_range: float = 0.2
    """PPO clipping range of the probability ratio."""
    num_epochs: int = 10
    """Passes over each rollout."""
    batch_size: int = 128
    """Minibatch size per policy."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus at the beginning of stage 1, and of each round of stage 2."""
    final_entropy_coef: float | None = None
    """Its value at their end, reached linearly; None keeps it constant."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Bound on each policy's gradient norm."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Hidden layers of the actor and of the critic (tanh)."""

    constraint: Literal["ipo", "none"] = "ipo"
    """How stage 2 holds the other objectives: ipo (log barrier on their returns), none."""
    barrier_t: float = 20.0
    """Steepness of the log barrier: larger means closer to the constraint."""
    threshold: Literal["range", "beta"] = "range"
    """Constraint level: parent's return minus delta times the archive's range, or minus (1 - beta) times its size."""
    delta: float = 0.05
    """Slack of the range threshold, as a share of the archive's range."""
    beta: float = 0.9
    """Share of the parent's return to keep under the beta threshold."""

    archive_size: int = 200
    """Largest number of policies kept."""
    truncation: Literal["crowding", "crowding_one_shot", "hv_contribution"] = "crowding"
    """Rule that drops members of a full archive."""
    eval_interval: int = 10
    """Updates between two screening evaluations."""
    eval_episodes: int = 5
    """Episodes of a screening evaluation."""
    constraint_episodes: int = 10
    """Episodes, with sampled actions, that fix a constraint on the parent and audit it on the child."""
    final_eval_episodes: int = 20
    """Episodes, on held-out seeds, of the final evaluation of every member."""
    gamma_eval: float | None = None
    """Discount factor of evaluation; None takes the environment's default."""
    ref_point: tuple[float, ...] | None = None
    """Reference point (larger is better orientation); None takes the environment's default."""
    max_episode_steps: int | None = None
    """Time limit of an episode; None keeps the environment's own."""
    num_workers: int = 0
    """Processes that step the environments; 0 steps them in this process. Results do not depend on it."""
    num_threads: int = 1
    """Torch threads on a CPU. More than one pays for wide networks only; results may differ in the last bits."""
    checkpoint_interval: int = 10
    """Updates between two checkpoints."""

    def check(self) -> None:
        """Raise ``MooptError`` for a setting outside its range, naming it."""
        for name in (
            "num_policies",
            "num_envs",
            "num_steps",
            "num_select",
            "round_updates",
            "num_epochs",
            "batch_size",
            "archive_size",
            "eval_interval",
            "eval_episodes",
            "constraint_episodes",
            "final_eval_episodes",
            "num_threads",
            "checkpoint_interval",
        ):
            _require(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("gamma", "gae_lambda", "beta"):
            _require(name, getattr(self, name), 0.0 <= getattr(self, name) <= 1.0, "between 0 and 1")
        for name in (
            "learning_rate",
            "extension_lr_scale",
            "extension_temperature",
            "clip_range",
            "max_grad_norm",
            "barrier_t",
            "delta",
        ):
            _require(name, getattr(self, name), 0.0 < getattr(self, name) < float("inf"), "a positive number")
        for name in ("entropy_coef", "final_entropy_coef", "value_coef", "num_workers"):
            value = getattr(self, name)
            _require(name, value, value is None or 0.0 <= value < float("inf"), "zero or more")
        _require("init_fraction", self.init_fraction, 0.0 < self.init_fraction <= 1.0, "in (0, 1]")
        _require(
            "hidden_sizes",
            self.hidden_sizes,
            all(size >= 1 for size in self.hidden_sizes),
            "sizes of at least 1",
        )
        if self.gamma_eval is not None:
            _require("gamma_eval", self.gamma_eval, 0.0 < self.gamma_eval <= 1.0, "in (0, 1]")
        if self.max_episode_steps is not None:
            _require("max_episode_steps", self.max_episode_steps, self.max_episode_steps >= 1, "at least 1")


def _require(name: str, value: object, ok: bool, allowed: str) -> None:
    if not ok:
        raise MooptError(f"{name} must be {allowed}, got {value!r}")
