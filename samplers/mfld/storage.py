"""Estimators in one file, without pickle."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moopt.runs.errors import CheckpointError, MooptError
from moopt.runs.state import load_state, save_state

if TYPE_CHECKING:
    from moopt.samplers.mfld.estimators import _MFLDEstimator

    E = TypeVar("E", bound=_MFLDEstimator)

_PRIVATE = ("_outputs_count",)


def save_estimator(estimator: "_MFLDEstimator", path: str | Path) -> None:
    """Write settings and fitted attributes.

    Raises:
        MooptError: If the estimator is not fitted, or its random_state or labels cannot be saved.
    """
    if not hasattr(estimator, "particles_"):
        raise MooptError("only a fitted estimator can be saved")
    params = {k: _plain(v) for k, v in estimator.get_params(deep=False).items()}
    if not isinstance(params["random_state"], int | None):
        params["random_state"] = None  # a generator object's later state is not part of the model
    fitted = {
        k: v if not (isinstance(v, np.ndarray) and v.dtype == object) else {"labels": v.tolist()}
        for k, v in vars(estimator).items()
        if (k.endswith("_") and not k.startswith("_")) or k in _PRIVATE
    }
    save_state(path, {"class": type(estimator).__name__, "params": params, "fitted": fitted})


def load_estimator(cls: "type[E]", path: str | Path) -> "E":
    """Read what :func:`save_estimator` wrote.

    Raises:
        CheckpointError: If the file is damaged, or of another estimator.
    """
    state = load_state(path)
    try:
        if state["class"] != cls.__name__:
            raise CheckpointError(f"{path} holds a {state['class']}, not a {cls.__name__}")
        estimator = cls(**state["params"])
        for name, value in state["fitted"].items():
            labels = isinstance(value, dict) and "labels" in value
            setattr(estimator, name, np.array(value["labels"], dtype=object) if labels else value)
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is no saved estimator: {error}") from error
    return estimator


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value
