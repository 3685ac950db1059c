"""Argument parsing of the small commands: one-line errors with the nearest flag; standard library only."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from moopt.cli.errors import UsageError
from moopt.runs.errors import did_you_mean


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises `UsageError` in place of printing its usage and leaving.

    Args:
        prog: The command as typed, such as ``moopt evaluate``.
        description: What it does.
        epilog: Examples, printed as they stand.
    """

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse ``argv``; an unknown flag raises `UsageError` with the nearest one."""
        parsed, rest = self.parse_known_args(list(argv))
        if rest:
            refuse_unknown(rest[0], [o for action in self._actions for o in action.option_strings], self.prog)
        return parsed

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`; a flag that is mistyped may be the reason why a required one is missing."""
        raise UsageError(f"{re.sub('^argument ', '', message)} (see {self.prog} --help)")


def refuse_unknown(token: str, flags: Sequence[str], prog: str) -> NoReturn:
    """Raise `UsageError` for an argument that nothing takes.

    Args:
        token: The argument.
        flags: All flags of the command.
        prog: The command as typed.
    """
    if not token.startswith("-"):
        raise UsageError(f"unexpected argument {token!r} (see {prog} --help)")
    name = token.split("=", 1)[0]
    near = did_you_mean(name, flags)
    raise UsageError(f"unknown option {name}{near if near.startswith('; did') else f' (see {prog} --help)'}")


def number(kind: type[int] | type[float], low: float, high: float | None = None) -> Callable[[str], int | float]:
    """Return an argparse type: a number from ``low`` to ``high``; whole numbers may be written ``1e6``."""
    bounds = f">= {low}" if high is None else f"from {low} to {high}"
    wanted = f"{'an integer' if kind is int else 'a number'} {bounds}"

    def read(text: str) -> int | float:
        try:
            value = float(text)
            exact = kind(text) if re.fullmatch(r"[+-]?\d+", text) else kind(value)
        except (ValueError, OverflowError):
            raise argparse.ArgumentTypeError(f"must be {wanted}, got {text!r}") from None
        if exact != value or not low <= value <= (value if high is None else high):
            raise argparse.ArgumentTypeError(f"must be {wanted}, got {text!r}")
        return exact

    return read
