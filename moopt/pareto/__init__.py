"""Fronts, archives, quality indicators, preference weights and scalarizations.

Everything here maximises unless told otherwise: ``maximize=True`` (or one bool per objective) is a keyword of
every function. Submodules load on first use, so importing this package is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moopt.kernels import crowding_distance, is_non_dominated, non_dominated_rank
    from moopt.pareto.archive import Archive
    from moopt.pareto.attainment import eaf
    from moopt.pareto.front import Front
    from moopt.pareto.indicators import (
        epsilon_additive,
        epsilon_multiplicative,
        hypervolume,
        igd,
        igd_plus,
        sparsity,
    )
    from moopt.pareto.reference import ideal_nadir, infer_reference_point, normalize
    from moopt.pareto.scalarizations import (
        linear,
        pbi,
        scalarize,
        smooth_tchebycheff,
        tchebycheff,
    )
    from moopt.pareto.shape import convex_filter, knee_points
    from moopt.pareto.utility import expected_utility, maximum_utility_loss
    from moopt.pareto.weights import simplex_weights

_HOME = {
    "crowding_distance": "moopt.kernels",
    "is_non_dominated": "moopt.kernels",
    "non_dominated_rank": "moopt.kernels",
    "Archive": "moopt.pareto.archive",
    "eaf": "moopt.pareto.attainment",
    "Front": "moopt.pareto.front",
    "epsilon_additive": "moopt.pareto.indicators",
    "epsilon_multiplicative": "moopt.pareto.indicators",
    "hypervolume": "moopt.pareto.indicators",
    "igd": "moopt.pareto.indicators",
    "igd_plus": "moopt.pareto.indicators",
    "sparsity": "moopt.pareto.indicators",
    "ideal_nadir": "moopt.pareto.reference",
    "infer_reference_point": "moopt.pareto.reference",
    "normalize": "moopt.pareto.reference",
    "linear": "moopt.pareto.scalarizations",
    "pbi": "moopt.pareto.scalarizations",
    "scalarize": "moopt.pareto.scalarizations",
    "smooth_tchebycheff": "moopt.pareto.scalarizations",
    "tchebycheff": "moopt.pareto.scalarizations",
    "convex_filter": "moopt.pareto.shape",
    "knee_points": "moopt.pareto.shape",
    "expected_utility": "moopt.pareto.utility",
    "maximum_utility_loss": "moopt.pareto.utility",
    "simplex_weights": "moopt.pareto.weights",
}

__all__ = [
    "Archive",
    "Front",
    "convex_filter",
    "crowding_distance",
    "eaf",
    "epsilon_additive",
    "epsilon_multiplicative",
    "expected_utility",
    "hypervolume",
    "ideal_nadir",
    "igd",
    "igd_plus",
    "infer_reference_point",
    "is_non_dominated",
    "knee_points",
    "linear",
    "maximum_utility_loss",
    "non_dominated_rank",
    "normalize",
    "pbi",
    "scalarize",
    "simplex_weights",
    "smooth_tchebycheff",
    "sparsity",
    "tchebycheff",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
