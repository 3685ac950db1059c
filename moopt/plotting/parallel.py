"""Any number of objectives: one vertical axis each, one line a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto.arrays import FloatArray
from moopt.pareto.front import Front
from moopt.plotting import style
from moopt.plotting.fronts import FrontData, Fronts, front_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class ParallelData:
    """What is drawn: the non-dominated points, scaled to 1 (best) .. 0 (worst) in each objective."""

    labels: tuple[str, ...]
    lines: tuple[FloatArray, ...]
    """For each front the scaled points (k, m); 0.5 where an objective is constant."""
    best: FloatArray
    """Best value of each objective (m,) over all fronts, in the user's orientation."""
    worst: FloatArray
    """Worst value of each objective (m,), likewise."""
    names: tuple[str, ...]
    units: tuple[str, ...]
    directions: tuple[str, ...]
    colors: tuple[int, ...]
    """Number of the colour of each front; -1 for the exact front."""


def parallel_data(
    fronts: Fronts | FrontData,
    *,
    labels: Sequence[str] | None = None,
    exact: "Front | ArrayLike | None" = None,
) -> ParallelData:
    """Compute what parallel coordinates of fronts show.

    Args:
        fronts: One front, several, several by label, or the result of :func:`front_data`.
        labels: Legend entries if ``fronts`` is a sequence.
        exact: The true front, or its points (r, m), larger is better; it takes part in the scaling.

    Returns:
        The data; the exact front is the last of the lines.

    Raises:
        ValueError: If the objectives of the fronts differ.
    """
    data = fronts if isinstance(fronts, FrontData) else front_data(fronts, labels=labels, exact=exact)
    series = [*data.series, *([data.exact] if data.exact is not None else [])]
    sign = np.array([1.0 if d == "max" else -1.0 for d in data.directions])
    points = np.concatenate([s.points * sign for s in series])
    finite = points[np.isfinite(points).all(axis=1)]
    if len(finite) == 0:
        finite = np.zeros((1, len(sign)))
    low, high = finite.min(axis=0), finite.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    lines = [np.where(high > low, (s.points * sign - low) / span, 0.5) for s in series]
    return ParallelData(
        labels=tuple(s.label for s in series),
        lines=tuple(lines),
        best=high * sign,
        worst=low * sign,
        names=data.names,
        units=data.units,
        directions=data.directions,
        colors=tuple(s.color for s in series),
    )


def plot_parallel(
    fronts: Fronts | FrontData | ParallelData,
    *,
    ax: "Axes | None" = None,
    labels: Sequence[str] | None = None,
    exact: "Front | ArrayLike | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw fronts in parallel coordinates: up is better on every axis, minimised objectives included.

    A single front is coloured by its first objective, several fronts by front.

    Args:
        fronts: One front, several, several by label, or the result of :func:`parallel_data` or
            :func:`front_data`.
        ax: Axes to draw on. Default: those of a new figure.
        labels: Legend entries if ``fronts`` is a sequence.
        exact: The true front, or its points (r, m), larger is better.
        title: Title of the axes.

    Returns:
        The axes.

    Raises:
        ValueError: If the objectives of the fronts differ.
    """
    data = fronts if isinstance(fronts, ParallelData) else parallel_data(fronts, labels=labels, exact=exact)
    m = len(data.names)
    ax = style.new_axes(max(4.5, 1.25 * m + 1.0), 3.8) if ax is None else ax
    style.style_axes(ax, grid=False)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    exact_last = data.colors[-1] == -1
    count = len(data.labels) - exact_last
    alpha = float(np.clip(25.0 / max(sum(map(len, data.lines[:count])), 1), 0.35, 0.85))
    for k in range(m):
        ax.axvline(k, color="#CFCFCF", lw=1.0, zorder=1)
    if exact_last:
        _draw_lines(ax, data.lines[-1], [style.EXACT] * len(data.lines[-1]), 0.35, 2, data.labels[-1])
    for index in range(count):
        lines = data.lines[index]
        _draw_lines(
            ax,
            lines,
            _colors(lines, data.colors[index], alone=count == 1),
            alpha,
            3 + index,
            data.labels[index],
        )
    _draw_ends(ax, data)
    ax.set_xlim(-0.25, m - 0.75)
    ax.set_ylim(-0.02, 1.02)
    ax.set_yticks([])
    colored = f"   (colour: {data.names[0]})" if count == 1 else ""
    ax.set_ylabel(f"better \N{RIGHTWARDS ARROW}{colored}", fontsize=style.LABEL, color=style.INK)
    if title:
        ax.set_title(title, fontsize=style.TITLE, loc="left", color=style.INK, pad=20)
    if len(data.labels) > 1:
        style.legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.07), ncols=min(len(data.labels), 4))
    return ax


def _colors(lines: FloatArray, color: int, *, alone: bool) -> list[object]:
    if not alone:
        return [style.color_of(color)] * len(lines)
    from matplotlib import colormaps

    # The light end of the map is hard to see on white.
    return [colormaps[style.COLORMAP](0.85 * float(np.clip(v, 0.0, 1.0))) for v in lines[:, 0]]


def _draw_lines(
    ax: "Axes", lines: FloatArray, colors: Sequence[object], alpha: float, order: float, label: str
) -> None:
    for row, (line, color) in enumerate(zip(lines, colors, strict=True)):
        ax.plot(
            range(len(line)), line, color=color, alpha=alpha, lw=1.3, marker="o", ms=3.2, mew=0, zorder=order,
            label=(label or None) if row == 0 else None,
        )  # fmt: skip


def _draw_ends(ax: "Axes", data: ParallelData) -> None:
    """Name each axis below and write its best value above and its worst below, in the user's orientation."""
    texts = []
    for k, name in enumerate(data.names):
        unit = f" [{data.units[k]}]" if data.units[k] else ""
        texts.append(f"{style.number(data.worst[k], 4)}\n{name}{unit}\n({data.directions[k]})")
        ax.annotate(
            style.number(data.best[k], 4), (k, 1.0), (0, 7), textcoords="offset points", ha="center",
            va="bottom", fontsize=style.TICK, color=style.INK,
        )  # fmt: skip
    ax.set_xticks(range(len(data.names)), texts, fontsize=style.TICK)
    ax.tick_params(axis="x", length=0)
