"""Indicators against moocore, brute force and known values."""

import itertools

import moocore
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from moopt.pareto import (
    crowding_distance,
    eaf,
    epsilon_additive,
    epsilon_multiplicative,
    expected_utility,
    hypervolume,
    igd,
    igd_plus,
    is_non_dominated,
    maximum_utility_loss,
    non_dominated_rank,
    simplex_weights,
    sparsity,
)
from moopt.pareto.utility import default_weights

FAST = settings(max_examples=125, deadline=None, derandomize=True)


@st.composite
def two_sets(draw, low=0.0, integers=True):
    """Two sets of the same width and the direction of each objective; small integers make ties common."""
    m = draw(st.integers(1, 5))
    seed = draw(st.integers(0, 2**32 - 1))
    n, r = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    rng = np.random.default_rng(seed)
    whole = integers and draw(st.booleans())
    make = (lambda k: rng.integers(0, 6, (k, m)).astype(float)) if whole else (lambda k: rng.random((k, m)))
    maximize = draw(st.one_of(st.booleans(), st.lists(st.booleans(), min_size=m, max_size=m)))
    return make(n) + low, make(r) + low, maximize


def sign(maximize, m):
    return np.where(np.broadcast_to(maximize, (m,)), 1.0, -1.0)


@FAST
@given(two_sets())
def test_hypervolume_of_integers_counts_cells(sets):
    points, _, maximize = sets
    points = np.floor(points * 3 if points.max() <= 1 else points)[:, :3]
    m = points.shape[1]
    flags = np.broadcast_to(maximize, (sets[0].shape[1],))[:m].tolist()
    user = points * sign(flags, m)
    cells = np.stack(np.meshgrid(*[np.arange(6)] * m, indexing="ij"), -1).reshape(-1, m)
    count = (points[:, None] > cells).all(-1).any(0).sum()
    assert hypervolume(user, np.zeros(m), maximize=flags) == count


@FAST
@given(two_sets())
def test_igd_family(sets):
    points, ref, maximize = sets
    s = sign(maximize, points.shape[1])
    gap = ref[:, None] * s - points[None] * s
    far = np.sqrt((gap**2).sum(-1)).min(1)
    short = np.sqrt((np.maximum(gap, 0) ** 2).sum(-1)).min(1)
    assert igd(points, ref, maximize=maximize) == pytest.approx(far.mean(), rel=1e-12, abs=1e-15)
    assert igd_plus(points, ref, maximize=maximize) == pytest.approx(short.mean(), rel=1e-12, abs=1e-15)
    assert igd_plus(points, ref, maximize=maximize, p=3) == pytest.approx((short**3).mean() ** (1 / 3), abs=1e-12)
    moo = moocore.igd_plus(points, ref=ref, maximise=np.broadcast_to(maximize, points.shape[1:]).tolist())
    assert igd_plus(points, ref, maximize=maximize) == pytest.approx(moo, rel=1e-12, abs=1e-15)


@FAST
@given(two_sets())
def test_epsilon_additive(sets):
    points, ref, maximize = sets
    s = sign(maximize, points.shape[1])
    brute = max(min(max((b - a) * s) for a in points) for b in ref)
    value = epsilon_additive(points, ref, maximize=maximize)
    assert value == brute
    moo = moocore.epsilon_additive(points, ref=ref, maximise=np.broadcast_to(maximize, points.shape[1:]).tolist())
    assert value == pytest.approx(moo, rel=1e-12, abs=1e-15)


@FAST
@given(two_sets(low=0.5))
def test_epsilon_multiplicative(sets):
    points, ref, maximize = sets
    up = np.broadcast_to(maximize, points.shape[1:])
    brute = max(min(max(np.where(up, b / a, a / b)) for a in points) for b in ref)
    assert epsilon_multiplicative(points, ref, maximize=maximize) == pytest.approx(brute, rel=1e-14)
    if isinstance(maximize, bool):
        moo = moocore.epsilon_mult(points, ref=ref, maximise=maximize)
        assert epsilon_multiplicative(points, ref, maximize=maximize) == pytest.approx(moo, rel=1e-12)


@FAST
@given(two_sets())
def test_utilities(sets):
    points, ref, maximize = sets
    m = points.shape[1]
    s = sign(maximize, m)
    weights = simplex_weights(m, H=4)
    best = [max(w @ (p * s) for p in points) for w in weights]
    other = [max(w @ (p * s) for p in ref) for w in weights]
    assert expected_utility(points, weights, maximize=maximize) == pytest.approx(np.mean(best), abs=1e-12)
    loss = maximum_utility_loss(points, ref, weights, maximize=maximize)
    assert loss == pytest.approx(np.max(np.subtract(other, best)), abs=1e-12)


