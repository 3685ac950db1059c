"""The integrator against laws that are known exactly, its manifolds, its gradient estimates and its state."""

import math

import numpy as np
import pytest
import torch
from scipy.special import ive

from moopt.runs import load_state, save_state
from moopt.runs.errors import CheckpointError, MooptError
from moopt.samplers.mfld import (
    Box,
    Constant,
    DivergenceError,
    Geometric,
    HalvingRounds,
    LinearPotential,
    LogAnneal,
    MeanFieldLangevin,
    TwoLayerRegression,
    free_energy,
    gibbs_ksd,
    knn_entropy,
)
from moopt.samplers.mfld.birth_death import BirthDeath
from moopt.samplers.mfld.gradients import GradientEstimator


def flat(**kwargs):
    """A potential that is 0: what is left is noise and weight decay."""
    zero = LinearPotential(lambda w: 0 * w.sum(-1), gradient=torch.zeros_like)
    return MeanFieldLangevin(zero, **{"n_particles": 4000, "dim": 5, "step_size": 0.2, **kwargs})


def regression(n=40, d=3, dtype=torch.float64, seed=0, **kwargs):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return TwoLayerRegression(X, X[:, 0] * X[:, 1], scale=2.0, dtype=dtype, **kwargs)


# ------------------------------------------------------------------------------------ exact laws
@pytest.mark.parametrize(("temp", "decay", "eta"), [(0.5, 1.0, 0.2), (0.02, 0.3, 0.9)])
def test_ornstein_uhlenbeck_variance(temp, decay, eta):
    engine = flat(temperature=temp, weight_decay=decay, step_size=eta)
    w = engine.run(150).particles
    exact = temp / (decay * (1 - eta * decay / 2))
    assert float(w.var()) == pytest.approx(exact, rel=5 * math.sqrt(2 / w.numel()))
    assert abs(float(w.mean())) < 5 * math.sqrt(exact / w.numel())


def test_prior_variance_is_another_word_for_weight_decay():
    one = flat(temperature=0.5, prior_var=2.0).run(20).particles
    other = flat(temperature=0.5, weight_decay=0.25).run(20).particles
    torch.testing.assert_close(one, other)


def test_von_mises_fisher_mean_on_the_sphere():
    dim, kappa, temp = 10, 8.0, 1.0
    exact = ive(dim / 2, kappa) / ive(dim / 2 - 1, kappa)
    assert exact == pytest.approx(0.5682, abs=5e-5)
    u = torch.zeros(dim)
    u[0] = 1.0
    pull = LinearPotential(lambda w: -kappa * w[..., 0], gradient=lambda w: (-kappa * u).expand_as(w))
    engine = MeanFieldLangevin(pull, 20_000, dim=dim, temperature=temp, step_size=0.001, manifold="sphere", seed=1)
    means = []
    for _ in range(8):
        engine.run(150, log_every=150)
        means.append(float(engine.particles[:, 0].mean()))
    assert np.mean(means[3:]) == pytest.approx(exact, abs=0.004)


def test_sphere_norms_stay_one():
    functional = regression(dtype=torch.float32)
    engine = MeanFieldLangevin(functional, 64, temperature=0.1, step_size=0.05, manifold="sphere")
    norms = engine.run(500).particles.norm(dim=-1)
    torch.testing.assert_close(norms, torch.ones(64), atol=1e-6, rtol=0)


