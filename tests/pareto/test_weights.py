"""Preference vectors."""

import itertools

import numpy as np
import pytest

from moopt.pareto import simplex_weights
from moopt.pareto.weights import METHODS, lattice_size


def spacing(weights):
    gap = ((weights[:, None] - weights) ** 2).sum(-1) ** 0.5
    return (gap + np.eye(len(weights)) * 9).min()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (2, 7), (3, 10), (5, 35)])
def test_rows_are_on_the_simplex(method, m, n):
    if (method == "das_dennis" and n < m) or (method == "lattice" and (m, n) == (2, 1)):
        with pytest.raises(ValueError, match="riesz"):
            simplex_weights(m, n, method=method)
        return
    weights = simplex_weights(m, n, method=method)
    assert weights.shape == (n, m)
    assert weights.dtype == np.float64
    assert (weights >= 0).all()
    assert weights.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-12)


@pytest.mark.parametrize(("m", "H"), [(1, 4), (2, 10), (3, 4), (4, 3), (6, 2)])
def test_lattice_is_all_integer_vectors_in_order(m, H):
    expected = [c for c in itertools.product(range(H + 1), repeat=m) if sum(c) == H]
    weights = simplex_weights(m, H=H)
    assert (weights * H).round(9).tolist() == [list(map(float, c)) for c in expected]
    assert len(weights) == lattice_size(m, H)


def test_lattice_with_impossible_size_names_the_neighbours():
    with pytest.raises(ValueError, match="6 or 10"):
        simplex_weights(3, 7)


def test_das_dennis_adds_an_inner_layer_when_no_point_is_interior():
    weights = simplex_weights(8, 156, method="das_dennis")
    assert weights.shape == (156, 8)
    assert (weights > 0).all(axis=1).sum() == 36
    assert (weights == simplex_weights(8, H=(3, 2), method="das_dennis")).all()
    assert len(simplex_weights(3, 100, method="das_dennis")) == 91


@pytest.mark.parametrize(("m", "n"), [(3, 10), (3, 50), (4, 20), (6, 30)])
def test_riesz_is_evenly_spread_and_has_the_corners(m, n):
    weights = simplex_weights(m, n, method="riesz", seed=1)
    assert (weights[:m] == np.eye(m)).all()
    random = max(spacing(simplex_weights(m, n, method="dirichlet", seed=s)) for s in range(20))
    assert spacing(weights) > 1.8 * random
    if (m, n) == (3, 10):
        # The best spread of ten points is the lattice of step 1/3.
        assert spacing(weights) > 0.95 * spacing(simplex_weights(3, 10))


def test_riesz_small_sizes():
    assert simplex_weights(2, 5, method="riesz")[:, 0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert simplex_weights(4, 1, method="riesz").tolist() == [[0.25] * 4]
    assert (simplex_weights(4, 2, method="riesz") == np.eye(4)[:2]).all()


@pytest.mark.parametrize("method", ["sobol", "dirichlet"])
def test_draws_are_uniform(method):
    weights = simplex_weights(4, 4096, method=method, seed=5)
    assert weights.mean(axis=0) == pytest.approx([0.25] * 4, abs=0.012)
    # Var of a coordinate of Dirichlet(1,1,1,1) is 3/80.
    assert weights.var(axis=0) == pytest.approx([3 / 80] * 4, abs=0.003)


@pytest.mark.parametrize("method", ["riesz", "sobol", "dirichlet"])
def test_seeds(method):
    first = simplex_weights(3, 9, method=method, seed=7)
    assert (first == simplex_weights(3, 9, method=method, seed=7)).all()
    assert (first == simplex_weights(3, 9, method=method, seed=np.random.SeedSequence(7))).all()
    assert not np.array_equal(first, simplex_weights(3, 9, method=method, seed=8))
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator must stay untouched
    simplex_weights(3, 9, method=method, seed=7)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_dirichlet_concentration():
    sharp = simplex_weights(3, 500, method="dirichlet", alpha=0.05)
    assert sharp.max(axis=1).mean() > 0.9
    with pytest.raises(ValueError, match="alpha"):
        simplex_weights(3, 5, method="dirichlet", alpha=0.0)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((3, 6), {"method": "reisz"}, "did you mean 'riesz'"),
        ((0, 6), {}, "m must be"),
        ((3, -1), {"method": "dirichlet"}, "n must be"),
        ((3, 2.5), {"method": "dirichlet"}, "n must be"),
        ((3, True), {}, "n must be"),
        ((3,), {}, "exactly one of n and H"),
        ((3, 6), {"H": 2}, "exactly one of n and H"),
        ((3,), {"H": 0}, "H must be"),
        ((3,), {"H": (2, 1)}, "H must be"),
        ((3,), {"H": 5, "method": "riesz"}, "not H"),
        ((9,), {"H": 100}, "points; use"),
    ],
)
def test_bad_arguments(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        simplex_weights(*args, **kwargs)
