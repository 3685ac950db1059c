"""Estimators in scikit-learn's style: two-layer networks trained by mean-field Langevin dynamics."""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from moopt.runs.errors import MooptError, did_you_mean
from moopt.samplers.mfld import diagnostics
from moopt.samplers.mfld.config import MFLDConfig
from moopt.samplers.mfld.network import (
    TwoLayerClassification,
    TwoLayerNetwork,
    TwoLayerRegression,
    network_output,
    output_signs,
)
from moopt.samplers.mfld.training import Choice, Trainer

Array = np.ndarray[Any, Any]
_D = MFLDConfig()


class _MFLDEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share; see `MFLDRegressor`."""

    def __init__(
        self,
        n_particles: int = _D.n_particles,
        *,
        scale: float | Sequence[float] = _D.scale,
        temperature: float | Sequence[float] = _D.temperature,
        weight_decay: float = _D.weight_decay,
        step_size: float = _D.step_size,
        n_steps: int = _D.n_steps,
        activation: str = _D.activation,
        manifold: str = _D.manifold,
        schedule: str = _D.schedule,
        gradient: str = _D.gradient,
        batch_size: int = _D.batch_size,
        scaling: str = _D.scaling,
        validation_fraction: float = _D.validation_fraction,
        early_stopping: bool = _D.early_stopping,
        refit: bool = _D.refit,
        partial_steps: int = 50,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_particles = n_particles
        self.scale = scale
        self.temperature = temperature
        self.weight_decay = weight_decay
        self.step_size = step_size
        self.n_steps = n_steps
        self.activation = activation
        self.manifold = manifold
        self.schedule = schedule
        self.gradient = gradient
        self.batch_size = batch_size
        self.scaling = scaling
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.refit = refit
        self.partial_steps = partial_steps
        self.warm_start = warm_start
        self.random_state = random_state

    # ------------------------------------------------------------------------------------ fitting
    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows ``X`` (n, d), n >= 2, and targets ``y``.

        With ``warm_start`` and a fitted estimator, training continues from its particles, with its scale,
        temperature and input scaling.

        Raises:
            ValueError: If the data or a setting is unusable.
        """
        trainer = self.make_trainer(X, y)
        trainer.advance(trainer.total_steps)
        trainer.advance(trainer.total_steps)  # the second stage's length is known only after the first
        return self.adopt(trainer)

    def make_trainer(self, X: Any, y: Any) -> Trainer:
        """Return the training of :meth:`fit` before its first step, for callers that save and resume it.

        Give it to :meth:`adopt` when it is done.
        """
        again = self.warm_start and hasattr(self, "particles_")
        rows, target = self._read(X, y, first=not again)
        if not again:
            self._set_scaling(rows, target)
        choice = Choice(self.scale_, self.temperature_, self.n_steps, math.nan) if again else None
        start = torch.from_numpy(self.particles_) if again else None
        return self._trainer(rows, target, choice, start)

    def adopt(self, trainer: Trainer) -> Self:
        """Take over what a finished training found."""
        if not trainer.done or trainer.choice is None:
            raise MooptError("this training is not finished: advance it until trainer.done")
        self.particles_ = trainer.particles.cpu().numpy().copy()
        groups = self._n_outputs
        self.signs_ = np.tile(output_signs(len(self.particles_) // groups).numpy(), groups)
        self.scale_, self.temperature_ = trainer.choice.scale, trainer.choice.temperature
        self.step_size_ = trainer.step_size
        self.n_iter_ = trainer.choice.n_steps
        self.validation_loss_ = trainer.choice.validation_loss
        self.history_ = {k: np.array(v) for k, v in trainer.history.items()}
        return self

    def _partial(self, X: Any, y: Any, first: bool) -> Self:
        rows, target = self._read(X, y, first=first)
        if first:
            self._set_scaling(rows, target)
            scale, temp = _as_tuple("scale", self.scale)[0], _as_tuple("temperature", self.temperature)[0]
            self._partial_calls = 0
        else:
            scale, temp = self.scale_, self.temperature_
        start = None if first else torch.from_numpy(self.particles_)
        choice = Choice(scale, temp, self.partial_steps, math.nan)
        self._partial_calls = getattr(self, "_partial_calls", 0) + 1
        trainer = self._trainer(rows, target, choice, start)
        # A step clock of its own per call would draw the same noise every time.
        trainer.engine.generator.manual_seed(trainer.engine.generator.initial_seed() ^ self._partial_calls)
        trainer.advance(self.partial_steps)
        return self.adopt(trainer)

    def _trainer(self, rows: Array, target: Array, choice: Choice | None, start: torch.Tensor | None) -> Trainer:
        X = self._scaled(rows)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

        def factory(index: Array, scale: float | list[float]) -> TwoLayerNetwork:
            return self._functional(X[index], target[index], scale)

        return Trainer(factory, len(X), self._config(), seed=seed, start=start, choice=choice)

    def _config(self) -> MFLDConfig:
        values = {name: getattr(self, name) for name in MFLDConfig.__dataclass_fields__}
        values["scale"] = _as_tuple("scale", self.scale)
        values["temperature"] = _as_tuple("temperature", self.temperature)
        return MFLDConfig(**values)

    def _read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, Array]:
        raise NotImplementedError

    def _functional(self, X: Array, target: Array, scale: float | list[float]) -> TwoLayerNetwork:
        raise NotImplementedError

    @property
    def _n_outputs(self) -> int:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------ scaling
    def _set_scaling(self, rows: Array, target: Array) -> None:
        choices = ("global", "feature", "none")
        if self.scaling not in choices:
            raise MooptError(f"unknown scaling {self.scaling!r}{did_you_mean(str(self.scaling), choices)}")
        d = rows.shape[1]
        mean = rows.mean(axis=0)
        # Halves keep the squares of the largest floats finite.
        spread = (rows / 2 - mean / 2).std(axis=0) * 2
        if self.scaling == "none":
            mean, spread = np.zeros(d), np.ones(d)
        elif self.scaling == "global":
            spread = np.full(d, math.sqrt(float(np.mean((spread / 2) ** 2))) * 2)
        self.x_mean_ = mean
        self.x_scale_ = np.where(spread > 0, spread, 1.0)

    def _scaled(self, rows: Array) -> Array:
        return np.asarray((rows - self.x_mean_) / self.x_scale_)

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self, "particles_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        out = network_output(
            torch.from_numpy(self.particles_),
            self._scaled(rows),
            activation=self.activation,
            scale=self.scale_,
            n_outputs=self._n_outputs,
        )
        return np.asarray(out.numpy())

    # ------------------------------------------------------------------------------------ looking
    def subspace(self, k: int) -> Array:
        """Return the k input directions that hold most of the particles' squared length, orthonormal rows (k, d).

        They are directions of the scaled inputs; with "global" scaling also of the inputs themselves.
        """
        check_is_fitted(self, "particles_")
        return np.asarray(diagnostics.subspace(torch.from_numpy(self.particles_), k).numpy())

    def effective_dimension(self, X: Any, k: int = 1) -> float:
        """Return tr(S) / tr(U S U') for the covariance S of the scaled rows X (n, d) and U = ``subspace(k)``."""
        check_is_fitted(self, "particles_")
        rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_min_samples=2)
        return diagnostics.effective_dimension(self._scaled(rows), self.subspace(k))

    # ------------------------------------------------------------------------------------- saving
    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file, without pickle; :meth:`load` reads it."""
        from moopt.samplers.mfld.storage import save_estimator

        save_estimator(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator that :meth:`save` wrote.

        Raises:
            CheckpointError: If the file is damaged or of another estimator.
        """
        from moopt.samplers.mfld.storage import load_estimator

        return load_estimator(cls, path)


