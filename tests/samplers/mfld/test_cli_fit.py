"""``moopt fit mfld``: runs, resumes, and says what is wrong."""

import json
import shutil

import numpy as np
import pytest

from moopt.cli.main import main
from moopt.runs import RunDir
from moopt.samplers import MFLDClassifier, MFLDRegressor

SMALL = ["--n-particles", "20", "--n-steps", "60", "--scale", "2", "4", "--temperature", "1e-4", "--quiet"]
PROBLEM = ["fit", "mfld", "--data", "multi-index:square", "--n", "80", "--dim", "3", "--n-test", "200", *SMALL]


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_a_generated_problem(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*PROBLEM[:-1], "--kernel", "--plot", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "test_mse" in said
    assert f"written: {out}" in said
    result = summary(out)
    assert result["test_mse"] < result["target_variance"]
    assert 0 < result["alignment"] <= 1
    assert "kernel_test_mse" in result
    assert (out / "particles.png").stat().st_size > 5000
    assert RunDir.open(out).status == "finished"
    assert MFLDRegressor.load(out / "model.npz").scale_ == result["scale"]
    assert main([*PROBLEM, "--out", str(out)]) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_a_stopped_fit_resumes_to_the_same_model(tmp_path, capsys):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main([*PROBLEM, "--out", str(whole)]) == 0
    shutil.copytree(whole, cut)
    run = RunDir.open(cut)
    assert len(run.checkpoint_steps()) == 2
    (cut / "model.npz").unlink()
    (cut / "checkpoints" / f"step_{run.checkpoint_steps()[-1]:012d}.npz").unlink()
    run.set_status("interrupted")
    assert main(["fit", "mfld", "--resume", str(cut), "--quiet"]) == 0
    assert (cut / "metrics.csv").read_text() == (whole / "metrics.csv").read_text()
    one, other = (MFLDRegressor.load(folder / "model.npz").particles_ for folder in (whole, cut))
    assert np.array_equal(one, other)
    assert main(["fit", "mfld", "--resume", str(cut)]) == 0
    assert "is finished" in capsys.readouterr().out


def test_a_table_with_classes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    lines = ["a,kind,b"] + [f"{a},{'up' if a > 0 else 'down'},{b}" for a, b in X]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    args = [
        "fit",
        "mfld",
        "--data",
        str(tmp_path / "t.csv"),
        "--target",
        "kind",
        "--task",
        "classification",
        "--plot",
        *SMALL,
    ]
    assert main([*args, "--out", str(tmp_path / "run")]) == 0
    assert summary(tmp_path / "run")["test_accuracy"] > 0.9
    assert MFLDClassifier.load(tmp_path / "run" / "model.npz").classes_.tolist() == ["down", "up"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fit", "mlfd"], "did you mean 'mfld'"),
        (["fit", "mfld"], "--data is required"),
        (["fit", "mfld", "--dta", "x"], "did you mean '--data'"),
        (["fit", "mfld", "--data", "nowhere.csv"], "neither multi-index:NAME nor a file"),
        (["fit", "mfld", "--data", "multi-index:parity"], "unknown target 'parity'"),
        ([*PROBLEM, "--step-size", "0"], "step_size must be a finite number > 0"),
        ([*PROBLEM, "--manifold", "torus"], "--manifold"),
        (["fit", "mfld", "--resume", "x", "--n", "3"], "--resume takes everything from the run"),
        (["fit", "mfld", "--resume", "nowhere"], "no run folder"),
    ],
)
def test_misuse_is_told_in_one_line(args, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said
    assert not list(tmp_path.iterdir())


def test_tables_that_cannot_be_used(tmp_path, capsys):
    file = tmp_path / "t.csv"
    for text, message in (
        ("a,b\n1,2\n", "at least 3 rows"),
        ("a,b\n1,2\n3\n4,5\n", "same number of columns"),
        ("a,b\n1,2\n3,x\n4,5\n", "must hold numbers"),
    ):
        file.write_text(text)
        assert main(["fit", "mfld", "--data", str(file), "--out", str(tmp_path / "o")]) == 2
        assert message in capsys.readouterr().err
    file.write_text("a,b\n1,2\n3,nan\n4,5\n5,6\n")
    assert main(["fit", "mfld", "--data", str(file), "--out", str(tmp_path / "o")]) != 0
    assert "NaN" in capsys.readouterr().err
    file.write_text("a,b\n1,2\n3,4\n5,6\n")
    assert main(["fit", "mfld", "--data", str(file), "--target", "c"]) == 2
    assert "no column" in capsys.readouterr().err


def test_help(capsys):
    assert main(["fit", "--help"]) == 0
    assert "mfld" in capsys.readouterr().out
    assert main(["fit", "mfld", "--help"]) == 0
    assert "--n-particles" in capsys.readouterr().out
