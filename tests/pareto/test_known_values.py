"""Values known in closed form, or published for the fronts of MO-Gymnasium."""

import functools
from math import comb, factorial, gamma, pi

import numpy as np
import pytest

from moopt.pareto import Front, convex_filter, expected_utility, hypervolume, simplex_weights, sparsity

DST = [
    (0.7, -1),
    (8.2, -3),
    (11.5, -5),
    (14, -7),
    (15.1, -8),
    (16.1, -9),
    (19.6, -13),
    (20.3, -14),
    (22.4, -17),
    (23.7, -19),
]


@functools.cache
def exact_front(env_id, discount):
    import mo_gymnasium

    env = mo_gymnasium.make(env_id).unwrapped
    points = np.array(env.pareto_front(gamma=discount))
    env.close()
    return points


@functools.cache
def energy_weights(m):
    """The 50 Riesz-energy weights that MORL papers take the expected utility over."""
    from pymoo.util.ref_dirs import get_reference_directions

    return get_reference_directions("energy", m, 50, seed=42)


@pytest.mark.parametrize(("depth", "value"), [(-25, 401.8), (-50, 994.3), (-100, 2179.3)])
def test_deep_sea_treasure_list(depth, value):
    assert Front(DST, ref_point=[0, depth]).hypervolume() == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("env_id", "discount", "ref", "size", "value", "utility"),
    [
        ("deep-sea-treasure-v0", 1.0, (0, -50), 10, 994.3, 6.82226),
        ("deep-sea-treasure-v0", 0.99, (0, -50), 10, 854.8503500349924, 5.60986),
        ("deep-sea-treasure-v0", 0.98, (0, -50), 10, 731.613904, 4.68308),
        ("deep-sea-treasure-v0", 0.99, (0, -25), 10, 360.40094637581575, None),
        ("deep-sea-treasure-v0", 0.99, (0, -100), 10, 1843.7491573533464, None),
        ("deep-sea-treasure-concave-v0", 1.0, (0, -25), 10, 1155, None),
        ("deep-sea-treasure-concave-v0", 1.0, (0, -50), 10, 4255, 53.85078),
        ("deep-sea-treasure-concave-v0", 0.99, (0, -25), 10, 1101.3844295193444, None),
        ("deep-sea-treasure-concave-v0", 0.99, (0, -50), 10, 3688.3770900146155, 44.35636),
        ("deep-sea-treasure-concave-v0", 0.98, (0, -50), 10, 3175.197125, 36.40281),
        ("deep-sea-treasure-mirrored-v0", 1.0, (0, -100), 10, 10455, None),
        ("deep-sea-treasure-mirrored-v0", 0.99, (0, -100), 10, 8862.36241100516, None),
        ("fruit-tree-v0", 1.0, (0,) * 6, 64, 12575.873297, 6.46076),
        ("fruit-tree-v0", 0.99, (0,) * 6, 64, 9302.378173, 6.14412),
        ("fruit-tree-v0", 1.0, (-1,) * 6, 64, 58271.25839802741, None),
        ("fruit-tree-v0", 0.99, (-1,) * 6, 64, 46034.801698, None),
        ("resource-gathering-v0", 1.0, (-1, -1, -2), 3, 5.729, 0.59972),
        ("resource-gathering-v0", 0.99, (-1, -1, -2), 3, 5.231495, 0.52643),
        ("resource-gathering-v0", 0.9, (-1, -1, -2), 6, 3.083729, 0.17739),
        ("resource-gathering-v0", 1.0, (-1.1, -1, -1), 3, 4.11, None),
        ("minecart-v0", 1.0, (-1, -1, -200), 10, 879.695313, 0.40871),
        ("minecart-v0", 0.99, (-1, -1, -200), 20, 763.519422, 0.32714),
        ("minecart-v0", 0.98, (-1, -1, -200), 20, 668.183286, 0.26249),
        ("minecart-v0", 0.98, (0, 0, -200), 20, 100.322234, None),
        ("minecart-deterministic-v0", 1.0, (-1, -1, -200), 10, 944.929, 0.49698),
        ("minecart-deterministic-v0", 0.99, (-1, -1, -200), 20, 823.792816, 0.40096),
        ("minecart-deterministic-v0", 0.98, (-1, -1, -200), 20, 723.048170, 0.32533),
    ],
)
def test_mo_gymnasium_fronts(env_id, discount, ref, size, value, utility):
    front = Front(exact_front(env_id, discount), ref_point=ref).filter()
    assert len(front) == size
    assert front.hypervolume() == pytest.approx(value, rel=1e-11, abs=5.1e-7)
    if utility is not None:
        assert front.expected_utility(energy_weights(front.n_obj)) == pytest.approx(utility, abs=5.1e-6)


