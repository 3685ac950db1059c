"""ParetoMFLD: particles that follow the gradient of a soft hypervolume to a spread over the Pareto set."""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from moopt.pareto import Front
from moopt.runs.callbacks import Callback, Progress
from moopt.runs.config import config_to_dict
from moopt.runs.errors import CheckpointError, MooptError
from moopt.runs.provenance import versions
from moopt.runs.result import Result
from moopt.runs.state import load_state, save_state
from moopt.samplers.mfld.birth_death import BirthDeath
from moopt.samplers.mfld.config import ParetoMFLDConfig
from moopt.samplers.mfld.hypervolume import SoftHypervolume
from moopt.samplers.mfld.langevin import MeanFieldLangevin
from moopt.samplers.mfld.manifolds import Box
from moopt.samplers.mfld.problem import MFLDProblem, as_problem
from moopt.samplers.mfld.schedules import Geometric

_LOGS = 20


class ParetoMFLD:
    """A gradient-based sampler of the Pareto set of a differentiable problem.

    Particles in the box follow mean-field Langevin dynamics of :class:`SoftHypervolume` while the softness of
    its maximum and the step size fall. By default Adam scales the drift, and now and then the particles that
    serve fewest directions become copies of those that serve most. With either of the two it is no longer the
    dynamics of the theory; ``preconditioner="none", birth_every=0`` is.

    It wants cheap smooth objectives. It is no global optimizer: for many local optima (ZDT4, WFG4) give
    ``config=MULTIMODAL``, or start from another method's points with ``init``.

    Args:
        problem: A BoTorch multi-objective test problem, a function of torch points (n, d), an
            :class:`MFLDProblem`, or what :func:`surrogate_problem` returns.
        n_particles: Number of particles.
        ref_point: Reference point (m,) in the user's orientation; default the problem's own.
        bounds: Pairs (low, high) per variable, for a function.
        directions: "max" or "min", one or one per objective, for a function.
        names: Objective names.
        init: Points to start from (N, d) in the problem's bounds, such as another method's population; default
            uniform.
        config: All settings; ``n_particles`` and ``settings`` replace its fields.
        seed: Seed >= 0.
        device: Device of the particles.
        **settings: Fields of :class:`ParetoMFLDConfig`.

    Raises:
        MooptError: If a setting or the problem is unusable.

    Examples:
        >>> from botorch.test_functions.multi_objective import ZDT1
        >>> from moopt.samplers.mfld import ParetoMFLD
        >>> result = ParetoMFLD(ZDT1(30), 50, ref_point=[1.1, 1.1]).run(100)
        >>> bool(result.front.hypervolume() > 0.8)
        True
    """

    def __init__(
        self,
        problem: Any,
        n_particles: int | None = None,
        *,
        ref_point: Any = None,
        bounds: Any = None,
        directions: str | Sequence[str] | None = None,
        names: Sequence[str] = (),
        init: Any = None,
        config: ParetoMFLDConfig | None = None,
        seed: int = 0,
        device: str | torch.device = "cpu",
        **settings: Any,
    ) -> None:
        known = {f.name for f in dataclasses.fields(ParetoMFLDConfig)}
        if unknown := sorted(settings.keys() - known):
            raise MooptError(f"unknown setting {unknown[0]!r}; choose from {', '.join(sorted(known))}")
        if n_particles is not None:
            settings["n_particles"] = n_particles
        self.config = dataclasses.replace(config or ParetoMFLDConfig(), **settings)
        _check(self.config)
        self.problem: MFLDProblem = as_problem(
            problem, bounds=bounds, directions=directions, ref_point=ref_point, names=names
        )
        self.seed, self.device = seed, torch.device(device)
        c = self.config
        self.functional = SoftHypervolume(self.problem, tau=c.tau, eps=c.eps, n_directions=c.n_directions)
        self.engine = MeanFieldLangevin(
            self.functional,
            c.n_particles,
            temperature=c.temperature,
            step_size=c.step_size,
            manifold=Box(0.0, 1.0),
            preconditioner="adam" if c.preconditioner == "adam" else None,
            init=None if init is None else self._unit(init),
            seed=seed,
            dtype=torch.float64,
            device=self.device,
        )
        self.horizon: int | None = None
        self.wall_s = 0.0
        self.history: dict[str, list[float]] = {}

    @property
    def particles(self) -> Tensor:
        """Particles (N, d) in the problem's bounds."""
        return self.problem.scaled(self.engine.particles)

    @property
    def n_evals(self) -> int:
        """Objective rows evaluated so far."""
        return self.functional.n_evals

    @property
    def n_grads(self) -> int:
        """Rows differentiated so far, one reverse pass each."""
        return self.functional.n_grads

    def run(
        self,
        n_steps: int | None = None,
        *,
        max_cost: float | None = None,
        gradient_cost: float = 1.0,
        callback: Callback | None = None,
        log_every: int | None = None,
    ) -> Result:
        """Run to the end of the annealing; a run that a callback stopped, or that was loaded, goes on.

        Args:
            n_steps: Steps in all, that is the length of the annealing. Default 200, or what ``max_cost`` allows.
            max_cost: Budget in evaluations instead: a step costs ``n_particles * (1 + gradient_cost)``, the final
                front ``n_particles``.
            gradient_cost: What the gradient of a row counts, in evaluations; 0 to leave gradients uncharged.
            callback: Called at every logged step; returning False stops the run.
            log_every: Steps between rows of the history; default a twentieth.

        Returns:
            The front of the particles' non-dominated points with their solutions (n, d), and the history: ``step``
            (evaluations), ``gradients``, ``hv`` (of all particles), ``n_front``, ``tau``, ``drift_rms``,
            ``noise_rms``. ``train_steps`` are the evaluations, ``eval_steps`` those of the final front.

        Raises:
            MooptError: If the budget does not allow a step, both budgets are given, or the problem fails.
        """
        start = time.perf_counter()
        self._set_horizon(n_steps, max_cost, gradient_cost)
        assert self.horizon is not None
        every = max(1, self.horizon // _LOGS) if log_every is None else max(1, int(log_every))
        while self.engine.n_steps < self.horizon:
            self._step()
            t = self.engine.n_steps
            if t % every == 0 or t == self.horizon:
                self._log()
                if callback is not None and callback(self._progress()) is False:
                    break
        front = self.front()
        self.wall_s += time.perf_counter() - start
        return Result(
            front=front,
            history={k: np.array(v) for k, v in self.history.items()},
            config=config_to_dict(self.config),
            versions=versions(str(self.device)),
            seed=self.seed,
            train_steps=self.n_evals,
            eval_steps=len(self.engine.particles),
            wall_s=self.wall_s,
        )

    def front(self) -> Front:
        """Evaluate the particles, which costs N evaluations, and return their non-dominated points."""
        with torch.no_grad():
            Y = self.functional.evaluate(self.engine.particles)
        names = self.problem.names or None
        return Front(
            Y.cpu().double().numpy(),
            names=names,
            directions=self.problem.directions,
            ref_point=self.problem.ref_point.cpu().numpy(),
            solutions=list(self.particles.cpu().numpy()),
            meta={
                "method": "ParetoMFLD",
                "seed": self.seed,
                "evaluations": self.n_evals,
                "gradients": self.n_grads,
                "steps": self.engine.n_steps,
            },
        ).filter()

    # ------------------------------------------------------------------------------------ inside
    def _unit(self, points: Any) -> Tensor:
        x = torch.as_tensor(np.asarray(points, dtype=np.float64))
        low, high = self.problem.bounds.double()
        if x.shape != (self.config.n_particles, len(low)) or not bool(((x >= low) & (x <= high)).all()):
            raise MooptError(
                f"init must be ({self.config.n_particles}, {len(low)}) within the bounds, got shape {tuple(x.shape)}"
            )
        unit: Tensor = (x - low) / (high - low)
        return unit

    def _set_horizon(self, n_steps: int | None, max_cost: float | None, gradient_cost: float) -> None:
        if n_steps is not None and max_cost is not None:
            raise MooptError("give n_steps or max_cost, not both")
        if not (math.isfinite(gradient_cost) and gradient_cost >= 0):
            raise MooptError(f"gradient_cost must be a finite number >= 0, got {gradient_cost}")
        if n_steps is not None and (isinstance(n_steps, bool) or n_steps != int(n_steps) or n_steps < 1):
            raise MooptError(f"n_steps must be a whole number >= 1, got {n_steps}")
        if max_cost is not None:
            n = self.config.n_particles
            n_steps = int((max_cost - n) // (n * (1 + gradient_cost)))
            if n_steps < 1:
                least = n * (2 + gradient_cost)
                raise MooptError(f"max_cost must be at least {least:g} for {n} particles, got {max_cost:g}")
        if n_steps is None and self.horizon is None:
            n_steps = 200
        if n_steps is None:
            return
        self.horizon = int(n_steps)
        c = self.config
        self.engine.schedule = Geometric(self.horizon, temperature=0.0, step_size=c.final_step)
        if c.birth_every:
            until = int(c.birth_until * self.horizon)
            self.engine.birth_death = BirthDeath(
                c.birth_every, c.birth_fraction, c.jitter, until, c.mutation, c.jump, c.crossover
            )

    def _step(self) -> None:
        assert self.horizon is not None
        c = self.config
        done = self.engine.n_steps / max(1, self.horizon - 1)
        self.functional.tau = c.tau * (c.final_tau / c.tau) ** min(1.0, done)
        self.engine.step()

    def _log(self) -> None:
        latest = self.functional.latest
        assert latest is not None
        points = latest.cpu().double().numpy()
        front = Front(points, ref_point=self.problem.ref_point.cpu().numpy()).filter()
        ref = self.problem.ref_point.cpu().numpy()
        row = {
            "step": self.n_evals,
            "gradients": self.n_grads,
            "hv": front.hypervolume() if (points > ref).all(axis=1).any() else 0.0,
            "n_front": len(front),
            "tau": self.functional.tau,
            **self.engine.rms(),
        }
        for key, value in row.items():
            self.history.setdefault(key, []).append(value)

    def _progress(self) -> Progress:
        assert self.horizon is not None
        left = self.horizon - self.engine.n_steps
        total = self.n_evals + left * self.config.n_particles
        return Progress(self.n_evals, total, {k: v[-1] for k, v in self.history.items() if k != "step"})

    # ------------------------------------------------------------------------------------- saving
    def state_dict(self) -> dict[str, Any]:
        """Return everything to go on bit for bit."""
        return {
            "engine": self.engine.state_dict(),
            "functional": self.functional.state_dict(),
            "horizon": self.horizon,
            "history": self.history,
            "wall_s": self.wall_s,
            "config": config_to_dict(self.config),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state_dict`, made on the same problem with the same settings.

        Raises:
            CheckpointError: If it does not fit.
        """
        try:
            if state["config"] != config_to_dict(self.config):
                raise CheckpointError("the state was made with other settings")
            self.engine.load_state_dict(state["engine"])
            self.functional.load_state_dict(state["functional"])
            self.history = {k: list(v) for k, v in state["history"].items()}
            self.wall_s = float(state["wall_s"])
            if state["horizon"] is not None:
                self._set_horizon(int(state["horizon"]), None, 1.0)
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"this is no state of ParetoMFLD: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the state to one file, without pickle."""
        save_state(path, self.state_dict())

    def restore(self, path: str | Path) -> Self:
        """Continue from a file that :meth:`save` wrote; the problem is not in it."""
        self.load_state_dict(load_state(path))
        return self


def _check(config: ParetoMFLDConfig) -> None:
    unit: Callable[[float], bool] = lambda v: 0 <= v <= 1  # noqa: E731
    rules: dict[str, tuple[Callable[[float], bool], str]] = {
        "final_step": (lambda v: v > 0, "> 0"),
        "tau": (lambda v: v > 0, "> 0"),
        "final_tau": (lambda v: v > 0, "> 0"),
        "birth_every": (lambda v: v >= 0, ">= 0"),
        "birth_until": (unit, "in [0, 1]"),
    }
    for name, (good, words) in rules.items():
        value = getattr(config, name)
        if not (math.isfinite(value) and good(value)):
            raise MooptError(f"{name} must be a finite number {words}, got {value}")
    if config.preconditioner not in ("adam", "none"):
        raise MooptError(f"preconditioner must be 'adam' or 'none', got {config.preconditioner!r}")
