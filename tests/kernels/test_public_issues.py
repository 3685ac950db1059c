"""Forty-six traps that other libraries' users reported or that their present releases show; each test names its own.

``measured`` in a name's place means: seen on the library's release, not in its tracker.
"""

import inspect
import math
import time
from itertools import pairwise

import moocore
import numpy as np
import pytest
import torch

from moopt.envs.defaults import FAMILIES
from moopt.kernels import (
    box_decomposition,
    crowding_distance,
    hv_approx,
    hv_contributions,
    hv_improvement,
    hv_subset,
    hypervolume,
    is_non_dominated,
    non_dominated_rank,
)
from moopt.pareto import (
    convex_filter,
    epsilon_multiplicative,
    expected_utility,
    ideal_nadir,
    infer_reference_point,
    normalize,
    sparsity,
)


def sphere(n, d, seed=0):
    points = np.abs(np.random.default_rng(seed).normal(size=(n, d)))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def undominated(points):
    """Rows of minimised points that no row dominates, by comparing all pairs."""
    no_worse = (points[:, None] <= points[None]).all(2)
    return ~(no_worse & ~no_worse.T).any(0)


def test_optuna_2421_volume_never_falls_when_an_integer_point_enters():
    points = np.random.default_rng(0).integers(0, 50, size=(40, 3))
    volumes = [hypervolume(points[:n], 60, maximize=False) for n in range(41)]
    assert all(a <= b for a, b in pairwise(volumes))
    assert volumes[-1] == hypervolume(points.astype(float), 60.0, maximize=False)


def test_optuna_1731_copies_add_nothing():
    assert hypervolume([[1, 2], [1, 2], [2, 1]], 3, maximize=False) == 3.0


@pytest.mark.parametrize("d", [4, 6, 9])
def test_optuna_5433_5591_dominated_rows_and_copies_cost_nothing(d):
    """Ten copies of forty points in nine objectives would take hours if each counted."""
    points = sphere(40, d)
    expected = hypervolume(points, 1.1, maximize=False)
    worse = np.minimum(points * 1.01, 1.09)
    started = time.monotonic()
    for more in (np.tile(points, (10, 1)), np.vstack([worse] * 5 + [points])):
        assert hypervolume(more, 1.1, maximize=False) == pytest.approx(expected, rel=1e-12)
    assert time.monotonic() - started < 30


def test_optuna_3706_3743_crowding_with_infinite_values_is_never_nan():
    inf = np.inf
    for rows in ([[inf, 1], [inf, 2], [inf, 3]], [[-inf, 1], [inf, 2], [0, 3], [inf, 0]], [[inf, -inf]] * 4):
        assert not np.isnan(crowding_distance(np.array(rows))).any()
    np.testing.assert_array_equal(crowding_distance([[inf, 1.0], [inf, 2.0], [inf, 4.0]]), [inf, 1.0, inf])
    np.testing.assert_array_equal(crowding_distance(np.full((3, 2), inf)), [0.0, 0.0, 0.0])


def test_optuna_6242_when_all_is_infeasible_the_least_violation_is_first():
    """The documented policy: rank by total violation, never an empty set."""
    violation = np.array([[3.0], [1.0], [2.0], [1.0]])
    assert non_dominated_rank(violation, maximize=False).tolist() == [2, 0, 1, 0]


def test_optuna_6792_the_reference_point_is_always_the_callers():
    """No kernel infers one, so that no two numbers in a comparison have different ones."""
    for function in (hypervolume, hv_contributions, hv_improvement, hv_subset, hv_approx, box_decomposition):
        assert inspect.signature(function).parameters["ref"].default is inspect.Parameter.empty


def test_optuna_5203_three_objectives_are_fast():
    points = sphere(20_000, 3)
    started = time.monotonic()
    hypervolume(points, 1.1, maximize=False)
    assert time.monotonic() - started < 5


