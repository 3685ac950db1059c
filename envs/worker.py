"""A worker process: steps one block of copies on command. Imports no torch.

Bytes from the parent: `s` step (actions lie in shared memory), `c` a message with a command, `q` end. Bytes
to the parent: `k` done, `m` a message with a result, `e` a message with an error.
"""

import contextlib
import os
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any

from moopt.envs.block import EnvBlock
from moopt.envs.calls import call_env
from moopt.envs.channel import Channel, ChannelClosedError
from moopt.envs.errors import EnvError
from moopt.envs.make import EnvSource
from moopt.envs.seeding import EpisodeSeeds
from moopt.envs.shared import Layout

__all__ = ["WorkerTask", "main"]

WATCH_SECONDS = 0.5


@dataclass(frozen=True)
class WorkerTask:
    """What a worker works on: copies `start` to `stop` of a source."""

    source: EnvSource
    layout: Layout
    seeds: EpisodeSeeds
    start: int
    stop: int


def main(read_fd: int, write_fd: int, memory_fd: int, parent: int) -> None:
    """Serve the parent until it says so or is gone.

    Args:
        read_fd: Pipe with the parent's bytes.
        write_fd: Pipe to the parent.
        memory_fd: File with the shared arrays.
        parent: Process id of the parent.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    channel = Channel(read_fd, write_fd)
    try:
        with contextlib.suppress(ChannelClosedError):
            _serve(channel, memory_fd)
    except Exception as error:
        _report(channel, error)


def _serve(channel: Channel, memory_fd: int) -> None:
    channel.receive()
    task: WorkerTask = channel.receive_message()
    buffers, actions = task.layout.map(memory_fd)
    os.close(memory_fd)
    block = EnvBlock(task.source, task.start, buffers.part(task.start, task.stop), task.seeds)
    own_actions = actions[task.start : task.stop]
    channel.signal(b"k")
    while True:
        byte = channel.receive()
        if byte == b"s":
            # A fresh copy: an environment may keep its action, and shared memory is written again.
            block.step(own_actions.copy())
            channel.signal(b"k")
        elif byte == b"c":
            name, args, kwargs = channel.receive_message()
            _command(channel, block, name, args, kwargs)
        else:
            block.close()
            return


def _command(channel: Channel, block: EnvBlock, name: str, args: Any, kwargs: Any) -> None:
    if name == "call":
        local, what, rest = args
        try:
            results = [call_env(block.envs[i], what, rest, kwargs) for i in local]
            channel.send_message(b"m", results)
        except ChannelClosedError:
            raise
        except Exception as error:
            _report(channel, error)
        return
    if name == "reset":
        block.reset()
    elif name == "reseed":
        block.seeds = args[0]
        block.episodes[:] = -1
    else:
        block.seeds = args[0]
        block.replay(*args[1:])
    channel.signal(b"k")


def _report(channel: Channel, error: Exception) -> None:
    """Send the error: its message when it is ours or a failed lookup, else with its traceback."""
    plain = isinstance(error, EnvError | AttributeError)
    text = str(error) if plain else "".join(traceback.format_exception(error))
    with contextlib.suppress(ChannelClosedError):
        channel.send_message(b"e", (isinstance(error, AttributeError), text))


def _watch(parent: int) -> None:
    """End this process soon after its parent died, whatever it is doing."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)
