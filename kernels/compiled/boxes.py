"""Box decompositions: local upper bounds by Lacour, Klamroth and Fonseca (2017), Algorithms 1 and 2."""

import numpy as np
from numba import njit

INF = np.inf

helper = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
kernel = njit(nogil=True, cache=True, error_model="numpy")


@helper
def copy_bound(U, Z, u, V, Y, v):
    """Copy bound u of (U, Z) to place v of (V, Y)."""
    d = U.shape[1]
    for k in range(d):
        V[v, k] = U[u, k]
        for c in range(d):
            Y[v, k, c] = Z[u, k, c]


@helper
def grow(U, Z, capacity):
    """Return copies of the bounds and their defining points with room for ``capacity``."""
    d = U.shape[1]
    V, Y = np.empty((capacity, d)), np.empty((capacity, d, d))
    for u in range(len(U)):
        copy_bound(U, Z, u, V, Y, u)
    return V, Y


@helper
def local_upper_bounds(points, n, ref):
    """Return m bounds U and defining points Z of the first n points: Z[u, k] fixes coordinate k of U[u]."""
    d = points.shape[1]
    U, Z = np.empty((64, d)), np.empty((64, d, d))
    for j in range(d):
        U[0, j] = ref[j]
        for k in range(d):
            Z[0, j, k] = -INF
        Z[0, j, j] = ref[j]
    m = 1
    axes = np.empty(d, np.int64)
    for i in range(n):
        before = m
        dead = 0
        for u in range(before):
            hit = True
            for k in range(d):
                if not points[i, k] < U[u, k]:
                    hit = False
                    break
            if not hit:
                continue
            count = 0
            for j in range(d):
                floor = -INF
                for k in range(d):
                    if k != j:
                        floor = max(floor, Z[u, k, j])
                if points[i, j] >= floor:
                    axes[count] = j
                    count += 1
            if count == 0:
                U[u, 0] = -INF
                dead += 1
                continue
            for t in range(count - 1, -1, -1):
                j = axes[t]
                child = u
                if t > 0:
                    if m == len(U):
                        U, Z = grow(U, Z, 2 * m)
                    child = m
                    m += 1
                    copy_bound(U, Z, u, U, Z, child)
                U[child, j] = points[i, j]
                for c in range(d):
                    Z[child, j, c] = points[i, c]
        if dead:
            m = compact(U, Z, m)
    return U, Z, m


@helper
def compact(U, Z, m):
    """Drop bounds marked by ``-inf``; return how many stay."""
    kept = 0
    for u in range(m):
        if U[u, 0] == -INF:
            continue
        if kept != u:
            copy_bound(U, Z, u, U, Z, kept)
        kept += 1
    return kept


@helper
def floor_of(Z, u, j):
    """Return the lower side of bound u's box in coordinate j > 0."""
    low = -INF
    for i in range(j):
        low = max(low, Z[u, i, j])
    return low


@helper
def has_volume(U, Z, u, top):
    """Tell whether the box under bound u has an inside."""
    if not Z[u, 0, 0] < top[0]:
        return False
    for j in range(1, U.shape[1]):
        if not floor_of(Z, u, j) < U[u, j]:
            return False
    return True


@kernel
def decompose_boxes(points, ref, dominated):
    """Return lower and upper corners (cells, d) of the region an antichain inside ``ref`` dominates, or leaves open."""
    n, d = points.shape
    U, Z, m = local_upper_bounds(points, n, ref)
    top = np.empty(d)
    for j in range(d):
        top[j] = ref[j] if dominated else INF
    if not dominated:
        # The open region below the bounds is what their negatives dominate, up to infinity.
        for u in range(m):
            for j in range(d):
                U[u, j] = -U[u, j]
        U, Z, m = local_upper_bounds(U, m, top)
    count = 0
    for u in range(m):
        count += has_volume(U, Z, u, top)
    lower, upper = np.empty((count, d)), np.empty((count, d))
    count = 0
    for u in range(m):
        if not has_volume(U, Z, u, top):
            continue
        for j in range(d):
            low, high = Z[u, 0, 0] if j == 0 else floor_of(Z, u, j), top[0] if j == 0 else U[u, j]
            lower[count, j] = low if dominated else -high
            upper[count, j] = high if dominated else -low
        count += 1
    return lower, upper
