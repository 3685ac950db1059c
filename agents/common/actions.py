"""Between the actions a network works with and those an environment takes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moopt.envs import EnvDescription


class ActionAdapter:
    """Maps normalised actions to an environment's: [-1, 1] to [low, high] per bounded dimension, then clips.

    An unbounded dimension keeps its scale; discrete actions pass through.

    Args:
        description: The environment's sizes and bounds.
    """

    def __init__(self, description: EnvDescription) -> None:
        self.kind = description.action_kind
        if self.kind == "box":
            low, high = np.asarray(description.action_low), np.asarray(description.action_high)
            bounded = np.isfinite(low) & np.isfinite(high)
            self.low, self.high = low.astype(np.float32), high.astype(np.float32)
            self.middle = np.where(bounded, (low + high) / 2, 0.0).astype(np.float32)
            self.half = np.where(bounded, (high - low) / 2, 1.0).astype(np.float32)

    def to_env(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Return the environments' actions (N,) or (N, A) of network actions with any leading dimensions."""
        if self.kind == "discrete":
            return actions.reshape(-1)
        scaled = actions.reshape(-1, actions.shape[-1]) * self.half + self.middle
        return np.asarray(np.clip(scaled, self.low, self.high))
