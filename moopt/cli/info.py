"""``moopt info``: what is installed and what is live."""

import importlib.util
from collections.abc import Sequence

from moopt.cli.errors import OK
from moopt.cli.parsing import Parser
from moopt.cli.tables import format_table, show
from moopt.runs.provenance import versions

PROG = "moopt info"
EXTRAS = {
    "tb": ("tensorboard", "TensorBoard logs (moopt train --tensorboard)"),
    "box2d": ("Box2D", "environments built on Box2D (mo-lunar-lander)"),
}


def run(argv: Sequence[str]) -> int:
    """Run ``moopt info`` and return the exit code."""
    Parser(PROG, "Show versions, device, threads, kernel backend and optional extras.", f"example:\n  {PROG}").parse(
        argv
    )
    import torch  # also lets versions() see the thread count that torch chose

    cuda = torch.cuda.is_available()
    facts = versions(device="cuda" if cuda else "cpu")
    facts["threads"] = torch.get_num_threads()
    facts["gpu"] = torch.cuda.get_device_name() if cuda else None
    facts["kernel backend"] = _kernel_backend()
    print(format_table(["", "value"], [[name, show(value)] for name, value in facts.items()]))
    print()
    rows = [
        [extra, "yes" if importlib.util.find_spec(module) else "no", what, f'pip install "moopt[{extra}]"']
        for extra, (module, what) in EXTRAS.items()
    ]
    print(format_table(["extra", "present", "for", "install"], rows))
    return OK


def _kernel_backend() -> str:
    """Name the backends that work here, found by asking each for a small hypervolume."""
    import numpy as np

    from moopt.kernels import hypervolume

    points, ref = np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2)
    live = []
    for backend in ("numba", "torch", "moocore"):
        try:
            if abs(float(hypervolume(points, ref, backend=backend)) - 3.0) < 1e-9:
                live.append(backend)
        except (ImportError, ValueError, RuntimeError):  # not installed or not usable here
            continue
    fast = "compiled" if "numba" in live else "NOT compiled, slower on batches"
    return f"{', '.join(live)} ({fast})"
