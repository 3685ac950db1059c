"""Make the tables of this folder again: train every row on its seeds, then write results.csv.

    python experiments/cmorl/run.py                          # every row
    python experiments/cmorl/run.py --rows minecart          # rows whose name begins with this
    python experiments/cmorl/run.py --collect                # no training: read the finished runs

Interrupted rows continue where they stopped.
"""

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moopt.cli.main import main as moopt
from moopt.pareto import Front

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One line of the table: a settings file with changes, several seeds."""

    config: str
    changes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2)


NO_EXTENSION = ("--init-fraction", "1.0")
ROWS = {
    "deep-sea-treasure": Row("deep-sea-treasure.yaml"),
    "deep-sea-treasure, no extension": Row("deep-sea-treasure.yaml", NO_EXTENSION),
    "minecart-deterministic": Row("minecart-demo.yaml", seeds=(0, 1, 2, 3, 4)),
    "minecart-deterministic, no extension": Row("minecart-demo.yaml", NO_EXTENSION),
}
COLUMNS = (
    "row",
    "seed",
    "hv",
    "hv_share",
    "policies",
    "slots",
    "slots_feasible",
    "train_steps",
    "eval_steps",
    "wall_s",
)


def folder(runs: Path, name: str) -> Path:
    """Return where a row's runs are."""
    return runs / name.replace(", ", "-").replace(" ", "-")


def train(runs: Path, name: str, row: Row) -> int:
    """Train a row on all its seeds, or continue it."""
    seeds = [str(seed) for seed in row.seeds]
    return moopt(["train", "--config", str(HERE / row.config), *row.changes, "--seeds", *seeds,
                  "--out", str(folder(runs, name)), "--quiet"])  # fmt: skip


def read(name: str, path: Path) -> dict[str, object]:
    """Return the figures of one finished run."""
    front, exact = Front.from_json(path / "front.json"), Front.from_json(path / "exact_front.json")
    with (path / "constraints.csv").open() as file:
        slack = np.array([float(line["slack"]) for line in csv.DictReader(file)])
    status = json.loads((path / "status.json").read_text())
    with (path / "metrics.csv").open() as file:
        wall = float(list(csv.DictReader(file))[-1]["wall_s"])
    hv = front.hypervolume()
    return {
        "row": name,
        "seed": json.loads((path / "config.json").read_text())["seed"],
        "hv": f"{hv:.2f}",
        "hv_share": f"{hv / exact.hypervolume():.4f}",
        "policies": len(front),
        "slots": len(slack),
        "slots_feasible": f"{(slack >= 0).mean():.3f}" if len(slack) else "",
        "train_steps": status["train_steps"],
        "eval_steps": status["eval_steps"],
        "wall_s": f"{wall:.0f}",
    }


def collect(runs: Path) -> list[dict[str, object]]:
    """Read all finished runs and write results.csv."""
    lines = [
        read(name, path)
        for name in ROWS
        for path in sorted(folder(runs, name).glob("seed-*"))
        if (path / "front.json").exists()
    ]
    with (HERE / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    return lines


def main() -> None:
    """Train, collect, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="train only rows whose name begins with this")
    parser.add_argument("--runs", type=Path, default=Path("runs/cmorl"), help="run folders (default: %(default)s)")
    parser.add_argument("--collect", action="store_true", help="read finished runs only")
    args = parser.parse_args()
    if not args.collect:
        for name, row in ROWS.items():
            if name.startswith(args.rows):
                train(args.runs, name, row)
    lines = collect(args.runs)
    for name in ROWS:
        shares = [float(str(line["hv_share"])) for line in lines if line["row"] == name]
        if shares:
            print(f"{name}: HV {100 * np.median(shares):.1f} % of the known front (median of {len(shares)} seeds)")


if __name__ == "__main__":
    main()
