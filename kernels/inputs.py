"""From what a caller passes to what a kernel computes on: one place for shape, direction, dtype and NaN rules.

Kernels minimise. They get C-contiguous float64 arrays of shape (B, n, d) whose absent rows (masked, or NaN under
``nan_policy="omit"``) hold ``+inf``, which no reference point can be worse than.
"""

import difflib
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import torch

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]
Points: TypeAlias = Union[ArrayLike, "torch.Tensor", Sequence["torch.Tensor"]]
Maximize: TypeAlias = bool | Sequence[bool] | BoolArray
NanPolicy: TypeAlias = Literal["raise", "omit"]

BACKENDS = ("auto", "numba", "torch", "moocore")
FLOAT32_RESOLUTION = 1e-5


def is_tensor(value: object) -> bool:
    """Tell whether ``value`` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_plain(Y: object, maximize: object) -> TypeGuard[FloatArray]:
    """Tell whether ``Y`` is one non-empty C-contiguous float64 front (n, d >= 2) with one direction."""
    return (
        type(Y) is np.ndarray
        and Y.ndim == 2
        and Y.dtype == np.float64
        and Y.flags.carray
        and Y.shape[1] > 1
        and len(Y) > 0
        and (maximize is True or maximize is False)
    )


def is_plain_ref(ref: object, d: int) -> TypeGuard[FloatArray]:
    """Tell whether ``ref`` is a C-contiguous float64 vector (d,)."""
    return type(ref) is np.ndarray and ref.dtype == np.float64 and ref.shape == (d,) and ref.flags.carray


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise ``ValueError`` with the nearest match unless ``value`` is one of ``allowed``."""
    if value in allowed:
        return
    near = difflib.get_close_matches(str(value), allowed, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}{hint}")


def direction_signs(maximize: Maximize, d: int) -> FloatArray:
    """Return the factor (d,) that turns each objective into a minimised one: -1 where it is maximised."""
    flags = np.asarray(maximize)
    if flags.dtype != np.bool_:
        raise TypeError(f"maximize must be a bool or one bool per objective, got {maximize!r}")
    if flags.ndim > 1 or (flags.ndim == 1 and flags.shape[0] != d):
        raise ValueError(f"maximize must be a bool or have one entry per objective ({d}), got shape {flags.shape}")
    return np.where(np.broadcast_to(flags, (d,)), -1.0, 1.0)


def to_numpy(value: Any, name: str) -> NDArray[Any]:
    """Return ``value`` as a NumPy array without copying where possible; never a view that kernels write to."""
    if is_tensor(value):
        if value.device.type != "cpu":
            raise ValueError(f"{name} lives on {value.device}; pass a CPU tensor to this backend or function")
        if value.is_complex():
            raise TypeError(f"{name} must be real, got dtype {value.dtype}")
        tensor = value.detach()
        if tensor.dtype.is_floating_point and tensor.element_size() < 4:
            tensor = tensor.float()
        return np.asarray(tensor.resolve_neg().numpy())
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


@dataclass(frozen=True, slots=True)
class Batch:
    """Fronts ready for a kernel, and how to hand results back in the caller's form."""

    values: FloatArray
    """Minimised points (B, n, d), C-contiguous; absent rows are ``+inf``."""
    shape: tuple[int, ...]
    """The leading dimensions of the caller's array; ``()`` for one front."""
    signs: FloatArray
    """(d,) factors from the caller's orientation to minimisation."""
    present: BoolArray | None
    """(B, n) rows that count, or None when all do."""
    like: Any
    """The caller's tensor, or None for NumPy input."""
    energy: float
    """Sum of squares of the present values: infinite or tiny where kernels need ``conditioning``."""

    @property
    def dim(self) -> int:
        """Number of objectives."""
        return int(self.values.shape[2])

    def restore(self, result: NDArray[Any], trailing: tuple[int, ...] = ()) -> Any:
        """Reshape a kernel's result (B, ...) to the caller's batch shape and array type."""
        shaped = result.reshape(self.shape + trailing)
        if self.like is None:
            return shaped
        import torch

        tensor = torch.from_numpy(np.ascontiguousarray(shaped))
        if tensor.dtype == torch.float64 and self.like.dtype.is_floating_point:
            tensor = tensor.to(self.like.dtype)
        return tensor.to(self.like.device)

    def restore_scalar(self, result: FloatArray) -> Any:
        """Like ``restore`` for one number a front: a Python float for a single NumPy front."""
        if self.like is None and not self.shape:
            return float(result[0])
        return self.restore(result)

    def compact(self, b: int) -> tuple[FloatArray, IntArray | None]:
        """Return the present rows of front ``b`` and their indices (None when all rows are present)."""
        if self.present is None:
            return self.values[b], None
        rows = np.flatnonzero(self.present[b])
        return self.values[b][rows], rows


