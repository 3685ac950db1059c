"""``moopt plot``: fronts and learning curves of run folders."""

import os
from collections.abc import Sequence
from pathlib import Path

from moopt.cli.errors import OK, UsageError, usage_errors
from moopt.cli.parsing import Parser

PROG = "moopt plot"
_DESCRIPTION = """\
Draw the fronts and the learning curves of one or more runs in one figure. The numbers behind it go to
NAME-front.csv and NAME-curve.csv beside it."""
_EPILOG = f"""\
examples:
  {PROG} runs/dst --out dst.png
  {PROG} runs/hopper/seed-0 runs/hopper/seed-1 --out hopper.pdf
  {PROG} runs/hopper --out hopper.png        (all runs below the folder)"""
SUFFIXES = (".png", ".pdf", ".svg")


def run(argv: Sequence[str]) -> int:
    """Run ``moopt plot`` and return the exit code."""
    parser = Parser(PROG, _DESCRIPTION, _EPILOG)
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run folder, or a folder of them")
    parser.add_argument("--out", metavar="FILE", required=True, help=f"figure to write ({', '.join(SUFFIXES)})")
    parser.add_argument(
        "--metric", metavar="NAME", default="hv", help="curve to draw, a column of metrics.csv (default: hv)"
    )
    parser.add_argument("--title", metavar="TEXT", help="title (default: method, environment and seed)")
    args = parser.parse(argv)
    out = Path(args.out)
    from moopt.runs.record import find_runs

    with usage_errors():
        if out.suffix.lower() not in SUFFIXES:
            raise UsageError(f"--out {out} must end with {', '.join(SUFFIXES)}")
        if not out.absolute().parent.is_dir():
            raise UsageError(f"cannot write --out {out}: no folder {out.parent}")
        if not os.access(out.absolute().parent, os.W_OK | os.X_OK):
            raise UsageError(f"cannot write --out {out}: Permission denied")
        folders = list(dict.fromkeys(path for name in args.runs for path in find_runs(name)))
    from moopt.plotting import plot_runs

    written = plot_runs(folders, out, metric=args.metric, title=args.title)
    print(f"written: {', '.join(map(str, written))}")
    return OK
