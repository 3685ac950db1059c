"""``moopt fit mfld``: fit the mean-field Langevin estimators to a generated problem or a CSV file."""

import contextlib
import csv
import dataclasses
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import tyro
from tyro.conf import arg

from moopt.cli.errors import INTERRUPTED, OK, UsageError, interrupt_on_sigterm, undisturbed, usage_errors
from moopt.cli.parsing import refuse_unknown
from moopt.cli.settings import _condense
from moopt.runs.callbacks import Progress, ProgressBar
from moopt.runs.config import config_from_mapping, config_to_dict
from moopt.runs.errors import MooptError
from moopt.runs.files import atomic_write_text
from moopt.runs.folder import RunDir
from moopt.samplers.mfld.config import MFLDConfig

if TYPE_CHECKING:
    import numpy as np

    from moopt.samplers.mfld.estimators import MFLDClassifier, MFLDRegressor

PROG = "moopt fit mfld"
_CHECKPOINTS = 10
_EXAMPLES = f"""\
examples:
  {PROG} --data multi-index:parity4 --n 3000 --dim 25 --seed 0 --out runs/parity
  {PROG} --data multi-index:square --n 500 --dim 50 --spectrum deff:8 --n-particles 50
  {PROG} --data table.csv --target price --manifold sphere --out runs/price
  {PROG} --resume runs/price

--data multi-index:NAME: parityK, staircaseK, hermiteK, xor, productK, square."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What to fit, and where it goes."""

    data: Annotated[str | None, arg(metavar="WHAT", help_behavior_hint="(required)")] = None
    """multi-index:NAME, or a CSV file with a header row and numbers."""
    n: int = 1000
    """Training rows of a generated problem."""
    dim: int = 25
    """Inputs of a generated problem."""
    spectrum: str = "isotropic"
    """Input variances of a generated problem: isotropic, deff:V, power:A or spike:K."""
    noise: float = 0.0
    """Standard deviation of the noise on the targets of a generated problem."""
    n_test: int = 10_000
    """Test rows of a generated problem."""
    target: Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="(default: the last)")] = None
    """Target column of a CSV file."""
    test_fraction: float = 0.2
    """Share of a CSV file's rows held out for the test."""
    task: Literal["regression", "classification"] = "regression"
    """Whether targets are numbers or classes."""
    kernel: bool = False
    """Also fit the tuned kernel baseline (regression; memory grows as the square of the rows)."""
    plot: bool = False
    """Also draw RUN/particles.png: the particles in the plane of the first two true (or found) directions."""
    seed: int = 0
    """Seed of data, split, start and noise."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(default: runs/mfld/DATA/TIME-sSEED)")] = None
    """Run folder, absent or empty."""
    resume: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Continue the interrupted fit in this folder; no other option goes with it."""
    quiet: bool = False
    """No progress and no summary."""


