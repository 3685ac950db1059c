"""Reading run folders for plots, reports and comparisons."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from moopt.runs.errors import RunError
from moopt.runs.folder import RunDir, no_run_folder
from moopt.runs.lock import is_locked
from moopt.runs.metrics import read_metrics

if TYPE_CHECKING:
    from moopt.pareto.front import Front


@dataclass(frozen=True)
class RunRecord:
    """What a run folder holds."""

    path: Path
    """The folder."""
    config: dict[str, Any]
    """algo, env, seed, total_steps, config."""
    status: str
    """running, finished, failed, interrupted (also when its process was killed) or unknown."""
    metrics: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Metric name to one value a log point; ``step`` is the common axis."""
    front: "Front | None" = None
    """The final front, if there is one yet."""
    exact_front: "Front | None" = None
    """The true front, where the environment knows it."""
    versions: dict[str, Any] = field(default_factory=dict)
    """What the run was made with."""


def read_run(path: str | Path) -> RunRecord:
    """Read a run folder, finished or not.

    Args:
        path: The folder.

    Raises:
        RunError: If it is no run folder or a file in it is damaged.
    """
    run = RunDir.open(path)
    return RunRecord(
        path=run.path,
        config=run.config,
        status=run_status(run),
        metrics=read_metrics(run.path / "metrics.csv"),
        front=_read_front(run.path, "front"),
        exact_front=_read_front(run.path, "exact_front"),
        versions=run.versions,
    )


def run_status(run: RunDir) -> str:
    """Return the status of a run; one that says running but has no living process was interrupted."""
    status = run.status
    return "interrupted" if status == "running" and not is_locked(run.path) else status


def find_runs(path: str | Path) -> list[Path]:
    """Return the run folders at or below ``path``, sorted; a run is not searched for further runs.

    Args:
        path: A run folder, or a folder of them (up to four levels down).

    Raises:
        RunError: If there is none.
    """
    path = Path(path)
    if not path.is_dir():
        raise no_run_folder(path)
    level, found = [path], []
    for _ in range(5):
        found += [p for p in level if (p / "config.json").is_file()]
        level = [
            child
            for p in level
            if not (p / "config.json").is_file()
            for child in p.iterdir()
            if child.is_dir() and not child.name.startswith(".")
        ]
    if not found:
        raise RunError(f"{path} holds no run (no config.json in it or below)")
    return sorted(found)


def _read_front(folder: Path, name: str) -> "Front | None":
    from moopt.pareto.front import Front

    for suffix, read in (("json", Front.from_json), ("csv", Front.from_csv)):
        file = folder / f"{name}.{suffix}"
        if file.is_file():
            return read(file)
    return None
