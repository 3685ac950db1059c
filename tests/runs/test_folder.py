"""Run folders: what they hold, who may write, what survives a full disk, a kill or a damaged file."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

from moopt.pareto import Front
from moopt.runs import (
    CheckpointError,
    MetricLog,
    MooptError,
    RunDir,
    RunError,
    RunLockedError,
    atomic_write_text,
    find_runs,
    load_state,
    read_metrics,
    read_run,
    seed_streams,
    versions,
)


def create(path, **more):
    return RunDir.create(path, algo="cmorl", env="deep-sea-treasure-v0", seed=3, config={"x": 1}, **more)


# ------------------------------------------------------------------------------------------------ the folder


def test_a_run_says_what_was_run(run_dir):
    config = json.loads((run_dir.path / "config.json").read_text())
    assert (config["algo"], config["env"], config["seed"], config["config"]) == (
        "cmorl",
        "deep-sea-treasure-v0",
        0,
        {"x": 1},
    )
    assert run_dir.versions["moopt"]
    assert (run_dir.path / "command.txt").read_text().strip()
    assert RunDir.open(run_dir.path).config == run_dir.config


def test_automatic_folders_never_collide(tmp_path):
    paths = {create(None, root=tmp_path).path for _ in range(3)}
    assert len(paths) == 3
    assert all(path.parent == tmp_path / "cmorl" / "deep-sea-treasure-v0" for path in paths)


def test_nothing_that_exists_is_written_over(run_dir, tmp_path):
    with pytest.raises(RunError, match="already holds a run; continue it with --resume"):
        create(run_dir.path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("mine")
    with pytest.raises(RunError, match="is not empty"):
        create(tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot make the run folder"):
        create(tmp_path / "file" / "run")


@pytest.mark.parametrize("name", ["config.json", "command.txt", "versions.json"])
def test_a_run_is_made_whole_or_not_at_all(tmp_path, monkeypatch, name):
    replace = os.replace

    def full(source, target):
        if os.fspath(target).endswith(name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RunError, match=rf"cannot write .*{name}: No space left on device"):
        create(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.undo()
    create(tmp_path / "run")


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"algo": 1, "env": "x", "seed": 0, "config": {}}', '{"algo": "cmorl"}']
)
def test_a_damaged_config_is_said(run_dir, content):
    (run_dir.path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"config\.json"):
        RunDir.open(run_dir.path)


def test_open_wants_a_run(tmp_path):
    with pytest.raises(RunError, match="does not exist"):
        RunDir.open(tmp_path / "none")
    with pytest.raises(RunError, match=r"has no config\.json"):
        RunDir.open(tmp_path)


def test_status_is_one_of_four_and_never_breaks_reading(run_dir):
    assert run_dir.status == "unknown"
    run_dir.set_status("running", step=5)
    assert run_dir.status == "running"
    with pytest.raises(RunError, match="status must be one of"):
        run_dir.set_status("done")
    (run_dir.path / "status.json").write_text("{")
    assert run_dir.status == "unknown"


def test_discard_removes_only_a_run_without_results(run_dir):
    run_dir.discard()
    assert not run_dir.path.exists()


def test_discard_leaves_what_it_did_not_write(run_dir):
    (run_dir.path / "notes").write_text("mine")
    run_dir.discard()
    assert [p.name for p in run_dir.path.iterdir()] == ["notes"]


def test_other_versions_are_said_on_resume(run_dir):
    file = run_dir.path / "versions.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "torch": "1.0"}))
    with pytest.warns(UserWarning, match="torch 1.0 ->"):
        run_dir.note_resume("moopt train --resume x")
    assert "moopt train --resume x" in (run_dir.path / "command.txt").read_text()


# ------------------------------------------------------------------------------------------------ the lock


def test_a_run_has_one_writer(run_dir):
    with run_dir.lock(), run_dir.lock(), pytest.raises(RunLockedError), RunDir.open(run_dir.path).lock():
        pass
    with RunDir.open(run_dir.path).lock():
        pass


def test_a_killed_writer_leaves_no_lock(run_dir):
    code = f"import time; from moopt.runs import RunDir\nwith RunDir.open({str(run_dir.path)!r}).lock():\n"
    code += "    print('held', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(RunLockedError, match=str(process.pid)), run_dir.lock():
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with run_dir.lock():
        pass


# ------------------------------------------------------------------------------------------------ checkpoints


def test_the_last_two_checkpoints_stay(run_dir):
    assert run_dir.load_checkpoint() is None
    for step in (10, 20, 30):
        run_dir.save_checkpoint(step, {"w": np.full(3, step)})
    assert run_dir.checkpoint_steps() == [20, 30]
    step, state = run_dir.load_checkpoint()
    assert step == 30
    np.testing.assert_array_equal(state["w"], [30, 30, 30])


@pytest.mark.parametrize("damage", ["truncate", "empty", "noise", "pickle"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(run_dir, damage):
    for step in (1, 2):
        run_dir.save_checkpoint(step, {"w": np.arange(5.0)})
    newest = run_dir.path / "checkpoints" / "step_000000000002.npz"
    content = newest.read_bytes()
    newest.write_bytes(
        {
            "truncate": content[: len(content) // 2],
            "empty": b"",
            "noise": content[:50] + b"\0" * 40 + content[90:],
            "pickle": pickle.dumps({"step": 2, "state": {}}),
        }[damage]
    )
    with pytest.warns(UserWarning, match="going back"):
        assert run_dir.load_checkpoint()[0] == 1
    (run_dir.path / "checkpoints" / "step_000000000001.npz").write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CheckpointError, match=r"no checkpoint of .* can be read"):
            run_dir.load_checkpoint()


def test_arrays_of_objects_are_never_loaded(tmp_path):
    """np.savez pickles object arrays; a file with one must not be opened, whoever wrote it."""

    class Trap:
        def __reduce__(self):
            return (os.system, ("touch " + str(tmp_path / "ran"),))

    np.savez(tmp_path / "trap.npz", state=np.array([Trap()], dtype=object))
    with pytest.raises(CheckpointError):
        load_state(tmp_path / "trap.npz")
    assert not (tmp_path / "ran").exists()


# ------------------------------------------------------------------------------------------------ files


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "x.json"
    atomic_write_text(file, "old")

    def full(fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write .*x\.json: No space left on device"):
        atomic_write_text(file, "new")
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_a_full_disk_keeps_the_checkpoints_before(run_dir):
    run_dir.save_checkpoint(1, {"w": np.arange(10.0)})
    code = f"""
        import resource, signal, numpy as np
        from moopt.runs import RunDir, RunError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        run = RunDir.open({str(run_dir.path)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            run.save_checkpoint(2, {{"w": np.random.default_rng(0).random(100_000)}})
        except RunError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, env=os.environ
    )
    assert "cannot write" in done.stdout
    assert "File too large" in done.stdout
    assert run_dir.checkpoint_steps() == [1]
    assert run_dir.load_checkpoint()[0] == 1
    assert [p.name for p in (run_dir.path / "checkpoints").iterdir()] == ["step_000000000001.npz"]


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path):
    file = tmp_path / "x.bin"
    file.write_bytes(b"old")
    code = f"""
        import os, signal
        from moopt.runs.files import atomic_writer
        with atomic_writer({str(file)!r}) as handle:
            handle.write(b"new" * 1000)
            handle.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == b"old"


def test_the_next_writer_sweeps_what_a_killed_one_left(run_dir):
    stray = run_dir.path / ".front.csv.1234abcd.tmp"
    stray.write_text("half")
    with run_dir.lock():
        assert not stray.exists()


# ------------------------------------------------------------------------------------------------ metrics


def test_metrics_come_back_with_gaps_and_late_columns(tmp_path):
    log = MetricLog(tmp_path / "metrics.csv")
    log.write(1, hv=1.5, note="a,b")
    log.write(2, hv=None, note="c")
    log.write(3, hv=np.float64(1e-300), note="d", eu=2)
    columns = read_metrics(log.path)
    np.testing.assert_array_equal(columns["step"], [1, 2, 3])
    np.testing.assert_array_equal(columns["hv"], [1.5, np.nan, 1e-300])
    np.testing.assert_array_equal(columns["eu"], [np.nan, np.nan, 2])
    assert columns["note"].tolist() == ["a,b", "c", "d"]


def test_a_resumed_run_logs_its_rows_once(tmp_path):
    log = MetricLog(tmp_path / "metrics.csv")
    for step in (1, 2, 3):
        log.write(step, hv=float(step))
    with log.path.open("a") as file:
        file.write("4,4.")  # killed in the middle of a row
    log = MetricLog(log.path)
    log.truncate(2)
    log.write(3, hv=30.0)
    np.testing.assert_array_equal(read_metrics(log.path)["hv"], [1.0, 2.0, 30.0])


@pytest.mark.parametrize("text", ["step,hv\n1,2,3\n", "hv,step\n1,2\n", "step,hv\nx,1\n", "step,step\n1,1\n"])
def test_files_that_are_no_metric_log(tmp_path, text):
    (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(RunError, match=r"metrics\.csv"):
        read_metrics(tmp_path / "metrics.csv")


# ------------------------------------------------------------------------------------------------ reading, seeds


def test_runs_are_found_and_read(tmp_path):
    for seed in (0, 1):
        run = create(tmp_path / "all" / f"seed-{seed}")
        run.metrics.write(10, hv=1.0)
        run.write_front(Front([[1.0, 2.0]], ref_point=[0.0, 0.0]))
        run.set_status("finished")
    paths = find_runs(tmp_path)
    assert [p.name for p in paths] == ["seed-0", "seed-1"]
    record = read_run(paths[0])
    assert record.front.hypervolume() == 2.0
    with pytest.raises(RunError, match="holds no run"):
        find_runs(_empty(tmp_path))


def _empty(tmp_path):
    (tmp_path / "nothing").mkdir()
    return tmp_path / "nothing"


def test_streams_are_independent_of_each_other_and_of_order():
    first, second = seed_streams(7, ["a", "b"]), seed_streams(7, ["b", "a"])
    assert first["a"].generate_state(4).tolist() == second["a"].generate_state(4).tolist()
    assert first["a"].generate_state(4).tolist() != first["b"].generate_state(4).tolist()
    assert first["a"].generate_state(4).tolist() != seed_streams(8, ["a"])["a"].generate_state(4).tolist()
    for wrong in (-1, 1.5, "0"):
        with pytest.raises(MooptError, match="seed must be an integer >= 0"):
            seed_streams(wrong, ["a"])
    with pytest.raises(MooptError, match="comes twice"):
        seed_streams(0, ["a", "a"])


def test_versions_name_what_results_depend_on():
    assert {"moopt", "python", "torch", "numpy", "gymnasium", "mo-gymnasium"} <= set(versions())