def test_optuna_measured_outside_points_and_infinite_reference():
    assert hypervolume([[4.0, 4.0], [1.0, 2.0]], 3.0, maximize=False) == 2.0
    assert hypervolume(np.zeros((0, 2)), np.inf, maximize=False) == 0.0
    assert hypervolume([[np.inf, 1.0]], [np.inf, 2.0], maximize=False) == 0.0
    assert hypervolume([[1.0, 1.0]], [np.inf, 1.0], maximize=False) == 0.0
    assert hypervolume([[1.0, 1.0]], [np.inf, 2.0], maximize=False) == np.inf


@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_pymoo_95_97_values_of_any_sign(d):
    points = sphere(15, d)
    assert hypervolume(points - 7.0, 1.1 - 7.0, maximize=False) == pytest.approx(
        hypervolume(points, 1.1, maximize=False)
    )


def test_pymoo_59_extremes_contribute_under_the_default_reference_point():
    points = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    assert hv_contributions(points, [1.0, 1.0], maximize=False)[[0, 2]].tolist() == [0.0, 0.0]
    ref = infer_reference_point(points, maximize=False)
    np.testing.assert_allclose(ref, 1.1)
    assert (hv_contributions(points, ref, maximize=False) > 0.0).all()


def test_pymoo_116_nadir_is_not_ideal():
    ideal, nadir = ideal_nadir([[1.0, 9.0], [4.0, 5.0], [0.0, 0.0]])
    assert (ideal.tolist(), nadir.tolist()) == ([4.0, 9.0], [1.0, 5.0])
    ideal, nadir = ideal_nadir([[1.0, 9.0], [4.0, 5.0], [10.0, 10.0]], maximize=False)
    assert (ideal.tolist(), nadir.tolist()) == ([1.0, 5.0], [4.0, 9.0])


def test_pymoo_188_volume_is_not_normalized_behind_the_callers_back():
    points = [[6, 6.5], [5, 7], [4, 6.5], [3, 7.5], [2, 7.5]]
    assert hypervolume(points, [7, 8.5], maximize=False) == 8.0


