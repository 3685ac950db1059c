"""The table of methods the command line knows; strings only, imported when needed."""

import importlib
from dataclasses import dataclass
from typing import Any, cast

from moopt.cli.errors import UsageError
from moopt.runs.errors import RunError, did_you_mean


@dataclass(frozen=True)
class AlgoEntry:
    """A method that trains on an environment.

    Attributes:
        config: ``module:Class`` of its settings, a frozen dataclass in a module that starts fast.
        agent: ``module:Class`` of the agent.
        help: One line for ``moopt train --help`` and ``moopt list methods``.
    """

    config: str
    agent: str
    help: str

    def load_config(self) -> type[Any]:
        """Import the settings class."""
        return cast(type[Any], _load(self.config))

    def load_agent(self) -> type[Any]:
        """Import the agent class, and with it torch."""
        return cast(type[Any], _load(self.agent))


ALGOS: dict[str, AlgoEntry] = {
    "cmorl": AlgoEntry(
        "moopt.agents.cmorl.config:CMORLConfig",
        "moopt.agents.cmorl.agent:CMORL",
        "C-MORL: a front of PPO policies, filled by constrained optimization (ICLR 2025)",
    ),
}


def find_algo(name: str) -> AlgoEntry:
    """Return the method a user named.

    Raises:
        UsageError: If there is none of that name.
    """
    if name not in ALGOS:
        raise UsageError(f"unknown method {name!r}{did_you_mean(name, ALGOS)}")
    return ALGOS[name]


def algo_of_run(config: dict[str, Any]) -> AlgoEntry:
    """Return the method that made a run.

    Raises:
        RunError: If this version of moopt does not have it.
    """
    if config["algo"] not in ALGOS:
        raise RunError(f"the run was made by the method {config['algo']!r}, which this moopt does not have")
    return ALGOS[config["algo"]]


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
