"""Runs: folders on disk, checkpoints, settings, seeds, metrics and results shared by every method."""

from importlib import import_module
from typing import TYPE_CHECKING

_WHERE = {
    "CheckpointError": "errors",
    "ConfigError": "errors",
    "MissingExtraError": "errors",
    "MooptError": "errors",
    "RunError": "errors",
    "RunLockedError": "errors",
    "did_you_mean": "errors",
    "atomic_write_bytes": "files",
    "atomic_write_text": "files",
    "load_state": "state",
    "save_state": "state",
    "config_from_mapping": "config",
    "config_to_dict": "config",
    "load_config_file": "config",
    "child_sequence": "seeding",
    "resolve_device": "device",
    "numpy_generator": "seeding",
    "seed_streams": "seeding",
    "torch_generator": "seeding",
    "MetricLog": "metrics",
    "read_metrics": "metrics",
    "RunDir": "folder",
    "RunRecord": "record",
    "find_runs": "record",
    "read_run": "record",
    "Result": "result",
    "Callback": "callbacks",
    "Progress": "callbacks",
    "ProgressBar": "callbacks",
    "ProgressLines": "callbacks",
    "call_all": "callbacks",
    "versions": "provenance",
}
__all__ = sorted(_WHERE)

if TYPE_CHECKING:  # the aliases tell type checkers that these are public
    from moopt.runs.callbacks import Callback as Callback
    from moopt.runs.callbacks import Progress as Progress
    from moopt.runs.callbacks import ProgressBar as ProgressBar
    from moopt.runs.callbacks import ProgressLines as ProgressLines
    from moopt.runs.callbacks import call_all as call_all
    from moopt.runs.config import config_from_mapping as config_from_mapping
    from moopt.runs.config import config_to_dict as config_to_dict
    from moopt.runs.config import load_config_file as load_config_file
    from moopt.runs.device import resolve_device as resolve_device
    from moopt.runs.errors import CheckpointError as CheckpointError
    from moopt.runs.errors import ConfigError as ConfigError
    from moopt.runs.errors import MissingExtraError as MissingExtraError
    from moopt.runs.errors import MooptError as MooptError
    from moopt.runs.errors import RunError as RunError
    from moopt.runs.errors import RunLockedError as RunLockedError
    from moopt.runs.errors import did_you_mean as did_you_mean
    from moopt.runs.files import atomic_write_bytes as atomic_write_bytes
    from moopt.runs.files import atomic_write_text as atomic_write_text
    from moopt.runs.folder import RunDir as RunDir
    from moopt.runs.metrics import MetricLog as MetricLog
    from moopt.runs.metrics import read_metrics as read_metrics
    from moopt.runs.provenance import versions as versions
    from moopt.runs.record import RunRecord as RunRecord
    from moopt.runs.record import find_runs as find_runs
    from moopt.runs.record import read_run as read_run
    from moopt.runs.result import Result as Result
    from moopt.runs.seeding import child_sequence as child_sequence
    from moopt.runs.seeding import numpy_generator as numpy_generator
    from moopt.runs.seeding import seed_streams as seed_streams
    from moopt.runs.seeding import torch_generator as torch_generator
    from moopt.runs.state import load_state as load_state
    from moopt.runs.state import save_state as save_state


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *_WHERE})
