"""Multi-index data, kernel baselines and the diagnostics of trained particles."""

import numpy as np
import pytest
import torch

from moopt.runs.errors import MooptError
from moopt.samplers.mfld import KernelBaseline, alignment, effective_dimension, multi_index
from moopt.samplers.mfld.diagnostics import dead_fraction, subspace
from moopt.samplers.mfld.kernel_ridge import arc_cosine_ntk


@pytest.mark.parametrize("target", ["parity3", "staircase3", "hermite2", "hermite3", "hermite4", "xor", "product2"])
def test_targets_have_mean_near_0_and_variance_1(target):
    data = multi_index(target, 40_000, 5)
    assert abs(data.y.mean()) < 0.05
    assert data.y.var() == pytest.approx(1.0, abs=0.3 if target == "hermite4" else 0.12)
    again = multi_index(target, 40_000, 5)
    assert np.array_equal(data.y, again.y)
    assert not np.array_equal(data.X, multi_index(target, 40_000, 5, seed=1).X)


def test_target_formulas():
    parity = multi_index("parity3", 50, 6)
    assert set(np.unique(parity.X)) == {-1.0, 1.0}
    assert np.array_equal(parity.y, parity.X[:, 0] * parity.X[:, 1] * parity.X[:, 2])
    stairs = multi_index("staircase3", 50, 6)
    x = stairs.X
    expected = (x[:, 0] + x[:, 0] * x[:, 1] + x[:, 0] * x[:, 1] * x[:, 2]) / np.sqrt(3)
    np.testing.assert_allclose(stairs.y, expected)
    square = multi_index("square", 50, 6)
    np.testing.assert_allclose(square.y, square.X[:, 0] ** 2 - 1)


@pytest.mark.parametrize(
    ("spectrum", "d_eff"),
    [("isotropic", 8.0), ("deff:3", 3.0), ("spike:6", 2.0), ("power:1", float(np.sum(1 / np.arange(1, 9))))],
)
@pytest.mark.parametrize("rotate", [False, True])
def test_spectra_have_the_effective_dimension_they_say(spectrum, d_eff, rotate):
    data = multi_index("square", 60_000, 8, spectrum=spectrum, rotate=rotate)
    assert data.effective_dimension == pytest.approx(d_eff)
    assert effective_dimension(data.X, data.basis) == pytest.approx(d_eff, rel=0.03)
    np.testing.assert_allclose(data.y, (data.X @ data.basis[0]) ** 2 - 1, atol=1e-9)


def test_noise_is_added():
    clean, noisy = multi_index("square", 5000, 3), multi_index("square", 5000, 3, noise=0.5)
    assert np.std(noisy.y - clean.y) == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("party4", 10, 5), "unknown target"),
        (("parity", 10, 5), "unknown target"),
        (("hermite5", 10, 5), "for hermite 4"),
        (("parity4", 10, 3), "d"),
        (("parity2", 0, 3), "n"),
    ],
)
def test_unusable_data_requests(args, message):
    with pytest.raises(MooptError, match=message):
        multi_index(*args)
    with pytest.raises(MooptError, match="spectrum"):
        multi_index("square", 10, 3, spectrum="defff:3")


def test_tangent_kernel_is_that_of_a_wide_network():
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.standard_normal((5, 3)))
    rows = torch.cat([X, torch.ones(5, 1, dtype=torch.float64)], dim=1)
    width = 400_000
    W = torch.from_numpy(rng.standard_normal((width, 4)))
    a = torch.from_numpy(rng.choice([-1.0, 1.0], width))
    z = rows @ W.T
    active = (z > 0).double()
    outer = torch.relu(z) @ torch.relu(z).T / width
    inner = (active * a) @ (active * a).T / width * (rows @ rows.T)
    torch.testing.assert_close(arc_cosine_ntk(X, X), 2 * (outer + inner), rtol=0.02, atol=0.02)


def test_kernel_ridge_is_tuned_on_validation_and_learns_a_smooth_target():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    model = KernelBaseline(seed=1).fit(X[:200], y[:200])
    assert np.mean((model.predict(X[200:]) - y[200:]) ** 2) < 0.05
    assert model.choice_["validation_mse"] == pytest.approx(min(model.scores_.values()))
    assert len(model.scores_) == 8
    again = KernelBaseline(seed=1).fit(X[:200], y[:200])
    assert np.array_equal(again.predict(X[200:]), model.predict(X[200:]))
    with pytest.raises(MooptError):
        KernelBaseline().fit(X[:3], y[:3])
    with pytest.raises(MooptError):
        KernelBaseline().fit(X, np.full(300, np.nan))


def test_alignment_and_subspace():
    W = torch.tensor([[3.0, 0, 0, 9.0], [0, 4.0, 0, 9.0]])
    assert float(alignment(W, [[1.0, 0, 0]])) == pytest.approx(9 / 25)
    assert float(alignment(W, [[1.0, 1.0, 0], [0, 2.0, 0]])) == pytest.approx(1.0)
    np.testing.assert_allclose(np.abs(subspace(W, 1).numpy()), [[0, 1, 0]], atol=1e-9)
    with pytest.raises(MooptError, match="dependent"):
        alignment(W, [[1.0, 0, 0], [2.0, 0, 0]])
    with pytest.raises(MooptError, match="k must be"):
        subspace(W, 4)
    with pytest.raises(MooptError, match="infinite"):
        effective_dimension([[1.0, 0], [2.0, 0]], [[0, 1.0]])


def test_dead_units_are_counted():
    from moopt.samplers.mfld import MeanFieldLangevin, TwoLayerRegression

    X = np.random.default_rng(0).standard_normal((30, 2))
    start = torch.tensor([[0.0, 0.0, -99.0], [1.0, 0.0, 0.0], [0.0, 0.0, -50.0], [0.0, 1.0, 0.0]])
    engine = MeanFieldLangevin(TwoLayerRegression(X, X[:, 0]), 4, temperature=0.0, step_size=0.1, init=start)
    assert float(dead_fraction(engine)) == 0.5
