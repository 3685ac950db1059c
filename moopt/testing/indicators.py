"""The contract every quality indicator keeps, as a pytest class to inherit.

Examples:
    In a test module::

        class TestMyIndicator(IndicatorContract):
            def indicator(self, points, *, maximize=True):
                return my_indicator(points, maximize=maximize)
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

Maximize = bool | Sequence[bool]


class IndicatorContract:
    """Checks of a set-quality indicator; subclass it and define :meth:`indicator`.

    Attributes:
        n_obj: Number of objectives of the test sets.
        has_direction: Whether the value depends on ``maximize``; a plain distance does not.
        on_dominated: What a dominated row may do to the value: "unchanged", "not_up" (a distance that may
            fall) or "any".
        on_empty: The value of an empty set.
        low: Smallest coordinate of the test sets; positive for indicators that need positive values.
        rtol: Relative tolerance where the order of summation may differ.
    """

    n_obj: ClassVar[int] = 3
    has_direction: ClassVar[bool] = True
    on_dominated: ClassVar[Literal["unchanged", "not_up", "any"]] = "unchanged"
    on_empty: ClassVar[float] = 0.0
    low: ClassVar[float] = 0.0
    rtol: ClassVar[float] = 1e-12

    def indicator(self, points: Any, *, maximize: Maximize = True) -> float:
        """Return the value of a set; override it.

        Reference points or sets, where the indicator has them, must be the same for ``maximize=True`` as they
        are, and mirrored (minimised coordinates negated) otherwise: see :meth:`mirror`.
        """
        raise NotImplementedError

    def mirror(self, values: NDArray[np.float64], maximize: Maximize) -> NDArray[np.float64]:
        """Return larger-is-better ``values`` as a user with directions ``maximize`` would write them."""
        return values * np.where(np.resize(maximize, values.shape[-1]), 1.0, -1.0)

    def points(self, seed: int = 0, n: int = 12) -> NDArray[np.float64]:
        """Return random test points (n, n_obj) in [low, low + 1)."""
        return np.random.default_rng(seed).random((n, self.n_obj)) + self.low

    def check_same(self, first: float, second: float) -> None:
        """Fail unless both values agree."""
        assert first == pytest.approx(second, rel=self.rtol, abs=1e-14)

    def test_returns_float(self) -> None:
        """The value is a finite Python float."""
        value = self.indicator(self.points())
        assert type(value) is float
        assert np.isfinite(value)

    def test_inputs_are_not_changed(self) -> None:
        """A read-only input works and stays as it was."""
        points = self.points()
        before = points.copy()
        points.flags.writeable = False
        self.indicator(points)
        assert np.array_equal(points, before)

    @pytest.mark.parametrize("seed", range(5))
    def test_order_of_rows_is_irrelevant(self, seed: int) -> None:
        """Shuffled rows give the same value."""
        points = self.points(seed)
        shuffled = np.random.default_rng(seed).permutation(points)
        self.check_same(self.indicator(shuffled), self.indicator(points))

    @pytest.mark.parametrize("seed", range(5))
    def test_repeated_rows_are_irrelevant(self, seed: int) -> None:
        """Repeated rows give the same value."""
        points = self.points(seed)
        repeated = np.concatenate([points, points[::2], points[:1]])
        self.check_same(self.indicator(repeated), self.indicator(points))

    @pytest.mark.parametrize("seed", range(5))
    def test_dominated_rows(self, seed: int) -> None:
        """A dominated row does what ``on_dominated`` says."""
        points = self.points(seed)
        worse = points - 0.5 * (points - self.low) * np.random.default_rng(seed).random(points.shape)
        value, more = self.indicator(points), self.indicator(np.concatenate([points, worse]))
        if self.on_dominated == "unchanged":
            self.check_same(more, value)
        elif self.on_dominated == "not_up":
            assert more <= value + 1e-12

    @pytest.mark.parametrize("seed", range(5))
    def test_direction_is_a_mirror(self, seed: int) -> None:
        """Minimising the mirrored set is maximising the set."""
        points = self.points(seed)
        value = self.indicator(points, maximize=True)
        mixed = [k % 2 == 0 for k in range(self.n_obj)]
        for maximize in (False, mixed, [True] * self.n_obj):
            self.check_same(self.indicator(self.mirror(points, maximize), maximize=maximize), value)
        if self.has_direction:
            assert self.indicator(points, maximize=False) != pytest.approx(value, rel=1e-9)

    def test_empty_set(self) -> None:
        """An empty set has its declared value."""
        assert self.indicator(np.empty((0, self.n_obj))) == self.on_empty

    def test_one_point(self) -> None:
        """One point is enough."""
        assert np.isfinite(self.indicator(self.points(n=1)))

    def test_wrong_shapes_raise(self) -> None:
        """Wrong shapes and direction lists raise ValueError and say so."""
        points = self.points()
        for wrong in (points[0], points[None], points[:, :-1], np.zeros((3, self.n_obj + 1)), 1.0):
            with pytest.raises(ValueError, match=r"shape|objectives"):
                self.indicator(wrong)
        with pytest.raises(ValueError, match="maximize"):
            self.indicator(points, maximize=[True] * (self.n_obj + 1))

    def test_nan_raises(self) -> None:
        """NaN raises ValueError."""
        points = self.points()
        points[3, 1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            self.indicator(points)

    def test_kinds_of_arrays(self) -> None:
        """Lists, integers, float32 and odd memory layouts give the same value."""
        whole = np.round(self.points() * 10) + 1
        value = self.indicator(whole)
        wide = np.zeros((2 * len(whole), 2 * self.n_obj))
        wide[::2, ::2] = whole
        kinds = {
            "int64": whole.astype(np.int64),
            "int8": whole.astype(np.int8),
            "float32": whole.astype(np.float32),
            "list": whole.tolist(),
            "strided": wide[::2, ::2],
            "Fortran order": np.asfortranarray(whole),
            "negative strides": np.ascontiguousarray(whole[::-1, ::-1])[::-1, ::-1],
        }
        for kind, points in kinds.items():
            assert self.indicator(points) == pytest.approx(value, rel=self.rtol, abs=1e-14), kind
