"""Empirical attainment: what a share of several runs reaches.

References:
    Grunert da Fonseca, Fonseca, Hall. Inferential performance assessment of stochastic optimisers and the
        attainment function. EMO 2001.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto.arrays import FloatArray, Maximize, as_points, same_width, signs
from moopt.runs.errors import MooptError


def eaf(fronts: Sequence[ArrayLike], /, level: float = 0.5, *, maximize: Maximize = True) -> FloatArray:
    """Return the points attained by at least a share ``level`` of the fronts.

    ``level=0.5`` is the median surface, a level near 0 the best of all runs, 1 what every run reaches.

    Args:
        fronts: One array (n_i, m) per run, with m = 2 or 3.
        level: Share of the runs, 0 < level <= 1.
        maximize: True, False, or one bool per objective.

    Returns:
        Array (k, m) of mutually non-dominated corners, in the orientation of the fronts.

    Raises:
        ValueError: If there is no front, a front is empty, a width is not 2 or 3, widths differ or a value is
            NaN.

    Examples:
        >>> eaf([[[1.0, 2.0]], [[2.0, 1.0]]], level=1.0).tolist()
        [[1.0, 1.0]]
    """
    import moocore

    if not 0 < level <= 1:
        raise MooptError(f"level must be in (0, 1], got {level!r}")
    arrays = [as_points(front, maximize, name=f"fronts[{i}]") for i, front in enumerate(fronts)]
    if not arrays:
        raise MooptError("eaf needs at least one front")
    for i, array in enumerate(arrays):
        same_width(arrays[0], array, "fronts[0]", f"fronts[{i}]")
        if len(array) == 0:
            raise MooptError(f"fronts[{i}] is empty: an attainment surface needs points in every run")
    m = arrays[0].shape[1]
    if m not in (2, 3):
        raise MooptError(f"eaf works for 2 or 3 objectives, got {m}")
    sets = np.repeat(np.arange(1, len(arrays) + 1), [len(a) for a in arrays])
    surface = moocore.eaf(-np.concatenate(arrays), sets, percentiles=[100 * level])
    return cast("FloatArray", -surface[:, :m] * signs(maximize, m) + 0.0)
