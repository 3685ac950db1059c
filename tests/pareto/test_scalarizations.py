"""Scalarizations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from moopt.pareto import linear, pbi, scalarize, smooth_tchebycheff, tchebycheff
from moopt.pareto.scalarizations import SCALARIZATIONS


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_against_the_formulas(seed, m):
    rng = np.random.default_rng(seed)
    y, w, z = rng.normal(size=m), rng.dirichlet(np.ones(m)), rng.random(m) + 3
    gap = z - y
    d1 = gap @ w / np.linalg.norm(w)
    d2 = np.linalg.norm(gap - d1 * w / np.linalg.norm(w))
    assert linear(y, w) == pytest.approx(w @ y)
    assert tchebycheff(y, w, z) == pytest.approx(-max(w * gap))
    assert tchebycheff(y, w, z, rho=0.1) == pytest.approx(-max(w * gap) - 0.1 * sum(w * gap))
    assert smooth_tchebycheff(y, w, z, mu=0.3) == pytest.approx(-0.3 * np.log(np.exp(w * gap / 0.3).sum()))
    assert pbi(y, w, z, theta=2.0) == pytest.approx(-(d1 + 2 * d2))
    hard = tchebycheff(y, w, z)
    assert hard - 0.3 * np.log(m) - 1e-12 <= smooth_tchebycheff(y, w, z, mu=0.3) <= hard
    assert smooth_tchebycheff(y, w, z, mu=1e-6) == pytest.approx(hard, abs=1e-4)


@pytest.mark.parametrize("method", SCALARIZATIONS)
def test_mirror_shapes_and_tensors(method):
    rng = np.random.default_rng(0)
    y, w = rng.random((5, 4, 3)), rng.dirichlet(np.ones(3), size=(5, 1))
    ideal = np.full(3, 1.5)
    value = scalarize(y, w, method=method, ideal=ideal)
    assert value.shape == (5, 4)
    flags = [True, False, True]
    s = np.array([1, -1, 1])
    assert scalarize(y * s, w, method=method, ideal=ideal * s, maximize=flags) == pytest.approx(value, rel=1e-13)
    tensor = torch.tensor(y, requires_grad=True)
    out = scalarize(tensor, torch.tensor(w), method=method, ideal=torch.tensor(ideal))
    assert out.detach().numpy() == pytest.approx(value, rel=1e-13)
    out.sum().backward()
    step = np.zeros_like(y)
    step[1, 2, 1] = 1e-6
    up = scalarize(y + step, w, method=method, ideal=ideal).sum()
    down = scalarize(y - step, w, method=method, ideal=ideal).sum()
    assert tensor.grad[1, 2, 1].item() == pytest.approx((up - down) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("method", SCALARIZATIONS)
def test_better_is_never_worse(method):
    rng = np.random.default_rng(1)
    for _ in range(50):
        y, w = rng.random(3), rng.dirichlet(np.ones(3))
        ideal = np.full(3, 3.0)
        # The boundary term of pbi can prefer a dominated point: only a step along w is safe there.
        better = y + (0.1 * w if method == "pbi" else rng.random(3) * 0.2)
        assert scalarize(better, w, method=method, ideal=ideal) >= scalarize(y, w, method=method, ideal=ideal)


def test_value_is_a_plain_number_for_one_vector():
    value = linear([1, 2], [0.5, 0.5])
    assert isinstance(value, float)
    assert value == 1.5


def test_pbi_gradient_on_the_line_is_finite():
    y = torch.tensor([1.0, 1.0], requires_grad=True)
    pbi(y, [0.5, 0.5], [2.0, 2.0]).backward()
    assert torch.isfinite(y.grad).all()


def test_infinite_values():
    inf = np.inf
    assert linear([inf, -inf], [0.5, 0.5]) == -inf
    assert linear([3.0, -inf], [1.0, 0.0]) == 3.0
    assert tchebycheff([-inf, 0.0], [0.5, 0.5], [1.0, 1.0]) == -inf
    assert tchebycheff([inf, 0.0], [0.5, 0.5], [inf, 1.0]) == -0.5
    assert smooth_tchebycheff([-inf, 0.0], [0.5, 0.5], [1.0, 1.0]) == -inf
    assert smooth_tchebycheff([1e5, 0.0], [0.5, 0.5], [1e5, 1e5], mu=1e-3) == pytest.approx(-5e4)
    assert pbi([-inf, 0.0], [0.5, 0.5], [1.0, 1.0]) == -inf


def test_default_ideal_is_the_best_of_the_values():
    y = np.array([[1.0, 3.0], [2.0, 2.0]])
    assert (scalarize(y, [0.5, 0.5], method="pbi") == pbi(y, [0.5, 0.5], [2.0, 3.0])).all()


def test_function_as_method():
    assert scalarize([[1.0, -2.0]], [0.5, 0.5], method=lambda y, w: y[..., 1], maximize=[True, False]) == [2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear([1.0, 2.0], [0.5]), r"\(2,\).*\(1,\)"),
        (lambda: linear([1.0, np.nan], [0.5, 0.5]), "NaN"),
        (lambda: linear([1.0, 2.0], [-0.5, 0.5]), "negative"),
        (lambda: linear(1.0, [1.0]), "axis"),
        (lambda: tchebycheff([1.0, 2.0], [0.5, 0.5], [1.0, 2.0, 3.0]), "ideal has shape"),
        (lambda: tchebycheff([1.0, 2.0], [0.5, 0.5], [1.0, 2.0], rho=-1), "rho"),
        (lambda: smooth_tchebycheff([1.0, 2.0], [0.5, 0.5], [1.0, 2.0], mu=0), "mu"),
        (lambda: pbi([1.0, 2.0], [0.5, 0.5], [1.0, 2.0], theta=-1), "theta"),
        (lambda: pbi([1.0, 2.0], [0.0, 0.0], [1.0, 2.0]), "positive weight"),
        (lambda: scalarize([1.0, 2.0], [0.5, 0.5], method="tchebychev"), "did you mean 'tchebycheff'"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
