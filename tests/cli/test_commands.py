"""The commands as a user chains them, on the smallest budgets."""

import csv
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import gymnasium as gym
import pytest

from moopt.cli.listing import LISTS
from moopt.cli.main import COMMANDS, main

TINY = {
    "num_policies": 2,
    "num_envs": 2,
    "num_steps": 16,
    "batch_size": 16,
    "num_epochs": 1,
    "num_select": 1,
    "round_updates": 2,
    "eval_episodes": 1,
    "final_eval_episodes": 2,
    "checkpoint_interval": 1,
}
FLAGS = [text for name, value in TINY.items() for text in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of one training, made by two jobs."""
    out = tmp_path_factory.mktemp("runs") / "dst"
    argv = ["train", "cmorl", "--env", "deep-sea-treasure-v0", "--total-steps", "1e3", "--seeds", "0", "1"]
    assert main([*argv, "--jobs", "2", "--out", str(out), *FLAGS, "--quiet"]) == 0
    return out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys, command):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        try:
            code = main([command, "--help"])
        except SystemExit as end:
            code = end.code
    assert code in (0, None)
    said = capsys.readouterr().out
    assert f"moopt {command}" in said
    assert len(said.splitlines()) > 5


def test_help_lists_every_command_and_setting(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name} " in said
    main(["train", "cmorl", "--help"])
    said = capsys.readouterr().out
    for name in TINY:
        assert f"--{name.replace('_', '-')}" in said


LIGHT = [["--help"], ["--version"], ["train", "--help"], ["train", "cmorl", "--help"], ["list", "methods"]]
LIGHT += [[name, "--help"] for name in ("evaluate", "plot", "list", "info", "fit")]


@pytest.mark.parametrize("argv", LIGHT, ids=" ".join)
def test_the_front_desk_opens_without_heavy_libraries(argv):
    code = (
        "import sys; from moopt.cli.main import main\n"
        f"try: main({argv!r})\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'gymnasium', 'stable_baselines3', 'matplotlib', 'botorch', 'scipy', 'numpy', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("argv", "limit"), [(["--help"], 2.0), (["train", "cmorl", "--help"], 4.0)])
def test_help_comes_at_once(argv, limit):
    """Ten times what an idle machine takes, in the best of three; the exact figures are below."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "moopt", *argv], capture_output=True, check=True)
        seconds.append(time.perf_counter() - start)
        if seconds[-1] < limit:
            return
    raise AssertionError(f"moopt {' '.join(argv)} took {seconds} s")


@pytest.mark.bench
def test_start_up_times():
    """Whole processes, medians of seven; run by hand on an idle machine."""
    for argv, limit in ((["--help"], 0.2), (["train", "cmorl", "--help"], 0.4)):
        seconds = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "moopt", *argv], capture_output=True, check=True)
            seconds.append(time.perf_counter() - start)
        assert statistics.median(seconds) < limit, f"moopt {' '.join(argv)}: {seconds}"


def test_seeds_give_a_folder_each(runs):
    for seed in (0, 1):
        config = json.loads((runs / f"seed-{seed}" / "config.json").read_text())
        assert config["seed"] == seed
        assert config["total_steps"] == 1000
        assert config["config"]["num_steps"] == 16
        assert json.loads((runs / f"seed-{seed}" / "status.json").read_text())["status"] == "finished"
        with (runs / f"seed-{seed}" / "metrics.csv").open() as file:
            steps = [int(row["step"]) for row in csv.DictReader(file)]
        assert steps == sorted(steps)
        assert 0 < steps[-1] <= 1000


def test_seeds_are_as_if_trained_alone(runs, tmp_path):
    argv = ["train", "cmorl", "--env", "deep-sea-treasure-v0", "--total-steps", "1000", "--seed", "1"]
    assert main([*argv, "--out", str(tmp_path / "alone"), *FLAGS, "--quiet"]) == 0
    assert (tmp_path / "alone" / "front.csv").read_bytes() == (runs / "seed-1" / "front.csv").read_bytes()


def test_a_settings_file_is_the_flags(runs, tmp_path):
    file = tmp_path / "settings.yaml"
    lines = ["algo: cmorl", "env: deep-sea-treasure-v0", "total_steps: 777"]
    file.write_text("\n".join(lines + [f"{name}: {value}" for name, value in TINY.items()]))
    argv = ["train", "--config", str(file), "--total-steps", "1000", "--seed", "0", "--out", str(tmp_path / "run")]
    assert main([*argv, "--quiet"]) == 0
    assert (tmp_path / "run" / "front.csv").read_bytes() == (runs / "seed-0" / "front.csv").read_bytes()


