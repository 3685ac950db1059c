"""``moopt evaluate``: returns of a trained front on fresh episodes."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moopt.cli.errors import OK, UsageError, usage_errors
from moopt.cli.local import find_local_modules
from moopt.cli.methods import algo_of_run
from moopt.cli.parsing import Parser, number
from moopt.cli.tables import format_table
from moopt.runs.errors import RunError

if TYPE_CHECKING:
    from moopt.pareto.front import Front
    from moopt.runs.folder import RunDir

PROG = "moopt evaluate"
_DESCRIPTION = """\
Re-evaluate every policy of a finished run on fresh episodes, and compare the front with the known one where
there is one. Writes evaluation.csv and evaluation.json into the run folder."""
_EPILOG = f"""\
examples:
  {PROG} runs/dst
  {PROG} runs/dst --episodes 100 --gamma-eval 1.0 --seed 7 --out dst.csv

HV is the hypervolume to the reference point, EU the mean over preference weights of the best weighted
return, sparsity the mean squared gap between neighbours (smaller is denser). Returns are discounted by
--gamma-eval."""


def run(argv: Sequence[str]) -> int:
    """Run ``moopt evaluate`` and return the exit code."""
    parser = Parser(PROG, _DESCRIPTION, _EPILOG)
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument(
        "--episodes", metavar="N", type=number(int, 1), default=20, help="episodes per policy (default: 20)"
    )
    parser.add_argument(
        "--gamma-eval",
        metavar="G",
        type=number(float, 0, 1),
        default=None,
        help="discount factor (default: that of the run)",
    )
    parser.add_argument(
        "--seed",
        metavar="S",
        type=number(int, 0),
        default=None,
        help="seed of the episodes (default: from the run's seed)",
    )
    parser.add_argument("--stochastic", action="store_true", help="sample actions rather than take the likeliest")
    parser.add_argument("--device", metavar="NAME", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    parser.add_argument("--out", metavar="FILE", default=None, help="also write the front to this .csv or .json")
    args = parser.parse(argv)
    with usage_errors():
        folder = _open(args.run)
        entry = algo_of_run(folder.config)
        if not (folder.path / "policies").is_dir():
            raise UsageError(f"{folder.path} has no trained policies (its status is {folder.status})")
        if args.gamma_eval == 0:
            raise UsageError("--gamma-eval must be in (0, 1], got 0")
        out = _check_out(args.out)
        _check_writable(folder.path, f"into {folder.path}")
        _check_device(args.device)
        find_local_modules(folder.config["env"])
    agent = entry.load_agent().load(folder.path / "policies", device=args.device)
    front: Front = agent.evaluate(
        episodes=args.episodes, gamma_eval=args.gamma_eval, seed=args.seed, deterministic=not args.stochastic
    )
    gamma = front.meta.get("gamma_eval", args.gamma_eval)
    summary = _summary(front, _known_front(folder, front, gamma))
    front = front.replace(meta={**front.meta, "evaluation_seed": args.seed, "summary": summary})
    _report(folder, front, summary, gamma, args)
    folder.write_front(front, "evaluation")
    if out is not None:
        (front.to_csv if out.suffix == ".csv" else front.to_json)(out)
    print(f"written: {folder.path / 'evaluation.csv'}, evaluation.json{f', {out}' if out else ''}")
    return OK


def _open(name: str) -> "RunDir":
    """Open a run folder; name the runs inside if it is a folder of them."""
    from moopt.runs.folder import RunDir
    from moopt.runs.record import find_runs

    if Path(name).is_dir() and not (Path(name) / "config.json").exists():
        with contextlib.suppress(RunError):
            inside = find_runs(name)
            shown = ", ".join(map(str, inside[:4])) + (", ..." if len(inside) > 4 else "")
            what = "1 run; evaluate it" if len(inside) == 1 else f"{len(inside)} runs; evaluate one of them"
            raise UsageError(f"{name} is a folder of {what}: {shown}")
    return RunDir.open(name)


def _check_device(name: str) -> None:
    from moopt.runs.device import resolve_device

    resolve_device(name)


def _check_out(name: str | None) -> Path | None:
    if name is None:
        return None
    out = Path(name)
    if out.suffix not in (".csv", ".json"):
        raise UsageError(f"--out {out} must end with .csv or .json")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"cannot write --out {out}: no folder {out.parent}")
    _check_writable(out.absolute().parent, f"--out {out}")
    return out


def _check_writable(path: Path, what: str) -> None:
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write {what}: Permission denied")


def _known_front(folder: "RunDir", front: "Front", gamma: float | None) -> "Front | None":
    """Return the front that the environment computes of itself under ``gamma``, or None where it does not."""
    from moopt.envs import describe_env

    description = describe_env(folder.config["env"])
    if description.exact_front is None or gamma is None:
        return None
    points = description.exact_front(gamma)
    known = front.replace(points=points, solutions=range(len(points)), meta={}).filter()
    return known.replace(meta={"kind": description.front_kind})


def _summary(front: "Front", known: "Front | None") -> dict[str, Any]:
    values: dict[str, Any] = {"n": len(front), "eu": front.expected_utility(), "sparsity": front.sparsity()}
    if front.ref_point is not None:
        values["hv"] = front.hypervolume()
    if known is not None:
        values |= {
            "known_front": known.meta["kind"],
            "known_n": len(known),
            "known_eu": known.expected_utility(),
            "known_sparsity": known.sparsity(),
        }
        if front.ref_point is not None:
            values["known_hv"] = known.hypervolume()
            if values["known_hv"] > 0:
                values["hv_share"] = values["hv"] / values["known_hv"]
    return values


def _report(folder: "RunDir", front: "Front", summary: dict[str, Any], gamma: float | None, args: Any) -> None:
    rows = [["this run", *(summary.get(k) for k in ("hv", "eu", "sparsity", "n"))]]
    exact = summary.get("known_front") == "exact"
    name = "known front" if exact else "approximate front (mo-gymnasium)"
    if "known_n" in summary:
        rows.append([name, *(summary.get(f"known_{k}") for k in ("hv", "eu", "sparsity", "n"))])
    made = folder.config
    print(f"{made['algo']} on {made['env']}, training seed {made['seed']}: {folder.path}")
    print(format_table(["", "HV", "EU", "sparsity", "n"], rows))
    if "hv_share" in summary:
        print(f"HV as a share of that of the {name}: {100 * summary['hv_share']:.2f} %")
        if not exact:
            print("the approximate front looks at some policies only: others can dominate points of it")
    if front.ref_point is not None:
        print(f"reference point: {', '.join(f'{x:g}' for x in front.ref_point)} (larger is better)")
    how = "sampled" if args.stochastic else "deterministic"
    whence = "drawn from the run's seed" if args.seed is None else f"drawn from seed {args.seed}"
    count = "1 episode" if args.episodes == 1 else f"{args.episodes} episodes"
    print(f"{count} per policy, {how} actions, discount {gamma}")
    print(f"evaluation seeds are {whence} in a stream of their own, disjoint from the training seeds")
