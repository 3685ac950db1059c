"""Three or more objectives: every pair of them in a triangle of small panels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from moopt.pareto.front import Front
from moopt.plotting import style
from moopt.plotting.fronts import FrontData, Fronts, front_data, legend_text
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


def plot_pairs(
    fronts: Fronts | FrontData,
    *,
    figure: "Figure | SubFigure | None" = None,
    labels: Sequence[str] | None = None,
    exact: "Front | ArrayLike | None" = None,
    ref_point: ArrayLike | None = None,
    title: str | None = None,
) -> "Figure | SubFigure":
    """Draw fronts of m >= 2 objectives as a triangle of scatter plots, one for each pair.

    Points dominated in all m objectives together are faint; a projection shows no dominance.

    Args:
        fronts: One front, several, several by label, or the result of :func:`front_data`.
        figure: Empty figure or sub-figure to draw in. Default: a new one.
        labels: Legend entries if ``fronts`` is a sequence.
        exact: The true front, or its points (r, m), larger is better.
        ref_point: Reference point (m,), larger is better, for the hypervolumes of the legend. Default: the
            first one a front has.
        title: Title of the figure.

    Returns:
        The figure.

    Raises:
        ValueError: If there is only one objective, or the objectives of the fronts differ.
    """
    data = (
        fronts if isinstance(fronts, FrontData) else front_data(fronts, labels=labels, exact=exact, ref_point=ref_point)
    )
    m = len(data.names)
    if m < 2:
        raise MooptError("plot_pairs needs at least two objectives")
    size = 2.1 if m <= 4 else 1.6
    figure = style.new_figure(size * (m - 1) + 1.0, size * (m - 1) + 0.8) if figure is None else figure
    grid = figure.add_gridspec(m - 1, m - 1)
    panels: dict[tuple[int, int], Axes] = {}
    for row in range(1, m):
        for column in range(row):
            ax = figure.add_subplot(
                grid[row - 1, column],
                sharex=panels.get((column + 1, column)),
                sharey=panels.get((row, 0)),
            )
            panels[row, column] = ax
            _draw_panel(ax, data, row, column)
            ax.label_outer()
    if title:
        figure.suptitle(title, fontsize=style.TITLE, x=0.01, ha="left", color=style.INK)
    _draw_legend(figure, panels[1, 0], m)
    return figure


def _draw_panel(ax: "Axes", data: FrontData, row: int, column: int) -> None:
    style.style_axes(ax)
    ax.margins(0.09)
    if data.exact is not None:
        ax.scatter(
            data.exact.points[:, column], data.exact.points[:, row], s=34 if len(data.names) <= 4 else 26,
            facecolors="none", edgecolors=style.EXACT, linewidths=0.8, zorder=2,
            label=legend_text(data.exact),
        )  # fmt: skip
    for index, series in enumerate(data.series):
        color = style.color_of(series.color)
        ax.scatter(
            series.dominated[:, column],
            series.dominated[:, row],
            s=8,
            color=color,
            alpha=0.2,
            linewidths=0,
            zorder=3,
        )
        ax.scatter(
            series.points[:, column], series.points[:, row], s=style.size_of(index, len(data.series), 20 if
            len(data.names) <= 4 else 9), color=color, marker=style.marker_of(index),
            edgecolors="white", linewidths=0.5, zorder=4, label=legend_text(series),
        )  # fmt: skip
    for k, set_label in ((column, ax.set_xlabel), (row, ax.set_ylabel)):
        # Panels of many objectives are narrow: the direction goes onto a second line.
        gap = "   " if len(data.names) <= 3 else "\n"
        text = style.axis_label(data.names[k], data.units[k], data.directions[k], gap=gap)
        set_label(text, fontsize=style.LABEL - 1)


def _draw_legend(figure: "Figure | SubFigure", panel: "Axes", m: int) -> None:
    """Put the legend into the empty upper triangle."""
    if m == 2:
        style.legend(panel)
        return
    handles, texts = panel.get_legend_handles_labels()
    figure.legend(
        handles,
        texts,
        loc="upper right",
        fontsize=style.NOTE,
        labelcolor=style.INK,
        frameon=False,
        borderaxespad=1.0,
    )
