"""Checks of the fields of a Front."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from moopt.pareto.arrays import unknown
from moopt.runs.errors import MooptError

DIRECTIONS = ("max", "min")


def _texts(values: Sequence[str], m: int, what: str) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(v, str) for v in values):
        raise MooptError(f"{what} must be {m} strings, got {values!r}")
    if len(values) != m:
        raise MooptError(f"{len(values)} {what} for {m} objectives: {list(values)!r}")
    return tuple(str(v) for v in values)


def read_names(names: Sequence[str] | None, m: int) -> tuple[str, ...]:
    """Return ``m`` distinct names that can head the columns of a table."""
    if names is None:
        return tuple(f"f{k + 1}" for k in range(m))
    texts = _texts(names, m, "names")
    for name in texts:
        if not name or name == "id" or name != name.strip() or any(not c.isprintable() for c in name):
            raise MooptError(f"names must be printable, without outer spaces, not empty and not 'id', got {name!r}")
    if len(set(texts)) != m:
        raise MooptError(f"names must differ, got {list(texts)!r}")
    return texts


def read_units(units: Sequence[str] | None, m: int) -> tuple[str, ...]:
    """Return ``m`` units, "" where there is none."""
    return ("",) * m if units is None else _texts(units, m, "units")


def read_directions(directions: str | Sequence[str] | None, m: int) -> tuple[str, ...]:
    """Return ``m`` directions, "max" or "min"."""
    if directions is None:
        return ("max",) * m
    texts = (directions,) * m if isinstance(directions, str) else _texts(directions, m, "directions")
    for direction in texts:
        if direction not in DIRECTIONS:
            raise unknown("direction", direction, DIRECTIONS)
    return texts


def read_solutions(solutions: Any, n: int) -> Sequence[Any]:
    """Return ``n`` solutions as a range, a tuple or a read-only copy of an array."""
    if solutions is None:
        return range(n)
    if len(solutions) != n:
        raise MooptError(f"{len(solutions)} solutions for {n} points")
    if isinstance(solutions, np.ndarray):
        copy: Any = solutions.copy()
        copy.flags.writeable = False
        return cast("Sequence[Any]", copy)
    return solutions if isinstance(solutions, range) else tuple(solutions)


def solutions_equal(a: Any, b: Any) -> bool:
    """Return whether two solutions, or two collections of them, are equal, arrays included."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
            return False
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, tuple | list | range) and isinstance(b, tuple | list | range):
        return len(a) == len(b) and all(solutions_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(solutions_equal(a[k], b[k]) for k in a)
    return bool(a == b)
