"""What to look at: subspace alignment, effective dimension, dead units, distance from stationarity, entropy."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from moopt.runs.errors import MooptError
from moopt.samplers.mfld.discrepancy import RadialKernel, median_bandwidth, squared_distances, stein_matrix
from moopt.samplers.mfld.network import read_rows

if TYPE_CHECKING:
    from moopt.samplers.mfld.langevin import MeanFieldLangevin

_ENTROPY_MAX_DIM = 10


def alignment(particles: Tensor, basis: Any) -> Tensor:
    """Return the share of the particles' squared length that lies in a subspace, shape (...).

    Args:
        particles: (..., N, D); coordinates beyond the basis, such as the bias, are left out.
        basis: Spanning vectors (k, d), d <= D. They need not be orthonormal.

    Returns:
        Between 0 and 1; chance is k / d.

    Raises:
        MooptError: If the basis has no rows, dependent rows or more columns than the particles.
    """
    rows = read_rows(basis, "basis", torch.float64, particles.device)
    k, d = rows.shape[-2:]
    if rows.ndim != 2 or k == 0 or d > particles.shape[-1]:
        raise MooptError(f"basis must be (k, d) with d <= {particles.shape[-1]}, got {tuple(rows.shape)}")
    span, triangle = torch.linalg.qr(rows.T)
    if k > d or bool((triangle.diagonal().abs() < 1e-10 * triangle.abs().max()).any()):
        raise MooptError("basis has linearly dependent rows")
    weights = particles[..., :d].double()
    inside: Tensor = (weights @ span).square().sum(dim=(-2, -1))
    return inside / weights.square().sum(dim=(-2, -1)).clamp_min(1e-300)


def subspace(particles: Tensor, k: int, n_inputs: int | None = None) -> Tensor:
    """Return the k directions of input space that hold most of the particles' squared length, (k, n_inputs).

    They are the top right singular vectors of W[:, :n_inputs], largest first.

    Args:
        particles: (N, D).
        k: Number of directions, 1 to n_inputs.
        n_inputs: Leading coordinates to use; default all but the last, the bias.

    Raises:
        MooptError: If k is out of range.
    """
    n_inputs = particles.shape[-1] - 1 if n_inputs is None else n_inputs
    if not 1 <= k <= min(n_inputs, len(particles)):
        raise MooptError(f"k must be 1 to {min(n_inputs, len(particles))}, got {k}")
    moment = particles[:, :n_inputs].double()
    vectors: Tensor = torch.linalg.eigh(moment.T @ moment).eigenvectors
    return vectors.flip(-1)[:, :k].T.contiguous()


def effective_dimension(X: Any, basis: Any) -> float:
    """Return tr(S) / tr(U S U') for the covariance S of X and an orthonormal basis U of the subspace.

    It is the effective dimension of a multi-index problem as we understand the seed paper's definition,
    ``tr(S) / |S^(1/2) U'|_F^2``: d for one direction of isotropic data, small where the data varies mostly
    inside the subspace.

    Args:
        X: Inputs (n, d), n >= 2.
        basis: Spanning vectors (k, d).

    Raises:
        MooptError: If shapes do not fit or X does not vary in the subspace.

    Examples:
        >>> effective_dimension([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]], [[1, 0, 0]])
        2.0
    """
    rows = read_rows(X, "X", torch.float64, "cpu")
    span = read_rows(basis, "basis", torch.float64, "cpu")
    if rows.ndim != 2 or len(rows) < 2 or span.ndim != 2 or span.shape[1] != rows.shape[1]:
        raise MooptError(f"X must be (n >= 2, d) and basis (k, d), got {tuple(rows.shape)} and {tuple(span.shape)}")
    orthonormal, _ = torch.linalg.qr(span.T)
    centred = rows - rows.mean(dim=0)
    total, inside = centred.square().sum(), (centred @ orthonormal).square().sum()
    if float(inside) <= 1e-14 * float(total) or float(total) == 0:
        raise MooptError("X does not vary in this subspace, so its effective dimension is infinite")
    return float(total / inside)


def dead_fraction(engine: "MeanFieldLangevin") -> Tensor:
    """Return the share of units (...) that no row of the data activates: their drift is 0 and only noise moves them."""
    drift = engine.functional.drift(engine.particles, generator=engine.generator)
    return (drift == 0).all(dim=-1).double().mean(dim=-1)


def gibbs_ksd(engine: "MeanFieldLangevin", *, bandwidth: float | None = None, unbiased: bool = False) -> Tensor:
    """Return the squared kernel Stein discrepancy between the particles and their own proximal Gibbs law, (...).

    The law is exp(-(dF/dmu[mu_W] + decay |w|^2 / 2) / temperature) with score
    -(drift + decay * w) / temperature; its normaliser is not needed. At stationarity the value tends to 0 as
    particles are added: the biased form is >= 0 with a floor of order 1 / N, the unbiased one averages to 0.

    Args:
        engine: A Euclidean engine with temperature > 0. Cost O(N^2) per member.
        bandwidth: Length scale of the inverse multiquadric kernel; default the median distance.
        unbiased: Leave out the diagonal.

    Raises:
        MooptError: At temperature 0 (there is no Gibbs law), or on another manifold (the score has boundary
            or curvature terms).
    """
    if engine.manifold.name != "euclidean":
        raise MooptError(f"gibbs_ksd is for the Euclidean space, this engine is on the {engine.manifold.name}")
    _, temp, decay = engine.current()
    if bool((torch.as_tensor(temp) == 0).any()):
        raise MooptError("gibbs_ksd needs temperature > 0: at temperature 0 there is no Gibbs law to compare with")
    points = engine.particles.double()
    scores = -(engine.drift() + decay * engine.particles).double() / temp
    flat = points.reshape(-1, points.shape[-1])
    radial = RadialKernel("imq", median_bandwidth(flat) if bandwidth is None else bandwidth)
    matrix = stein_matrix(points, scores, radial)
    n = points.shape[-2]
    if not unbiased:
        return matrix.mean(dim=(-2, -1))
    if n < 2:
        raise MooptError("the unbiased form needs at least 2 particles")
    diagonal = torch.diagonal(matrix, dim1=-2, dim2=-1).sum(dim=-1)
    return (matrix.sum(dim=(-2, -1)) - diagonal) / (n * (n - 1))


def knn_entropy(particles: Tensor, k: int = 3) -> Tensor:
    """Return the Kozachenko-Leonenko estimate of the differential entropy in nats, shape (...).

    Args:
        particles: (..., N, D) with D <= 10; beyond, the estimate says nothing at any affordable N.
        k: Neighbour that is measured, 1 to N - 1.

    Raises:
        MooptError: If D > 10 or k is out of range.
    """
    n, dim = particles.shape[-2:]
    if dim > _ENTROPY_MAX_DIM:
        raise MooptError(f"the nearest-neighbour entropy is useless in {dim} dimensions (at most {_ENTROPY_MAX_DIM})")
    if not 1 <= k <= n - 1:
        raise MooptError(f"k must be 1 to {n - 1} for {n} particles, got {k}")
    distances = squared_distances(particles.double(), particles.double())
    nearest = distances.kthvalue(k + 1, dim=-1).values.clamp_min(1e-300)
    ball = 0.5 * dim * math.log(math.pi) - math.lgamma(dim / 2 + 1)
    digamma = torch.digamma(torch.tensor([float(n), float(k)], dtype=torch.float64))
    return digamma[0] - digamma[1] + ball + 0.5 * dim * nearest.log().mean(dim=-1)


def free_energy(engine: "MeanFieldLangevin", k: int = 3) -> Tensor:
    """Return F(mu) + decay / 2 E|w|^2 - temperature * entropy, shape (...), with :func:`knn_entropy`.

    Raises:
        MooptError: If particles have more than 10 dimensions.
    """
    _, temp, decay = (v.flatten() if isinstance(v, Tensor) else v for v in engine.current())
    entropy = knn_entropy(engine.particles, k)
    squares = engine.particles.square().sum(dim=-1).mean(dim=-1)
    return engine.functional.value(engine.particles) + decay * squares / 2 - temp * entropy
