"""The metric log of a run: one CSV row a log point, kept consistent through crashes and resumes."""

import csv
import io
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from moopt.runs.errors import RunError, os_reason
from moopt.runs.files import atomic_write_text

Value = float | int | bool | str | None


class MetricSink(Protocol):
    """Where metrics go besides the CSV file, such as TensorBoard."""

    def write(self, step: int, values: Mapping[str, Value]) -> None:
        """Take the values of one log point."""

    def truncate(self, step: int) -> None:
        """Forget what was logged after ``step``."""

    def close(self) -> None:
        """Flush and release files."""


class MetricLog:
    """Append-only table of metrics by step, in ``metrics.csv``.

    A row is on its way to the disk when `write` returns. A metric that appears later adds a column (the
    file is rewritten atomically, earlier rows stay empty there). A half-written last row, left by a killed
    process, is dropped at the first write.

    Args:
        path: The CSV file; made at the first row.
        sinks: Further destinations.
    """

    def __init__(self, path: str | Path, *, sinks: tuple[MetricSink, ...] = ()) -> None:
        self.path = Path(path)
        self.sinks = sinks
        self._columns: list[str] | None = None

    def write(self, step: int, **values: Value) -> None:
        """Log one point.

        Args:
            step: Environment steps or evaluations so far, not smaller than at the row before.
            **values: Numbers, text or None (an empty cell); NumPy scalars are welcome.

        Raises:
            RunError: If the file cannot be written.
        """
        row: dict[str, Value] = {"step": int(step), **{k: _scalar(v) for k, v in values.items()}}
        columns = self._known_columns()
        new = [name for name in row if name not in columns]
        if new:
            columns = columns + new
            self._rewrite(columns, _read_rows(self.path))
            self._columns = columns
        line = _format([_cell(row.get(name)) for name in columns])
        try:
            with open(self.path, "ab") as handle:
                handle.write(line.encode("utf-8"))
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {os_reason(error)}") from error
        for sink in self.sinks:
            sink.write(int(step), row)

    def truncate(self, step: int) -> None:
        """Drop the rows after ``step``: what a resumed run is going to log again."""
        rows = [row for row in _read_rows(self.path) if float(row["step"]) <= step]
        columns = self._known_columns()
        if columns:
            self._rewrite(columns, rows)
        for sink in self.sinks:
            sink.truncate(step)

    def sync(self) -> None:
        """Wait until all rows are on the disk."""
        if self.path.exists():
            with open(self.path, "rb") as handle:
                os.fsync(handle.fileno())

    def close(self) -> None:
        """Close the sinks."""
        for sink in self.sinks:
            sink.close()

    def _known_columns(self) -> list[str]:
        if self._columns is None:
            rows = _read_rows(self.path)
            self._columns = _read_header(self.path)
            if self._columns:
                self._rewrite(self._columns, rows)  # drops a half-written last row
        return self._columns

    def _rewrite(self, columns: list[str], rows: list[dict[str, str]]) -> None:
        lines = [_format(columns), *(_format([row.get(name, "") for name in columns]) for row in rows)]
        atomic_write_text(self.path, "".join(lines))


def read_metrics(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Read a metric log.

    Args:
        path: The CSV file; a missing one gives ``{}``.

    Returns:
        Column name to array, one entry a row: float64 (NaN where empty), or text if a cell is no number.

    Raises:
        RunError: If the file cannot be read or is no metric log.
    """
    path = Path(path)
    rows = _read_rows(path)
    return {name: _column([row[name] for row in rows]) for name in _read_header(path)}


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def _format(cells: list[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow([re.sub(r"\r\n|[\r\n]", " ", cell) for cell in cells])
    return stream.getvalue()


def _read_lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"cannot read {path}: {os_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise RunError(f"{path} is no metric log: {error}") from error
    return text.split("\n")[:-1]  # what follows the last line end was not written to its end


def _read_header(path: Path) -> list[str]:
    lines = _read_lines(path)
    return next(csv.reader(lines[:1]), [])


def _read_rows(path: Path) -> list[dict[str, str]]:
    lines = _read_lines(path)
    if not lines:
        return []
    try:
        header, *rows = csv.reader(lines, strict=True)
    except (csv.Error, ValueError) as error:
        raise RunError(f"{path} is no metric log: {error}") from error
    if header[:1] != ["step"] or len(set(header)) != len(header):
        raise RunError(f"{path} is no metric log: the first column must be step, and names must differ")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or not _is_step(row[0]):
            raise RunError(f"{path} is damaged at line {number}")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _is_step(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _column(cells: list[str]) -> npt.NDArray[Any]:
    try:
        return np.array([float(cell) if cell else math.nan for cell in cells], dtype=np.float64)
    except ValueError:
        return np.array(cells, dtype=np.str_)
