"""Multi-objective optimization and reinforcement learning on one Pareto-front core."""

from moopt.version import __version__

__all__ = ["__version__"]
