"""Pipes between this process and a worker: single-byte signals and framed messages.

A signal costs a few microseconds, so a step needs nothing but one byte each way; the arrays lie in shared
memory. A closed pipe reads as end of file, so each side learns at once when the other has died.
"""

import os
import struct
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

__all__ = ["Channel", "ChannelClosedError"]

_LENGTH = struct.Struct("<Q")


class ChannelClosedError(Exception):
    """The process at the other end is gone."""


class Channel:
    """One end of a pair of pipes.

    Args:
        read_fd: Descriptor to read from.
        write_fd: Descriptor to write to.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._open = True

    def signal(self, byte: bytes) -> None:
        """Send one byte.

        Raises:
            ChannelClosedError: The other process is gone.
        """
        self._write(byte)

    def receive(self) -> bytes:
        """Wait for one byte.

        Raises:
            ChannelClosedError: The other process is gone.
        """
        return self._read(1)

    def send_message(self, byte: bytes, message: Any) -> None:
        """Send one byte followed by a Python object.

        Raises:
            ChannelClosedError: The other process is gone.
        """
        payload = cloudpickle.dumps(message)
        self._write(byte + _LENGTH.pack(len(payload)) + payload)

    def receive_message(self) -> Any:
        """Read the object that follows a byte.

        Raises:
            ChannelClosedError: The other process is gone.
        """
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return cloudpickle.loads(self._read(length))

    def close(self) -> None:
        """Close both pipes; may be called twice."""
        if self._open:
            self._open = False
            os.close(self._read_fd)
            os.close(self._write_fd)

    def _write(self, data: bytes) -> None:
        if not self._open:
            raise ChannelClosedError
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._write_fd, view) :]
        except BrokenPipeError:
            raise ChannelClosedError from None

    def _read(self, length: int) -> bytes:
        if not self._open:
            raise ChannelClosedError
        data = os.read(self._read_fd, length)
        if len(data) == length:
            return data
        parts = [data]
        missing = length - len(data)
        while missing:
            if not parts[-1]:
                raise ChannelClosedError
            parts.append(os.read(self._read_fd, min(missing, 1 << 20)))
            missing -= len(parts[-1])
        return b"".join(parts)
