"""Figures of particle methods: particles in a plane of interest, error against sample size, two sides of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto.arrays import FloatArray
from moopt.plotting import style
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class ParticleData:
    """Particles in the plane of two directions."""

    points: FloatArray
    """Coordinates (n, 2) along the two directions."""
    signs: FloatArray
    """+1 or -1 (n,)."""
    share: float
    """Share of the particles' squared length that lies in the plane."""
    radius: float
    """Root mean square length of the particles."""


def particle_data(particles: ArrayLike, basis: ArrayLike, signs: ArrayLike | None = None) -> ParticleData:
    """Project particles onto two directions.

    Args:
        particles: (n, D); coordinates beyond the basis, such as a bias, are left out.
        basis: Two orthonormal directions (2, d), d <= D; of more rows the first two count, of one a second is
            made up from the largest rest.
        signs: Output signs (n,); default all +1.

    Raises:
        ValueError: If shapes do not fit.

    Examples:
        >>> data = particle_data([[3.0, 0.0, 4.0, 9.9]], [[1, 0, 0], [0, 1, 0]])
        >>> data.points.tolist(), round(data.share, 2), data.radius
        ([[3.0, 0.0]], 0.36, 5.0)
    """
    rows, span = np.asarray(particles, dtype=np.float64), np.atleast_2d(np.asarray(basis, dtype=np.float64))
    if rows.ndim != 2 or len(rows) == 0 or span.shape[1] > rows.shape[1]:
        raise MooptError(f"particles must be (n, D) and basis (2, d <= D), got {rows.shape} and {span.shape}")
    weights = rows[:, : span.shape[1]]
    if len(span) == 1:
        rest = weights - (weights @ span.T) @ span
        span = np.concatenate([span, np.linalg.svd(rest, full_matrices=False)[2][:1]])
    plane = weights @ span[:2].T
    total = float((weights**2).sum())
    way = np.ones(len(rows)) if signs is None else np.asarray(signs, dtype=np.float64)
    if way.shape != (len(rows),):
        raise MooptError(f"signs must be ({len(rows)},), got {way.shape}")
    share = float((plane**2).sum()) / total if total > 0 else 0.0
    return ParticleData(plane, way, share, float(np.sqrt(total / len(rows))))


