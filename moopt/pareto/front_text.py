"""A Front as a small table, in text and in HTML."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from moopt.pareto.front import Front

_HEAD = 6
_TAIL = 2


def heading(front: "Front", k: int) -> str:
    """Return the column heading of objective ``k``: name, unit and direction."""
    unit = f" [{front.units[k]}]" if front.units[k] else ""
    return f"{front.names[k]}{unit} ({front.directions[k]})"


def summary(front: "Front") -> str:
    """Return one line: size, reference point and hypervolume."""
    text = f"{len(front)} {'point' if len(front) == 1 else 'points'}, {front.n_obj} objectives"
    ref = front.user_ref_point
    if ref is not None:
        text += f", reference point ({', '.join(f'{v:g}' for v in ref)})"
    return text


def _rows(front: "Front") -> tuple[list[int], bool]:
    n = len(front)
    if n <= _HEAD + _TAIL + 1:
        return list(range(n)), False
    return [*range(_HEAD), *range(n - _TAIL, n)], True


def _cells(front: "Front", row: int) -> list[str]:
    return [*(f"{v:.6g}" for v in front.user_points[row]), _short(front.solutions[row])]


def _short(solution: Any) -> str:
    if isinstance(solution, np.ndarray):
        with np.printoptions(precision=4, threshold=6, edgeitems=2):
            text = " ".join(str(solution).split())
    else:
        text = str(solution)
    return text if len(text) <= 32 else text[:29] + "..."


def as_text(front: "Front") -> str:
    """Return the table for a terminal."""
    rows, cut = _rows(front)
    table = [
        [*(heading(front, k) for k in range(front.n_obj)), "solution"],
        *(_cells(front, row) for row in rows),
    ]
    widths = [max(len(line[c]) for line in table) for c in range(front.n_obj + 1)]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in table]
    if cut:
        lines.insert(_HEAD + 1, "  ".join("...".rjust(w) for w in widths))
    return "\n".join([f"Front: {summary(front)}", *("  " + line for line in lines)])


def as_html(front: "Front") -> str:
    """Return the table for a notebook; all text is escaped."""
    rows, cut = _rows(front)
    head = "".join(f"<th>{escape(heading(front, k))}</th>" for k in range(front.n_obj))
    body = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(front, row)) + "</tr>" for row in rows]
    if cut:
        body.insert(_HEAD, "<tr>" + "<td>&hellip;</td>" * (front.n_obj + 1) + "</tr>")
    return (
        f"<div><b>Front</b>: {escape(summary(front))}"
        f"<table><thead><tr>{head}<th>solution</th></tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
