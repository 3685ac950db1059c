"""How the integrator gets its drift: all rows, a minibatch, SVRG; and Adam on top."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from moopt.runs.errors import MooptError, did_you_mean
from moopt.samplers.mfld.functional import MeasureFunctional

_KINDS = ("full", "minibatch", "svrg")


class GradientEstimator:
    """Estimate of a functional's drift.

    SVRG returns g_B(W) - g_B(W~) + g(W~) with a snapshot W~ that is renewed every ``snapshot_every`` steps,
    each with the outputs of its own particles: unbiased, and exact at the snapshot.

    Args:
        functional: Whose drift.
        kind: "full", "minibatch" or "svrg".
        batch_size: Rows per minibatch, drawn uniformly with replacement.
        snapshot_every: Steps between snapshots.

    Raises:
        MooptError: If the kind is unknown, or needs data that the functional has not.
    """

    def __init__(self, functional: MeasureFunctional, kind: str, batch_size: int, snapshot_every: int) -> None:
        if kind not in _KINDS:
            raise MooptError(f"unknown gradient {kind!r}{did_you_mean(kind, _KINDS)}")
        if kind != "full" and functional.n_data is None:
            raise MooptError(
                f"gradient={kind!r} needs a functional with data; {type(functional).__name__} has none: "
                "use gradient='full'"
            )
        self.functional, self.kind = functional, kind
        self.batch_size, self.snapshot_every = batch_size, snapshot_every
        self.snapshot: Tensor | None = None
        self.snapshot_drift: Tensor | None = None

    def __call__(self, W: Tensor, step: int, generator: torch.Generator) -> Tensor:
        """Return the drift at W (..., N, D); a buffer that the next call may overwrite."""
        if self.kind == "full":
            return self.functional.drift(W, generator=generator)
        if self.kind == "svrg" and (self.snapshot is None or step % self.snapshot_every == 0):
            self.snapshot = W.clone()
            self.snapshot_drift = self.functional.drift(W).clone()
            return self.snapshot_drift
        assert self.functional.n_data is not None
        shape = (*W.shape[:-2], self.batch_size)
        batch = torch.randint(self.functional.n_data, shape, generator=generator, device=W.device)
        if self.kind == "minibatch":
            return self.functional.drift(W, batch=batch)
        assert self.snapshot is not None
        assert self.snapshot_drift is not None
        old = self.functional.drift(self.snapshot, batch=batch).clone()
        return self.functional.drift(W, batch=batch).sub_(old).add_(self.snapshot_drift)

    def state_dict(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {"snapshot": self.snapshot, "drift": self.snapshot_drift}

    def load_state_dict(self, state: Mapping[str, Any], like: Tensor) -> None:
        """Take back what :meth:`state_dict` returned."""
        self.snapshot = None if state["snapshot"] is None else state["snapshot"].to(like)
        self.snapshot_drift = None if state["drift"] is None else state["drift"].to(like)


class Adam:
    """Adam's direction for the drift, without the noise.

    Args:
        betas: Decay of the two moments.
        eps: Added to the root of the second.
    """

    def __init__(self, betas: tuple[float, float] = (0.9, 0.99), eps: float = 1e-6) -> None:
        self.betas, self.eps = betas, eps
        self.first: Tensor | None = None
        self.second: Tensor | None = None
        self.count = 0

    def __call__(self, drift: Tensor) -> Tensor:
        """Return the preconditioned drift, same shape."""
        if self.first is None or self.second is None:
            self.first, self.second = torch.zeros_like(drift), torch.zeros_like(drift)
        self.count += 1
        a, b = self.betas
        self.first.lerp_(drift, 1 - a)
        self.second.mul_(b).addcmul_(drift, drift, value=1 - b)
        scale = (self.second / (1 - b**self.count)).sqrt_().add_(self.eps)
        return (self.first / (1 - a**self.count)).div_(scale)

    def move(self, dead: Tensor, born: Tensor) -> None:
        """Give the particles ``dead`` the moments of the particles ``born`` (index tensors (k,))."""
        for moment in (self.first, self.second):
            if moment is not None:
                moment[dead] = moment[born]

    def state_dict(self) -> dict[str, Any]:
        """Return the moments."""
        return {"first": self.first, "second": self.second, "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any], like: Tensor) -> None:
        """Take back what :meth:`state_dict` returned."""
        self.first = None if state["first"] is None else state["first"].to(like)
        self.second = None if state["second"] is None else state["second"].to(like)
        self.count = int(state["count"])
