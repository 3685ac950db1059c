"""Calibrated costs: which engine is faster at which size, how long exact hypervolume will take.

Figures come from ``experiments/kernels/calibrate.py``: seconds on one core for spherical fronts, where all points are
non-dominated; other shapes differ by small factors that hit both engines alike.
"""

import math
from functools import lru_cache

BUDGET_SECONDS = 120.0
"""Exact hypervolume predicted to take longer raises, unless ``force=True``."""

QUICK_LOW, QUICK_HIGH = 1e-60, 1e60
"""Sums of squares between which a front takes the short way to a kernel."""

CALL_SECONDS = 5e-6
"""What one moocore call costs before any work."""

ALONE_SECONDS = 5e-5
"""What a call of the kernel for four and more objectives costs before any work: its buffers; a batch shares them."""

# Sizes at which seconds were measured, one row a number of objectives; log-log interpolation, straight beyond the ends.
_MOOCORE: dict[int, tuple[tuple[int, float], ...]] = {
    2: ((10, 5e-6), (100, 9e-6), (1000, 5e-5), (10000, 1e-3)),
    3: ((10, 5e-6), (100, 1e-5), (1000, 1e-4), (10000, 3.7e-3)),
    4: ((10, 6e-6), (100, 1.6e-5), (1000, 1.7e-3), (10000, 0.19)),
    5: ((10, 8e-6), (100, 1.6e-4), (1000, 2.0e-2)),
    6: ((10, 1e-5), (100, 3.5e-3), (1000, 2.0)),
    7: ((10, 1.2e-5), (100, 8e-2), (200, 1.2)),
    8: ((10, 1.9e-5), (20, 4e-4), (50, 4e-2), (100, 2.0)),
    9: ((10, 1.9e-5), (20, 2e-3), (50, 0.5), (100, 50.0)),
    10: ((10, 1.9e-5), (20, 1e-2), (50, 5.0), (100, 1e3)),
}
_NUMBA: dict[int, tuple[tuple[int, float], ...]] = {
    2: ((10, 4e-7), (100, 2.4e-6), (1000, 2e-5), (10000, 7e-4)),
    3: ((10, 8e-7), (100, 6e-6), (1000, 7e-5), (10000, 2.8e-3)),
    4: ((10, 1e-6), (100, 2e-5), (1000, 1e-3), (10000, 0.1)),
    5: ((10, 2e-6), (100, 2e-4), (1000, 1e-2)),
    6: ((10, 6e-6), (100, 3e-3), (1000, 0.3)),
    7: ((10, 8e-6), (100, 4e-2), (200, 0.3)),
    8: ((10, 1.5e-5), (20, 3e-4), (50, 2e-2), (100, 0.5)),
    9: ((10, 1.5e-5), (20, 8e-4), (50, 0.1), (100, 5.0)),
    10: ((10, 2e-5), (20, 1.6e-3), (50, 0.6), (100, 60.0)),
}


def _interpolate(points: tuple[tuple[int, float], ...], n: int) -> float:
    """Interpolate seconds over n on log-log axes."""
    if n <= points[0][0]:
        return points[0][1]
    later = next((k for k in range(1, len(points)) if n <= points[k][0]), len(points) - 1)
    (n0, t0), (n1, t1) = points[later - 1], points[later]
    slope = math.log(t1 / t0) / math.log(n1 / n0)
    return math.exp(min(math.log(t1) + slope * math.log(n / n1), 500.0))


def _seconds(table: dict[int, tuple[tuple[int, float], ...]], d: int, n: int) -> float:
    top = max(table)
    if d <= top:
        return _interpolate(table[max(d, 2)], n)
    seconds = _interpolate(table[top], n)
    growth = max(1.0, seconds / _interpolate(table[top - 1], n))
    return float(math.exp(min(math.log(seconds) + (d - top) * math.log(growth), 500.0)))


@lru_cache(4096)
def moocore_seconds(d: int, n: int) -> float:
    """Return the predicted seconds of one moocore hypervolume."""
    return _seconds(_MOOCORE, d, n)


@lru_cache(4096)
def numba_seconds(d: int, n: int) -> float:
    """Return the predicted seconds of one compiled hypervolume."""
    return _seconds(_NUMBA, d, n)


@lru_cache(4096)
def numba_wins(d: int, n: int, alone: bool = False) -> bool:
    """Tell whether the compiled kernel beats moocore on a front of n points, in a batch or ``alone`` in a call."""
    overhead = ALONE_SECONDS if alone and d > 3 else 0.0
    return d > 31 or numba_seconds(d, n) + overhead <= moocore_seconds(d, n)


def contributions_saving(d: int, n: int) -> float:
    """Return the seconds that compiled contributions save over n hypervolumes by moocore."""
    return n * (moocore_seconds(d, n) + CALL_SECONDS - numba_seconds(d, n) / 10.0)
