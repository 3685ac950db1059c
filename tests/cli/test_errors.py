"""What users mistype or run into: one clear line, the right exit code, no traceback, nothing lost."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from moopt.cli.main import main
from moopt.runs import RunDir
from moopt.testing.toy_env import ToyEnv

QUICK = ["--num-envs", "2", "--num-steps", "16", "--batch-size", "16", "--num-epochs", "1", "--eval-episodes", "1"]
QUICK += ["--final-eval-episodes", "1", "--num-policies", "2", "--num-select", "1", "--round-updates", "2", "--quiet"]


def train(out, *more, env="deep-sea-treasure-v0", steps="400"):
    return ["train", "cmorl", "--env", env, "--total-steps", steps, "--out", str(out), *QUICK, *more]


def fails(capsys, argv, pattern, code=2):
    """Assert the exit code and that all of standard error is one line that matches."""
    assert main([str(a) for a in argv]) == code
    said = capsys.readouterr().err
    lines = said.strip().splitlines()
    assert len(lines) == 1, said
    assert lines[0].startswith("moopt: error: ")
    assert "Traceback" not in said
    assert re.search(pattern, lines[0]), lines[0]


class NaNEnv(ToyEnv):
    """Pays NaN from the fiftieth step on."""

    def step(self, action):
        obs, reward, *rest = super().step(action)
        self.count = getattr(self, "count", 0) + 1
        return obs, np.full_like(reward, np.nan) if self.count > 49 else reward, *rest


@pytest.fixture
def nan_env():
    gym.register("NaNReward-v0", NaNEnv)
    yield "NaNReward-v0"
    del gym.registry["NaNReward-v0"]


def test_unknown_names_come_with_the_nearest(capsys, tmp_path):
    fails(capsys, ["trian"], "unknown command 'trian'.*train")
    fails(capsys, ["--hlep"], "unknown option '--hlep'.*--help")
    fails(capsys, train(tmp_path / "x", env="deep-sea-tresure-v0"), "deep-sea-tresure-v0.*deep-sea-treasure-v0")
    fails(capsys, train(tmp_path / "x", "--num-polices", "3"), "--num-polices.*--num-policies")
    fails(capsys, ["train", "cmrol", "--env", "x"], "cmrol.*cmorl")
    fails(capsys, ["list", "envz"], "envz.*envs")
    assert not (tmp_path / "x").exists()


def test_environments_that_do_not_fit(capsys, tmp_path):
    fails(capsys, train(tmp_path / "x", env="CartPole-v1"), r"CartPole-v1.*(vector|scalar)")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("steps", ["0", "-5", "many", "1e30x", "10"])
def test_budgets_that_do_nothing(capsys, tmp_path, steps):
    fails(capsys, train(tmp_path / "x", steps=steps), "total.steps")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--num-envs", "0"),
        ("--learning-rate", "-1"),
        ("--gamma", "1.5"),
        ("--init-fraction", "0"),
        ("--hidden-sizes", "0"),
        ("--threshold", "rnage"),
        ("--device", "tpu"),
        ("--gamma-eval", "nan"),
        ("--ref-point", "1"),
        ("--seed", "-1"),
        ("--jobs", "0"),
        ("--seeds", "0,1"),
        ("--batch-size", "many"),
    ],
)
def test_settings_out_of_range_are_named(capsys, tmp_path, flag, value):
    # The flag comes last, so that it wins over the quick settings.
    name = flag.strip("-").replace("-", ".")
    fails(capsys, train(tmp_path / "x", flag, value), name)
    assert not (tmp_path / "x").exists()


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_reference_point_nobody_reaches_is_said_and_the_front_kept(capsys, tmp_path):
    assert main(train(tmp_path / "x", "--ref-point", "1000", "1000")) == 0
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert "ref_point" in said
    assert (tmp_path / "x" / "front.csv").read_text().count("\n") >= 2


def test_nan_rewards_stop_the_run_and_name_the_place(capsys, tmp_path, nan_env):
    fails(capsys, train(tmp_path / "x", "--ref-point", "-9", "-9", env=nan_env), r"NaNReward-v0.*step.*nan", code=1)
    assert json.loads((tmp_path / "x" / "status.json").read_text())["status"] == "failed"


def test_an_existing_folder_is_never_written_over(capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    fails(capsys, train(tmp_path), "not empty")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt"]


def test_folders_that_cannot_be_written(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    fails(capsys, train(tmp_path / "file" / "run"), "file/run")
    fails(capsys, train("/proc/nothing/run"), "/proc/nothing")


def test_a_full_disk_is_said_in_one_line(tmp_path):
    """A file size limit of 20 KB stands in for a full disk: the first checkpoint cannot be written."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from moopt.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    argv = train(tmp_path / "x", "--checkpoint-interval", "1", steps="2000")
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search("cannot write .*x", done.stderr)
    assert not list((tmp_path / "x").rglob("*.tmp*"))


