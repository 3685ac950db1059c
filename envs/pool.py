"""Steps the copies in worker processes, each with a contiguous share.

Workers are fresh interpreters (no fork), so threads of this process do no harm and the user's script is not
run again. They end when their pipe closes, which happens on `close` as well as on any death of this process.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from moopt.envs.block import StepBuffers
from moopt.envs.channel import Channel, ChannelClosedError
from moopt.envs.errors import EnvError
from moopt.envs.make import EnvSource
from moopt.envs.seeding import EpisodeSeeds
from moopt.envs.shared import Layout, anonymous_file
from moopt.envs.worker import WorkerTask

__all__ = ["ProcessEngine"]

_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from moopt.envs.worker import main; main(*map(int, sys.argv[2:]))"
)
_GRACE_SECONDS = 2.0


class ProcessEngine:
    """Worker processes that step shares of the copies at the same time.

    Args:
        source: Recipe of the environment.
        layout: Sizes of all arrays.
        seeds: Seeds of the episodes.
        num_workers: Number of processes, at most the number of copies.

    Raises:
        EnvError: A worker did not start, or a constructor failed in one.
    """

    buffers: StepBuffers

    def __init__(self, source: EnvSource, layout: Layout, seeds: EpisodeSeeds, num_workers: int) -> None:
        if os.name != "posix":
            raise EnvError("num_workers > 0 needs Linux or macOS; use num_workers=0")
        bounds = np.linspace(0, layout.num_envs, num_workers + 1).round().astype(int)
        self._shares = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
        self._name = source.name
        self._actions: NDArray[Any] = np.zeros(0)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._channels: list[Channel] = []
        self._finalizer = weakref.finalize(self, _end_workers, os.getpid(), self._processes, self._channels)
        memory_fd = anonymous_file(layout.nbytes)
        try:
            self.buffers, self._actions = layout.map(memory_fd)
            self.buffers.active[:] = True
            _check_picklable(source)
            for _ in self._shares:
                self._spawn(memory_fd)
            for channel, (start, stop) in zip(self._channels, self._shares, strict=True):
                channel.send_message(b"t", WorkerTask(source, layout, seeds, start, stop))
            self._collect()
        except ChannelClosedError:
            self._died()
        except BaseException:
            self.close()
            raise
        finally:
            os.close(memory_fd)

    def _spawn(self, memory_fd: int) -> None:
        child_read, parent_write = os.pipe()
        parent_read, child_write = os.pipe()
        self._channels.append(Channel(parent_read, parent_write))
        numbers = map(str, (child_read, child_write, memory_fd, os.getpid()))
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        try:
            # An own process group: Ctrl-C reaches this process only, which then ends the workers in order.
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), *numbers],
                pass_fds=(child_read, child_write, memory_fd),
                stdin=subprocess.DEVNULL,
                env=os.environ | one_thread,
                process_group=0,
            )
        finally:
            os.close(child_read)
            os.close(child_write)
        self._processes.append(process)

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self._everywhere("reset", [()] * len(self._shares))

    def send(self, actions: NDArray[Any]) -> None:
        """Start a step in every worker."""
        self._actions[:] = actions
        try:
            for channel in self._channels:
                channel.signal(b"s")
        except ChannelClosedError:
            self._died()

    def wait(self) -> None:
        """Wait for the step of every worker."""
        self._collect()

    def replay(self, seeds: EpisodeSeeds, episodes: Sequence[int], actions: Sequence[NDArray[Any]]) -> None:
        """Bring every copy into a running episode."""
        shares = [(seeds, list(episodes[a:b]), list(actions[a:b])) for a, b in self._shares]
        self._everywhere("replay", shares)

    def reseed(self, seeds: EpisodeSeeds) -> None:
        """Use other seeds from the next reset on."""
        self._everywhere("reseed", [(seeds,)] * len(self._shares))

    def call(self, indices: Sequence[int], what: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Run `call_env` on the chosen copies; results must be picklable."""
        results: dict[int, Any] = {}
        asked = []
        for channel, (start, stop) in zip(self._channels, self._shares, strict=True):
            mine = [i for i in indices if start <= i < stop]
            if mine:
                message = ("call", ([i - start for i in mine], what, args), kwargs)
                self._send(channel, message)
                asked.append((channel, mine))
        failure: Exception | None = None
        for channel, mine in asked:
            try:
                results.update(zip(mine, self._receive(channel), strict=True))
            except (EnvError, AttributeError) as error:
                failure = error
        if failure is not None:
            raise failure
        return [results[i] for i in indices]

    def close(self) -> None:
        """End the workers; may be called twice."""
        self._finalizer()
        self.buffers = StepBuffers.zeros(0, 0, 0)
        self._actions = np.zeros(0)

    def _everywhere(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> None:
        for channel, args in zip(self._channels, arguments, strict=True):
            self._send(channel, (name, args, {}))
        self._collect()

    def _send(self, channel: Channel, message: Any) -> None:
        try:
            channel.send_message(b"c", message)
        except ChannelClosedError:
            self._died()

    def _collect(self) -> None:
        failure: EnvError | AttributeError | None = None
        for channel in self._channels:
            try:
                self._receive(channel)
            except (EnvError, AttributeError) as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _receive(self, channel: Channel) -> Any:
        try:
            byte = channel.receive()
            if byte == b"k":
                return None
            content = channel.receive_message()
        except ChannelClosedError:
            self._died()
        if byte == b"m":
            return content
        is_lookup, text = content
        raise AttributeError(text) if is_lookup else EnvError(text)

    def _died(self) -> Any:
        """Say which worker is gone and how, after ending the others.

        Raises:
            EnvError: Always.
        """
        ends = list(self._ends())
        self.close()
        raise EnvError("; ".join(ends) or f"a worker of {self._name!r} closed its pipe")

    def _ends(self) -> Iterator[str]:
        patience = time.monotonic() + 0.5
        while all(process.poll() is None for process in self._processes) and time.monotonic() < patience:
            time.sleep(0.01)
        for number, process in enumerate(self._processes):
            start, stop = self._shares[number]
            code = process.poll()
            if code is None:
                continue
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            hint = " (out of memory?)" if code == -signal.SIGKILL else ""
            yield f"worker {number} of {self._name!r} (copies {start} to {stop - 1}) {how}{hint}"


def _check_picklable(source: EnvSource) -> None:
    try:
        cloudpickle.dumps(source)
    except Exception as error:
        raise EnvError(
            f"environment {source.name!r} cannot be sent to worker processes ({error}); use num_workers=0, "
            "or make it inside the function that is passed"
        ) from error


def _end_workers(owner: int, processes: list[subprocess.Popen[bytes]], channels: list[Channel]) -> None:
    if os.getpid() != owner:
        return  # A fork of the process that made the workers; they are not its own.
    for channel in channels:
        with contextlib.suppress(ChannelClosedError):
            channel.signal(b"q")
        channel.close()
    for process in processes:
        try:
            process.wait(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
