"""Stage 2 of C-MORL as pure functions: whom to extend, under which constraints, along which weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moopt.agents.cmorl.config import CMORLConfig
from moopt.kernels import crowding_distance

Array = NDArray[np.float64]

_WIDEST_SLACK = 0.5
"""A pair that is tried again may give up more of the other objectives, up to this share of their range."""


@dataclass
class Slot:
    """One constrained problem: maximise an objective from a parent while the others stay above thresholds.

    Attributes:
        parent: Member id.
        objective: Index l of the objective to maximise.
        threshold: (n,) smallest allowed returns; entry l is ignored.
        estimate: (n,) running estimate of the current stochastic policy's return.
    """

    parent: int
    objective: int
    threshold: Array
    estimate: Array


def archive_scale(points: Array) -> Array:
    """Return the range (n,) of each objective over ``points`` (N, n); of a constant objective, its size."""
    span = np.ptp(points, axis=0)
    size = np.maximum(np.abs(points).max(axis=0), 1e-8)
    return np.asarray(np.where(span > 1e-8 * size, span, size))


def choose_parents(
    points: Array, ids: Sequence[int], tries: Mapping[tuple[int, int], int], num_select: int
) -> list[int]:
    """Return the ids of the members to extend: the least tried, the most isolated first (largest crowding distance).

    Args:
        points: (N, n) returns of the archive.
        ids: Member ids of the rows.
        tries: How often each pair (member id, objective) was extended.
        num_select: How many to return, fewer if the archive is smaller.
    """
    n_obj = points.shape[1]
    tried = [sum(tries.get((member, k), 0) for k in range(n_obj)) for member in ids]
    crowding = crowding_distance(points)
    order = sorted(range(len(ids)), key=lambda i: (tried[i], -crowding[i], ids[i]))
    return [ids[i] for i in order[:num_select]]


def threshold(returns: Array, scale: Array, config: CMORLConfig, tries: int) -> Array:
    """Return the smallest allowed returns (n,) of a child.

    Args:
        returns: (n,) of the parent.
        scale: (n,) range of the archive.
        config: Which rule; ``range`` gives up ``delta`` of the range, doubled at each new try of the same pair,
            ``beta`` gives up a share ``1 - beta`` of the return's size (the paper's beta * G wherever G > 0).
        tries: How often this pair was extended before.
    """
    if config.threshold == "beta":
        return returns - (1.0 - config.beta) * np.abs(returns)
    return returns - min(config.delta * 2.0**tries, max(config.delta, _WIDEST_SLACK)) * scale


def barrier_weights(slots: Sequence[Slot], scale: Array, config: CMORLConfig) -> Array:
    r"""Return each slot's weights (S, n) on the raw advantages of the objectives.

    The gradient of :math:`G_l + \frac1t \sum_{j \ne l} \log s_j`, with the slack :math:`s_j = (G_j - b_j) / c_j` in
    units of the archive's range c, is a policy gradient on :math:`A_l / c_l + \sum_j \lambda_j A_j / c_j` with
    :math:`\lambda_j = 1 / (t s_j)`. Below :math:`s_j = 1/t^2` the logarithm is continued by its tangent
    (:math:`\lambda_j = t`), so a violated constraint pushes back with a finite weight.

    Args:
        slots: S constrained problems with their current estimates.
        scale: (n,) range of the archive.
        config: ``barrier_t``, or ``constraint="none"`` for no constraint.

    Returns:
        (S, n), each row summing to 1 in units of the range.
    """
    weights = np.zeros((len(slots), len(scale)))
    for row, slot in zip(weights, slots, strict=True):
        if config.constraint == "ipo":
            slack = (slot.estimate - slot.threshold) / scale
            t = config.barrier_t
            row[:] = np.minimum(1.0 / (t * np.maximum(slack, 1e-12)), t)
        row[slot.objective] = 1.0
        row /= row.sum()
    return weights / scale
