"""Training sessions in odd circumstances: seeds that clash, workers that die, logs, warnings, tracebacks."""

import json
import sys
import warnings

import pytest

from moopt.cli import main as front
from moopt.cli.main import main
from moopt.runs import read_run

QUICK = ["--num-envs", "2", "--num-steps", "16", "--batch-size", "16", "--num-epochs", "1", "--eval-episodes", "1"]
QUICK += ["--final-eval-episodes", "1", "--num-policies", "2", "--num-select", "1", "--round-updates", "2"]


def train(*more, env="deep-sea-treasure-v0"):
    return ["train", "cmorl", "--env", env, "--total-steps", "300", *QUICK, *map(str, more)]


def error_of(capsys, argv, code=2):
    """Return the one line of an error after checking the exit code."""
    assert main([str(a) for a in argv]) == code
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("moopt: error: ")
    return line


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module with environments into the current folder; return its name."""

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(
            "import gymnasium as gym\nfrom moopt.testing.toy_env import ToyEnv\n" + text
        )
        return name

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return write


def test_a_folder_is_made_where_none_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(train("--quiet")) == 0
    assert main(train("--seeds", 4, 5, "--quiet")) == 0
    found = sorted(
        p.parent.relative_to(tmp_path / "runs" / "cmorl" / "deep-sea-treasure-v0")
        for p in tmp_path.rglob("config.json")
    )
    assert len(found) == 3
    assert sum(len(p.parts) == 1 and p.name.endswith("-s0") for p in found) == 1
    assert [p.name for p in found if len(p.parts) == 2] == ["seed-4", "seed-5"]


def test_seeds_beside_others_must_be_of_one_kind(tmp_path, capsys):
    out = tmp_path / "all"
    assert main(train("--seeds", 0, "--out", out, "--quiet")) == 0
    assert "num_policies 2, not 3" in error_of(capsys, train("--seeds", 0, 1, "--out", out, "--num-policies", 3))
    assert "env deep-sea-treasure-v0, not deep-sea-treasure-concave-v0" in error_of(
        capsys, train("--seeds", 0, 1, "--out", out, env="deep-sea-treasure-concave-v0")
    )
    assert "raised, not lowered" in error_of(capsys, train("--seeds", 0, 1, "--out", out, "--total-steps", 200))
    assert "names a seed twice: 1 1" in error_of(capsys, train("--seeds", 1, 1, "--out", out))
    assert "already holds a run" in error_of(capsys, train("--out", out / "seed-0"))
    assert "is a file" in error_of(capsys, train("--out", out / "seed-0" / "front.csv"))
    assert [p.name for p in out.iterdir()] == ["seed-0"]


def test_resume_wants_the_method_of_the_run(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(train("--out", run, "--quiet")) == 0
    assert "unknown method 'cmrol'" in error_of(capsys, ["train", "cmrol", "--resume", run])
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "total_steps": None}))
    assert "give --total-steps" in error_of(capsys, ["train", "--resume", run])
    (run / "config.json").write_text(json.dumps({**config, "config": {**config["config"], "num_polices": 3}}))
    assert "'num_polices'" in error_of(capsys, ["train", "--resume", run])
    (run / "config.json").write_text(json.dumps({**config, "algo": "ppo"}))
    assert "the method 'ppo', which this moopt does not have" in error_of(capsys, ["train", "--resume", run])
    assert "does not have" in error_of(capsys, ["evaluate", run])


def test_tensorboard_files_stand_beside_the_table(tmp_path):
    pytest.importorskip("tensorboard")
    run = tmp_path / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(train("--out", run, "--quiet", "--tensorboard")) == 0
        assert main(["train", "--resume", str(run), "--total-steps", "400", "--quiet", "--tensorboard"]) == 0
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(run / "tb")).Reload()
        steps = [event.step for event in events.Scalars("hv")]
    assert steps == read_run(run).metrics["step"].tolist()


def test_a_worker_that_dies_takes_no_other_run_with_it(module, tmp_path, capsys):
    """The first process that steps the environment is killed; the run of the other seed comes to its end."""
    name = module(
        "deadly",
        "import os, signal, time\n"
        "class Deadly(ToyEnv):\n"
        "    def step(self, action):\n"
        "        try: os.close(os.open('died', os.O_CREAT | os.O_EXCL))\n"
        "        except FileExistsError: return super().step(action)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "gym.register('Deadly-v0', Deadly, max_episode_steps=20)\n",
    )
    more = ("--ref-point", "-9", "-9", "--seeds", 0, 1, "--jobs", 2, "--out", tmp_path / "all")
    assert main(train(*more, env=f"{name}:Deadly-v0")) == 1
    said = capsys.readouterr()
    states = {s: read_run(tmp_path / "all" / f"seed-{s}").status for s in (0, 1)}
    assert sorted(states.values()) == ["failed", "finished"]
    (lost,) = (seed for seed, state in states.items() if state == "failed")
    assert f"seed-{lost}: its process died (killed, or out of memory)" in said.err
    assert "Traceback" not in said.err
    assert main(["train", "--resume", str(tmp_path / "all"), "--quiet"]) == 0
    assert read_run(tmp_path / "all" / f"seed-{lost}").status == "finished"


def test_failures_of_several_runs_are_told_together(module, tmp_path, capsys):
    name = module(
        "broken",
        "class Broken(ToyEnv):\n"
        "    def __init__(self): super().__init__(fault='raise', at=2)\n"
        "gym.register('Broken-v0', Broken, max_episode_steps=20)\n",
    )
    more = ("--ref-point", "-9", "-9", "--seeds", 0, 1, "--out", tmp_path / "all", "--quiet")
    assert main(train(*more, env=f"{name}:Broken-v0")) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("moopt: error: ")
        assert "the pole broke" in line


def test_debug_shows_the_traceback(capsys):
    assert main(["train", "cmorl", "--debug", "--env", "no-such-v0", "--total-steps", "1e6"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.splitlines()[-1].startswith("moopt: error: unknown environment 'no-such-v0'")


def test_what_nobody_foresaw_is_still_one_line(monkeypatch, capsys):
    def explode(argv):
        raise LookupError("the\nmap is upside down")

    monkeypatch.setattr("moopt.cli.info.run", explode)
    line = error_of(capsys, ["info"], code=1)
    assert line == "moopt: error: LookupError: the map is upside down (--debug shows the traceback)"


def test_an_interrupt_elsewhere_is_no_traceback(monkeypatch, capsys):
    def stop(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr("moopt.cli.info.run", stop)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "moopt: interrupted\n"


@pytest.mark.parametrize(
    ("category", "file", "shown"),
    [
        (UserWarning, "/x/other/a.py", True),
        (DeprecationWarning, "/x/other/a.py", False),
        (RuntimeWarning, "/x/moopt/kernels/a.py", True),
    ],
)
def test_warnings_are_lines_for_users_only(capsys, category, file, shown):
    front._show_warning(category("two\n lines"), category, file, 1)
    assert capsys.readouterr().err == ("moopt: warning: two lines\n" if shown else "")


def test_evaluation_on_sampled_actions_against_an_approximate_front(tmp_path, capsys):
    run = tmp_path / "run"
    argv = ["train", "cmorl", "--env", "minecart-deterministic-v0", "--total-steps", "400", *QUICK, "--out", str(run)]
    assert main([*argv, "--max-episode-steps", "30", "--quiet"]) == 0
    assert main(["evaluate", str(run), "--episodes", "1", "--stochastic"]) == 0
    said = capsys.readouterr().out
    for words in (
        "1 episode per policy, sampled actions, discount 0.98",
        "approximate front",
        "others can dominate points of it",
    ):
        assert words in said
    assert read_run(run).front is not None
    summary = json.loads((run / "evaluation.json").read_text())["meta"]["summary"]
    assert summary["known_front"] == "approximate"
    assert 0 <= summary["hv_share"] < 1
