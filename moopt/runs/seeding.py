"""Random streams: one seed, named streams, generators that are passed on and never global."""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    import torch


def seed_streams(seed: int, names: Iterable[str]) -> dict[str, np.random.SeedSequence]:
    """Return one independent seed sequence per name.

    A stream depends on the seed and its own name only, so a new stream never shifts the others.

    Args:
        seed: The run's seed, 0 or larger.
        names: Distinct stream names.

    Returns:
        Name to sequence, in the order given.

    Raises:
        MooptError: If the seed is negative or no integer, or a name comes twice.

    >>> a = seed_streams(0, ["env", "init"])["init"].generate_state(1)
    >>> b = seed_streams(0, ["init", "noise", "env"])["init"].generate_state(1)
    >>> bool(a == b)
    True
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise MooptError(f"seed must be an integer >= 0, got {seed!r}")
    streams: dict[str, np.random.SeedSequence] = {}
    for name in names:
        if name in streams:
            raise MooptError(f"stream name {name!r} comes twice")
        digest = hashlib.sha256(name.encode("utf-8")).digest()
        key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
        streams[name] = np.random.SeedSequence(int(seed), spawn_key=key)
    return streams


def child_sequence(sequence: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the descendant of ``sequence`` at ``key``, without the counter that `SeedSequence.spawn` moves.

    Args:
        sequence: The parent.
        *key: Integers >= 0, such as environment index and episode number.
    """
    spawn_key = (*sequence.spawn_key, *(int(k) for k in key))
    return np.random.SeedSequence(sequence.entropy, spawn_key=spawn_key, pool_size=sequence.pool_size)


def numpy_generator(sequence: np.random.SeedSequence) -> np.random.Generator:
    """Return a NumPy generator (PCG64) seeded by ``sequence``."""
    return np.random.Generator(np.random.PCG64(sequence))


def torch_generator(sequence: np.random.SeedSequence, device: "str | torch.device" = "cpu") -> "torch.Generator":
    """Return a torch generator on ``device`` seeded by ``sequence``."""
    import torch

    generator = torch.Generator(device=device)
    generator.manual_seed(int(sequence.generate_state(1, np.uint64)[0]) & (2**63 - 1))
    return generator
