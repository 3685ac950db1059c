"""The two-objective front: points, attainment staircase, dominated area, several fronts over each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto.arrays import FloatArray, as_points
from moopt.pareto.front import Front
from moopt.plotting import style
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Fronts: TypeAlias = Front | Sequence[Front] | Mapping[str, Front]
"""One front, several, or several by label."""


@dataclass(frozen=True)
class FrontSeries:
    """What is drawn of one front; everything in the user's orientation."""

    label: str
    points: FloatArray
    """Non-dominated points (k, m), sorted by the first objective."""
    ids: tuple[Any, ...]
    """Solution of each of them."""
    dominated: FloatArray
    """The other points (j, m)."""
    staircase: FloatArray | None
    """Corners (c, 2) of the attainment surface; None unless there are two objectives."""
    area: FloatArray | None
    """Corners (c, 2) of the dominated area down to the reference point; None without one."""
    hypervolume: float | None
    """Hypervolume above the reference point."""
    color: int
    """Number of the colour in the palette; -1 for the exact front."""


@dataclass(frozen=True)
class FrontData:
    """What is drawn of several fronts over the same objectives."""

    series: tuple[FrontSeries, ...]
    exact: FrontSeries | None
    names: tuple[str, ...]
    units: tuple[str, ...]
    directions: tuple[str, ...]
    ref_point: FloatArray | None
    """Reference point (m,) in the user's orientation."""


def labelled(fronts: Fronts, labels: Sequence[str] | None = None) -> dict[str, Front]:
    """Return the fronts by label, checked to be about the same objectives.

    Raises:
        MooptError: If there is no front, labels are missing or repeated, or the objectives differ.
    """
    if isinstance(fronts, Mapping):
        named = dict(fronts)
    else:
        many = [fronts] if isinstance(fronts, Front) else list(fronts)
        if labels is None:
            labels = [""] if len(many) == 1 else [f"front {i + 1}" for i in range(len(many))]
        if len(labels) != len(many) or len(set(labels)) != len(labels):
            raise MooptError(f"{len(many)} fronts need as many different labels, got {list(labels)!r}")
        named = dict(zip(labels, many, strict=True))
    if not named:
        raise MooptError("there is no front to draw")
    first = next(iter(named.values()))
    for label, front in named.items():
        if (front.names, front.units, front.directions) != (first.names, first.units, first.directions):
            raise MooptError(
                f"front {label!r} has objectives {front.names} {front.directions}, "
                f"but the first has {first.names} {first.directions}"
            )
    return named


def front_data(
    fronts: Fronts,
    *,
    labels: Sequence[str] | None = None,
    exact: "Front | ArrayLike | None" = None,
    ref_point: ArrayLike | None = None,
    colors: Sequence[int] | None = None,
) -> FrontData:
    """Compute what a drawing of fronts shows.

    Args:
        fronts: One front, several, or several by label, over the same m objectives.
        labels: Legend entries if ``fronts`` is a sequence.
        exact: The true front, or its points (r, m), larger is better.
        ref_point: Reference point (m,), larger is better. Default: the first one a front has.
        colors: Number of the colour of each front, equal numbers for fronts that belong together. Default:
            all different.

    Returns:
        The data, in the user's orientation.

    Raises:
        ValueError: If the objectives of the fronts differ or a shape is wrong.
    """
    named = labelled(fronts, labels)
    first = next(iter(named.values()))
    if ref_point is None:
        ref_point = next((f.ref_point for f in named.values() if f.ref_point is not None), None)
    # One reference point for all: volumes under different ones cannot be compared.
    ref = None if ref_point is None else first.replace(ref_point=ref_point).ref_point
    truth = None
    if exact is not None:
        points = exact.points if isinstance(exact, Front) else np.asarray(as_points(exact, name="exact"))
        if points.shape[1] != first.n_obj:
            raise MooptError(f"exact has shape {points.shape}, but the fronts have {first.n_obj} objectives")
        truth = _series("known front", first.replace(points=points, solutions=None), ref, -1)
    colors = range(len(named)) if colors is None else colors
    if len(colors) != len(named):
        raise MooptError(f"{len(colors)} colors for {len(named)} fronts")
    return FrontData(
        series=tuple(_series(*item, ref, color) for item, color in zip(named.items(), colors, strict=True)),
        exact=truth,
        names=first.names,
        units=first.units,
        directions=first.directions,
        ref_point=None if ref is None else ref * first.signs,
    )


def _series(label: str, front: Front, ref: FloatArray | None, color: int) -> FrontSeries:
    from moopt.kernels import hypervolume, is_non_dominated

    best = is_non_dominated(front.points) if len(front) else np.zeros(0, dtype=bool)
    rows = np.flatnonzero(best)
    rows = rows[np.lexsort(front.points[rows].T[::-1])]
    points = front.points[rows]
    stairs = area = None
    if front.n_obj == 2 and len(points):
        stairs = _stairs(points, ref) * front.signs
        area = None if ref is None else _area(points, ref) * front.signs
    return FrontSeries(
        label=label,
        points=points * front.signs,
        ids=tuple(front.solutions[int(i)] for i in rows),
        dominated=front.points[~best] * front.signs,
        staircase=stairs,
        area=area,
        hypervolume=None if ref is None else float(hypervolume(points, ref)),
        color=color,
    )


def _stairs(points: FloatArray, ref: FloatArray | None) -> FloatArray:
    """Return the corners of the staircase of ``points``, sorted by the first objective, larger is better."""
    x, y = points.T
    corners = np.column_stack([np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]])
    if ref is None:
        return corners
    start, end = (min(ref[0], x[0]), y[0]), (x[-1], min(ref[1], y[-1]))
    return np.concatenate([[start], corners, [end]])


