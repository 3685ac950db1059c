"""Environments in the user's own files; only the standard library."""

import os
import sys


def find_local_modules(env: str) -> None:
    """Let ``MODULE:ID`` name a module in the current folder, as ``python -m moopt`` would by itself.

    The folder comes last in the search path, so that nothing installed is hidden by a file of the same name.

    Args:
        env: Environment id; one without a module changes nothing.
    """
    here = os.getcwd()
    if ":" in env and here not in sys.path:
        sys.path.append(here)
