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


@pytest.mark.parametrize("steps", [float("nan"), float("inf"), 1e4 + 0.5, "many", True, None])
def test_a_budget_that_is_no_number_of_steps_is_refused(steps):
    with pytest.raises(MooptError, match="total_steps must be a whole number"):
        TrainingPlan.of(CMORLConfig(), 2, steps)


def test_schedules_are_linear_over_stage_one_and_over_each_round():
    config = CMORLConfig(
        learning_rate=1e-3,
        extension_lr_scale=0.5,
        entropy_coef=0.05,
        final_entropy_coef=0.01,
        round_updates=10,
        num_envs=1,
        num_steps=10,
    )
    plan = TrainingPlan.of(config, 2, 1000)
    assert plan.schedule(1, 0) == (1e-3, 0.05)
    assert plan.schedule(1, plan.init_updates / 2) == pytest.approx((5e-4, 0.03))
    assert plan.schedule(2, 0) == (5e-4, 0.05)
    assert plan.schedule(2, 5) == pytest.approx((5e-4, 0.03))


def test_entropy_stays_constant_unless_asked():
    plan = TrainingPlan.of(CMORLConfig(entropy_coef=0.02, num_envs=1, num_steps=10), 2, 1000)
    assert {plan.schedule(stage, update)[1] for stage in (1, 2) for update in range(9)} == {0.02}
