"""Exact hypervolumes with closed forms: lattices, continua, small integers."""

import itertools
import math

import numpy as np
import pytest
import torch

from moopt.kernels import box_decomposition, hv_approx, hypervolume, hypervolume_and_grad

BACKENDS = ["auto", "numba", "moocore", "torch"]


def lattice(d, H):
    """All points of d non-negative integers that sum to H."""
    return np.array([p for p in itertools.product(range(H + 1), repeat=d) if sum(p) == H], dtype=float)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("d", "H", "K", "value"),
    [(2, 5, 6, 21), (3, 4, 5, 105), (4, 3, 4, 241), (5, 3, 4, 1003), (6, 2, 3, 722), (3, 12, 13, 1833), (3, 1, 2, 7)],
)
def test_lattices(d, H, K, value, backend):
    if backend == "torch" and d > 4:
        with pytest.raises(ValueError, match="at most 4 objectives"):
            hypervolume(lattice(d, H), K, maximize=False, backend=backend)
        return
    assert value == K**d - math.comb(H + d - 1, d)
    assert hypervolume(lattice(d, H), K, maximize=False, backend=backend) == pytest.approx(value, rel=1e-13)
    assert hypervolume(-lattice(d, H), -K, backend=backend) == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize(("d", "value"), [(2, 0.4246018366025519), (3, 0.8074012244017016), (6, 1.69081548781172)])
def test_points_of_a_sphere_approach_its_volume_from_below(d, value):
    assert value == pytest.approx(1.1**d - math.pi ** (d / 2) / math.gamma(d / 2 + 1) / 2**d, rel=1e-12)
    points = np.abs(np.random.default_rng(0).normal(size=(40 if d == 6 else 3000, d)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = hypervolume(points, 1.1, maximize=False)
    assert found < value
    if d <= 3:
        assert found > value * (1 - 2e-2)


@pytest.mark.parametrize(
    ("points", "ref", "maximize", "value"),
    [
        ([[1, 2], [2, 1]], 3, False, 3),
        ([[5, 5], [4, 6], [2, 7], [7, 4]], 0, True, 39),
        ([[5, 5], [4, 6], [7, 4]], 0, True, 37),
        ([[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]], 2, False, 7),
        ([[0, 0, 0], [1, 1, 1]], 2, False, 8),
        ([[3.0]], 5, False, 2),
        ([[1.0], [4.0]], 0, True, 4),
        ([[1.0, 3.0]], [0.0, 5.0], [True, False], 2),
        ([[1.0, 1.0]], [1.0, 2.0], False, 0),
        ([[2.0, 0.0]], [1.0, 1.0], False, 0),
    ],
)
def test_small_fronts(points, ref, maximize, value):
    for kind in (np.array, torch.tensor, list):
        assert float(hypervolume(kind(points), ref, maximize=maximize)) == pytest.approx(value, rel=1e-6)


def test_zdt1_from_below():
    x = np.linspace(0, 1, 20_001)
    found = hypervolume(np.stack([x, 1 - np.sqrt(x)], axis=1), 1.1, maximize=False)
    assert 0 < 0.8766666666666667 - found < 1e-4


def test_thirty_five_objectives():
    assert hypervolume(np.zeros((1, 35)), 2.0, maximize=False) == 2.0**35
    two = np.zeros((2, 35))
    two[0, 0] = two[1, 1] = 1.0
    assert hypervolume(two, 2.0, maximize=False) == pytest.approx(2.0**34 * 1.5)


def test_boxes_of_a_lattice_fill_its_volume():
    for d in (2, 3, 4):
        lower, upper = box_decomposition(lattice(d, 3), 4.0, kind="dominated", maximize=False)
        assert (upper - lower).prod(-1).sum() == pytest.approx(4**d - math.comb(3 + d - 1, d))


def test_the_gradient_of_a_staircase_is_its_steps():
    volume, gradient = hypervolume_and_grad([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0], [1.5, 1.5]], [0.0, 0.0])
    assert volume == 6.0
    np.testing.assert_array_equal(gradient, [[1, 1], [1, 1], [1, 1], [0, 0]])


def test_the_approximation_is_close_in_many_objectives():
    assert hv_approx(lattice(6, 2), 3.0, maximize=False) == pytest.approx(722, rel=5e-3)
