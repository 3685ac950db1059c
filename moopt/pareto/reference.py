"""Reference points, ideal and nadir points, and normalisation."""

import warnings
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto.arrays import FloatArray, Maximize, as_points, as_vector, signs
from moopt.runs.errors import MooptError

_SMALLEST_RANGE = 1e-7


def _front(points: ArrayLike, maximize: Maximize) -> FloatArray:
    from moopt.kernels import is_non_dominated

    array = cast("FloatArray", as_points(points, maximize))
    return array[is_non_dominated(array)] if len(array) else array


def ideal_nadir(points: ArrayLike, /, *, maximize: Maximize = True) -> tuple[FloatArray, FloatArray]:
    """Return the best and the worst value each objective takes on the non-dominated points.

    Args:
        points: Array (n, m), n >= 1.
        maximize: True, False, or one bool per objective.

    Returns:
        Ideal point (m,) and nadir point (m,), in the orientation of ``points``.

    Raises:
        ValueError: If ``points`` is empty or a value is NaN.

    Examples:
        >>> ideal, nadir = ideal_nadir([[1, 9], [4, 5], [0, 0]])
        >>> ideal.tolist(), nadir.tolist()
        ([4.0, 9.0], [1.0, 5.0])
    """
    front = _front(points, maximize)
    if len(front) == 0:
        raise MooptError("an empty set of points has no ideal and no nadir point")
    sign = signs(maximize, front.shape[1])
    return front.max(axis=0) * sign, front.min(axis=0) * sign


def infer_reference_point(
    points: ArrayLike,
    /,
    *,
    maximize: Maximize = True,
    scale: float = 0.1,
    max_ref_point: ArrayLike | None = None,
) -> FloatArray:
    """Return a reference point a little worse than the nadir of ``points``, by BoTorch's rule.

    The point is ``nadir - scale * (ideal - nadir)`` of the non-dominated points, for larger-is-better
    objectives; a single point y gives ``y - scale * max(|y|, 1e-7)``, and a range is taken as at least 1e-7.

    Warning:
        The point depends on the data. Sets are comparable only under one and the same reference point: infer
        it once, or from the union of all sets.

    Args:
        points: Array (n, m) of finite values.
        maximize: True, False, or one bool per objective.
        scale: Fraction of the range put between the nadir and the reference point.
        max_ref_point: Known acceptable limit (m,), in the orientation of ``points``. It is returned as soon
            as one point beats it; until then the nadir of two or more points is taken no better than it.

    Returns:
        Reference point (m,), in the orientation of ``points``.

    Raises:
        ValueError: If there are no points and no ``max_ref_point``, or a value is NaN or infinite.

    Examples:
        >>> infer_reference_point([[1.0, 9.0], [3.0, 5.0]]).round(6).tolist()
        [0.8, 4.6]
    """
    front = _front(points, maximize)
    m = front.shape[1]
    sign = signs(maximize, m)
    if not np.isfinite(front).all():
        raise MooptError("no reference point can be inferred from infinite values")
    limit = None if max_ref_point is None else as_vector(max_ref_point, m, maximize, name="max_ref_point")
    if limit is not None and (len(front) == 0 or (front > limit).all(axis=1).any()):
        return cast("FloatArray", limit * sign)
    if len(front) == 0:
        raise MooptError("no reference point can be inferred from an empty set; give max_ref_point")
    if len(front) == 1:
        return cast("FloatArray", (front[0] - scale * np.maximum(np.abs(front[0]), _SMALLEST_RANGE)) * sign)
    ideal = front.max(axis=0)
    nadir = front.min(axis=0) if limit is None else np.minimum(front.min(axis=0), limit)
    return cast("FloatArray", (nadir - scale * np.maximum(ideal - nadir, _SMALLEST_RANGE)) * sign)


def normalize(
    points: ArrayLike,
    /,
    ideal: ArrayLike | None = None,
    nadir: ArrayLike | None = None,
    *,
    maximize: Maximize = True,
) -> FloatArray:
    """Return ``points`` scaled so that the nadir is 0 and the ideal 1 in every objective, larger is better.

    Args:
        points: Array (n, m).
        ideal: Ideal point (m,) in the orientation of ``points``. Default: that of ``points``.
        nadir: Nadir point (m,) in the orientation of ``points``. Default: that of ``points``.
        maximize: True, False, or one bool per objective.

    Returns:
        Array (n, m), not clipped. An objective with ideal equal to nadir becomes 0, with a warning.

    Raises:
        ValueError: If a width differs, a value is NaN, or the ideal point is worse than the nadir point.

    Examples:
        >>> normalize([[1.0, 9.0], [3.0, 5.0]]).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    array = cast("FloatArray", as_points(points, maximize))
    m = array.shape[1]
    if len(array) == 0 and (ideal is None or nadir is None):
        return array
    sign = signs(maximize, m)
    if ideal is None or nadir is None:
        found_ideal, found_nadir = ideal_nadir(array)
        ideal = found_ideal * sign if ideal is None else ideal
        nadir = found_nadir * sign if nadir is None else nadir
    top = as_vector(ideal, m, maximize, name="ideal")
    bottom = as_vector(nadir, m, maximize, name="nadir")
    span = top - bottom
    if (span < 0).any():
        raise MooptError(f"ideal {ideal} is worse than nadir {nadir} in objective {int((span < 0).argmax())}")
    flat = span == 0
    if flat.any():
        warnings.warn(f"objectives {np.flatnonzero(flat).tolist()} are constant and become 0", stacklevel=2)
    return np.where(flat, 0.0, (array - bottom) / np.where(flat, 1.0, span))
