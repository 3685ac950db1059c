"""Kernels compiled by numba; imported only when ``moopt.kernels.jit`` decides so."""
