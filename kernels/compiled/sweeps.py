"""Hypervolume in two and three objectives, its gradient, and gains in two; single fronts and batches.

Two objectives: sort by x, add rectangles below the lowest y so far; O(n log n). Three: sweep z upwards over the
staircase of what is already covered in x and y; the area a point adds on entering, times its height, is its share of
the volume (Beume, Fonseca, Lopez-Ibanez, Paquete and Vahrenhold, IEEE TEC 13(5), 2009). Short fronts keep the staircase
in an array, long ones in a set of x ranks held in 64-ary bit words; O(n log n) but for the array's short shifts.

Ties are broken so that a point comes before those it dominates, and the lower index before its copy: dominated points
and later duplicates then have gradient 0. A result of NaN from ``front2`` or ``front3`` means: not for this kernel.
"""

import numpy as np
from numba import njit

from moopt.kernels.compiled.simd import highest_bit, lowest_bit

INF = np.inf
HUGE = 1e30
SHORT = 64

helper = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
kernel = njit(nogil=True, cache=True, error_model="numpy")


@helper
def area2(x, y, m, rx, ry):
    """Return the area below the reference point of m points in ascending x."""
    low = ry
    total = 0.0
    for t in range(m):
        if y[t] < low and x[t] < rx:
            total += (rx - x[t]) * (low - y[t])
            low = y[t]
    return total


@helper
def volume3_short(z, ids, X, Y, m, rx, ry, rz, W, heights):
    """Return the volume of m points in ascending z; W[0], W[1] hold the staircase; heights by id get areas."""
    steps = 0
    volume = 0.0
    for t in range(m):
        i = ids[t]
        x, y = X[i], Y[i]
        low = 0
        while low < steps and W[0, low] < x:
            low += 1
        top = ry if low == 0 else W[1, low - 1]
        if top <= y or (low < steps and W[0, low] == x and W[1, low] <= y):
            heights[i] = 0.0
            continue
        end = low
        left = x
        area = 0.0
        while end < steps and W[1, end] >= y:
            area += (W[0, end] - left) * (top - y)
            left = W[0, end]
            top = W[1, end]
            end += 1
        area += ((W[0, end] if end < steps else rx) - left) * (top - y)
        volume += area * (rz - z[t])
        heights[i] = area
        shift = end - low - 1
        if shift < 0:
            for q in range(steps, low, -1):
                W[0, q], W[1, q] = W[0, q - 1], W[1, q - 1]
        elif shift > 0:
            for q in range(end, steps):
                W[0, q - shift], W[1, q - shift] = W[0, q], W[1, q]
        steps -= shift
        W[0, low], W[1, low] = x, y
    return volume


@helper
def mark(B, i):
    """Add i to a three-level bit set: B[0] has a bit an element, each level above a bit a non-zero word."""
    for level in range(3):
        B[level, i >> 6] |= 1 << (i & 63)
        i >>= 6


@helper
def clear(B, i):
    """Remove i from a bit set."""
    for level in range(3):
        B[level, i >> 6] &= ~(1 << (i & 63))
        if B[level, i >> 6] != 0:
            break
        i >>= 6


@helper
def above(B, i):
    """Return the least element over i; there must be one."""
    w, s = i >> 6, i & 63
    bits = B[0, w] & (-1 << s) & ~(1 << s)
    if bits != 0:
        return (w << 6) + lowest_bit(bits)
    v, s = w >> 6, w & 63
    bits = B[1, v] & (-1 << s) & ~(1 << s)
    if bits == 0:
        u, s = v >> 6, v & 63
        bits = B[2, u] & (-1 << s) & ~(1 << s)
        while bits == 0:
            u += 1
            bits = B[2, u]
        v = (u << 6) + lowest_bit(bits)
        bits = B[1, v]
    w = (v << 6) + lowest_bit(bits)
    return (w << 6) + lowest_bit(B[0, w])


@helper
def below(B, i):
    """Return the greatest element under i; there must be one."""
    w, s = i >> 6, i & 63
    bits = B[0, w] & ~(-1 << s)
    if bits != 0:
        return (w << 6) + highest_bit(bits)
    v, s = w >> 6, w & 63
    bits = B[1, v] & ~(-1 << s)
    if bits == 0:
        u, s = v >> 6, v & 63
        bits = B[2, u] & ~(-1 << s)
        while bits == 0:
            u -= 1
            bits = B[2, u]
        v = (u << 6) + highest_bit(bits)
        bits = B[1, v]
    w = (v << 6) + highest_bit(bits)
    return (w << 6) + highest_bit(B[0, w])


