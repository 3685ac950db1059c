"""Attribute access and method calls on one copy, the same in this process and in workers."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

__all__ = ["call_env"]


def call_env(env: gym.Env[Any, Any], what: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Do one operation on `env`, looking through its wrappers.

    Args:
        env: The outermost wrapper.
        what: "get" (name), "set" (name, value), "method" (name, *args) or "wrapped" (wrapper class).
        args: Positional arguments of the operation.
        kwargs: Keyword arguments of a method.

    Raises:
        AttributeError: No wrapper has the attribute.
    """
    if what == "get":
        return env.get_wrapper_attr(args[0])
    if what == "set":
        return env.set_wrapper_attr(args[0], args[1])
    if what == "method":
        return env.get_wrapper_attr(args[0])(*args[1:], **kwargs)
    while isinstance(env, gym.Wrapper):
        if isinstance(env, args[0]):
            return True
        env = env.env
    return False