@pytest.mark.parametrize("argv", ["--help", "list methods"])
def test_output_that_cannot_be_written(argv):
    """A full disk behind ``moopt list > FILE`` is told in one line; a closed standard output is the caller's wish."""
    command = f"{sys.executable} -m moopt {argv}"
    full = subprocess.run(f"{command} >/dev/full", shell=True, stderr=subprocess.PIPE, text=True)
    assert full.returncode == 1
    assert full.stderr.startswith("moopt: error: cannot write the output: No space left on device")
    assert len(full.stderr.splitlines()) == 1
    closed = subprocess.run(f"{command} >&-", shell=True, stderr=subprocess.PIPE, text=True)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_wrong_folders_for_evaluate_and_plot(capsys, tmp_path):
    fails(capsys, ["evaluate", tmp_path / "none"], "none")
    fails(capsys, ["evaluate", tmp_path], "not a run folder|no run")
    fails(capsys, ["plot", tmp_path, "--out", tmp_path / "x.png"], "run")
    fails(capsys, ["plot", tmp_path, "--out", tmp_path / "x.gif"], r"\.gif.*\.png")
    fails(capsys, ["train", "--resume", tmp_path / "none"], "none")
    (tmp_path / "file").write_text("")
    for argv in (["evaluate"], ["train", "--resume"]):
        fails(capsys, [*argv, tmp_path / "file"], "file is no run folder: it is a file")
    fails(capsys, ["evaluate", tmp_path, "--episodes", "0"], "episodes")


def test_what_was_typed_is_told_in_plain_words(capsys, tmp_path):
    fails(capsys, train(tmp_path / "x", "--batch-size", "many"), "must be an integer, got 'many'")
    fails(capsys, train(tmp_path / "x", "--learning-rate", "fast"), "must be a number, got 'fast'")
    fails(capsys, train(tmp_path / "x", "--ref-point", "a", "b"), "must be numbers, got 'a', 'b'")
    fails(capsys, train(tmp_path / "x", "--seeds", "0,1"), "put spaces between values")
    fails(capsys, train(tmp_path / "x", "--device", "tpu"), "unknown device 'tpu'; choose from auto, cpu")
    fails(capsys, ["train", "--env", "deep-sea-treasure-v0"], "name the method first")
    fails(capsys, ["train", "cmorl", "--total-steps", "10"], "--env is required")
    fails(capsys, train(tmp_path / "x", "--seed", "0", "--seeds", "1"), "not both")
    fails(capsys, train(tmp_path / "x", "--jobs", "2"), "--seeds")
    fails(capsys, train(tmp_path / "x", "--seeds"), "--seeds needs at least one seed")
    fails(capsys, train(""), "--out needs the name of a folder")
    fails(capsys, ["train", "--resume", ""], "--resume needs the name of a run folder")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_errors_are_as_plain_on_every_terminal(encoding):
    """The parser frames its messages in a box or, where the terminal has no such characters, under a rule."""
    texts = {"many": "must be an integer, got 'many'", None: "Expected 1 values"}
    for value, expected in texts.items():
        command = [sys.executable, "-m", "moopt", "train", "cmorl", "--batch-size"] + ([value] if value else [])
        done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding})
        assert done.returncode == 2
        said = done.stderr.decode(encoding)
        assert expected in said
        assert re.fullmatch(r"moopt: error: [^─│]+ \(see moopt train cmorl --help\)\n", said)
        assert "---" not in said


@pytest.fixture
def finished(tmp_path):
    """A finished run."""
    run = tmp_path / "all" / "run"
    assert main(train(run, "--checkpoint-interval", "1")) == 0
    return run


def test_a_finished_run_with_damaged_files(capsys, finished, tmp_path):
    folder = finished.parent
    fails(capsys, ["evaluate", folder], "folder of 1 run; evaluate .*all/run")
    fails(capsys, ["evaluate", finished, "--device", "tpu"], "unknown device")
    fails(capsys, ["evaluate", finished, "--out", tmp_path / "x.txt"], r"\.csv or \.json")
    fails(capsys, ["evaluate", finished, "--out", tmp_path / "none" / "x.csv"], "no folder")
    fails(capsys, ["plot", finished, "--out", tmp_path / "x.png", "--metric", "hvv"], "'hvv'.*'hv'", code=1)
    fails(capsys, ["train", "--resume", finished, "--total-steps", "10"], "raised, not lowered")
    fails(capsys, ["train", "--resume", finished, "--num-envs", "3"], "settings from the run, not --num-envs")
    members = finished / "policies" / "members.npz"
    members.write_bytes(members.read_bytes()[:300])
    fails(capsys, ["evaluate", finished], r"members\.npz", code=1)
    (finished / "metrics.csv").write_text("no log\n")
    fails(capsys, ["plot", finished, "--out", tmp_path / "x.png"], r"metrics\.csv", code=1)
    (finished / "config.json").write_text("{")
    for argv in (
        ["evaluate", finished],
        ["plot", finished, "--out", tmp_path / "x.png"],
        ["train", "--resume", finished],
    ):
        fails(capsys, argv, r"config\.json", code=1 if argv[0] == "plot" else 2)
    assert not list(tmp_path.glob("x*"))


