"""Closed-form drifts against autograd, and values against plain formulas."""

import math

import numpy as np
import pytest
import torch

from moopt.runs.errors import MooptError
from moopt.samplers.mfld import (
    KSD,
    MMD,
    AutogradFunctional,
    DensityEstimation,
    LinearPotential,
    MeanFieldLangevin,
    MeasureFunctional,
    TwoLayerClassification,
    TwoLayerRegression,
)
from moopt.samplers.mfld.activations import as_activation
from moopt.samplers.mfld.network import network_output

TIGHT = {"rtol": 1e-10, "atol": 1e-10}


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_autograd(value, W):
    leaf = W.clone().requires_grad_(True)
    (grad,) = torch.autograd.grad(value(leaf).sum(), leaf)
    return grad * W.shape[-2]


def plain_network(W, X, phi, scale, q=1):
    """The formula as it stands: groups of particles, one per output, a mean with signs."""
    rows = torch.cat([X, torch.ones(*X.shape[:-1], 1, dtype=X.dtype)], dim=-1)
    n = W.shape[-2] // q
    signs = torch.where(torch.arange(n) < (n + 1) // 2, 1.0, -1.0).double()
    outs = []
    for group in range(q):
        part = W[..., group * n : (group + 1) * n, :]
        outs.append((phi(rows @ part.transpose(-1, -2)) * signs).sum(-1) * math.sqrt(q) * scale / W.shape[-2])
    return torch.stack(outs, dim=-2)


@pytest.mark.parametrize("activation", ["relu", "tanh", "sclip"])
@pytest.mark.parametrize("budget", [None, 2000])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regression_closed_form_is_autograd(activation, budget, loss):
    X, y, W = draw(67, 4), draw(67, seed=1), 2 * draw(11, 5, seed=2)
    functional = TwoLayerRegression(
        X, y, activation=activation, scale=3.0, loss=loss, dtype=torch.float64, memory_budget=budget
    )
    phi = as_activation(activation)

    def value(w):
        out = plain_network(w, X, phi, 3.0)[..., 0, :]
        if loss == "huber":
            return torch.nn.functional.huber_loss(out, y.expand_as(out), reduction="none").mean(-1)
        return (out - y).square().mean(-1) / 2

    torch.testing.assert_close(functional.value(W), value(W), **TIGHT)
    torch.testing.assert_close(functional.drift(W), by_autograd(value, W), **TIGHT)
    batch = torch.tensor([3, 3, 60, 1])
    picked = TwoLayerRegression(X[batch], y[batch], activation=activation, scale=3.0, loss=loss, dtype=torch.float64)
    torch.testing.assert_close(functional.drift(W, batch=batch), picked.drift(W), **TIGHT)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("own_data", [False, True])
def test_ensembles_and_several_outputs_are_autograd_too(q, own_data):
    lead = (2,) if own_data else ()
    X, y = draw(*lead, 20, 3), draw(*lead, 20, q, seed=1)
    W, scales = draw(2, 12, 4, seed=2), [1.5, 4.0]
    functional = TwoLayerRegression(X, y, activation="tanh", scale=scales, dtype=torch.float64, memory_budget=3000)

    def value(w):
        total = [
            (plain_network(w[i], X[i] if own_data else X, torch.tanh, scales[i], q).T - (y[i] if own_data else y))
            .square()
            .sum(-1)
            .mean()
            / 2
            for i in range(2)
        ]
        return torch.stack(total)

    torch.testing.assert_close(functional.value(W), value(W), **TIGHT)
    torch.testing.assert_close(functional.drift(W), by_autograd(value, W), **TIGHT)
    batch = torch.tensor([[0, 5, 5], [19, 2, 7]])
    picked = TwoLayerRegression(
        torch.stack([X[i, b] if own_data else X[b] for i, b in enumerate(batch)]),
        torch.stack([y[i, b] if own_data else y[b] for i, b in enumerate(batch)]),
        activation="tanh", scale=scales, dtype=torch.float64,
    )  # fmt: skip
    torch.testing.assert_close(functional.drift(W, batch=batch), picked.drift(W), **TIGHT)


@pytest.mark.parametrize("classes", [2, 4])
def test_classification_closed_form_is_autograd(classes):
    q = 1 if classes == 2 else classes
    X, W = draw(30, 3), 2 * draw(4 * q, 4, seed=2)
    labels = torch.arange(30) % classes
    functional = TwoLayerClassification(X, labels, n_classes=classes, scale=2.0, dtype=torch.float64)

    def value(w):
        out = plain_network(w, X, torch.relu, 2.0, q).T
        if classes == 2:
            return torch.nn.functional.softplus(-(2.0 * labels - 1) * out[:, 0]).mean()
        return torch.nn.functional.cross_entropy(out, labels)

    torch.testing.assert_close(functional.value(W), value(W), **TIGHT)
    torch.testing.assert_close(functional.drift(W), by_autograd(value, W), **TIGHT)


def test_first_variation_is_the_derivative_in_the_measure():
    # Splitting a particle in two halves changes weights only: moving mass eps to it changes F by eps * dF/dmu.
    X, y, W = draw(25, 3), draw(25, seed=1), draw(10, 4, seed=2)
    functional = TwoLayerRegression(X, y, activation="tanh", scale=2.0, dtype=torch.float64)
    rows = torch.cat([X, torch.ones(25, 1, dtype=torch.float64)], dim=1)
    signs = torch.where(torch.arange(10) < 5, 1.0, -1.0).double()

    def weighted(mass):
        out = 2.0 * (torch.tanh(rows @ W.T) * signs) @ mass
        return (out - y).square().mean() / 2

    mass = torch.full((10,), 0.1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(weighted(mass), mass)
    torch.testing.assert_close(functional.first_variation(W), slope, **TIGHT)


def test_smooth_clipped_is_bounded_and_between_its_limits():
    phi = as_activation("sclip")
    z = torch.tensor([-1e4, -50.0, 0.0, 2.0, 4.0, 50.0, 1e4], dtype=torch.float64)
    value = phi(z)
    assert float(value.min()) >= 0
    assert float(value.max()) <= 4 + 1e-12
    assert float(value[3]) == pytest.approx(2.0, abs=1e-3)
    both, spare = z.clone(), torch.empty_like(z)
    torch.testing.assert_close(phi.value_(both, spare), value)
    assert bool(torch.isfinite(phi.slope_(both, spare)).all())


def test_outputs_of_training_and_of_prediction_agree():
    X, y, W = draw(9, 3), draw(9, 2, seed=1), draw(8, 4, seed=2)
    functional = TwoLayerRegression(X, y, scale=2.0, dtype=torch.float64)
    out = network_output(W, X, activation="relu", scale=2.0, n_outputs=2)
    assert out.shape == (9, 2)
    torch.testing.assert_close(functional.forward(W), out, **TIGHT)
    torch.testing.assert_close(functional.forward(W, X[:4]), out[:4], **TIGHT)
    assert functional.forward(W, X[:0]).shape == (0, 2)


def test_stable_step_is_where_the_linear_model_stops_converging():
    X, y = draw(200, 5), draw(200, seed=1)
    functional = TwoLayerRegression(X, y, scale=3.0, dtype=torch.float64)
    rows = torch.cat([X, torch.ones(200, 1, dtype=torch.float64)], dim=1)
    top = float(torch.linalg.eigvalsh(rows.T @ rows / 200).max())
    assert functional.stable_step() == pytest.approx(2 / (9 * top), rel=1e-3)


# ------------------------------------------------------------------------------------ discrepancies
@pytest.mark.parametrize("kernel", ["rbf", "imq"])
def test_mmd(kernel):
    Y, W = draw(30, 2), draw(3, 12, 2, seed=1)
    functional = MMD(Y, kernel=kernel, bandwidth=0.7, dtype=torch.float64)

    def k(a, b):
        d2 = (a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1) / 0.49
        return torch.exp(-d2 / 2) if kernel == "rbf" else (1 + d2).rsqrt()

    def value(w):
        return (k(w, w).mean((-2, -1)) - 2 * k(w, Y).mean((-2, -1)) + k(Y, Y).mean()) / 2

    torch.testing.assert_close(functional.value(W), value(W), **TIGHT)
    torch.testing.assert_close(functional.drift(W), by_autograd(value, W), **TIGHT)
    assert float(functional.value(Y)) == pytest.approx(0.0, abs=1e-12)


def test_ksd_is_the_stein_kernel_by_autograd():
    W = draw(7, 2)
    functional = KSD(lambda x: -x * torch.tensor([1.0, 4.0]), bandwidth=1.3)

    def k(x, y):
        return (1 + (x - y).square().sum() / 1.69).rsqrt()

    total = 0.0
    for x in W:
        for y in W:
            sx, sy = -x * torch.tensor([1.0, 4.0]), -y * torch.tensor([1.0, 4.0])
            dx = torch.func.grad(k, 0)(x, y)
            dy = torch.func.grad(k, 1)(x, y)
            mixed = torch.func.jacrev(torch.func.grad(k, 0), 1)(x, y)
            total += sx @ sy * k(x, y) + sx @ dy + sy @ dx + mixed.trace()
    assert float(functional.value(W)) == pytest.approx(float(total) / 49 / 2, rel=1e-10)


def test_ksd_flow_finds_a_gaussian_and_mmd_flow_its_samples():
    start = draw(60, 2, seed=3) * 0.2 + 2
    ksd = KSD(lambda x: -x, bandwidth=1.0)
    result = MeanFieldLangevin(ksd, 60, dim=2, temperature=0.0, step_size=0.5, init=start, dtype=torch.float64).run(300)
    assert result.history["value"][-1] < 0.02 * float(ksd.value(start))
    Y = draw(40, 2)
    mmd = MMD(Y, bandwidth=1.0, dtype=torch.float64)
    result = MeanFieldLangevin(mmd, 60, temperature=0.0, step_size=1.0, init=start).run(400)
    assert result.history["value"][-1] < 0.01 * float(mmd.value(start))


def test_density_estimation():
    X, W = draw(50, 2), draw(9, 2, seed=1)
    functional = DensityEstimation(X, bandwidth=0.8, dtype=torch.float64)

    def value(w):
        log_q = torch.distributions.Normal(w, 0.8).log_prob(X.unsqueeze(1)).sum(-1)
        return math.log(9) - torch.logsumexp(log_q, dim=-1).mean()

    torch.testing.assert_close(functional.value(W), value(W), **TIGHT)
    torch.testing.assert_close(functional.drift(W), by_autograd(value, W), **TIGHT)
    torch.testing.assert_close(functional.value(W), -functional.log_density(W, X).mean(), **TIGHT)
    engine = MeanFieldLangevin(functional, 9, temperature=1e-3, step_size=0.3, init=W)
    assert engine.run(100).history["value"][-1] < float(functional.value(W))


def test_autograd_functional_and_linear_potential():
    W = draw(2, 6, 3)
    functional = AutogradFunctional(lambda w: w.pow(4).sum((-2, -1)) / 6)
    torch.testing.assert_close(functional.drift(W), 4 * W**3, **TIGHT)
    potential = LinearPotential(lambda w: w.pow(4).sum(-1))
    torch.testing.assert_close(potential.drift(W), 4 * W**3, **TIGHT)
    torch.testing.assert_close(potential.value(W), functional.value(W), **TIGHT)
    with pytest.raises(MooptError, match="one value per member"):
        AutogradFunctional(lambda w: w.sum(-1)).drift(W)
    with pytest.raises(MooptError, match="no data"):
        potential.drift(W, batch=torch.tensor([0]))


@pytest.mark.parametrize(
    "functional",
    [
        TwoLayerRegression(np.ones((3, 2)), np.ones(3)),
        MMD(np.ones((3, 2))),
        KSD(lambda x: -x),
        DensityEstimation(np.ones((3, 2)), bandwidth=1.0),
        LinearPotential(lambda w: w.sum(-1)),
    ],
    ids=lambda f: type(f).__name__,
)
def test_all_follow_the_protocol_and_are_convex(functional):
    assert isinstance(functional, MeasureFunctional)
    assert functional.convex


# ------------------------------------------------------------------------------------ misuse
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TwoLayerRegression([[1.0, math.nan]], [0.0]), "X has 1 values that are NaN"),
        (lambda: TwoLayerRegression([[1.0]], [math.inf]), "y has 1 values that are NaN"),
        (lambda: TwoLayerRegression([[1.0]], [0.0, 1.0]), "does not fit X"),
        (lambda: TwoLayerRegression(np.ones((0, 2)), np.ones(0)), "no rows"),
        (lambda: TwoLayerRegression([[1.0]], [0.0], scale=0.0), "scale must be a number > 0"),
        (lambda: TwoLayerRegression([[1.0]], [0.0], activation="rleu"), "did you mean 'relu'"),
        (lambda: TwoLayerRegression([[1.0]], [0.0], loss="square"), "did you mean 'squared'"),
        (lambda: TwoLayerClassification([[1.0]], [2]), "labels must be"),
        (lambda: MMD([[1.0]], bandwidth=-1.0), "bandwidth must be"),
        (lambda: MMD([[1.0]], kernel="rfb"), "did you mean 'rbf'"),
        (lambda: DensityEstimation([[1.0]], bandwidth=0.0), "bandwidth must be"),
        (lambda: TwoLayerRegression([[1.0]], [0.0]).drift(torch.zeros(3, 5)), r"must be \(..., N, 2\)"),
    ],
)
def test_misuse_is_named(make, message):
    with pytest.raises(MooptError, match=message):
        make()
