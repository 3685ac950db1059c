"""The figure of one run, or of several together: what ``moopt plot`` saves."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moopt.pareto.front import Front
from moopt.plotting import style
from moopt.plotting.curves import Curve, CurveData, curve_data, plot_curve
from moopt.plotting.fronts import FrontData, front_data, plot_front
from moopt.plotting.matrix import plot_pairs
from moopt.plotting.parallel import plot_parallel
from moopt.runs.errors import MooptError, did_you_mean
from moopt.runs.files import atomic_write_bytes, atomic_write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from moopt.runs.record import RunRecord

METRIC_NAMES = {
    "hv": "hypervolume",
    "eu": "expected utility",
    "igd_plus": "IGD+",
    "n_front": "points on the front",
}
_SEPARATE_AT_MOST = 6
_PAIRS_AT_MOST = 4


def plot_runs(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    metric: str = "hv",
    pdf: bool = False,
    title: str | None = None,
    dpi: int = 200,
) -> list[Path]:
    """Draw one run, or several runs of one environment, and save the figure with the numbers behind it.

    The figure holds the front (the plane for two objectives, pairs and parallel coordinates for more) and the
    metric over true steps; several runs are laid over each other, their curves as median and quartiles over
    seeds. Runs that are not finished are drawn as far as they are.

    Args:
        paths: Run folders.
        out: Image file; its ending decides the kind (png, pdf, svg, ...), none means png.
        metric: Column of the metric logs.
        pdf: Also save a PDF beside it.
        title: Title. Default: method, environment and seed.
        dpi: Dots per inch of pixel images.

    Returns:
        The files written: the image, the PDF if asked, ``NAME-front.csv`` and ``NAME-curve.csv``.

    Raises:
        ValueError: If there is no run, the runs are of different environments or objectives, there is nothing
            to draw, or the kind of file is unknown.
    """
    from moopt.runs import read_run

    out = Path(out)
    out = out if out.suffix else out.with_suffix(".png")
    _check_kind(out)
    if not paths:
        raise MooptError("give at least one run folder")
    records = [read_run(path) for path in paths]
    environments = sorted({str(r.config.get("env")) for r in records})
    if len(environments) > 1:
        raise MooptError(f"runs of different environments cannot share a figure: {', '.join(environments)}")
    fronts = run_fronts(records)
    curves = run_curves(records, metric)
    if fronts is None and curves is None:
        raise MooptError(f"{records[0].path}: neither a front nor a value of {metric!r} to draw yet")
    if metric == "hv" and curves is not None and fronts is not None and fronts.exact is not None and _one_ref(records):
        curves = replace(curves, level=fronts.exact.hypervolume, level_name="known front")
    figure = draw_runs(fronts, curves, title or _title(records))
    out.parent.mkdir(parents=True, exist_ok=True)
    written = [out]
    _save(figure, out, dpi)
    if pdf and out.suffix.lower() != ".pdf":
        written.append(out.with_suffix(".pdf"))
        _save(figure, written[-1], dpi)
    for name, data in (("front", fronts), ("curve", curves)):
        if data is not None:
            written.append(out.with_name(f"{out.stem}-{name}.csv"))
            atomic_write_text(written[-1], data_csv(data))
    return written


def _one_ref(records: "Sequence[RunRecord]") -> bool:
    """Return whether the hypervolumes of all runs are to one reference point, so that they compare."""
    points = [None if r.front.ref_point is None else r.front.ref_point.tolist() for r in records if r.front is not None]
    return all(point == points[0] for point in points)


def run_fronts(records: "Sequence[RunRecord]") -> FrontData | None:
    """Return what is drawn of the fronts of runs; None if there is none yet.

    Up to six runs stand for themselves, with a colour each if all are of one method, else a colour a method; of more,
    the runs of each method are merged.
    """
    found = [r for r in records if r.front is not None and len(r.front)]
    if not found:
        return None
    order = _method_numbers(records)
    alone = len(order) == 1
    named: dict[str, Front] = {}
    colors: list[int] = []
    if len(found) == 1:
        named[""] = found[0].front  # type: ignore[assignment]
        colors = [order[_method(found[0])]]
    elif len(found) <= _SEPARATE_AT_MOST:
        for number, record in enumerate(found):
            named[_unused(_label(record), named)] = record.front  # type: ignore[assignment]
            colors.append(number if alone else order[_method(record)])
    else:
        groups: dict[str, list[Front]] = {}
        for record in found:
            groups.setdefault(_method(record), []).append(record.front)  # type: ignore[arg-type]
        for method, fronts in groups.items():
            merged = fronts[0]
            for front in fronts[1:]:
                merged = merged.merge(front.replace(ref_point=merged.ref_point))
            named[f"{method}, {len(fronts)} runs" if len(fronts) > 1 else method] = merged
            colors.append(order[method])
    exact = next((r.exact_front for r in found if r.exact_front is not None), None)
    # A front read from a plain table knows no directions: the run's own front says how to turn it.
    truth = None if exact is None else _like(exact, found[0].front)
    return front_data(named, exact=truth, colors=colors)


def _method_numbers(records: "Sequence[RunRecord]") -> dict[str, int]:
    """Return one number a method, so that it has one colour in every panel."""
    return {method: i for i, method in enumerate(dict.fromkeys(_method(r) for r in records))}


def _like(exact: Front, front: Front | None) -> Any:
    if front is None or exact.directions == front.directions:
        return exact.points
    return exact.user_points * front.signs


def run_curves(records: "Sequence[RunRecord]", metric: str) -> CurveData | None:
    """Return what is drawn of a metric; None if no run has logged it yet.

    Raises:
        MooptError: If the runs have logs, but none with that column.
    """
    columns = sorted({name for r in records for name in r.metrics})
    if columns and metric not in columns:
        raise MooptError(f"no metric {metric!r} in the runs; there are {', '.join(columns)}{_near(metric, columns)}")
    groups: dict[str, list[Curve]] = {}
    for record in records:
        values = record.metrics.get(metric)
        if values is None or values.dtype.kind != "f":
            continue
        label = _method(record) if len(records) > 1 else ""
        groups.setdefault(label, []).append((record.metrics["step"], _evaluated(record, values)))
    if not any(np.isfinite(np.asarray(y, dtype=float)).any() for runs in groups.values() for _, y in runs):
        return None
    colors = {"": 0, **_method_numbers(records)}
    if len(colors) == 2 and 1 < len(records) <= _SEPARATE_AT_MOST:  # each run has a colour of its own in the front
        colors = dict.fromkeys(colors, style.NEUTRAL)
    return curve_data(groups, metric=METRIC_NAMES.get(metric, metric), colors=colors)


def _evaluated(record: "RunRecord", values: Any) -> Any:
    """Blank the rows before the first evaluation: a front without points has no hypervolume to show."""
    size = record.metrics.get("n_front")
    return values if size is None or size.dtype.kind != "f" else np.where(size > 0, values, np.nan)


def _near(name: str, choices: Sequence[str]) -> str:
    hint = did_you_mean(name, choices)
    return hint if hint.startswith("; did you mean") else ""


def draw_runs(fronts: FrontData | None, curves: CurveData | None, title: str) -> "Figure":
    """Lay out the figure: fronts left, curve right, with parallel coordinates above it if m > 2."""
    m = 0 if fronts is None else len(fronts.names)
    if fronts is None or m <= 2:
        return _draw_plane(fronts, curves, title)
    pairs = m <= _PAIRS_AT_MOST
    figure = style.new_figure(12.5 if pairs else 9.0, 7.2 if pairs else 7.6)
    figure.suptitle(title, fontsize=style.TITLE + 1, x=0.01, ha="left", color=style.INK)
    side: Any = figure
    if pairs:
        halves: Any = figure.subfigures(1, 2, width_ratios=(1.25, 1.0), wspace=0.03)
        left, side = halves
        plot_pairs(fronts, figure=left)
    axes = side.subplots(
        1 if curves is None else 2, 1, squeeze=False, height_ratios=None if curves is None else (1.15, 1)
    )
    plot_parallel(fronts, ax=axes[0, 0])
    if curves is not None:
        plot_curve(curves, ax=axes[1, 0])
    return figure


def _draw_plane(fronts: FrontData | None, curves: CurveData | None, title: str) -> "Figure":
    both = fronts is not None and curves is not None
    many = fronts is not None and len(fronts.series) > 2
    figure = style.new_figure(10.4 if both else 5.6, 5.0 if many else 4.4)
    figure.suptitle(title, fontsize=style.TITLE + 1, x=0.01, ha="left", color=style.INK)
    axes = figure.subplots(1, 2 if both else 1, squeeze=False)[0]
    if fronts is not None:
        plot_front(fronts, ax=axes[0])
    if curves is not None:
        plot_curve(curves, ax=axes[-1])
    return figure


def data_csv(data: FrontData | CurveData) -> str:
    """Return what is drawn as a CSV table, numbers exact.

    Fronts: ``series, kind, id`` and one column an objective, where kind is point, dominated, exact or
        reference.
    Curves: ``series, step, median, q25, q75, running``.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if isinstance(data, CurveData):
        writer.writerow(["series", "step", "median", "q25", "q75", "running"])
        for line in data.series:
            columns = (line.steps, line.median, line.low, line.high)
            for i in range(len(line.steps)):
                writer.writerow([line.label, *(repr(float(c[i])) for c in columns), int(line.running[i])])
        return buffer.getvalue()
    writer.writerow(["series", "kind", "id", *data.names])
    for front in data.series:
        for identity, row in zip(front.ids, front.points, strict=True):
            short = identity if isinstance(identity, str | int | np.integer) else ""
            writer.writerow([front.label, "point", short, *(repr(float(v)) for v in row)])
        writer.writerows([front.label, "dominated", "", *(repr(float(v)) for v in row)] for row in front.dominated)
    if data.exact is not None:
        writer.writerows(["", "exact", "", *(repr(float(v)) for v in row)] for row in data.exact.points)
    if data.ref_point is not None:
        writer.writerow(["", "reference", "", *(repr(float(v)) for v in data.ref_point)])
    return buffer.getvalue()


