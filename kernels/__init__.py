"""Kernels: hypervolume and dominance computations on plain arrays."""

if __name__ != "moopt.kernels":
    raise ImportError("import moopt.kernels, not kernels")