class Data(NamedTuple):
    """Training and test rows; ``basis`` where the true directions are known."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    basis: Any


def run(argv: Sequence[str]) -> int:
    """Run ``moopt fit mfld`` and return the exit code."""
    parsed = _parse(list(argv))
    if parsed is None:
        return OK
    options, settings = parsed
    interrupt_on_sigterm()
    with usage_errors():
        if options.resume is not None:
            folder = RunDir.open(options.resume)
            if folder.config["algo"] != "mfld":
                raise UsageError(f"{options.resume} was made by {folder.config['algo']}, not by {PROG}")
            if folder.status == "finished":
                print(f"{folder.path} is finished")
                return OK
            quiet = options.quiet
            stored = dict(folder.config["config"])
            options = config_from_mapping(FitOptions, stored.pop("options"))
            options = dataclasses.replace(options, quiet=quiet)
            settings = config_from_mapping(MFLDConfig, stored)
        data = _load(options)
        model = _model(options, settings)
        trainer = model.make_trainer(data.X, data.y)
        if parsed[0].resume is None:
            folder = RunDir.create(
                options.out,
                algo="mfld",
                env=str(options.data),
                seed=options.seed,
                config={**config_to_dict(settings), "options": config_to_dict(options)},
                total_steps=trainer.total_steps,
            )
    try:
        with folder.lock():
            _train(folder, trainer, options.quiet)
            summary = _finish(folder, model.adopt(trainer), data, options)
    except KeyboardInterrupt:
        with undisturbed():
            folder.set_status("interrupted", step=trainer.steps_done)
            print(f"moopt: interrupted; continue with: {PROG} --resume {folder.path}", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        folder.set_status("failed", step=trainer.steps_done, reason=str(error))
        raise
    if not options.quiet:
        print("\n".join(f"{key}: {value}" for key, value in summary.items()))
        print(f"written: {folder.path}")
    return OK


def _parse(args: list[str]) -> tuple[FitOptions, MFLDConfig] | None:
    both = dataclasses.make_dataclass(
        "Arguments", [("run", FitOptions), ("settings", MFLDConfig)], frozen=True, kw_only=True
    )
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed, rest = tyro.cli(
                both,
                prog=PROG,
                description="Fit a two-layer network by mean-field Langevin dynamics. Everything goes to a run folder.",
                args=args,
                default=both(run=FitOptions(), settings=MFLDConfig()),
                config=(tyro.conf.OmitArgPrefixes,),
                return_unknown_args=True,
            )
    except SystemExit as end:
        if end.code in (0, None):
            print(_EXAMPLES)
            return None
        raise UsageError(f"{_condense(said.getvalue())} (see {PROG} --help)") from None
    if rest:
        names = {f.name for cls in (FitOptions, MFLDConfig) for f in dataclasses.fields(cls)}
        refuse_unknown(rest[0], [f"--{name.replace('_', '-')}" for name in names], PROG)
    options: FitOptions = parsed.run
    if options.resume is not None:
        if len([a for a in args if a.startswith("--") and a != "--quiet"]) > 1:
            raise UsageError("--resume takes everything from the run; only --quiet goes with it")
    elif options.data is None:
        raise UsageError(f"--data is required (see {PROG} --help)")
    return options, parsed.settings


def _load(options: FitOptions) -> Data:
    import numpy as np

    what = str(options.data)
    if what.startswith("multi-index:"):
        from moopt.samplers.mfld.data import multi_index

        name, common = what.partition(":")[2], {"spectrum": options.spectrum, "noise": options.noise}
        train = multi_index(name, options.n, options.dim, seed=options.seed, **common)  # type: ignore[arg-type]
        test = multi_index(name, max(1, options.n_test), options.dim, seed=options.seed + 1_000_003, **common)  # type: ignore[arg-type]
        y, y_test = train.y, test.y
        if options.task == "classification":
            y, y_test = np.where(y > 0, 1, -1), np.where(y_test > 0, 1, -1)
        return Data(train.X, y, test.X, y_test, train.basis)
    header, table = _read_csv(Path(what), options)
    column = header[-1] if options.target is None else options.target
    if column not in header:
        raise UsageError(f"--target {column!r} is no column of {what}: {', '.join(header[:20])}")
    at = header.index(column)
    X = _numbers([row[:at] + row[at + 1 :] for row in table], what)
    labels = [row[at] for row in table]
    y = np.array(labels) if options.task == "classification" else _numbers([[v] for v in labels], what)[:, 0]
    if not 0 < options.test_fraction < 1:
        raise UsageError(f"--test-fraction must be between 0 and 1, got {options.test_fraction}")
    order = np.random.Generator(np.random.PCG64(options.seed)).permutation(len(X))
    held = max(1, round(options.test_fraction * len(X)))
    return Data(X[order[held:]], y[order[held:]], X[order[:held]], y[order[:held]], None)


def _read_csv(path: Path, options: FitOptions) -> tuple[list[str], list[list[str]]]:
    if not path.is_file():
        raise UsageError(f"--data {path} is neither multi-index:NAME nor a file")
    with open(path, newline="", encoding="utf-8") as handle:
        rows = [row for row in csv.reader(handle) if row]
    if len(rows) < 4:
        raise UsageError(f"--data {path} needs a header and at least 3 rows")
    if any(len(row) != len(rows[0]) for row in rows) or len(rows[0]) < 2:
        raise UsageError(f"--data {path} must have the same number of columns, at least 2, in every row")
    return rows[0], rows[1:]


def _numbers(cells: list[list[str]], what: str) -> "np.ndarray[Any, Any]":
    import numpy as np

    try:
        return np.array(cells, dtype=np.float64)
    except ValueError as error:
        raise UsageError(f"--data {what} must hold numbers: {error}") from error


def _model(options: FitOptions, settings: MFLDConfig) -> "MFLDRegressor | MFLDClassifier":
    from moopt.samplers.mfld.estimators import MFLDClassifier, MFLDRegressor

    kind = MFLDClassifier if options.task == "classification" else MFLDRegressor
    model: MFLDRegressor | MFLDClassifier = kind(**config_to_dict(settings), random_state=options.seed)
    return model


def _train(folder: RunDir, trainer: Any, quiet: bool) -> None:
    saved = folder.load_checkpoint()
    if saved is not None:
        folder.note_resume()
        trainer.load_state_dict(saved[1])
        folder.metrics.truncate(saved[0])
    logged = len(trainer.history.get("step", []))
    folder.set_status("running", step=trainer.steps_done)
    with ProgressBar(initial=trainer.steps_done, quiet=quiet) as bar:
        while not trainer.done:
            trainer.advance(max(1, trainer.total_steps // _CHECKPOINTS))
            rows = {k: v[logged:] for k, v in trainer.history.items()}
            for i, step in enumerate(rows.get("step", [])):
                folder.metrics.write(step, **{k: v[i] for k, v in rows.items() if k != "step"})
            logged = len(trainer.history.get("step", []))
            folder.save_checkpoint(trainer.steps_done, trainer.state_dict())
            bar(Progress(trainer.steps_done, trainer.total_steps, {"stage": trainer.stage}))


def _finish(folder: RunDir, model: Any, data: Data, options: FitOptions) -> dict[str, Any]:
    import numpy as np

    summary: dict[str, Any] = {
        "scale": float(model.scale_),
        "temperature": float(model.temperature_),
        "steps": int(model.n_iter_),
    }
    if options.task == "classification":
        summary["test_accuracy"] = float(model.score(data.X_test, data.y_test))
    else:
        summary["test_mse"] = float(np.mean((model.predict(data.X_test) - data.y_test) ** 2))
        summary["target_variance"] = float(np.var(data.y_test))
        if options.kernel:
            from moopt.samplers.mfld.kernel_ridge import KernelBaseline

            kernel = KernelBaseline(seed=options.seed).fit(data.X, data.y)
            summary["kernel"] = kernel.choice_["kernel"]
            summary["kernel_test_mse"] = float(np.mean((kernel.predict(data.X_test) - data.y_test) ** 2))
    if data.basis is not None:
        import torch

        from moopt.samplers.mfld.diagnostics import alignment

        summary["alignment"] = float(alignment(torch.from_numpy(model.particles_), data.basis))
    if options.plot:
        from moopt.plotting import particle_data, plot_particles
        from moopt.plotting.style import new_figure

        basis = model.subspace(min(2, model.n_features_in_)) if data.basis is None else data.basis
        figure = new_figure(4.6, 4.8)
        found = particle_data(model.particles_, basis, model.signs_)
        plot_particles(found, ax=figure.subplots(), title=str(options.data))
        figure.savefig(folder.path / "particles.png", dpi=150)
    try:
        model.save(folder.path / "model.npz")
        atomic_write_text(folder.path / "summary.json", json.dumps(summary, indent=2) + "\n")
    except OSError as error:
        raise MooptError(f"cannot write into {folder.path}: {error}") from error
    folder.set_status("finished", step=int(model.history_["step"][-1]) if len(model.history_) else 0)
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in summary.items()}
