"""Errors of environments: wrong ids and spaces, failures while stepping, dead workers."""

from moopt.runs.errors import MooptError

__all__ = ["EnvError"]


class EnvError(MooptError):
    """An environment cannot be made, described or stepped; the message names it and what to do."""
