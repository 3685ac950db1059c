"""Progress: who is asked, who may stop a run, what people see."""

import io

import pytest

from moopt.runs import Progress, ProgressBar, ProgressLines, call_all
from moopt.runs import callbacks as module
from moopt.runs.callbacks import describe_metrics


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until told."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_everyone_is_asked_and_one_no_is_enough():
    asked = []

    def listener(name, answer):
        return lambda progress: asked.append((name, progress.step)) or answer

    progress = Progress(step=3, total_steps=9)
    assert call_all(listener("a", None), None, listener("b", True))(progress) is True
    assert call_all(listener("c", False), listener("d", None))(progress) is False
    assert asked == [("a", 3), ("b", 3), ("c", 3), ("d", 3)]
    assert call_all()(progress) is True


def test_lines_come_at_every_tenth_with_pace_and_time_left(clock):
    file = io.StringIO()
    lines = ProgressLines("seed-1", file=file)
    clock[0] += 50.0  # loading libraries
    for step in range(100, 1001, 50):
        lines(Progress(step, 1000, {"stage": 1, "hv": 12.3456, "n_front": 0 if step < 500 else 4}))
        clock[0] += 1.0
    said = file.getvalue().splitlines()
    assert len(said) == 10
    assert said[0] == "seed-1:  10 %, 100/1,000 steps, stage 1"
    assert said[1] == "seed-1:  20 %, 200/1,000 steps, 50 steps/s, 16 s left, stage 1"
    assert said[-1] == "seed-1: 100 %, 1,000/1,000 steps, 50 steps/s, 0 s left, stage 1, HV 12.35, front 4"


def test_lines_of_a_resumed_run_go_on_where_it_stood(clock):
    file = io.StringIO()
    lines = ProgressLines(initial=500, file=file)
    for step in (550, 650, 700):
        lines(Progress(step, 1000))
        clock[0] += 10.0
    assert (
        file.getvalue()
        == " 65 %, 650/1,000 steps, 10 steps/s, 35 s left\n 70 %, 700/1,000 steps, 8 steps/s, 40 s left\n"
    )


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (99, "99 s"), (100, "2 min"), (11100, "3 h 05 min")])
def test_lengths_of_time(clock, seconds, text):
    file = io.StringIO()
    lines = ProgressLines(file=file, parts=1000)
    lines(Progress(0, 1000))
    clock[0] += seconds / 9
    lines(Progress(100, 1000))
    assert f", {text} left" in file.getvalue()


def test_the_bar_shows_where_the_run_stands():
    file = Terminal()
    with ProgressBar("dst", initial=400, file=file) as bar:
        bar(Progress(600, 1000, {"stage": 2, "hv": 3.0, "n_front": 5}))
        bar(Progress(1000, 1000, {"stage": 2, "hv": 4.0, "n_front": 6}))
    said = file.getvalue()
    assert "dst" in said
    assert "1.00k/1.00k" in said
    assert "stage 2, HV 4, front 6" in said
    assert said.endswith("\n")


def test_the_bar_is_silent_without_a_terminal_or_when_told():
    plain, quiet = io.StringIO(), Terminal()
    for bar in (ProgressBar(file=plain), ProgressBar(file=quiet, quiet=True)):
        with bar:
            bar(Progress(1, 2))
    assert plain.getvalue() == quiet.getvalue() == ""


def test_metrics_that_are_not_known_yet_are_left_out():
    assert describe_metrics({}) == ""
    assert describe_metrics({"hv": 0.0, "n_front": 0}) == ""
    assert describe_metrics({"hv": 0.0, "n_front": 1}) == "HV 0, front 1"
