import numpy as np
import pytest

from moopt.agents.cmorl.config import CMORLConfig
from moopt.agents.cmorl.training import TrainingPlan
from moopt.runs import MooptError


def test_budget_is_split_in_true_steps():
    config = CMORLConfig(num_policies=4, num_envs=2, num_steps=50, init_fraction=0.5)
    plan = TrainingPlan.of(config, 2, 10_000)
    assert plan.cost(4) == 400
    assert plan.init_updates == 12  # 5,000 steps pay for 12 updates of all four policies
    assert plan.preferences.shape == (4, 2)
    np.testing.assert_allclose(plan.preferences.sum(1), 1.0)


def test_corners_are_the_extreme_preferences():
    plan = TrainingPlan.of(CMORLConfig(corners_only=True, num_envs=1, num_steps=8), 3, 1000)
    np.testing.assert_array_equal(plan.preferences, np.eye(3))


def test_a_budget_below_one_update_is_refused():
    with pytest.raises(MooptError, match=r"total_steps must be at least 24,576 .*got 24,575"):
        TrainingPlan.of(CMORLConfig(), 2, 24_575)


def test_schedules_are_linear_over_stage_one():
    config = CMORLConfig(learning_rate=1e-3, entropy_coef=0.05, final_entropy_coef=0.01, num_envs=1, num_steps=10)
    plan = TrainingPlan.of(config, 2, 1000)
    half = plan.init_updates / 2
    assert plan.learning_rate(0) == 1e-3
    assert plan.learning_rate(half) == pytest.approx(5e-4)
    assert plan.entropy_coef(0) == 0.05
    assert plan.entropy_coef(half) == pytest.approx(0.03)
    assert plan.entropy_coef(plan.init_updates) == plan.entropy_coef(10**6) == pytest.approx(0.01)


def test_entropy_stays_constant_unless_asked():
    plan = TrainingPlan.of(CMORLConfig(entropy_coef=0.02, num_envs=1, num_steps=10), 2, 1000)
    assert {plan.entropy_coef(u) for u in range(20)} == {0.02}
