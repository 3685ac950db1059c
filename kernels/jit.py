"""When to load compiled kernels: never for a one-off small call, always once they pay.

Loading costs time: importing numba, then reading the kernel from numba's disk cache, or compiling it. Every call that a
compiled kernel would have served faster books the time it lost; when a kernel's account exceeds its price, or one
call alone does, the kernel is loaded. This is the ski-rental rule: total time is at most about twice that of knowing
the future. ``warmup`` loads ahead of time. The disk cache is numba's: next to this file, or in the user's cache folder
when that is read-only, or ``NUMBA_CACHE_DIR``.
"""

import importlib
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

IMPORT_SECONDS = 0.45
LOAD_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Kernel:
    """Where a compiled function lives and what it takes."""

    module: str
    signature: str
    compile_seconds: float = 2.0


_FRONTS = "float64[:,:,::1]"
_ROWS = "float64[:,::1]"
_ROW = "float64[::1]"
_ORDERS = "int64[:,:,::1]"

KERNELS: dict[str, Kernel] = {
    "front2": Kernel("sweeps", f"float64({_ROWS}, {_ROW}, boolean)", 1.0),
    "front3": Kernel("sweeps", f"float64({_ROWS}, {_ROW}, boolean)", 2.0),
    "volume2": Kernel("sweeps", f"void({_FRONTS}, {_ROWS}, {_ORDERS}, {_ROW}, {_FRONTS}, boolean, int64, int64)", 1.5),
    "volume3": Kernel("sweeps", f"void({_FRONTS}, {_ROWS}, {_ORDERS}, {_ROW}, {_FRONTS}, boolean, int64, int64)", 4.0),
    "gain2": Kernel("sweeps", f"void({_ROWS}, {_ROWS}, {_ROW}, {_ROW}, int64, int64)", 1.0),
    "volume_slices": Kernel("slices", f"void({_FRONTS}, {_ROWS}, {_ROW}, {_FRONTS}, boolean, int64, int64)", 9.0),
    "gain_slices": Kernel("slices", f"void({_ROWS}, {_ROWS}, {_ROW}, boolean, {_ROW}, int64, int64)", 9.0),
    "decompose_boxes": Kernel("boxes", f"Tuple(({_ROWS}, {_ROWS}))({_ROWS}, {_ROW}, boolean)", 4.0),
    "filter2": Kernel("dominance", f"void({_ROWS}, int64[::1], boolean, boolean[::1])", 1.0),
    "dominance_small": Kernel("dominance", f"boolean({_ROWS}, boolean, boolean, boolean, int64[::1])", 1.5),
    "rank_batch": Kernel(
        "dominance",
        f"void({_FRONTS}, int64[:,::1], boolean[:,::1], int64, boolean, int64[:,::1], int64, int64)",
        1.5,
    ),
}


@dataclass(slots=True)
class KernelStore:
    """Compiled kernels of this process and the accounts that decide when to load them."""

    loaded: dict[str, Callable[..., Any]] = field(default_factory=dict)
    lost_seconds: dict[str, float] = field(default_factory=dict)
    numba_missing: bool | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def numba_available(self) -> bool:
        """Tell whether numba can be imported; says once when it cannot."""
        if self.numba_missing is None:
            self.numba_missing = importlib.util.find_spec("numba") is None
        return not self.numba_missing

    def say_missing(self) -> None:
        """Warn, once a process, that work is done by slower backends."""
        if self.lost_seconds.get("said"):
            return
        self.lost_seconds["said"] = 1.0
        warnings.warn(
            "numba is not installed: moopt.kernels falls back to moocore and torch, which are slower on batches",
            RuntimeWarning,
            stacklevel=4,
        )

    def ready(self, name: str, saving: float) -> bool:
        """Tell whether to use kernel ``name`` for a call on which it saves ``saving`` seconds; may load it."""
        if name in self.loaded:
            return True
        if not self.numba_available():
            if saving > 0.1:
                self.say_missing()
            return False
        lost = self.lost_seconds.get(name, 0.0)
        if lost + saving < self.price(name):
            self.lost_seconds[name] = lost + saving
            return False
        self.load(name)
        return True

    def price(self, name: str) -> float:
        """Return the seconds it takes from now until ``name`` can run."""
        seconds = 0.0 if "numba" in sys.modules else IMPORT_SECONDS
        return seconds + (LOAD_SECONDS if on_disk(name) else KERNELS[name].compile_seconds)

    def load(self, name: str) -> Callable[..., Any]:
        """Return kernel ``name``, compiled or read from disk.

        Raises:
            ImportError: If numba is missing.
        """
        with self.lock:
            if name not in self.loaded:
                module = importlib.import_module(f"moopt.kernels.compiled.{KERNELS[name].module}")
                function = getattr(module, name)
                function.compile(KERNELS[name].signature)
                function.disable_compile()
                self.loaded[name] = function
            return self.loaded[name]

    def get(self, name: str) -> Callable[..., Any]:
        """Return kernel ``name``, loading it if need be."""
        found = self.loaded.get(name)
        return found if found is not None else self.load(name)


def on_disk(name: str) -> bool:
    """Tell whether numba's disk cache holds kernel ``name`` compiled from the present source."""
    kernel = KERNELS[name]
    source = Path(__file__).parent / "compiled" / f"{kernel.module}.py"
    pattern = f"{kernel.module}.{name}-*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    try:
        compiled_from = source.stat().st_mtime
        return any(
            index.stat().st_mtime >= compiled_from
            for folder in _cache_folders(source)
            for index in folder.glob(pattern)
        )
    except OSError:
        return False


def _cache_folders(source: Path) -> Iterable[Path]:
    """Yield the folders where numba may have put the cache of ``source``."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        yield from Path(given).glob("*")
        return
    yield source.parent / "__pycache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
    yield from user.glob("*")


STORE = KernelStore()


def warmup(names: Iterable[str] | None = None) -> dict[str, float]:
    """Load compiled kernels now, so that no later call waits for it.

    Args:
        names: Kernels to load (see ``moopt.kernels.jit.KERNELS``); all of them by default.

    Returns:
        Seconds spent on each kernel: fractions of a second from the disk cache, seconds when compiled.

    Raises:
        ImportError: If numba is not installed.
        ValueError: For an unknown kernel name.
    """
    import time

    from moopt.kernels.inputs import check_choice

    spent: dict[str, float] = {}
    for name in KERNELS if names is None else names:
        check_choice("kernel", name, tuple(KERNELS))
        start = time.perf_counter()
        STORE.load(name)
        spent[name] = time.perf_counter() - start
    return spent