def test_a_runs_own_config_trains_it_again(runs, tmp_path):
    argv = ["train", "--config", str(runs / "seed-0" / "config.json"), "--out", str(tmp_path / "run"), "--quiet"]
    assert main(argv) == 0
    assert (tmp_path / "run" / "front.csv").read_bytes() == (runs / "seed-0" / "front.csv").read_bytes()


def test_finished_runs_are_skipped(runs, capsys):
    before = (runs / "seed-0" / "status.json").read_bytes()
    argv = ["train", "cmorl", "--env", "deep-sea-treasure-v0", "--total-steps", "1000", "--seeds", "0", "1"]
    assert main([*argv, "--out", str(runs), *FLAGS]) == 0
    assert "finished" in capsys.readouterr().out
    assert (runs / "seed-0" / "status.json").read_bytes() == before


def test_evaluate_compares_with_the_known_front(runs, capsys, tmp_path):
    argv = ["evaluate", str(runs / "seed-0"), "--episodes", "2", "--gamma-eval", "1", "--seed", "3"]
    assert main([*argv, "--out", str(tmp_path / "front.csv")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\nknown front +994\.3", said)
    assert "\nthis run " in said
    assert "approximate" not in said
    assert re.search(r"\nHV as a share of that of the known front: [\d.]+ %\n", said)
    assert (runs / "seed-0" / "evaluation.json").exists()
    assert (tmp_path / "front.csv").read_text().startswith("treasure,time")


def test_plot_draws_runs_together(runs, capsys, tmp_path):
    out = tmp_path / "figure.png"
    assert main(["plot", str(runs), "--out", str(out), "--metric", "n_front", "--title", "Treasure"]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    for name in ("figure.png", "figure-front.csv", "figure-curve.csv"):
        assert str(tmp_path / name) in said
        assert (tmp_path / name).exists()


def test_an_approximate_front_is_called_so(capsys, tmp_path):
    run = tmp_path / "run"
    argv = ["train", "cmorl", "--env", "resource-gathering-v0", "--total-steps", "400", "--out", str(run), *FLAGS]
    assert main([*argv, "--num-policies", "3", "--quiet"]) == 0
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0
    said = capsys.readouterr().out
    assert "\napproximate front (mo-gymnasium) " in said
    assert "HV as a share of that of the approximate front (mo-gymnasium): " in said
    assert "others can dominate points of it" in said
    assert "exact" not in said
    summary = json.loads((run / "evaluation.json").read_text())["meta"]["summary"]
    assert summary["known_front"] == "approximate"


def test_lists(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    for what in LISTS:
        assert f"\nmoopt list {what} " in said
    assert main(["list", "envs"]) == 0
    said = capsys.readouterr().out
    for word in ("minecart-v0", "mo-hopper-2obj-v5", "ref_point", "gamma_eval"):
        assert word in said
    kinds = {line.split()[0]: line.split()[-1] for line in said.splitlines() if re.match(r"\S+-v\d ", line)}
    assert kinds["minecart-v0"] == kinds["minecart-deterministic-v0"] == "approximate"
    assert kinds["deep-sea-treasure-v0"] == "exact"
    assert kinds["mo-hopper-2obj-v5"] == "-"
    assert main(["list", "methods"]) == 0
    assert "cmorl" in capsys.readouterr().out


def test_info_names_versions(capsys):
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    for word in ("torch", "mo-gymnasium", "kernel backend", "device"):
        assert word in said


STOPPER = """
import os
import gymnasium as gym
from moopt.testing.toy_env import ToyEnv


class Stopper(ToyEnv):
    steps = 0

    def step(self, action):
        Stopper.steps += 1
        if Stopper.steps == int(os.environ.get("STOP_AT", 0)):
            os.kill(os.getpid(), int(os.environ["STOP_WITH"]))
        return super().step(action)


gym.register("Stopper-v0", Stopper, max_episode_steps=20)
"""
STOPPED = ["train", "cmorl", "--env", "stopper:Stopper-v0", "--total-steps", "1000", "--ref-point", "-9", "-9", *FLAGS]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the module of an environment that sends its own process a signal at a chosen step."""
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "stopper.py").write_text(STOPPER)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder
    sys.modules.pop("stopper", None)
    gym.registry.pop("Stopper-v0", None)


@pytest.fixture(scope="module")
def uninterrupted(home):
    """The front of a training that nothing disturbs."""
    assert main([*STOPPED, "--out", str(home / "whole"), "--quiet"]) == 0
    return (home / "whole" / "front.csv").read_bytes()


@pytest.mark.parametrize(("number", "at"), [(signal.SIGINT, 701), (signal.SIGTERM, 1234), (signal.SIGKILL, 1500)])
def test_a_run_that_is_stopped_goes_on_as_if_it_had_not_been(home, uninterrupted, number, at):
    run = home / number.name
    command = [sys.executable, "-m", "moopt", *STOPPED, "--out", str(run)]
    env = {**os.environ, "STOP_AT": str(at), "STOP_WITH": str(int(number))}
    stopped = subprocess.run(command, capture_output=True, text=True, cwd=home, env=env)
    assert not (run / "front.csv").exists()
    assert list((run / "checkpoints").glob("*.npz"))
    if number == signal.SIGKILL:
        assert stopped.returncode == -signal.SIGKILL
    else:
        assert stopped.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
        assert "Traceback" not in stopped.stderr
        assert f"moopt train --resume {run}" in stopped.stderr.splitlines()[-1]
        assert json.loads((run / "status.json").read_text())["status"] == "interrupted"
    assert main(["train", "--resume", str(run), "--quiet"]) == 0
    assert (run / "front.csv").read_bytes() == uninterrupted
    with (run / "metrics.csv").open() as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    assert steps == sorted(set(steps))
    assert len((run / "command.txt").read_text().splitlines()) == 2


def test_an_interrupt_stops_runs_side_by_side_together(tmp_path):
    out = tmp_path / "my runs"
    argv = ["train", "cmorl", "--env", "deep-sea-treasure-v0", "--total-steps", "1e6", *FLAGS]
    argv += ["--seeds", "0", "1", "2", "--jobs", "2", "--out", str(out), "--quiet"]
    process = subprocess.Popen([sys.executable, "-m", "moopt", *argv], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while len(list(out.glob("seed-*/checkpoints/*.npz"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    line = f"moopt: interrupted, 3 runs unfinished; continue with: moopt train --resume '{out}' --jobs 2"
    assert said.splitlines() == [line]
    for seed in (0, 1, 2):
        assert json.loads((out / f"seed-{seed}" / "status.json").read_text())["status"] == "interrupted"


def test_a_folder_of_runs_is_prolonged_as_a_whole(runs, tmp_path, capsys):
    copy = tmp_path / "dst"
    shutil.copytree(runs, copy)
    assert main(["train", "--resume", str(copy), "--total-steps", "1100"]) == 0
    said = capsys.readouterr()
    for seed in (0, 1):
        assert json.loads((copy / f"seed-{seed}" / "config.json").read_text())["total_steps"] == 1100
        assert f"seed-{seed}: front of" in said.out
        assert f"seed-{seed}: 100 %" in said.err or f"seed-{seed}:  9" in said.err


def test_quiet_is_quiet(tmp_path, capsys):
    argv = ["train", "cmorl", "--env", "deep-sea-treasure-v0", "--total-steps", "400", "--out", str(tmp_path / "run")]
    assert main([*argv, *FLAGS, "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_environments_in_files_of_the_current_folder(tmp_path):
    """Through the installed command, whose own search path does not hold the current folder."""
    (tmp_path / "pond.py").write_text(
        "import gymnasium as gym\nfrom moopt.testing.toy_env import ToyEnv\n"
        "gym.register('Pond-v0', ToyEnv, max_episode_steps=20)\n"
    )
    code = "import sys; sys.path = [p for p in sys.path if p]; from moopt.cli.main import main; sys.exit(main())"
    argv = [
        "train",
        "cmorl",
        "--env",
        "pond:Pond-v0",
        "--total-steps",
        "400",
        "--out",
        "run",
        "--ref-point",
        "-9",
        "-9",
    ]
    command = [sys.executable, "-c", code, *argv, *FLAGS, "--num-workers", "1", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "front.csv").exists()


def test_a_reader_that_leaves_early_is_no_error():
    code = "from moopt.cli.main import main; import sys; sys.exit(main(['list', 'methods']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert said == ""
