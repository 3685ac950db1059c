"""What ``moopt train`` does once the arguments are read: checks against the environment, run folders, tasks."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moopt.cli.errors import UsageError
from moopt.cli.local import find_local_modules
from moopt.cli.methods import AlgoEntry, algo_of_run, find_algo
from moopt.cli.parsing import Parser, number
from moopt.cli.session import RunTask
from moopt.cli.settings import TrainOptions
from moopt.runs.config import config_to_dict
from moopt.runs.errors import RunError, did_you_mean
from moopt.runs.folder import RunDir, new_folder
from moopt.runs.provenance import command_line
from moopt.runs.record import find_runs, run_status

_RESUME_FLAGS = "--total-steps, --device, --jobs, --tensorboard and --quiet"


# ------------------------------------------------------------------------------------------- new runs
def start_tasks(algo: str, options: TrainOptions, settings: Any, *, args: Sequence[str]) -> list[RunTask]:
    """Check options and settings against the environment, then make the run folders.

    Args:
        algo: Name of the method.
        options: What to train on.
        settings: The method's settings.
        args: The arguments after ``moopt train``, to note in the folders.

    Raises:
        MooptError: If anything does not fit; nothing is written then.
    """
    entry = find_algo(algo)
    _check_options(options)
    env, total_steps = str(options.env), int(options.total_steps or 0)
    find_local_modules(env)
    seeds = options.seeds or (options.seed,)
    several = bool(options.seeds)
    if options.out == "":
        raise UsageError("--out needs the name of a folder")
    if options.out is not None:
        _check_out(Path(options.out), several)
    if options.tensorboard:
        _check_tensorboard()
    # Building the agent checks environment, settings and device before anything is written.
    entry.load_agent()(env, settings, seed=seeds[0], device=options.device)
    content: dict[str, Any] = {
        "algo": algo,
        "env": env,
        "config": config_to_dict(settings),
        "total_steps": total_steps,
        "device": options.device,
        "command": command_line(["moopt", "train", *args]),
    }
    if not several:
        made = RunDir.create(options.out, seed=options.seed, **content)
        return [_task(entry, made.path, total_steps, options, fresh=True)]
    parent = new_folder(Path("runs"), algo, env, "seeds") if options.out is None else Path(options.out)
    with_old = [parent / f"seed-{s}" for s in seeds if (parent / f"seed-{s}" / "config.json").exists()]
    for path in with_old:
        _check_same(RunDir.open(path), content)
    for seed in seeds:
        path = parent / f"seed-{seed}"
        if path not in with_old:
            RunDir.create(path, seed=seed, **content)
    return [
        _task(entry, parent / f"seed-{s}", total_steps, options, fresh=parent / f"seed-{s}" not in with_old)
        for s in seeds
    ]


def _check_options(options: TrainOptions) -> None:
    if options.env is None:
        raise UsageError("--env is required (moopt list envs shows the ids)")
    if options.total_steps is None:
        raise UsageError("--total-steps is required: the number of environment steps to train for")
    if options.total_steps < 1:
        raise UsageError(f"--total-steps must be at least 1, got {options.total_steps}")
    if options.jobs < 1:
        raise UsageError(f"--jobs must be at least 1, got {options.jobs}")
    for seed in (options.seed, *options.seeds):
        if seed < 0:
            raise UsageError(f"a seed must be an integer >= 0, got {seed}")
    if len(set(options.seeds)) != len(options.seeds):
        raise UsageError(f"--seeds names a seed twice: {' '.join(map(str, options.seeds))}")
    if options.jobs > 1 and not options.seeds:
        raise UsageError("--jobs runs several seeds side by side; give them with --seeds")


def _check_out(out: Path, several: bool) -> None:
    """Refuse a folder that is taken or cannot be written, without making it."""
    if (out / "config.json").exists():
        raise UsageError(f"{out} already holds a run; continue it with --resume {out}, or choose another --out")
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file, not a folder")
    if not several and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"--out {out} is not empty; a run needs a folder of its own")
    existing = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write --out {out}: no permission to write into {existing}")


def _check_tensorboard() -> None:
    from moopt.runs.tensorboard import TensorBoardSink

    TensorBoardSink("")


def _check_same(run: RunDir, content: Mapping[str, Any]) -> None:
    """Refuse to continue a run of ``--seeds`` that was started with other settings."""
    for name in ("algo", "env"):
        if run.config[name] != content[name]:
            raise UsageError(f"{run.path} was started with {name} {run.config[name]}, not {content[name]}")
    for name, value in content["config"].items():
        before = run.config["config"].get(name)
        if before != value:
            raise UsageError(f"{run.path} was started with {name} {before}, not {value}; choose another --out")
    _check_not_lowered(run, content["total_steps"])


def _check_not_lowered(run: RunDir, total_steps: int) -> None:
    before = run.config.get("total_steps") or 0
    if total_steps < before:
        raise UsageError(f"--total-steps of {run.path} can be raised, not lowered: it is {before}, got {total_steps}")


# ------------------------------------------------------------------------------------------- resumed runs
def resume_tasks(args: Sequence[str]) -> list[RunTask]:
    """Read the arguments of a command with ``--resume`` and open the runs it names.

    Args:
        args: The arguments after ``moopt train``.

    Raises:
        MooptError: If there is no run, or one cannot go on as asked; nothing is changed then.
    """
    parser = Parser("moopt train --resume", "", "")
    parser.add_argument("algo", nargs="?")
    parser.add_argument("--resume", required=True)
    parser.add_argument("--total-steps", type=number(int, 1))
    parser.add_argument("--device")
    parser.add_argument("--jobs", type=number(int, 1), default=1)
    parser.add_argument("--tensorboard", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    given, rest = parser.parse_known_args(list(args))
    if not given.resume:
        raise UsageError("--resume needs the name of a run folder")
    if rest:
        flag = rest[0].split("=", 1)[0]
        near = did_you_mean(flag, ["--total-steps", "--device", "--jobs", "--tensorboard", "--quiet"])
        hint = near if near.startswith("; did") else f"; only {_RESUME_FLAGS} can be given with it"
        raise UsageError(f"--resume takes the settings from the run, not {flag}{hint}")
    if given.tensorboard:
        _check_tensorboard()
    tasks = []
    for path in find_runs(given.resume):
        run = RunDir.open(path)
        entry = algo_of_run(run.config)
        find_local_modules(run.config["env"])
        if given.algo is not None and given.algo != run.config["algo"]:
            find_algo(given.algo)
            raise UsageError(f"{path} was trained with {run.config['algo']}, not {given.algo}")
        total = given.total_steps or run.config.get("total_steps")
        if not isinstance(total, int):
            raise RunError(f"{path / 'config.json'} does not say total_steps; give --total-steps")
        _check_not_lowered(run, total)
        options = TrainOptions(
            device=given.device or "auto", jobs=given.jobs, tensorboard=given.tensorboard, quiet=given.quiet
        )
        _check_settings(entry, run)
        tasks.append(_task(entry, path, total, options, fresh=False))
    return tasks


def _check_settings(entry: AlgoEntry, run: RunDir) -> None:
    from moopt.runs.config import config_from_mapping

    config_from_mapping(entry.load_config(), run.config["config"])


def _task(entry: AlgoEntry, path: Path, total_steps: int, options: TrainOptions, *, fresh: bool) -> RunTask:
    run = RunDir.open(path)
    done = not fresh and run_status(run) == "finished" and total_steps <= (run.config.get("total_steps") or 0)
    return RunTask(
        path=str(path),
        entry=entry,
        total_steps=total_steps,
        device=options.device,
        tensorboard=options.tensorboard,
        quiet=options.quiet,
        jobs=options.jobs,
        fresh=fresh,
        done=done,
        command=command_line(["moopt", "train", "--resume", str(path), "--total-steps", str(total_steps)]),
    )
