"""How every figure looks: colours, markers, axes, labels."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which stay apart under the common kinds of colour blindness; yellow is too faint on
# paper.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5C4B8A", "#333333")
NEUTRAL = 7
"""Number of the colour of what belongs to all series."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
EXACT = "#6E6E6E"
INK = "#222222"
FAINT = "#9A9A9A"
COLORMAP = "viridis"

TITLE, LABEL, TICK, NOTE = 11.0, 10.0, 8.5, 8.5


def color_of(index: int) -> str:
    """Return the colour of series ``index``."""
    return PALETTE[index % len(PALETTE)]


def marker_of(index: int) -> str:
    """Return the marker of series ``index``."""
    return MARKERS[index % len(MARKERS)]


def size_of(index: int, count: int, smallest: float) -> float:
    """Return a marker area: later series are smaller, so that equal points of earlier ones still show."""
    return smallest * (1.0 + 0.45 * min(count - 1 - index, 5))


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of ``width`` by ``height`` inches that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def new_axes(width: float = 5.4, height: float = 4.2) -> "Axes":
    """Return the axes of a new figure."""
    return new_figure(width, height).add_subplot()


def style_axes(ax: "Axes", *, grid: bool = True) -> None:
    """Leave two thin spines, small ticks and a faint grid behind the data."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
        ax.spines[side].set_linewidth(0.8)
    ax.tick_params(labelsize=TICK, color=FAINT, labelcolor=INK, length=3, width=0.8)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(visible=True, color="#E6E6E6", linewidth=0.6)


def axis_label(name: str, unit: str = "", direction: str | None = None, *, gap: str = "   ") -> str:
    """Return the text of an axis: name, unit, and an arrow towards the better end."""
    text = f"{name} [{unit}]" if unit else name
    if direction is None:
        return text
    arrow = "(better \N{RIGHTWARDS ARROW})" if direction == "max" else "(\N{LEFTWARDS ARROW} better)"
    return text + gap + arrow


def legend(ax: "Axes", **kwargs: Any) -> None:
    """Draw the legend if anything has a label: inside while it is small, below the axes when it is not."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        settings: dict[str, Any] = {"fontsize": NOTE, "labelcolor": INK, "handletextpad": 0.5}
        if len(handles) > 4:
            settings |= {
                "loc": "upper left",
                "bbox_to_anchor": (0.0, -0.18),
                "ncols": 2,
                "borderaxespad": 0.0,
            }
        settings |= kwargs
        box = ax.legend(handles, labels, frameon=True, fancybox=False, framealpha=0.9, edgecolor="none", **settings)
        box.set_zorder(10)


def count_formatter() -> Any:
    """Return a tick formatter for counts: 0, 500k, 1.5M."""
    from matplotlib.ticker import FuncFormatter

    def text(value: float, _: object = None) -> str:
        for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= size:
                return f"{value / size:.4g}{letter}"
        return f"{value:.4g}"

    return FuncFormatter(text)


def number(value: float, digits: int = 5) -> str:
    """Return a short form of a number for legends and axis ends."""
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-3):
        digits = 3
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}")
