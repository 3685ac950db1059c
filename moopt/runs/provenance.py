"""What a result was made with: versions, machine, source revision; read without importing the packages."""

import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moopt.version import __version__

PACKAGES = ("torch", "numpy", "scipy", "gymnasium", "mo-gymnasium", "stable-baselines3", "mujoco", "numba")


def versions(device: str | None = None) -> dict[str, Any]:
    """Return the versions and the machine that make a run repeatable.

    Args:
        device: The device the run computes on, as text.

    Returns:
        JSON-able: moopt, python, the packages of `PACKAGES` (None where absent), git (revision of the source
        tree or None), platform, cpus, threads (those torch uses if it is loaded, else the OMP_NUM_THREADS in
        force or None), device.
    """
    torch = sys.modules.get("torch")
    omp = os.environ.get("OMP_NUM_THREADS", "")
    return {
        "moopt": __version__,
        "python": platform.python_version(),
        **{name: package_version(name) for name in PACKAGES},
        "git": source_revision(),
        "platform": platform.platform(),
        "cpus": usable_cpus(),
        "threads": torch.get_num_threads() if torch is not None else int(omp) if omp.isdecimal() else None,
        "device": device,
    }


def package_version(name: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def usable_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def source_revision(root: Path | None = None) -> str | None:
    """Return the git revision of the source tree that moopt runs from, or None where there is none.

    Args:
        root: Folder that may hold ``.git``; default the parent of the package.
    """
    git = (root or Path(__file__).resolve().parents[2]) / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head or None
        ref = head.removeprefix("ref: ")
        if (git / ref).is_file():
            return (git / ref).read_text(encoding="utf-8").strip()
        for line in (git / "packed-refs").read_text(encoding="utf-8").splitlines():
            if line.endswith(f" {ref}"):
                return line.split(" ", 1)[0]
    except OSError:
        pass  # no repository, a linked work tree, or no commit yet: then there is no revision to name
    return None


def command_line(argv: Sequence[str]) -> str:
    """Return a command as one line that a shell reads back."""
    return shlex.join(argv)
