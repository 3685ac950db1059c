"""Kernels: hypervolume and dominance computations on plain arrays."""

if __name__ != "moopt.kernels":
    raise ImportError("import moopt.kernels, not kernels")

from moopt.kernels.dispatch import crowding_distance, hypervolume, is_non_dominated, non_dominated_rank

__all__ = ["crowding_distance", "hypervolume", "is_non_dominated", "non_dominated_rank"]
