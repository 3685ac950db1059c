"""``moopt fit METHOD``: fit a method that learns from data; every method is one module."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from moopt.cli.errors import OK, UsageError
from moopt.cli.tables import format_table
from moopt.runs.errors import did_you_mean

PROG = "moopt fit"


@dataclass(frozen=True)
class FitMethod:
    """A method of ``moopt fit``.

    Attributes:
        module: Module with a function ``run(argv) -> int``.
        help: One line for ``moopt fit --help``.
    """

    module: str
    help: str


METHODS = {
    "mfld": FitMethod("moopt.cli.fit_mfld", "two-layer network trained by mean-field Langevin dynamics"),
}


def run(argv: Sequence[str]) -> int:
    """Run ``moopt fit`` with the arguments after ``fit`` and return the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        rows = [[name, method.help] for name, method in METHODS.items()]
        print(f"usage: {PROG} METHOD ...\n\nFit a method to data.\n\n{format_table(['method', 'what it is'], rows)}\n")
        print(f"{PROG} METHOD --help shows all options and settings.")
        return OK
    if argv[0] not in METHODS:
        raise UsageError(f"unknown method {argv[0]!r}{did_you_mean(argv[0], METHODS)}")
    code: int = importlib.import_module(METHODS[argv[0]].module).run(argv[1:])
    return code
