"""Silences third-party notices about MO-Gymnasium's own environments that a user cannot act on."""

import contextlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["quiet"]

NOISE = (
    ".*is out of date. You should consider upgrading.*",
    ".*precision lowered by casting to float32.*",
    ".*pkg_resources is deprecated.*",
    "builtin type (swig|Swig).* has no __module__ attribute",
)
"""Python warnings dropped: old versions are wanted to reproduce papers; the others are upstream matters. The
last one, turned into an error by the user's filters, would crash the import of Box2D."""

MUJOCO_NOISE = ("settotalmass",)
"""MuJoCo notices dropped: they speak of model files inside Gymnasium and would also write MUJOCO_LOG.TXT."""


@contextlib.contextmanager
def quiet(*, mujoco: bool = False) -> Iterator[None]:
    """Drop known noise inside the block; every other warning passes.

    Args:
        mujoco: Also filter MuJoCo's own notices. Imports mujoco if it is installed.
    """
    with warnings.catch_warnings():
        for message in NOISE:
            warnings.filterwarnings("ignore", message=message)
        with _quiet_mujoco() if mujoco or "mujoco" in sys.modules else contextlib.nullcontext():
            yield


@contextlib.contextmanager
def _quiet_mujoco() -> Iterator[None]:
    if importlib.util.find_spec("mujoco") is None:
        yield
        return
    import mujoco

    previous: Callable[[str], Any] | None = mujoco.get_mju_user_warning()

    def handler(message: str) -> None:
        if any(word in message for word in MUJOCO_NOISE):
            return
        if previous is not None:
            previous(message)
        else:
            warnings.warn(f"MuJoCo: {message}", RuntimeWarning, stacklevel=2)

    mujoco.set_mju_user_warning(handler)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(previous)
