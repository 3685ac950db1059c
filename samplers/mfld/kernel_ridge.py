"""Kernel ridge regression with everything tuned on a validation split: what feature learning is measured against."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from moopt.runs.errors import MooptError
from moopt.samplers.mfld.discrepancy import squared_distances
from moopt.samplers.mfld.network import read_rows

_RIDGES = tuple(10.0**p for p in range(-6, 3))
_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0)


class KernelBaseline:
    """Best of the two-layer ReLU neural tangent kernel and Gaussian kernels, kernel and ridge chosen by validation.

    Gaussian kernels are exp(-|x - x'|^2 / (b * s)) with s the mean squared norm of the inputs. After the
    choice the winner is refitted on all rows. Memory O(n^2), time O(n^3).

    Args:
        ridges: Candidates for the ridge per row, relative to the kernel's mean diagonal.
        bandwidths: Candidates for b.
        validation: Share of the rows held out for the choice.
        seed: Seed >= 0 of the split.

    Attributes:
        choice_: Dict with "kernel" ("ntk" or "rbf"), "bandwidth", "ridge" and "validation_mse".
        scores_: Validation mean squared error of each kernel at its best ridge.

    Examples:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(60, 3))
        >>> model = KernelBaseline().fit(X, X[:, 0])
        >>> bool(np.mean((model.predict(X) - X[:, 0]) ** 2) < 0.1)
        True
    """

    def __init__(
        self,
        *,
        ridges: Sequence[float] = _RIDGES,
        bandwidths: Sequence[float] = _BANDWIDTHS,
        validation: float = 0.2,
        seed: int = 0,
    ) -> None:
        if not ridges or min(ridges) <= 0 or not 0 < validation < 1 or (bandwidths and min(bandwidths) <= 0):
            raise MooptError("KernelBaseline needs ridges and bandwidths > 0 and a validation share in (0, 1)")
        self.ridges, self.bandwidths = tuple(ridges), tuple(bandwidths)
        self.validation, self.seed = validation, seed

    def fit(self, X: Any, y: Any) -> "KernelBaseline":
        """Choose on a split and fit on all rows.

        Args:
            X: Inputs (n, d), n >= 4.
            y: Targets (n,).

        Raises:
            MooptError: If shapes do not fit or values are not finite.
        """
        rows = read_rows(X, "X", torch.float64, "cpu")
        target = torch.from_numpy(np.array(y, dtype=np.float64))
        if rows.ndim != 2 or target.shape != rows.shape[:1] or len(rows) < 4 or not target.isfinite().all():
            raise MooptError(f"X must be (n >= 4, d) and y (n,) finite, got {tuple(rows.shape)}")
        n = len(rows)
        order = np.random.Generator(np.random.PCG64(self.seed)).permutation(n)
        held = max(1, round(self.validation * n))
        test, train = torch.from_numpy(order[:held]), torch.from_numpy(order[held:])
        self._size = float(rows.square().sum(dim=1).mean()) or 1.0
        best = (math.inf, "ntk", 0.0, self.ridges[0])
        self.scores_: dict[str, float] = {}
        for kernel, bandwidth in [("ntk", 0.0), *(("rbf", b) for b in self.bandwidths)]:
            gram = self._kernel(kernel, bandwidth, rows[train], rows[train])
            cross = self._kernel(kernel, bandwidth, rows[test], rows[train])
            scores = [
                float((cross @ coef - target[test]).square().mean())
                for coef in (_solve(gram, target[train], ridge) for ridge in self.ridges)
            ]
            score = min(scores)
            self.scores_[f"{kernel}" if kernel == "ntk" else f"rbf b={bandwidth:g}"] = score
            best = min(best, (score, kernel, bandwidth, self.ridges[scores.index(score)]))
        self.choice_ = {
            "kernel": best[1],
            "bandwidth": best[2],
            "ridge": best[3],
            "validation_mse": best[0],
        }
        self._rows = rows
        self._coef = _solve(self._kernel(best[1], best[2], rows, rows), target, best[3])
        return self

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return predictions (k,) for inputs (k, d)."""
        rows = read_rows(X, "X", torch.float64, "cpu")
        kernel, bandwidth = str(self.choice_["kernel"]), float(self.choice_["bandwidth"])  # type: ignore[arg-type]
        parts = [self._kernel(kernel, bandwidth, part, self._rows) @ self._coef for part in torch.split(rows, 2048)]
        return torch.cat(parts).numpy() if parts else np.empty(0)

    def _kernel(self, kernel: str, bandwidth: float, a: Tensor, b: Tensor) -> Tensor:
        if kernel == "rbf":
            return squared_distances(a, b).div_(-bandwidth * self._size).exp_()
        return arc_cosine_ntk(a, b)


def arc_cosine_ntk(a: Tensor, b: Tensor) -> Tensor:
    """Return the tangent kernel (n, k) of an infinitely wide two-layer ReLU network with bias, both layers trained."""
    a, b = (torch.cat([t, t.new_ones(len(t), 1)], dim=1) for t in (a, b))
    inner = a @ b.T
    norms: Tensor = torch.linalg.vector_norm(a, dim=1)[:, None] * torch.linalg.vector_norm(b, dim=1)
    cosine = (inner / norms).clamp(-1, 1)
    angle = torch.arccos(cosine)
    zeroth = (math.pi - angle) / math.pi
    first = (torch.sin(angle) + (math.pi - angle) * cosine) / math.pi
    return norms * first + inner * zeroth


def _solve(gram: Tensor, target: Tensor, ridge: float) -> Tensor:
    shift = ridge * float(gram.diagonal().mean())
    regular = gram.clone()
    regular.diagonal().add_(shift)
    factor, info = torch.linalg.cholesky_ex(regular)
    if int(info):
        return torch.zeros_like(target)  # not positive definite to rounding: predicts 0 and loses the choice
    return torch.cholesky_solve(target.unsqueeze(1), factor).squeeze(1)