def test_expected_utility_on_coarse_grids():
    tree = exact_front("fruit-tree-v0", 0.99)
    cart = exact_front("minecart-v0", 0.98)
    assert expected_utility(tree, simplex_weights(6, H=2)) == pytest.approx(6.7561, abs=5e-5)
    assert expected_utility(cart, simplex_weights(3, H=2)) == pytest.approx(0.3684, abs=5e-5)
    assert expected_utility(DST) == pytest.approx(6.7658, abs=5e-5)


def test_sparsities():
    assert sparsity(DST) == pytest.approx(15.38, abs=5e-3)
    assert sparsity(exact_front("deep-sea-treasure-concave-v0", 1.0)) == pytest.approx(437.67, abs=5e-3)


def test_minecart_convex_coverage_set():
    import mo_gymnasium

    env = mo_gymnasium.make("minecart-v0").unwrapped
    hull = np.array(env.convex_coverage_set(gamma=0.98))
    env.close()
    assert hypervolume(hull, (-1, -1, -200)) == pytest.approx(668.081447, abs=5.1e-7)
    front = exact_front("minecart-v0", 0.98)
    kept = front[convex_filter(front)]
    # The environment's set also lists two hull vertices that no non-negative weights prefer.
    assert len(hull) == 10
    assert len(kept) == 8
    assert {tuple(p) for p in kept.round(9)} < {tuple(p) for p in hull.round(9)}
    assert expected_utility(kept) == pytest.approx(expected_utility(front), rel=1e-14)


@pytest.mark.parametrize(
    ("d", "H", "K", "value"),
    [
        (2, 5, 6, 21),
        (3, 4, 5, 105),
        (4, 3, 4, 241),
        (5, 3, 4, 1003),
        (6, 2, 3, 722),
        (3, 12, 13, 1833),
        (4, 6, 7, 2275),
    ],
)
def test_lattice_fronts(d, H, K, value):
    lattice = np.round(simplex_weights(d, H=H) * H)
    assert value == K**d - comb(H + d - 1, d)
    assert hypervolume(lattice, [K] * d, maximize=False) == value


@pytest.mark.parametrize("d", [2, 3, 4])
def test_smooth_fronts_are_approached_from_below(d):
    flat = simplex_weights(d, H={2: 400, 3: 60, 4: 14}[d])
    sphere = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    for points, volume in ((flat, 1 / factorial(d)), (sphere, pi ** (d / 2) / gamma(d / 2 + 1) / 2**d)):
        limit = 1.1**d - volume
        value = hypervolume(points, [1.1] * d, maximize=False)
        assert limit * {2: 0.99, 3: 0.95, 4: 0.85}[d] < value < limit


def test_zdt1_and_zdt2():
    x = np.linspace(0, 1, 4001)
    zdt1 = hypervolume(np.column_stack([x, 1 - np.sqrt(x)]), [1.1, 1.1], maximize=False)
    zdt2 = hypervolume(np.column_stack([x, 1 - x**2]), [1.1, 1.1], maximize=False)
    assert zdt1 == pytest.approx(0.8766666666666667, abs=2e-4)
    assert zdt2 == pytest.approx(0.5433333333333333, abs=2e-4)
