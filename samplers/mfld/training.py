"""Two-stage training of the estimators: candidates side by side on a split, then the chosen one on all rows."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from moopt.runs.errors import CheckpointError, MooptError
from moopt.samplers.mfld.config import MFLDConfig
from moopt.samplers.mfld.langevin import DivergenceError, MeanFieldLangevin
from moopt.samplers.mfld.network import TwoLayerNetwork
from moopt.samplers.mfld.schedules import Constant, Geometric, HalvingRounds, LogAnneal, Schedule

_SPLIT_FROM = 10
_CHECKS = 20
_HALVINGS = 6

FunctionalFactory = Callable[[np.ndarray[Any, Any], float | list[float]], TwoLayerNetwork]


class Choice(NamedTuple):
    """What the validation split chose."""

    scale: float
    temperature: float
    n_steps: int
    validation_loss: float


class Trainer:
    """Trains one network in steps that can be interrupted and resumed.

    Stage "choose" trains every (scale, temperature) candidate at once as an ensemble on the training part of a
    split and watches the loss on the rest. Stage "final" trains the winner on all rows. With one candidate and
    no early stopping, or fewer than 10 rows, there is only the second.

    Args:
        factory: Makes the functional of some rows (an index array) and a scale, or a list with one per member.
        n_rows: Rows there are.
        config: Settings.
        seed: Seed >= 0.
        start: Particles to continue from with ``choice``; None for fresh ones.
        choice: Scale, temperature and steps to use without choosing.

    Raises:
        MooptError: If a setting is out of range.
    """

    def __init__(
        self,
        factory: FunctionalFactory,
        n_rows: int,
        config: MFLDConfig,
        *,
        seed: int = 0,
        start: Tensor | None = None,
        choice: Choice | None = None,
    ) -> None:
        check_config(config)
        self.factory, self.n_rows, self.config, self.seed = factory, n_rows, config, seed
        self.start = start
        self.candidates = list(itertools.product(config.scale, config.temperature))
        self.history: dict[str, list[Any]] = {}
        self.choice = choice
        self.done_before = 0
        self.best = (math.inf, 0, 0)
        self.best_particles: Tensor | None = None
        single = len(self.candidates) == 1 and not config.early_stopping
        if choice is None and (single or n_rows < _SPLIT_FROM or config.n_steps == 0):
            self.choice = Choice(*self.candidates[0], config.n_steps, math.nan)
        if self.choice is None:
            order = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).permutation(n_rows)
            held = min(n_rows - 2, max(1, round(config.validation_fraction * n_rows)))
            self.engine = self._engine(np.sort(order[held:]), self.candidates)
            self.engine.check_every = None
            scales = [c[0] for c in self.candidates]
            self.validation = factory(np.sort(order[:held]), scales)
        else:
            self.engine = self._engine(np.arange(n_rows), [self.choice[:2]])

    @property
    def stage(self) -> str:
        """Name of the stage: "choose" or "final"."""
        return "choose" if self.choice is None else "final"

    @property
    def done(self) -> bool:
        """Whether training is finished."""
        return self.choice is not None and self.engine.n_steps >= self._final_steps

    @property
    def steps_done(self) -> int:
        """Steps of both stages so far."""
        return self.done_before + self.engine.n_steps

    @property
    def total_steps(self) -> int:
        """Steps of both stages, as far as they are known."""
        if self.choice is None:
            return self.config.n_steps * (1 + self.config.refit)
        return self.done_before + self._final_steps

    @property
    def _final_steps(self) -> int:
        assert self.choice is not None
        return 0 if self.best_particles is not None and not self.config.refit else self.choice.n_steps

    @property
    def particles(self) -> Tensor:
        """Trained particles (N, D)."""
        if self.best_particles is not None and not self.config.refit:
            return self.best_particles
        return self.engine.particles[0]

    @property
    def step_size(self) -> float:
        """Step size of the final stage."""
        return float(torch.as_tensor(self.engine.step_size).max())

    def advance(self, n_steps: int) -> None:
        """Take up to ``n_steps`` steps, across stages.

        Raises:
            DivergenceError: If the particles of the final stage, or of all candidates, stop being finite.
        """
        left = n_steps
        while left > 0 and not self.done:
            left -= 1
            self.engine.step()
            if self.choice is None:
                self._watch()
            elif self.engine.n_steps >= self._final_steps or self.engine.n_steps % self._every == 0:
                self._log(self.engine.functional.value(self.engine.particles)[0])

    @property
    def _every(self) -> int:
        return max(1, self.config.n_steps // _CHECKS)

    def _watch(self) -> None:
        step = self.engine.n_steps
        if step % self._every == 0 or step == self.config.n_steps:
            losses = torch.nan_to_num(self.validation.value(self.engine.particles).double(), nan=math.inf)
            usable = self.config.early_stopping or step == self.config.n_steps
            member = int(losses.argmin())
            if usable and float(losses[member]) < self.best[0]:
                self.best = (float(losses[member]), member, step)
                if not self.config.refit:
                    self.best_particles = self.engine.particles[member].clone()
            train = self.engine.functional.value(self.engine.particles)
            self._log(train[member], losses[member])
        if step >= self.config.n_steps:
            self._choose()

    def _choose(self) -> None:
        loss, member, steps = self.best
        if not math.isfinite(loss):
            raise DivergenceError(
                f"every candidate diverged (scale {self.config.scale}, step_size {self.config.step_size}): "
                "lower step_size or the scales"
            )
        self.done_before = self.engine.n_steps
        self.choice = Choice(*self.candidates[member], steps, loss)
        self.engine = self._engine(np.arange(self.n_rows), [self.choice[:2]])

    def _log(self, value: Tensor, validation: Tensor | None = None) -> None:
        row = {
            "step": self.steps_done,
            "stage": self.stage,
            "loss": float(value),
            "validation_loss": math.nan if validation is None else float(validation),
        }
        for key, item in row.items():
            self.history.setdefault(key, []).append(item)

    def _engine(self, rows: np.ndarray[Any, Any], members: list[tuple[float, float]]) -> MeanFieldLangevin:
        config = self.config
        scales = [m[0] for m in members]
        functional = self.factory(rows, scales)
        # lambda_max does not depend on the scale, so one power iteration serves all members.
        stable = functional.stable_step() * max(scales) ** 2
        outputs = functional.n_outputs
        start = self.start
        return MeanFieldLangevin(
            functional,
            outputs * math.ceil(config.n_particles / outputs),
            temperature=[m[1] for m in members],
            weight_decay=0.0 if config.manifold == "sphere" else config.weight_decay,
            step_size=[min(config.step_size, stable / s**2) for s in scales],
            manifold=config.manifold,
            schedule=make_schedule(config.schedule, max(1, config.n_steps)),
            gradient=config.gradient,
            batch_size=config.batch_size,
            ensemble=len(members),
            init=self._common_start(functional, len(members)) if start is None else start,
            seed=self.seed,
        )

    def _common_start(self, functional: TwoLayerNetwork, members: int) -> Tensor | None:
        """Every candidate starts from the same particles, so that the choice is between settings, not starts."""
        if members == 1:
            return None
        outputs = functional.n_outputs
        n = outputs * math.ceil(self.config.n_particles / outputs)
        one = MeanFieldLangevin(
            functional_like(functional), n, temperature=0.0, step_size=1.0, ensemble=1, seed=self.seed
        )
        return one.particles[0]

    # ------------------------------------------------------------------------------------- saving
    def state_dict(self) -> dict[str, Any]:
        """Return everything to continue bit for bit."""
        return {
            "choice": None if self.choice is None else list(self.choice),
            "engine": self.engine.state_dict(),
            "history": self.history,
            "best": list(self.best),
            "best_particles": self.best_particles,
            "done_before": self.done_before,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state_dict`, made with the same settings and data.

        Raises:
            CheckpointError: If it does not fit.
        """
        try:
            choice = None if state["choice"] is None else Choice(*state["choice"])
            if choice is not None and self.choice is None:
                self.engine = self._engine(np.arange(self.n_rows), [choice[:2]])
            self.choice = choice
            self.engine.load_state_dict(state["engine"])
            self.history = {k: list(v) for k, v in state["history"].items()}
            self.best = (float(state["best"][0]), int(state["best"][1]), int(state["best"][2]))
            self.best_particles = state["best_particles"]
            self.done_before = int(state["done_before"])
        except (KeyError, TypeError, IndexError) as error:
            raise CheckpointError(f"this is no state of a mean-field Langevin fit: {error}") from error


