"""The Front as an object."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from moopt.pareto import Front, hypervolume, igd_plus, is_non_dominated


def example(**kwargs):
    settings = {
        "directions": ["max", "min"],
        "names": ["gain", "cost"],
        "units": ["", "EUR"],
        "ref_point": [0.0, 100.0],
        "solutions": ["a", "b", "c"],
        "meta": {"seed": 1, "nested": {"x": [1, 2]}},
        **kwargs,
    }
    return Front.from_user([[1.0, 20.0], [3.0, 50.0], [0.5, 60.0]], **settings)


def test_orientation():
    front = example()
    assert front.points.tolist() == [[1.0, -20.0], [3.0, -50.0], [0.5, -60.0]]
    assert front.ref_point.tolist() == [0.0, -100.0]
    assert front.user_points.tolist() == [[1.0, 20.0], [3.0, 50.0], [0.5, 60.0]]
    assert front.user_ref_point.tolist() == [0.0, 100.0]
    assert front.signs.tolist() == [1.0, -1.0]
    assert (len(front), front.n_obj) == (3, 2)
    assert [p.tolist() for p in front] == front.points.tolist()


def test_defaults():
    front = Front([[1, 2]])
    assert front.names == ("f1", "f2")
    assert front.units == ("", "")
    assert front.directions == ("max", "max")
    assert front.ref_point is None
    assert front.solutions == range(1)
    assert front.meta == {}
    assert Front([[1, 2]], directions="min").directions == ("min", "min")


def test_nothing_can_change():
    source, ref, vectors, meta = np.ones((2, 2)), np.zeros(2), np.ones((2, 3)), {"a": [1]}
    front = Front(source, ref_point=ref, solutions=vectors, meta=meta)
    source[:] = 7
    ref[:] = 7
    vectors[:] = 7
    meta["a"].append(2)
    assert front == Front(np.ones((2, 2)), ref_point=np.zeros(2), solutions=np.ones((2, 3)), meta={"a": [1]})
    for array in (front.points, front.ref_point, front.solutions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    with pytest.raises(AttributeError):
        front.points = source
    with pytest.raises(TypeError):
        hash(front)


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_are_equal_and_immutable(clone):
    front = example()
    twin = clone(front)
    assert twin == front
    with pytest.raises(ValueError, match="read-only"):
        twin.points[0, 0] = 5


def test_equality():
    front = example()
    assert front == example()
    assert front != "front"
    assert front != example(names=["gain", "price"])
    assert front != example(ref_point=None)
    assert example(ref_point=None) == example(ref_point=None)
    assert front != example(solutions=["a", "b", "x"])
    assert front != example(meta={})
    assert front != example().take([0, 1])


def test_measures_agree_with_the_indicators():
    front = example()
    assert front.hypervolume() == hypervolume(front.points, [0.0, -100.0])
    assert front.hypervolume([0.0, -60.0]) == hypervolume(front.points, [0.0, -60.0])
    better = np.array([[2.0, -20.0], [4.0, -50.0]])
    assert front.igd_plus(better) == igd_plus(front.points, better)
    assert front.igd_plus(Front(better)) == front.igd_plus(better)
    assert front.expected_utility([[1.0, 0.0], [0.0, 1.0]]) == (3.0 - 20.0) / 2
    assert front.sparsity() == 2.0**2 + 30.0**2


def test_empty_front():
    front = Front(np.empty((0, 2)), ref_point=[0, 0])
    assert front.hypervolume() == 0.0
    assert front.igd_plus([[1.0, 1.0]]) == np.inf
    assert front.expected_utility() == -np.inf
    assert front.sparsity() == 0.0
    assert front.filter() == front
    assert "0 points" in repr(front)
    assert len(Front([], names=["a", "b"])) == 0
    assert front.merge(Front([[1.0, 2.0]])).points.tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="empty front"):
        front.select([0.5, 0.5])
    with pytest.raises(ValueError, match="shape \\(0, m\\), or names"):
        Front([])


def test_unreachable_reference_point_warns_once():
    front = Front([[1.0, 2.0], [2.0, 1.0]], ref_point=[5.0, 5.0], directions=["max", "min"])
    with pytest.warns(UserWarning, match=r"reference point \[5.0, -5.0\]") as caught:
        assert front.hypervolume() == 0.0
    assert len(caught) == 1


def test_missing_or_wrong_reference_point():
    with pytest.raises(ValueError, match="no reference point"):
        Front([[1, 2]]).hypervolume()
    with pytest.raises(ValueError, match="ref_point has shape"):
        Front([[1, 2]]).hypervolume([1, 2, 3])


def test_filter_keeps_first_of_equal_points_with_its_solution():
    front = Front([[1, 2], [0, 0], [1, 2], [2, 1]], solutions=["a", "b", "c", "d"], meta={"k": 1}).filter()
    assert front.points.tolist() == [[1, 2], [2, 1]]
    assert front.solutions == ("a", "d")
    assert front.meta == {"k": 1}


def test_take_with_decision_vectors():
    front = Front([[1, 2], [2, 1]], solutions=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).take([1])
    assert front.solutions.tolist() == [[4.0, 5.0, 6.0]]


def test_merge():
    first = Front([[1, 3], [2, 2]], solutions=["a", "b"], ref_point=[0, 0], meta={"seed": 0})
    second = Front([[2, 2], [3, 2], [0, 9]], solutions=["c", "d", "e"], meta={"seed": 1})
    both = first.merge(second)
    assert both.points.tolist() == [[1, 3], [3, 2], [0, 9]]
    assert both.solutions == ("a", "d", "e")
    assert both.ref_point.tolist() == [0, 0]
    assert both.meta == {"merged": [{"seed": 0}, {"seed": 1}]}
    assert second.merge(first).ref_point.tolist() == [0, 0]
    rng = np.random.default_rng(0)
    a, b = rng.random((30, 3)), rng.random((30, 3))
    pool = np.concatenate([a, b])
    assert Front(a).merge(Front(b)).points.tolist() == pool[is_non_dominated(pool)].tolist()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Front([[1, 2]], names=["x", "y"]), "names"),
        (Front([[1, 2]], directions="min"), "directions"),
        (Front([[1, 2, 3]]), "names"),
        (Front([[1, 2]], ref_point=[1, 1]), "reference points"),
    ],
)
def test_merge_of_unlike_fronts(other, message):
    with pytest.raises(ValueError, match=message):
        Front([[1, 2]], ref_point=[0, 0]).merge(other)


def test_select():
    front = Front([[0.0, 10.0], [4.0, 4.0], [10.0, 0.0]])
    assert [front.select(w) for w in ([1, 0], [0, 1], [3, 1])] == [2, 0, 2]
    assert front.select([0.5, 0.5]) == 0  # a weighted sum never takes the hollow middle; ties go to the first
    for method in ("tchebycheff", "augmented_tchebycheff", "smooth_tchebycheff", "pbi"):
        assert front.select([0.5, 0.5], method) == 1, method
    assert front.select([0.5, 0.5], lambda y, w: -np.abs(y - 4).sum(axis=1)) == 1
    wide = Front([[0.0, 1000.0], [9.0, 900.0], [10.0, 0.0]])
    assert wide.select([0.5, 0.5]) == 0
    assert wide.select([0.5, 0.5], normalize=True) == 1


@pytest.mark.parametrize("preference", [[0, 0], [-1, 2], [1, np.inf], [1, 2, 3], [[1, 2]], [np.nan, 1]])
def test_bad_preferences(preference):
    with pytest.raises(ValueError, match="preference"):
        Front([[1, 2]]).select(preference)


def test_unknown_scalarization():
    with pytest.raises(ValueError, match="did you mean 'linear'"):
        Front([[1, 2]]).select([1, 1], "linar")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"points": [1, 2]}, "shape"),
        ({"points": [[1, 2], [3]]}, "rectangular"),
        ({"points": [["a", "b"]]}, "real numbers"),
        ({"points": [[np.nan, 1]]}, "NaN"),
        ({"points": [[1j, 1]]}, "real numbers"),
        ({"names": ["a"]}, "1 names for 2"),
        ({"names": ["a", "a"]}, "differ"),
        ({"names": ["a", "id"]}, "'id'"),
        ({"names": ["a", "b\n"]}, "printable"),
        ({"names": "ab"}, "2 strings"),
        ({"units": ["m"]}, "1 units for 2"),
        ({"directions": ["max", "maxx"]}, "did you mean 'max'"),
        ({"directions": ["max"]}, "1 directions for 2"),
        ({"ref_point": [1, 2, 3]}, "ref_point has shape"),
        ({"ref_point": [1, np.nan]}, "NaN"),
        ({"solutions": [1, 2]}, "2 solutions for 1"),
    ],
)
def test_bad_fields(kwargs, message):
    with pytest.raises(ValueError, match=message):
        Front(**{"points": [[1, 2]], **kwargs})


def test_text_and_html():
    front = example(names=["gain", "<b>cost</b>"])
    text = repr(front)
    assert text.splitlines()[0] == "Front: 3 points, 2 objectives, reference point (0, 100)"
    assert "<b>cost</b> [EUR] (min)" in text
    assert len({len(line) for line in text.splitlines()[1:]}) == 1
    html = front._repr_html_()
    assert "&lt;b&gt;cost&lt;/b&gt; [EUR] (min)" in html
    assert "<b>cost" not in html
    long = Front(np.random.default_rng(0).random((500, 3)), solutions=np.zeros((500, 99)))
    assert len(repr(long).splitlines()) == 11
    assert long._repr_html_().count("<tr>") == 10


def test_import_is_light():
    code = (
        "import sys, moopt.pareto, moopt.plotting; from moopt.pareto.front import Front; Front([[1, 2]]);"
        "heavy = {'torch', 'matplotlib', 'scipy', 'numba', 'moocore'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
