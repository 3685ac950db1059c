"""Fronts: exact data, and the artists of the drawings."""

import subprocess
import sys

import numpy as np
import pytest

from moopt.pareto import Front, hypervolume
from moopt.plotting import front_data, parallel_data, plot_front, plot_pairs, plot_parallel


def plane(**kwargs):
    settings = {
        "names": ["gain", "cost"],
        "units": ["", "EUR"],
        "directions": ["max", "min"],
        "ref_point": [0, 10],
        **kwargs,
    }
    return Front.from_user([[3.0, 6.0], [1.0, 2.0], [0.5, 5.0], [2.0, 3.0]], **settings)


def space(m=3, n=20, seed=0, **kwargs):
    points = np.random.default_rng(seed).random((n, m))
    return Front(points / np.linalg.norm(points, axis=1, keepdims=True), **kwargs)


def shoelace(corners):
    x, y = corners.T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def test_data_of_the_plane():
    data = front_data(plane(solutions=["a", "b", "c", "d"]), exact=[[1.0, -1.0]])
    (series,) = data.series
    assert series.points.tolist() == [[1, 2], [2, 3], [3, 6]]
    assert series.ids == ("b", "d", "a")
    assert series.dominated.tolist() == [[0.5, 5]]
    assert series.staircase.tolist() == [[0, 2], [1, 2], [1, 3], [2, 3], [2, 6], [3, 6], [3, 10]]
    assert series.area.tolist() == [[0, 10], *series.staircase.tolist()]
    assert series.hypervolume == shoelace(series.area) == 8 + 7 + 4
    assert data.ref_point.tolist() == [0, 10]
    assert (data.names, data.units, data.directions) == (("gain", "cost"), ("", "EUR"), ("max", "min"))
    assert data.exact.points.tolist() == [[1, 1]]
    assert data.exact.hypervolume == 9


def test_data_without_reference_point():
    (series,) = front_data(plane(ref_point=None)).series
    assert series.staircase.tolist() == [[1, 2], [1, 3], [2, 3], [2, 6], [3, 6]]
    assert series.area is None
    assert series.hypervolume is None
    (one,) = front_data(Front([[1.0, 2.0]])).series
    assert one.staircase.tolist() == [[1, 2]]


@pytest.mark.parametrize("seed", range(10))
def test_area_is_the_hypervolume(seed):
    rng = np.random.default_rng(seed)
    directions = rng.choice(["max", "min"], 2).tolist()
    front = Front(rng.normal(size=(30, 2)), directions=directions, ref_point=[-0.5, -0.2])
    (series,) = front_data(front).series
    assert shoelace(series.area) == pytest.approx(hypervolume(front.points, [-0.5, -0.2]))
    assert series.hypervolume == pytest.approx(front.hypervolume())


def test_one_reference_point_for_all_fronts():
    first, second = Front([[1.0, 1.0]]), Front([[2.0, 2.0]], ref_point=[0.0, 0.0])
    data = front_data({"a": first, "b": second})
    assert [s.hypervolume for s in data.series] == [1.0, 4.0]
    data = front_data([first, second], labels=["a", "b"], ref_point=[-1.0, -1.0], colors=[0, 0])
    assert [s.hypervolume for s in data.series] == [4.0, 9.0]
    assert [s.color for s in data.series] == [0, 0]
    assert [s.label for s in front_data([first, second]).series] == ["front 1", "front 2"]


