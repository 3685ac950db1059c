"""Step buffers and actions in memory shared with the workers.

The memory is an anonymous file inherited by the workers: it has no name, so nothing is left behind however a
process ends.
"""

import math
import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moopt.envs.block import StepBuffers

__all__ = ["Layout", "anonymous_file"]

_ALIGN = 64


@dataclass(frozen=True)
class Layout:
    """Shapes of the shared arrays, and their places in one block of memory."""

    num_envs: int
    obs_size: int
    reward_dim: int
    action_shape: tuple[int, ...]
    action_dtype: str

    def _arrays(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        n = self.num_envs
        return [
            ((n, self.obs_size), np.dtype(np.float32)),
            ((n, self.reward_dim), np.dtype(np.float64)),
            ((n,), np.dtype(np.bool_)),
            ((n,), np.dtype(np.bool_)),
            ((n, self.obs_size), np.dtype(np.float32)),
            ((n,), np.dtype(np.bool_)),
            ((n, *self.action_shape), np.dtype(self.action_dtype)),
        ]

    @property
    def nbytes(self) -> int:
        """Bytes needed."""
        return sum(_padded(shape, dtype) for shape, dtype in self._arrays())

    def map(self, fd: int) -> tuple[StepBuffers, NDArray[Any]]:
        """Map the file: the step buffers and the actions (E, *action shape)."""
        memory = mmap.mmap(fd, self.nbytes)
        arrays: list[NDArray[Any]] = []
        offset = 0
        for shape, dtype in self._arrays():
            count = math.prod(shape)
            arrays.append(np.frombuffer(memory, dtype, count, offset).reshape(shape))
            offset += _padded(shape, dtype)
        return StepBuffers(*arrays[:6]), arrays[6]


def anonymous_file(nbytes: int) -> int:
    """Return the descriptor of a nameless file of `nbytes` zero bytes, in memory where possible."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("moopt-envs")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, nbytes)
    return fd


def _padded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return -(-math.prod(shape) * dtype.itemsize // _ALIGN) * _ALIGN