@pytest.mark.filterwarnings("default::UserWarning")
def test_no_damage_to_any_file_of_a_run_ends_in_a_traceback(capsys, finished, tmp_path):
    """Every file in turn holds noise or nothing that makes sense; commands do their work or say what is wrong."""
    broken = tmp_path / "broken"
    commands = (
        ["evaluate", broken, "--episodes", "1"],
        ["plot", broken, "--out", tmp_path / "x.svg"],
        ["train", "--resume", broken, "--total-steps", "500", "--quiet"],
    )
    files = [p.relative_to(finished) for p in finished.rglob("*") if p.is_file() and p.name != ".lock"]
    assert len(files) >= 10
    for name in files:
        content = b"null" if name.suffix == ".json" else b"\x00\xff\x13" * 40
        for argv in commands:
            if argv[0] == "plot" and (name.suffix == ".npz" or "policies" in name.parts):
                continue  # it never looks there, and takes its time to draw
            shutil.rmtree(broken, ignore_errors=True)
            shutil.copytree(finished, broken)
            (broken / name).write_bytes(content)
            code = main([str(a) for a in argv])
            lines = capsys.readouterr().err.strip().splitlines()
            assert code in (0, 1, 2), (name, argv)
            assert all(line.startswith(("moopt: error: ", "moopt: warning: ")) for line in lines), lines
            assert sum(line.startswith("moopt: error: ") for line in lines) == (code != 0), lines
            assert not any("--debug" in line for line in lines), (name, lines)


def test_no_permission_is_said_before_any_work(capsys, finished, tmp_path, monkeypatch):
    real = os.access
    closed = tmp_path / "closed"
    closed.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(closed) and real(path, mode))
    fails(capsys, train(closed / "x"), "cannot write --out .*closed")
    fails(capsys, ["plot", finished, "--out", closed / "x.png"], "cannot write --out .*x.png: Permission denied")
    fails(capsys, ["evaluate", finished, "--out", closed / "x.csv"], "cannot write --out .*x.csv: Permission denied")
    shutil.copytree(finished, closed, dirs_exist_ok=True)
    fails(capsys, ["evaluate", closed], "cannot write into .*closed: Permission denied")
    assert not (closed / "evaluation.csv").exists()


def test_a_disk_that_is_full_after_the_evaluation_loses_no_figure(capsys, finished, monkeypatch):
    def no_space(fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    assert main(["evaluate", str(finished), "--episodes", "1"]) == 1
    said = capsys.readouterr()
    assert "this run" in said.out
    assert "written" not in said.out
    assert re.fullmatch(r"moopt: error: cannot write .*evaluation\.json: No space left on device\n", said.err)


def test_a_run_without_policies_yet(capsys, finished):
    shutil.rmtree(finished / "policies")
    fails(capsys, ["evaluate", finished], "no trained policies")


def test_two_processes_never_write_into_one_run(capsys, finished):
    before = {p.name: p.read_bytes() for p in finished.iterdir() if p.is_file()}
    with RunDir.open(finished).lock():
        fails(capsys, ["train", "--resume", finished, "--total-steps", "900", "--quiet"], "working in", code=1)
    after = {p.name: p.read_bytes() for p in finished.iterdir() if p.is_file()}
    assert {k: v for k, v in after.items() if k != ".lock"} == {k: v for k, v in before.items() if k != ".lock"}


def test_settings_files_with_mistakes(capsys, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("algo: cmorl\nenv: deep-sea-treasure-v0\ntotal_stepz: 100\n")
    fails(capsys, ["train", "--config", file], "total_stepz.*total_steps")
    file.write_text("algo: [cmorl\n")
    fails(capsys, ["train", "--config", file], "settings.yaml")
    file.write_text("algo: cmorl\nnum_envs: lots\n")
    fails(capsys, ["train", "--config", file], "num_envs.*lots")
    fails(capsys, ["train", "cmorl", "--config", tmp_path / "none.yaml"], "none.yaml")


@pytest.mark.filterwarnings("default::UserWarning")
def test_truncated_checkpoints(capsys, tmp_path):
    """The newest is damaged: the one before is used, and said. All are damaged: an error, and the files stay."""
    run = tmp_path / "run"
    assert main(train(run, "--checkpoint-interval", "1", steps="640")) == 0
    capsys.readouterr()
    checkpoints = sorted((run / "checkpoints").iterdir())
    assert len(checkpoints) >= 2
    checkpoints[-1].write_bytes(checkpoints[-1].read_bytes()[:500])
    assert main(["train", "--resume", str(run), "--total-steps", "900", "--quiet"]) == 0
    assert "going back" in capsys.readouterr().err
    for checkpoint in (run / "checkpoints").iterdir():
        checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    before = sorted(p.name for p in (run / "checkpoints").iterdir())
    assert main(["train", "--resume", str(run), "--total-steps", "1200", "--quiet"]) != 0
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "checkpoint" in said.splitlines()[-1]
    assert sorted(p.name for p in (run / "checkpoints").iterdir()) == before
