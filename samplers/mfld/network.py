"""Two-layer networks as functionals of the measure on first-layer weights, with closed-form drifts.

The network is a mean over particles with fixed output signs,

    f_W(x) = scale / N * sum_j s_j phi(<w_j, [x, 1]>),

and F(mu) = 1/n sum_i loss(f(x_i), y_i). One pass over the rows gives the drift with two matrix products:
a row's residual needs only that row, so rows are taken in chunks that stay in the cache.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from moopt.runs.errors import MooptError
from moopt.samplers.mfld.activations import Activation, as_activation
from moopt.samplers.mfld.losses import LogisticLoss, Loss, SoftmaxLoss, regression_loss

# What a (rows x particles) buffer may take: the cache of one core, or enough to fill a GPU.
_CPU_BYTES = 2**20
_CUDA_BYTES = 2**28
# Shapes whose buffers are kept: particles on all rows, on minibatches, on a validation set.
_MAX_PLANS = 4


class TwoLayerNetwork:
    """Mean-field two-layer network on data; the base of the regression and classification functionals.

    With q outputs the particles fall into q equal groups, one per output, each with signs + and - and an
    amplitude sqrt(q) that gives every output the tangent kernel of a scalar network.

    Args:
        X: Inputs (n, d), or (E, n, d) with own data per ensemble member.
        target: Targets (q, n) or (E, q, n), as the loss wants them.
        loss: Loss of the outputs.
        activation: "relu", "tanh", "sclip", or an activation object.
        scale: Output scale, a number or one per member (E,). Larger is lazier: less feature learning.
        bias: Append the constant 1 to the inputs.
        dtype: Floating type of data, particles and buffers.
        device: Where the data and the particles live.
        memory_budget: Bytes of the (rows x particles) buffer; rows are taken in chunks that fit. Default
            1 MiB on a CPU, 256 MiB on a GPU.

    Raises:
        MooptError: If shapes do not fit, there are no rows, values are not finite or the scale is not > 0.
    """

    convex = True

    def __init__(
        self,
        X: Any,
        target: Tensor,
        *,
        loss: Loss,
        activation: str | Activation = "relu",
        scale: float | Sequence[float] = 1.0,
        bias: bool = True,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        memory_budget: int | None = None,
    ) -> None:
        self.activation = as_activation(activation)
        self.loss = loss
        self.bias = bias
        self.X = _with_bias(read_rows(X, "X", dtype, device), bias)
        self.target = target.to(device=self.X.device, dtype=dtype)
        if self.target.shape[-1] != self.X.shape[-2]:
            raise MooptError(f"X has {self.X.shape[-2]} rows and y {self.target.shape[-1]}")
        if self.X.shape[-2] == 0:
            raise MooptError("X has no rows")
        self.n_outputs = int(self.target.shape[-2])
        self.n_data: int | None = int(self.X.shape[-2])
        self.scale = _read_scale(scale, self.X)
        default = _CUDA_BYTES if self.X.device.type == "cuda" else _CPU_BYTES
        self.memory_budget = default if memory_budget is None else memory_budget
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    @property
    def dim(self) -> int:
        """Size D of a particle: inputs, and one for the bias."""
        return int(self.X.shape[-1])

    def forward(self, W: Tensor, X: Any = None) -> Tensor:
        """Return the network's outputs.

        Args:
            W: Particles (..., N, D).
            X: Inputs (k, d) without the bias column; None for the data's own.

        Returns:
            Outputs (..., k), or (..., k, q) with several.
        """
        rows = self.X if X is None else _with_bias(read_rows(X, "X", W.dtype, W.device), self.bias)
        if rows.shape[-1] != W.shape[-1]:
            raise MooptError(f"X has {rows.shape[-1] - self.bias} columns, the particles {W.shape[-1]}")
        groups, plan = self._groups(W), self._plan(W, rows.shape[-2])
        parts = [self._outputs(rows[..., c.start : c.stop, :], groups, c, plan).clone() for c in plan.chunks]
        out = torch.cat(parts, dim=-1) if parts else rows.new_empty((*W.shape[:-2], self.n_outputs, 0))
        return out.squeeze(-2) if self.n_outputs == 1 else out.transpose(-1, -2)

    def value(self, W: Tensor) -> Tensor:
        """Return the mean loss, shape (...)."""
        groups, plan = self._groups(W), self._plan(W, self.X.shape[-2])
        total = W.new_zeros(W.shape[:-2])
        for c in plan.chunks:
            out = self._outputs(self.X[..., c.start : c.stop, :], groups, c, plan)
            total = total + self.loss.value(out, self.target[..., c.start : c.stop])
        return total / self.X.shape[-2]

    def drift(self, W: Tensor, *, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Return the gradient of the first variation at each particle, in a buffer that is used again.

        Args:
            W: Particles (..., N, D).
            batch: Row indices (b,), or (..., b) per member; every particle sees them, so the estimate is
                unbiased.
            generator: Not used.
        """
        groups = self._groups(W)
        X, target = self._rows(batch, W.shape[:-2])
        plan = self._plan(W, X.shape[-2])
        grad = plan.grad
        for c in plan.chunks:
            rows = X[..., c.start : c.stop, :]
            out = self._outputs(rows, groups, c, plan)
            residual = self.loss.residual_(out, target[..., c.start : c.stop])
            slope = self.activation.slope_(c.z, c.spare)
            keep = 0.0 if c.start == 0 else 1.0
            if plan.blocks == 1:
                torch.mul(rows.view(c.weighted.shape), residual.view(-1, 1), out=c.weighted)
                torch.addmm(grad, c.weighted.T, slope, beta=keep, out=grad)
            else:
                torch.mul(_spread(rows, plan.blocks), residual.view(*c.weighted.shape[:2], 1), out=c.weighted)
                torch.baddbmm(grad, c.weighted.transpose(1, 2), slope, beta=keep, out=grad)
        torch.mul(grad.transpose(-1, -2), plan.factor, out=plan.result)
        result = plan.result.view(W.shape)
        return result if isinstance(self.scale, float) else result.mul_(self._per_member(3))

    def first_variation(self, W: Tensor) -> Tensor:
        """Return 1/n sum_i loss'(f(x_i)) psi(x_i; w_j) at each particle, shape (..., N)."""
        groups, plan = self._groups(W), self._plan(W, self.X.shape[-2])
        total = W.new_zeros((plan.blocks, plan.weights.shape[0]))
        for c in plan.chunks:
            out = self._outputs(self.X[..., c.start : c.stop, :], groups, c, plan)
            residual = self.loss.residual_(out, self.target[..., c.start : c.stop])
            phi = c.z.view(plan.blocks, c.stop - c.start, -1)
            total += torch.bmm(residual.reshape(plan.blocks, 1, -1), phi).squeeze(1)
        total = (total * plan.factor.squeeze(-1)).view(W.shape[:-1])
        return total if isinstance(self.scale, float) else total * self._per_member(2)

    def stable_step(self) -> float:
        """Return the largest step size that the linearised squared-loss dynamics bears, 2 / (scale^2 lambda_max).

        lambda_max is the top eigenvalue of the inputs' second-moment matrix (slope of phi at most 1). With
        one scale per member it is that of the largest.
        """
        X = self.X.reshape(-1, self.X.shape[-1])
        vector = X.new_ones(X.shape[-1]) / math.sqrt(X.shape[-1])
        top = X.new_zeros(())
        for _ in range(30):
            image = X.T @ (X @ vector) / X.shape[0]
            top = torch.linalg.vector_norm(image)
            vector = image / top.clamp_min(1e-30)
        scale = self.scale if isinstance(self.scale, float) else float(self.scale.max())
        return 2.0 / (scale**2 * max(float(top), 1e-12))

    # ------------------------------------------------------------------------------------- inside
    def _groups(self, W: Tensor) -> Tensor:
        """View particles (..., N, D) as (B, N / q, D): one block per member and output; (N, D) if there is but one."""
        if W.ndim < 2 or W.shape[-1] != self.dim:
            raise MooptError(f"particles must be (..., N, {self.dim}), got shape {tuple(W.shape)}")
        if W.shape[-2] % self.n_outputs:
            raise MooptError(f"{W.shape[-2]} particles do not divide over {self.n_outputs} outputs")
        if self.X.ndim == 3 and W.shape[:-2] != self.X.shape[:1]:
            raise MooptError(f"data for {self.X.shape[0]} members, particles of shape {tuple(W.shape)}")
        if isinstance(self.scale, Tensor) and W.shape[:-2] != self.scale.shape:
            raise MooptError(f"{self.scale.numel()} scales, particles of shape {tuple(W.shape)}")
        blocks = math.prod(W.shape[:-2]) * self.n_outputs
        shape = (-1, W.shape[-1]) if blocks == 1 else (blocks, -1, W.shape[-1])
        return W.detach().reshape(shape)

    def _plan(self, W: Tensor, n_rows: int) -> "_Plan":
        key = (W.shape, n_rows, W.dtype, W.device, self.memory_budget)
        if key not in self._plans:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[key] = self._make_plan(W, n_rows)
        return self._plans[key]

    def _make_plan(self, W: Tensor, n_rows: int) -> "_Plan":
        blocks = math.prod(W.shape[:-2]) * self.n_outputs
        n, dim = W.shape[-2:]
        per_group = n // self.n_outputs
        width = blocks * per_group * W.element_size()
        rows = max(min(n_rows, 16), min(n_rows, self.memory_budget // width))
        # Even chunks: a short last one costs as many calls as a full one.
        count = math.ceil(n_rows / rows) if n_rows else 0
        edges = [n_rows * i // count for i in range(count + 1)] if count else [0]
        most = max((b - a for a, b in itertools.pairwise(edges)), default=0)
        lead = () if blocks == 1 else (blocks,)
        z = W.new_empty(most * blocks * per_group)
        spare = torch.empty_like(z) if self.activation.needs_spare else z
        flat, weighted = W.new_empty(most * blocks), W.new_empty(most * blocks * dim)
        chunks = []
        for a, b in itertools.pairwise(edges):
            size, shape = (b - a) * blocks, (*lead, b - a, per_group)
            out = flat[:size]
            chunks.append(
                _Chunk(
                    start=a,
                    stop=b,
                    z=z[: size * per_group].view(shape),
                    spare=spare[: size * per_group].view(shape),
                    flat=out,
                    out=out.view(*W.shape[:-2], self.n_outputs, b - a),
                    weighted=weighted[: size * dim].view(*lead, b - a, dim),
                )
            )
        # A scale per member does not fit into the shared weights and is applied apart.
        amplitude = math.sqrt(self.n_outputs) * (self.scale if isinstance(self.scale, float) else 1.0)
        signs = output_signs(per_group).to(W)
        return _Plan(
            blocks=blocks,
            chunks=chunks,
            weights=signs * (amplitude / n),
            factor=(signs * (amplitude / max(1, n_rows))).unsqueeze(-1),
            grad=W.new_empty((*lead, dim, per_group)),
            result=W.new_empty((*lead, per_group, dim)),
        )

    def _outputs(self, rows: Tensor, groups: Tensor, chunk: "_Chunk", plan: "_Plan") -> Tensor:
        """Return outputs (..., q, c), leaving the activations in the chunk's buffer."""
        if plan.blocks == 1:
            torch.mm(rows.view(chunk.weighted.shape), groups.T, out=chunk.z)
        else:
            torch.bmm(_spread(rows, plan.blocks), groups.transpose(1, 2), out=chunk.z)
        phi = self.activation.value_(chunk.z, chunk.spare)
        torch.mv(phi.view(len(chunk.flat), -1), plan.weights, out=chunk.flat)
        return chunk.out if isinstance(self.scale, float) else chunk.out.mul_(self._per_member(3))

    def _rows(self, batch: Tensor | None, lead: torch.Size) -> tuple[Tensor, Tensor]:
        if batch is None:
            return self.X, self.target
        if batch.ndim == 1 and self.X.ndim == 2:
            return self.X[batch], self.target[..., batch]
        members = math.prod(lead)
        index = batch.expand(members, batch.shape[-1]).reshape(members, -1)
        pick = torch.arange(members, device=self.X.device).unsqueeze(-1)
        X = self.X[index] if self.X.ndim == 2 else self.X[pick, index]
        target = self.target.expand(members, *self.target.shape[-2:])
        return X, torch.gather(target, -1, index.unsqueeze(1).expand(-1, target.shape[1], -1))

    def _per_member(self, ndim: int) -> Tensor:
        assert isinstance(self.scale, Tensor)
        return self.scale.view(-1, *([1] * (ndim - 1)))


@dataclass(frozen=True)
class _Chunk:
    """Buffers for the rows start..stop, laid out once."""

    start: int
    stop: int
    z: Tensor
    spare: Tensor
    flat: Tensor
    out: Tensor
    weighted: Tensor


@dataclass(frozen=True)
class _Plan:
    """How one particle shape walks through the rows."""

    blocks: int
    chunks: list[_Chunk]
    weights: Tensor
    factor: Tensor
    grad: Tensor
    """Transposed: the product is faster this way round."""
    result: Tensor


def _spread(rows: Tensor, blocks: int) -> Tensor:
    if rows.ndim == 2:
        return rows.expand(blocks, *rows.shape)
    members, count, dim = rows.shape
    return rows.unsqueeze(1).expand(members, blocks // members, count, dim).reshape(blocks, count, dim)


class TwoLayerRegression(TwoLayerNetwork):
    """Regression with a two-layer network.

    Args:
        X: Inputs (n, d), or (E, n, d) with own data per member.
        y: Targets (n,) or (n, q); with own data per member (E, n) or (E, n, q).
        loss: "squared" (half the squared error), "huber", or a loss object.
        **kwargs: As for :class:`TwoLayerNetwork`.

    Raises:
        MooptError: As for :class:`TwoLayerNetwork`, or if y has a wrong shape.
    """

    def __init__(self, X: Any, y: Any, *, loss: str | Loss = "squared", **kwargs: Any) -> None:
        rows = read_rows(X, "X", torch.float64, "cpu")
        target = _read_values(y, "y", torch.float64, "cpu")
        lead = rows.ndim - 2
        if target.ndim == lead + 1:
            target = target.unsqueeze(-1)
        if target.ndim != lead + 2 or target.shape[:-1] != rows.shape[:-1]:
            raise MooptError(f"y of shape {tuple(target.shape)} does not fit X of shape {tuple(rows.shape)}")
        super().__init__(X, target.transpose(-1, -2), loss=regression_loss(loss), **kwargs)


class TwoLayerClassification(TwoLayerNetwork):
    """Classification with a two-layer network: logistic loss for two classes, cross-entropy for more.

    Args:
        X: Inputs (n, d).
        labels: Class numbers (n,), 0 to n_classes - 1.
        n_classes: Number of classes, at least 2.
        **kwargs: As for :class:`TwoLayerNetwork`.

    Raises:
        MooptError: As for :class:`TwoLayerNetwork`, or if the labels are out of range.
    """

    def __init__(self, X: Any, labels: Any, *, n_classes: int = 2, **kwargs: Any) -> None:
        index = torch.as_tensor(labels if isinstance(labels, Tensor) else np.asarray(labels)).to(torch.int64)
        if n_classes < 2 or index.ndim != 1 or bool(((index < 0) | (index >= n_classes)).any()):
            raise MooptError(f"labels must be (n,) whole numbers in 0..{n_classes - 1}, n_classes >= 2")
        self.n_classes = n_classes
        if n_classes == 2:
            target, loss = index.to(torch.float64).mul(2).sub(1).unsqueeze(0), LogisticLoss()
        else:
            target = torch.nn.functional.one_hot(index, n_classes).T.to(torch.float64)
            loss = SoftmaxLoss()  # type: ignore[assignment]
        super().__init__(X, target, loss=loss, **kwargs)


def network_output(
    W: Tensor, X: Any, *, activation: str | Activation, scale: float, n_outputs: int = 1, bias: bool = True
) -> Tensor:
    """Return the outputs of trained particles in double precision, on the CPU.

    Args:
        W: Particles (N, D).
        X: Inputs (k, d) without the bias column.
        activation: As in training.
        scale: As in training.
        n_outputs: Number q of outputs.
        bias: As in training.

    Returns:
        (k,), or (k, q) with several outputs.

    Raises:
        MooptError: If X is not finite (k, d).
    """
    phi = as_activation(activation)
    weights = W.detach().cpu().double().reshape(n_outputs, -1, W.shape[-1])
    rows = _with_bias(read_rows(X, "X", torch.float64, "cpu"), bias)
    signs = output_signs(weights.shape[1]).mul_(scale * math.sqrt(n_outputs) / W.shape[-2])
    parts = [phi(part @ weights.transpose(1, 2)) @ signs for part in torch.split(rows, 1024)]
    out = torch.cat(parts, dim=-1)
    return out[0] if n_outputs == 1 else out.T


def output_signs(n: int) -> Tensor:
    """Return the fixed output signs of n particles, double precision: + for the first half, - for the second."""
    signs = torch.ones(n, dtype=torch.float64)
    signs[(n + 1) // 2 :] = -1
    return signs


def read_rows(X: Any, name: str, dtype: torch.dtype, device: str | torch.device) -> Tensor:
    """Return inputs as a finite tensor (n, d) or (E, n, d).

    Raises:
        MooptError: If the shape is another or a value is not finite.
    """
    rows = _read_values(X, name, dtype, device)
    if rows.ndim not in (2, 3):
        raise MooptError(f"{name} must be (n, d) or (E, n, d), got shape {tuple(rows.shape)}")
    return rows


def _read_values(values: Any, name: str, dtype: torch.dtype, device: str | torch.device) -> Tensor:
    tensor = values.detach() if isinstance(values, Tensor) else torch.from_numpy(np.array(values, np.float64))
    tensor = tensor.to(dtype=dtype, device=device)
    if not bool(torch.isfinite(tensor).all()):
        bad = int((~torch.isfinite(tensor)).sum())
        raise MooptError(f"{name} has {bad} values that are NaN, infinite or too large for {dtype}")
    return tensor


def _with_bias(X: Tensor, bias: bool) -> Tensor:
    return torch.cat([X, X.new_ones((*X.shape[:-1], 1))], dim=-1) if bias else X.contiguous()


def _read_scale(scale: float | Sequence[float] | Tensor, like: Tensor) -> float | Tensor:
    values = torch.as_tensor(scale, dtype=torch.float64)
    if values.ndim > 1 or not bool((torch.isfinite(values) & (values > 0)).all()):
        raise MooptError(f"scale must be a number > 0, or one per member, got {scale}")
    return float(values) if values.ndim == 0 else values.to(like)