def _area(points: FloatArray, ref: FloatArray) -> FloatArray:
    above = points[(points > ref).all(axis=1)]
    if len(above) == 0:
        return np.empty((0, 2))
    return np.concatenate([[ref], _stairs(above, ref)])


def plot_front(
    fronts: Fronts | FrontData,
    *,
    ax: "Axes | None" = None,
    labels: Sequence[str] | None = None,
    exact: "Front | ArrayLike | None" = None,
    ref_point: ArrayLike | None = None,
    title: str | None = None,
) -> "Axes":
    """Draw fronts of two objectives: points, staircase, dominated area, and the exact front if it is known.

    Axes are in the user's orientation and say which way is better. A reference point far away from all points
    is named but not shown, so that the points keep their room.

    Args:
        fronts: One front, several, several by label, or the result of :func:`front_data`.
        ax: Axes to draw on. Default: those of a new figure.
        labels: Legend entries if ``fronts`` is a sequence.
        exact: The true front, or its points (r, 2), larger is better.
        ref_point: Reference point (2,), larger is better. Default: the first one a front has.
        title: Title of the axes.

    Returns:
        The axes.

    Raises:
        ValueError: If there are not two objectives, or the objectives of the fronts differ.
    """
    data = (
        fronts if isinstance(fronts, FrontData) else front_data(fronts, labels=labels, exact=exact, ref_point=ref_point)
    )
    if len(data.names) != 2:
        raise MooptError(
            f"plot_front draws two objectives, got {len(data.names)}: {', '.join(data.names)}; "
            "use plot_pairs or plot_parallel"
        )
    ax = style.new_axes() if ax is None else ax
    style.style_axes(ax)
    show_ref = _set_limits(ax, data)
    if data.exact is not None:
        _draw_exact(ax, data.exact)
    for index, series in enumerate(data.series):
        _draw_series(ax, series, index, len(data.series))
    if data.ref_point is not None:
        _draw_ref(ax, data.ref_point, shown=show_ref)
    ax.set_xlabel(style.axis_label(data.names[0], data.units[0], data.directions[0]), fontsize=style.LABEL)
    ax.set_ylabel(style.axis_label(data.names[1], data.units[1], data.directions[1]), fontsize=style.LABEL)
    if title:
        ax.set_title(title, fontsize=style.TITLE, loc="left", color=style.INK)
    style.legend(ax)
    return ax


def legend_text(series: FrontSeries, *, with_volume: bool = True) -> str:
    """Return the legend entry of a front: its label, or its size, and its hypervolume."""
    n = len(series.points)
    text = series.label or f"{n} {'point' if n == 1 else 'points'}"
    if with_volume and series.hypervolume is not None:
        text += f"  (HV {style.number(series.hypervolume)})"
    return text


def _set_limits(ax: "Axes", data: FrontData) -> bool:
    """Give all points room, and the reference point too if it is near; return whether it is."""
    everything = [s.points for s in data.series] + [s.dominated for s in data.series]
    if data.exact is not None:
        everything.append(data.exact.points)
    points = np.concatenate(everything)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) == 0:
        points = np.zeros((1, 2)) if data.ref_point is None else data.ref_point[None]
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0) * 0.5)
    shown = False
    if data.ref_point is not None:
        ref = data.ref_point
        shown = bool(((ref >= low - 0.9 * span) & (ref <= high + 0.9 * span)).all())
        if shown:
            low, high = np.minimum(low, ref), np.maximum(high, ref)
            span = np.where(high > low, high - low, span)
    ax.set_xlim(low[0] - 0.07 * span[0], high[0] + 0.07 * span[0])
    ax.set_ylim(low[1] - 0.07 * span[1], high[1] + 0.07 * span[1])
    return shown


def _draw_exact(ax: "Axes", series: FrontSeries) -> None:
    if series.staircase is None:
        return
    ax.plot(*series.staircase.T, color=style.EXACT, lw=1.0, ls=(0, (4, 2)), zorder=2)
    ax.scatter(
        series.points[:, 0], series.points[:, 1], s=62, facecolors="none", edgecolors=style.EXACT,
        linewidths=1.0, zorder=2.5, label=legend_text(series),
    )  # fmt: skip


def _draw_series(ax: "Axes", series: FrontSeries, index: int, count: int) -> None:
    color = style.color_of(series.color)
    if len(series.dominated):
        ax.scatter(
            series.dominated[:, 0],
            series.dominated[:, 1],
            s=14,
            color=color,
            alpha=0.22,
            linewidths=0,
            zorder=3,
        )
    # More than three areas over each other mix to mud: the staircases alone say it better.
    if series.area is not None and len(series.area) and count <= 3:
        ax.fill(*series.area.T, color=color, alpha=0.12 if count == 1 else 0.06, linewidth=0, zorder=1)
    if series.staircase is not None:
        ax.plot(*series.staircase.T, color=color, lw=1.2, alpha=0.75, zorder=4)
    ax.scatter(
        series.points[:, 0], series.points[:, 1], s=style.size_of(index, count, 34), color=color,
        marker=style.marker_of(index), edgecolors="white", linewidths=0.7, zorder=5,
        label=legend_text(series),
    )  # fmt: skip


def _draw_ref(ax: "Axes", ref: FloatArray, *, shown: bool) -> None:
    place = f"({style.number(ref[0])}, {style.number(ref[1])})"
    if shown:
        ax.scatter(
            [ref[0]], [ref[1]], s=42, color=style.INK, marker="+", linewidths=1.4, zorder=5,
            label=f"reference {place}"
        )  # fmt: skip
    else:
        ax.plot([], [], ls="none", label=f"reference {place}, off the plot")
