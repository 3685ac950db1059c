import numpy as np
import pytest

from moopt.agents.cmorl.config import CMORLConfig
from moopt.agents.cmorl.extension import Slot, archive_scale, barrier_weights, choose_parents, threshold
from moopt.runs.errors import MooptError


def make_slot(estimate, bound, objective=0):
    return Slot(parent=0, objective=objective, threshold=np.array(bound, float), estimate=np.array(estimate, float))


def test_barrier_weights_are_the_gradient_of_the_log_barrier():
    config = CMORLConfig(barrier_t=20.0)
    scale = np.array([2.0, 10.0, 4.0])
    bound = np.array([0.0, 1.0, -3.0])
    returns = np.array([1.0, 4.0, -1.0])

    def barrier(G):
        slack = (G - bound) / scale
        return G[0] / scale[0] + (np.log(slack[1]) + np.log(slack[2])) / config.barrier_t

    step = 1e-6
    gradient = np.array([(barrier(returns + step * e) - barrier(returns - step * e)) / (2 * step) for e in np.eye(3)])
    weights = barrier_weights([make_slot(returns, bound)], scale, config)[0]
    np.testing.assert_allclose(weights / weights[0], gradient / gradient[0], rtol=1e-6)
    assert (weights * scale).sum() == pytest.approx(1.0)


def test_a_violated_constraint_pushes_back_with_a_finite_weight():
    config = CMORLConfig(barrier_t=20.0)
    scale = np.ones(2)
    rows = barrier_weights([make_slot([0, s], [0, 0]) for s in (1.0, 0.1, 0.0025, 0.0, -5.0)], scale, config)
    ratio = rows[:, 1] / rows[:, 0]
    np.testing.assert_allclose(ratio, [0.05, 0.5, 20.0, 20.0, 20.0])


def test_without_constraint_only_the_objective_counts():
    weights = barrier_weights(
        [make_slot([0, 0], [5, 5], objective=1)], np.array([3.0, 4.0]), CMORLConfig(constraint="none")
    )
    np.testing.assert_allclose(weights, [[0.0, 0.25]])


def test_range_threshold_is_invariant_to_shifts_and_widens_with_tries():
    config = CMORLConfig(delta=0.05)
    returns, scale = np.array([3.0, -10.0]), np.array([2.0, 40.0])
    first = threshold(returns, scale, config, 0)
    np.testing.assert_allclose(first, [2.9, -12.0])
    np.testing.assert_allclose(threshold(returns + 100.0, scale, config, 0), first + 100.0)
    np.testing.assert_allclose(threshold(returns, scale, config, 1), [2.8, -14.0])
    np.testing.assert_allclose(threshold(returns, scale, config, 50), [2.0, -30.0])


def test_beta_threshold_is_below_the_parent_whatever_the_sign():
    config = CMORLConfig(threshold="beta", beta=0.9)
    np.testing.assert_allclose(threshold(np.array([10.0, -10.0]), np.ones(2), config, 0), [9.0, -11.0])


def test_least_tried_then_most_isolated_members_are_extended():
    points = np.array([[0.0, 4.0], [1.0, 3.5], [1.5, 3.0], [4.0, 0.0]])
    ids = [7, 3, 5, 9]
    assert choose_parents(points, ids, {}, 3) == [7, 9, 5]
    assert choose_parents(points, ids, {(7, 0): 1, (9, 1): 1}, 2) == [5, 3]
    assert choose_parents(points, ids, {}, 10) == [7, 9, 5, 3]


def test_scale_of_a_constant_objective_is_its_size():
    np.testing.assert_allclose(archive_scale(np.array([[1.0, 5.0], [3.0, 5.0]])), [2.0, 5.0])
    np.testing.assert_allclose(archive_scale(np.array([[0.0, -2.0]])), [1e-8, 2.0])


@pytest.mark.parametrize(
    "setting",
    [
        {"num_policies": 0},
        {"gamma": 1.5},
        {"learning_rate": float("nan")},
        {"init_fraction": 0.0},
        {"gamma_eval": 0.0},
        {"hidden_sizes": (64, 0)},
        {"max_episode_steps": 0},
        {"entropy_coef": -1.0},
    ],
)
def test_settings_out_of_range_are_named(setting):
    (name,) = setting
    with pytest.raises(MooptError, match=name):
        CMORLConfig(**setting).check()
