"""Plain text tables for terminals; only the standard library."""

from collections.abc import Sequence
from typing import Any


def format_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows under a header, columns two spaces apart; numbers to the right, text to the left.

    >>> print(format_table(["name", "n"], [["a", 1], ["bcd", 20]]))
    name   n
    ----  --
    a      1
    bcd   20
    """
    cells = [list(header), *([show(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    right = [
        bool(rows) and all(isinstance(row[i], int | float) or row[i] is None for row in rows)
        for i in range(len(header))
    ]

    def line(row: Sequence[str]) -> str:
        parts = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return "  ".join(parts).rstrip()

    return "\n".join([line(cells[0]), "  ".join("-" * w for w in widths), *map(line, cells[1:])])


def show(value: Any) -> str:
    """Return a cell: ``-`` for None, six significant digits for floats, yes and no for bools."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list):
        return ", ".join(show(v) for v in value)
    return str(value)