@helper
def volume3_long(P, by_x, by_z, ax, ay, az, rx, ry, rz, heights):
    """Return the volume of the points of P (n, 3) in objectives ax, ay, az, given their orders in x and in z."""
    n = P.shape[0]
    X, Y = np.empty(n + 2), np.empty(n + 2)
    rank = np.empty(n, np.int64)
    B = np.zeros((3, ((n + 2) >> 6) + 1), np.int64)
    for t in range(n):
        rank[by_x[t]] = t + 1
        X[t + 1] = P[by_x[t], ax]
    X[0], Y[0] = -INF, ry
    X[n + 1], Y[n + 1] = rx, -INF
    mark(B, 0)
    mark(B, n + 1)
    volume = 0.0
    for t in range(n):
        i = by_z[t]
        x, y, z = P[i, ax], P[i, ay], P[i, az]
        heights[i] = 0.0
        if x >= rx or y >= ry or z >= rz:
            continue
        k = rank[i]
        top = Y[below(B, k)]
        if top <= y:
            continue
        after = above(B, k)
        if X[after] == x and Y[after] <= y:
            continue
        area = 0.0
        left = x
        while Y[after] >= y:
            area += (X[after] - left) * (top - y)
            left, top = X[after], Y[after]
            clear(B, after)
            after = above(B, after)
        area += (X[after] - left) * (top - y)
        Y[k] = y
        mark(B, k)
        volume += area * (rz - z)
        heights[i] = area
    return volume


@helper
def unsafe(P, ref):
    """Tell whether a front or its reference point holds NaN, infinite or huge values."""
    d = ref.shape[0]
    worst = 0.0
    for i in range(P.shape[0]):
        for c in range(d):
            size = abs(P[i, c])
            if not size < HUGE:
                return True
            worst = max(worst, size)
    for c in range(d):
        if not abs(ref[c]) < HUGE:
            return True
        worst = max(worst, abs(ref[c]))
    return 0.0 < worst < 1.0 / HUGE


@helper
def later(X, Y, i, x, y):
    """Tell whether point i comes after (x, y) among points that tie."""
    return X[i] > x or (X[i] == x and Y[i] > y)


@helper
def _volume3_of(P, ax, ay, az, sign, rx, ry, rz, W, ids):
    """Load the points inside the reference point into W, sort them by z, and sweep. W[5] gets areas on entering."""
    m = 0
    for i in range(P.shape[0]):
        x, y, z = sign * P[i, ax], sign * P[i, ay], sign * P[i, az]
        W[3, i], W[4, i] = x, y
        W[5, i] = 0.0
        if x < rx and y < ry and z < rz:
            j = m
            while j > 0 and (W[2, j - 1] > z or (W[2, j - 1] == z and later(W[3], W[4], ids[j - 1], x, y))):
                W[2, j], ids[j] = W[2, j - 1], ids[j - 1]
                j -= 1
            W[2, j], ids[j] = z, i
            m += 1
    return volume3_short(W[2], ids, W[3], W[4], m, rx, ry, rz, W, W[5])


@kernel
def front2(P, ref, maximize):
    """Return the area of one short front (n, 2)."""
    n = P.shape[0]
    if P.shape[1] != 2 or ref.shape[0] != 2 or unsafe(P, ref):
        return np.nan
    sign = -1.0 if maximize else 1.0
    x, y = np.empty(n), np.empty(n)
    for i in range(n):
        a, b = sign * P[i, 0], sign * P[i, 1]
        j = i
        while j > 0 and x[j - 1] > a:
            x[j], y[j] = x[j - 1], y[j - 1]
            j -= 1
        x[j], y[j] = a, b
    return area2(x, y, n, sign * ref[0], sign * ref[1])


