"""Kernels: hypervolume and dominance computations on plain arrays, NumPy or torch, single or batched."""

if __name__ != "moopt.kernels":
    raise ImportError("import moopt.kernels, not kernels")

from moopt.kernels.approximation import hv_approx
from moopt.kernels.boxes import box_decomposition
from moopt.kernels.contributions import hv_contributions
from moopt.kernels.dispatch import hypervolume, hypervolume_and_grad
from moopt.kernels.dominance import crowding_distance, is_non_dominated, non_dominated_rank
from moopt.kernels.errors import HypervolumeBudgetError
from moopt.kernels.improvement import hv_improvement
from moopt.kernels.jit import warmup
from moopt.kernels.subset import hv_subset

__all__ = [
    "HypervolumeBudgetError",
    "box_decomposition",
    "crowding_distance",
    "hv_approx",
    "hv_contributions",
    "hv_improvement",
    "hv_subset",
    "hypervolume",
    "hypervolume_and_grad",
    "is_non_dominated",
    "non_dominated_rank",
    "warmup",
]
