"""Training sessions behind ``moopt train``: one run in this process, or several through an executor."""

import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moopt.cli.errors import FAILURE, INTERRUPTED, OK, Terminated, UsageError, undisturbed
from moopt.cli.methods import AlgoEntry
from moopt.parallel import TaskError, get_executor
from moopt.runs.callbacks import Callback, ProgressBar, ProgressLines
from moopt.runs.config import config_from_mapping
from moopt.runs.errors import MooptError
from moopt.runs.folder import RunDir
from moopt.runs.provenance import command_line

_TERMINATED = 143


@dataclass(frozen=True)
class RunTask:
    """One run to train, as plain data for any executor; everything else is in its folder."""

    path: str
    entry: AlgoEntry
    total_steps: int
    device: str
    tensorboard: bool
    quiet: bool
    jobs: int
    fresh: bool
    """The folder was made by this command."""
    done: bool
    """The run is finished already."""
    command: str
    """What to note in the folder when it is resumed."""
    label: str = ""
    """Name before progress lines; empty for a run on its own."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    path: str
    status: str
    message: str


def run_tasks(tasks: list[RunTask]) -> int:
    """Train the runs and return the exit code; failures of several runs are told at the end."""
    several = len(tasks) > 1
    outcomes = [Outcome(t.path, "skipped", "is finished; a larger --total-steps continues it") for t in tasks if t.done]
    todo = [replace(t, label=Path(t.path).name if several else "") for t in tasks if not t.done]
    quiet = all(t.quiet for t in tasks)
    for outcome in outcomes:
        _say(f"{outcome.path} {outcome.message}", quiet)
    try:
        if several:
            outcomes += _train_several(todo, quiet)
        elif todo:
            outcome = train_one(todo[0], debuggable=True)
            _say(f"{outcome.path}: {outcome.message}", quiet)
    except KeyboardInterrupt as stop:
        with undisturbed():
            _tell_interrupted(todo)
        return _TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
    failed = [o for o in outcomes if o.status == "failed"]
    for outcome in failed:
        print(f"moopt: error: {outcome.path}: {outcome.message}", file=sys.stderr)
    return FAILURE if failed else OK


def _train_several(tasks: list[RunTask], quiet: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    jobs = min(max((t.jobs for t in tasks), default=1), max(len(tasks), 1))
    with get_executor("loky" if jobs > 1 else "serial", jobs) as executor:
        while len(outcomes) < len(tasks):
            rest = tasks[len(outcomes) :]
            try:
                for outcome in executor.map(train_one, rest):
                    outcomes.append(outcome)
                    if outcome.status != "failed":
                        _say(f"{outcome.path}: {outcome.message}", quiet)
            except TaskError as error:  # only if a worker died: the others, killed with it, continue where they were
                lost = tasks[len(outcomes)]
                reason = str(error.__cause__ or error).splitlines()[0]
                RunDir.open(lost.path).set_status("failed", reason=reason)
                outcomes.append(Outcome(lost.path, "failed", "its process died (killed, or out of memory)"))
    return outcomes


def train_one(task: RunTask, debuggable: bool = False) -> Outcome:
    """Train one run to its end.

    Args:
        task: The run.
        debuggable: Let errors through in place of turning them into an outcome.

    Raises:
        KeyboardInterrupt: After the status is written.
    """
    run = RunDir.open(task.path)
    start = time.monotonic()
    try:
        with run.lock():
            result = _train(run, task)
    except KeyboardInterrupt:
        with undisturbed():
            run.set_status("interrupted", step=_last_step(run))
        raise
    except Exception as error:
        if _is_untouched(run, task):
            run.discard()
            if debuggable and isinstance(error, MooptError):
                raise UsageError(str(error)) from error
        if debuggable:
            raise
        return Outcome(task.path, "failed", " ".join(f"{_kind(error)}{error}".split()))
    front = result.front
    with warnings.catch_warnings():  # a reference point that nothing reaches was said when the training ended
        warnings.simplefilter("ignore", UserWarning)
        volume = f", hypervolume {front.hypervolume():.6g}" if front.ref_point is not None else ""
    seconds, noun = time.monotonic() - start, "policy" if len(front) == 1 else "policies"
    return Outcome(task.path, "finished", f"front of {len(front)} {noun}{volume}, {seconds:.0f} s")


def _train(run: RunDir, task: RunTask) -> Any:
    entry = task.entry
    resume = bool(run.checkpoint_steps())
    if not task.fresh:
        run.note_resume(task.command)
    if task.total_steps != run.config.get("total_steps"):
        run.update_config(total_steps=task.total_steps)
    if task.tensorboard:
        from moopt.runs.tensorboard import TensorBoardSink

        run.metrics.sinks = (*run.metrics.sinks, TensorBoardSink(run.path / "tb"))
    run.set_status("running", step=_last_step(run))
    bar = _progress(task, initial=_last_step(run) if resume else 0)
    try:
        settings = config_from_mapping(entry.load_config(), run.config["config"])
        agent = entry.load_agent()(run.config["env"], settings, seed=run.config["seed"], device=task.device)
        result = agent.train(task.total_steps, run=run, resume=resume, callback=bar)
    except Exception as error:
        run.set_status("failed", step=_last_step(run), reason=f"{_kind(error)}{error}")
        raise
    finally:
        if isinstance(bar, ProgressBar):
            bar.close()
        run.metrics.close()
    if run.status == "running":
        run.set_status("finished", step=task.total_steps)
    return result


def _progress(task: RunTask, initial: int) -> Callback | None:
    if task.quiet:
        return None
    if sys.stderr.isatty() and task.jobs == 1:
        return ProgressBar(task.label, initial=initial)
    return ProgressLines(task.label, initial=initial)


def _is_untouched(run: RunDir, task: RunTask) -> bool:
    """Return whether the folder was made by this command and training never began in it."""
    return task.fresh and not run.checkpoint_steps() and not run.metrics.path.exists()


def _tell_interrupted(tasks: list[RunTask]) -> None:
    left = []
    for task in tasks:
        run = RunDir.open(task.path)
        if run.status in ("running", "unknown"):  # its process was killed before it could say so
            run.set_status("interrupted", step=_last_step(run))
        if run.status == "interrupted":
            left.append(run)
    if not left:
        return
    where = left[0].path if len(tasks) == 1 else left[0].path.parent
    step = _last_step(left[0])
    kept = f"saved at step {step}" if step else "nothing was saved yet, it starts over"
    state = kept if len(tasks) == 1 else f"{len(left)} {'run' if len(left) == 1 else 'runs'} unfinished"
    command = ["moopt", "train", "--resume", str(where)] + (["--jobs", str(tasks[0].jobs)] if tasks[0].jobs > 1 else [])
    print(f"moopt: interrupted, {state}; continue with: {command_line(command)}", file=sys.stderr)


def _last_step(run: RunDir) -> int:
    return (run.checkpoint_steps() or [0])[-1]


def _kind(error: Exception) -> str:
    """Name the type of an error that is not meant for users, since its text alone may not say much."""
    return "" if isinstance(error, MooptError) else f"{type(error).__name__}: "


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, flush=True)
