"""Bayesian logistic regression: breast cancer built in, any other table by its path."""

import csv
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moopt.envs.targets.base import Target, positive
from moopt.runs.errors import MooptError

_TEST_SHARE = 0.2


class LogisticRegression(Target):
    """Posterior of the weights and the intercept of a logistic regression.

    Weights have the prior N(0, scale^2), the intercept N(intercept_mean, intercept_scale^2). Features are
    divided by their standard deviation, not centred. One row in five is held out for
    :meth:`log_predictive` (a fixed split). log Z and the mode masses are not known.

    Args:
        path: CSV file with numbers, the label (0 or 1) in the last column, with or without a header line.
            Default: the breast-cancer table of scikit-learn (569 rows, 30 features, d = 31).
        scale: Prior standard deviation of the weights.
        intercept_mean: Prior mean of the intercept.
        intercept_scale: Prior standard deviation of the intercept.

    Raises:
        MooptError: If the file cannot be read or is no such table.
    """

    def __init__(
        self,
        path: str | None = None,
        scale: float = 3.75,
        intercept_mean: float = 31.0,
        intercept_scale: float = 2.0,
    ) -> None:
        self.name = "logistic"
        features, labels = _breast_cancer() if path is None else _read_table(Path(path))
        deviation = features.std(axis=0, ddof=1)
        if not (deviation > 0).all():
            raise MooptError(f"feature {int((deviation <= 0).argmax())} is constant; remove the column")
        features = features / deviation
        order = np.random.Generator(np.random.PCG64(0)).permutation(len(features))
        held_out = order[: max(1, round(_TEST_SHARE * len(order)))]
        train = order[len(held_out) :]
        self._x, self._y = torch.from_numpy(features[train]), torch.from_numpy(labels[train])
        self._x_test, self._y_test = torch.from_numpy(features[held_out]), torch.from_numpy(labels[held_out])
        self.dim = features.shape[1] + 1
        self._scale = torch.full((self.dim,), positive("scale", scale), dtype=torch.float64)
        self._scale[-1] = positive("intercept_scale", intercept_scale)
        self._mean = torch.zeros(self.dim, dtype=torch.float64)
        self._mean[-1] = float(intercept_mean)
        self.modes = self._maximum()

    def log_prob(self, x: Tensor) -> Tensor:
        """Return log prior (normalised) + log likelihood (n,) of parameters (n, d): weights, intercept."""
        logits = x[:, :-1] @ self._x.to(x).T + x[:, -1:]
        likelihood = (self._y.to(x) * logits - torch.nn.functional.softplus(logits)).sum(-1)
        prior = torch.distributions.Normal(self._mean.to(x), self._scale.to(x), validate_args=False)
        result: Tensor = likelihood + prior.log_prob(x).sum(-1)  # type: ignore[no-untyped-call]
        return result

    def _maximum(self) -> Tensor:
        """Return the single maximum (1, d) by Newton's method; the log-posterior is strictly concave."""
        ones = torch.ones(len(self._x), 1, dtype=torch.float64)
        design = torch.cat([self._x, ones], -1)
        precision = self._scale**-2
        x = self._mean.clone()
        for _ in range(100):
            p = torch.sigmoid(design @ x)
            gradient = design.T @ (self._y - p) - precision * (x - self._mean)
            hessian = (design.T * (p * (1 - p))) @ design + torch.diag(precision)
            step = torch.linalg.solve(hessian, gradient)
            # Newton steps overshoot when the classes separate; halving them always helps.
            base = self.log_prob(x[None])
            while step.abs().max() > 1e-12 and bool(self.log_prob((x + step)[None]) < base):
                step = step / 2
            x = x + step
            if float(step.abs().max()) < 1e-9:
                break
        return x[None]

    def log_predictive(self, x: Tensor, log_weights: Tensor | None = None) -> float:
        """Return the mean log predictive density of the held-out rows, averaged over samples (n, d).

        Args:
            x: Samples of the posterior (n, d).
            log_weights: Unnormalised log-weights (n,); equal when None.
        """
        logits = x[:, :-1] @ self._x_test.to(x).T + x[:, -1:]
        y = self._y_test.to(x)
        each = y * logits - torch.nn.functional.softplus(logits)
        weights = torch.zeros(len(x)).to(x) if log_weights is None else log_weights.to(x)
        return float(torch.logsumexp(each + torch.log_softmax(weights, 0)[:, None], 0).mean())


def _breast_cancer() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return np.asarray(data.data, dtype=np.float64), np.asarray(data.target, dtype=np.float64)


def _read_table(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            rows = [row for row in csv.reader(handle) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise MooptError(f"cannot read the table {path}: {error}") from error
    if rows and not _numbers(rows[0]):
        rows = rows[1:]
    if len(rows) < 5 or len({len(r) for r in rows}) != 1 or len(rows[0]) < 2:
        raise MooptError(f"the table {path} needs at least 5 rows of equal length and 2 columns")
    if not all(_numbers(r) for r in rows):
        raise MooptError(f"the table {path} holds something that is no number")
    table = np.array(rows, dtype=np.float64)
    if not np.isfinite(table).all() or not np.isin(table[:, -1], (0, 1)).all():
        raise MooptError(f"the table {path} needs finite numbers and labels 0 or 1 in the last column")
    return table[:, :-1], table[:, -1]


def _numbers(row: list[str]) -> bool:
    try:
        [float(cell) for cell in row]
    except ValueError:
        return False
    return True
