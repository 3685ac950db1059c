"""Figures of particle methods: what is drawn is what was given."""

import numpy as np
import pytest

from moopt.plotting import particle_data, plot_particles, plot_sides, plot_sizes, size_data
from moopt.runs.errors import MooptError


def test_particles_in_a_plane():
    W = np.array([[3.0, 0, 4, 9], [0, 2.0, 0, 9], [-1.0, 0, 0, 9]])
    data = particle_data(W, [[1.0, 0, 0], [0, 1.0, 0]], signs=[1, -1, 1])
    assert data.points.tolist() == [[3, 0], [0, 2], [-1, 0]]
    assert data.share == pytest.approx(14 / 30)
    assert data.radius == pytest.approx(np.sqrt(10))
    ax = plot_particles(data, title="parity")
    drawn = [c.get_offsets().tolist() for c in ax.collections]
    assert drawn == [[[3, 0], [-1, 0]], [[0, 2]]]
    assert ax.get_legend() is not None
    one = particle_data(W, [[1.0, 0, 0]])
    assert np.abs(one.points[0]).tolist() == pytest.approx([3, 4])
    with pytest.raises(MooptError, match="signs must be"):
        particle_data(W, [[1.0, 0]], signs=[1])
    with pytest.raises(MooptError, match="particles must be"):
        particle_data(W[0], [[1.0, 0]])


def test_values_against_sizes():
    series = size_data({"small": {10: [1.0, 3.0], 100: [1.0, 1.0]}, "large": {10: [4.0]}})
    assert [s.n for s in series] == [2, 1]
    assert series[0].error.tolist() == [1.0, 0.0]
    ax = plot_sizes(series, level=0.3, log_values=True, title="risk")
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.lines[0].get_ydata().tolist() == [2.0, 1.0]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["small", "large"]
    with pytest.raises(MooptError, match="no values"):
        size_data({"none": {}})


def test_two_sides_of_a_table():
    table = {"one": {"sphere": [10, np.nan], "flat": [20, 40]}, "two": {"sphere": [5.0], "flat": [np.nan]}}
    ax = plot_sides(table, title="steps")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["one", "two"]
    assert ax.collections[0].get_offsets()[:, 0].tolist() == [10, 72]
    assert "never" in [t.get_text() for t in ax.texts]
    with pytest.raises(MooptError, match="no value"):
        plot_sides({"one": {"a": [np.nan]}})


def test_they_can_be_written(tmp_path):
    ax = plot_sides({"one": {"sphere": [10.0], "flat": [20.0]}})
    ax.figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000
