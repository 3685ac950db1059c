"""Executors: run independent tasks one after the other or in worker processes, with the same results.

Tasks are plain data and functions live at module level. A task must take all its randomness from its own data
(see `moopt.runs.child_sequence`), so results do not depend on the engine or the number of workers.
"""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from moopt.runs.errors import MooptError, did_you_mean

T = TypeVar("T")
R = TypeVar("R")

_WATCH_S = 0.5
_SINGLE = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)


class TaskError(RuntimeError):
    """A task failed; the message names it, and ``__cause__`` or the text holds its traceback.

    Attributes:
        index: Position of the task.
        task: The task itself.
    """

    def __init__(self, index: int, task: Any, reason: str, trace: str = "") -> None:
        shown = repr(task)
        shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
        super().__init__(f"task {index} ({shown}) failed: {reason}" + (f"\n{trace}" if trace else ""))
        self.index, self.task = index, task


class Executor(Protocol):
    """Runs a function over tasks. Also a context manager that ends the workers."""

    def map(self, fn: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield ``fn(task)`` in the order of the tasks, each as soon as it and those before it are done.

        Raises:
            TaskError: At the place of a task that failed; the tasks not yet started are dropped.
        """

    def close(self) -> None:
        """End the workers, at once and together with what they are doing."""

    def __enter__(self) -> Self:
        """Return the executor."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the executor."""


def get_executor(name: str, jobs: int = 1) -> Executor:
    """Return an executor.

    Args:
        name: ``"serial"`` (this process) or ``"loky"`` (worker processes).
        jobs: Workers; 1 or larger, serial has one whatever is given.

    Raises:
        MooptError: If the name is not known or jobs is smaller than 1.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise MooptError(f"jobs must be an integer >= 1, got {jobs!r}")
    if name == "serial":
        return SerialExecutor()
    if name == "loky":
        return LokyExecutor(jobs)
    raise MooptError(f"unknown executor {name!r}{did_you_mean(name, ('serial', 'loky'))}")


class SerialExecutor:
    """Runs tasks one after the other in this process, with torch held to one thread as in a worker."""

    def map(self, fn: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield ``fn(task)`` task by task; see `Executor.map`."""
        for index, task in enumerate(tasks):
            try:
                with single_thread():
                    result = fn(task)
            except Exception as error:
                raise TaskError(index, task, _reason(error)) from error
            yield result

    def close(self) -> None:
        """Nothing to end."""

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to end."""


class LokyExecutor:
    """Runs tasks in worker processes (loky, as shipped with joblib), one thread each.

    Workers start at the first `map`, serve later ones, and end with `close`, when this process dies, or after
    five idle minutes.

    Args:
        jobs: Number of workers.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool: Any = None

    def map(self, fn: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield ``fn(task)`` in task order; see `Executor.map`."""
        from joblib.externals.loky import ProcessPoolExecutor
        from joblib.externals.loky.process_executor import BrokenProcessPool

        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.jobs, timeout=300, env=_SINGLE)
        listed = list(tasks)
        pending = [self._pool.submit(_work, fn, task, os.getpid()) for task in listed]
        try:
            for index, (task, future) in enumerate(zip(listed, pending, strict=True)):
                try:
                    outcome: _Outcome = future.result()
                except BrokenProcessPool as error:
                    self.close()
                    raise TaskError(index, task, "its worker process died (killed, or out of memory)") from error
                except Exception as error:  # the task or its result could not be sent between the processes
                    raise TaskError(index, task, _reason(error)) from error
                if outcome.reason is not None:
                    raise TaskError(index, task, outcome.reason, outcome.trace)
                yield outcome.value
        finally:
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Kill the workers."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.shutdown(wait=True, kill_workers=True)

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the workers."""
        self.close()


def single_thread() -> contextlib.AbstractContextManager[None]:
    """Hold torch, if it is loaded, to one thread for the block."""
    return torch_threads(1)


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch, if it is loaded, use ``count`` threads for the block.

    Small matrix products gain nothing from threads, and on a busy machine threads that wait for each other cost a
    hundredfold.
    """
    torch = sys.modules.get("torch")
    if torch is None or torch.get_num_threads() == count:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class _Outcome:
    """What comes back from a worker; errors travel as text, since many cannot be pickled."""

    value: Any = None
    reason: str | None = None
    trace: str = ""


def _work(fn: Callable[[Any], Any], task: Any, parent: int) -> _Outcome:
    _watch(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    try:
        with single_thread():
            return _Outcome(fn(task))
    except Exception as error:
        return _Outcome(reason=_reason(error), trace=traceback.format_exc())


def _watch(parent: int) -> None:
    """End this worker soon after its parent died, also in the middle of a task."""
    name = f"moopt-parent-{parent}"
    if any(thread.name == name for thread in threading.enumerate()):
        return

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_S)
        os._exit(1)

    threading.Thread(target=wait, name=name, daemon=True).start()


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
