"""``moopt train``: read the arguments, then hand over to `launch` and `session`; what help needs starts fast."""

from collections.abc import Sequence

from moopt.cli.errors import OK, interrupt_on_sigterm, usage_errors
from moopt.cli.methods import ALGOS
from moopt.cli.tables import format_table

PROG = "moopt train"


def run(argv: Sequence[str]) -> int:
    """Run ``moopt train`` with the arguments after ``train`` and return the exit code."""
    args = list(argv)
    if not args or args[0] in ("-h", "--help"):
        print(_help(), end="")
        return OK
    interrupt_on_sigterm()
    with usage_errors():
        if _resumes(args):
            from moopt.cli.launch import resume_tasks

            tasks = resume_tasks(args)
        else:
            from moopt.cli.settings import parse_train

            parsed = parse_train(args)
            if parsed is None:
                return OK
            from moopt.cli.launch import start_tasks

            tasks = start_tasks(*parsed, args=args)
    from moopt.cli.session import run_tasks

    return run_tasks(tasks)


def _resumes(args: Sequence[str]) -> bool:
    """Return whether a run is to be continued; where help is asked for as well, help it is."""
    named = any(a == "--resume" or a.startswith("--resume=") for a in args)
    return named and not {"-h", "--help"} & set(args)


def _help() -> str:
    return (
        f"usage: {PROG} METHOD --env ID --total-steps N [options]\n"
        f"       {PROG} --resume RUN [--total-steps N]\n\n"
        "Train a method on an environment with vector rewards. Everything goes to a run folder.\n\n"
        f"{format_table(['method', 'what it is'], [[k, v.help] for k, v in ALGOS.items()])}\n\n"
        f"{PROG} METHOD --help shows all options and settings.\n\n"
        "examples:\n"
        f"  {PROG} cmorl --env deep-sea-treasure-v0 --total-steps 2e5\n"
        f"  {PROG} cmorl --env mo-hopper-2obj-v5 --total-steps 1.5e6 --seeds 0 1 2 --jobs 2 --out runs/hop\n"
        f"  {PROG} --resume runs/hop --total-steps 2e6\n"
        f"  {PROG} --config settings.yaml        (a file that names algo, env, total_steps and settings)\n"
    )
