"""Options of ``moopt train METHOD``: code defaults, then the settings file, then the command line."""

import contextlib
import dataclasses
import io
import re
import typing
from collections.abc import Sequence
from typing import Annotated, Any

import tyro
from tyro.conf import arg

from moopt.cli.errors import UsageError
from moopt.cli.methods import find_algo
from moopt.cli.parsing import refuse_unknown
from moopt.runs.config import config_from_mapping, load_config_file
from moopt.runs.errors import ConfigError, did_you_mean


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What to train on, for how long, and where it goes."""

    env: Annotated[str | None, arg(metavar="ID", help_behavior_hint="(required)")] = None
    """Environment id; `moopt list envs` shows them. MODULE:ID imports the module, which registers the id, first."""
    total_steps: Annotated[int | None, arg(metavar="N", help_behavior_hint="(required)")] = None
    """Environment steps of training, all policies together. 1e6 and 1_000_000 are understood."""
    seed: int = 0
    """Seed of everything random."""
    seeds: Annotated[tuple[int, ...], arg(metavar="S [S ...]", help_behavior_hint="")] = ()
    """Several seeds in place of --seed, each with its own run folder OUT/seed-S. Runs that are finished there
    are skipped, others continue."""
    jobs: int = 1
    """How many of the --seeds run side by side, one thread each."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(default: runs/METHOD/ENV/TIME-sSEED)")] = None
    """Run folder, absent or empty."""
    config: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """YAML or JSON file with options and settings, such as a run's config.json; flags win over it."""
    resume: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Continue the run, or all runs, in this folder with its settings; --total-steps may be raised."""
    device: str = "auto"
    """auto (CUDA if present), cpu, cuda, cuda:1, ..."""
    tensorboard: bool = False
    """Also write TensorBoard files to RUN/tb (extra tb)."""
    quiet: bool = False
    """No progress and no summary."""


_NOT_IN_FILES = frozenset({"config", "resume"})


def parse_train(args: Sequence[str]) -> tuple[str, TrainOptions, Any] | None:
    """Parse the arguments after ``moopt train``.

    Returns:
        Method name, options and settings; None if the help was asked for (and printed).

    Raises:
        MooptError: If an argument or the settings file is wrong; the message names it and the nearest one.
    """
    args = list(args)
    content = _read_file(args)
    named = content.pop("algo", None)
    if args[0].startswith("-"):
        if not isinstance(named, str):
            raise UsageError("name the method first, such as: moopt train cmorl --env ...")
        algo = named
    else:
        algo = args.pop(0)
        find_algo(algo)
        if named is not None and named != algo:
            raise UsageError(f"the settings file is for the method {named!r}, the command names {algo!r}")
    config_class = find_algo(algo).load_config()
    options, settings = _split(content, config_class)
    parsed = _tyro(algo, args, config_from_mapping(TrainOptions, options), config_from_mapping(config_class, settings))
    if parsed is None:
        return None
    if not parsed[0].seeds and "--seeds" in args:
        raise UsageError("--seeds needs at least one seed, as in --seeds 0 1 2")
    if parsed[0].seeds and any(a == "--seed" or a.startswith("--seed=") for a in args):
        raise UsageError("give --seed or --seeds, not both")
    return algo, *parsed


def _read_file(args: list[str]) -> dict[str, Any]:
    """Return the content of the file that ``--config`` names; it gives the defaults of the rest."""
    for i, text in enumerate(args):
        if text == "--config":
            if i + 1 == len(args) or args[i + 1].startswith("--"):
                raise UsageError("--config needs a file")
            return load_config_file(args[i + 1])
        if text.startswith("--config="):
            return load_config_file(text.removeprefix("--config="))
    return {}


def _split(content: dict[str, Any], config_class: type[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell options from settings, which stand at the top or, as in a run's config.json, under ``config``."""
    nested = content.pop("config", {})
    if not isinstance(nested, dict):
        raise ConfigError("config in a settings file must be a mapping of settings")
    content.pop("schema", None)
    settings = dict(nested)
    options: dict[str, Any] = {}
    option_names = {f.name for f in dataclasses.fields(TrainOptions)} - _NOT_IN_FILES
    setting_names = {f.name for f in dataclasses.fields(config_class)}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name in option_names:
            options[name] = value
        elif name not in setting_names:
            raise ConfigError(f"unknown setting {key!r}{did_you_mean(name, option_names | setting_names)}")
        elif name in settings:
            raise ConfigError(f"setting {key!r} is given twice")
        else:
            settings[name] = value
    return options, settings


