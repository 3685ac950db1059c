"""Results as CSV files that grow row by row: a script that is started again goes on where it was."""

import csv
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


class Rows:
    """A CSV file whose rows are told apart by its first columns.

    Args:
        name: File name without suffix, in ``results/``.
        keys: Columns that name a row.
        values: The other columns.
    """

    def __init__(self, name: str, keys: list[str], values: list[str]) -> None:
        self.path = RESULTS / f"{name}.csv"
        self.keys, self.fields = keys, keys + values
        self.rows: list[dict[str, str]] = []
        if self.path.exists():
            with open(self.path, newline="") as handle:
                self.rows = list(csv.DictReader(handle))

    def has(self, **keys: Any) -> bool:
        """Return whether there is a row of these keys."""
        wanted = {k: str(v) for k, v in keys.items()}
        return any(all(row[k] == v for k, v in wanted.items()) for row in self.rows)

    def add(self, **row: Any) -> None:
        """Append a row, floats to six digits, and say so."""
        text = {k: f"{v:.6g}" if isinstance(v, float) else str(v) for k, v in row.items()}
        new = not self.path.exists()
        RESULTS.mkdir(exist_ok=True)
        with open(self.path, "a", newline="") as handle:
            writer = csv.DictWriter(handle, self.fields)
            if new:
                writer.writeheader()
            writer.writerow(text)
        self.rows.append({k: text.get(k, "") for k in self.fields})
        print("  ".join(f"{k}={v}" for k, v in text.items()), flush=True)

    def numbers(self, column: str, **keys: Any) -> list[float]:
        """Return a column of the rows that match, as floats."""
        wanted = {k: str(v) for k, v in keys.items()}
        return [float(r[column]) for r in self.rows if all(r[k] == v for k, v in wanted.items())]
