"""Failures in the middle: what was there before stays, nothing half-made is left, the message names the file."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from moopt.pareto import Front
from moopt.runs import MetricLog, RunDir, RunError, atomic_write_text, read_metrics, read_run
from moopt.runs.files import atomic_writer, sweep_temporaries
from moopt.runs.folder import new_folder


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), MemoryError()], ids=lambda e: type(e).__name__)
def test_an_error_in_the_middle_leaves_the_old_file(tmp_path, error):
    file = tmp_path / "x.json"
    atomic_write_text(file, "old")

    def write():
        with atomic_writer(file) as handle:
            handle.write(b"half of the new")
            raise error

    with pytest.raises(type(error)):
        write()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_appears_only_whole(tmp_path):
    with atomic_writer(tmp_path / "x") as handle:
        handle.write(b"abc")
        handle.flush()
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").read_bytes() == b"abc"


def test_only_own_temporaries_are_swept(tmp_path):
    for name in (".x.1234.tmp", "notes.tmp", ".profile"):
        (tmp_path / name).write_text("")
    sweep_temporaries(tmp_path)
    sweep_temporaries(tmp_path / "nowhere")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".profile", "notes.tmp"]


def test_what_is_no_plain_data_never_reaches_the_file(run_dir):
    before = (run_dir.path / "config.json").read_text()
    for value in (float("nan"), object(), {1, 2}):
        with pytest.raises(RunError, match=r"cannot write .*config\.json: the content is no plain data"):
            run_dir.update_config(note=value)
    assert (run_dir.path / "config.json").read_text() == before
    RunDir.open(run_dir.path).update_config(total_steps=99)
    assert json.loads((run_dir.path / "config.json").read_text())["total_steps"] == 99


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("checkpoints", lambda run: run.save_checkpoint(1, {})),
        ("fronts", lambda run: run.write_snapshot(1, Front([[1.0, 2.0]]))),
    ],
)
def test_a_file_in_place_of_a_folder_is_named(run_dir, name, act):
    (run_dir.path / name).write_text("mine")
    with pytest.raises(RunError, match=f"cannot write .*{name}"):
        act(run_dir)
    assert (run_dir.path / name).read_text() == "mine"


def test_a_folder_in_place_of_a_file_is_named(run_dir):
    for name, act in {
        "metrics.csv": lambda: run_dir.metrics.write(1, hv=1.0),
        "front.json": lambda: run_dir.write_front(Front([[1.0, 2.0]])),
        "status.json": lambda: run_dir.set_status("running"),
    }.items():
        (run_dir.path / name / "inside").mkdir(parents=True)
        with pytest.raises(RunError, match=f"cannot (write|read) .*{name}"):
            act()
        assert (run_dir.path / name / "inside").is_dir()
    (run_dir.path / ".lock").mkdir()
    with pytest.raises(RunError, match=r"cannot write .*\.lock"), run_dir.lock():
        pass
    assert not list(run_dir.path.glob(".*.tmp"))


def test_no_run_folder_where_a_file_stands(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(RunError, match=r"cannot make a run folder in .*runs"):
        new_folder(tmp_path / "runs", "cmorl", "x", "s0")
    for opener in (RunDir.open, read_run):
        with pytest.raises(RunError, match="runs is no run folder: it is a file"):
            opener(tmp_path / "runs")


def test_folders_of_the_same_second_are_numbered(tmp_path, monkeypatch):
    monkeypatch.setattr("moopt.runs.folder.time.strftime", lambda form: "now")
    names = [new_folder(tmp_path, "C/../M", "..//x y", "s0").relative_to(tmp_path).as_posix() for _ in range(3)]
    assert names == ["C-..-M/x-y/now-s0", "C-..-M/x-y/now-s0-2", "C-..-M/x-y/now-s0-3"]


@pytest.mark.filterwarnings("default:.*going back.*:UserWarning")
def test_a_checkpoint_of_another_step_is_passed_over(run_dir):
    run_dir.save_checkpoint(1, {"w": 1})
    folder = run_dir.path / "checkpoints"
    shutil.copy(folder / "step_000000000001.npz", folder / "step_000000000005.npz")
    with pytest.warns(UserWarning, match="checkpoint 5 of .* is not the state of that step"):
        assert run_dir.load_checkpoint() == (1, {"w": 1})
    run_dir.save_checkpoint(3, {"w": 3})  # the run went on from step 1, so what claims step 5 is of no use
    assert run_dir.checkpoint_steps() == [1, 3]


def test_a_row_cut_by_a_full_disk_is_said_and_mended(tmp_path):
    """The file may grow to 300 bytes; the log that opens it next drops the half row and goes on."""
    code = f"""
        import resource, signal
        from moopt.runs import MetricLog, RunError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        log = MetricLog({str(tmp_path / "metrics.csv")!r})
        log.write(0, hv=0.5, note="x" * 40)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
        for step in range(1, 100):
            try:
                log.write(step, hv=0.5, note="x" * 40)
            except RunError as error:
                print(step, error)
                break
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    failed = int(done.stdout.split()[0])
    assert "metrics.csv: File too large" in done.stdout
    assert not (tmp_path / "metrics.csv").read_bytes().endswith(b"\n")
    assert read_metrics(tmp_path / "metrics.csv")["step"].tolist() == list(range(failed))
    MetricLog(tmp_path / "metrics.csv").write(failed, hv=1.0, note="y")
    columns = read_metrics(tmp_path / "metrics.csv")
    assert columns["step"].tolist() == list(range(failed + 1))
    assert columns["note"].tolist() == ["x" * 40] * failed + ["y"]


@pytest.mark.parametrize(
    "content", [b"step,hv\n\xff\xfe,1\n", b'step,hv\n1,"2\n', b"step,hv\n1,2\nnan,3\n", b"\n"], ids=range(4)
)
def test_what_is_no_metric_log_is_refused_and_left(tmp_path, content):
    file = tmp_path / "metrics.csv"
    file.write_bytes(content)
    for act in (lambda: read_metrics(file), lambda: MetricLog(file).write(1, hv=1.0)):
        with pytest.raises(RunError, match=r"metrics\.csv"):
            act()
    assert file.read_bytes() == content


def test_text_with_every_separator_comes_back_in_one_row(tmp_path):
    log = MetricLog(tmp_path / "metrics.csv")
    log.write(1, note='a,"b"\nc;d\re\r\nf', hv=np.float32(0.5), flag=True)
    columns = read_metrics(log.path)
    assert columns["note"].tolist() == ['a,"b" c;d e f']
    assert columns["hv"].tolist() == [0.5]
    assert columns["flag"].tolist() == [1.0]


def test_folders_without_handles_are_no_hindrance(tmp_path, monkeypatch):
    """Some file systems refuse to open or to flush a folder; the rename has been done by then."""
    real = os.open

    def refuse(path, flags, *rest, **more):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    atomic_write_text(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "new"
