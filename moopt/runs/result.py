"""What training or optimizing returns."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from moopt.pareto.front import Front


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of a run: its front, and enough to run it again."""

    front: "Front"
    """The final front, evaluated on held-out seeds."""
    history: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Metric name to one value a log point; ``step`` is the common axis."""
    config: dict[str, Any] = field(default_factory=dict)
    """The resolved settings."""
    versions: dict[str, Any] = field(default_factory=dict)
    """Versions and machine, as `moopt.runs.versions` returns them."""
    seed: int = 0
    """The seed of the run."""
    train_steps: int = 0
    """Environment steps used for learning."""
    eval_steps: int = 0
    """Environment steps used for evaluation only."""
    wall_s: float = 0.0
    """Wall-clock seconds, all sessions of a resumed run together."""
    path: Path | None = None
    """The run folder, if there is one."""

    def __repr__(self) -> str:
        """Say the sizes rather than print the arrays."""
        where = f", path={str(self.path)!r}" if self.path is not None else ""
        return (
            f"Result({len(self.front)} points, train_steps={self.train_steps}, eval_steps={self.eval_steps}, "
            f"seed={self.seed}, wall_s={self.wall_s:.1f}{where})"
        )
