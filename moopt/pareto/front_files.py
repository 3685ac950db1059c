"""Fronts on disk: a plain CSV of objective values and a JSON file with everything.

``front.csv``: a header of objective names and ``id``; one row a point, values in the user's orientation.

``front.json``: ``{"format": "moopt-front", "version": 1, "names", "units", "directions", "points",
"ref_point", "solutions", "meta"}``; points and reference point in the user's orientation as in the CSV. All
floats are written by ``repr``, so both give back every bit. What JSON has no word for is tagged: ``{"$float":
"inf"}``, ``{"$array": [...], "dtype": "float64", "shape": [..]}``, ``{"$tuple": [...]}``, ``{"$range": 3}``,
``{"$dict": [[key, value], ...]}``.
"""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moopt.pareto.arrays import unknown
from moopt.runs.errors import MooptError
from moopt.runs.files import atomic_write_text

if TYPE_CHECKING:
    from moopt.pareto.front import Front

FORMAT = "moopt-front"
VERSION = 1
MAX_BYTES = 256 * 2**20
_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity)\s*", re.IGNORECASE)
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")
_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float32",
    "float64",
)
_TAGS = {"$float", "$array", "$tuple", "$range", "$dict"}


def read_text(path: str | Path) -> str:
    """Return a UTF-8 file of bounded size.

    Raises:
        MooptError: If it cannot be read, is too large or is not UTF-8.
    """
    path = Path(path)
    try:
        with path.open("rb") as handle:
            data = handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise MooptError(f"cannot read {path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise MooptError(f"{path} is larger than {MAX_BYTES // 2**20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MooptError(f"{path} is not UTF-8 text: {error}") from None


def _id(solution: Any, row: int) -> str | int:
    """Return what the ``id`` column says: short ids as they are, anything larger by row number."""
    if isinstance(solution, str | int | np.integer) and not isinstance(solution, bool):
        return solution if isinstance(solution, str) else int(solution)
    return row


def write_csv(front: "Front", path: str | Path) -> None:
    """Write the table; see the module's description."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*front.names, "id"])
    for row, values in enumerate(front.user_points):
        writer.writerow([*(repr(float(v)) for v in values), _id(front.solutions[row], row)])
    atomic_write_text(path, buffer.getvalue())


def read_csv(path: str | Path, objectives: Sequence[str] | None = None) -> dict[str, Any]:
    """Return ``points``, ``names`` and, with an ``id`` column, ``solutions`` of a table.

    Raises:
        MooptError: If the file is not a table of numbers with a header; line and column are named.
    """
    try:
        rows = list(csv.reader(io.StringIO(read_text(path), newline=""), strict=True))
    except csv.Error as error:
        raise MooptError(f"{path} is not a CSV table: {error}") from None
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise MooptError(f"{path} has no header line")
    header = [cell.strip() for cell in rows[0]]
    if len(set(header)) != len(header):
        raise MooptError(f"{path} has repeated column names: {header}")
    names = [name for name in header if name != "id"] if objectives is None else list(objectives)
    for name in names:
        if name not in header:
            raise unknown(f"column in {path}:", name, header)
    columns = [header.index(name) for name in names]
    points = []
    ids = []
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise MooptError(f"{path}, line {line}: {len(row)} cells under {len(header)} columns")
        points.append([_number(row[c], path, line, header[c]) for c in columns])
        if "id" in header:
            ids.append(row[header.index("id")])
    table: dict[str, Any] = {"points": np.array(points, dtype=np.float64).reshape(len(points), len(names))}
    table["names"] = names
    if "id" in header:
        table["solutions"] = [int(i) for i in ids] if all(_INTEGER.fullmatch(i) for i in ids) else ids
    return table


def _number(cell: str, path: str | Path, line: int, column: str) -> float:
    if not _NUMBER.fullmatch(cell):
        raise MooptError(f"{path}, line {line}, column {column!r}: {cell[:40]!r} is not a number")
    return float(cell)


def write_json(front: "Front", path: str | Path) -> None:
    """Write everything; see the module's description."""
    ref = front.user_ref_point
    document = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(front.names),
        "units": list(front.units),
        "directions": list(front.directions),
        "points": _encode(front.user_points.tolist(), "points"),
        "ref_point": None if ref is None else _encode(ref.tolist(), "ref_point"),
        "solutions": _encode(front.solutions, "solutions"),
        "meta": _encode(front.meta, "meta"),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in document.items()]
    atomic_write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """Return the fields of a front, points in the user's orientation.

    Raises:
        MooptError: If the file is not a front.
    """
    text = read_text(path)
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise MooptError(f'{path} is not a front: it lacks "format": "{FORMAT}"')
        if document.get("version") != VERSION:
            raise MooptError(f"{path} has front version {document.get('version')!r}; this moopt reads {VERSION}")
        fields = {key: document[key] for key in ("names", "units", "directions")}
        for key, value in fields.items():
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                raise MooptError(f"{path}: {key} must be a list of strings")
        m = len(fields["names"])
        fields["points"] = _matrix(_decode(document["points"]), m, path)
        ref = _decode(document["ref_point"])
        fields["ref_point"] = None if ref is None else _matrix([ref], m, path)[0]
        fields["solutions"] = _decode(document["solutions"])
        fields["meta"] = _decode(document["meta"])
    except RecursionError:
        raise MooptError(f"{path} is nested too deeply") from None
    except KeyError as error:
        raise MooptError(f"{path} lacks {error}") from None
    except MooptError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise MooptError(f"{path} is not a front: {str(error)[:200]}") from None
    if not isinstance(fields["meta"], dict) or not isinstance(fields["solutions"], list | tuple | range | np.ndarray):
        raise MooptError(f"{path}: meta must be an object and solutions a list")
    return fields


def _matrix(rows: Any, m: int, path: str | Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == m for row in rows):
        raise MooptError(f"{path}: points and ref_point must have {m} numbers each")
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for row in rows for v in row):
        raise MooptError(f"{path}: points and ref_point must be numbers")
    return np.array([[float(v) for v in row] for row in rows], dtype=np.float64).reshape(len(rows), m)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key is repeated")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _encode(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, np.generic) and str(value.dtype) in _DTYPES:
        return _encode(value.item(), where)
    if isinstance(value, np.ndarray) and str(value.dtype) in _DTYPES:
        return {
            "$array": _encode(value.tolist(), where),
            "dtype": str(value.dtype),
            "shape": list(value.shape),
        }
    if isinstance(value, range) and value == range(len(value)):
        return {"$range": len(value)}
    if isinstance(value, tuple | range):
        return {"$tuple": [_encode(v, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [_encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        items = {k: _encode(v, f"{where}[{k!r}]") for k, v in value.items()}
        # A user's own key that looks like a tag is written as a list of pairs, so that it cannot be misread.
        return {"$dict": [[k, v] for k, v in items.items()]} if _TAGS & items.keys() else items
    raise MooptError(f"{where} is of type {type(value).__name__}, which a JSON front cannot hold")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(_TAGS & value.keys()), None)
    if tag is None:
        return {k: _decode(v) for k, v in value.items()}
    body = value[tag]
    if tag == "$float" and body in ("inf", "-inf", "nan"):
        return float(body)
    if tag == "$range" and isinstance(body, int) and 0 <= body <= MAX_BYTES:
        return range(body)
    if tag == "$array" and value.get("dtype") in _DTYPES:
        return np.array(_decode(body), dtype=value["dtype"]).reshape([int(s) for s in value["shape"]])
    if tag == "$tuple" and isinstance(body, list):
        return tuple(_decode(body))
    if tag == "$dict" and isinstance(body, list):
        return {str(k): _decode(v) for k, v in body}
    raise ValueError(f"unknown tag {tag} or unusable content")
