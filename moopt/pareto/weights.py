"""Preference vectors on the simplex: regular grids, evenly spread sets and random draws.

References:
    Das, Dennis. Normal-boundary intersection. SIAM Journal on Optimization 8(3), 1998 (the simplex lattice).
    Deb, Jain. An evolutionary many-objective optimization algorithm using reference-point-based nondominated
        sorting approach, part I. IEEE Transactions on Evolutionary Computation 18(4), 2014 (two layers).
    Blank, Deb, Dhebar, Bandaru, Seada. Generating well-spaced points on a unit simplex for evolutionary
        many-objective optimization. IEEE Transactions on Evolutionary Computation 25(1), 2021 (Riesz energy).
"""

from collections.abc import Sequence
from math import comb
from typing import TypeAlias

import numpy as np

from moopt.pareto.arrays import FloatArray, unknown
from moopt.runs.errors import MooptError

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator

METHODS = ("lattice", "das_dennis", "riesz", "sobol", "dirichlet")
_MAX_ROWS = 5_000_000
_RIESZ_STARTS = 3
_RIESZ_STEPS = 600
# A high power makes the nearest neighbours count: 12 left visible gaps, 40 was no better on average.
_RIESZ_POWER = 20.0


def lattice_size(m: int, H: int) -> int:
    """Return the number of lattice points with ``m`` coordinates and ``H`` steps: C(H+m-1, m-1)."""
    return comb(H + m - 1, m - 1)


def simplex_weights(
    m: int,
    n: int | None = None,
    *,
    H: int | Sequence[int] | None = None,
    method: str = "lattice",
    seed: Seed = 0,
    alpha: float = 1.0,
) -> FloatArray:
    """Return preference vectors: non-negative rows that sum to 1.

    Args:
        m: Number of objectives.
        n: Number of vectors. ``lattice`` exists only for some numbers (all of them when m = 2).
        H: Steps per edge, instead of ``n``, for ``lattice`` (step 1/H) and ``das_dennis``; there a sequence
            makes layers, each drawn halfway nearer to the centre than the one before.
        method: ``lattice``: the regular grid, in lexicographic order from (0, .., 1) to (1, .., 0).
            ``das_dennis``: as in NSGA-III, at most ``n`` vectors; one lattice if it reaches the interior (H
            >= m), else an outer and an inner layer.
            ``riesz``: ``n`` evenly spread vectors, the corners among them; works for any ``n``.
            ``sobol``: low-discrepancy, uniform on the simplex.
            ``dirichlet``: random draws with concentration ``alpha`` (1 is uniform).
        seed: Seed or generator; only ``riesz``, ``sobol`` and ``dirichlet`` use it. A generator is advanced.
        alpha: Concentration of ``dirichlet``.

    Returns:
        Array (n, m) float64.

    Raises:
        ValueError: If the method is unknown, a number is out of range, or no lattice has ``n`` points.

    Examples:
        >>> simplex_weights(2, 3).tolist()
        [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
        >>> simplex_weights(3, H=12).shape
        (91, 3)
        >>> simplex_weights(4, 7, method="riesz").shape
        (7, 4)
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    _positive("m", m)
    if n is not None:
        _positive("n", n)
    if method in ("lattice", "das_dennis"):
        return _grid(m, n, H, method)
    if n is None or H is not None:
        raise MooptError(f"method {method!r} takes the number of vectors n, not H: simplex_weights(m, n, method=...)")
    if m == 1:
        return np.ones((n, 1))
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    if method == "riesz":
        return _riesz(m, n, rng)
    if method == "sobol":
        return _sobol(m, n, rng)
    if not alpha > 0:
        raise MooptError(f"alpha must be positive, got {alpha!r}")
    return np.asarray(rng.dirichlet(np.full(m, float(alpha)), size=n), dtype=np.float64)


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise MooptError(f"{name} must be a positive integer, got {value!r}")


def _grid(m: int, n: int | None, H: int | Sequence[int] | None, method: str) -> FloatArray:
    if (n is None) == (H is None):
        raise MooptError(f"method {method!r} takes exactly one of n and H")
    if n is not None:
        layers = _layers_for(m, n) if method == "das_dennis" else [_steps_for(m, n)]
    else:
        layers = [int(H)] if isinstance(H, int | np.integer) else list(H or ())
        if not layers or (method == "lattice" and len(layers) > 1):
            raise MooptError(f"H must be a positive integer{' or several' * (method == 'das_dennis')}, got {H!r}")
    for steps in layers:
        _positive("H", steps)
    rows = sum(lattice_size(m, steps) for steps in layers)
    if rows > _MAX_ROWS:
        raise MooptError(f"a lattice with m={m} and H={layers} has {rows} points; use method='riesz' or 'dirichlet'")
    parts = []
    for depth, steps in enumerate(layers):
        shrink = 0.5**depth
        parts.append(_lattice(m, steps) * shrink + (1 - shrink) / m)
    return np.concatenate(parts)


def _steps_for(m: int, n: int) -> int:
    """Return the H whose lattice has exactly ``n`` points; with n = 1 or m = 1 that is H = 1 or none."""
    H = 1
    while lattice_size(m, H) < n and m > 1:
        H += 1
    if lattice_size(m, H) != n:
        below = f"{lattice_size(m, H - 1)} or " if H > 1 else ""
        raise MooptError(
            f"no lattice with m={m} objectives has n={n} points; nearest: {below}{lattice_size(m, H)}. "
            "Give one of these, or use method='riesz', which takes any n"
        )
    return H


def _layers_for(m: int, n: int) -> list[int]:
    if n < m:
        raise MooptError(f"das_dennis needs n >= m, got n={n}, m={m}; use method='riesz'")
    if m == 1:
        return [1]
    H = 1
    while lattice_size(m, H + 1) <= n:
        H += 1
    if m <= H:
        return [H]
    # No lattice point is interior when H < m: spend part of the budget on an inner layer.
    best = [H]
    for outer in range(H, 0, -1):
        for inner in range(outer, 0, -1):
            size = lattice_size(m, outer) + lattice_size(m, inner)
            if size <= n and size > sum(lattice_size(m, h) for h in best):
                best = [outer, inner]
    return best


def _lattice(m: int, H: int) -> FloatArray:
    """Return all integer vectors of sum H, divided by H, in lexicographic order."""
    counts = np.zeros((1, 0), dtype=np.int64)
    left = np.array([H])
    for _ in range(m - 1):
        options = left + 1
        index = np.repeat(np.arange(len(left)), options)
        starts = np.repeat(np.cumsum(options) - options, options)
        value = np.arange(len(index)) - starts
        counts = np.concatenate([counts[index], value[:, None]], axis=1)
        left = left[index] - value
    return np.concatenate([counts, left[:, None]], axis=1) / H


def _sobol(m: int, n: int, rng: np.random.Generator) -> FloatArray:
    from scipy.stats import qmc

    sampler = qmc.Sobol(m - 1, scramble=True, seed=rng)
    # Drawing a power of two and cutting keeps scipy's balance warning away.
    u = sampler.random_base2((n - 1).bit_length())[:n]
    # Stick breaking: coordinate k of a uniform point on the simplex is Beta(1, m-1-k) of what is left.
    weights = np.empty((n, m))
    left = np.ones(n)
    for k in range(m - 1):
        weights[:, k] = left * (1.0 - (1.0 - u[:, k]) ** (1.0 / (m - 1 - k)))
        left = left - weights[:, k]
    weights[:, -1] = np.maximum(left, 0.0)
    return weights


def _riesz(m: int, n: int, rng: np.random.Generator) -> FloatArray:
    if n == 1:
        return np.full((1, m), 1.0 / m)
    if m == 2:
        # On a segment the minimiser tends to equal spacing as the exponent grows.
        first = np.linspace(0.0, 1.0, n)
        return np.stack([first, 1.0 - first], axis=1)
    corners = np.eye(m)[: min(n, m)]
    if n <= m:
        return corners
    # The energy has poor local minima: the widest spread of a few starts is kept.
    sets = [np.concatenate([corners, _descend(m, n - m, corners, rng)]) for _ in range(_RIESZ_STARTS)]
    return max(sets, key=_smallest_gap)


def _smallest_gap(points: FloatArray) -> float:
    squared = ((points[:, None] - points) ** 2).sum(-1)
    return float(squared[~np.eye(len(points), dtype=bool)].min())


def _descend(m: int, n: int, corners: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return ``n`` points that minimise the energy with the corners: projected Adam, falling steps."""
    free = _spread_start(m, n, corners, rng)
    velocity = np.zeros_like(free)
    scale = np.zeros_like(free)
    for t in range(1, _RIESZ_STEPS + 1):
        grad = _energy_gradient(free, corners, _RIESZ_POWER)
        velocity = 0.9 * velocity + 0.1 * grad
        scale = 0.99 * scale + 0.01 * grad**2
        step = 0.01 * (1 + np.cos(np.pi * t / _RIESZ_STEPS)) + 1e-5
        free = free - step * (velocity / (1 - 0.9**t)) / (np.sqrt(scale / (1 - 0.99**t)) + 1e-12)
        free = _project(free)
    return free


