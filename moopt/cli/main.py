"""Front of the command line: picks the command and imports only that one; only the standard library."""

import errno
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from moopt.cli.errors import FAILURE, INTERRUPTED, OK, USAGE, UsageError
from moopt.runs.errors import MooptError, did_you_mean, os_reason
from moopt.version import __version__


@dataclass(frozen=True)
class Command:
    """A line of the command table.

    Attributes:
        module: Module with a function ``run(argv) -> int``; imported when the command is called.
        help: One line for ``moopt --help``.
    """

    module: str
    help: str


COMMANDS = {
    "train": Command("moopt.cli.train", "train a Pareto front of policies on an environment; resume a run"),
    "fit": Command("moopt.cli.fit", "fit a method that learns from data"),
    "evaluate": Command("moopt.cli.evaluate", "re-evaluate a trained run on fresh episodes"),
    "plot": Command("moopt.cli.plot", "draw fronts and learning curves of one or more runs"),
    "list": Command("moopt.cli.listing", "list environments or methods"),
    "info": Command("moopt.cli.info", "show versions, device, threads, kernel backend and optional extras"),
}

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

EPILOG = """\
examples:
  moopt train cmorl --env deep-sea-treasure-v0 --total-steps 200000 --seed 0 --out runs/dst
  moopt train --resume runs/dst --total-steps 400000
  moopt evaluate runs/dst --episodes 50
  moopt plot runs/dst --out dst.png
  moopt list envs

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated
docs: every command has its own --help; --debug shows tracebacks"""


def help_text() -> str:
    """Return what ``moopt --help`` prints."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items())
    return (
        "usage: moopt COMMAND ...\n\n"
        "Multi-objective optimization and reinforcement learning on one Pareto-front core.\n\n"
        f"commands:\n{rows}\n\n"
        "options:\n  -h, --help   show this help\n  --version    show the version\n\n"
        f"{EPILOG}\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: Arguments without the program name; default those of the process.

    Returns:
        The exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    args = [a for a in args if a != "--debug"]
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.showwarning = _show_warning
            return _dispatch(args)
    except MooptError as error:
        return _fail(str(error), USAGE if isinstance(error, UsageError) else FAILURE, debug)
    except KeyboardInterrupt:
        print("moopt: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (moopt list | head): end quietly, also at the last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:  # the last line of defence: one readable line instead of a traceback
        return _fail(_describe(error) + ("" if debug else " (--debug shows the traceback)"), FAILURE, debug)


def _dispatch(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        print(help_text(), end="")
        return OK
    if args[0] in ("-V", "--version"):
        print(f"moopt {__version__}")
        return OK
    command = COMMANDS.get(args[0])
    if command is None:
        kind = "option" if args[0].startswith("-") else "command"
        choices = ("--help", "--version", "--debug") if kind == "option" else COMMANDS
        raise UsageError(f"unknown {kind} {args[0]!r}{did_you_mean(args[0], choices)}")
    code: int = importlib.import_module(command.module).run(args[1:])
    if sys.stdout is not None:  # None where the caller has closed it
        sys.stdout.flush()
    return code


def _fail(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"moopt: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is None and error.errno in _DISK_ERRORS:
        return f"cannot write the output: {os_reason(error)}"
    return f"{type(error).__name__}: {error}"


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning for users as one line; those for developers of other packages stay out of the way."""
    if os.sep + "moopt" + os.sep in filename or issubclass(category, UserWarning):
        print(f"moopt: warning: {' '.join(str(message).split())}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
