"""A soft hypervolume that is convex in the measure on decision space.

The hypervolume of a set Y above a reference point r is an average over directions of a best value
(Zhang and Golovin, ICML 2020),

    HV(Y) = c_m E_lam max_y h_lam(y),   h_lam(y) = min_k(max(0, y_k - r_k) / lam_k)^m,

with lam uniform on the positive part of the unit sphere and c_m = pi^(m/2) / (2^m Gamma(m/2 + 1)). With the
maximum replaced by a log-mean-exp over the measure,

    F(mu) = -c_m E_lam[ tau log integral exp(h_lam(f(x)) / tau) dmu(x) + eps integral h_lam(f(x)) dmu(x) ],

F is convex in mu (minus the log of a linear map), so its mean-field Langevin flow is one of the theory's.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from moopt.runs.errors import MooptError
from moopt.samplers.mfld.problem import MFLDProblem

_SMALLEST_DIRECTION = 1e-3
_VALUE_DIRECTIONS = 1024


def unit_constant(m: int) -> float:
    """Return c_m = pi^(m/2) / (2^m Gamma(m/2 + 1)): the hypervolume per mean scalarized best value."""
    return float(math.pi ** (m / 2) / (2**m * math.gamma(m / 2 + 1)))


def draw_directions(n: int, m: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Tensor:
    """Draw directions (n, m) uniformly on the positive part of the unit sphere."""
    z = torch.randn(n, m, generator=generator, dtype=dtype, device=generator.device).abs_()
    unit: Tensor = z / torch.linalg.vector_norm(z, dim=1, keepdim=True)
    return unit.clamp_min_(_SMALLEST_DIRECTION)


def scalarized(gains: Tensor, directions: Tensor) -> Tensor:
    """Return h_lam of gains y - r (..., n, m) in directions (l, m), shape (..., n, l).

    Below the reference point the minimum itself stands in place of its power, so that the slope survives.
    """
    ratio: Tensor = (gains.unsqueeze(-2) / directions).amin(dim=-1)
    power: Tensor = torch.pow(ratio.clamp_min(0.0), gains.shape[-1])
    return torch.where(ratio > 0, power, ratio)


class SoftHypervolume:
    """F(mu) of this module on particles in the unit cube, which the problem's bounds scale.

    Objectives are measured from the reference point in units of the best gain seen so far, so that ``tau``
    means the same for every problem. Every call evaluates the problem; ``n_evals`` and ``n_grads`` count the
    rows of forward and reverse passes.

    Args:
        problem: The problem.
        tau: Softness of the maximum, in units of the scaled hypervolume; may be changed between calls.
        eps: Share of the mean scalarization, which moves particles that are the best nowhere.
        n_directions: Directions per call of ``drift``, drawn anew each time.
        span: Units (m,) of the objectives; None adapts them.

    Raises:
        MooptError: If a number is out of range; from the calls, if the problem returns NaN or has no gradient.
    """

    convex = True
    n_data: int | None = None

    def __init__(
        self,
        problem: MFLDProblem,
        *,
        tau: float = 0.05,
        eps: float = 0.05,
        n_directions: int = 128,
        span: Any = None,
    ) -> None:
        if not (math.isfinite(tau) and tau > 0 and math.isfinite(eps) and eps >= 0 and n_directions >= 1):
            raise MooptError(f"needs tau > 0, eps >= 0, n_directions >= 1, got {tau}, {eps}, {n_directions}")
        self.problem = problem
        self.dim = problem.dim
        self.tau, self.eps, self.n_directions = tau, eps, n_directions
        self.adaptive = span is None
        self.span = None if span is None else torch.as_tensor(span, dtype=torch.float64)
        if self.span is not None and (self.span.shape != problem.ref_point.shape or not bool((self.span > 0).all())):
            raise MooptError(f"span must be {problem.n_obj} numbers > 0, got {span}")
        self.n_evals = self.n_grads = 0
        self.latest: Tensor | None = None
        """Objectives of the particles of the latest ``drift``, before they moved, (..., N, m)."""
        self._scores: Tensor | None = None

    def evaluate(self, W: Tensor) -> Tensor:
        """Return the objectives (..., N, m) of particles (..., N, d), larger is better."""
        Y = self.problem.evaluate(self.problem.scaled(W.reshape(-1, W.shape[-1])))
        self.n_evals += len(Y)
        if bool(torch.isnan(Y).any()):
            raise MooptError(f"the problem returned NaN at {int(torch.isnan(Y).any(dim=1).sum())} of {len(Y)} points")
        return Y.view(*W.shape[:-1], -1)

    def value(self, W: Tensor) -> Tensor:
        """Return F(mu_W), shape (...), over a fixed set of 1024 directions."""
        generator = torch.Generator(device=W.device).manual_seed(0)
        with torch.no_grad():
            Y = self.evaluate(W)
            lam = draw_directions(_VALUE_DIRECTIONS, self.problem.n_obj, generator, W.dtype)
            return self._functional(self._scalarized(Y, lam))

    def drift(self, W: Tensor, *, batch: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        """Return the gradient of the first variation at each particle, over fresh directions, shape of W.

        Entries that the problem's gradient leaves infinite or NaN are 0.
        """
        if batch is not None:
            raise MooptError("the soft hypervolume has no data to draw minibatches from; use gradient='full'")
        source = torch.Generator(device=W.device).manual_seed(0) if generator is None else generator
        lam = draw_directions(self.n_directions, self.problem.n_obj, source, W.dtype)
        with torch.enable_grad():
            leaf = W.detach().requires_grad_(True)
            Y = self.evaluate(leaf)
            if not Y.requires_grad:
                raise MooptError(
                    "the problem's objectives do not depend on its input by torch operations, so there is no gradient; "
                    "for black boxes use moopt.samplers.mfld.surrogate_problem"
                )
            h = self._scalarized(Y, lam)
            (grad,) = torch.autograd.grad(self._functional(h).sum(), leaf)
        self.n_grads += W.shape[:-1].numel()
        self.latest = Y.detach()
        # The logarithm keeps the order among particles whose shares are too small for a float.
        self._scores = -torch.logsumexp(torch.log_softmax(h.detach() / self.tau, dim=-2), dim=-1)
        return grad.mul_(W.shape[-2]).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    def first_variation(self, W: Tensor) -> Tensor:
        """Return dF/dmu at each particle, shape (..., N), over the directions of ``value``."""
        generator = torch.Generator(device=W.device).manual_seed(0)
        with torch.no_grad():
            lam = draw_directions(_VALUE_DIRECTIONS, self.problem.n_obj, generator, W.dtype)
            h = self._scalarized(self.evaluate(W), lam)
            share = torch.softmax(h / self.tau, dim=-2) * W.shape[-2]
            return -unit_constant(self.problem.n_obj) * (self.tau * share + self.eps * h).mean(dim=-1)

    def birth_scores(self) -> Tensor:
        """Return minus the log share of directions each particle serves, (..., N), as the latest ``drift`` saw it.

        It orders as the first variation without the ``eps`` part, before the particles moved, and costs no evaluation.
        """
        if self._scores is None:
            raise MooptError("birth_scores needs a call of drift before it")
        return self._scores

    def _functional(self, h: Tensor) -> Tensor:
        soft = self.tau * (torch.logsumexp(h / self.tau, dim=-2) - math.log(h.shape[-2]))
        return -unit_constant(self.problem.n_obj) * (soft.mean(dim=-1) + self.eps * h.mean(dim=(-2, -1)))

    def _scalarized(self, Y: Tensor, lam: Tensor) -> Tensor:
        gains = Y - self.problem.ref_point.to(Y)
        return scalarized(gains / self._units(gains.detach()).to(Y), lam)

    def _units(self, gains: Tensor) -> Tensor:
        flat = gains.reshape(-1, gains.shape[-1]).double()
        best = flat.amax(dim=0)
        if self.adaptive:
            self.span = best if self.span is None else torch.maximum(self.span, best)
        assert self.span is not None
        spread = best - flat.amin(dim=0)
        fallback = torch.where(spread > 0, spread, 1.0)
        return torch.where(self.span > 0, self.span, fallback)

    def state_dict(self) -> dict[str, Any]:
        """Return counters, units and the temperature of the maximum."""
        return {"n_evals": self.n_evals, "n_grads": self.n_grads, "span": self.span, "tau": self.tau}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what :meth:`state_dict` returned."""
        self.n_evals, self.n_grads = int(state["n_evals"]), int(state["n_grads"])
        self.span, self.tau = state["span"], float(state["tau"])
