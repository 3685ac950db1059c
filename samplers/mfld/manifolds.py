"""Where particles live: the whole space, the unit sphere, or a box with reflecting walls."""

from typing import Protocol

import torch
from torch import Tensor

from moopt.runs.errors import MooptError, did_you_mean


class Manifold(Protocol):
    """What the integrator needs of a space. Points and vectors are (..., N, D)."""

    name: str
    decays: bool
    """Whether weight decay has a meaning here."""

    def random(self, shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        """Draw starting points of the given shape."""
        ...

    def move_(self, points: Tensor, vector: Tensor) -> Tensor:
        """Move points along ambient vectors, in place; ``vector`` may be overwritten."""
        ...

    def project(self, points: Tensor, vector: Tensor) -> Tensor:
        """Return the tangent part of ambient vectors at the points."""
        ...


class Euclidean:
    """R^D; starts are uniform on the unit sphere."""

    name = "euclidean"
    decays = True

    def random(self, shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        """Draw starting points, uniform on the unit sphere."""
        return _uniform_sphere(shape, generator, dtype)

    def move_(self, points: Tensor, vector: Tensor) -> Tensor:
        """Add the vectors in place."""
        return points.add_(vector)

    def project(self, points: Tensor, vector: Tensor) -> Tensor:
        """Return the vectors as they are."""
        return vector


class Sphere:
    """Unit sphere of R^D: vectors are made tangent, points are brought back by dividing by their norm."""

    name = "sphere"
    decays = False

    def random(self, shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        """Draw uniform points."""
        return _uniform_sphere(shape, generator, dtype)

    def move_(self, points: Tensor, vector: Tensor) -> Tensor:
        """Move along the tangent part and retract."""
        radial = torch.linalg.vecdot(points, vector).unsqueeze(-1)
        points.mul_(1 - radial).add_(vector)  # w + v - <v, w> w
        return points.div_(torch.linalg.vector_norm(points, dim=-1, keepdim=True))

    def project(self, points: Tensor, vector: Tensor) -> Tensor:
        """Remove the radial part."""
        radial: Tensor = torch.linalg.vecdot(points, vector).unsqueeze(-1)
        return vector - radial * points


class Box:
    """Box with reflecting walls.

    Args:
        low: Lower bounds, a number or (D,).
        high: Upper bounds, a number or (D,), above ``low``.

    Raises:
        MooptError: If a lower bound is not below its upper bound, or a bound is not finite.
    """

    name = "box"
    decays = True

    def __init__(self, low: float | Tensor = 0.0, high: float | Tensor = 1.0) -> None:
        self.low = torch.as_tensor(low)
        self.high = torch.as_tensor(high)
        if not (torch.isfinite(self.low).all() and torch.isfinite(self.high).all()):
            raise MooptError(f"Box needs finite bounds, got low={low} and high={high}")
        if not bool((self.low < self.high).all()):
            raise MooptError(f"Box needs low < high in every coordinate, got low={low} and high={high}")

    def random(self, shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
        """Draw uniform points."""
        unit = torch.rand(shape, generator=generator, dtype=dtype, device=generator.device)
        low, high = self._bounds(unit)
        return low + (high - low) * unit

    def move_(self, points: Tensor, vector: Tensor) -> Tensor:
        """Add the vectors, folding what leaves the box back inside as often as needed."""
        low, high = self._bounds(points)
        span = high - low
        points.add_(vector).sub_(low).div_(span).remainder_(2.0)
        points.sub_(1.0).abs_().neg_().add_(1.0)  # triangle wave
        return points.mul_(span).add_(low)

    def project(self, points: Tensor, vector: Tensor) -> Tensor:
        """Return the vectors as they are; walls act only when they are crossed."""
        return vector

    def _bounds(self, like: Tensor) -> tuple[Tensor, Tensor]:
        if self.low.dtype != like.dtype or self.low.device != like.device:
            self.low, self.high = self.low.to(like), self.high.to(like)
        return self.low, self.high


_NAMED: dict[str, type[Euclidean] | type[Sphere]] = {"euclidean": Euclidean, "sphere": Sphere}


def as_manifold(manifold: "str | Manifold") -> Manifold:
    """Return the manifold of a name, or the object itself.

    Args:
        manifold: "euclidean", "sphere", or an object such as :class:`Box`.

    Raises:
        MooptError: If the name is unknown.
    """
    if not isinstance(manifold, str):
        return manifold
    if manifold not in _NAMED:
        extra = " (a box needs its bounds: Box(low, high))" if manifold == "box" else ""
        raise MooptError(f"unknown manifold {manifold!r}{did_you_mean(manifold, _NAMED)}{extra}")
    return _NAMED[manifold]()


def _uniform_sphere(shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    points = torch.randn(shape, generator=generator, dtype=dtype, device=generator.device)
    return points.div_(torch.linalg.vector_norm(points, dim=-1, keepdim=True))
