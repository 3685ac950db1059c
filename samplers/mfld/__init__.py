"""Mean-field Langevin dynamics: noisy gradient descent on a measure, carried by particles."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moopt.samplers.mfld.birth_death import BirthDeath as BirthDeath
    from moopt.samplers.mfld.config import MULTIMODAL as MULTIMODAL
    from moopt.samplers.mfld.config import MFLDConfig as MFLDConfig
    from moopt.samplers.mfld.config import ParetoMFLDConfig as ParetoMFLDConfig
    from moopt.samplers.mfld.data import multi_index as multi_index
    from moopt.samplers.mfld.density import DensityEstimation as DensityEstimation
    from moopt.samplers.mfld.diagnostics import alignment as alignment
    from moopt.samplers.mfld.diagnostics import dead_fraction as dead_fraction
    from moopt.samplers.mfld.diagnostics import effective_dimension as effective_dimension
    from moopt.samplers.mfld.diagnostics import free_energy as free_energy
    from moopt.samplers.mfld.diagnostics import gibbs_ksd as gibbs_ksd
    from moopt.samplers.mfld.diagnostics import knn_entropy as knn_entropy
    from moopt.samplers.mfld.discrepancy import KSD as KSD
    from moopt.samplers.mfld.discrepancy import MMD as MMD
    from moopt.samplers.mfld.estimators import MFLDClassifier as MFLDClassifier
    from moopt.samplers.mfld.estimators import MFLDRegressor as MFLDRegressor
    from moopt.samplers.mfld.functional import AutogradFunctional as AutogradFunctional
    from moopt.samplers.mfld.functional import LinearPotential as LinearPotential
    from moopt.samplers.mfld.functional import MeasureFunctional as MeasureFunctional
    from moopt.samplers.mfld.hypervolume import SoftHypervolume as SoftHypervolume
    from moopt.samplers.mfld.kernel_ridge import KernelBaseline as KernelBaseline
    from moopt.samplers.mfld.langevin import DivergenceError as DivergenceError
    from moopt.samplers.mfld.langevin import LangevinResult as LangevinResult
    from moopt.samplers.mfld.langevin import MeanFieldLangevin as MeanFieldLangevin
    from moopt.samplers.mfld.manifolds import Box as Box
    from moopt.samplers.mfld.manifolds import Euclidean as Euclidean
    from moopt.samplers.mfld.manifolds import Sphere as Sphere
    from moopt.samplers.mfld.network import TwoLayerClassification as TwoLayerClassification
    from moopt.samplers.mfld.network import TwoLayerRegression as TwoLayerRegression
    from moopt.samplers.mfld.pareto import ParetoMFLD as ParetoMFLD
    from moopt.samplers.mfld.problem import MFLDProblem as MFLDProblem
    from moopt.samplers.mfld.problem import as_problem as as_problem
    from moopt.samplers.mfld.schedules import Constant as Constant
    from moopt.samplers.mfld.schedules import Geometric as Geometric
    from moopt.samplers.mfld.schedules import HalvingRounds as HalvingRounds
    from moopt.samplers.mfld.schedules import LogAnneal as LogAnneal
    from moopt.samplers.mfld.surrogate import surrogate_problem as surrogate_problem
    from moopt.samplers.mfld.surrogate import surrogate_search as surrogate_search

_WHERE = {
    "AutogradFunctional": "functional",
    "BirthDeath": "birth_death",
    "Box": "manifolds",
    "Constant": "schedules",
    "DensityEstimation": "density",
    "DivergenceError": "langevin",
    "Euclidean": "manifolds",
    "Geometric": "schedules",
    "HalvingRounds": "schedules",
    "KSD": "discrepancy",
    "KernelBaseline": "kernel_ridge",
    "LangevinResult": "langevin",
    "LinearPotential": "functional",
    "LogAnneal": "schedules",
    "MFLDClassifier": "estimators",
    "MFLDConfig": "config",
    "MFLDProblem": "problem",
    "MFLDRegressor": "estimators",
    "MMD": "discrepancy",
    "MULTIMODAL": "config",
    "MeanFieldLangevin": "langevin",
    "MeasureFunctional": "functional",
    "ParetoMFLD": "pareto",
    "ParetoMFLDConfig": "config",
    "SoftHypervolume": "hypervolume",
    "Sphere": "manifolds",
    "TwoLayerClassification": "network",
    "TwoLayerRegression": "network",
    "alignment": "diagnostics",
    "as_problem": "problem",
    "dead_fraction": "diagnostics",
    "effective_dimension": "diagnostics",
    "free_energy": "diagnostics",
    "gibbs_ksd": "diagnostics",
    "knn_entropy": "diagnostics",
    "multi_index": "data",
    "surrogate_problem": "surrogate",
    "surrogate_search": "surrogate",
}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
