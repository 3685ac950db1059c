"""Curves over steps."""

import numpy as np
import pytest

from moopt.plotting import curve_data, plot_curve


def test_last_value_is_held_on_common_steps():
    data = curve_data({"ours": [([0, 10, 20], [1.0, 3.0, 5.0]), ([5, 15], [2.0, 4.0])], "theirs": [([1], [7.0])]})
    ours, theirs = data.series
    assert ours.steps.tolist() == [5, 10, 15, 20]
    first, second = np.array([1, 3, 3, 5]), np.array([2, 2, 4, 4])
    assert ours.median.tolist() == ((first + second) / 2).tolist()
    assert ours.low.tolist() == np.percentile([first, second], 25, axis=0).tolist()
    assert ours.high.tolist() == np.percentile([first, second], 75, axis=0).tolist()
    assert ours.running.tolist() == [2, 2, 2, 1]
    assert (ours.n, theirs.n) == (2, 1)
    assert (theirs.steps.tolist(), theirs.median.tolist()) == ([1], [7])
    assert (ours.color, theirs.color) == (0, 1)


def test_median_and_quartiles_of_five_seeds():
    values = np.random.default_rng(0).random((5, 4))
    data = curve_data({"a": [(np.arange(4), row) for row in values]}, metric="HV", unit="m", step_name="evaluations")
    (series,) = data.series
    assert series.median.tolist() == np.median(values, axis=0).tolist()
    assert series.low.tolist() == np.sort(values, axis=0)[1].tolist()
    assert series.high.tolist() == np.sort(values, axis=0)[3].tolist()
    assert (data.metric, data.unit, data.step_name) == ("HV", "m", "evaluations")


def test_missing_values_disorder_and_repeats():
    (series,) = curve_data(([3, 1, 2, 2, 4], [30.0, 10.0, 20.0, 21.0, np.nan])).series
    assert series.steps.tolist() == [1, 2, 3]
    assert series.median.tolist() == [10, 21, 30]
    data = curve_data(
        {"empty": [([], [])], "nan": [([1], [np.nan])], "full": [([1], [2.0])]},
        colors={"empty": 0, "nan": 1, "full": 2},
    )
    assert [s.label for s in data.series] == ["full"]
    assert data.series[0].color == 2


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        (([1, 2], [1.0]), "steps have shape"),
        (([[1, 2]], [[1.0, 2.0]]), "steps have shape"),
        ({}, "no value of 'hypervolume'"),
        (([1], [np.nan]), "no value of 'hypervolume'"),
    ],
)
def test_bad_curves(curves, message):
    with pytest.raises(ValueError, match=message):
        curve_data(curves)


def test_drawing():
    rng = np.random.default_rng(1)
    steps = np.arange(0, 2_000_000, 10_000)
    ax = plot_curve(
        {"ours": [(steps, rng.random(200)) for _ in range(3)], "theirs": [(steps, rng.random(200))]},
        title="t",
    )
    assert len(ax.lines) == 2
    assert len(ax.collections) == 1
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "ours (median of 3 seeds, quartiles)",
        "theirs",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("environment steps", "hypervolume")
    assert [ax.xaxis.get_major_formatter()(v) for v in (0, 500, 2500, 1.5e6)] == ["0", "500", "2.5k", "1.5M"]
    assert {line.get_drawstyle() for line in ax.lines} == {"steps-post"}
    data = curve_data({"ours": [(steps, np.ones(200))]}, metric="reward", unit="m")
    assert plot_curve(data, ax=ax) is ax
    assert ax.get_ylabel() == "reward [m]"
