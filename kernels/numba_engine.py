"""Compiled kernels behind the same functions as ``reference_engine``; batches may be split over threads.

All functions minimise. Kernels release the GIL, so plain Python threads run them side by side, and nothing depends on
numba's threading layer.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from moopt.kernels.inputs import BoolArray, FloatArray, IntArray
from moopt.kernels.jit import STORE

SHORT = 64
"""Fronts up to this size are sorted inside the kernels (``compiled.sweeps.SHORT``)."""

NO_ORDERS = np.zeros((3, 0, 0), dtype=np.int64)
NO_GRADS = np.zeros((0, 0, 0))


def kernel_name(d: int) -> str:
    """Return the kernel that computes hypervolume in d objectives."""
    return {2: "volume2", 3: "volume3"}.get(d, "volume_slices")


def in_chunks(run: Callable[[int, int], None], count: int, num_threads: int) -> None:
    """Call ``run(start, stop)`` over ``range(count)``, split over threads if asked to."""
    if num_threads <= 1 or count < 2:
        run(0, count)
        return
    edges = np.linspace(0, count, min(num_threads * 4, count) + 1).astype(int)
    with ThreadPoolExecutor(num_threads) as pool:
        for future in [pool.submit(run, int(a), int(b)) for a, b in pairwise(edges)]:
            future.result()


def hypervolume(values: FloatArray, refs: FloatArray, num_threads: int = 1) -> FloatArray:
    """Return hypervolumes (B,)."""
    return _run(values, refs, NO_GRADS, False, num_threads)


def hypervolume_and_grad(values: FloatArray, refs: FloatArray, num_threads: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return hypervolumes (B,) and gradients (B, n, d)."""
    d = values.shape[2]
    grads = np.zeros(values.shape)
    if d <= 3:
        return _run(values, refs, grads, True, num_threads), grads
    # The sweeps are stable: in lexicographic order a point comes before those it dominates, also among ties.
    order = np.lexsort(values.transpose(2, 0, 1)[::-1], axis=-1)[..., None]
    sorted_values = np.take_along_axis(values, order, axis=1)
    out = _run(sorted_values, refs, grads, True, num_threads)
    unsorted = np.empty_like(grads)
    np.put_along_axis(unsorted, order, grads, axis=1)
    return out, unsorted


def _run(values: FloatArray, refs: FloatArray, grads: FloatArray, want: bool, num_threads: int) -> FloatArray:
    B, n, d = values.shape
    if d == 1:
        return _line(values, refs, grads, want)
    out = np.empty(B)
    function = STORE.get(kernel_name(d))
    if d > 3:
        in_chunks(lambda a, b: function(values, refs, out, grads, want, a, b), B, num_threads)
        return out
    orders = _orders(values, want) if n > SHORT else NO_ORDERS
    in_chunks(lambda a, b: function(values, refs, orders, out, grads, want, a, b), B, num_threads)
    return out


def _line(values: FloatArray, refs: FloatArray, grads: FloatArray, want: bool) -> FloatArray:
    best = values[:, :, 0].argmin(axis=1)
    length = np.maximum(0.0, refs[:, 0] - values[np.arange(len(values)), best, 0])
    if want:
        grads[np.arange(len(values)), best, 0] = np.where(length > 0.0, -1.0, 0.0)
    return np.asarray(length)


def _orders(values: FloatArray, ties_matter: bool) -> IntArray:
    """Return the orders (k, B, n) that long fronts are swept in; with gradients, dominators come first among ties."""
    d = values.shape[2]
    columns = [np.ascontiguousarray(values[:, :, k]) for k in range(d)]
    if d == 2:
        return (np.lexsort((columns[1], columns[0])) if ties_matter else np.argsort(columns[0]))[None]
    if not ties_matter:
        by_x, by_z = np.argsort(columns[0]), np.argsort(columns[2])
        return np.stack([by_x, by_x, by_z])
    return np.stack([np.lexsort((columns[(k + 2) % 3], columns[(k + 1) % 3], columns[k])) for k in range(3)])


def improvement(candidates: FloatArray, front: FloatArray, ref: FloatArray, num_threads: int = 1) -> FloatArray:
    """Return gains (N,) of candidates over an antichain (n, d) strictly inside ``ref``."""
    d = front.shape[1]
    out = np.empty(len(candidates))
    if d == 1:
        best = min(float(ref[0]), float(front.min(initial=np.inf)))
        return np.maximum(0.0, best - candidates[:, 0])
    if d == 2:
        by_x = np.ascontiguousarray(front[np.argsort(front[:, 0])])
        gain2 = STORE.get("gain2")
        in_chunks(lambda a, b: gain2(candidates, by_x, ref, out, a, b), len(out), num_threads)
        return out
    by_last = np.ascontiguousarray(front[np.argsort(front[:, -1])])
    gains = STORE.get("gain_slices")
    in_chunks(lambda a, b: gains(candidates, by_last, ref, False, out, a, b), len(out), num_threads)
    return out


def contributions(front: FloatArray, ref: FloatArray) -> FloatArray:
    """Return exclusive contributions (n,) of an antichain strictly inside ``ref``, d >= 3."""
    out = np.empty(len(front))
    STORE.get("gain_slices")(front, front, ref, True, out, 0, len(out))
    return out


def ranks(
    values: FloatArray, present: BoolArray | None, levels: int, keep_duplicates: bool, num_threads: int = 1
) -> IntArray:
    """Return non-domination ranks (B, n) below ``levels``, -1 for the rest and for absent rows."""
    B, n, _ = values.shape
    order = np.ascontiguousarray(np.lexsort(values.transpose(2, 0, 1)[::-1], axis=-1))
    there = np.ones((B, n), dtype=np.bool_) if present is None else present
    result = np.empty((B, n), dtype=np.int64)
    function = STORE.get("rank_batch")
    in_chunks(lambda a, b: function(values, order, there, levels, keep_duplicates, result, a, b), B, num_threads)
    return result
