"""The mean-field Langevin integrator: particles that follow minus the first variation's gradient, plus noise."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from moopt.runs.callbacks import Callback, Progress
from moopt.runs.errors import CheckpointError, MooptError, did_you_mean
from moopt.runs.seeding import seed_streams, torch_generator
from moopt.samplers.mfld.birth_death import BirthDeath
from moopt.samplers.mfld.functional import MeasureFunctional
from moopt.samplers.mfld.gradients import Adam, GradientEstimator
from moopt.samplers.mfld.manifolds import Manifold, as_manifold
from moopt.samplers.mfld.schedules import Constant, Schedule


class DivergenceError(MooptError):
    """Particles became infinite or NaN."""


@dataclass(frozen=True)
class LangevinResult:
    """What a run returns.

    ``particles`` is (N, D) or (E, N, D); ``history`` holds one array per quantity, over the logged steps
    (and members, if there is an ensemble).
    """

    particles: Tensor
    history: dict[str, np.ndarray[Any, Any]]


class MeanFieldLangevin:
    """Mean-field Langevin dynamics of N particles for a functional F of their measure.

    It minimises F(mu) + weight_decay / 2 E|w|^2 - temperature * entropy(mu). One step is

        w <- w - step_size * (grad dF/dmu(w) + weight_decay * w) + sqrt(2 * step_size * temperature) * xi

    projected to the manifold. All particles of all ensemble members move at once.

    Args:
        functional: What to minimise; see :class:`~moopt.samplers.mfld.functional.MeasureFunctional`.
        n_particles: Number N of particles.
        dim: Size D of a particle; default ``functional.dim`` where the functional has it.
        temperature: 1 / beta >= 0. A number, or one per member (E,).
        weight_decay: Strength of the quadratic confinement, >= 0; a number or one per member.
        prior_var: Instead of ``weight_decay``: variance of the Gaussian reference N(0, prior_var I), so that
            weight_decay = temperature / prior_var at every temperature.
        step_size: Step size > 0, a number or one per member.
        manifold: "euclidean", "sphere", or a manifold object such as ``Box(low, high)``.
        schedule: How the three change along the run; default not at all.
        gradient: "full", "minibatch" (uniform rows with replacement), or "svrg" (variance-reduced minibatch).
        batch_size: Rows per minibatch.
        snapshot_every: Steps between full gradients of "svrg".
        preconditioner: None, or "adam" on the drift (never on the noise). With it the dynamics is no longer
            covered by the mean-field Langevin theory.
        birth_death: Rule that moves the worst particles to copies of the best; None for none.
        ensemble: Number E of independent members, carried as a leading dimension; None for a single system
            without it.
        init: Starting particles (N, D) or (E, N, D); default drawn by the manifold.
        seed: Seed >= 0 of starts, noise and minibatches.
        dtype: Floating type of the particles; default the functional's data, else float32.
        device: Device; default the functional's data, else the CPU.

    Raises:
        MooptError: If a setting is out of range, or both ``weight_decay`` and ``prior_var`` are given.

    Examples:
        >>> import torch
        >>> from moopt.samplers.mfld import LinearPotential, MeanFieldLangevin
        >>> bowl = LinearPotential(lambda w: w.square().sum(-1) / 2)
        >>> engine = MeanFieldLangevin(bowl, 1000, dim=2, temperature=0.5, step_size=0.1)
        >>> engine.run(200).particles.shape
        torch.Size([1000, 2])
    """

    def __init__(
        self,
        functional: MeasureFunctional,
        n_particles: int,
        *,
        dim: int | None = None,
        temperature: float | Sequence[float],
        weight_decay: float | Sequence[float] | None = None,
        prior_var: float | None = None,
        step_size: float | Sequence[float],
        manifold: str | Manifold = "euclidean",
        schedule: Schedule | None = None,
        gradient: Literal["full", "minibatch", "svrg"] = "full",
        batch_size: int = 256,
        snapshot_every: int = 50,
        preconditioner: Literal["adam"] | None = None,
        birth_death: BirthDeath | None = None,
        ensemble: int | None = None,
        init: Tensor | None = None,
        seed: int = 0,
        dtype: torch.dtype | None = None,
        device: str | torch.device | None = None,
    ) -> None:
        data = getattr(functional, "X", None)
        self.functional = functional
        self.dtype = dtype or (data.dtype if isinstance(data, Tensor) else torch.float32)
        self.device = torch.device(device or (data.device if isinstance(data, Tensor) else "cpu"))
        self.manifold = as_manifold(manifold)
        self.schedule: Schedule = schedule or Constant()
        if preconditioner not in (None, "adam"):
            raise MooptError(f"unknown preconditioner {preconditioner!r}{did_you_mean(preconditioner, ['adam'])}")
        _check_counts(n_particles=n_particles, batch_size=batch_size, snapshot_every=snapshot_every)
        streams = seed_streams(seed, ["init", "noise"])
        self.generator = torch_generator(streams["noise"], self.device)
        self.particles = self._start(n_particles, dim, ensemble, init, torch_generator(streams["init"], self.device))
        lead = tuple(self.particles.shape[:-2])
        self.temperature = self._setting("temperature", temperature, lead)
        self.step_size = self._setting("step_size", step_size, lead, strict=True)
        self.prior_var = prior_var
        self.weight_decay = self._decay(weight_decay, prior_var, lead)
        self.n_steps = 0
        self.check_every: int | None = 25
        """Steps between checks that the particles are finite; None for no checks (a diverged member stays NaN)."""
        self.estimator = GradientEstimator(functional, gradient, batch_size, snapshot_every)
        self.adam = Adam() if preconditioner == "adam" else None
        self.birth_death = birth_death
        self._noise = torch.empty_like(self.particles)
        self._move = torch.empty_like(self.particles)

    # ------------------------------------------------------------------------------------ running
    def step(self) -> Tensor:
        """Take one step and return the particles, the engine's own tensor (N, D) or (E, N, D)."""
        self._advance()
        if self.check_every and self.n_steps % self.check_every == 0:
            self._check_finite()
        return self.particles

    def run(
        self,
        n_steps: int,
        callback: Callback | None = None,
        *,
        log_every: int | None = None,
        metrics: Callable[[Tensor], Mapping[str, Any]] | None = None,
    ) -> LangevinResult:
        """Take ``n_steps`` steps.

        Args:
            n_steps: Steps, >= 0.
            callback: Called at every logged step; returning False stops the run.
            log_every: Steps between history rows; default a twentieth of the run. Each costs one evaluation
                of the functional.
            metrics: Further quantities of the particles to log; numbers or arrays (E,).

        Returns:
            A copy of the particles and the history of this call: ``step``, ``value`` (the functional F),
            ``objective`` (F plus the decay term), ``norm`` (mean |w|), ``drift_rms``, ``noise_rms``.

        Raises:
            DivergenceError: If particles stop being finite.
            MooptError: If ``n_steps`` is negative.
        """
        if isinstance(n_steps, bool) or n_steps != int(n_steps) or n_steps < 0:
            raise MooptError(f"n_steps must be a whole number >= 0, got {n_steps}")
        every = max(1, n_steps // 20) if log_every is None else log_every
        _check_counts(log_every=every)
        rows: list[dict[str, Any]] = []
        for index in range(1, n_steps + 1):
            self.step()
            if index % every and index < n_steps:
                continue
            if self.check_every:
                self._check_finite()
            rows.append({**self._observe(), **(metrics(self.particles) if metrics else {})})
            if callback is not None and callback(self._progress(n_steps - index, rows[-1])) is False:
                break
        history = {key: np.array([row[key] for row in rows]) for key in (rows[0] if rows else {})}
        return LangevinResult(self.particles.clone(), history)

    def drift(self) -> Tensor:
        """Return a copy of the full gradient of the first variation at the particles, without weight decay."""
        return self.functional.drift(self.particles, generator=self.generator).clone()

    def _advance(self) -> None:
        factors = self.schedule.at(self.n_steps)
        eta, temp = self._at(self.step_size, factors.step_size), self._at(self.temperature, factors.temperature)
        decay = self._current_decay(temp, factors.weight_decay)
        points, move = self.particles, self._move
        drift = self.estimator(points, self.n_steps, self.generator)
        if self.adam is not None:
            drift = self.adam(drift)
        self._last_drift = drift
        torch.mul(drift, -eta, out=move)
        if self.manifold.decays and not _is_zero(decay):
            _add_scaled(move, points, -eta * decay)
        if not _is_zero(temp):
            _add_scaled(move, self._noise.normal_(generator=self.generator), (2 * eta * temp) ** 0.5)
        self.manifold.move_(points, move)
        self.n_steps += 1
        if self.birth_death is not None:
            self.birth_death(self)

    # ------------------------------------------------------------------------------------ looking
    def current(self) -> tuple[float | Tensor, float | Tensor, float | Tensor]:
        """Return step size, temperature and weight decay of the next step; tensors (E, 1, 1) where they differ."""
        factors = self.schedule.at(self.n_steps)
        temp = self._at(self.temperature, factors.temperature)
        return self._at(self.step_size, factors.step_size), temp, self._current_decay(temp, factors.weight_decay)

    def rms(self) -> dict[str, float]:
        """Return root mean squares: ``drift_rms`` of the latest (preconditioned) drift, ``noise_rms`` of a step."""
        eta, temp, _ = self.current()
        noise = torch.as_tensor((2 * eta * temp) ** 0.5).mean()
        return {"drift_rms": float(self._last_drift.square().mean().sqrt()), "noise_rms": float(noise)}

    def _observe(self) -> dict[str, Any]:
        eta, temp, decay = self.current()
        value = self.functional.value(self.particles)
        squares = self.particles.square().sum(dim=-1)
        flat = _flat(decay) if self.manifold.decays else 0.0
        noise = (2 * eta * temp) ** 0.5 if not _is_zero(temp) else 0.0
        row = {
            "step": self.n_steps,
            "value": value,
            "objective": value + flat * squares.mean(dim=-1) / 2,
            "norm": squares.sqrt().mean(dim=-1),
            "drift_rms": self._last_drift.square().mean(dim=(-2, -1)).sqrt(),
            "noise_rms": _flat(noise) + torch.zeros_like(value),
        }
        return {k: v.detach().cpu().double().numpy() if isinstance(v, Tensor) else v for k, v in row.items()}

    def _progress(self, left: int, row: Mapping[str, Any]) -> Progress:
        means = {k: float(np.mean(v)) for k, v in row.items() if k != "step"}
        return Progress(step=self.n_steps, total_steps=self.n_steps + left, metrics=means)

    def _check_finite(self) -> None:
        bad = ~torch.isfinite(self.particles).flatten(-2).all(dim=-1)
        if not bool(bad.any()):
            return
        where = f" in {int(bad.sum())} of {bad.numel()} members" if bad.ndim else ""
        stable = getattr(self.functional, "stable_step", None)
        hint = f" (steps up to about {stable():.2g} are stable at this scale)" if stable else ""
        raise DivergenceError(
            f"particles became NaN or infinite by step {self.n_steps}{where}: lower step_size{hint} or the scale"
        )

    # ------------------------------------------------------------------------------------- saving
    def state_dict(self) -> dict[str, Any]:
        """Return everything a later run needs to go on bit for bit, generator included; plain data and tensors."""
        return {
            "particles": self.particles.clone(),
            "n_steps": self.n_steps,
            "generator": self.generator.get_state(),
            "estimator": self.estimator.state_dict(),
            "adam": None if self.adam is None else self.adam.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what :meth:`state_dict` returned, with the same settings.

        Raises:
            CheckpointError: If the state is of another shape or kind.
        """
        try:
            particles = state["particles"]
            if particles.shape != self.particles.shape or (state["adam"] is None) != (self.adam is None):
                raise CheckpointError(
                    f"the state has particles {tuple(particles.shape)}, the engine {tuple(self.particles.shape)}"
                    " (or one of them has a preconditioner)"
                )
            self.particles.copy_(particles)
            self.n_steps = int(state["n_steps"])
            self.generator.set_state(state["generator"].cpu())
            self.estimator.load_state_dict(state["estimator"], self.particles)
            if self.adam is not None:
                self.adam.load_state_dict(state["adam"], self.particles)
        except (KeyError, AttributeError, TypeError, RuntimeError) as error:
            raise CheckpointError(f"this is no state of a mean-field Langevin engine: {error}") from error

    # ----------------------------------------------------------------------------------- settings
    def _start(
        self, n: int, dim: int | None, ensemble: int | None, init: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        dim = dim if dim is not None else getattr(self.functional, "dim", None)
        if dim is None and init is not None:
            dim = int(init.shape[-1])
        if dim is None:
            raise MooptError("dim is needed: this functional does not say how large a particle is")
        _check_counts(dim=dim, **({} if ensemble is None else {"ensemble": ensemble}))
        shape = (n, dim) if ensemble is None else (ensemble, n, dim)
        if init is None:
            return self.manifold.random(shape, generator, self.dtype)
        start = init.detach().to(dtype=self.dtype, device=self.device)
        if start.shape not in (torch.Size(shape), torch.Size((n, dim))):
            raise MooptError(f"init must have shape {shape} or {(n, dim)}, got {tuple(start.shape)}")
        start = start.expand(shape).clone()
        if not bool(torch.isfinite(start).all()):
            raise MooptError("init has values that are NaN or infinite")
        return start

    def _setting(
        self, name: str, value: float | Sequence[float], lead: tuple[int, ...], *, strict: bool = False
    ) -> float | Tensor:
        array = np.asarray(value, dtype=np.float64)
        bad = not np.isfinite(array).all() or (array <= 0 if strict else array < 0).any()
        if bad or array.shape not in ((), lead):
            per_member = f" or {lead[0]} of them" if lead else ""
            raise MooptError(f"{name} must be a number {'>' if strict else '>='} 0{per_member}, got {value}")
        if array.ndim == 0:
            return float(array)
        return torch.as_tensor(array, dtype=self.dtype, device=self.device).view(*lead, 1, 1)

    def _decay(
        self, weight_decay: float | Sequence[float] | None, prior_var: float | None, lead: tuple[int, ...]
    ) -> float | Tensor:
        if weight_decay is not None and prior_var is not None:
            raise MooptError(
                f"give weight_decay or prior_var, not both (got weight_decay={weight_decay}, prior_var={prior_var})"
            )
        if prior_var is not None and not (math.isfinite(prior_var) and prior_var > 0):
            raise MooptError(f"prior_var must be a finite number > 0, got {prior_var}")
        decay = self._setting("weight_decay", 0.0 if weight_decay is None else weight_decay, lead)
        if not self.manifold.decays and (prior_var is not None or not _is_zero(decay)):
            raise MooptError(
                f"on the {self.manifold.name} every particle has the same norm: weight_decay must be 0, got "
                f"{weight_decay if prior_var is None else f'prior_var={prior_var}'}"
            )
        return decay

    def _current_decay(self, temp: float | Tensor, factor: float) -> float | Tensor:
        return temp / self.prior_var if self.prior_var is not None else self._at(self.weight_decay, factor)

    @staticmethod
    def _at(setting: float | Tensor, factor: float) -> float | Tensor:
        return setting if factor == 1.0 else setting * factor


def _add_scaled(total: Tensor, term: Tensor, factor: float | Tensor) -> None:
    if isinstance(factor, Tensor):
        total.addcmul_(term, factor)
    else:
        total.add_(term, alpha=factor)


def _is_zero(value: float | Tensor) -> bool:
    return not isinstance(value, Tensor) and value == 0


def _flat(value: float | Tensor) -> float | Tensor:
    return value.flatten() if isinstance(value, Tensor) else value


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise MooptError(f"{name} must be a whole number >= 1, got {value!r}")
