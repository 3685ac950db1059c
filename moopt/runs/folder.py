"""Run folders: settings, metrics, checkpoints and fronts of one run, safe against a kill at any moment.

Layout::

    config.json     algo, env, seed, total_steps and all resolved settings
    command.txt     the commands that made and resumed it
    versions.json   what it was made with
    status.json     running, finished, failed or interrupted
    metrics.csv     one row a log point (and tb/ if asked)
    fronts/         step_000100000.csv, ...
    front.csv/json  the final front
    checkpoints/    the last two states
"""

import contextlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from moopt.runs.config import load_config_file
from moopt.runs.errors import CheckpointError, ConfigError, RunError, os_reason
from moopt.runs.files import atomic_write_text, sweep_temporaries
from moopt.runs.lock import folder_lock
from moopt.runs.metrics import MetricLog
from moopt.runs.provenance import command_line, versions
from moopt.runs.state import load_state, save_state

if TYPE_CHECKING:
    from moopt.pareto.front import Front

Status = Literal["running", "finished", "failed", "interrupted"]
_STATUSES = ("running", "finished", "failed", "interrupted")
_KEEP = 2
_SCHEMA = 1


def no_run_folder(path: Path) -> RunError:
    """Return the error that says why ``path`` is no run folder."""
    what = "has no config.json" if path.is_dir() else "is a file" if path.exists() else "does not exist"
    return RunError(f"{path} is no run folder: it {what}")


