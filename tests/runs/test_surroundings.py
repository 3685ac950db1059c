"""What a run depends on around it: versions, devices, optional packages, disks, other readers."""

import errno
import importlib.util
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from moopt.pareto import Front
from moopt.runs import (
    MetricLog,
    MissingExtraError,
    MooptError,
    Result,
    RunDir,
    RunError,
    atomic_write_bytes,
    did_you_mean,
    find_runs,
    read_metrics,
    read_run,
    resolve_device,
    versions,
)
from moopt.runs.lock import is_locked
from moopt.runs.provenance import command_line, package_version, source_revision, usable_cpus
from moopt.runs.tensorboard import TensorBoardSink

# ------------------------------------------------------------------------------------------------ provenance


def test_the_revision_is_read_in_every_way_git_writes_it(tmp_path):
    git = tmp_path / ".git"
    assert source_revision(tmp_path) is None
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert source_revision(tmp_path) is None  # no commit yet
    (git / "packed-refs").write_text("# pack-refs with: peeled\nbbb refs/heads/other\naaa refs/heads/main\n")
    assert source_revision(tmp_path) == "aaa"
    (git / "refs" / "heads" / "main").write_text("ccc\n")
    assert source_revision(tmp_path) == "ccc"
    (git / "HEAD").write_text("ddd\n")
    assert source_revision(tmp_path) == "ddd"