def _spread_start(m: int, n: int, corners: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return ``n`` random points, each the candidate farthest from those already chosen."""
    pool = rng.dirichlet(np.ones(m), size=max(20 * n, 200))
    nearest = np.min(((pool[:, None] - corners) ** 2).sum(-1), axis=1)
    chosen = np.empty((n, m))
    for i in range(n):
        chosen[i] = pool[int(nearest.argmax())]
        nearest = np.minimum(nearest, ((pool - chosen[i]) ** 2).sum(-1))
    return chosen


def _energy_gradient(free: FloatArray, corners: FloatArray, power: float) -> FloatArray:
    """Return the gradient of the log of ``sum |x_i - x_j|^-power``, in the plane of the simplex."""
    everyone = np.concatenate([free, corners])
    gap = free[:, None] - everyone
    squared = (gap**2).sum(-1)
    squared[np.arange(len(free)), np.arange(len(free))] = np.inf
    squared = np.maximum(squared, 1e-12)
    # Energies are taken relative to the largest, which would overflow otherwise.
    log_energy = -0.5 * power * np.log(squared)
    energy = np.exp(log_energy - log_energy.max())
    grad = -power * np.einsum("ij,ijk->ik", energy / squared, gap) / energy.sum()
    return np.asarray(grad - grad.mean(axis=1, keepdims=True))


def _project(points: FloatArray) -> FloatArray:
    """Return the nearest point of the simplex to each row (sort and threshold)."""
    m = points.shape[1]
    ordered = -np.sort(-points, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, m + 1)
    count = (ordered > excess).sum(axis=1)
    projected: FloatArray = np.maximum(points - excess[np.arange(len(points)), count - 1][:, None], 0.0)
    return projected
