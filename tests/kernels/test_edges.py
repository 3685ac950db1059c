"""Empty, infinite, enormous, read-only, wrong: every input has a defined answer or a clear error."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from moopt.kernels import (
    HypervolumeBudgetError,
    hv_contributions,
    hv_improvement,
    hypervolume,
    hypervolume_and_grad,
    is_non_dominated,
    non_dominated_rank,
)

FUNCTIONS = {
    "hypervolume": lambda Y: hypervolume(Y, 0.0),
    "gradient": lambda Y: hypervolume_and_grad(Y, 0.0),
    "contributions": lambda Y: hv_contributions(Y, 0.0),
    "improvement": lambda Y: hv_improvement(Y, Y, 0.0),
    "filter": is_non_dominated,
    "rank": non_dominated_rank,
}


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_no_points(d):
    empty = np.zeros((0, d))
    assert hypervolume(empty, 0.0) == 0.0
    assert hv_contributions(empty, 0.0).shape == (0,)
    assert is_non_dominated(empty).shape == (0,)
    assert hypervolume(np.zeros((0, 5, d)), 0.0).shape == (0,)
    assert hypervolume(np.zeros((3, 0, d)), 0.0).tolist() == [0.0] * 3
    np.testing.assert_allclose(hv_improvement(np.ones((2, d)), empty, 0.0), 1.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inputs_are_never_changed(name):
    points = np.random.default_rng(0).random((30, 3))
    points.setflags(write=False)
    before = points.copy()
    FUNCTIONS[name](points)
    np.testing.assert_array_equal(points, before)
    tensor = torch.tensor(before)
    FUNCTIONS[name](tensor)
    np.testing.assert_array_equal(tensor.numpy(), before)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_is_an_error_that_says_where(name):
    points = np.random.default_rng(0).random((5, 3))
    points[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        FUNCTIONS[name](points)
    assert hypervolume(points, 0.0, nan_policy="omit") == hypervolume(np.delete(points, 2, axis=0), 0.0)
    assert not is_non_dominated(points, nan_policy="omit")[2]


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
@pytest.mark.parametrize("d", [2, 3])
def test_scales_far_from_one(scale, d):
    points = np.random.default_rng(d).random((20, d))
    expected = hypervolume(points, 0.0)
    factors = np.ones(d)
    factors[0], factors[1] = scale, 1.0 / scale
    assert hypervolume(points * factors, 0.0) == pytest.approx(expected, rel=1e-12)


def test_infinities_and_signed_zeros():
    assert hypervolume([[np.inf, 1.0]], 0.0) == np.inf
    assert hypervolume([[-np.inf, 1.0], [1.0, 1.0]], 0.0) == 1.0
    assert hypervolume([[-0.0, 1.0]], 0.0) == 0.0
    assert is_non_dominated([[-0.0, 1.0], [0.0, 1.0]]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("Y", "ref", "more", "message"),
    [
        ([[1.0, 2.0]], [0.0], {}, "ref"),
        ([[1.0, 2.0]], [np.nan, 0.0], {}, "ref"),
        ([1.0, 2.0], 0.0, {}, r"\(\.\.\., n, d\)|shape"),
        ([[1.0, 2.0]], 0.0, {"maximize": [True]}, "maximize"),
        ([[1.0, 2.0]], 0.0, {"mask": [True, False]}, "mask"),
        ([[1.0, 2.0]], 0.0, {"backend": "nunba"}, "backend.*numba"),
        ([["a", "b"]], 0.0, {}, "Y|number"),
    ],
)
def test_wrong_inputs_are_named(Y, ref, more, message):
    with pytest.raises((ValueError, TypeError), match=message):
        hypervolume(Y, ref, **more)


def test_work_beyond_the_budget_is_refused_with_the_way_out():
    points = np.random.default_rng(0).random((2000, 12))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    with pytest.raises(HypervolumeBudgetError, match="hv_approx"):
        hypervolume(points, 0.0)


def test_one_small_call_never_compiles():
    """A fresh process: the answer comes without numba, whose import alone costs half a second."""
    code = """
        import sys, numpy as np
        from moopt.kernels import hypervolume, is_non_dominated
        assert 'torch' not in sys.modules
        hypervolume(np.random.default_rng(0).random((50, 3)), [0.0] * 3)
        is_non_dominated(np.random.default_rng(0).random((50, 3)))
        assert 'numba' not in sys.modules
    """
    lines = "\n".join(line.strip() for line in code.strip().splitlines())
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
