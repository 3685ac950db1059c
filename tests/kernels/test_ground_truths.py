"""Exact volumes of continuous fronts, of test problems and of environments: formulas owe the kernels nothing."""

import math

import numpy as np
import pytest

from moopt.kernels import hypervolume

TABLE = {
    # d: linear, DTLZ1, sphere (DTLZ2), convex sphere; reference 1.1 in every objective, minimised.
    2: (0.71, 1.085, 0.4246018366025519, 0.9953981633974485),
    3: (1.1643333333333337, 1.3101666666666671, 0.8074012244017016, 0.7902182246175335),
    4: (1.4224333333333337, 1.4614958333333337, 1.155674862465958, 0.5690885375772092),
    5: (1.6021766666666672, 1.610249583333334, 1.4460165933151778, 0.3794298346456485),
    6: (1.770172111111112, 1.771539298611112, 1.69081548781172, 0.23741639958634309),
    8: (2.1435640084127, 2.143588713118801, 2.127734465756186, 0.07967949817110402),
    10: (2.59374218452681, 2.593742459830888, 2.5912520655298095, 0.022678312911919463),
}


def ball(d):
    return math.pi ** (d / 2) / math.gamma(d / 2 + 1)


def closed_form(shape, d, rho):
    if shape == "linear":
        return rho**d - 1 / math.factorial(d)
    if shape == "dtlz1":
        return rho**d - 0.5**d / math.factorial(d)
    if shape == "sphere":
        return rho**d - ball(d) / 2**d
    return sum(math.comb(d, k) * (rho - 1) ** (d - k) * ball(k) / 2**k for k in range(d + 1))


def samples(shape, n, d):
    points = np.abs(np.random.default_rng(d).normal(size=(n, d)))
    if shape in ("linear", "dtlz1"):
        points = points**2  # squares of normals, scaled to sum 1, reach the whole simplex
        return points / points.sum(1, keepdims=True) * (1.0 if shape == "linear" else 0.5)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points if shape == "sphere" else 1.0 - points


