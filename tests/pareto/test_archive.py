"""Archive invariants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moopt.kernels import crowding_distance, hypervolume
from moopt.pareto import Archive, is_non_dominated
from moopt.pareto.archive import TRUNCATIONS
from moopt.runs import load_state, save_state


def make(truncation, capacity, m):
    return Archive(capacity, n_obj=m, truncation=truncation, ref_point=np.full(m, -1.0))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(TRUNCATIONS),
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 9)),
    st.booleans(),
)
def test_invariants(truncation, seed, m, capacity, whole):
    rng = np.random.default_rng(seed)
    archive = make(truncation, capacity, m)
    seen = np.empty((0, m))
    for _ in range(6):
        batch = rng.integers(0, 4, (5, m)).astype(float) if whole else rng.random((5, m))
        known = {tuple(p) for p in archive.points}
        # Each payload is the point itself, so any mix-up shows.
        stays = archive.add(batch, [tuple(p) for p in batch])
        seen = np.concatenate([seen, batch])
        assert archive.payloads == [tuple(p) for p in archive.points]
        assert is_non_dominated(archive.points).all()
        assert capacity is None or len(archive) <= capacity
        now = {tuple(p) for p in archive.points}
        assert {tuple(p) for p in batch[stays]} == now - known
        assert stays.sum() == len(now - known)
        if capacity is None:
            assert now == {tuple(p) for p in seen[is_non_dominated(seen)]}
        elif truncation == "crowding" and capacity >= 2 * m:
            assert (archive.points.max(axis=0) == seen.max(axis=0)).all()


def test_small_capacity_keeps_the_best_of_each_objective():
    archive = Archive(2, n_obj=2)
    archive.add([[0, 3], [1, 2], [2, 1], [3, 0]])
    assert archive.points.tolist() == [[0, 3], [3, 0]]
    archive = Archive(3, n_obj=3)
    corners = [[9, 0, 0], [0, 9, 0], [0, 0, 9]]
    archive.add([[1, 1, 1], *corners, [2, 2, 0]])
    assert archive.points.tolist() == corners


def test_crowding_is_renewed_after_each_removal():
    points = np.array([[0, 10], [1, 9], [1.2, 8.8], [1.4, 8.6], [5, 5], [10, 0]], dtype=float)
    one_by_one, one_shot = Archive(4, n_obj=2), Archive(4, n_obj=2, truncation="crowding_one_shot")
    one_by_one.add(points)
    one_shot.add(points)
    order = np.argsort(-crowding_distance(points), kind="stable")[:4]
    assert one_shot.points.tolist() == points[np.sort(order)].tolist()
    left = points
    while len(left) > 4:
        left = np.delete(left, int(crowding_distance(left).argmin()), axis=0)
    assert one_by_one.points.tolist() == left.tolist()


def test_hv_contribution_removes_the_least_contributor():
    rng = np.random.default_rng(2)
    points = rng.random((12, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    archive = make("hv_contribution", 11, 3)
    archive.add(points)
    rest = [hypervolume(np.delete(points, i, axis=0), [-1.0] * 3) for i in range(12)]
    expected = np.delete(points, int(np.argmax(rest)), axis=0)
    assert archive.points.tolist() == expected.tolist()


def test_ties_remove_the_newest():
    for truncation in TRUNCATIONS:
        archive = make(truncation, 1, 2)
        archive.add([[0.0, 1.0]], ["old"])
        assert archive.add([[1.0, 0.0]], ["new"]).tolist() == [False]
        assert archive.payloads == ["old"]


def test_equal_points_keep_the_first_payload():
    archive = Archive(n_obj=2)
    archive.add([[1, 2], [1, 2]], ["first", "second"])
    assert archive.add([[1, 2]], ["third"]).tolist() == [False]
    assert archive.payloads == ["first"]


def test_require_above_ref():
    archive = Archive(n_obj=2, ref_point=[0, 0], require_above_ref=True)
    assert archive.add([[1, 1], [5, 0], [5, -1], [0, 5]]).tolist() == [True, False, False, False]
    assert archive.add([[-1, -1]]).tolist() == [False]
    assert len(archive) == 1


def test_numbers_are_the_default_payloads():
    archive = Archive(n_obj=2)
    archive.add([[0, 0], [1, 1]])
    archive.add([2, 0])
    assert archive.payloads == [1, 2]
    assert archive.add(np.empty((0, 2))).tolist() == []
    assert archive.add([]).tolist() == []


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_saved_state_continues_alike(truncation, tmp_path):
    rng = np.random.default_rng(4)
    archive = make(truncation, 6, 3)
    archive.add(rng.random((30, 3)), [{"weights": rng.random(2)} for _ in range(30)])
    save_state(tmp_path / "state.npz", archive.state_dict())
    copy = make(truncation, 6, 3)
    copy.load_state_dict(load_state(tmp_path / "state.npz"))
    assert copy.points.tolist() == archive.points.tolist()
    for mine, theirs in zip(archive.payloads, copy.payloads, strict=True):
        assert np.array_equal(mine["weights"], theirs["weights"])
    batch = rng.random((20, 3)) * 1.2
    assert archive.add(batch).tolist() == copy.add(batch).tolist()
    assert archive.points.tolist() == copy.points.tolist()
    assert archive.payloads[-1] == copy.payloads[-1]


def test_state_is_a_copy_and_points_are_read_only():
    archive = Archive(n_obj=2)
    archive.add([[1, 2]])
    archive.state_dict()["points"][:] = 9
    archive.payloads.append("x")
    assert archive.points.tolist() == [[1, 2]]
    assert len(archive.payloads) == 1
    with pytest.raises(ValueError, match="read-only"):
        archive.points[0, 0] = 9


def test_bad_state_changes_nothing():
    archive = Archive(2, n_obj=2)
    archive.add([[1, 2]])
    good = archive.state_dict()
    for bad, message in (
        ({"points": good["points"]}, "lacks payloads, seen"),
        ({**good, "payloads": []}, "0 payloads"),
        ({**good, "points": np.zeros((1, 3))}, "2 objectives"),
        ({**good, "points": np.eye(3)[:, :2], "payloads": [1, 2, 3]}, "capacity"),
    ):
        with pytest.raises(ValueError, match=message):
            archive.load_state_dict(bad)
    assert archive.points.tolist() == [[1, 2]]


def test_front_of_an_archive():
    archive = Archive(n_obj=2, ref_point=[0, 0])
    archive.add([[1, 2], [2, 1]], ["a", "b"])
    front = archive.front(names=["speed", "thrift"], meta={"method": "x"})
    assert front.solutions == ("a", "b")
    assert front.names == ("speed", "thrift")
    assert front.hypervolume() == 3.0
    archive.add([[3, 3]], ["c"])
    assert len(front) == 2


def test_infinite_values():
    archive = Archive(2, n_obj=2)
    archive.add([[np.inf, 0], [1, 1], [2, 0.5], [-np.inf, 3]])
    assert len(archive) == 2
    assert archive.points.max(axis=0).tolist() == [np.inf, 3]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"capacity": 0}, "capacity must"),
        ({"capacity": True}, "capacity must"),
        ({"n_obj": 0}, "n_obj must"),
        ({"truncation": "crowdin"}, "did you mean 'crowding'"),
        ({"truncation": "hv_contribution"}, "needs ref_point"),
        ({"require_above_ref": True}, "needs ref_point"),
        ({"ref_point": [0, 0, 0]}, "ref_point has shape"),
    ],
)
def test_bad_settings(kwargs, message):
    with pytest.raises(ValueError, match=message):
        Archive(**{"n_obj": 2, **kwargs})


def test_bad_points_change_nothing():
    archive = Archive(n_obj=2)
    archive.add([[1, 2]])
    for points, payloads, message in (
        ([[1, 2, 3]], None, "2 objectives"),
        ([[np.nan, 2]], None, "NaN"),
        ([[5, 5]], [1, 2], "2 payloads for 1"),
        (np.zeros((2, 2, 2)), None, "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            archive.add(points, payloads)
    assert archive.state_dict()["seen"] == 1
    assert "Archive(1 points, 2 objectives, unbounded" in repr(archive)
