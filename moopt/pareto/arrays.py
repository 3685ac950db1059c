"""Read NumPy arrays, lists and torch tensors the same way, with shape, NaN and direction checks."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moopt.runs.errors import MooptError, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor

    Points: TypeAlias = ArrayLike | Tensor
else:
    # torch stays unimported until someone hands in a tensor.
    Points = ArrayLike

Maximize: TypeAlias = bool | Sequence[bool] | NDArray[np.bool_]
"""Direction of every objective, or one direction per objective."""
FloatArray: TypeAlias = NDArray[np.float64]


def is_tensor(value: object) -> bool:
    """Return whether ``value`` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def namespace(value: object) -> Any:
    """Return the module, ``numpy`` or ``torch``, whose functions apply to ``value``."""
    return sys.modules["torch"] if is_tensor(value) else np


def signs(maximize: Maximize, m: int) -> FloatArray:
    """Return +1 for each maximised and -1 for each minimised objective, shape (m,).

    Raises:
        MooptError: If ``maximize`` is not a bool or ``m`` bools.
    """
    flags = np.asarray(maximize)
    # 0/1 integers are accepted next to bools because other libraries' direction arrays come in that form.
    if flags.dtype != np.bool_ and not (flags.dtype.kind in "iu" and np.isin(flags, (0, 1)).all()):
        raise MooptError(f"maximize must be a bool or one bool per objective, got {maximize!r}")
    if flags.ndim > 1 or (flags.ndim == 1 and len(flags) != m):
        raise MooptError(f"maximize has shape {flags.shape}, but the points have {m} objectives")
    return np.where(np.broadcast_to(flags, (m,)), 1.0, -1.0)


def as_array(value: Points, name: str) -> Any:
    """Return ``value`` as a float64 array, or as the tensor it is (integers cast to float64).

    Raises:
        MooptError: If ``value`` is not numeric or holds NaN.
    """
    if is_tensor(value):
        tensor: Any = value
        torch = sys.modules["torch"]
        if tensor.is_complex():
            raise MooptError(f"{name} must be real, got dtype {tensor.dtype}")
        if not tensor.is_floating_point():
            tensor = tensor.to(torch.float64)
        if bool(torch.isnan(tensor).any()):
            raise MooptError(f"{name} contains NaN")
        return tensor
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "biuf" and raw.size:
            raise TypeError(f"dtype {raw.dtype}")
        array = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise MooptError(f"{name} must be a rectangular array of real numbers: {error}") from None
    if np.isnan(array).any():
        raise MooptError(f"{name} contains NaN (row {int(np.argwhere(np.isnan(array))[0][0])})")
    return array


def as_points(points: Points, maximize: Maximize = True, *, name: str = "points") -> Any:
    """Return ``points`` turned to larger-is-better.

    Args:
        points: Array (n, m), or tensor (..., n, m).
        maximize: Direction of the objectives.
        name: Argument name used in messages.

    Returns:
        A new float64 array (n, m), or a tensor of the input's dtype and device that carries its gradient.

    Raises:
        MooptError: If the shape is wrong, or a value is NaN or not a number.
    """
    array = as_array(points, name)
    batched = is_tensor(array)
    if array.ndim < 2 or (array.ndim > 2 and not batched):
        shape = "(..., n, m)" if batched else "(n, m)"
        raise MooptError(f"{name} must have shape {shape}, got {tuple(array.shape)}")
    if array.shape[-1] == 0:
        raise MooptError(f"{name} has no objectives: shape {tuple(array.shape)}")
    sign = signs(maximize, array.shape[-1])
    if (sign > 0).all():
        return array
    return array * like(sign, array)


def as_vector(vector: Points, m: int, maximize: Maximize = True, *, name: str) -> Any:
    """Return ``vector`` (m,) or (..., m) turned to larger-is-better; a scalar fills all ``m`` entries.

    Raises:
        MooptError: If the last dimension is not ``m`` or a value is NaN.
    """
    array = as_array(vector, name)
    if array.ndim == 0:
        array = array + like(np.zeros(m), array)
    if array.shape[-1] != m:
        raise MooptError(f"{name} has shape {tuple(array.shape)}, but the points have {m} objectives")
    return array * like(signs(maximize, m), array)


def like(array: FloatArray, model: Any) -> Any:
    """Return ``array`` as it is, or on the device and in the dtype of the tensor ``model``."""
    if not is_tensor(model):
        return array
    return sys.modules["torch"].as_tensor(array, dtype=model.dtype, device=model.device)


def together(first: Any, second: Any) -> tuple[Any, Any]:
    """Return both arguments as NumPy arrays, or both as tensors of one device if either is a tensor."""
    if is_tensor(first) and not is_tensor(second):
        return first, like(second, first)
    if is_tensor(second) and not is_tensor(first):
        return like(first, second), second
    return first, second


def same_width(first: Any, second: Any, first_name: str, second_name: str) -> None:
    """Raise ``MooptError``, naming both shapes, if the last dimensions differ."""
    if first.shape[-1] != second.shape[-1]:
        raise MooptError(
            f"{first_name} has shape {tuple(first.shape)} and {second_name} has shape {tuple(second.shape)}: "
            "the numbers of objectives differ"
        )


def difference(a: Any, b: Any) -> Any:
    """Return ``a - b`` where equal infinities differ by 0 instead of NaN."""
    xp = namespace(a)
    a, b = xp.broadcast_tensors(a, b) if is_tensor(a) else np.broadcast_arrays(a, b)
    same = xp.isinf(a) & (a == b)
    if not bool(same.any()):
        return a - b
    zero = xp.zeros_like(a)
    return xp.where(same, zero, a) - xp.where(same, zero, b)


def weighted(weights: Any, values: Any) -> Any:
    """Return ``weights * values`` where a zero weight silences an infinite value (0 * inf = 0)."""
    xp = namespace(values)
    if bool(xp.isfinite(values).all()):
        return weights * values
    weights, values = (
        xp.broadcast_tensors(weights, values) if is_tensor(values) else np.broadcast_arrays(weights, values)
    )
    return weights * xp.where((weights == 0) & xp.isinf(values), xp.zeros_like(values), values)


def total(terms: Any) -> Any:
    """Return the sum over the last axis; a term of -inf makes the sum -inf even beside +inf."""
    xp = namespace(terms)
    lost = (terms == -np.inf).any(axis=-1)
    if not bool(lost.any()):
        return terms.sum(axis=-1)
    safe = xp.where(terms == -np.inf, xp.zeros_like(terms), terms).sum(axis=-1)
    return xp.where(lost, xp.full_like(safe, -np.inf), safe)


def scalar(value: Any) -> "float | Tensor":
    """Return a Python float for a NumPy result, and a tensor unchanged."""
    return cast("Tensor", value) if is_tensor(value) else float(value)


def unknown(kind: str, name: object, choices: Sequence[str]) -> MooptError:
    """Return the error for a name that is not among ``choices``, with all of them and the nearest match."""
    hint = did_you_mean(str(name), choices)
    near = hint if hint.startswith("; did you mean") else ""
    return MooptError(f"unknown {kind} {name!r}, choose from {', '.join(choices)}{near}")