@kernel
def front3(P, ref, maximize):
    """Return the volume of one short front (n, 3)."""
    n = P.shape[0]
    if P.shape[1] != 3 or ref.shape[0] != 3 or unsafe(P, ref):
        return np.nan
    sign = -1.0 if maximize else 1.0
    W = np.empty((6, n + 1))
    ids = np.empty(n, np.int64)
    return _volume3_of(P, 0, 1, 2, sign, sign * ref[0], sign * ref[1], sign * ref[2], W, ids)


@helper
def gradient2(x, y, ids, n, rx, ry, grads, b):
    """Write the gradient (n, 2) of front b: each point's own edges of the staircase."""
    for i in range(n):
        grads[b, i, 0] = grads[b, i, 1] = 0.0
    low = ry
    previous = -1
    for t in range(n):
        if x[t] >= rx:
            break
        if y[t] >= low:
            continue
        grads[b, ids[t], 0] = y[t] - low
        if previous >= 0:
            grads[b, ids[previous], 1] = x[previous] - x[t]
        previous = t
        low = y[t]
    if previous >= 0:
        grads[b, ids[previous], 1] = x[previous] - rx


@kernel
def volume2(fronts, refs, orders, out, grads, want_grads, start, stop):
    """Write areas (B,), and gradients (B, n, 2) if wanted; ``orders`` (1, B, n) sorts long fronts by x, then y."""
    n = fronts.shape[1]
    x, y = np.empty(n), np.empty(n)
    ids = np.empty(n, np.int64)
    last = refs.shape[0] - 1
    for b in range(start, stop):
        for i in range(n):
            if n > SHORT:
                ids[i] = orders[0, b, i]
                x[i], y[i] = fronts[b, ids[i], 0], fronts[b, ids[i], 1]
                continue
            a, low = fronts[b, i, 0], fronts[b, i, 1]
            j = i
            while j > 0 and (x[j - 1] > a or (x[j - 1] == a and y[j - 1] > low)):
                x[j], y[j], ids[j] = x[j - 1], y[j - 1], ids[j - 1]
                j -= 1
            x[j], y[j], ids[j] = a, low, i
        rx, ry = refs[min(b, last), 0], refs[min(b, last), 1]
        out[b] = area2(x, y, n, rx, ry)
        if want_grads:
            gradient2(x, y, ids, n, rx, ry, grads, b)


@kernel
def volume3(fronts, refs, orders, out, grads, want_grads, start, stop):
    """Write volumes (B,) and, if wanted, gradients (B, n, 3); ``orders`` (3, B, n) sorts long fronts by objective."""
    n = fronts.shape[1]
    W = np.empty((6, n + 1))
    ids = np.empty(n, np.int64)
    last = refs.shape[0] - 1
    for b in range(start, stop):
        P = fronts[b]
        ref = refs[min(b, last)]
        for turn in range(3 if want_grads else 1):
            az = 2 - turn
            ax, ay = (az + 1) % 3, (az + 2) % 3
            rx, ry, rz = ref[ax], ref[ay], ref[az]
            if n > SHORT:
                volume = volume3_long(P, orders[ax, b], orders[az, b], ax, ay, az, rx, ry, rz, W[5])
            else:
                volume = _volume3_of(P, ax, ay, az, 1.0, rx, ry, rz, W, ids)
            if turn == 0:
                out[b] = volume
            if want_grads:
                for i in range(n):
                    grads[b, i, az] = -W[5, i]


@kernel
def gain2(candidates, front, ref, out, start, stop):
    """Write what candidates (N, 2) add to an antichain in ascending x, all inside ``ref``."""
    n = front.shape[0]
    for c in range(start, stop):
        x, y = candidates[c, 0], candidates[c, 1]
        out[c] = 0.0
        if x >= ref[0] or y >= ref[1]:
            continue
        low, high = 0, n
        while low < high:
            middle = (low + high) >> 1
            if front[middle, 0] < x:
                low = middle + 1
            else:
                high = middle
        top = ref[1] if low == 0 else front[low - 1, 1]
        if top <= y or (low < n and front[low, 0] == x and front[low, 1] <= y):
            continue
        left = x
        area = 0.0
        while low < n and front[low, 1] >= y:
            area += (front[low, 0] - left) * (top - y)
            left, top = front[low, 0], front[low, 1]
            low += 1
        out[c] = area + ((front[low, 0] if low < n else ref[0]) - left) * (top - y)