@FAST
@given(two_sets())
def test_sparsity(sets):
    points, _, maximize = sets
    m = points.shape[1]
    s = sign(maximize, m)
    values = points * s

    def beaten(a):
        return bool(((values >= a).all(1) & (values > a).any(1)).any())

    front = {tuple(a) for a in values if not beaten(a)}
    columns = [sorted(p[k] for p in front) for k in range(m)]
    gaps = sum((b - a) ** 2 for column in columns for a, b in itertools.pairwise(column))
    expected = gaps / (len(front) - 1) if len(front) > 1 else 0.0
    assert sparsity(points, maximize=maximize) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@FAST
@given(two_sets())
def test_dominance(sets):
    points, _, maximize = sets
    values = points * sign(maximize, points.shape[1])
    better = (values[:, None] >= values[None]).all(-1) & (values[:, None] > values[None]).any(-1)
    earlier = (values[:, None] == values[None]).all(-1) & np.tri(len(values), k=-1, dtype=bool).T
    expected = ~(better.any(0) | earlier.any(0))
    assert is_non_dominated(points, maximize=maximize).tolist() == expected.tolist()
    rank = np.full(len(values), -1)
    for level in range(len(values)):
        left = np.flatnonzero(rank < 0)
        rank[left[~better[np.ix_(left, left)].any(0)]] = level
    assert (non_dominated_rank(points, maximize=maximize) == rank).all()


@FAST
@given(two_sets())
def test_tensors_agree_with_arrays(sets):
    points, ref, maximize = sets
    batch = torch.as_tensor(np.stack([points, points[::-1].copy()]))
    weights = simplex_weights(points.shape[1], H=3)
    for name, function, extra in (
        ("igd", igd, (ref,)),
        ("igd_plus", igd_plus, (ref,)),
        ("epsilon_additive", epsilon_additive, (ref,)),
        ("expected_utility", expected_utility, (weights,)),
        ("maximum_utility_loss", maximum_utility_loss, (ref, weights)),
    ):
        value = function(points, *extra, maximize=maximize)
        values = function(batch, *extra, maximize=maximize)
        assert values.shape == (2,), name
        assert values.numpy() == pytest.approx([value, value], rel=1e-12, abs=1e-14), name


def test_gradients_match_finite_differences():
    rng = np.random.default_rng(3)
    points, ref = rng.random((5, 3)) + 0.5, rng.random((4, 3)) + 0.7
    weights = simplex_weights(3, H=3)
    for function, extra in (
        (igd, (ref,)),
        (igd_plus, (ref,)),
        (epsilon_additive, (ref,)),
        (epsilon_multiplicative, (ref,)),
        (expected_utility, (weights,)),
        (maximum_utility_loss, (ref, weights)),
    ):
        leaf = torch.tensor(points, requires_grad=True)
        function(leaf, *extra).backward()
        slope = np.zeros_like(points)
        for i in np.ndindex(points.shape):
            step = np.zeros_like(points)
            step[i] = 1e-6
            slope[i] = (function(points + step, *extra) - function(points - step, *extra)) / 2e-6
        assert leaf.grad.numpy() == pytest.approx(slope, abs=1e-7), function.__name__


