"""Seeds of episodes: a fresh one for each episode of each environment copy."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["EpisodeSeeds", "as_seed_sequence"]

CHUNK = 32


def as_seed_sequence(seed: np.random.SeedSequence | int) -> np.random.SeedSequence:
    """Return `seed` as a SeedSequence.

    Raises:
        TypeError: `seed` is neither a SeedSequence nor a non-negative integer.
    """
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise TypeError(f"seed must be a non-negative integer or a numpy SeedSequence, got {seed!r}")
    return np.random.SeedSequence(int(seed))


class EpisodeSeeds:
    """Seed of episode `k` of copy `e`, a pure function of (root, e, k).

    Seeds are 31-bit integers, which every kind of environment accepts (NumPy's legacy generators and C code
    included).

    Args:
        root: Root of all seeds; it is not changed (no spawning).
    """

    def __init__(self, root: np.random.SeedSequence) -> None:
        self.root = root
        self._chunks: dict[int, tuple[int, list[int]]] = {}

    def __call__(self, env_index: int, episode: int) -> int:
        """Return the seed of one episode."""
        number, place = divmod(episode, CHUNK)
        held = self._chunks.get(env_index)
        if held is None or held[0] != number:
            held = (number, self._draw(env_index, number))
            self._chunks[env_index] = held
        return held[1][place]

    def _draw(self, env_index: int, number: int) -> list[int]:
        sequence = np.random.SeedSequence(
            self.root.entropy,
            spawn_key=(*self.root.spawn_key, env_index, number),
            pool_size=self.root.pool_size,
        )
        return [int(word) >> 1 for word in sequence.generate_state(CHUNK)]

    def words(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the root as two plain arrays of 32-bit words: entropy and spawn key."""
        return _to_words(self.root.entropy), _to_words(self.root.spawn_key)

    @classmethod
    def from_words(cls, entropy: NDArray[np.uint32], spawn_key: NDArray[np.uint32]) -> "EpisodeSeeds":
        """Rebuild from the arrays of `words`; gives the same seeds."""
        root = np.random.SeedSequence([int(w) for w in entropy], spawn_key=tuple(int(w) for w in spawn_key))
        return cls(root)


def _to_words(value: object) -> NDArray[np.uint32]:
    if isinstance(value, int | np.integer):
        number = int(value)
        words = [number & 0xFFFFFFFF]
        while number := number >> 32:
            words.append(number & 0xFFFFFFFF)
        return np.array(words, dtype=np.uint32)
    parts = [_to_words(item) for item in value or ()]  # type: ignore[attr-defined]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint32)