def read_points(
    Y: Points, maximize: Maximize, *, mask: Any = None, nan_policy: str = "raise", name: str = "Y"
) -> Batch:
    """Check and convert fronts of shape (..., n, d) or a list of fronts (n_i, d)."""
    check_choice("nan_policy", nan_policy, ("raise", "omit"))
    if isinstance(Y, (list, tuple)) and mask is None:
        Y, mask = _pad_ragged(Y)
    array = to_numpy(Y, name)
    if array.ndim < 2:
        raise ValueError(f"{name} must have shape (..., n, d), got shape {array.shape}; one point is [[...]]")
    n, d = array.shape[-2:]
    if d == 0:
        raise ValueError(f"{name} must have at least one objective, got shape {array.shape}")
    signs = direction_signs(maximize, d)
    if array.dtype == np.float32:
        _warn_if_unresolved(array, name)
    shape = array.shape[:-2]
    count = int(np.prod(shape, dtype=np.int64))
    values = np.ascontiguousarray((array * signs).reshape(count, n, d), dtype=np.float64)
    present = None if mask is None else _read_mask(mask, (*shape, n)).reshape(count, n)
    present, energy = _apply_nan_policy(values, present, nan_policy, name)
    return Batch(values, shape, signs, present, Y if is_tensor(Y) else None, energy)


def _pad_ragged(fronts: Sequence[Any]) -> tuple[Any, BoolArray | None]:
    """Stack fronts of different lengths with a mask; anything else passes through."""
    shapes = [getattr(front, "shape", None) for front in fronts]
    if not shapes or any(shape is None or len(shape) != 2 for shape in shapes):
        return fronts, None
    tensors = is_tensor(fronts[0])
    arrays = [to_numpy(front, "Y") for front in fronts]
    widths = {array.shape[1] for array in arrays}
    if len(widths) > 1:
        raise ValueError(f"fronts in a list must agree in the number of objectives, got shapes {shapes}")
    n = max(len(array) for array in arrays)
    dtype = np.result_type(*(array.dtype for array in arrays))
    padded = np.zeros((len(arrays), n, widths.pop()), dtype=dtype)
    mask = np.zeros((len(arrays), n), dtype=np.bool_)
    for i, array in enumerate(arrays):
        padded[i, : len(array)] = array
        mask[i, : len(array)] = True
    if not tensors:
        return padded, mask
    if any(front.requires_grad for front in fronts):
        raise ValueError("a list of tensors that require gradients: stack them and pass mask= instead")
    import torch

    return torch.from_numpy(padded), mask


def _read_mask(mask: Any, shape: tuple[int, ...]) -> BoolArray:
    array = np.asarray(mask.detach().cpu().numpy() if is_tensor(mask) else mask)
    if array.dtype != np.bool_:
        raise TypeError(f"mask must be boolean, got dtype {array.dtype}")
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ValueError(f"mask of shape {array.shape} does not broadcast to rows of shape {shape}") from None


def _warn_if_unresolved(array: NDArray[Any], name: str) -> None:
    finite = array[np.isfinite(array).all(axis=-1)]
    if len(finite) < 2:
        return
    spread = np.ptp(finite, axis=0)
    size = np.abs(finite).max(axis=0)
    if bool(((spread > 0) & (spread < FLOAT32_RESOLUTION * size)).any()):
        warnings.warn(
            f"{name} is float32 and an objective's range is below {FLOAT32_RESOLUTION:g} of its size: "
            "rounding before this call has already changed the answer; pass float64",
            RuntimeWarning,
            stacklevel=4,
        )


def sum_of_squares(values: FloatArray) -> float:
    """Return the sum of squares of a C-contiguous array: NaN exactly when it holds NaN, and one cheap pass."""
    flat = values.ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        return float(flat.dot(flat))


def _apply_nan_policy(
    values: FloatArray, present: BoolArray | None, nan_policy: str, name: str
) -> tuple[BoolArray | None, float]:
    """Put absent rows of ``values`` (ours, not the caller's) at ``+inf``."""
    if present is not None:
        values[~present] = 0.0
    energy = sum_of_squares(values)
    if np.isnan(energy):
        bad = np.isnan(values).any(axis=2)
        if nan_policy == "raise":
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} has NaN in {int(bad.sum())} row(s), the first at (front, row) = {where}; "
                "drop them or pass nan_policy='omit'"
            )
        present = np.asarray(~bad if present is None else present & ~bad)
        values[bad] = 0.0
        energy = sum_of_squares(values)
    if present is not None:
        values[~present] = np.inf
    return present, energy


def read_ref(ref: Any, batch: Batch, name: str = "ref") -> FloatArray:
    """Return minimised reference points: (1, d) when all fronts share one, else (B, d)."""
    array = to_numpy(ref, name)
    d = batch.dim
    if array.ndim > 0 and array.shape[-1] != d:
        raise ValueError(f"{name} of shape {array.shape} does not match points with {d} objectives")
    if array.ndim <= 1:
        refs = np.broadcast_to(array, (1, d)) * batch.signs
    else:
        try:
            full = np.broadcast_to(array, (*batch.shape, d))
        except ValueError:
            raise ValueError(f"{name} of shape {array.shape} does not broadcast to batch {batch.shape}") from None
        refs = full.reshape(-1, d) * batch.signs
    refs = np.ascontiguousarray(refs, dtype=np.float64)
    if np.isnan(refs).any():
        raise ValueError(f"{name} must not contain NaN, got {ref!r}")
    return refs