def test_gradient_at_a_reference_point_is_finite():
    leaf = torch.tensor([[1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    (igd(leaf, leaf.detach()) + igd_plus(leaf, leaf.detach())).backward()
    assert torch.isfinite(leaf.grad).all()


def test_tensor_dtype_stays_and_integers_become_double():
    assert igd(torch.ones(2, 2), torch.zeros(1, 2)).dtype == torch.float32
    assert igd(torch.ones(2, 2, dtype=torch.int64), np.zeros((1, 2))).dtype == torch.float64
    assert expected_utility(torch.ones(2, 2), np.eye(2)).dtype == torch.float32
    assert igd(np.zeros((1, 2)), torch.ones(2, 2)).dtype == torch.float32


def test_empty_batches():
    empty = torch.empty(4, 0, 2)
    assert igd(empty, np.ones((1, 2))).tolist() == [np.inf] * 4
    assert expected_utility(empty).tolist() == [-np.inf] * 4


def test_empty_reference_raises():
    for function in (igd, igd_plus, epsilon_additive, epsilon_multiplicative, maximum_utility_loss):
        with pytest.raises(ValueError, match="empty"):
            function(np.ones((2, 3)), np.empty((0, 3)))


def test_wrong_widths_name_both_shapes():
    for function in (igd, igd_plus, epsilon_additive, epsilon_multiplicative, maximum_utility_loss):
        with pytest.raises(ValueError, match=r"\(2, 3\).*\(4, 2\)"):
            function(np.ones((2, 3)), np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2,\)"):
        hypervolume(np.ones((2, 3)), [0, 0])
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(4, 2\)"):
        expected_utility(np.ones((2, 3)), np.ones((4, 2)))


def test_infinite_values_never_give_nan():
    inf = np.inf
    points = [[1.0, inf], [inf, -inf]]
    assert igd(points, [[1.0, inf]]) == 0.0
    assert igd(points, [[1.0, 2.0]]) == inf
    assert igd_plus(points, [[1.0, 2.0]]) == 0.0
    assert epsilon_additive(points, [[1.0, inf]]) == 0.0
    assert epsilon_additive([[1.0, -inf]], [[1.0, 0.0]]) == inf
    assert epsilon_multiplicative([[1.0, inf]], [[1.0, inf]]) == 1.0
    assert expected_utility(points, [[1.0, 0.0]]) == inf
    assert expected_utility([[2.0, -inf]], [[1.0, 0.0]]) == 2.0
    assert expected_utility([[inf, -inf]], [[0.5, 0.5]]) == -inf
    assert maximum_utility_loss([[inf, 1.0]], [[inf, 2.0]], [[0.5, 0.5]]) == 0.0
    assert sparsity([[0.0, inf], [inf, 0.0]]) == inf
    assert hypervolume([[inf, 1.0]], [0.0, 0.0]) == inf
    assert hypervolume([[inf, 0.0]], [0.0, 0.0]) == 0.0


def test_hypervolume_edges():
    assert hypervolume([[1.0, 1.0]], [1.0, 0.0]) == 0.0
    assert hypervolume([[4.0, 4.0]], [3.0, 3.0], maximize=False) == 0.0
    assert hypervolume([[5.0]], [2.0]) == 3.0
    assert hypervolume([[1, 2], [1, 2], [2, 1]], [3, 3], maximize=False) == 3.0
    assert hypervolume([[0, 0, 0], [1, 1, 1]], 2, maximize=False) == 8.0
    with pytest.raises(ValueError, match="NaN"):
        hypervolume([[1.0, 2.0]], [0.0, np.nan])


def test_hypervolume_of_tensors():
    points = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64, requires_grad=True)
    volume = hypervolume(points, [0.0, 0.0])
    assert volume.shape == ()
    assert volume.item() == 3.0
    volume.backward()
    assert points.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    batch = torch.stack([points.detach(), 2 * points.detach()])
    assert hypervolume(-batch, [0.0, 0.0], maximize=False).tolist() == [3.0, 12.0]


def test_epsilon_multiplicative_needs_positive_values():
    with pytest.raises(ValueError, match="strictly positive ref"):
        epsilon_multiplicative([[1.0, 2.0]], [[0.0, 1.0]])


def test_bad_weights_raise():
    for weights, message in (
        ([[-0.1, 1.1]], "negative"),
        ([[np.nan, 1]], "NaN"),
        ([0.5, 0.5], "shape"),
        ([], "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            expected_utility([[1.0, 2.0]], weights)


@pytest.mark.parametrize(("m", "count"), [(1, 1), (2, 101), (3, 4950), (4, 4960), (6, 4368)])
def test_default_weights(m, count):
    assert default_weights(m).shape == (count, m)


def test_utility_may_be_any_function():
    from moopt.pareto import tchebycheff

    points = np.array([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]])
    weights = np.array([[0.5, 0.5]])
    value = expected_utility(points, weights, utility=lambda y, w: tchebycheff(y, w, [1.0, 1.0]))
    assert value == pytest.approx(-0.3)


def test_igd_beyond_31_objectives_and_in_pieces():
    rng = np.random.default_rng(0)
    points, ref = rng.random((300, 40)), rng.random((500, 40))
    brute = np.sqrt(((ref[:, None] - points) ** 2).sum(-1)).min(1).mean()
    assert igd(points, ref) == pytest.approx(brute, rel=1e-12)


def test_crowding_distance():
    assert crowding_distance([[0.0, 4.0], [1.0, 3.0], [4.0, 0.0]]).tolist() == [np.inf, 2.0, np.inf]
    assert not np.isnan(crowding_distance([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])).any()


def test_eaf_levels():
    runs = [[[3.0, -1.0], [1.0, -3.0]], [[2.0, -2.0]], [[2.0, -1.0]]]
    maximize = [True, False]
    fronts = [np.array(run) * [1, -1] for run in runs]
    everyone = eaf(fronts, 1.0, maximize=maximize)
    assert everyone.tolist() == [[2.0, 2.0]]
    best = eaf(fronts, 0.01, maximize=maximize)
    assert sorted(best.tolist()) == [[3.0, 1.0]]
    for bad, message in (([], "at least one"), ([np.empty((0, 2))], "empty"), ([np.ones((1, 4))], "2 or 3")):
        with pytest.raises(ValueError, match=message):
            eaf(bad)
    with pytest.raises(ValueError, match="level"):
        eaf(fronts, 0.0)
