"""A metric over true steps: the median over seeds with the band between the quartiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moopt.pareto.arrays import FloatArray
from moopt.plotting import style
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve: TypeAlias = tuple[ArrayLike, ArrayLike]
"""Steps (t,) and values (t,) of one run."""


@dataclass(frozen=True)
class CurveSeries:
    """One line and its band on the common steps of its runs."""

    label: str
    steps: FloatArray
    """Every step (t,) at which some run has a value, from the first at which all have one."""
    median: FloatArray
    low: FloatArray
    """First quartile (t,)."""
    high: FloatArray
    """Third quartile (t,)."""
    running: NDArray[np.int64]
    """How many runs (t,) reach that step; the others are carried on with their last value."""
    n: int
    """Number of runs."""
    color: int
    """Number of the colour in the palette."""


@dataclass(frozen=True)
class CurveData:
    """What is drawn of one metric."""

    series: tuple[CurveSeries, ...]
    metric: str
    unit: str
    step_name: str
    level: float | None = None
    """A value to compare with, drawn as a dashed line."""
    level_name: str = ""


def curve_data(
    curves: Curve | Mapping[str, Sequence[Curve]],
    *,
    metric: str = "hypervolume",
    unit: str = "",
    step_name: str = "environment steps",
    colors: Mapping[str, int] | None = None,
) -> CurveData:
    """Bring runs onto common steps and take median and quartiles.

    Between its own steps a run holds its last value, and so it does after its end. NaN values are skipped; of
    equal steps the last counts.

    Args:
        curves: One (steps, values) pair, or for each label the pairs of its seeds.
        metric: Name of the values.
        unit: Unit of the values.
        step_name: Name of the steps.
        colors: Number of the colour of each label. Default: in order.

    Returns:
        The data; labels without any value are left out.

    Raises:
        ValueError: If steps and values differ in length, or nothing has a value.

    Examples:
        >>> data = curve_data({"ours": [([0, 10], [1.0, 3.0]), ([0, 5], [2.0, 4.0])]})
        >>> data.series[0].steps.tolist(), data.series[0].median.tolist()
        ([0.0, 5.0, 10.0], [1.5, 2.5, 3.5])
    """
    groups = {"": [curves]} if isinstance(curves, tuple) else curves
    series = []
    for index, (label, runs) in enumerate(groups.items()):
        clean = [c for c in (_clean(label, steps, values) for steps, values in runs) if len(c[0])]
        if clean:
            series.append(_band(label, clean, index if colors is None else colors[label]))
    if not series:
        raise MooptError(f"there is no value of {metric!r} to draw")
    return CurveData(tuple(series), metric, unit, step_name)


def _clean(label: str, steps: ArrayLike, values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise MooptError(f"curve {label!r}: steps have shape {x.shape} and values {y.shape}")
    there = np.isfinite(x) & ~np.isnan(y)
    x, y = x[there], y[there]
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    last = np.append(x[1:] > x[:-1], True)[: len(x)]
    return x[last], y[last]


def _band(label: str, runs: list[tuple[FloatArray, FloatArray]], color: int) -> CurveSeries:
    steps = np.unique(np.concatenate([x for x, _ in runs]))
    steps = steps[steps >= max(x[0] for x, _ in runs)]
    table = np.stack([y[np.searchsorted(x, steps, side="right") - 1] for x, y in runs])
    low, median, high = np.percentile(table, [25, 50, 75], axis=0)
    ends = np.array([x[-1] for x, _ in runs])
    running = (ends[:, None] >= steps).sum(axis=0)
    return CurveSeries(label, steps, median, low, high, running, len(runs), color)


def plot_curve(
    curves: Curve | Mapping[str, Sequence[Curve]] | CurveData,
    *,
    ax: "Axes | None" = None,
    metric: str = "hypervolume",
    unit: str = "",
    step_name: str = "environment steps",
    title: str | None = None,
) -> "Axes":
    """Draw a metric over steps: one line for each label, with the band between the quartiles of its seeds.

    Args:
        curves: One (steps, values) pair, for each label the pairs of its seeds, or the result of
            :func:`curve_data`.
        ax: Axes to draw on. Default: those of a new figure.
        metric: Name of the values.
        unit: Unit of the values.
        step_name: Name of the steps.
        title: Title of the axes.

    Returns:
        The axes.

    Raises:
        ValueError: As :func:`curve_data`.
    """
    data = (
        curves if isinstance(curves, CurveData) else curve_data(curves, metric=metric, unit=unit, step_name=step_name)
    )
    ax = style.new_axes() if ax is None else ax
    style.style_axes(ax)
    for index, series in enumerate(data.series):
        color = style.color_of(series.color)
        few = len(series.steps) <= 30
        ax.plot(
            series.steps, series.median, color=color, lw=1.7, drawstyle="steps-post", zorder=3 + index,
            label=_entry(series), marker=style.marker_of(index) if few else "", ms=3.6, mew=0,
        )  # fmt: skip
        if series.n > 1:
            ax.fill_between(
                series.steps,
                series.low,
                series.high,
                step="post",
                color=color,
                alpha=0.16,
                linewidth=0,
                zorder=2,
            )
    if data.level is not None:
        text = f"{data.level_name}  ({style.number(data.level)})".lstrip()
        ax.axhline(data.level, color=style.EXACT, lw=1.0, ls=(0, (4, 2)), zorder=2.5, label=text)
    ax.margins(x=0.02)
    if ax.get_xlim()[0] > 0:
        ax.set_xlim(left=0)  # steps count from the start of the run, also where the first value comes late
    ax.xaxis.set_major_formatter(style.count_formatter())
    ax.set_xlabel(data.step_name, fontsize=style.LABEL)
    ax.set_ylabel(style.axis_label(data.metric, data.unit), fontsize=style.LABEL)
    if title:
        ax.set_title(title, fontsize=style.TITLE, loc="left", color=style.INK)
    style.legend(ax)
    return ax


def _entry(series: CurveSeries) -> str:
    if series.n == 1:
        return series.label
    return f"{series.label} (median of {series.n} seeds, quartiles)".lstrip()