def _tyro(algo: str, args: list[str], options: TrainOptions, settings: Any) -> tuple[TrainOptions, Any] | None:
    prog = f"moopt train {algo}"
    both = dataclasses.make_dataclass(
        "Arguments", [("run", TrainOptions), ("settings", type(settings))], frozen=True, kw_only=True
    )
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed, rest = tyro.cli(
                both,
                prog=prog,
                description=find_algo(algo).help,
                args=_whole_numbers(args, type(settings)),
                default=both(run=options, settings=settings),
                config=(tyro.conf.OmitArgPrefixes,),
                return_unknown_args=True,
            )
    except SystemExit as end:
        if end.code in (0, None):
            print(_examples(prog))
            return None
        raise UsageError(f"{_condense(said.getvalue())} (see {prog} --help)") from None
    if rest:
        names = {f.name for cls in (TrainOptions, type(settings)) for f in dataclasses.fields(cls)}
        refuse_unknown(rest[0], [f"--{name.replace('_', '-')}" for name in names], prog)
    return parsed.run, parsed.settings


def _whole_numbers(args: list[str], config_class: type[Any]) -> list[str]:
    """Let every integer option be written 1e6; tyro reads integers only in digits."""
    flags = set()
    for cls in (TrainOptions, config_class):
        for name, hint in typing.get_type_hints(cls).items():
            if hint is int or int in typing.get_args(hint):
                flags.add(f"--{name.replace('_', '-')}")
    result, current = [], ""
    for text in args:
        if text.startswith("--"):
            current, _, value = text.replace("_", "-", text.partition("=")[0].count("_")).partition("=")
            result.append(f"{current}={_whole(value)}" if value and current in flags else text)
        else:
            result.append(_whole(text) if current in flags else text)
    return result


def _whole(text: str) -> str:
    if re.fullmatch(r"\d+(\.\d*)?[eE]\+?\d{1,2}", text) and float(text).is_integer():
        return str(int(float(text)))
    return text


def _condense(box: str) -> str:
    """Reduce tyro's framed message to its first paragraph on one line.

    The frame is a box, or on a terminal without such characters a title over a rule.
    """
    plain = [line.strip(" │") for line in re.sub(r"\x1b\[[0-9;]*m", "", box).splitlines()]
    lines = [line for line in plain if line and not line.startswith(("╭", "╰"))]
    rules = [i for i, line in enumerate(lines) if re.fullmatch("─{9,}|-{9,}", line)]
    if "╭" not in box and rules[:1] == [1]:
        lines, rules = lines[2:], [i - 2 for i in rules[1:]]
    text = " ".join(lines[: rules[0] if rules else None]).rstrip(".") or "the arguments cannot be read"
    text = re.sub(r"^Error parsing (\S+): ", r"\1: ", text)
    text = re.sub(r"no type matching (.+) could be instantiated from \[(.*?)\]\. .*", r"must be \1, got \2", text)
    text = re.sub(r"could not convert string to float: (.*)", r"must be a number, got \1", text)
    text = re.sub(r"invalid literal for int\(\) with base 10: (.*)", r"must be an integer, got \1", text)
    text = re.sub(r"Could not find valid parse for arguments: \[(.*?)\]", r"cannot take \1", text)
    if re.search(r"cannot take '[^']*,", text):
        text += "; put spaces between values, as in 0 1 2"
    text = text.replace("{None}|", "").replace("{[", "[").replace("]}", "]")
    for name, one, many in (("INT", "an integer", "integers"), ("FLOAT", "a number", "numbers")):
        text = text.replace(f"[{name} [{name} ...]]", many).replace(f"must be {name},", f"must be {one},")
    return text


def _examples(prog: str) -> str:
    return (
        "examples:\n"
        f"  {prog} --env deep-sea-treasure-v0 --total-steps 2e5 --seed 1 --out runs/dst\n"
        f"  {prog} --env mo-hopper-2obj-v5 --total-steps 1.5e6 --seeds 0 1 2 --jobs 2\n"
        f"  {prog} --config runs/dst/config.json --seed 2\n"
        "  moopt train --resume runs/dst --total-steps 4e5\n\n"
        "settings are read in the order: defaults, --config FILE, command line. --debug shows tracebacks."
    )