def test_versions_are_read_without_loading_the_packages():
    code = (
        "import sys; from moopt.runs import versions; v = versions('cpu'); assert v['torch'] and v['device'] == 'cpu';"
        "assert v['threads'] == 3; assert not {'torch', 'gymnasium', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "3"})
    assert package_version("no-such-package-anywhere") is None
    assert 1 <= usable_cpus() <= (os.cpu_count() or 1)
    assert versions()["cpus"] == usable_cpus()


def test_a_noted_command_reads_back():
    assert command_line(["moopt", "train", "--out", "my runs/a'b"]) == "moopt train --out 'my runs/a'\"'\"'b'"


# ------------------------------------------------------------------------------------------------ devices, names


def test_devices_are_found_or_refused_by_name():
    assert resolve_device("cpu").type == "cpu"
    assert resolve_device("auto").type in ("cpu", "cuda")
    with pytest.raises(MooptError, match=r"unknown device 'tpu'; choose from auto, cpu, cuda"):
        resolve_device("tpu")
    with pytest.raises(MooptError, match="device 'cuda:99' cannot be used here"):
        resolve_device("cuda:99")


def test_hints_name_the_nearest_or_the_few_choices():
    assert did_you_mean("Deep_Sea", ["deep-sea", "x"]) == "; did you mean 'deep-sea'?"
    assert did_you_mean("q", ["b", "a"]) == "; choose from a, b"
    assert did_you_mean("q", map(str, range(100, 150))) == ""


# ------------------------------------------------------------------------------------------------ disks


def full(path):
    """Make a file that can be opened and takes no byte."""
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    path.symlink_to("/dev/full")


def test_a_full_disk_under_the_metric_log_is_said(tmp_path):
    full(tmp_path / "metrics.csv")
    log = MetricLog(tmp_path / "metrics.csv")
    log._columns = ["step", "hv"]  # the device cannot be read, so the header is taken as there
    with pytest.raises(RunError, match=r"cannot write .*metrics\.csv: No space left on device"):
        log.write(1, hv=2.0)


def test_a_full_disk_under_a_front_keeps_the_old_one(run_dir, monkeypatch):
    run_dir.write_front(Front([[1.0, 2.0]]))

    def no_space(fd):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    for write in (
        lambda: run_dir.write_front(Front([[3.0, 4.0]])),
        lambda: run_dir.write_snapshot(1, Front([[3.0, 4.0]])),
    ):
        with pytest.raises(RunError, match=r"cannot write .*/(front\.json|step_0+1\.csv): No space left on device"):
            write()
    assert Front.from_json(run_dir.path / "front.json").points.tolist() == [[1.0, 2.0]]
    assert Front.from_csv(run_dir.path / "front.csv").points.tolist() == [[1.0, 2.0]]
    assert not list(run_dir.path.rglob("*.tmp"))


def on_a_disk_of_its_own(tmp_path, options, code):
    """Run Python code over a memory disk, where one can be mounted in a name space of our own; return its output."""
    disk = tmp_path / "disk"
    disk.mkdir()
    head = "import sys; from pathlib import Path; from moopt.runs import RunDir, RunError, atomic_write_bytes\n"
    head += "disk = Path(sys.argv[1])\n"
    script = f'mount -t tmpfs -o {options} none "{disk}" && exec "$0" -c "$1" "{disk}"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, sys.executable, head + code]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        pytest.skip("unshare is not there")
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip("no memory disk may be mounted here")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_real_full_disk_keeps_the_old_file(tmp_path):
    code = (
        "file = disk / 'x'; atomic_write_bytes(file, b'old')\n"
        "try: atomic_write_bytes(file, b'new' * 100_000)\n"
        "except RunError as error: print(error)\n"
        "assert file.read_bytes() == b'old'; assert [p.name for p in disk.iterdir()] == ['x']"
    )
    assert "x: No space left on device" in on_a_disk_of_its_own(tmp_path, "size=64k", code)


@pytest.mark.parametrize("path", ["disk", "disk / 'run'"])
def test_a_disk_that_cannot_be_written_is_said(tmp_path, path):
    code = f"try: RunDir.create({path}, algo='a', env='e', seed=0, config={{}})\nexcept RunError as error: print(error)"
    said = on_a_disk_of_its_own(tmp_path, "ro", code)
    assert said.startswith("cannot ")
    assert "disk" in said


def test_folders_that_are_gone_or_no_folders_are_said(tmp_path):
    with pytest.raises(RunError, match=r"cannot write .*nowhere/x: No such file"):
        atomic_write_bytes(tmp_path / "nowhere" / "x", b"")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write .*file/x: Not a directory"):
        atomic_write_bytes(tmp_path / "file" / "x", b"")
    with pytest.raises(RunError, match=r"cannot write .*metrics\.csv"):
        MetricLog(tmp_path / "nowhere" / "metrics.csv").write(1, hv=1.0)


# ------------------------------------------------------------------------------------------------ readers


def test_a_reader_sees_whether_a_run_lives(run_dir):
    run_dir.set_status("running")
    assert not is_locked(run_dir.path)
    assert read_run(run_dir.path).status == "interrupted"  # it says running, but nobody holds the lock
    with run_dir.lock():
        assert is_locked(run_dir.path)
        assert read_run(run_dir.path).status == "running"
    run_dir.set_status("finished")
    assert read_run(run_dir.path).status == "finished"
    assert not is_locked(run_dir.path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content"), [("front.json", "{"), ("front.csv", "a,b\n1\n"), ("metrics.csv", "x\n1\n")]
)
def test_a_damaged_file_of_a_run_is_named(run_dir, name, content):
    (run_dir.path / name).write_text(content)
    with pytest.raises(MooptError, match=name.replace(".", r"\.")):
        read_run(run_dir.path)


def test_runs_are_looked_for_four_levels_down_and_not_inside_runs(tmp_path):
    deep = tmp_path / "a" / "b" / "c" / "run"
    RunDir.create(deep, algo="x", env="y", seed=0, config={})
    RunDir.create(deep / "inner", algo="x", env="y", seed=0, config={})
    RunDir.create(tmp_path / ".hidden" / "run", algo="x", env="y", seed=0, config={})
    assert find_runs(tmp_path) == [deep]
    assert find_runs(deep) == [deep]
    with pytest.raises(RunError, match="does not exist"):
        find_runs(tmp_path / "none")


def test_a_result_says_its_sizes(tmp_path):
    result = Result(front=Front([[1.0, 2.0]]), train_steps=10, eval_steps=3, seed=4, wall_s=1.25, path=tmp_path)
    assert repr(result).startswith("Result(1 points, train_steps=10, eval_steps=3, seed=4, wall_s=1.2, path='")


# ------------------------------------------------------------------------------------------------ TensorBoard


def test_tensorboard_gets_every_number_and_a_resumed_curve_goes_on(tmp_path):
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = MetricLog(tmp_path / "metrics.csv", sinks=(TensorBoardSink(tmp_path / "tb"),))
        for step in (1, 2, 3):
            log.write(step, hv=float(step), note="text", flag=None)
        log.truncate(2)
        log.write(3, hv=30.0)
        log.close()
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(tmp_path / "tb")).Reload()
        seen = [(e.step, e.value) for e in events.Scalars("hv")]
    assert events.Tags()["scalars"] == ["hv"]
    assert seen == [(1, 1.0), (2, 2.0), (3, 30.0)]
    np.testing.assert_array_equal(read_metrics(tmp_path / "metrics.csv")["hv"], [1.0, 2.0, 30.0])


def test_a_missing_extra_is_said_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'TensorBoard logging needs .*pip install "moopt\[tb\]"'):
        TensorBoardSink(tmp_path / "tb")
