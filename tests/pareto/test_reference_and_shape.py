"""Reference, ideal and nadir points, normalisation, knees and convex coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moopt.pareto import (
    convex_filter,
    expected_utility,
    ideal_nadir,
    infer_reference_point,
    is_non_dominated,
    knee_points,
    normalize,
    simplex_weights,
)


def test_ideal_and_nadir_of_asymmetric_data():
    points = [[1, 90], [4, 50], [3, 20], [2, 70]]
    ideal, nadir = ideal_nadir(points)
    assert (ideal.tolist(), nadir.tolist()) == ([4, 90], [1, 50])
    ideal, nadir = ideal_nadir([[1, -90], [4, -50], [3, -20]], maximize=[True, False])
    assert (ideal.tolist(), nadir.tolist()) == ([4, -90], [1, -50])
    with pytest.raises(ValueError, match="empty"):
        ideal_nadir(np.empty((0, 2)))


def test_normalize():
    assert normalize([[1.0, 9.0], [3.0, 5.0]], maximize=False).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert normalize([[2.0, 2.0]], [4.0, 4.0], [0.0, 0.0]).tolist() == [[0.5, 0.5]]
    assert normalize([[2.0, 2.0]], [0.0, 4.0], [4.0, 0.0], maximize=[False, True]).tolist() == [[0.5, 0.5]]
    with pytest.warns(UserWarning, match=r"\[1\] are constant"):
        assert normalize([[1.0, 7.0], [3.0, 7.0]], [3, 7], [1, 7]).tolist() == [[0.0, 0.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match="worse than nadir"):
        normalize([[1.0, 7.0]], [0.0, 0.0], [1.0, 1.0])
    assert normalize(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 8), st.booleans())
def test_reference_point_agrees_with_botorch(seed, m, n, limited):
    import torch
    from botorch.utils.multi_objective.hypervolume import infer_reference_point as theirs

    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, m))
    front = points[is_non_dominated(points)]
    limit = rng.normal(size=m) if limited else None
    expected = theirs(torch.as_tensor(front), max_ref_point=None if limit is None else torch.as_tensor(limit))
    assert infer_reference_point(points, max_ref_point=limit) == pytest.approx(expected.numpy(), rel=1e-12, abs=1e-12)
    mirrored = infer_reference_point(-points, maximize=False, max_ref_point=None if limit is None else -limit)
    assert mirrored == pytest.approx(-expected.numpy(), rel=1e-12, abs=1e-12)


def test_reference_point_edges():
    assert infer_reference_point([[0.0, 0.0]]).tolist() == [-1e-8, -1e-8]
    assert infer_reference_point(np.empty((0, 2)), max_ref_point=[1, 2]).tolist() == [1.0, 2.0]
    for bad, message in (
        (np.empty((0, 2)), "empty"),
        ([[np.inf, 1.0]], "infinite"),
        ([[np.nan, 1.0]], "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            infer_reference_point(bad)
    with pytest.raises(ValueError, match="max_ref_point has shape"):
        infer_reference_point([[1.0, 2.0]], max_ref_point=[1.0, 2.0, 3.0])


def test_knees():
    assert knee_points([[0, 0], [0, 10], [8, 8], [10, 0], [9, 5]], 2).tolist() == [2, 4]
    assert knee_points([[0, -10], [8, -8], [10, 0]], maximize=[True, False]).tolist() == [1]
    hollow = [[0, 10], [1, 1], [10, 0]]
    assert knee_points(hollow).tolist() == []
    assert knee_points([[3.0, 4.0]]).tolist() == [0]
    assert knee_points([[3.0, 4.0]] * 3).tolist() == [0]
    assert knee_points(np.empty((0, 3))).tolist() == []
    with pytest.raises(ValueError, match="n must"):
        knee_points([[1, 2]], 0)
    with pytest.raises(ValueError, match="infinite"):
        knee_points([[np.inf, 2]])


@pytest.mark.parametrize(
    ("points", "kept"),
    [
        ([[0, 1], [0.5, 0.5], [1, 0]], [0, 2]),
        ([[0, 1], [1 / 3, 2 / 3], [2 / 3, 1 / 3], [1, 0], [1, 0]], [0, 3]),
        ([[0, 1], [0.6, 0.6], [1, 0], [0.2, 0.2]], [0, 1, 2]),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3]], [0, 1, 2]),
        ([[1, 0, 5], [0, 1, 5], [0.5, 0.5, 5]], [0, 1]),
        ([[2, 2, 2]], [0]),
        ([[2, 2], [2, 2]], [0]),
        ([[3.0], [5.0], [4.0]], [1]),
        ([[0, 1, 0, 1], [1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5]], [0, 1]),
        (np.empty((0, 2)), []),
    ],
)
def test_convex_filter_on_degenerate_sets(points, kept):
    assert np.flatnonzero(convex_filter(points)).tolist() == kept
    assert np.flatnonzero(convex_filter(-np.array(points), maximize=False)).tolist() == kept


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 15))
def test_convex_filter_keeps_all_utility_and_nothing_idle(seed, m, n):
    rng = np.random.default_rng(seed)
    points = rng.random((n, m))
    keep = convex_filter(points)
    weights = simplex_weights(m, 400, method="dirichlet", seed=seed)
    assert expected_utility(points[keep], weights) == pytest.approx(expected_utility(points, weights), rel=1e-12)
    best = (points @ weights.T).argmax(axis=0)
    assert keep[best].all()
    if m == 2 and n > 1:
        # The sweep for two objectives and the linear programs agree (a constant third objective changes
        # nothing).
        flat = np.column_stack([points, np.zeros(n)])
        assert (convex_filter(flat) == keep).all()
