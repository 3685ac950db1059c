"""Exclusive contributions against exact rational arithmetic, at every scale, on every backend."""

from fractions import Fraction

import numpy as np
import pytest

from moopt.kernels import hv_contributions, hypervolume, is_non_dominated


def exact_volume(points, ref):
    """Slices in rationals: no rounding at all."""
    points = sorted({p for p in points if all(a < b for a, b in zip(p, ref, strict=True))}, key=lambda p: p[-1])
    if not points:
        return Fraction(0)
    if len(ref) == 1:
        return ref[0] - points[0][0]
    total = Fraction(0)
    for i, p in enumerate(points):
        box = Fraction(1)
        for a, b in zip(p[:-1], ref[:-1], strict=True):
            box *= b - a
        limited = [tuple(map(max, q[:-1], p[:-1])) for q in points[:i]]
        total += (box - exact_volume(limited, ref[:-1])) * (ref[-1] - p[-1])
    return total


def exact_contributions(points, ref, ignore_dominated):
    rows = np.flatnonzero((points < ref).all(1))
    if ignore_dominated:
        rows = rows[is_non_dominated(points[rows], maximize=False, keep_duplicates=True)]
    exact = {i: tuple(Fraction(float(v)) for v in points[i]) for i in rows}
    corner = [Fraction(float(v)) for v in ref]
    full = exact_volume(list(exact.values()), corner)
    result = np.zeros(len(points))
    for i in rows:
        result[i] = float(full - exact_volume([p for j, p in exact.items() if j != i], corner))
    return result


@pytest.mark.parametrize("backend", ["auto", "numba", "moocore"])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_contributions_are_exact_at_every_scale(d, scale, backend):
    """A fixed threshold below which differences count as 0 would empty the small fronts."""
    rng = np.random.default_rng(d)
    for ties in (False, True):
        points = rng.random((7, d))
        points = np.round(points * 4) / 4 if ties else points / np.linalg.norm(points, axis=1, keepdims=True)
        points, ref = np.vstack([points, points[:1]]) * scale, np.full(d, 0.95 * scale)
        for ignore_dominated in (True, False):
            found = hv_contributions(points, ref, maximize=False, ignore_dominated=ignore_dominated, backend=backend)
            expected = exact_contributions(points, ref, ignore_dominated)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14 * scale**d)


def test_small_contributions_are_not_lost():
    points = np.abs(np.random.default_rng(0).normal(size=(12, 6)))
    points *= 0.01 / np.linalg.norm(points, axis=1, keepdims=True)
    for backend in ("auto", "numba", "moocore"):
        assert (hv_contributions(points, 0.011, maximize=False, backend=backend) > 0.0).all()


def test_three_objectives_take_n_log_n():
    """Ten thousand points: a quadratic algorithm takes half a minute here."""
    points = np.abs(np.random.default_rng(1).normal(size=(10_000, 3)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    ref = np.full(3, 1.1)
    found = hv_contributions(points, ref, maximize=False)
    volume = hypervolume(points, ref, maximize=False)
    for i in (0, 1234, 9999):
        rest = hypervolume(np.delete(points, i, axis=0), ref, maximize=False)
        assert found[i] == pytest.approx(volume - rest, abs=1e-13)
    np.testing.assert_allclose(hv_contributions(-points, -ref), found)
