"""Non-dominated filters and ranks."""

import numpy as np
from numba import njit

helper = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
kernel = njit(nogil=True, cache=True, error_model="numpy")


@kernel
def filter2(points, order, keep_duplicates, keep):
    """Mark the non-dominated rows of one front (n, 2), given an order by x; of equal rows the lowest index stays."""
    n = points.shape[0]
    best = np.inf
    start = 0
    while start < n:
        first = order[start]
        x, low = points[first, 0], points[first, 1]
        end = start + 1
        while end < n and points[order[end], 0] == x:
            i = order[end]
            if points[i, 1] < low or (points[i, 1] == low and i < first):
                low = points[i, 1]
                first = i
            end += 1
        if low < best or start == 0:
            if keep_duplicates:
                for t in range(start, end):
                    keep[order[t]] = points[order[t], 1] == low
            keep[first] = True
            best = low
        start = end


@helper
def beaten(fronts, b, i, members, count, keep_duplicates):
    """Tell whether a member dominates row i, or equals it where duplicates count as beaten."""
    d = fronts.shape[2]
    for q in range(count):
        j = members[q]
        equal = True
        no_worse = True
        for c in range(d):
            if fronts[b, j, c] > fronts[b, i, c]:
                no_worse = False
                break
            if fronts[b, j, c] < fronts[b, i, c]:
                equal = False
        if no_worse and not (equal and keep_duplicates):
            return True
    return False


@kernel
def rank_batch(fronts, orders, present, levels, keep_duplicates, ranks, start, stop):
    """Write non-domination ranks (B, n) of fronts (B, n, d): 0 to ``levels`` - 1, and -1 for the rest and absent rows.

    ``orders`` (B, n) is lexicographic, so that no row dominates an earlier one: each row is set against the members of
    the front being collected, and waits for the next front when one of them dominates it.
    """
    n = fronts.shape[1]
    order = np.empty(n, np.int64)
    members = np.empty(n, np.int64)
    for b in range(start, stop):
        left = 0
        for t in range(n):
            i = orders[b, t]
            ranks[b, i] = -1
            if present[b, i]:
                order[left] = i
                left += 1
        level = 0
        while left > 0 and level < levels:
            count = rest = 0
            for t in range(left):
                i = order[t]
                if beaten(fronts, b, i, members, count, keep_duplicates):
                    order[rest] = i
                    rest += 1
                else:
                    members[count] = i
                    count += 1
                    ranks[b, i] = level
            left = rest
            level += 1


@helper
def lexicographically_before(P, maximize, i, j):
    """Tell whether row i comes strictly before row j, minimised."""
    for c in range(P.shape[1]):
        if P[i, c] != P[j, c]:
            return (P[i, c] > P[j, c]) == maximize
    return False


@kernel
def dominance_small(P, maximize, keep_duplicates, want_ranks, ranks):
    """Write the ranks (n,) of a short front, or only 0 for its non-dominated rows and 1 for others; False on NaN.

    In lexicographic order each row's rank is one above the greatest rank among those that dominate it.
    """
    n, d = P.shape
    order = np.empty(n, np.int64)
    for i in range(n):
        j = i
        while j > 0 and lexicographically_before(P, maximize, i, order[j - 1]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
        for c in range(d):
            if P[i, c] != P[i, c]:
                return False
    for t in range(n):
        i = order[t]
        rank = 0
        for q in range(t):
            j = order[q]
            if ranks[j] < rank or (not want_ranks and ranks[j] > 0):
                continue
            no_worse = True
            equal = True
            for c in range(d):
                a, b = (-P[j, c], -P[i, c]) if maximize else (P[j, c], P[i, c])
                if a > b:
                    no_worse = False
                    break
                if a < b:
                    equal = False
            if no_worse and not equal:
                rank = ranks[j] + 1
            elif no_worse and not keep_duplicates:
                rank = max(rank, ranks[j] + 1)
        ranks[i] = rank
    return True
