"""The contract kit over every indicator of the package."""

import numpy as np
import pytest

from moopt.pareto import (
    epsilon_additive,
    epsilon_multiplicative,
    expected_utility,
    hypervolume,
    igd,
    igd_plus,
    maximum_utility_loss,
    simplex_weights,
    sparsity,
)
from moopt.testing.indicators import IndicatorContract

REFERENCE = np.random.default_rng(99).random((7, 3)) + 0.4
WEIGHTS = simplex_weights(3, H=5)


class TestHypervolume(IndicatorContract):
    def indicator(self, points, *, maximize=True):
        return hypervolume(points, self.mirror(np.full(3, -0.1), maximize), maximize=maximize)


class TestIGD(IndicatorContract):
    has_direction = False
    on_dominated = "not_up"
    on_empty = np.inf

    def indicator(self, points, *, maximize=True):
        return igd(points, self.mirror(REFERENCE, maximize), maximize=maximize)


class TestIGDPlus(IndicatorContract):
    on_empty = np.inf

    def indicator(self, points, *, maximize=True):
        return igd_plus(points, self.mirror(REFERENCE, maximize), maximize=maximize)


class TestIGDPlusPower(IndicatorContract):
    on_empty = np.inf

    def indicator(self, points, *, maximize=True):
        return igd_plus(points, self.mirror(REFERENCE, maximize), maximize=maximize, p=2)


class TestEpsilonAdditive(IndicatorContract):
    on_empty = np.inf

    def indicator(self, points, *, maximize=True):
        return epsilon_additive(points, self.mirror(REFERENCE, maximize), maximize=maximize)


class TestEpsilonMultiplicative(IndicatorContract):
    on_empty = np.inf
    low = 0.5

    def mirror(self, values, maximize):
        # Values stay positive: the mirror of a ratio is the reciprocal.
        return np.where(np.resize(maximize, values.shape[-1]), values, 1 / values)

    def indicator(self, points, *, maximize=True):
        return epsilon_multiplicative(points, self.mirror(REFERENCE, maximize), maximize=maximize)


class TestExpectedUtility(IndicatorContract):
    on_empty = -np.inf

    def indicator(self, points, *, maximize=True):
        return expected_utility(points, WEIGHTS, maximize=maximize)


class TestMaximumUtilityLoss(IndicatorContract):
    on_empty = np.inf

    def indicator(self, points, *, maximize=True):
        return maximum_utility_loss(points, self.mirror(REFERENCE, maximize), WEIGHTS, maximize=maximize)


class TestSparsity(IndicatorContract):
    def indicator(self, points, *, maximize=True):
        return sparsity(points, maximize=maximize)

    def test_wrong_shapes_raise(self):
        # There is no reference to compare the width with.
        for wrong in (np.zeros(3), np.zeros((1, 2, 3)), np.zeros((3, 0)), 1.0):
            with pytest.raises(ValueError, match="shape"):
                sparsity(wrong)
        with pytest.raises(ValueError, match="maximize"):
            sparsity(np.zeros((4, 3)), maximize=[True, False])
