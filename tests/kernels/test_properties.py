"""Random fronts against moocore, brute force and the laws of dominated volume; every backend, type and direction."""

import itertools

import moocore
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moopt.kernels import (
    box_decomposition,
    crowding_distance,
    hv_contributions,
    hv_improvement,
    hv_subset,
    hypervolume,
    hypervolume_and_grad,
    is_non_dominated,
    non_dominated_rank,
    warmup,
)

REL = 1e-10


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    warmup()


@st.composite
def fronts(draw, max_d=6, max_n=12):
    """A front of integers 0..5 (many ties) or of floats, with a reference point that cuts some points off."""
    d, n = draw(st.integers(1, max_d)), draw(st.integers(0, max_n))
    if draw(st.booleans()):
        points = draw(hnp.arrays(np.float64, (n, d), elements=st.integers(0, 5).map(float)))
    else:
        points = draw(hnp.arrays(np.float64, (n, d), elements=st.floats(0, 1, allow_subnormal=False)))
    return points, np.full(d, draw(st.sampled_from([0.7, 1.0, 4.0, 6.0])))


def brute_force(points, ref):
    """Inclusion and exclusion over all subsets."""
    points = points[(points < ref).all(1)]
    total = 0.0
    for size in range(1, len(points) + 1):
        for rows in itertools.combinations(points, size):
            total -= (-1) ** size * np.prod(ref - np.max(rows, axis=0))
    return total


def close(a, b, scale):
    return abs(a - b) <= REL * max(abs(b), float(scale))


@given(fronts(max_d=5, max_n=7))
@limits(max_examples=150)
def test_volume_is_inclusion_and_exclusion(front):
    points, ref = front
    expected = brute_force(points, ref)
    for backend in ("auto", "numba", "moocore"):
        assert close(hypervolume(points, ref, maximize=False, backend=backend), expected, np.prod(ref))
    if points.shape[1] <= 4:
        found = hypervolume(torch.from_numpy(points), torch.from_numpy(ref), maximize=False, backend="torch")
        assert close(float(found), expected, np.prod(ref))


@given(fronts(), st.randoms(use_true_random=False), st.sampled_from([np.float64, np.float32, np.int64]))
@limits(max_examples=150)
def test_volume_under_mirrors_shuffles_copies_and_types(front, random, dtype):
    points, ref = front
    points = points.astype(dtype)
    d = points.shape[1]
    base = hypervolume(points, ref, maximize=False)
    flip = np.array([random.random() < 0.5 for _ in range(d)])
    signs = np.where(flip, -1.0, 1.0)
    mirrored = hypervolume((points * signs).astype(np.float64), ref * signs, maximize=flip.tolist())
    assert close(mirrored, base, np.prod(ref))
    order = list(range(len(points))) + [i for i in range(len(points)) if random.random() < 0.3]
    random.shuffle(order)
    assert close(hypervolume(points[order], ref, maximize=False), base, np.prod(ref))
    strided = np.asfortranarray(np.repeat(points, 2, axis=0)[::-2])
    assert close(hypervolume(strided, ref, maximize=False), base, np.prod(ref))


@given(st.lists(fronts(max_d=3, max_n=6), min_size=0, max_size=6), st.integers(2, 4))
@limits(max_examples=60)
def test_ragged_batches_are_their_fronts_one_by_one(parts, d):
    parts = [np.resize(p[0], (len(p[0]), d)) for p in parts]
    ref = np.full(d, 3.0)
    expected = [hypervolume(p, ref, maximize=False) for p in parts]
    n = max((len(p) for p in parts), default=0)
    padded, mask = np.full((len(parts), n, d), 0.123), np.zeros((len(parts), n), dtype=bool)
    for i, part in enumerate(parts):
        padded[i, : len(part)], mask[i, : len(part)] = part, True
    for threads in (1, 2):
        found = hypervolume(padded, ref, maximize=False, mask=mask, num_threads=threads)
        np.testing.assert_allclose(found, expected, rtol=REL, atol=1e-12)
    found = hypervolume(torch.from_numpy(padded), ref, maximize=False, mask=torch.from_numpy(mask))
    np.testing.assert_allclose(found.numpy(), expected, rtol=REL, atol=1e-12)


@given(fronts())
@limits(max_examples=100)
def test_gains_and_contributions_are_differences_of_volumes(front):
    points, ref = front
    n, d = points.shape
    base = hypervolume(points, ref, maximize=False)
    candidates = np.random.default_rng(n).random((5, d)) * 1.2
    gains = hv_improvement(candidates, points, ref, maximize=False)
    for gain, candidate in zip(gains, candidates, strict=True):
        assert close(gain, hypervolume(np.vstack([points, candidate]), ref, maximize=False) - base, np.prod(ref))
    kept = is_non_dominated(points, maximize=False, keep_duplicates=True)
    front_only = points[kept]
    contributions = hv_contributions(points, ref, maximize=False)
    assert not contributions[~kept].any()
    for i, contribution in enumerate(contributions[kept]):
        rest = hypervolume(np.delete(front_only, i, axis=0), ref, maximize=False)
        assert close(contribution, base - rest, np.prod(ref))


