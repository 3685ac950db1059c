"""Metrics for TensorBoard (extra ``tb``)."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moopt.runs.errors import missing_extra
from moopt.runs.metrics import Value


class TensorBoardSink:
    """Write every number of a log point as a TensorBoard scalar.

    Args:
        folder: Folder of the event files, such as ``RUN/tb``.

    Raises:
        MissingExtraError: If tensorboard is not installed; raised before any work starts.
    """

    def __init__(self, folder: str | Path) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise missing_extra("TensorBoard logging", "tensorboard", "tb")
        self._folder = str(folder)
        self._writer: Any = None
        self._purge: int | None = None

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Log the numbers among ``values`` at ``step``."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(self._folder, purge_step=self._purge)
        for name, value in values.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(name, float(value), step)
        self._writer.flush()

    def truncate(self, step: int) -> None:
        """Hide what an earlier process logged after ``step``: the resumed curve continues in place."""
        self.close()
        self._purge = step + 1

    def close(self) -> None:
        """Flush and close the event file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
