"""Figures of fronts and runs.

Each figure comes in two parts: ``..._data`` computes exactly what is drawn (plain arrays in frozen
dataclasses), and ``plot_...`` draws it with matplotlib, which is imported only then. No pyplot, no global
settings: functions take and return ``Axes`` or ``Figure`` objects; save with
    ``ax.figure.savefig("front.png")``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moopt.plotting.curves import CurveData as CurveData
    from moopt.plotting.curves import CurveSeries as CurveSeries
    from moopt.plotting.curves import curve_data as curve_data
    from moopt.plotting.curves import plot_curve as plot_curve
    from moopt.plotting.fronts import FrontData as FrontData
    from moopt.plotting.fronts import FrontSeries as FrontSeries
    from moopt.plotting.fronts import front_data as front_data
    from moopt.plotting.fronts import plot_front as plot_front
    from moopt.plotting.matrix import plot_pairs as plot_pairs
    from moopt.plotting.parallel import ParallelData as ParallelData
    from moopt.plotting.parallel import parallel_data as parallel_data
    from moopt.plotting.parallel import plot_parallel as plot_parallel
    from moopt.plotting.particles import ParticleData as ParticleData
    from moopt.plotting.particles import SizeSeries as SizeSeries
    from moopt.plotting.particles import particle_data as particle_data
    from moopt.plotting.particles import plot_particles as plot_particles
    from moopt.plotting.particles import plot_sides as plot_sides
    from moopt.plotting.particles import plot_sizes as plot_sizes
    from moopt.plotting.particles import size_data as size_data
    from moopt.plotting.runs import plot_runs as plot_runs

_WHERE = {
    "CurveData": "curves",
    "CurveSeries": "curves",
    "curve_data": "curves",
    "plot_curve": "curves",
    "FrontData": "fronts",
    "FrontSeries": "fronts",
    "front_data": "fronts",
    "plot_front": "fronts",
    "plot_pairs": "matrix",
    "ParallelData": "parallel",
    "parallel_data": "parallel",
    "plot_parallel": "parallel",
    "ParticleData": "particles",
    "SizeSeries": "particles",
    "particle_data": "particles",
    "plot_particles": "particles",
    "plot_sides": "particles",
    "plot_sizes": "particles",
    "size_data": "particles",
    "plot_runs": "runs",
}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
