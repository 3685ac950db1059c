"""Executors: order, errors, equal results of both back ends, no orphans."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from moopt.parallel import TaskError, get_executor
from moopt.runs import MooptError, child_sequence


def draw(task):
    root, index = task
    import torch

    from moopt.runs import numpy_generator, torch_generator

    sequence = child_sequence(np.random.SeedSequence(root), index)
    x = numpy_generator(sequence).normal(size=3)
    y = torch.randn(200, 200, generator=torch_generator(sequence))
    return x.tolist(), float((y @ y.T).sum()), torch.get_num_threads()


def draw_plain(task):
    root, index = task
    from moopt.runs import numpy_generator

    return numpy_generator(child_sequence(np.random.SeedSequence(root), index)).normal(size=3).tolist()


def uneven(task):
    time.sleep(0.05 * (3 - task))
    return task * 10


def fail_on_two(task):
    if task == 2:
        raise LookupError("no such thing")
    return task


def die(task):
    os.kill(os.getpid(), signal.SIGKILL)


def pid(task):
    return os.getpid()


@pytest.mark.parametrize("engine", ["serial", "loky"])
def test_order_and_errors(engine):
    with get_executor(engine, 2) as executor:
        assert list(executor.map(uneven, range(4))) == [0, 10, 20, 30]
        results = executor.map(fail_on_two, [0, 1, 2, 3])
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(TaskError, match=r"task 2 \(2\) failed: LookupError: no such thing") as caught:
            next(results)
        assert (caught.value.index, caught.value.task) == (2, 2)
        assert list(executor.map(uneven, [3])) == [30]  # still usable


def test_serial_equals_loky():
    tasks = [(7, i) for i in range(4)]
    with get_executor("serial") as serial, get_executor("loky", 2) as loky:
        here, there = list(serial.map(draw, tasks)), list(loky.map(draw, tasks))
    assert here == there
    assert all(threads == 1 for _, _, threads in there)
    assert len({x[0] for x, _, _ in here}) == 4


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_number_of_workers_changes_nothing(jobs):
    tasks = [(7, i) for i in range(5)]
    with get_executor("loky", jobs) as executor:
        assert list(executor.map(draw_plain, tasks)) == list(map(draw_plain, tasks))


def test_serial_holds_torch_to_one_thread_and_gives_them_back():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with get_executor("serial") as executor:
            assert next(executor.map(draw, [(0, 0)]))[2] == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_dead_worker_is_named_and_pool_recovers():
    with get_executor("loky", 1) as executor:
        with pytest.raises(TaskError, match=r"task 0 \('boom'\) failed: its worker process died"):
            list(executor.map(die, ["boom"]))
        assert list(executor.map(uneven, [1])) == [10]


def test_close_ends_the_workers():
    with get_executor("loky", 2) as executor:
        pids = set(executor.map(pid, range(6)))
    assert os.getpid() not in pids
    deadline = time.monotonic() + 5
    while any(alive(p) for p in pids):
        assert time.monotonic() < deadline, "workers outlive close()"
        time.sleep(0.05)


def test_workers_die_with_their_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, pathlib, sys, time\n"
        "from moopt.parallel import get_executor\n"
        "def work(path):\n"
        "    pathlib.Path(path).write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    list(get_executor('loky', 1).map(work, [sys.argv[1]]))\n"
    )
    marker = tmp_path / "pid"
    parent = subprocess.Popen(
        [sys.executable, script, marker],
        stderr=subprocess.DEVNULL,
        cwd=os.getcwd(),
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    try:
        deadline = time.monotonic() + 30
        while not (marker.exists() and marker.read_text()):
            assert time.monotonic() < deadline, "the worker never started"
            time.sleep(0.05)
    finally:
        parent.kill()
        parent.wait()
    worker = int(marker.read_text())
    while alive(worker):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.1)


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as handle:
            return handle.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("name", "jobs", "match"), [("lokky", 1, "'loky'"), ("serial", 0, "jobs"), ("loky", True, "jobs")]
)
def test_wrong_arguments(name, jobs, match):
    with pytest.raises(MooptError, match=match):
        get_executor(name, jobs)