def test_pymoo_414_a_constant_objective_normalizes_to_zero_and_says_so():
    with pytest.warns(UserWarning, match="constant"):
        found = normalize([[1.0, -5.0], [3.0, -5.0]], [3.0, -5.0], [1.0, -5.0])
    assert found.tolist() == [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("d", [2, 3, 5])
def test_pymoo_667_no_dominated_point_slips_through_a_large_filter(d):
    points = np.round(np.random.default_rng(d).random((3000, d)), 3)
    np.testing.assert_array_equal(is_non_dominated(points, maximize=False, keep_duplicates=True), undominated(points))


def test_pymoo_measured_no_option_without_effect():
    """An epsilon that shifts all rows alike changes no rank; there is none here."""
    for function in (is_non_dominated, non_dominated_rank):
        assert not {"eps", "epsilon"} & set(inspect.signature(function).parameters)


@pytest.mark.parametrize("n", [5, 47, 48, 49, 300])
def test_pymoo_653_611_sorting_peels_fronts_one_by_one(n):
    points = np.random.default_rng(n).integers(0, 6, size=(n, 3)).astype(float)
    ranks = non_dominated_rank(points, maximize=False)
    left = np.arange(n)
    for level in range(ranks.max() + 1):
        first = undominated(points[left])
        assert (ranks[left[first]] == level).all()
        left = left[~first]
    assert len(left) == 0


def test_moocore_27_one_objective_keeps_its_least_values():
    points = np.array([[3.0], [1.0], [2.0], [1.0]])
    for _ in range(3):
        assert is_non_dominated(points, maximize=False, keep_duplicates=True).tolist() == [False, True, False, True]
        assert is_non_dominated(points, maximize=False).tolist() == [False, True, False, False]


def test_moocore_58_volume_in_one_objective_is_a_length():
    assert hypervolume([[3.0], [1.0]], 5.0, maximize=False) == 4.0
    assert hypervolume([[6.0]], 5.0, maximize=False) == 0.0


def test_moocore_74_ranks_of_tiled_integer_populations():
    part = np.random.default_rng(0).integers(0, 3, size=(96, 5)).astype(float)
    tiled = np.tile(part, (4, 1))
    np.testing.assert_array_equal(non_dominated_rank(tiled), np.tile(non_dominated_rank(part), 4))


def test_moocore_72_more_than_thirty_one_objectives():
    assert hypervolume(np.full((1, 35), 0.5), 1.0, maximize=False) == 2.0**-35
    points = np.random.default_rng(0).random((6, 40))
    np.testing.assert_array_equal(is_non_dominated(points, maximize=False), undominated(points))
    assert non_dominated_rank(np.vstack([points, points.min(0)]), maximize=False).tolist() == [1] * 6 + [0]
    np.testing.assert_allclose(hv_contributions(points[:1], 1.0, maximize=False), np.prod(1.0 - points[:1], axis=1))


def test_moocore_news_mixed_directions_of_the_ratio_indicator():
    points, ref = np.array([[2.0, 4.0]]), np.array([[1.0, 8.0]])
    # Minimised first objective: 2 against 1; maximised second: 8 wanted, 4 found.
    assert epsilon_multiplicative(points, ref, maximize=[False, True]) == pytest.approx(2.0)
    assert epsilon_multiplicative(points, ref, maximize=[True, False]) == pytest.approx(0.5)


@pytest.mark.parametrize("n", [*range(14, 19), *range(30, 35), 63, 64, 65])
def test_moocore_news_filters_around_switches_of_algorithm(n):
    points = sphere(n, 4, seed=n)
    points[n // 2 :] = np.round(points[n // 2 :], 1)
    np.testing.assert_array_equal(is_non_dominated(points, maximize=False, keep_duplicates=True), undominated(points))


@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [3, 60, 1200])
def test_moocore_and_botorch_measured_nan_neither_wins_nor_empties_a_front(d, n):
    points = np.random.default_rng(d).random((n, d))
    points[1, 0] = np.nan
    for function in (is_non_dominated, non_dominated_rank):
        with pytest.raises(ValueError, match="NaN"):
            function(points, maximize=False)
    found = is_non_dominated(points, maximize=False, nan_policy="omit")
    expected = np.zeros(n, dtype=bool)
    rest = np.delete(np.arange(n), 1)
    expected[rest] = undominated(points[rest])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [40, 1000, 1001, 1500])
