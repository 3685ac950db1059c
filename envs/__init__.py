"""Environments with vector rewards: make one, describe one, step many."""

if __name__ != "moopt.envs":
    raise ImportError("import moopt.envs, not envs")

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moopt.envs.describe import EnvDescription, describe_env, list_envs
    from moopt.envs.errors import EnvError
    from moopt.envs.make import make_env
    from moopt.envs.reference import random_returns, suggest_ref_point
    from moopt.envs.vec import MOVecEnv, VecStep, make_vec_env

__all__ = [
    "EnvDescription",
    "EnvError",
    "MOVecEnv",
    "VecStep",
    "describe_env",
    "list_envs",
    "make_env",
    "make_vec_env",
    "random_returns",
    "suggest_ref_point",
]

_HOME = {
    "EnvDescription": "describe",
    "EnvError": "errors",
    "MOVecEnv": "vec",
    "VecStep": "vec",
    "describe_env": "describe",
    "list_envs": "describe",
    "make_env": "make",
    "make_vec_env": "vec",
    "random_returns": "reference",
    "suggest_ref_point": "reference",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(importlib.import_module(f"moopt.envs.{_HOME[name]}"), name)
    raise AttributeError(f"module 'moopt.envs' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *__all__})