def test_area_of_points_outside_the_reference_point_is_empty():
    (series,) = front_data(Front([[1.0, 2.0]], ref_point=[5.0, 5.0])).series
    assert series.area.shape == (0, 2)
    assert series.hypervolume == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: front_data([]), "no front"),
        (lambda: front_data([plane(), plane()], labels=["a"]), "different labels"),
        (lambda: front_data([plane(), plane()], labels=["a", "a"]), "different labels"),
        (lambda: front_data([plane(), plane(names=["gain", "price"])]), "'front 2' has objectives"),
        (lambda: front_data([plane()], colors=[1, 2]), "2 colors for 1"),
        (lambda: front_data(plane(), exact=[[1, 2, 3]]), "2 objectives"),
        (lambda: front_data(plane(), ref_point=[1, 2, 3]), "ref_point has shape"),
        (lambda: plot_front(space()), "plot_pairs or plot_parallel"),
        (lambda: plot_pairs(Front([[1.0]])), "at least two"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def texts(legend):
    return [t.get_text() for t in legend.get_texts()]


def test_drawing_of_the_plane():
    ax = plot_front(plane(), exact=[[1.0, -1.0]], title="t")
    assert ax.get_xlabel() == "gain   (better →)"
    assert ax.get_ylabel() == "cost [EUR]   (← better)"
    assert ax.get_title(loc="left") == "t"
    assert texts(ax.get_legend()) == ["known front  (HV 9)", "3 points  (HV 19)", "reference (0, 10)"]
    drawn = [c.get_offsets().tolist() for c in ax.collections]
    assert [[1, 1]] in drawn
    assert [[0.5, 5]] in drawn
    assert [[1, 2], [2, 3], [3, 6]] in drawn
    assert [[0, 10]] in drawn
    assert [line.get_xydata().tolist() for line in ax.lines][1][0] == [0, 2]
    assert len(ax.patches) == 1
    for low, high, values in ((*ax.get_xlim(), [0, 3]), (*ax.get_ylim(), [1, 10])):
        assert low < min(values)
        assert high > max(values)


def test_far_reference_point_is_named_but_not_shown():
    ax = plot_front(plane(ref_point=[-1000, 10]))
    assert texts(ax.get_legend())[-1] == "reference (\N{MINUS SIGN}1000, 10), off the plot"
    assert ax.get_xlim()[0] > -5


def test_many_fronts_share_one_drawing():
    fronts = {f"run {i}": Front(np.random.default_rng(i).random((5, 2)), ref_point=[0, 0]) for i in range(6)}
    ax = plot_front(fronts)
    assert len(texts(ax.get_legend())) == 7
    assert (
        len(
            {
                tuple(c.get_facecolor()[0])
                for c in ax.collections
                if len(c.get_facecolor()) and c.get_label()[:3] == "run"
            }
        )
        == 6
    )
    assert not ax.patches
    again = plot_front(front_data(fronts), ax=ax)
    assert again is ax


@pytest.mark.parametrize(
    "front",
    [
        Front(np.empty((0, 2))),
        Front(np.empty((0, 2)), ref_point=[0, 0]),
        Front([[1.0, 2.0]]),
        Front([[1.0, 2.0]] * 3, ref_point=[1.0, 2.0]),
        Front([[np.inf, 2.0], [1.0, 3.0]]),
    ],
)
def test_odd_fronts_can_be_drawn_and_saved(front, tmp_path):
    plot_front(front).figure.savefig(tmp_path / "f.png")
    plot_pairs(front).savefig(tmp_path / "f.pdf")
    plot_parallel(front).figure.savefig(tmp_path / "f.svg")
    assert {p.suffix for p in tmp_path.iterdir()} == {".png", ".pdf", ".svg"}


def test_pairs_show_every_pair_once():
    front = space(4, names=list("abcd"), directions=["max", "min", "max", "max"])
    figure = plot_pairs(front, exact=space(4, seed=1).points, title="t")
    assert len(figure.axes) == 6
    expected = front_data(front).series[0].points
    panels = set()
    for ax in figure.axes:
        place = ax.get_subplotspec()
        x, y = place.colspan.start, place.rowspan.start + 1
        panels.add((x, y))
        assert ax.collections[-1].get_offsets().tolist() == expected[:, [x, y]].tolist()
        # Inner panels share the labels of the outer ones.
        assert ax.get_xlabel()[:1] == ("abcd"[x] if y == 3 else "")
        assert ax.get_ylabel()[:1] == ("abcd"[y] if x == 0 else "")
    assert panels == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert figure.get_suptitle() == "t"
    assert len(figure.legends) == 1


def test_parallel_data():
    data = parallel_data(plane(), exact=[[5.0, -2.0]])
    assert data.best.tolist() == [5, 2]
    assert data.worst.tolist() == [1, 6]
    assert data.lines[0].tolist() == [[0, 1], [0.25, 0.75], [0.5, 0]]
    assert data.lines[1].tolist() == [[1, 1]]
    assert data.labels == ("", "known front")
    assert data.colors == (0, -1)
    flat = parallel_data(Front([[1.0, 5.0, 0.0], [2.0, 5.0, -1.0]]))
    assert flat.lines[0].tolist() == [[0, 0.5, 1], [1, 0.5, 0]]


def test_parallel_drawing():
    ax = plot_parallel(plane(), exact=[[5.0, -2.0]], title="t")
    lines = [line.get_ydata().tolist() for line in ax.lines if len(line.get_ydata()) == 2 and line.get_marker() == "o"]
    assert lines == [[1, 1], [0, 1], [0.25, 0.75], [0.5, 0]]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1\ngain\n(max)", "6\ncost [EUR]\n(min)"]
    assert [t.get_text() for t in ax.texts] == ["5", "2"]
    assert ax.get_ylabel() == "better →   (colour: gain)"
    two = plot_parallel({"a": space(5), "b": space(5, seed=2)})
    assert texts(two.get_legend()) == ["a", "b"]
    assert two.get_ylabel() == "better →"


def test_front_plot_picks_the_drawing():
    assert len(plane().plot().figure.axes) == 1
    assert len(space(3).plot().axes) == 3


def test_no_pyplot_and_no_settings_are_touched():
    code = (
        "import sys, matplotlib; before = dict(matplotlib.rcParams); from moopt.pareto import Front; "
        "from moopt.plotting import plot_front, plot_pairs, plot_parallel, plot_curve; import io; "
        "f = Front([[1., 2.], [2., 1.]], ref_point=[0, 0]); plot_front(f).figure.savefig(io.BytesIO()); "
        "plot_pairs(f); "
        "plot_parallel(f); plot_curve(([0, 1], [1., 2.])); "
        "assert dict(matplotlib.rcParams) == before; assert 'matplotlib.pyplot' not in sys.modules; "
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
