"""Steps all copies in this process."""

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from moopt.envs.block import EnvBlock, StepBuffers
from moopt.envs.calls import call_env
from moopt.envs.make import EnvSource
from moopt.envs.seeding import EpisodeSeeds

__all__ = ["Engine", "SerialEngine"]


class Engine(Protocol):
    """What steps the copies: this process, or worker processes. All write into one set of buffers."""

    buffers: StepBuffers

    def reset(self) -> None:
        """Begin a new episode in every copy."""

    def send(self, actions: NDArray[Any]) -> None:
        """Start a step; `actions` has the type and shape that `ActionCodec.check` returns."""

    def wait(self) -> None:
        """Finish the step that `send` started."""

    def replay(self, seeds: EpisodeSeeds, episodes: Sequence[int], actions: Sequence[NDArray[Any]]) -> None:
        """Bring every copy into a running episode (see `EnvBlock.replay`)."""

    def reseed(self, seeds: EpisodeSeeds) -> None:
        """Use other seeds from the next reset on, counting episodes from zero."""

    def call(self, indices: Sequence[int], what: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Run `call_env` on the chosen copies."""

    def close(self) -> None:
        """Free everything; may be called twice."""


class SerialEngine:
    """One block in this process."""

    def __init__(self, source: EnvSource, buffers: StepBuffers, seeds: EpisodeSeeds) -> None:
        self.buffers = buffers
        self._block = EnvBlock(source, 0, buffers, seeds)
        self._actions: NDArray[Any] | None = None

    def reset(self) -> None:
        """Begin a new episode in every copy."""
        self._block.reset()

    def send(self, actions: NDArray[Any]) -> None:
        """Keep the actions until `wait`."""
        self._actions = actions

    def wait(self) -> None:
        """Step every copy."""
        if self._actions is not None:
            self._block.step(self._actions)
            self._actions = None

    def replay(self, seeds: EpisodeSeeds, episodes: Sequence[int], actions: Sequence[NDArray[Any]]) -> None:
        """Bring every copy into a running episode."""
        self._block.seeds = seeds
        self._block.replay(episodes, actions)

    def reseed(self, seeds: EpisodeSeeds) -> None:
        """Use other seeds from the next reset on."""
        self._block.seeds = seeds
        self._block.episodes[:] = -1

    def call(self, indices: Sequence[int], what: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Run `call_env` on the chosen copies."""
        return [call_env(self._block.envs[i], what, args, kwargs) for i in indices]

    def close(self) -> None:
        """Close every copy."""
        self._block.close()