@given(fronts(max_d=5))
@limits(max_examples=100)
def test_dominance_is_what_it_says(front):
    points, _ = front
    n = len(points)
    dominates = [[(a <= b).all() and (a < b).any() for b in points] for a in points]
    expected = np.array([not any(dominates[j][i] for j in range(n)) for i in range(n)], dtype=bool)
    np.testing.assert_array_equal(is_non_dominated(points, maximize=False, keep_duplicates=True), expected)
    first = np.array([expected[i] and not any((points[j] == points[i]).all() for j in range(i)) for i in range(n)])
    np.testing.assert_array_equal(is_non_dominated(points, maximize=False), first.astype(bool))
    ranks = non_dominated_rank(-points)
    left, rank = set(range(n)), 0
    while left:
        best = {i for i in left if not any(dominates[j][i] for j in left)}
        assert all(ranks[i] == rank for i in best)
        left, rank = left - best, rank + 1


@given(fronts(max_d=4, max_n=8))
@limits(max_examples=60)
def test_boxes_are_disjoint_and_fill_the_volume(front):
    points, ref = front
    lower, upper = box_decomposition(points, ref, kind="dominated", maximize=False)
    assert close((upper - lower).prod(-1).sum(), hypervolume(points, ref, maximize=False), np.prod(ref))
    for a, b in itertools.combinations(range(len(lower)), 2):
        assert (np.minimum(upper[a], upper[b]) - np.maximum(lower[a], lower[b])).min() <= 0


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_gradient_is_that_of_finite_differences(d):
    points = np.abs(np.random.default_rng(d).normal(size=(12, d)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    volume, gradient = hypervolume_and_grad(points, 1.1, maximize=False)
    tensor = torch.tensor(points, requires_grad=True)
    by_torch = hypervolume(tensor, 1.1, maximize=False)
    by_torch.backward()
    assert volume == pytest.approx(by_torch.item())
    np.testing.assert_allclose(tensor.grad.numpy(), gradient, atol=1e-12)
    step = 1e-6
    for i, k in itertools.product(range(3), range(d)):
        moved = [points.copy(), points.copy()]
        moved[0][i, k] += step
        moved[1][i, k] -= step
        up, down = (hypervolume(m, 1.1, maximize=False, backend="numba") for m in moved)
        slope = (up - down) / (2 * step)
        assert gradient[i, k] == pytest.approx(slope, abs=1e-8)


def test_large_fronts_agree_with_moocore():
    rng = np.random.default_rng(0)
    for d, n in ((2, 5000), (3, 3000), (4, 300), (5, 120), (7, 40)):
        points = np.abs(rng.normal(size=(n, d)))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        expected = moocore.hypervolume(points, ref=np.full(d, 1.1))
        for backend in ("auto", "numba"):
            assert hypervolume(points, 1.1, maximize=False, backend=backend) == pytest.approx(expected, rel=REL)


def test_greedy_subset_keeps_most_and_the_exact_one_is_best():
    rng = np.random.default_rng(1)
    points = rng.random((9, 2))
    best = max(hypervolume(points[list(rows)], 0.0) for rows in itertools.combinations(range(9), 3))
    chosen = hv_subset(points, 3, 0.0, method="exact")
    assert hypervolume(points[chosen], 0.0) == pytest.approx(best)
    greedy = hv_subset(points, 3, 0.0, method="greedy")
    assert hypervolume(points[greedy], 0.0) >= (1 - 1 / np.e) * best


def test_crowding_distance_is_the_sum_of_relative_gaps():
    found = crowding_distance([[0.0, 4.0], [1.0, 2.0], [4.0, 0.0]])
    np.testing.assert_array_equal(found, [np.inf, 2.0, np.inf])


@pytest.mark.bench
def test_twenty_thousand_random_fronts():
    """Run by hand: volume, gains and dominance of 20,000 fronts against moocore."""
    rng = np.random.default_rng(7)
    for _ in range(20_000):
        d, n = int(rng.integers(2, 8)), int(rng.integers(1, 40))
        points = rng.random((n, d))
        if rng.random() < 0.3:
            points = np.round(points * 6) / 6
        ref = np.full(d, rng.choice([0.8, 1.0, 1.1]))
        expected = moocore.hypervolume(points, ref=ref)
        for backend in ("auto", "numba"):
            assert close(hypervolume(points, ref, maximize=False, backend=backend), expected, 0.01)
        kept = is_non_dominated(points, maximize=False, keep_duplicates=True)
        np.testing.assert_array_equal(kept, moocore.is_nondominated(points, keep_weakly=True))
        np.testing.assert_array_equal(non_dominated_rank(points, maximize=False), moocore.pareto_rank(points))
