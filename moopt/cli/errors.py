"""Exit codes, and errors that mean the command was typed wrongly; only the standard library."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from moopt.runs.errors import MooptError

OK, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130


class UsageError(MooptError):
    """The command, a flag or a value cannot be used; exit code 2."""


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn user errors of the block, which checks what was typed before any work, into `UsageError`."""
    try:
        yield
    except UsageError:
        raise
    except MooptError as error:
        raise UsageError(str(error)) from error


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled as an interrupt; batch systems send it before they kill."""


def interrupt_on_sigterm() -> None:
    """Treat SIGTERM like SIGINT, so that a run that is told to end keeps its state."""

    def handle(signum: int, frame: FrameType | None) -> None:
        raise Terminated

    with contextlib.suppress(ValueError):  # only the main thread may set handlers
        signal.signal(signal.SIGTERM, handle)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore further interrupts while the block tidies up after the first one."""
    try:
        before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: there are no interrupts to hold off
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
