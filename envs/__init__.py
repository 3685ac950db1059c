"""Environments, optimization problems and sampling targets."""

if __name__ != "moopt.envs":
    raise ImportError("import moopt.envs, not envs")