def test_sphere_moves_along_the_projected_drift():
    from moopt.samplers.mfld import Sphere

    points = Sphere().random((50, 4), torch.Generator().manual_seed(0), torch.float64)
    vector = torch.randn(50, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 0.1
    tangent = Sphere().project(points, vector)
    assert float(torch.linalg.vecdot(points, tangent).abs().max()) < 1e-14
    target = points + tangent
    moved = Sphere().move_(points.clone(), vector.clone())
    torch.testing.assert_close(moved, target / target.norm(dim=-1, keepdim=True))


def test_box_reflects_and_the_uniform_law_is_stationary():
    box = Box(torch.tensor([0.0, -1.0]), torch.tensor([1.0, 3.0]))
    points = torch.tensor([[0.9, 2.9]])
    torch.testing.assert_close(box.move_(points, torch.tensor([[0.3, 9.0]])), torch.tensor([[0.8, 2.1]]))
    zero = LinearPotential(lambda w: 0 * w.sum(-1), gradient=torch.zeros_like)
    start = torch.full((4000, 2), 0.1)
    engine = MeanFieldLangevin(zero, 4000, dim=2, temperature=1.0, step_size=0.05, manifold=box, init=start)
    w = engine.run(200).particles
    assert float(w[:, 0].min()) >= 0
    assert float(w[:, 1].max()) <= 3
    assert float(w[:, 0].mean()) == pytest.approx(0.5, abs=0.025)
    assert float(w[:, 1].var()) == pytest.approx(16 / 12, rel=0.08)


def test_stationary_gaussian_has_vanishing_ksd_and_known_entropy():
    bowl = LinearPotential(lambda w: 0 * w.sum(-1), gradient=torch.zeros_like)
    start = torch.randn(1500, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    settings = {"dim": 3, "temperature": 0.4, "weight_decay": 0.4, "step_size": 0.05}
    at_law = MeanFieldLangevin(bowl, 1500, init=start, dtype=torch.float64, **settings)
    away = MeanFieldLangevin(bowl, 1500, init=start + 1.0, dtype=torch.float64, **settings)
    near = float(gibbs_ksd(at_law, bandwidth=1.0, unbiased=True))
    far = float(gibbs_ksd(away, bandwidth=1.0, unbiased=True))
    assert abs(near) < 0.02 < 0.3 < far
    few = MeanFieldLangevin(bowl, 150, init=start[:150], dtype=torch.float64, **settings)
    assert float(gibbs_ksd(at_law, bandwidth=1.0)) < float(gibbs_ksd(few, bandwidth=1.0)) / 5
    away.run(150)
    assert abs(float(gibbs_ksd(away, bandwidth=1.0, unbiased=True))) < 0.02
    exact = 1.5 * math.log(2 * math.pi * math.e)
    assert float(knn_entropy(start)) == pytest.approx(exact, abs=0.1)


def test_free_energy_of_a_gaussian():
    start = torch.randn(1, 4000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    engine = flat(temperature=0.5, weight_decay=0.5, dim=2, ensemble=1, init=start, dtype=torch.float64)
    # E|w|^2 = 2, entropy log(2 pi e); the Gaussian is the minimiser, so its free energy is -T log Z.
    exact = 0.5 * 2 / 2 - 0.5 * math.log(2 * math.pi * math.e)
    assert float(free_energy(engine)) == pytest.approx(exact, abs=0.03)
    wide = flat(temperature=0.5, weight_decay=0.5, dim=2, ensemble=1, init=2 * start, dtype=torch.float64)
    assert float(free_energy(wide)) > float(free_energy(engine)) + 0.2


# -------------------------------------------------------------------------------- gradient estimates
def test_minibatches_are_unbiased():
    functional = regression(n=6)
    W = torch.randn(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    # Every row alone, averaged: the expectation over uniform batches of one row, exactly.
    rows = [functional.drift(W, batch=torch.tensor([i])).clone() for i in range(6)]
    torch.testing.assert_close(torch.stack(rows).mean(0), functional.drift(W), rtol=1e-10, atol=1e-12)
    pairs = [functional.drift(W, batch=torch.tensor([i, j])).clone() for i in range(6) for j in range(6)]
    torch.testing.assert_close(torch.stack(pairs).mean(0), functional.drift(W), rtol=1e-10, atol=1e-12)


def test_svrg_is_exact_at_the_snapshot_and_unbiased_with_less_variance_near_it():
    functional = regression(n=60)
    generator = torch.Generator().manual_seed(0)
    W = torch.randn(8, 4, generator=generator, dtype=torch.float64)
    svrg = GradientEstimator(functional, "svrg", 5, 10)
    torch.testing.assert_close(svrg(W, 0, generator), functional.drift(W), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(svrg(W, 1, generator), functional.drift(W), rtol=1e-12, atol=1e-14)
    moved = W + 0.05 * torch.randn(8, 4, generator=generator, dtype=torch.float64)
    full = functional.drift(moved).clone()
    plain = GradientEstimator(functional, "minibatch", 5, 10)
    error_svrg = torch.stack([svrg(moved, 1, generator).clone() - full for _ in range(400)])
    error_plain = torch.stack([plain(moved, 1, generator).clone() - full for _ in range(400)])
    spread = (error_svrg.std(dim=0) / math.sqrt(400)).clamp_min(1e-12)
    assert float((error_svrg.mean(0).abs() / spread).max()) < 5
    assert float(error_svrg.square().mean()) < 0.2 * float(error_plain.square().mean())
    svrg(moved, 10, generator)
    torch.testing.assert_close(svrg.snapshot, moved)


def test_a_functional_without_data_refuses_minibatches():
    with pytest.raises(MooptError, match="needs a functional with data"):
        flat(temperature=0.1, gradient="minibatch")


# ------------------------------------------------------------------------------------ running
@pytest.mark.parametrize("gradient", ["full", "minibatch", "svrg"])
@pytest.mark.parametrize("preconditioner", [None, "adam"])
def test_same_seed_same_result_and_resume_is_bit_exact(tmp_path, gradient, preconditioner):
    def make():
        return MeanFieldLangevin(
            regression(), 12, temperature=0.01, weight_decay=0.1, step_size=0.05, gradient=gradient,
            batch_size=7, snapshot_every=6, preconditioner=preconditioner, seed=3,
        )  # fmt: skip

    whole = make().run(23).particles
    assert torch.equal(make().run(23).particles, whole)
    first = make()
    first.run(10)
    save_state(tmp_path / "s.npz", first.state_dict())
    second = make()
    second.load_state_dict(load_state(tmp_path / "s.npz"))
    assert torch.equal(second.run(13).particles, whole)
    other = MeanFieldLangevin(regression(), 12, temperature=0.01, step_size=0.05, seed=4).run(23).particles
    assert not torch.equal(other, whole)


def test_a_state_of_another_shape_is_refused():
    state = flat(temperature=0.1, n_particles=3).state_dict()
    with pytest.raises(CheckpointError, match="particles"):
        flat(temperature=0.1, n_particles=4).load_state_dict(state)
    with pytest.raises(CheckpointError):
        flat(temperature=0.1).load_state_dict({})


def test_history_and_callback():
    seen = []

    def stop_at_60(progress):
        seen.append(progress.step)
        return progress.step < 60

    engine = MeanFieldLangevin(regression(), 20, temperature=0.0, weight_decay=0.01, step_size=0.1)
    result = engine.run(100, stop_at_60, log_every=20, metrics=lambda w: {"first": float(w[0, 0])})
    assert seen == [20, 40, 60]
    assert result.history["step"].tolist() == [20, 40, 60]
    assert np.all(np.diff(result.history["objective"]) < 0)
    assert np.all(result.history["noise_rms"] == 0)
    assert {"value", "norm", "drift_rms", "first"} <= result.history.keys()
    result.particles.zero_()
    assert float(engine.particles.abs().sum()) > 0


def test_ensemble_members_are_independent_runs():
    functional = regression()
    scales = [0.01, 0.1, 0.3]
    engine = MeanFieldLangevin(
        functional, 10, temperature=0.0, weight_decay=scales, step_size=[0.05, 0.02, 0.1], ensemble=3
    )
    start = engine.particles.clone()
    together = engine.run(40).particles
    for i in range(3):
        alone = MeanFieldLangevin(
            functional, 10, temperature=0.0, weight_decay=scales[i], step_size=[0.05, 0.02, 0.1][i], init=start[i]
        )
        torch.testing.assert_close(alone.run(40).particles, together[i], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("gradient", ["minibatch", "svrg"])
def test_ensemble_members_draw_their_own_minibatches(gradient):
    start = torch.randn(10, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    engine = MeanFieldLangevin(
        regression(), 10, temperature=0.0, step_size=0.05, ensemble=2, init=start, gradient=gradient, batch_size=4
    )
    together = engine.run(5).particles
    assert not torch.allclose(together[0], together[1])
    assert bool(torch.isfinite(together).all())


def test_every_public_name_can_be_imported():
    from moopt.samplers import mfld

    for name in mfld.__all__:
        assert getattr(mfld, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mfld.nothing


def test_divergence_is_told_with_a_step_that_would_do():
    engine = MeanFieldLangevin(regression(dtype=torch.float32), 20, temperature=0.0, step_size=1e4)
    with pytest.raises(DivergenceError, match=r"lower step_size \(steps up to about 0\.\d+"):
        engine.run(300)
    slow = MeanFieldLangevin(regression(), 20, temperature=0.0, step_size=0.2)
    assert np.isfinite(slow.run(300).history["value"]).all()


def test_birth_death_moves_the_worst_to_the_best():
    potential = LinearPotential(lambda w: w[..., 0].square(), gradient=torch.zeros_like)
    start = torch.arange(1.0, 11.0).unsqueeze(1)
    rule = BirthDeath(every=2, fraction=0.2, jitter=0.0, until=2)
    engine = MeanFieldLangevin(
        potential, 10, dim=1, temperature=0.0, step_size=0.1, birth_death=rule, init=start, preconditioner="adam"
    )
    engine.step()
    assert engine.particles.flatten().tolist() == list(range(1, 11))
    engine.step()
    assert sorted(engine.particles.flatten().tolist()) == [1, 1, 2, 2, 3, 4, 5, 6, 7, 8]
    before = engine.particles.clone()
    engine.run(4)
    assert torch.equal(engine.particles, before)


# ------------------------------------------------------------------------------------ schedules
def test_schedules():
    assert Constant().at(7) == (1, 1, 1)
    assert Geometric(11, temperature=0.01).at(5).temperature == pytest.approx(0.1)
    assert Geometric(11, temperature=0.01).at(99).temperature == pytest.approx(0.01)
    assert Geometric(11, temperature=0.0).at(5).temperature == pytest.approx(0.5)
    assert [HalvingRounds(3, 10).at(t).temperature for t in (0, 9, 10, 25, 99)] == [1, 1, 0.5, 0.25, 0.25]
    assert HalvingRounds(3, 10).at(10).weight_decay == 0.5
    log = LogAnneal(delay=1.0, quiet_after=50)
    assert log.at(0).temperature == 1
    assert log.at(49).temperature == pytest.approx(1 / (1 + math.log(50)))
    assert log.at(50).temperature == 0


# ------------------------------------------------------------------------------------ misuse
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": -1.0}, "temperature must be a number >= 0"),
        ({"temperature": math.nan}, "temperature"),
        ({"step_size": 0.0}, "step_size must be a number > 0"),
        ({"weight_decay": 0.1, "prior_var": 1.0}, "not both"),
        ({"prior_var": 0.0}, "prior_var must be"),
        ({"n_particles": 0}, "n_particles must be a whole number >= 1"),
        ({"manifold": "spere"}, "did you mean 'sphere'"),
        ({"manifold": "box"}, "needs its bounds"),
        ({"manifold": "sphere", "weight_decay": 0.1}, "weight_decay must be 0"),
        ({"gradient": "svgr"}, "did you mean 'svrg'"),
        ({"preconditioner": "adan"}, "did you mean 'adam'"),
        ({"init": torch.zeros(3, 3)}, "init must have shape"),
        ({"init": torch.full((4000, 5), math.nan)}, "NaN or infinite"),
        ({"dim": None}, "dim is needed"),
        ({"temperature": [0.1, 0.2]}, "temperature must be a number"),
    ],
)
def test_misuse_is_named(change, message):
    with pytest.raises(MooptError, match=message):
        flat(**{"temperature": 0.1, **change})


def test_diagnostics_that_need_noise_or_few_dimensions_say_so():
    with pytest.raises(MooptError, match="temperature > 0"):
        gibbs_ksd(flat(temperature=0.0, n_particles=5))
    sphere = flat(temperature=0.1, manifold="sphere", n_particles=5)
    with pytest.raises(MooptError, match="Euclidean"):
        gibbs_ksd(sphere)
    with pytest.raises(MooptError, match="useless in 50 dimensions"):
        knn_entropy(torch.zeros(100, 50))
    with pytest.raises(MooptError, match="low < high"):
        Box(1.0, 1.0)
