"""Progress reports during a run, and what listens to them."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    step: int
    """Environment steps or evaluations done, all sessions of a resumed run together."""
    total_steps: int
    """Steps the run is going to do."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Latest metrics, such as hv, n_front and stage."""


Callback = Callable[[Progress], bool | None]
"""Called now and then during a run; returning False stops the run at the next safe point."""


def call_all(*callbacks: Callback | None) -> Callback:
    """Return one callback that calls each of ``callbacks`` and stops if any of them says so.

    Args:
        *callbacks: Callbacks; None is left out.
    """
    listeners = [c for c in callbacks if c is not None]

    def call(progress: Progress) -> bool:
        answers = [listener(progress) for listener in listeners]
        return all(answer is not False for answer in answers)

    return call


class ProgressBar:
    """A tqdm bar: share done, time left, steps per second, stage, hypervolume so far. Also a context manager.

    Args:
        label: Text before the bar.
        initial: Steps done before this session; they do not count for the rate.
        quiet: Show nothing.
        file: Where to draw; default stderr. Nothing is drawn if it is no terminal.
    """

    def __init__(self, label: str = "", *, initial: int = 0, quiet: bool = False, file: TextIO | None = None) -> None:
        self._label, self._initial = label, initial
        self._file = file if file is not None else sys.stderr
        self._off = quiet or not self._file.isatty()
        self._bar: Any = None

    def __call__(self, progress: Progress) -> None:
        """Move the bar to ``progress``."""
        if self._off:
            return
        if self._bar is None:
            from tqdm.auto import tqdm

            self._bar = tqdm(
                desc=self._label or None,
                total=progress.total_steps,
                initial=self._initial,
                unit=" steps",
                unit_scale=True,
                dynamic_ncols=True,
                file=self._file,
            )
        self._bar.set_postfix_str(describe_metrics(progress.metrics), refresh=False)
        self._bar.update(progress.step - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it stands and end its line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> "ProgressBar":
        """Return the bar itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the bar."""
        self.close()


class ProgressLines:
    """A line of text at every tenth of a run, for log files and for runs side by side.

    Args:
        label: Text before each line.
        initial: Steps done before this session.
        file: Where to print; default stderr.
        parts: Lines over the whole run.
    """

    def __init__(self, label: str = "", *, initial: int = 0, file: TextIO | None = None, parts: int = 10) -> None:
        self._label, self._initial, self._parts = label, initial, parts
        self._file = file if file is not None else sys.stderr
        self._first: tuple[float, int] | None = None
        self._last = -1

    def __call__(self, progress: Progress) -> None:
        """Print a line if another part of the run is done."""
        total = max(progress.total_steps, 1)
        part = progress.step * self._parts // total
        now = time.monotonic()
        if self._first is None:  # the rate counts from here: loading libraries and making environments is no step
            self._first = (now, progress.step)
            self._last = self._initial * self._parts // total
        if part <= self._last:
            return
        self._last = part
        words = [f"{progress.step:,}/{progress.total_steps:,} steps", *self._pace(progress, now)]
        words.append(describe_metrics(progress.metrics))
        head = f"{self._label}: " if self._label else ""
        line = head + f"{100 * progress.step // total:3d} %, " + ", ".join(w for w in words if w)
        self._file.write(line + "\n")
        self._file.flush()

    def _pace(self, progress: Progress, now: float) -> list[str]:
        """Return steps per second and time left, once two reports are there to tell."""
        start, first = self._first or (now, progress.step)
        if progress.step <= first or now <= start:
            return []
        rate = (progress.step - first) / (now - start)
        left = max(progress.total_steps - progress.step, 0) / rate
        return [f"{rate:,.0f} steps/s", f"{_duration(left)} left"]


def _duration(seconds: float) -> str:
    """Return a length of time as people say it: 45 s, 12 min, 3 h 05 min."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def describe_metrics(metrics: Mapping[str, Any]) -> str:
    """Return stage, hypervolume and size of the front in a few words; what is not known yet is left out.

    An empty front has no hypervolume worth naming: the first evaluation is still to come.

    >>> describe_metrics({"stage": 1, "hv": 1234.5678, "n_front": 6, "loss": 3.0})
    'stage 1, HV 1235, front 6'
    """
    words = []
    if metrics.get("stage") is not None:
        words.append(f"stage {metrics['stage']}")
    if metrics.get("n_front") == 0:
        return ", ".join(words)
    if metrics.get("hv") is not None:
        words.append(f"HV {metrics['hv']:.4g}")
    if metrics.get("n_front") is not None:
        words.append(f"front {int(metrics['n_front'])}")
    return ", ".join(words)
