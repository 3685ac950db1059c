"""Infinities and extreme scales, dealt with before a kernel sees them.

Kernels subtract and multiply freely; with infinite or 1e200-sized coordinates that yields ``inf - inf`` or
``0 * inf``. Here every front is moved to a box of size one (powers of two, so scaling is exact), fronts with a
box of infinite extent are set aside, and the volume is scaled back at the end, where overflow to ``inf`` or underflow
to 0 is the right answer.
"""

from dataclasses import dataclass

import numpy as np

from moopt.kernels.inputs import BoolArray, FloatArray, IntArray

LARGE = 1e60
SMALL = 1e-60


def needs_conditioning(energy: float, refs: FloatArray) -> bool:
    """Tell whether values (by their sum of squares) or reference points leave the range kernels are safe in."""
    if not energy < LARGE or 0.0 < energy < SMALL:
        return True
    return not float(np.vdot(refs, refs)) < LARGE


@dataclass(frozen=True, slots=True)
class Conditioned:
    """Scaled fronts with the reference point at the origin."""

    values: FloatArray
    refs: FloatArray
    exponents: IntArray
    """(B, d): coordinates were divided by 2**exponent."""
    infinite: BoolArray
    """(B,) fronts of infinite volume; their ``values`` are all outside."""

    def volume(self, scaled: FloatArray) -> FloatArray:
        """Return volumes (B,) on the caller's scale."""
        with np.errstate(over="ignore", under="ignore"):
            volume = np.ldexp(scaled, self.exponents.sum(axis=1))
        volume[self.infinite] = np.inf
        return np.asarray(volume)

    def row_volume(self, scaled: FloatArray) -> FloatArray:
        """Return per-point volumes (B, n) on the caller's scale."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(scaled, self.exponents.sum(axis=1)[:, None]))

    def gradient(self, scaled: FloatArray) -> FloatArray:
        """Return gradients (B, n, d) on the caller's scale."""
        if self.infinite.any():
            raise ValueError("the gradient of an infinite hypervolume is undefined; clip points or use a finite ref")
        total = self.exponents.sum(axis=1)[:, None]
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(scaled, (total - self.exponents)[:, None, :]))


def condition(values: FloatArray, refs: FloatArray) -> Conditioned:
    """Scale fronts (B, n, d) with reference points (1 or B, d) into the unit box below the origin."""
    corner = np.broadcast_to(refs, (values.shape[0], values.shape[2]))[:, None, :]
    inside = (values < corner).all(axis=2, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        widths = np.where(inside, corner - values, 0.0)
    infinite = np.asarray(np.isinf(widths).any(axis=(1, 2)))
    widths[infinite] = 0.0
    span = widths.max(axis=1, initial=0.0)
    exponents = np.frexp(span)[1].astype(np.int64)
    scaled = -np.ldexp(widths, -exponents[:, None, :])
    return Conditioned(scaled, np.zeros((1, values.shape[2])), exponents, infinite)