def _method(record: "RunRecord") -> str:
    return str(record.config.get("algo", "run"))


def _label(record: "RunRecord") -> str:
    seed = record.config.get("seed")
    return _method(record) if seed is None else f"{_method(record)}, seed {seed}"


def _unused(label: str, taken: dict[str, Front]) -> str:
    number = 2
    text = label
    while text in taken:
        text, number = f"{label} ({number})", number + 1
    return text


def _title(records: "Sequence[RunRecord]") -> str:
    env = records[0].config.get("env", "")
    if len(records) == 1:
        record = records[0]
        state = "" if record.status in ("finished", "unknown") else f" ({record.status})"
        seed = record.config.get("seed")
        text = _method(record) + (f" on {env}" if env else "") + ("" if seed is None else f", seed {seed}")
        return text + state + _discount(records)
    methods = list(dict.fromkeys(_method(r) for r in records))
    return f"{env}: {', '.join(methods)}, {len(records)} runs{_discount(records)}"


def _discount(records: "Sequence[RunRecord]") -> str:
    """Name the discount of the returns that are drawn, if it is one and the same and not 1."""
    gammas = {r.front.meta.get("gamma_eval") for r in records if r.front is not None}
    gamma = next(iter(gammas)) if len(gammas) == 1 else None
    return f", returns discounted by {gamma:g}" if isinstance(gamma, int | float) and gamma != 1 else ""


def _check_kind(out: Path) -> None:
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if out.suffix[1:].lower() not in kinds:
        raise MooptError(f"{out.name}: unknown kind of image {out.suffix!r}, choose from {', '.join(kinds)}")


def _save(figure: "Figure", path: Path, dpi: int) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=dpi)
    atomic_write_bytes(path, buffer.getvalue())
