"""One process at a time in a run folder; the operating system frees the lock when its owner dies."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from moopt.runs.errors import RunError, RunLockedError, os_reason

_TRIES, _PAUSE_S = 4, 0.05


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the exclusive lock of ``folder`` for the block.

    Args:
        folder: An existing folder; the lock is on its file ``.lock``, which stays.

    Raises:
        RunLockedError: If another process holds it.
        RunError: If the lock file cannot be made.
    """
    path = folder / ".lock"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RunError(f"cannot write {path}: {os_reason(error)}") from error
    try:
        _acquire(fd, folder)
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        yield
    finally:
        os.close(fd)


def is_locked(folder: Path) -> bool:
    """Return whether a process works in ``folder``; does not disturb it."""
    try:
        fd = os.open(folder / ".lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _acquire(fd: int, folder: Path) -> None:
    for attempt in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == _TRIES - 1:
                owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
                raise RunLockedError(
                    f"another process{f' ({owner})' if owner.isdecimal() else ''} is working in {folder}"
                ) from None
            time.sleep(_PAUSE_S)  # a reader that only looks (is_locked) holds it for an instant
        else:
            return
