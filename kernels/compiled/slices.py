"""Hypervolume in four and more objectives, by slices; exclusive volumes; their batches.

Everything minimises. The volume of a set is swept along its last objective: each point adds its height times its
*exclusive* volume in the remaining k - 1 objectives, against the points before it (While, Bradstreet and Barone, IEEE
TEC 16(1), 2012). The exclusive volume of p is that of the box from p less what others cover of it. Before others are
limited to the box, the box is cut: a point no worse than p in all objectives but one bounds it in that one. What lies
beyond the cut box cannot matter, so few points survive to the next level, and two vector scans find them.

Buffers are plain matrices, indexed and never sliced, because array views cost more than the work on small sets:
``W`` has 2 D rows a level k (D = d + 1): first the set S_k, one row an objective, ``+inf`` beyond its last point; then
Q_k, the points limited to a box. Rows of level 0 are scratch. ``C[k]`` is the cut corner of level k; ``I[k]`` the
survivors' columns in S_k, ``I[D + k]`` an order of Q_k.
"""

import numpy as np
from numba import njit

from moopt.kernels.compiled.simd import above16, below3, below16, lowest_bit, scan_cuts3

INF = np.inf
LANES16 = 0xFFFF
SHORT = 48
RUN = 32

helper = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@helper
def workspace(d, n):
    """Return the buffers ``(W, C, I, F, N)`` for sweeps of up to n points in d objectives."""
    D = d + 1
    capacity = (n // 16 + 2) * 16
    W = np.full((2 * D * (d + 1), capacity), INF)
    return W, np.empty((D, D)), np.empty((2 * D, capacity), np.int64), np.empty((D, 2)), np.empty((D, 3), np.int64)


@helper
def sort_row(W, row, m, I, out, spare):
    """Write the stable ascending order of the first m entries of a row of W to row ``out`` of I (runs, then merges)."""
    for low in range(0, m, RUN):
        for i in range(low, min(low + RUN, m)):
            v = W[row, i]
            j = i
            while j > low and W[row, I[out, j - 1]] > v:
                I[out, j] = I[out, j - 1]
                j -= 1
            I[out, j] = i
    width = RUN
    while width < m:
        for low in range(0, m, 2 * width):
            middle, high = min(low + width, m), min(low + 2 * width, m)
            i, j = low, middle
            for t in range(low, high):
                if j >= high or (i < middle and W[row, I[out, i]] <= W[row, I[out, j]]):
                    I[spare, t] = I[out, i]
                    i += 1
                else:
                    I[spare, t] = I[out, j]
                    j += 1
        for t in range(m):
            I[out, t] = I[spare, t]
        width *= 2


@helper
def limit3(W, base, I, count, px, py, pz):
    """Limit the survivors (columns I[3]) to the box from p, in ascending z, to scratch rows 2, 3, 4."""
    if count > SHORT:
        for t in range(count):
            W[4, t] = max(W[base + 2, I[3, t]], pz)
        sort_row(W, 4, count, I, 0, 1)
        for t in range(count):
            j = I[3, I[0, t]]
            W[2, t] = max(W[base, j], px)
            W[3, t] = max(W[base + 1, j], py)
        for t in range(count):
            W[4, t] = max(W[base + 2, I[3, I[0, t]]], pz)
        return
    for t in range(count):
        j = I[3, t]
        x, y, z = max(W[base, j], px), max(W[base + 1, j], py), max(W[base + 2, j], pz)
        at = t
        while at > 0 and W[4, at - 1] > z:
            W[2, at], W[3, at], W[4, at] = W[2, at - 1], W[3, at - 1], W[4, at - 1]
            at -= 1
        W[2, at], W[3, at], W[4, at] = x, y, z


@helper
def covered3(W, count, cx, cy, cz):
    """Return the volume of the limited points: sweep z over a staircase in x (row 0) and y (row 1)."""
    steps = 0
    volume = 0.0
    for t in range(count):
        x, y = W[2, t], W[3, t]
        low, high = 0, steps
        while low < high:
            middle = (low + high) >> 1
            if W[0, middle] < x:
                low = middle + 1
            else:
                high = middle
        top = cy if low == 0 else W[1, low - 1]
        if top <= y or (low < steps and W[0, low] == x and W[1, low] <= y):
            continue
        end = low
        left = x
        area = 0.0
        while end < steps and W[1, end] >= y:
            area += (W[0, end] - left) * (top - y)
            left = W[0, end]
            top = W[1, end]
            end += 1
        right = W[0, end] if end < steps else cx
        area += (right - left) * (top - y)
        volume += area * (cz - W[4, t])
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
def exclusive3(W, base, m, px, py, pz, rx, ry, rz, I):
    """Return p's exclusive volume against the m points at row ``base``, and the number of survivors (columns I[3])."""
    cx, cy, cz = scan_cuts3(W, base, m, px, py, pz, rx, ry, rz)
    if cx <= px or cy <= py or cz <= pz:
        return 0.0, 0
    count = 0
    for start in range(0, m, 16):
        bits = below3(W, base, start, cx, cy, cz)
        while bits:
            I[3, count] = start + lowest_bit(bits)
            count += 1
            bits &= bits - 1
    box = (cx - px) * (cy - py) * (cz - pz)
    if count == 0:
        return box, 0
    i = I[3, 0]
    ax, ay, az = max(W[base, i], px), max(W[base + 1, i], py), max(W[base + 2, i], pz)
    if count == 1:
        return box - (cx - ax) * (cy - ay) * (cz - az), 1
    if count == 2:
        j = I[3, 1]
        bx, by, bz = max(W[base, j], px), max(W[base + 1, j], py), max(W[base + 2, j], pz)
        both = (cx - max(ax, bx)) * (cy - max(ay, by)) * (cz - max(az, bz))
        return box - ((cx - ax) * (cy - ay) * (cz - az) + (cx - bx) * (cy - by) * (cz - bz) - both), 2
    limit3(W, base, I, count, px, py, pz)
    return box - covered3(W, count, cx, cy, cz), count


@helper
def insert(k, row, i, W, base, m, I, count):
    """Add column i at ``row`` to the set S_k at ``base``, drop what it dominates; return the new size."""
    for t in range(count - 1, -1, -1):
        j = I[k, t]
        dominated = True
        for c in range(k):
            if W[base + c, j] < W[row + c, i]:
                dominated = False
                break
        if dominated:
            m -= 1
            for c in range(k):
                W[base + c, j] = W[base + c, m]
                W[base + c, m] = INF
    for c in range(k):
        W[base + c, m] = W[row + c, i]
    return m + 1


@helper
def limit(k, row, i, W, base, m, C, I, above):
    """Cut the box from column i at ``row`` and limit S_k to it; return the number of survivors, -1 when covered."""
    for c in range(k):
        C[k, c] = C[above, c]
    for start in range(0, m, 16):
        once = 0
        twice = 0
        for c in range(k):
            bits = above16(W, base + c, start, W[row + c, i])
            twice |= once & bits
            once |= bits
        if once != LANES16:
            return -1
        single = once & ~twice
        while single:
            j = start + lowest_bit(single)
            single &= single - 1
            for c in range(k):
                if W[base + c, j] > W[row + c, i]:
                    C[k, c] = min(C[k, c], W[base + c, j])
    count = 0
    for start in range(0, m, 16):
        bits = LANES16
        for c in range(k):
            bits &= below16(W, base + c, start, C[k, c])
        while bits:
            I[k, count] = start + lowest_bit(bits)
            count += 1
            bits &= bits - 1
    limited = base + C.shape[0]
    for c in range(k):
        p = W[row + c, i]
        for t in range(count):
            W[limited + c, t] = max(W[base + c, I[k, t]], p)
    return count


@helper
def enter(k, row, i, m, W, C, I, above, F, N):
    """Begin the exclusive volume of column i at ``row`` against S_k; return whether ``F[k, 0]`` is final."""
    D = C.shape[0]
    base = 2 * D * k
    if k == 3:
        volume, count = exclusive3(
            W, base, m, W[row, i], W[row + 1, i], W[row + 2, i], C[above, 0], C[above, 1], C[above, 2], I
        )
        F[3, 0] = volume
        N[3, 0] = count
        return True
    count = limit(k, row, i, W, base, m, C, I, above)
    N[k, 0] = max(count, 0)
    F[k, 0] = 0.0
    if count < 0:
        return True
    box = 1.0
    for c in range(k):
        box *= C[k, c] - W[row + c, i]
    F[k, 0] = box
    if count == 0:
        return True
    Q = base + D
    if count <= 2:
        one = two = both = 1.0
        for c in range(k):
            a, b, top = W[Q + c, 0], W[Q + c, count - 1], C[k, c]
            one *= top - a
            two *= top - b
            both *= top - max(a, b)
        F[k, 0] = box - one if count == 1 else box - (one + two - both)
        return True
    sort_row(W, Q + k - 1, count, I, D + k, 1)
    N[k, 1] = 0
    N[k, 2] = 0
    F[k, 1] = 0.0
    if k > 4:
        return False
    below = base - 2 * D
    size = 0
    covered = 0.0
    for t in range(count):
        j = I[D + 4, t]
        volume, survived = exclusive3(W, below, size, W[Q, j], W[Q + 1, j], W[Q + 2, j], C[4, 0], C[4, 1], C[4, 2], I)
        if volume > 0.0:
            covered += volume * (C[4, 3] - W[Q + 3, j])
            size = insert(3, Q, j, W, below, size, I, survived)
    empty(W, below, 3, size)
    F[k, 0] = box - covered
    return True


@helper
def empty(W, base, k, size):
    """Remove all points of a set."""
    for c in range(k):
        for j in range(size):
            W[base + c, j] = INF


@helper
def exclusive(top, row, i, m, W, C, I, above, F, N):
    """Return the exclusive volume of column i at ``row`` (``top`` objectives) against S_top, and the survivors' number.

    ``C[above]`` is the reference point. The recursion over levels is a loop: F[k] holds a level's open box and what is
    covered of it so far, N[k] its number of survivors, its position among them, and the size of the set below.
    (Functions that call themselves cannot be cached on disk.)
    """
    D = C.shape[0]
    k = top
    while True:
        done = enter(k, row, i, m, W, C, I, above, F, N)
        while done:
            if k == top:
                return F[top, 0], N[top, 0]
            # The volume of level k's point is known: book it in the level above.
            k += 1
            Q = 2 * D * k + D
            j = I[D + k, N[k, 1]]
            volume = F[k - 1, 0]
            if volume > 0.0:
                F[k, 1] += volume * (C[k, k - 1] - W[Q + k - 1, j])
                N[k, 2] = insert(k - 1, Q, j, W, 2 * D * (k - 1), N[k, 2], I, N[k - 1, 0])
            N[k, 1] += 1
            done = N[k, 1] == N[k, 0]
            if done:
                empty(W, 2 * D * (k - 1), k - 1, N[k, 2])
                F[k, 0] -= F[k, 1]
        row = 2 * D * k + D
        i, m, above = I[D + k, N[k, 1]], N[k, 2], k
        k -= 1


@helper
def sweep(d, m, W, C, I, F, N, heights):
    """Return the volume of the m points in Q_d against the reference point C[d], d >= 4.

    ``heights[j]`` becomes the exclusive volume that point j had on entering.
    """
    D = C.shape[0]
    Q = 2 * D * d + D
    below = 2 * D * (d - 1)
    sort_row(W, Q + d - 1, m, I, D + d, 1)
    size = 0
    total = 0.0
    for t in range(m):
        j = I[D + d, t]
        volume, survived = exclusive(d - 1, Q, j, size, W, C, I, d, F, N)
        if volume > 0.0:
            total += volume * (C[d, d - 1] - W[Q + d - 1, j])
            size = insert(d - 1, Q, j, W, below, size, I, survived)
        heights[j] = max(volume, 0.0)
    empty(W, below, d - 1, size)
    return total


@helper
def load(points, b, ref, axis, W, C, rows):
    """Copy front b's points inside ``ref`` to Q_d with objective ``axis`` last; return their number."""
    n, d = points.shape[1], points.shape[2]
    D = C.shape[0]
    Q = 2 * D * d + D
    for c in range(d):
        source = axis if c == d - 1 else (c if c < axis else c + 1)
        C[d, c] = ref[source]
    m = 0
    for i in range(n):
        inside = True
        for c in range(d):
            if points[b, i, c] >= ref[c]:
                inside = False
                break
        if inside:
            for c in range(d - 1):
                W[Q + c, m] = points[b, i, c if c < axis else c + 1]
            W[Q + d - 1, m] = points[b, i, axis]
            rows[m] = i
            m += 1
    return m


@njit(nogil=True, cache=True, error_model="numpy")
def volume_slices(fronts, refs, out, grads, want_grads, start, stop):
    """Write hypervolumes (B,), and gradients (B, n, d) if wanted, of fronts ``start`` to ``stop``; d >= 4."""
    n, d = fronts.shape[1], fronts.shape[2]
    W, C, I, F, N = workspace(d, n)
    heights = np.empty(n)
    rows = np.empty(n, np.int64)
    last = refs.shape[0] - 1
    for b in range(start, stop):
        ref = refs[min(b, last)]
        for turn in range(d if want_grads else 1):
            axis = d - 1 - turn
            m = load(fronts, b, ref, axis, W, C, rows)
            volume = sweep(d, m, W, C, I, F, N, heights)
            if turn == 0:
                out[b] = volume
            if want_grads:
                for j in range(m):
                    grads[b, rows[j], axis] = -heights[j]


@njit(nogil=True, cache=True, error_model="numpy")
def gain_slices(candidates, front, ref, skip_self, out, start, stop):
    """Write what candidates ``start`` to ``stop`` (N, d) add to an antichain (n, d) inside ``ref``, d >= 3.

    With ``skip_self`` the candidates are the front, and each is set against the others; any set will do then.
    """
    n, d = front.shape
    W, C, I, F, N = workspace(d, max(n, 1))
    base = 2 * C.shape[0] * d
    for c in range(d):
        C[0, c] = ref[c]
        for i in range(n):
            W[base + c, i] = front[i, c]
    for b in range(start, stop):
        inside = True
        for c in range(d):
            W[6 + c, 0] = candidates[b, c]
            if candidates[b, c] >= ref[c]:
                inside = False
            if skip_self:
                W[base + c, b] = INF
        out[b] = max(0.0, exclusive(d, 6, 0, n, W, C, I, 0, F, N)[0]) if inside else 0.0
        if skip_self:
            for c in range(d):
                W[base + c, b] = front[b, c]
