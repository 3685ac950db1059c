"""The estimators: scikit-learn's contract, what they learn, resume, saving, and what they refuse."""

import math
import os
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from moopt.runs import load_state, save_state
from moopt.runs.errors import CheckpointError, MooptError
from moopt.samplers import MFLDClassifier, MFLDRegressor
from moopt.samplers.mfld import DivergenceError, alignment, multi_index

QUICK = {"n_particles": 20, "n_steps": 200, "scale": 4.0, "temperature": 1e-4, "early_stopping": False}


@parametrize_with_checks([MFLDRegressor(**{**QUICK, "n_steps": 300}), MFLDClassifier(**QUICK)])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the target is constant")
        check(estimator)


# ------------------------------------------------------------------------------- what they learn
def test_parity_2_is_learned_with_the_settings_that_validation_chose():
    train, test = multi_index("parity2", 500, 25), multi_index("parity2", 2000, 25, seed=1)
    model = MFLDRegressor(100, scale=(2.0, 64.0), temperature=1e-4, n_steps=500, random_state=0)
    model.fit(train.X, train.y)
    assert model.scale_ == 2.0
    assert np.mean((model.predict(test.X) - test.y) ** 2) < 0.05
    assert float(alignment(torch.from_numpy(model.particles_), train.basis)) > 0.6
    span = model.subspace(2)
    np.testing.assert_allclose(span @ span.T, np.eye(2), atol=1e-9)
    assert np.linalg.norm(span[:, :2]) ** 2 > 1.9
    assert model.effective_dimension(train.X, 2) == pytest.approx(25 / 2, rel=0.1)
    assert set(np.unique(model.signs_)) == {-1.0, 1.0}
    assert {"step", "stage", "loss", "validation_loss"} == model.history_.keys()
    assert model.history_["loss"][-1] < 0.1 * model.history_["loss"][0]


@pytest.mark.parametrize("change", [{"manifold": "sphere"}, {"gradient": "svrg"}, {"gradient": "minibatch"},
                                    {"activation": "tanh"}, {"activation": "sclip"}, {"schedule": "halving"},
                                    {"schedule": "log"}, {"schedule": "geometric"}])  # fmt: skip
def test_every_variant_learns_a_square(change):
    data = multi_index("square", 300, 4, seed=2)
    model = MFLDRegressor(**{**QUICK, "n_particles": 60, "n_steps": 400, **change}, random_state=0)
    assert model.fit(data.X, data.y).score(data.X, data.y) > 0.75


