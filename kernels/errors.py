"""What the kernels raise beyond ``ValueError`` and ``TypeError``."""


class HypervolumeBudgetError(ValueError):
    """Exact hypervolume would take longer than the work budget; use ``hv_approx`` or ``force=True``."""
