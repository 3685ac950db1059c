"""The Front: an immutable set of outcomes with the names, directions and solutions that belong to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from moopt.pareto import indicators, utility
from moopt.pareto.arrays import FloatArray, as_points, as_vector, signs
from moopt.pareto.front_fields import read_directions, read_names, read_solutions, read_units, solutions_equal
from moopt.pareto.scalarizations import scalarize
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Front:
    """Points in objective space, larger is better, with what is needed to read, plot and compare them.

    A front never changes; its methods return new ones. It may hold dominated points: :meth:`filter` drops
    them.

    Attributes:
        points: Array (n, m) float64, larger is better; read-only.
        names: Objective names (m,).
        units: Unit of each objective (m,); "" is none.
        directions: "max" or "min" for each objective, as the user sees it.
        ref_point: Reference point (m,), larger is better, read-only; or None.
        solutions: What gives each point: decision vectors, policy ids, ...; (n,).
        meta: How the front was made; a JSON-able dict.

    Args:
        points: Array (n, m), larger is better; copied. Infinite values are allowed, NaN is not.
        names: Default f1, f2, ...
        units: Default none.
        directions: "max", "min", or one of them per objective. It labels the front and turns the values of
            :attr:`user_points`; ``points`` itself is larger-is-better always. Use :meth:`from_user` for
            values as the user has them. Default all "max".
        ref_point: Reference point (m,), larger is better.
        solutions: Default 0 .. n-1.
        meta: Default empty.

    Raises:
        ValueError: If shapes or lengths disagree, a name is repeated or a value is NaN.

    Examples:
        >>> front = Front.from_user([[1.0, 20.0], [3.0, 50.0]], directions=["max", "min"],
        ...                         names=["gain", "cost"], ref_point=[0.0, 100.0])
        >>> front.points.tolist()
        [[1.0, -20.0], [3.0, -50.0]]
        >>> front.hypervolume()
        180.0
        >>> front.select([0.9, 0.1])
        0
    """

    points: FloatArray
    names: tuple[str, ...]
    units: tuple[str, ...]
    directions: tuple[str, ...]
    ref_point: FloatArray | None
    solutions: Sequence[Any]
    meta: dict[str, Any]

    def __init__(
        self,
        points: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
        directions: str | Sequence[str] | None = None,
        ref_point: ArrayLike | None = None,
        solutions: Sequence[Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        array = _table(points, names)
        n, m = array.shape
        fields: dict[str, Any] = {
            "points": array,
            "names": read_names(names, m),
            "units": read_units(units, m),
            "directions": read_directions(directions, m),
            "ref_point": None if ref_point is None else np.array(as_vector(ref_point, m, name="ref_point")),
            "solutions": read_solutions(solutions, n),
            "meta": deepcopy(dict(meta or {})),
        }
        self.__setstate__(fields)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickled arrays come back writeable; going through here keeps copies in worker processes immutable
        # too.
        for array in (state["points"], state["ref_point"]):
            if array is not None:
                array.flags.writeable = False
        self.__dict__.update(state)

    @classmethod
    def from_user(
        cls,
        points: ArrayLike,
        *,
        directions: str | Sequence[str] | None = None,
        ref_point: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a front of values in the user's orientation.

        Args:
            points: Array (n, m), each column larger- or smaller-is-better as ``directions`` says.
            directions: "max", "min", or one of them per objective. Default all "max".
            ref_point: Reference point (m,) in the same orientation.
            **kwargs: As for :class:`Front`.

        Raises:
            ValueError: As for :class:`Front`.
        """
        array = _table(points, kwargs.get("names"))
        m = array.shape[1]
        sign = signs([d == "max" for d in read_directions(directions, m)], m)
        ref = None if ref_point is None else as_vector(ref_point, m, name="ref_point") * sign
        return cls(array * sign, directions=directions, ref_point=ref, **kwargs)

    # -- looking
    # ------------------------------------------------------------------------------------------------

    @property
    def n_obj(self) -> int:
        """Number of objectives m."""
        return int(self.points.shape[1])

    @property
    def signs(self) -> FloatArray:
        """+1 for each maximised and -1 for each minimised objective (m,)."""
        return np.array([1.0 if d == "max" else -1.0 for d in self.directions])

    @property
    def user_points(self) -> FloatArray:
        """Points (n, m) in the user's orientation."""
        return self.points * self.signs

    @property
    def user_ref_point(self) -> FloatArray | None:
        """Reference point (m,) in the user's orientation, or None."""
        return None if self.ref_point is None else self.ref_point * self.signs

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[FloatArray]:
        return iter(self.points)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Front):
            return NotImplemented
        return bool(
            self.points.shape == other.points.shape
            and np.array_equal(self.points, other.points)
            and solutions_equal(self.ref_point, other.ref_point)
            and (self.names, self.units, self.directions) == (other.names, other.units, other.directions)
            and self.meta == other.meta
            and solutions_equal(self.solutions, other.solutions)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        from moopt.pareto.front_text import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from moopt.pareto.front_text import as_html

        return as_html(self)

    # -- measuring
    # ----------------------------------------------------------------------------------------------

    def hypervolume(self, ref_point: ArrayLike | None = None) -> float:
        """Return the hypervolume above ``ref_point`` (m,), larger is better; default the front's own.

        Raises:
            ValueError: If there is no reference point or its width is wrong.

        Warns:
            UserWarning: If the front has points but none is above the reference point in every objective
                (value 0).
        """
        ref = self._ref(ref_point)
        if len(self) and not (self.points > ref).all(axis=1).any():
            warn(
                f"no point is better than the reference point {(ref * self.signs).tolist()} everywhere, "
                "so the hypervolume is 0",
                UserWarning,
                stacklevel=2,
            )
            return 0.0
        return indicators.hypervolume(self.points, ref)

    def igd_plus(self, reference: "Front | ArrayLike") -> float:
        """Return IGD+ to ``reference``, a front or an array (r, m), larger is better."""
        return indicators.igd_plus(self.points, _points_of(reference))

    def expected_utility(self, weights: ArrayLike | None = None) -> float:
        """Return the mean over ``weights`` (k, m) of the best weighted sum; default a fine lattice."""
        return utility.expected_utility(self.points, weights)

    def sparsity(self) -> float:
        """Return PGMORL's sparsity; read the warning in :func:`moopt.pareto.sparsity` first."""
        return indicators.sparsity(self.points)

    def _ref(self, ref_point: ArrayLike | None) -> FloatArray:
        if ref_point is not None:
            return np.asarray(as_vector(ref_point, self.n_obj, name="ref_point"))
        if self.ref_point is None:
            raise MooptError(
                "this front has no reference point: give ref_point (larger is better), or make it with one "
                "(moopt.pareto.infer_reference_point suggests one)"
            )
        return self.ref_point

    # -- choosing
    # -----------------------------------------------------------------------------------------------

    def select(
        self,
        preference: ArrayLike,
        scalarization: str | Callable[[Any, Any], Any] = "linear",
        *,
        normalize: bool = False,
    ) -> int:
        """Return the row that is best for ``preference``.

        Args:
            preference: Weights (m,), non-negative, not all zero; rescaled to sum 1.
            scalarization: ``linear``, ``tchebycheff``, ``augmented_tchebycheff``, ``smooth_tchebycheff``,
                ``pbi``, or a function ``f(points (n, m), weights (m,)) -> (n,)``, larger is better. Distances
                are taken from the front's own ideal point.
            normalize: Scale every objective to [0, 1] over the front first.

        Returns:
            Row number; of equals the first.

        Raises:
            ValueError: If the front is empty, the preference is unusable or the name is unknown.
        """
        if len(self) == 0:
            raise MooptError("cannot select from an empty front")
        weights = np.asarray(as_vector(preference, self.n_obj, name="preference"))
        if weights.ndim != 1 or not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise MooptError(f"preference must be {self.n_obj} non-negative numbers, not all zero, got {preference!r}")
        points = self.points
        if normalize:
            low, span = points.min(axis=0), np.ptp(points, axis=0)
            points = (points - low) / np.where(span > 0, span, 1.0)
        values = scalarize(points, weights / weights.sum(), method=scalarization)
        return int(np.argmax(np.asarray(values)))

    def filter(self) -> Self:
        """Return the non-dominated points; of equal points the first."""
        from moopt.kernels import is_non_dominated

        if len(self) == 0:
            return self
        return self.take(np.flatnonzero(is_non_dominated(self.points)))

    def take(self, rows: ArrayLike) -> Self:
        """Return the front of the given rows (k,), in that order."""
        index = np.asarray(rows, dtype=np.int64)
        solutions: Any = self.solutions
        solutions = solutions[index] if isinstance(solutions, np.ndarray) else [solutions[i] for i in index]
        return self.replace(points=self.points[index], solutions=solutions)

    def merge(self, other: "Front") -> Self:
        """Return the non-dominated points of both, each with its solution; ``meta`` keeps both as "merged".

        Raises:
            ValueError: If names, units or directions differ, or both have reference points and they differ.
        """
        for field in ("names", "units", "directions"):
            if getattr(self, field) != getattr(other, field):
                raise MooptError(f"cannot merge: {field} are {getattr(self, field)} and {getattr(other, field)}")
        ref = other.ref_point if self.ref_point is None else self.ref_point
        if other.ref_point is not None and not np.array_equal(ref, other.ref_point):  # type: ignore[arg-type]
            raise MooptError(
                f"cannot merge: reference points are {self.user_ref_point} and {other.user_ref_point}; "
                "make them equal with replace(ref_point=...)"
            )
        both = self.replace(
            points=np.concatenate([self.points, other.points]),
            solutions=[*self.solutions, *other.solutions],
            ref_point=ref,
            meta={"merged": [self.meta, other.meta]},
        )
        return both.filter()

    def replace(self, **changes: Any) -> Self:
        """Return a front with some fields replaced: ``front.replace(ref_point=[0, 0])``."""
        keys = ("points", "names", "units", "directions", "ref_point", "solutions", "meta")
        fields = {key: getattr(self, key) for key in keys}
        if "points" in changes and "solutions" not in changes and len(changes["points"]) != len(self):
            del fields["solutions"]
        return type(self)(**{**fields, **changes})

    # -- keeping
    # ------------------------------------------------------------------------------------------------

    def to_csv(self, path: str | Path) -> None:
        """Write a plain table: objectives in the user's orientation and a last column ``id``.

        Numbers are exact to the last bit. Units, directions, reference point, decision vectors and meta are
        not in it; :meth:`to_json` keeps everything.
        """
        from moopt.pareto.front_files import write_csv

        write_csv(self, path)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        directions: str | Sequence[str] | None = None,
        objectives: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Read a table with a header.

        Args:
            path: The file.
            directions: "max", "min", or one of them per objective. Default all "max".
            objectives: Columns to read. Default: all but ``id``.
            **kwargs: ``units``, ``meta`` and ``ref_point`` (user's orientation), as for :meth:`from_user`.

        Raises:
            ValueError: If the file is not such a table; line and column are named.
        """
        from moopt.pareto.front_files import read_csv

        return cls.from_user(directions=directions, **{**read_csv(path, objectives), **kwargs})

    def to_json(self, path: str | Path) -> None:
        """Write everything, numbers exact to the last bit.

        Raises:
            ValueError: If a solution or ``meta`` holds something JSON cannot.
        """
        from moopt.pareto.front_files import write_json

        write_json(self, path)

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Read a file written by :meth:`to_json`; nothing in it is ever executed.

        Raises:
            ValueError: If the file is not a front.
        """
        from moopt.pareto.front_files import read_json

        return cls.from_user(**read_json(path))

    def plot(self, **kwargs: Any) -> "Axes | Figure":
        """Draw the front: the plane for two objectives, a matrix of pairs for more.

        Args:
            **kwargs: As for :func:`moopt.plotting.plot_front` or :func:`moopt.plotting.plot_pairs`.

        Returns:
            The axes, or for more than two objectives the figure.
        """
        # Figures stand above fronts: the name is looked up when a figure is wanted, and no earlier.
        plotting = import_module("moopt.plotting")
        draw = plotting.plot_front if self.n_obj == 2 else plotting.plot_pairs
        return cast("Axes | Figure", draw(self, **kwargs))


def _table(points: ArrayLike, names: Sequence[str] | None) -> FloatArray:
    """Return a fresh (n, m) array; an empty list takes its width from the names."""
    if not isinstance(points, np.ndarray) and isinstance(points, Sequence) and len(points) == 0:
        if names is None:
            raise MooptError("an empty front needs points of shape (0, m), or names")
        return np.empty((0, len(names)))
    return np.array(as_points(points), dtype=np.float64, order="C")


def _points_of(reference: "Front | ArrayLike") -> ArrayLike:
    return reference.points if isinstance(reference, Front) else reference
