"""Errors a user can mend, and the nearest-match hint they end with; imports only the standard library."""

import difflib
from collections.abc import Iterable

_LIST_AT_MOST = 12


class MooptError(ValueError):
    """A mistake of the user or of the surroundings, told in one line and without a traceback."""


class ConfigError(MooptError):
    """A setting or a settings file that cannot be used."""


class MissingExtraError(MooptError):
    """An optional package is needed; the message holds the command that installs it."""


class RunError(MooptError):
    """A run folder or a file in it cannot be created, written or read."""


class CheckpointError(RunError):
    """A saved state is truncated, damaged, of another format, or too large."""


class RunLockedError(RunError):
    """Another process is working in the run folder."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return the hint that ends an error about an unknown name.

    Args:
        name: What was given.
        choices: The names that exist.

    Returns:
        ``"; did you mean 'x'?"`` when something near exists, else the choices when they are few, else ``""``.

    >>> did_you_mean("mo-hoper-v5", ["mo-hopper-v5", "minecart-v0"])
    "; did you mean 'mo-hopper-v5'?"
    >>> did_you_mean("zzz", ["a", "b"])
    '; choose from a, b'
    """
    known = sorted({str(c) for c in choices})
    folded = {k.casefold().replace("_", "-"): k for k in reversed(known)}
    near = difflib.get_close_matches(str(name).casefold().replace("_", "-"), folded, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    if known and len(known) <= _LIST_AT_MOST:
        return f"; choose from {', '.join(known)}"
    return ""


def missing_extra(what: str, package: str, extra: str) -> MissingExtraError:
    """Return the error for an optional package that is not installed.

    Args:
        what: What the user asked for, such as ``"TensorBoard logging"``.
        package: The distribution that is missing.
        extra: The extra of moopt that brings it.
    """
    return MissingExtraError(f'{what} needs the package {package}: pip install "moopt[{extra}]"')


def os_reason(error: OSError) -> str:
    """Return the operating system's own words for an error, such as ``No space left on device``."""
    return error.strerror or str(error) or type(error).__name__
