"""Multi-index data: y = g(<u_1, x>, ..., <u_k, x>), with inputs of a chosen spectrum."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from moopt.runs.errors import MooptError, did_you_mean

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class MultiIndexData:
    """A sample of a multi-index problem."""

    X: Array
    """Inputs (n, d)."""
    y: Array
    """Targets (n,)."""
    basis: Array
    """True directions (k, d), orthonormal."""
    effective_dimension: float
    """tr(S) / tr(U S U') of the inputs' population covariance S and the basis U."""


_HERMITE: dict[int, Callable[[Array], Array]] = {
    1: lambda x: x,
    2: lambda x: (x**2 - 1) / math.sqrt(2),
    3: lambda x: (x**3 - 3 * x) / math.sqrt(6),
    4: lambda x: (x**4 - 6 * x**2 + 3) / math.sqrt(24),
}
_TARGETS = ("parityK", "staircaseK", "hermiteK", "xor", "productK", "square")


def multi_index(
    target: str,
    n: int,
    d: int,
    *,
    spectrum: str | Array = "isotropic",
    noise: float = 0.0,
    rotate: bool = False,
    seed: int = 0,
) -> MultiIndexData:
    """Draw a multi-index sample; targets have variance 1 on isotropic inputs.

    Args:
        target: ``parityK`` (product of K signs, inputs are signs), ``staircaseK`` (x1 + x1 x2 + ... up to K factors,
            over sqrt K), ``hermiteK`` (normalised Hermite polynomial of x1, K at most 4), ``xor`` (sign of x1 x2),
            ``productK`` (x1 ... xK), ``square`` (x1^2 - 1, the seed paper's, not normalised).
        n: Rows, >= 1.
        d: Inputs, at least the target's number of directions.
        spectrum: Variances of the inputs: ``isotropic``, ``deff:V`` (1 for the first input and equal for the others
            so that the trace is V, 1 <= V), ``power:A`` (i^-A), ``spike:K`` (1 + K for the first direction), or
            an array (d,). Parity inputs are signs times the root of the variance.
        noise: Standard deviation of Gaussian noise on y.
        rotate: Turn the inputs by a random rotation, so that the directions are not coordinate axes. Not for
            parity.
        seed: Seed >= 0.

    Raises:
        MooptError: If the target or spectrum is unknown, or numbers are out of range.

    Examples:
        >>> data = multi_index("parity2", 4, 3, seed=1)
        >>> bool((data.y == data.X[:, 0] * data.X[:, 1]).all())
        True
        >>> round(multi_index("square", 10, 50, spectrum="deff:8").effective_dimension, 6)
        8.0
    """
    name, k = _parse_target(target)
    if n < 1 or d < _directions(name, k):
        raise MooptError(f"{target} needs n >= 1 and d >= {_directions(name, k)}, got n={n}, d={d}")
    if not (math.isfinite(noise) and noise >= 0):
        raise MooptError(f"noise must be a finite number >= 0, got {noise}")
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    variances = _spectrum(spectrum, d)
    # All draws of one kind come first, so that noise or rotation does not change the inputs.
    raw = rng.standard_normal((n, d))
    errors = rng.standard_normal(n)
    if name == "parity":
        if rotate:
            raise MooptError("parity inputs are signs and cannot be rotated")
        raw = np.where(raw >= 0, 1.0, -1.0)
    X = raw * np.sqrt(variances)
    y = _target(name, k, raw if name in ("parity", "xor") else X) + noise * errors
    count = _directions(name, k)
    d_eff = float(variances.sum() / variances[:count].sum())
    basis = np.eye(d)[:count]
    if rotate:
        q, r = np.linalg.qr(rng.standard_normal((d, d)))
        q = q * np.sign(np.diag(r))
        X, basis = X @ q.T, basis @ q.T
    return MultiIndexData(X, y, basis, d_eff)


def list_targets() -> list[str]:
    """Return the patterns of target names; K is a whole number."""
    return list(_TARGETS)


def _parse_target(target: str) -> tuple[str, int]:
    match = re.fullmatch(r"([a-z]+)(\d*)", target)
    name, digits = (match[1], match[2]) if match else (target, "")
    fixed = {"xor": 2, "square": 1}
    counted = ("parity", "staircase", "hermite", "product")
    if name in fixed and not digits:
        return name, fixed[name]
    if name in counted and digits and 1 <= int(digits) <= 20 and not (name == "hermite" and int(digits) > 4):
        return name, int(digits)
    raise MooptError(f"unknown target {target!r}{did_you_mean(target, _TARGETS)} (K at most 20, for hermite 4)")


def _directions(name: str, k: int) -> int:
    return 1 if name == "hermite" else k


def _target(name: str, k: int, x: Array) -> Array:
    if name in ("parity", "product"):
        return np.asarray(x[:, :k].prod(axis=1))
    if name == "staircase":
        return np.asarray(np.cumprod(x[:, :k], axis=1).sum(axis=1) / math.sqrt(k))
    if name == "xor":
        return np.where(x[:, 0] * x[:, 1] >= 0, 1.0, -1.0)
    if name == "square":
        return np.asarray(x[:, 0] ** 2 - 1)
    return _HERMITE[k](x[:, 0])


def _spectrum(spectrum: str | Array, d: int) -> Array:
    if not isinstance(spectrum, str):
        values = np.array(spectrum, dtype=np.float64)
        if values.shape != (d,) or not np.isfinite(values).all() or (values < 0).any() or values.sum() == 0:
            raise MooptError(f"spectrum must be {d} finite variances >= 0, not all 0")
        return values
    if spectrum == "isotropic":
        return np.ones(d)
    kind, _, text = spectrum.partition(":")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if kind == "deff" and (1 <= value < math.inf) and d > 1:
        rest = np.full(d, (value - 1) / (d - 1))
        rest[0] = 1.0
        return rest
    if kind == "power" and 0 <= value < math.inf:
        return np.asarray(np.arange(1, d + 1, dtype=np.float64) ** -value)
    if kind == "spike" and 0 <= value < math.inf:
        values = np.ones(d)
        values[0] += value
        return values
    choices = ("isotropic", "deff:V", "power:A", "spike:K")
    raise MooptError(f"unknown spectrum {spectrum!r}{did_you_mean(spectrum, choices)} (deff needs V >= 1, d > 1)")
