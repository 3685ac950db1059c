"""The tables (into ``README.md``, between its markers) and figures (to ``docs/images``) of what is in ``results/``.

python experiments/mfld/report.py
"""

import contextlib
import io
import statistics
from collections.abc import Iterable
from pathlib import Path

import torch
from rows import Rows

from moopt.plotting import particle_data, plot_particles, plot_sides, plot_sizes, size_data
from moopt.plotting.style import new_figure
from moopt.samplers.mfld import MFLDRegressor, multi_index

IMAGES = Path(__file__).parents[2] / "docs" / "images"
README = Path(__file__).parent / "README.md"


def spread(values: list[float], digits: int = 3) -> str:
    """Return mean and standard deviation, or a dash."""
    if not values:
        return "not run"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def show(header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a Markdown table."""
    head = list(header)
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def keys(table: Rows, column: str) -> list[str]:
    """Return the distinct values of a column in order."""
    return list(dict.fromkeys(row[column] for row in table.rows))


def separation() -> None:
    """Print test errors beside the kernel."""
    table = Rows("separation", ["case", "method", "seed"], [])
    methods = ["default", "annealed", "patient", "kernel"]
    rows = []
    for case in keys(table, "case"):
        cells = [table.numbers("test_mse", case=case, method=m) for m in methods]
        rows.append([case, *(f"{spread(c)} ({len(c)})" if c else "not run" for c in cells)])
    show(["case", *(f"{m}, test MSE (seeds)" for m in methods)], rows)


def pareto() -> None:
    """Print hypervolumes."""
    table = Rows("pareto", ["problem", "method", "budget", "seed"], [])
    for budget in sorted(set(keys(table, "budget")), key=int, reverse=True):
        methods = [m for m in keys(table, "method") if any(table.numbers("hv", method=m, budget=budget))]
        rows = []
        for problem in keys(table, "problem"):
            cells = [table.numbers("hv", problem=problem, method=m, budget=budget) for m in methods]
            rows.append([problem, *(spread(c, 4) if c else "-" for c in cells)])
        show([f"budget {budget}", *methods], rows)


def blackbox() -> None:
    """Print hypervolumes on surrogates."""
    table = Rows("blackbox", ["problem", "method", "seed"], [])
    rows = []
    for problem in keys(table, "problem"):
        cells = [table.numbers("hv", problem=problem, method=m) for m in ("surrogate", "sobol")]
        best = table.numbers("max_hv", problem=problem)[0]
        rows.append([problem, *(spread(c, 2) for c in cells), f"{best:.2f}"])
    show(["problem", "surrogate_search", "Sobol", "exact front"], rows)


def sphere() -> None:
    """Print and draw sphere beside Euclidean space."""
    table = Rows("sphere", ["setting", "manifold", "seed"], [])
    names = keys(table, "setting")
    sides = ("sphere", "euclidean")
    steps = {s: {m: table.numbers("steps_to_level", setting=s, manifold=m) for m in sides} for s in names}
    rows = []
    for name in names:
        cells = [" ".join("never" if v != v else f"{v:.0f}" for v in steps[name][m]) for m in sides]
        ends = [spread(table.numbers("final_mse", setting=name, manifold=m)) for m in sides]
        rows.append([name, *cells, *ends])
    show(["setting", "sphere: steps to 0.1", "Euclidean: steps to 0.1", "sphere: final", "Euclidean: final"], rows)
    figure = new_figure(6.4, 4.4)
    plot_sides(steps, ax=figure.subplots(), value_name="steps until the test error is below 0.1 (5 seeds)")
    figure.savefig(IMAGES / "mfld-sphere.png", dpi=110)


def sizes(name: str) -> dict[str, dict[float, list[float]]]:
    """Return test errors (``gap``: minus training errors) by d_eff and n."""
    table = Rows(name, ["d_eff", "n", "seed"], [])
    values: dict[str, dict[float, list[float]]] = {}
    for row in table.rows:
        value = float(row["test_mse"]) - (float(row["train_mse"]) if name == "gap" else 0.0)
        values.setdefault(f"d_eff = {row['d_eff']}", {}).setdefault(float(row["n"]), []).append(value)
    return values


def scaling() -> None:
    """Print and draw the paper's two figures and the sample sizes."""
    figure = new_figure(10.2, 3.9)
    axes = figure.subplots(1, 3)
    labels = (("risk", "test error, 200 steps"), ("gap", "test minus training error, 3000 steps"))
    for ax, (name, label) in zip(axes, labels, strict=False):
        values = sizes(name)
        plot_sizes(size_data(values), ax=ax, value_name=label)
        ns = sorted({n for table in values.values() for n in table})
        rows = [[d, *(spread(table.get(n, [])) for n in ns)] for d, table in values.items()]
        show([label, *(f"n = {n:.0f}" for n in ns)], rows)
    plot_sizes(size_data(sizes("nstar_points")), ax=axes[2], value_name="test error", level=0.3, log_values=True)
    figure.savefig(IMAGES / "mfld-scaling.png", dpi=110)
    table = Rows("nstar", ["what", "d_eff"], ["value", "low", "high"])
    show(table.fields, [[row[k] for k in table.fields] for row in table.rows])


def speed() -> None:
    """Print times and ratios."""
    table = Rows("speed", ["what", "n", "m", "dim", "side"], ["ms", "ratio"])
    rows = []
    for row in table.rows:
        if row["what"].startswith("cost"):
            continue
        rows.append([row["what"], f"{row['n']}, {row['m']}, {row['dim']}", row["side"]])
        rows[-1] += [f"{float(row['ms']):.2f}", f"{float(row['ratio']):.2f}"]
    show(["what", "n, m, D", "side", "ms a step", "ratio"], rows)
    slopes = {row["what"]: row["ratio"] for row in table.rows if row["what"].startswith("cost")}
    show(["closed form", "slope of log time"], [[k, f"{float(v):.2f}"] for k, v in slopes.items()])


def particles() -> None:
    """Draw where the particles of a parity end up."""
    figure = new_figure(8.6, 4.3)
    axes = figure.subplots(1, 2)
    data = multi_index("parity2", 800, 50)
    for ax, steps in zip(axes, (1, 500), strict=True):
        model = MFLDRegressor(
            200, scale=2.0, temperature=1e-4, n_steps=steps, early_stopping=False, random_state=0
        ).fit(data.X, data.y)
        found = particle_data(model.particles_, data.basis, model.signs_)
        plot_particles(found, ax=ax, title=f"parity of 2 in 50 inputs, step {steps}")
    figure.savefig(IMAGES / "mfld-particles.png", dpi=110)


def main() -> None:
    """Print and draw everything."""
    torch.set_num_threads(1)
    IMAGES.mkdir(parents=True, exist_ok=True)
    text = README.read_text(encoding="utf-8")
    for part in (separation, pareto, blackbox, scaling, sphere, speed):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            part()
        begin, end = f"<!-- begin {part.__name__} -->\n", f"\n<!-- end {part.__name__} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + said.getvalue() + end + rest.partition(end)[2]
    README.write_text(text, encoding="utf-8")
    particles()


if __name__ == "__main__":
    main()