SHAPES = ("linear", "dtlz1", "sphere", "convex")
SIZES = {2: (3000, 1e-3), 3: (3000, 3e-2), 4: (600, 0.12), 5: (150, 0.3), 6: (60, 0.5), 8: (25, 0.8), 10: (15, 0.95)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("d", TABLE)
def test_samples_of_a_continuum_approach_its_volume_from_below(shape, d):
    value = closed_form(shape, d, 1.1)
    assert value == pytest.approx(TABLE[d][SHAPES.index(shape)], rel=1e-13)
    n, short = SIZES[d]
    points = samples(shape, n, d)
    coarse, fine = (hypervolume(points[:k], 1.1, maximize=False) for k in (n // 2, n))
    assert 0.0 < coarse < fine < value
    if shape != "convex":
        assert fine > value * (1 - short)


def das_dennis(d, H):
    """Return all points of the simplex with steps 1/H."""
    rest = np.zeros((1, 0), dtype=int)
    for _ in range(d - 1):
        rest = np.concatenate(
            [np.column_stack([rest, np.full(len(rest), k)])[rest.sum(1) + k <= H] for k in range(H + 1)]
        )
    return np.column_stack([rest, H - rest.sum(1)])


@pytest.mark.parametrize(
    ("d", "H", "K"), [(2, 200, 220), (3, 30, 31), (4, 6, 7), (5, 4, 5), (6, 3, 4), (8, 2, 3), (10, 1, 2)]
)
def test_lattices_of_any_width(d, H, K):
    points = das_dennis(d, H)
    assert len(points) == math.comb(H + d - 1, d - 1)
    volume = hypervolume(points, K, maximize=False)
    assert volume == pytest.approx(K**d - math.comb(H + d - 1, d), rel=1e-13)
    scaled = hypervolume(points / H, K / H, maximize=False)
    assert scaled == pytest.approx(volume / H**d, rel=1e-12)


def zdt3_front(n):
    starts = (0.0, 0.1822287280293998, 0.4093136748086569, 0.6183967944392659, 0.8233317983266328)
    ends = (0.08300153492691163, 0.25776236338783026, 0.4538821040888302, 0.6525117038046626, 0.8518328654364139)
    x = np.concatenate([np.linspace(a, b, n) for a, b in zip(starts, ends, strict=True)])
    return np.stack([x, 1 - np.sqrt(x) - x * np.sin(10 * np.pi * x)], axis=1)


def zdt6_front(n):
    x = np.linspace(0.2807753191, 1.0, n)
    return np.stack([x, 1 - x**2], axis=1)


LINE = np.linspace(0.0, 1.0, 100_001)
ZDT1 = np.stack([LINE**2, 1 - LINE], axis=1)  # evenly spaced along the second objective
ZDT2 = np.stack([LINE, 1 - LINE**2], axis=1)


@pytest.mark.parametrize(
    ("front", "ref", "value"),
    [
        (ZDT1, 1.1, 0.8766666666666667),
        (ZDT1, 11.0, 120.66666666666667),
        (ZDT2, 1.1, 0.5433333333333333),
        (zdt6_front(100_001), 1.1, 0.5078775146),
        (zdt3_front(20_001), 1.0, 1.0444260074),
        (zdt3_front(20_001), 1.1, 1.3317629086570202),
        (zdt3_front(20_001), 11.0, 128.77811613069076),
    ],
    ids=["ZDT1", "ZDT1 far", "ZDT2", "ZDT6", "ZDT3 near", "ZDT3", "ZDT3 far"],
)
def test_zdt(front, ref, value):
    found = hypervolume(front, ref, maximize=False)
    assert value - 5e-5 < found <= value + 1e-9


CONVEX_TREASURE = [
    (0.7, 1), (8.2, 3), (11.5, 5), (14, 7), (15.1, 8), (16.1, 9), (19.6, 13), (20.3, 14), (22.4, 17), (23.7, 19)
]  # fmt: skip
CONCAVE_TREASURE = list(zip((1, 2, 3, 5, 8, 16, 24, 50, 74, 124), (t for _, t in CONVEX_TREASURE), strict=True))


def treasure_front(table, gamma):
    """Return treasures and times of the shortest ways, discounted: the treasure comes with the last step."""
    value, steps = np.array(table).T
    if gamma == 1.0:
        return np.stack([value, -steps], axis=1)
    return np.stack([value * gamma ** (steps - 1), -(1 - gamma**steps) / (1 - gamma)], axis=1)


@pytest.mark.parametrize(
    ("table", "gamma", "values"),
    [
        (CONVEX_TREASURE, 1.0, (401.8, 994.3, 2179.3)),
        (CONVEX_TREASURE, 0.99, (360.40094637581575, 854.8503500349924, 1843.7491573533464)),
        (CONCAVE_TREASURE, 1.0, (1155, 4255, 10455)),
        (CONCAVE_TREASURE, 0.99, (1101.3844295193444, 3688.3770900146155, 8862.36241100516)),
    ],
)
def test_deep_sea_treasure(table, gamma, values):
    for time, value in zip((25.0, 50.0, 100.0), values, strict=True):
        assert hypervolume(treasure_front(table, gamma), [0.0, -time]) == pytest.approx(value, rel=1e-12)


def test_fronts_that_mo_gymnasium_states():
    from mo_gymnasium.envs.fruit_tree.fruit_tree import FRUITS

    fruits = np.array(FRUITS["6"])
    assert fruits.shape == (64, 6)
    for backend in ("auto", "numba", "moocore"):
        assert hypervolume(fruits, -1.0, backend=backend) == pytest.approx(58271.25839802741, rel=1e-12)


def test_resource_gathering():
    import mo_gymnasium

    env = mo_gymnasium.make("resource-gathering-v0")
    front = np.array(env.unwrapped.pareto_front(gamma=1.0))
    env.close()
    assert hypervolume(front, [-1.1, -1.0, -1.0]) == pytest.approx(4.11, rel=1e-12)