class RunDir:
    """A run folder. Make one with `RunDir.create`, open one with `RunDir.open`.

    Attributes:
        path: The folder.
        config: Content of ``config.json``: algo, env, seed, total_steps, config (the method's settings).
        metrics: The metric log.
    """

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config
        self.metrics = MetricLog(path / "metrics.csv")
        self._lock_depth = 0

    # ------------------------------------------------------------------------------------ make and open
    @classmethod
    def create(
        cls,
        path: str | Path | None,
        *,
        algo: str,
        env: str,
        seed: int,
        config: Mapping[str, Any],
        total_steps: int | None = None,
        command: str | None = None,
        device: str | None = None,
        root: str | Path = "runs",
    ) -> "RunDir":
        """Make a new run folder and write its settings; nothing that exists is overwritten.

        Args:
            path: The folder, absent or empty; None makes ``root/algo/env/YYYYmmdd-HHMMSS-sSEED``.
            algo: Name of the method.
            env: Id of the environment or problem.
            seed: Seed of the run.
            config: The method's resolved settings, JSON-able (see `moopt.runs.config_to_dict`).
            total_steps: Steps the run is going to do.
            command: The command line; default that of this process.
            device: Device the run computes on.
            root: Where automatic folders go.

        Raises:
            RunError: If the folder holds a run or other files, or cannot be written.
        """
        folder = new_folder(Path(root), algo, env, f"s{seed}") if path is None else _empty_folder(Path(path))
        content = {
            "schema": _SCHEMA,
            "algo": algo,
            "env": env,
            "seed": int(seed),
            "total_steps": total_steps,
            "config": dict(config),
        }
        run = cls(folder, content)
        try:
            _write_json(folder / "config.json", content)
            atomic_write_text(folder / "command.txt", (command or command_line(sys.argv)) + "\n")
            _write_json(folder / "versions.json", versions(device))
        except BaseException:  # half a run would stand in the way of the next one
            run.discard()
            raise
        return run

    @classmethod
    def open(cls, path: str | Path) -> "RunDir":
        """Open an existing run folder.

        Raises:
            RunError: If ``path`` holds no run or its ``config.json`` is damaged.
        """
        path = Path(path)
        if not (path / "config.json").is_file():
            raise no_run_folder(path)
        try:
            content = load_config_file(path / "config.json")
        except ConfigError as error:
            raise RunError(str(error)) from error
        wanted = {"algo": str, "env": str, "seed": int, "config": dict}
        for name, kind in wanted.items():
            if not isinstance(content.get(name), kind) or isinstance(content[name], bool):
                raise RunError(f"{path / 'config.json'} is damaged: {name} is {content.get(name)!r}")
        return cls(path, content)

    def update_config(self, **values: Any) -> None:
        """Change top-level entries of ``config.json``, such as total_steps when a run is prolonged."""
        self.config = {**self.config, **values}
        _write_json(self.path / "config.json", self.config)

    def note_resume(self, command: str | None = None) -> None:
        """Add the resuming command to ``command.txt`` and warn if versions changed since the run began."""
        file = self.path / "command.txt"
        earlier = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        atomic_write_text(file, earlier + (command or command_line(sys.argv)) + "\n")
        then, now = self.versions, versions()
        changed = [
            f"{name} {then[name]} -> {now[name]}"
            for name in ("moopt", "python", "torch", "numpy", "gymnasium", "mo-gymnasium")
            if name in then and then[name] != now[name]
        ]
        if changed:
            warnings.warn(
                f"versions changed since {self.path} was started ({', '.join(changed)}): "
                "the rest of the run may differ from an uninterrupted one",
                stacklevel=2,
            )

    def discard(self) -> None:
        """Remove a run in which nothing has happened yet; a folder with anything else in it stays."""
        for name in ("config.json", "command.txt", "versions.json", "status.json", ".lock"):
            (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    @property
    def versions(self) -> dict[str, Any]:
        """Content of ``versions.json``; ``{}`` if it is missing or damaged."""
        return _read_json(self.path / "versions.json")

    # ------------------------------------------------------------------------------------ lock and status
    @contextlib.contextmanager
    def lock(self) -> Iterator["RunDir"]:
        """Keep other processes out for the block; may be nested on the same object.

        Raises:
            RunLockedError: If another process (or another RunDir object) holds the lock.
        """
        with contextlib.ExitStack() as stack:
            if self._lock_depth == 0:
                stack.enter_context(folder_lock(self.path))
                sweep_temporaries(self.path)
                sweep_temporaries(self.path / "checkpoints")
            self._lock_depth += 1
            try:
                yield self
            finally:
                self._lock_depth -= 1

    def set_status(self, status: Status, **info: Any) -> None:
        """Write ``status.json``.

        Args:
            status: running, finished, failed or interrupted.
            **info: JSON-able details, such as step, reason, wall_s.
        """
        if status not in _STATUSES:
            raise RunError(f"status must be one of {', '.join(_STATUSES)}, got {status!r}")
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        _write_json(self.path / "status.json", {"status": status, "time": now, "pid": os.getpid(), **info})

    @property
    def status(self) -> str:
        """The last status written; ``unknown`` if there is none or the file is damaged."""
        return str(_read_json(self.path / "status.json").get("status", "unknown"))

    # ------------------------------------------------------------------------------------ checkpoints
    def save_checkpoint(self, step: int, state: Any) -> Path:
        """Save the state at ``step`` and keep the last two.

        Args:
            step: Steps done.
            state: What `moopt.runs.save_state` takes.

        Returns:
            The file.

        Raises:
            RunError: If it cannot be written; the earlier checkpoints are intact.
        """
        folder = self.path / "checkpoints"
        try:
            folder.mkdir(exist_ok=True)
            self.metrics.sync()  # the rows up to this step must be there when the checkpoint is
        except OSError as error:
            raise RunError(f"cannot write {folder}: {os_reason(error)}") from error
        file = folder / f"step_{int(step):012d}.npz"
        save_state(file, {"step": int(step), "state": state})
        kept = [s for s in self.checkpoint_steps() if s <= step][-_KEEP:]
        for other in self.checkpoint_steps():
            if other not in kept:  # older ones, and a later one that was damaged and abandoned
                with contextlib.suppress(OSError):
                    (folder / f"step_{other:012d}.npz").unlink()
        return file

    def checkpoint_steps(self) -> list[int]:
        """Return the steps of the checkpoints on disk, smallest first."""
        found = (re.fullmatch(r"step_(\d{12})\.npz", p.name) for p in (self.path / "checkpoints").glob("*.npz"))
        return sorted(int(m[1]) for m in found if m)

    def load_checkpoint(self) -> tuple[int, Any] | None:
        """Return step and state of the newest checkpoint that can be read, or None if there is none at all.

        A damaged one is passed over with a warning.

        Raises:
            CheckpointError: If there are checkpoints and all are damaged.
        """
        problem: CheckpointError | None = None
        for step in reversed(self.checkpoint_steps()):
            try:
                saved = load_state(self.path / "checkpoints" / f"step_{step:012d}.npz")
                if not isinstance(saved, dict) or saved.get("step") != step or "state" not in saved:
                    raise CheckpointError(f"checkpoint {step} of {self.path} is not the state of that step")
            except CheckpointError as error:
                problem = error
                warnings.warn(f"{error}; going back to the checkpoint before it", stacklevel=2)
            else:
                return step, saved["state"]
        if problem is not None:
            raise CheckpointError(f"no checkpoint of {self.path} can be read: {problem}") from problem
        return None

    # ------------------------------------------------------------------------------------ fronts
    def write_front(self, front: "Front", name: str = "front") -> None:
        """Write ``<name>.csv`` and ``<name>.json``, each atomically.

        Args:
            front: The front.
            name: File name without suffix, such as front or exact_front.

        Raises:
            RunError: If they cannot be written; the old ones are intact.
        """
        front.to_json(self.path / f"{name}.json")
        front.to_csv(self.path / f"{name}.csv")

    def write_snapshot(self, step: int, front: "Front") -> None:
        """Write the front as it is at ``step`` to ``fronts/step_<step>.csv``."""
        try:
            (self.path / "fronts").mkdir(exist_ok=True)
            front.to_csv(self.path / "fronts" / f"step_{int(step):09d}.csv")
        except OSError as error:
            raise RunError(f"cannot write {self.path / 'fronts'}: {os_reason(error)}") from error


def new_folder(root: Path, algo: str, env: str, tag: str) -> Path:
    """Make and return ``root/algo/env/YYYYmmdd-HHMMSS-TAG``, with ``-2`` and so on if that is taken."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{tag}"
    parent = root / _as_name(algo) / _as_name(env)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            folder = parent / (name if number == 1 else f"{name}-{number}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise RunError(f"cannot make a run folder in {parent}: {os_reason(error)}") from error
    raise RunError(f"cannot make a run folder in {parent}: too many of the same second")


def _empty_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        entries = [p.name for p in path.iterdir()]
    except OSError as error:
        raise RunError(f"cannot make the run folder {path}: {os_reason(error)}") from error
    if "config.json" in entries:
        raise RunError(f"{path} already holds a run; continue it with --resume {path} or choose another folder")
    if entries:
        raise RunError(f"{path} is not empty; a run needs a folder of its own")
    if not os.access(path, os.W_OK | os.X_OK):
        raise RunError(f"cannot write into {path}: Permission denied")
    return path


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-") or "run"


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(content, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RunError(f"cannot write {path}: the content is no plain data ({error})") from error
    atomic_write_text(path, text + "\n")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return load_config_file(path)
    except ConfigError:
        return {}