def test_botorch_2201_2203_657_copies_are_treated_alike_at_every_size(n):
    points = np.repeat(sphere(n // 2, 3), 2, axis=0)
    kept = is_non_dominated(points, maximize=False)
    assert kept[::2].all()
    assert not kept[1::2].any()
    assert is_non_dominated(points, maximize=False, keep_duplicates=True).all()
    assert is_non_dominated(torch.from_numpy(points), maximize=False).numpy().tolist() == kept.tolist()


def test_botorch_3335_3337_no_cells_are_no_error():
    cells = box_decomposition(np.zeros((0, 3)), 0.0, kind="dominated")
    assert cells.shape == (2, 0, 3)
    closed = box_decomposition([[np.inf, np.inf]], 0.0)
    assert closed.shape == (2, 0, 2)
    assert hv_improvement([[1.0, 1.0]], [[np.inf, np.inf]], 0.0).tolist() == [0.0]
    inside = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    gain = hv_improvement(inside, torch.full((1, 2), torch.inf, dtype=torch.float64), 0.0)
    assert gain.tolist() == [0.0, 0.0]


def test_botorch_measured_dtlz1_has_the_volume_of_a_simplex():
    x = np.linspace(0.0, 0.5, 100_001)
    found = hypervolume(np.stack([x, 0.5 - x], axis=1), 400.0, maximize=False)
    assert found == pytest.approx(400.0**2 - 0.5**2 / math.factorial(2), abs=1e-5)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_botorch_measured_partitions_of_any_width_batched_and_differentiable(d):
    points = torch.tensor(np.stack([sphere(8, d, seed) for seed in range(3)]))
    cells = box_decomposition(points, 0.0, kind="dominated")
    torch.testing.assert_close((cells[1] - cells[0]).prod(-1).sum(-1), hypervolume(points, 0.0))
    leaf = points.clone().requires_grad_()
    hypervolume(leaf, 0.0).sum().backward()
    assert leaf.grad.isfinite().all()
    # Euler: the volume is homogeneous of degree d.
    torch.testing.assert_close((leaf.grad * points).sum((1, 2)), d * hypervolume(points, 0.0))


def test_xopt_322_the_filter_knows_no_reference_point():
    for function in (is_non_dominated, non_dominated_rank, crowding_distance):
        assert not [name for name in inspect.signature(function).parameters if "ref" in name]


def test_deap_265_mismatched_shapes_are_named():
    with pytest.raises(ValueError, match=r"\(3,\).*2 objectives"):
        hypervolume(np.ones((4, 2)), np.zeros(3))
    with pytest.raises(ValueError, match=r"\(5, 3\).*\(4, 2\)"):
        hv_improvement(np.ones((5, 3)), np.ones((4, 2)), 0.0)


@pytest.mark.parametrize("d", [2, 3, 4, 8])
def test_deap_266_one_direction_of_dominance_on_every_path(d):
    """Single small, single large, batched, on tensors: the same ranks."""
    points = np.round(np.random.default_rng(d).random((60, d)), 1)
    single = non_dominated_rank(points, maximize=False)
    small = non_dominated_rank(points[:20], maximize=False)
    batch = non_dominated_rank(np.stack([points] * 40), maximize=False)
    assert (batch == single).all()
    np.testing.assert_array_equal(non_dominated_rank(np.stack([points[:20]] * 40), maximize=False)[3], small)
    np.testing.assert_array_equal(non_dominated_rank(torch.from_numpy(-points)).numpy(), single)
    np.testing.assert_array_equal(single, moocore.pareto_rank(points))


def test_deap_654_three_dimensional_arrays_are_read():
    assert hypervolume(np.ones((2, 1, 3)), 0.0).tolist() == [1.0, 1.0]
    assert hypervolume([np.array([1.0, 2.0, 3.0])], np.zeros(3)) == 6.0


def test_deap_321_crowding_is_the_same_under_flipped_signs():
    points = np.random.default_rng(0).random((20, 3))
    for signs in ([1, 1, -1], [-1, -1, -1]):
        np.testing.assert_allclose(crowding_distance(points * signs), crowding_distance(points))


def test_leap_267_moeaframework_66_a_flat_objective_adds_zero():
    np.testing.assert_array_equal(crowding_distance(np.ones((3, 1))), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(crowding_distance([[0, 7], [1, 7], [4, 7]]), [np.inf, 1.0, np.inf])


def test_operon_68_neighbours_are_those_of_the_same_front():
    points = np.array([[0.0, 4.0], [1.0, 2.0], [4.0, 0.0], [0.5, 5.0], [2.0, 3.0], [5.0, 1.0]])
    ranks = non_dominated_rank(points, maximize=False)
    assert ranks.tolist() == [0, 0, 0, 1, 1, 1]
    found = crowding_distance(points, ranks)
    for level in (0, 1):
        np.testing.assert_array_equal(found[ranks == level], crowding_distance(points[ranks == level]))
    assert np.isinf(found[[0, 2, 3, 5]]).all()


def test_morl_baselines_66_a_reference_point_of_other_width_is_refused_at_once():
    with pytest.raises(ValueError, match=r"ref.*\(2,\).*3 objectives"):
        hypervolume(np.ones((5, 3)), np.array([-100.0, -100.0]))


def test_morl_baselines_124_15_every_known_environment_has_its_reference_point():
    assert {"deep-sea-treasure", "minecart", "mo-hopper", "resource-gathering"} <= set(FAMILIES)
    for families in FAMILIES.values():
        assert all(len(facts.ref_point) == len(facts.names) for facts in families)
    assert "never rank" in sparsity.__doc__


@pytest.mark.parametrize("rows", [[[0, 1], [0.5, 0.5], [1, 0]], [[0, 0, 2], [0, 1, 1], [0, 2, 0]], [[1, 1], [1, 1]]])
def test_morl_baselines_measured_a_flat_convex_hull_is_no_error(rows):
    kept = convex_filter(np.array(rows, dtype=float))
    assert kept[0]
    weights = np.random.default_rng(0).dirichlet(np.ones(len(rows[0])), size=50)
    everything = expected_utility(np.array(rows, dtype=float), weights)
    assert expected_utility(np.array(rows, dtype=float)[kept], weights) == pytest.approx(everything)


def test_platypus_138_16_23_mixed_directions_and_no_clipping():
    points = np.array([[-3.0, 20.0], [-1.0, 60.0]])
    assert hypervolume(points, [-5.0, 200.0], maximize=[True, False]) == 2 * 180 + 2 * 140
    assert hypervolume(-points, [5.0, -200.0], maximize=[False, True]) == 640.0


def test_moeaframework_182_under_one_reference_point_the_better_set_scores_higher():
    shared = [[27, 145, 27], [28, 144, 28], [29, 143, 29], [30, 142, 30], [31, 141, 31], [33, 140, 33]]
    first = [[26, 151, 26], [28, 150, 26], *shared]
    second = [[26, 150, 26], *shared]
    ref = infer_reference_point(first + second, maximize=False)
    assert hypervolume(second, ref, maximize=False) > hypervolume(first, ref, maximize=False)


def test_trieste_201_194_a_reference_better_than_all_points_gives_zero():
    points = np.random.default_rng(0).random((10, 3))
    for d in (1, 2, 3):
        assert hypervolume(points[:, :d], 2.0) == 0.0
        assert not hv_contributions(points[:, :d], 2.0).any()
        assert not hv_improvement(points[:, :d], points[:, :d], 2.0).any()
        assert box_decomposition(points[:, :d], 2.0, kind="dominated").shape == (2, 0, d)


def test_shark_213_143_ties_end_and_go_to_the_lowest_index():
    corners = np.eye(3)
    assert len(set(hv_contributions(corners, -1.0).tolist())) == 1
    assert hv_subset(corners, 2, -1.0).tolist() == [0, 1]
    assert hv_subset(np.ones((4, 2)), 3, 0.0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_summit_151_an_empty_front_is_zero(d):
    assert hypervolume(np.zeros((0, d)), 0.0) == 0.0
    assert hypervolume(torch.zeros(0, d), 0.0).item() == 0.0


@pytest.mark.parametrize("backend", ["auto", "numba", "moocore", "torch"])
def test_pygmo_measured_points_on_the_reference_and_one_objective(backend):
    assert hypervolume([[1.0, 3.0], [2.0, 1.0]], 3.0, maximize=False, backend=backend) == 2.0
    assert hypervolume([[1.0], [3.0]], 3.0, maximize=False, backend=backend) == 2.0
    assert hypervolume(np.zeros((0, 2)), 3.0, maximize=False, backend=backend) == 0.0


@pytest.mark.parametrize("backend", ["auto", "numba", "moocore", "torch"])
@pytest.mark.parametrize("d", [2, 3, 4])
def test_evox_measured_points_beyond_the_reference_are_not_mirrored(d, backend):
    assert hypervolume(np.full((1, d), 4.0), 3.0, maximize=False, backend=backend) == 0.0


def test_pygmo_and_moocore_measured_dominated_points_in_contributions_are_a_parameter():
    points = [[1.0, 1.0], [2.0, 2.0]]
    assert hv_contributions(points, 3.0, maximize=False).tolist() == [4.0, 0.0]
    assert hv_contributions(points, 3.0, maximize=False, ignore_dominated=False).tolist() == [3.0, 0.0]


def test_jmetalpy_measured_a_ratio_of_volumes_may_pass_one_and_zero_is_no_error():
    """Normalized volume is the caller's division: nothing is clipped, nothing asserted."""
    known, found = [[1.0, 1.0]], [[2.0, 1.0]]
    assert hypervolume(found, 0.0) / hypervolume(known, 0.0) == 2.0
    assert hypervolume(known, 5.0) == 0.0
