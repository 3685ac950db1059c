"""The policies C-MORL keeps, with where each one came from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moopt.agents.common.population import PolicyState

Array = NDArray[np.float64]


@dataclass
class Member:
    """One evaluated policy.

    Attributes:
        id: Number in order of evaluation, unique within a run.
        returns: (n,) mean discounted screening return of the most likely actions.
        std: (n,) its standard deviation over episodes.
        stage: 1 initialisation, 2 extension.
        parent: Member it was extended from; -1 in stage 1.
        objective: Objective it was extended along; -1 in stage 1.
        preference: (n,) weights it was trained for in stage 1, else empty.
        update: Updates since its stage (or round) began.
        policy: The policy itself.
    """

    id: int
    returns: Array
    std: Array
    stage: int
    parent: int
    objective: int
    preference: Array
    update: int
    policy: PolicyState

    def lineage(self) -> dict[str, Any]:
        """Return where the member came from, as plain data."""
        return {
            "id": self.id,
            "stage": self.stage,
            "parent": self.parent,
            "objective": self.objective,
            "preference": self.preference.tolist(),
            "update": self.update,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the member as nested dictionaries of arrays and numbers."""
        return {
            **self.lineage(),
            "returns": self.returns,
            "std": self.std,
            "policy": self.policy.state_dict(),
        }

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> "Member":
        """Rebuild from ``state_dict()``."""
        return cls(
            id=int(state["id"]),
            returns=np.asarray(state["returns"], dtype=np.float64),
            std=np.asarray(state["std"], dtype=np.float64),
            stage=int(state["stage"]),
            parent=int(state["parent"]),
            objective=int(state["objective"]),
            preference=np.asarray(state["preference"], dtype=np.float64),
            update=int(state["update"]),
            policy=PolicyState.from_state_dict(state["policy"]),
        )
