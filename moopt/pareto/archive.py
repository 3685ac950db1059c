"""A bounded, always mutually non-dominated set of points, each with a payload.

References:
    Deb, Pratap, Agarwal, Meyarivan. A fast and elitist multiobjective genetic algorithm: NSGA-II. IEEE
        Transactions on Evolutionary Computation 6(2), 2002 (crowding distance).
    Kukkonen, Deb. Improved pruning of non-dominated solutions based on crowding distance. CEC 2006 (one by
        one).
    Beume, Naujoks, Emmerich. SMS-EMOA. European Journal of Operational Research 181(3), 2007 (contribution).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moopt.pareto.arrays import FloatArray, as_points, as_vector, unknown
from moopt.runs.errors import MooptError

if TYPE_CHECKING:
    from moopt.pareto.front import Front

TRUNCATIONS = ("crowding", "crowding_one_shot", "hv_contribution")


class Archive:
    """Keep the best points seen, larger is better.

    After every :meth:`add` the points are mutually non-dominated and distinct (of equal points the first
    stays), and there are at most ``capacity`` of them.

    Args:
        capacity: Largest number of points; None is unbounded.
        n_obj: Number of objectives m.
        truncation: What goes when there are too many. ``crowding``: the most crowded point, one at a time,
            distances renewed each time; points that hold the best value of an objective go last.
            ``crowding_one_shot``: all surplus points by the distances of one pass. ``hv_contribution``: the
            point that adds least hypervolume, one at a time. Among equals the newest goes.
        ref_point: Reference point (m,), larger is better; ``hv_contribution`` and ``require_above_ref`` need
            it.
        require_above_ref: Turn away points that are not strictly better than ``ref_point`` in every
            objective.

    Raises:
        ValueError: If an argument is out of range, or the reference point is needed and missing.

    Examples:
        >>> archive = Archive(2, n_obj=2)
        >>> archive.add([[0, 3], [1, 1], [3, 0], [0, 0]], payloads=["a", "b", "c", "d"]).tolist()
        [True, False, True, False]
        >>> archive.payloads
        ['a', 'c']
    """

    def __init__(
        self,
        capacity: int | None = None,
        *,
        n_obj: int,
        truncation: str = "crowding",
        ref_point: ArrayLike | None = None,
        require_above_ref: bool = False,
    ) -> None:
        for name, value in (("capacity", capacity), ("n_obj", n_obj)):
            if value is None and name == "capacity":
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise MooptError(f"{name} must be a positive integer, got {value!r}")
        if truncation not in TRUNCATIONS:
            raise unknown("truncation", truncation, TRUNCATIONS)
        if ref_point is None and (require_above_ref or truncation == "hv_contribution"):
            reason = "require_above_ref=True" if require_above_ref else "truncation='hv_contribution'"
            raise MooptError(f"{reason} needs ref_point")
        self.capacity = capacity
        self.n_obj = int(n_obj)
        self.truncation = truncation
        self.ref_point: FloatArray | None = None
        if ref_point is not None:
            self.ref_point = np.array(as_vector(ref_point, self.n_obj, name="ref_point"))
        self.require_above_ref = require_above_ref
        self._points: FloatArray = np.empty((0, self.n_obj))
        self._payloads: list[Any] = []
        self._seen = 0

    @property
    def points(self) -> FloatArray:
        """Points (n, m), oldest first; read-only."""
        view = self._points.view()
        view.flags.writeable = False
        return view

    @property
    def payloads(self) -> list[Any]:
        """What was handed in with each point, in the order of :attr:`points`."""
        return list(self._payloads)

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        limit = "unbounded" if self.capacity is None else f"capacity {self.capacity}"
        return f"Archive({len(self)} points, {self.n_obj} objectives, {limit}, truncation={self.truncation!r})"

    def add(self, points: ArrayLike, payloads: Sequence[Any] | None = None) -> NDArray[np.bool_]:
        """Offer points and keep those that deserve it.

        Args:
            points: Array (k, m), larger is better; one point (m,) is fine.
            payloads: One object per point, kept as it is. Default: the running number of the point.

        Returns:
            Mask (k,) of the offered points that are in the archive now.

        Raises:
            ValueError: If the width is not m, the number of payloads is not k or a value is NaN; nothing has
                changed then.
        """
        from moopt.kernels import is_non_dominated

        raw = np.asarray(points)
        if raw.size == 0:
            raw = raw.reshape(0, self.n_obj)
        offered = as_points(raw[None] if raw.ndim == 1 else raw)
        if offered.shape[1] != self.n_obj:
            raise MooptError(f"points has shape {offered.shape}, but the archive has {self.n_obj} objectives")
        k = len(offered)
        if payloads is None:
            payloads = range(self._seen, self._seen + k)
        if len(payloads) != k:
            raise MooptError(f"{len(payloads)} payloads for {k} points")
        self._seen += k
        stays = np.zeros(k, dtype=bool)
        allowed = np.arange(k)
        if self.require_above_ref:
            allowed = np.flatnonzero((offered > self.ref_point).all(axis=1))
        if len(allowed) == 0:
            return stays
        old = len(self)
        pool = np.concatenate([self._points, offered[allowed]])
        keep = np.flatnonzero(is_non_dominated(pool))
        keep = keep[self._truncate(pool[keep])]
        new = allowed[keep[keep >= old] - old]
        stays[new] = True
        self._points = np.ascontiguousarray(pool[keep])
        self._payloads = [self._payloads[i] for i in keep[keep < old]] + [payloads[i] for i in new]
        return stays

    def _truncate(self, points: FloatArray) -> NDArray[np.int64]:
        """Return the ascending row numbers that fit into the capacity."""
        left = np.arange(len(points))
        if self.capacity is None or len(points) <= self.capacity:
            return left
        if self.truncation == "crowding_one_shot":
            order = np.argsort(-self._worth(points), kind="stable")
            return np.sort(order[: self.capacity])
        while len(left) > self.capacity:
            worth = self._worth(points[left])
            # The last of the smallest: rows are ordered by age.
            left = np.delete(left, len(left) - 1 - int(worth[::-1].argmin()))
        return left

    def _worth(self, points: FloatArray) -> FloatArray:
        """Return what each of the points is worth to the set; the smallest goes first."""
        from moopt.kernels import crowding_distance, hv_contributions

        if self.truncation == "hv_contribution":
            return np.asarray(hv_contributions(points, self.ref_point), dtype=np.float64)
        distance: FloatArray = np.asarray(crowding_distance(points), dtype=np.float64)
        if not np.isinf(distance).all():
            return distance
        # Every point is an extreme: those that are best in something outlive those that are only worst.
        return np.asarray((points == points.max(axis=0)).sum(axis=1), dtype=np.float64)

    def front(self, **kwargs: Any) -> "Front":
        """Return the content as a :class:`~moopt.pareto.front.Front`.

        Args:
            **kwargs: ``names``, ``units``, ``directions``, ``meta``, and ``solutions`` or ``ref_point`` in
                place of the payloads and the archive's own.
        """
        from moopt.pareto.front import Front

        settings = {"ref_point": self.ref_point, "solutions": self.payloads, **kwargs}
        return Front(self._points, **settings)

    def state_dict(self) -> dict[str, Any]:
        """Return the content and the counter; payloads are handed out as they are."""
        return {"points": self._points.copy(), "payloads": list(self._payloads), "seen": self._seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the content saved by :meth:`state_dict` of an archive with the same settings.

        Raises:
            ValueError: If the content does not fit this archive; nothing has changed then.
        """
        missing = {"points", "payloads", "seen"} - set(state)
        if missing:
            raise MooptError(f"archive state lacks {', '.join(sorted(missing))}")
        points = np.array(as_points(state["points"]))
        payloads = list(state["payloads"])
        if points.shape[1] != self.n_obj or len(points) != len(payloads):
            raise MooptError(
                f"archive state has {points.shape} points and {len(payloads)} payloads; "
                f"this archive has {self.n_obj} objectives"
            )
        if self.capacity is not None and len(points) > self.capacity:
            raise MooptError(f"archive state has {len(points)} points, more than the capacity {self.capacity}")
        self._points, self._payloads, self._seen = points, payloads, int(state["seen"])
