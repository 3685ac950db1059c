"""Files that are either the old one or the whole new one, whatever happens in between."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from moopt.runs.errors import RunError, os_reason


@contextlib.contextmanager
def atomic_writer(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of ``path`` only when the block ends without an error.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and are renamed over
    ``path``. A process killed at any moment leaves the old file as it was (and at most a stray temporary).

    Args:
        path: The file to write; its folder must exist.

    Raises:
        RunError: If the operating system refuses (no space, no permission, no such folder); ``path`` is
            unchanged.
    """
    path = Path(path)
    tmp = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(tmp, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(tmp, path)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            tmp.unlink()
        if isinstance(error, OSError):
            raise RunError(f"cannot write {path}: {os_reason(error)}") from error
        raise


def atomic_write_bytes(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old content or all of the new one.

    Args:
        path: The file to write; its folder must exist.
        data: The whole content.

    Raises:
        RunError: If the operating system refuses; the old file is unchanged.
    """
    with atomic_writer(path) as handle:
        handle.write(data)


def atomic_write_text(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8; see `atomic_write_bytes`."""
    atomic_write_bytes(path, text.encode("utf-8"))


def sweep_temporaries(folder: str | Path) -> None:
    """Delete what interrupted writers left in ``folder``; only for the process that holds its lock."""
    for stray in Path(folder).glob(".*.tmp"):
        with contextlib.suppress(OSError):
            stray.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; file systems without folder handles are left to their own order."""
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)
