"""``moopt list``: environments and methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moopt.cli.errors import OK, UsageError
from moopt.cli.fit import METHODS
from moopt.cli.methods import ALGOS
from moopt.cli.parsing import Parser
from moopt.cli.tables import format_table
from moopt.runs.errors import did_you_mean

PROG = "moopt list"
_EPILOG = f"""\
examples:
  {PROG} envs
  {PROG} methods"""


def run(argv: Sequence[str]) -> int:
    """Run ``moopt list`` and return the exit code."""
    parser = Parser(PROG, "List what there is to choose from.", _EPILOG)
    parser.add_argument("what", nargs="?", metavar="|".join(LISTS), help="what to list; without it: what can be listed")
    what = parser.parse(argv).what
    if what is None:
        print(format_table(["list", "what it shows"], [[f"{PROG} {name}", kind.help] for name, kind in LISTS.items()]))
        return OK
    if what not in LISTS:
        raise UsageError(f"cannot list {what!r}{did_you_mean(what, LISTS)}")
    print(LISTS[what].make())
    return OK


def _envs() -> str:
    from moopt.envs import list_envs

    rows = [
        [
            env.id,
            env.obs_size,
            f"{env.action_kind} {env.action_size}",
            env.reward_dim,
            "-" if env.ref_point is None else ", ".join(f"{x:g}" for x in env.ref_point),
            float(env.gamma_eval),
            env.front_kind,
        ]
        for env in list_envs()
    ]
    table = format_table(["id", "obs", "action", "rewards", "ref_point", "gamma_eval", "known front"], rows)
    return (
        f"{table}\n\nref_point: larger is better. known front: the environment computes its Pareto front for any\n"
        "discount; where that is approximate, policies can beat it."
    )


def _methods() -> str:
    rows = [[name, "train", entry.help] for name, entry in ALGOS.items()]
    rows += [[name, "fit", entry.help] for name, entry in METHODS.items()]
    return format_table(["method", "command", "what it is"], rows)


@dataclass(frozen=True)
class Listing:
    """Something that can be listed."""

    make: Callable[[], str]
    help: str


LISTS = {
    "envs": Listing(_envs, "environments: sizes, reference point, discount, whether the Pareto front is known"),
    "methods": Listing(_methods, "methods, each with the command that runs it"),
}
