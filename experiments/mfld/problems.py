"""Test problems as torch functions, minimised: what BoTorch lacks (ZDT4, WFG4, WFG9), and the table of all.

Sources: Zitzler, Deb, Thiele 2000 (ZDT); Huband, Hingston, Barone, While 2006 (WFG).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from botorch.test_functions.multi_objective import DTLZ2, ZDT1, ZDT2, ZDT3
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """A minimised problem."""

    f: Callable[[Tensor], Tensor]
    bounds: list[tuple[float, float]]
    ref_point: list[float]


def zdt4(x: Tensor) -> Tensor:
    """ZDT4: 21^9 local fronts in 10 variables."""
    f, u = x[:, 0], x[:, 1:]
    g = 1 + 10 * u.shape[1] + (u.square() - 10 * torch.cos(4 * math.pi * u)).sum(1)
    return torch.stack([f, g * (1 - torch.sqrt(f / g))], dim=1)


def _multi(y: Tensor, a: float, b: float, c: float) -> Tensor:
    far = (y - c).abs() / (2 * (torch.floor(c - y) + c))
    return (1 + torch.cos((4 * a + 2) * math.pi * (0.5 - far)) + 4 * b * far.square()) / (b + 2)


def _deceptive(y: Tensor, a: float, b: float, c: float) -> Tensor:
    left = torch.floor(y - a + b) * (1 - c + (a - b) / b) / (a - b)
    right = torch.floor(a + b - y) * (1 - c + (1 - a - b) / b) / (1 - a - b)
    return 1 + ((y - a).abs() - b) * (left + right + 1 / b)


def _depends(y: Tensor, u: Tensor, a: float, b: float, c: float) -> Tensor:
    v = a - (1 - 2 * u) * (torch.floor(0.5 - u) + a).abs()
    return y.clamp_min(1e-12) ** (b + (c - b) * v)


def _nonseparable(y: Tensor, a: int) -> Tensor:
    n = y.shape[1]
    total = y.sum(1)
    for k in range(a - 1):
        total = total + (y - torch.roll(y, -(k + 1), dims=1)).abs().sum(1)
    half = math.ceil(a / 2)
    return total / (n / a * half * (1 + 2 * a - 2 * half))


def _wfg(t: list[Tensor]) -> Tensor:
    """Return the concave front's objectives of position values t[:-1] and distance t[-1]."""
    m, distance = len(t), t[-1]
    columns = []
    for i in range(m):
        h = torch.ones_like(distance)
        for x in t[: m - 1 - i]:
            h = h * torch.sin(x * math.pi / 2)
        if i:
            h = h * torch.cos(t[m - 1 - i] * math.pi / 2)
        columns.append(distance + 2 * (i + 1) * h)
    return torch.stack(columns, dim=1)


def _wfg_unit(z: Tensor) -> Tensor:
    return z / (2 * torch.arange(1, z.shape[1] + 1, dtype=z.dtype))


def wfg4(z: Tensor, k: int = 4) -> Tensor:
    """WFG4 with two objectives: every variable has many local optima."""
    y = _multi(_wfg_unit(z), 30, 10, 0.35)
    return _wfg([y[:, :k].mean(1), y[:, k:].mean(1)])


def wfg9(z: Tensor, k: int = 4) -> Tensor:
    """WFG9 with two objectives: biased, deceptive, multimodal and not separable."""
    y = _wfg_unit(z)
    n = y.shape[1]
    after = (y.flip(1).cumsum(1).flip(1) - y)[:, :-1] / torch.arange(n - 1, 0, -1, dtype=y.dtype)
    y = torch.cat([_depends(y[:, :-1], after, 0.98 / 49.98, 0.02, 50), y[:, -1:]], dim=1)
    y = torch.cat([_deceptive(y[:, :k], 0.35, 0.001, 0.05), _multi(y[:, k:], 30, 95, 0.35)], dim=1)
    return _wfg([_nonseparable(y[:, :k], k), _nonseparable(y[:, k:], n - k)])


_UNIT, _WFG = [(0.0, 1.0)], [(0.0, 2.0 * (i + 1)) for i in range(24)]
CASES = {
    "ZDT1": Case(ZDT1(30).evaluate_true, _UNIT * 30, [1.1, 1.1]),
    "ZDT2": Case(ZDT2(30).evaluate_true, _UNIT * 30, [1.1, 1.1]),
    "ZDT3": Case(ZDT3(30).evaluate_true, _UNIT * 30, [1.1, 1.1]),
    "DTLZ2": Case(DTLZ2(12, 3).evaluate_true, _UNIT * 12, [1.1, 1.1, 1.1]),
    "WFG4": Case(wfg4, _WFG, [2.2, 4.4]),
    "WFG9": Case(wfg9, _WFG, [2.2, 4.4]),
    "ZDT4": Case(zdt4, _UNIT + [(-5.0, 5.0)] * 9, [1.1, 1.1]),
}