class MFLDRegressor(RegressorMixin, _MFLDEstimator):  # type: ignore[misc]
    """Regression by a two-layer network whose first-layer weights follow mean-field Langevin dynamics.

    Inputs are centred and scaled, targets standardised. If ``scale`` or ``temperature`` lists several values,
    or with ``early_stopping``, a validation split chooses among them and the number of steps; then the network
    is fitted on all rows. With fewer than 10 rows there is no split and the first values are used.

    Args:
        n_particles: Width: number of particles.
        scale: Output scale, or candidates. Larger is lazier: it fits faster and learns less structure.
        temperature: Temperature 1 / beta of the noise, or candidates.
        weight_decay: Strength of the quadratic confinement; unused on the sphere.
        step_size: Step size, lowered to what is stable at each scale.
        n_steps: Steps of each stage.
        activation: "relu", "tanh" or "sclip" (smooth clipped ReLU; wants scale >= 4).
        manifold: "euclidean" or "sphere".
        schedule: Annealing: "constant", "halving", "geometric", "log"; see
            :class:`~moopt.samplers.mfld.config.MFLDConfig`.
        gradient: "full", "minibatch" or "svrg".
        batch_size: Rows per minibatch.
        scaling: "global" centres the inputs and divides by one number, which keeps their spectrum; "feature"
            divides each; "none".
        validation_fraction: Share of the rows held out for the choice.
        early_stopping: Choose the number of steps too.
        refit: Fit once more on all rows after the choice.
        partial_steps: Steps per :meth:`partial_fit`.
        warm_start: Let :meth:`fit` continue from the fitted particles.
        random_state: Seed, generator or None, as in scikit-learn.

    Attributes:
        particles_: First-layer weights (N, d + 1), the bias last, for scaled inputs.
        signs_: Output signs (N,).
        scale_, temperature_, step_size_, n_iter_: What was used in the final stage.
        validation_loss_: Loss on the split at the choice, in units of the scaled targets (half squared error); nan
            without a split.
        history_: Dict of arrays: step, stage, loss, validation_loss.

    Examples:
        >>> from moopt.samplers.mfld import MFLDRegressor, multi_index
        >>> data = multi_index("xor", 200, 5)
        >>> model = MFLDRegressor(50, scale=4.0, n_steps=200, random_state=0).fit(data.X, data.y)
        >>> model.predict(data.X).shape
        (200,)
    """

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Take ``partial_steps`` steps; the first call fixes the scaling and uses the first candidates."""
        return self._partial(X, y, first=not hasattr(self, "particles_"))

    def predict(self, X: Any) -> Array:
        """Return predictions (k,), or (k, q) if it was fitted with several targets."""
        out = self._outputs(X) * self.y_scale_ + self.y_mean_
        return np.asarray(out)

    def _read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, Array]:
        rows, target = validate_data(
            self,
            X,
            y,
            reset=first,
            dtype=np.float64,
            y_numeric=True,
            multi_output=True,
            ensure_min_samples=2,
        )
        target = np.asarray(target, dtype=np.float64)
        if first:
            self.y_mean_ = target.mean(axis=0)
            deviation = target.std(axis=0)
            if np.any(deviation <= 1e-12 * np.maximum(1e-300, np.abs(self.y_mean_))):
                warnings.warn(
                    "the target is constant: there is nothing to learn and the prediction is that constant",
                    UserWarning,
                    stacklevel=4,
                )
                deviation = np.where(deviation <= 1e-12 * np.abs(self.y_mean_), 0.0, deviation)
            self.y_scale_ = np.where(deviation > 0, deviation, 1.0)
            self._outputs_count = 1 if target.ndim == 1 else target.shape[1]
        scaled = np.asarray((target - self.y_mean_) / self.y_scale_)
        return rows, scaled.squeeze(1) if scaled.ndim == 2 and scaled.shape[1] == 1 else scaled

    def _functional(self, X: Array, target: Array, scale: float | list[float]) -> TwoLayerNetwork:
        return TwoLayerRegression(X, target, activation=self.activation, scale=scale)

    @property
    def _n_outputs(self) -> int:
        return int(self._outputs_count)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


class MFLDClassifier(ClassifierMixin, _MFLDEstimator):  # type: ignore[misc]
    """Classification: as :class:`MFLDRegressor`, with logistic loss for two classes and cross-entropy for more.

    Args:
        n_particles: Width, rounded up to a multiple of the number of outputs.
        scale: As for :class:`MFLDRegressor`, like all other settings.
        temperature: See there.
        weight_decay: See there.
        step_size: See there.
        n_steps: See there.
        activation: See there.
        manifold: See there.
        schedule: See there.
        gradient: See there.
        batch_size: See there.
        scaling: See there.
        validation_fraction: See there.
        early_stopping: See there.
        refit: See there.
        partial_steps: See there.
        warm_start: See there.
        random_state: See there.

    Attributes:
        classes_: Labels (c,).

    Examples:
        >>> from moopt.samplers.mfld import MFLDClassifier, multi_index
        >>> data = multi_index("parity2", 400, 6)
        >>> model = MFLDClassifier(100, n_steps=300, random_state=0).fit(data.X, data.y)
        >>> bool(model.score(data.X, data.y) > 0.95)
        True
    """

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Take ``partial_steps`` steps on these rows; the first call needs all ``classes`` unless y has them."""
        first = not hasattr(self, "particles_")
        if first:
            self._all_classes = None if classes is None else np.unique(classes)
        return self._partial(X, y, first=first)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows ``X`` (n, d), n >= 2, and labels ``y`` (n,) of at least two classes."""
        self._all_classes = None
        return super().fit(X, y)

    def decision_function(self, X: Any) -> Array:
        """Return the log odds (k,) of the second class, or the logits (k, c) of more classes."""
        return self._outputs(X)

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities (k, c)."""
        out = torch.from_numpy(self._outputs(X))
        if out.ndim == 1:
            out = torch.stack([-out, out], dim=1) / 2
        return np.asarray(torch.softmax(out, dim=1).numpy())

    def predict(self, X: Any) -> Array:
        """Return the labels (k,) of largest probability."""
        out = self._outputs(X)
        index = (out > 0).astype(np.int64) if out.ndim == 1 else out.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def _read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, Array]:
        rows, labels = validate_data(self, X, y, reset=first, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        if first:
            known = getattr(self, "_all_classes", None)
            self.classes_ = np.unique(labels) if known is None else known
            if len(self.classes_) < 2:
                raise MooptError("the labels have only one class; at least two are needed")
        index = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        if not np.array_equal(self.classes_[index], labels):
            unknown = np.setdiff1d(labels, self.classes_)
            raise MooptError(f"labels {unknown[:5].tolist()} are not among the classes {self.classes_.tolist()}")
        return rows, index

    def _functional(self, X: Array, target: Array, scale: float | list[float]) -> TwoLayerNetwork:
        return TwoLayerClassification(
            X,
            target,
            n_classes=len(self.classes_),
            activation=self.activation,
            scale=scale,
        )

    @property
    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)


def _as_tuple(name: str, value: float | Sequence[float]) -> tuple[float, ...]:
    array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if array.ndim != 1 or array.size == 0:
        raise MooptError(f"{name} must be a number or a list of numbers, got {value!r}")
    return tuple(float(v) for v in array)