def functional_like(functional: TwoLayerNetwork) -> TwoLayerNetwork:
    """Return a shallow copy with scale 1 that fits a single member."""
    copy = object.__new__(TwoLayerNetwork)
    copy.__dict__.update(functional.__dict__, scale=1.0, _plans={})
    return copy


def make_schedule(name: str, n_steps: int) -> Schedule:
    """Return the schedule of a name for a run of ``n_steps`` steps.

    Raises:
        MooptError: If the name is unknown.
    """
    match name:
        case "constant":
            return Constant()
        case "halving":
            return HalvingRounds(_HALVINGS, max(1, n_steps // _HALVINGS))
        case "geometric":
            return Geometric(n_steps, temperature=0.01)
        case "log":
            return LogAnneal(quiet_after=n_steps - n_steps // 5)
    raise MooptError(f"unknown schedule {name!r}; choose from constant, halving, geometric, log")


def check_config(config: MFLDConfig) -> None:
    """Refuse settings that are out of range, before any work.

    Raises:
        MooptError: Naming the setting, its value and what is allowed.
    """
    for name in ("n_particles", "batch_size"):
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise MooptError(f"{name} must be a whole number >= 1, got {value!r}")
    if isinstance(config.n_steps, bool) or not isinstance(config.n_steps, int | np.integer) or config.n_steps < 0:
        raise MooptError(f"n_steps must be a whole number >= 0, got {config.n_steps!r}")
    _check_numbers("scale", config.scale, strict=True)
    _check_numbers("temperature", config.temperature, strict=False)
    _check_numbers("weight_decay", (config.weight_decay,), strict=False)
    _check_numbers("step_size", (config.step_size,), strict=True)
    if not 0 < config.validation_fraction < 1:
        raise MooptError(f"validation_fraction must be in (0, 1), got {config.validation_fraction}")
    make_schedule(config.schedule, 1)


def _check_numbers(name: str, values: tuple[float, ...], *, strict: bool) -> None:
    good = len(values) > 0 and all(
        isinstance(v, int | float | np.number) and math.isfinite(v) and (v > 0 if strict else v >= 0) for v in values
    )
    if not good:
        shown = values[0] if len(values) == 1 else list(values)
        raise MooptError(f"{name} must be a finite number {'>' if strict else '>='} 0, got {shown}")