def plot_particles(data: ParticleData, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw particles in a plane; the circle has their root mean square length, so a particle on it lies in the plane.

    Args:
        data: From :func:`particle_data`.
        ax: Axes to draw on. Default: those of a new figure.
        title: Title of the axes.
    """
    from matplotlib.patches import Circle

    ax = style.new_axes(4.4, 4.4) if ax is None else ax
    style.style_axes(ax)
    ax.add_patch(Circle((0, 0), data.radius, fill=False, ec=style.FAINT, lw=0.9, ls="--"))
    for index, (sign, label) in enumerate(((1, "output sign +"), (-1, "output sign \N{MINUS SIGN}"))):
        mine = data.points[np.sign(data.signs) == sign]
        if len(mine):
            ax.scatter(
                mine[:, 0], mine[:, 1], s=16, alpha=0.75, color=style.color_of(index), marker=style.marker_of(index),
                linewidths=0, label=label,
            )  # fmt: skip
    reach = 1.08 * max(data.radius, float(np.abs(data.points).max()), 1e-12)
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_xlabel("first direction", fontsize=style.LABEL)
    ax.set_ylabel("second direction", fontsize=style.LABEL)
    note = f"{100 * data.share:.0f} % of squared length in the plane"
    ax.text(0.02, 0.98, note, transform=ax.transAxes, va="top", fontsize=style.NOTE, color=style.INK)
    if title:
        ax.set_title(title, fontsize=style.TITLE, loc="left", color=style.INK)
    style.legend(ax, loc="upper left", bbox_to_anchor=(0.0, -0.13), ncols=2, borderaxespad=0.0)
    return ax


@dataclass(frozen=True)
class SizeSeries:
    """One line: a value against a size."""

    label: str
    sizes: FloatArray
    mean: FloatArray
    error: FloatArray
    """Standard error of the mean; 0 for one value."""
    n: int
    """Values per point, at least."""


def size_data(values: Mapping[str, Mapping[float, Sequence[float]]]) -> tuple[SizeSeries, ...]:
    """Average repeated values at every size.

    Args:
        values: For every label, size to the values of the seeds.

    Raises:
        ValueError: If a label has nothing.

    Examples:
        >>> size_data({"d = 2": {100: [1.0, 3.0], 50: [4.0]}})[0].mean.tolist()
        [4.0, 2.0]
    """
    series = []
    for label, table in values.items():
        sizes = sorted(table)
        if not sizes or not all(len(table[s]) for s in sizes):
            raise MooptError(f"{label!r} has no values")
        columns = [np.asarray(table[s], dtype=np.float64) for s in sizes]
        error = [c.std(ddof=1) / np.sqrt(len(c)) if len(c) > 1 else 0.0 for c in columns]
        mean = np.array([c.mean() for c in columns])
        series.append(SizeSeries(label, np.array(sizes, float), mean, np.array(error), min(map(len, columns))))
    return tuple(series)


def plot_sizes(
    series: Sequence[SizeSeries],
    *,
    ax: "Axes | None" = None,
    size_name: str = "training rows n",
    value_name: str = "test error",
    level: float | None = None,
    log_values: bool = False,
    title: str | None = None,
) -> "Axes":
    """Draw values against sizes on a logarithmic axis, one line each, with bands of two standard errors.

    Args:
        series: From :func:`size_data`.
        ax: Axes to draw on. Default: those of a new figure.
        size_name: Name of the sizes.
        value_name: Name of the values.
        level: A horizontal line, such as a threshold.
        log_values: Whether the values have a logarithmic axis too.
        title: Title of the axes.
    """
    from matplotlib.ticker import NullFormatter

    ax = style.new_axes() if ax is None else ax
    style.style_axes(ax)
    for index, line in enumerate(series):
        color = style.color_of(index)
        ax.plot(
            line.sizes, line.mean, color=color, lw=1.7, marker=style.marker_of(index), ms=4, mew=0, label=line.label
        )
        ax.fill_between(
            line.sizes, line.mean - 2 * line.error, line.mean + 2 * line.error, color=color, alpha=0.16, linewidth=0
        )
    if level is not None:
        ax.axhline(level, color=style.FAINT, lw=0.9, ls="--")
    ax.set_xscale("log")
    if log_values:
        ax.set_yscale("log")
    sizes = sorted({float(s) for line in series for s in line.sizes})
    if len(sizes) <= 8:
        ax.set_xticks(sizes)
    ax.xaxis.set_major_formatter(style.count_formatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(size_name, fontsize=style.LABEL)
    ax.set_ylabel(value_name, fontsize=style.LABEL)
    if title:
        ax.set_title(title, fontsize=style.TITLE, loc="left", color=style.INK)
    style.legend(ax)
    return ax


def plot_sides(
    values: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    ax: "Axes | None" = None,
    value_name: str = "steps",
    never: str = "never",
    title: str | None = None,
) -> "Axes":
    """Draw the seeds of several settings as dots, one row a setting, one colour a side; NaN stands at the right.

    Args:
        values: For every setting, side to the values of its seeds; NaN where the value does not exist.
        ax: Axes to draw on. Default: those of a new figure.
        value_name: Name of the values; their axis is logarithmic.
        never: What NaN means.
        title: Title of the axes.

    Raises:
        ValueError: If no value is finite and positive.
    """
    ax = style.new_axes(5.8, 0.9 + 0.36 * len(values)) if ax is None else ax
    style.style_axes(ax)
    flat = np.array([v for sides in values.values() for seeds in sides.values() for v in seeds], dtype=np.float64)
    finite = flat[np.isfinite(flat) & (flat > 0)]
    if len(finite) == 0:
        raise MooptError(f"there is no value of {value_name!r} to draw")
    edge = float(finite.max()) * 1.8
    sides = list(dict.fromkeys(side for table in values.values() for side in table))
    for row, table in enumerate(values.values()):
        for index, side in enumerate(sides):
            seeds = np.asarray(table.get(side, []), dtype=np.float64)
            height = row + 0.26 * (index - (len(sides) - 1) / 2) + np.linspace(-0.06, 0.06, len(seeds))
            ax.scatter(
                np.where(np.isfinite(seeds), seeds, edge), height, s=20, color=style.color_of(index), linewidths=0,
                marker=style.marker_of(index), alpha=0.8, label=side if row == 0 else None,
            )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yticks(range(len(values)), list(values))
    ax.invert_yaxis()
    if np.isnan(flat).any():
        ax.axvline(edge / 1.3, color=style.FAINT, lw=0.8, ls=":")
        ax.text(edge, -0.75, never, ha="center", va="bottom", fontsize=style.NOTE, color=style.INK)
    ax.set_xlabel(value_name, fontsize=style.LABEL)
    if title:
        ax.set_title(title, fontsize=style.TITLE, loc="left", color=style.INK, pad=14)
    style.legend(ax, loc="upper left", bbox_to_anchor=(0.0, -0.12), ncols=2, borderaxespad=0.0)
    return ax