def test_classes_several_outputs_and_labels_of_any_kind():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    names = np.array(["left", "middle", "right"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = MFLDClassifier(**{**QUICK, "n_particles": 61, "n_steps": 400}, random_state=0).fit(X, names)
    assert len(model.particles_) == 63
    assert model.score(X, names) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.decision_function(X).shape == (300, 3)
    Y = np.stack([X[:, 0], X[:, 1] ** 2], axis=1)
    assert MFLDRegressor(**{**QUICK, "n_particles": 80, "n_steps": 400}, random_state=0).fit(X, Y).score(X, Y) > 0.85


def test_the_bandwagon_of_scikit_learn():
    data = multi_index("square", 60, 2)
    search = GridSearchCV(MFLDRegressor(**QUICK, random_state=0), {"scale": [0.01, 4.0]}, cv=2).fit(data.X, data.y)
    assert search.best_params_ == {"scale": 4.0}
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


# ------------------------------------------------------------------------------- going on
def test_warm_start_goes_on_and_partial_fit_learns():
    data = multi_index("square", 200, 3)
    model = MFLDRegressor(**{**QUICK, "n_steps": 60}, warm_start=True, random_state=0).fit(data.X, data.y)
    first = model.history_["loss"][-1]
    before = model.particles_
    model.fit(data.X, data.y)
    assert model.history_["loss"][-1] < first
    assert np.linalg.norm(model.particles_ - before) < np.linalg.norm(before)
    slow = MFLDRegressor(**QUICK, partial_steps=40, random_state=0)
    scores = [slow.partial_fit(data.X[i::4], data.y[i::4]).score(data.X, data.y) for i in (0, 1, 2, 3) * 3]
    assert scores[-1] > max(0.5, scores[0])
    clf = MFLDClassifier(**QUICK, random_state=0).partial_fit(data.X[:5], np.zeros(5), classes=[0, 1])
    assert clf.classes_.tolist() == [0, 1]
    with pytest.raises(MooptError, match=r"labels \[7.0\] are not among"):
        clf.partial_fit(data.X[:5], np.full(5, 7.0))


@pytest.mark.parametrize("stop", [70, 220])
def test_resume_is_bit_exact_in_both_stages(tmp_path, stop):
    data = multi_index("parity2", 200, 6)
    settings = {"n_particles": 30, "scale": (2.0, 4.0), "temperature": (1e-4, 1e-3), "n_steps": 150}

    def make():
        return MFLDRegressor(**settings, random_state=1)

    whole = make().fit(data.X, data.y)
    first = make().make_trainer(data.X, data.y)
    first.advance(stop)
    assert first.stage == ("choose" if stop < 150 else "final")
    save_state(tmp_path / "t.npz", first.state_dict())
    model = make()
    second = model.make_trainer(data.X, data.y)
    second.load_state_dict(load_state(tmp_path / "t.npz"))
    second.advance(10_000)
    model.adopt(second)
    assert np.array_equal(model.particles_, whole.particles_)
    assert (model.scale_, model.n_iter_) == (whole.scale_, whole.n_iter_)
    with pytest.raises(MooptError, match="not finished"):
        make().adopt(make().make_trainer(data.X, data.y))
    with pytest.raises(CheckpointError):
        make().make_trainer(data.X, data.y).load_state_dict({"choice": None})


def test_saved_estimators_predict_the_same(tmp_path):
    data = multi_index("square", 80, 3)
    model = MFLDRegressor(**QUICK, random_state=0).fit(data.X, data.y)
    model.save(tmp_path / "m.npz")
    loaded = MFLDRegressor.load(tmp_path / "m.npz")
    assert np.array_equal(loaded.predict(data.X), model.predict(data.X))
    assert loaded.get_params() == model.get_params()
    labels = np.where(data.y > 0, "yes", "no")
    clf = MFLDClassifier(**QUICK, random_state=0).fit(data.X, labels)
    clf.save(tmp_path / "c.npz")
    assert MFLDClassifier.load(tmp_path / "c.npz").predict(data.X).tolist() == clf.predict(data.X).tolist()
    with pytest.raises(CheckpointError, match="holds a MFLDClassifier"):
        MFLDRegressor.load(tmp_path / "c.npz")
    with pytest.raises(MooptError, match="only a fitted"):
        MFLDRegressor().save(tmp_path / "n.npz")
    (tmp_path / "m.npz").write_bytes(os.urandom(100))
    with pytest.raises(CheckpointError):
        MFLDRegressor.load(tmp_path / "m.npz")


# ------------------------------------------------------------------------------- what they refuse
def test_unusable_data_is_refused_by_name():
    X, y = np.ones((20, 2)), np.ones(20)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        MFLDRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="contains NaN"):
        MFLDRegressor(**QUICK).fit(np.ones((20, 2)), np.full(20, np.nan))
    with pytest.raises(ValueError, match="minimum of 2"):
        MFLDRegressor(**QUICK).fit([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError, match="only one class"):
        MFLDClassifier(**QUICK).fit(np.random.default_rng(0).normal(size=(9, 2)), np.ones(9))


def test_a_constant_target_is_predicted_with_a_warning():
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.warns(UserWarning, match="target is constant"):
        model = MFLDRegressor(**QUICK, random_state=0).fit(X, np.full(30, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, atol=0.3)
    assert np.isfinite(model.particles_).all()


def test_constant_inputs_and_few_rows_do_not_break():
    model = MFLDRegressor(**QUICK, random_state=0).fit(np.ones((6, 3)), np.arange(6.0))
    np.testing.assert_allclose(model.predict(np.ones((2, 3))), 2.5, atol=0.5)
    few = MFLDRegressor(20, n_steps=50, random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
    assert math.isnan(few.validation_loss_)
    assert few.scale_ == 2.0


def test_a_huge_scale_is_tamed_by_a_stable_step_and_divergence_is_told():
    data = multi_index("square", 80, 3)
    model = MFLDRegressor(**{**QUICK, "scale": 1e4}, random_state=0).fit(data.X, data.y)
    assert model.step_size_ < 1e-6
    assert np.isfinite(model.predict(data.X)).all()
    with pytest.raises(DivergenceError, match="lower step_size"):
        MFLDRegressor(**{**QUICK, "weight_decay": 1e6}, random_state=0).fit(data.X, data.y)
    with pytest.raises(DivergenceError, match="every candidate diverged"):
        MFLDRegressor(20, n_steps=200, weight_decay=1e6, random_state=0).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_particles": 0}, "n_particles must be a whole number >= 1, got 0"),
        ({"n_steps": -1}, "n_steps must be a whole number >= 0"),
        ({"scale": -1.0}, "scale must be a finite number > 0, got -1.0"),
        ({"scale": ()}, "scale must be a number or a list"),
        ({"temperature": math.inf}, "temperature must be a finite number >= 0"),
        ({"step_size": 0.0}, "step_size must be a finite number > 0"),
        ({"validation_fraction": 1.0}, "validation_fraction must be in"),
        ({"activation": "relo"}, "did you mean 'relu'"),
        ({"manifold": "spere"}, "did you mean 'sphere'"),
        ({"schedule": "cosine"}, "unknown schedule 'cosine'"),
        ({"gradient": "sgd"}, "unknown gradient 'sgd'"),
        ({"scaling": "globl"}, "did you mean 'global'"),
    ],
)
def test_settings_out_of_range_are_named(change, message):
    data = multi_index("square", 30, 2)
    with pytest.raises(ValueError, match=message):
        MFLDRegressor(**{**QUICK, **change}).fit(data.X, data.y)
