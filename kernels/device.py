"""The input rules of ``inputs`` for tensors that stay on their device."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from moopt.kernels.inputs import Maximize, check_choice, direction_signs


def read_tensor(
    Y: Tensor, maximize: Maximize, *, mask: Any = None, nan_policy: str = "raise", dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor | None]:
    """Return minimised fronts (..., n, d) and the rows present (None for all), keeping the graph and the device."""
    check_choice("nan_policy", nan_policy, ("raise", "omit"))
    if Y.is_complex() or Y.dtype == torch.bool:
        raise TypeError(f"Y must hold real numbers, got dtype {Y.dtype}")
    if Y.ndim < 2:
        raise ValueError(f"Y must have shape (..., n, d), got shape {tuple(Y.shape)}; one point is [[...]]")
    d = Y.shape[-1]
    signs = torch.as_tensor(direction_signs(maximize, d), device=Y.device, dtype=dtype)
    points = Y.to(dtype) * signs
    present = None
    if mask is not None:
        present = torch.as_tensor(np.asarray(mask) if not isinstance(mask, Tensor) else mask, device=Y.device)
        if present.dtype != torch.bool:
            raise TypeError(f"mask must be boolean, got dtype {present.dtype}")
        present = present.expand(Y.shape[:-1])
        points = torch.where(present.unsqueeze(-1), points, torch.inf)
    bad = points.detach().isnan().any(-1)
    if bool(bad.any()):
        if nan_policy == "raise":
            raise ValueError(f"Y has NaN in {int(bad.sum())} row(s); drop them or pass nan_policy='omit'")
        present = ~bad if present is None else present & ~bad
        points = torch.where(bad.unsqueeze(-1), torch.inf, points)
    return points, present


def read_ref_tensor(ref: Any, points: Tensor, maximize: Maximize) -> Tensor:
    """Return minimised reference points that broadcast to (..., d), keeping the graph of a tensor ``ref``."""
    d = points.shape[-1]
    tensor = torch.as_tensor(ref if isinstance(ref, Tensor) else np.asarray(ref), device=points.device).to(points.dtype)
    if tensor.ndim > 0 and tensor.shape[-1] != d:
        raise ValueError(f"ref of shape {tuple(tensor.shape)} does not match points with {d} objectives")
    if bool(tensor.detach().isnan().any()):
        raise ValueError(f"ref must not contain NaN, got {ref!r}")
    signs = torch.as_tensor(direction_signs(maximize, d), device=points.device, dtype=points.dtype)
    return tensor * signs
