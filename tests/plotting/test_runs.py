"""Figures of run folders."""

import csv

import numpy as np
import pytest

from moopt.pareto import Front
from moopt.plotting import plot_runs, style
from moopt.plotting import runs as plots
from moopt.plotting.runs import run_curves, run_fronts
from moopt.runs import RunDir, read_run


def make_run(root, seed, *, algo="cmorl", env="sea", m=2, front=True, metrics=True, shift=0.0):
    run = RunDir.create(root / f"{algo}-{env}-{seed}", algo=algo, env=env, seed=seed, config={})
    if metrics:
        for step in (0, 1000, 2000):
            run.metrics.write(step, hv=1.0 + step / 1000 + seed, n_front=3)
    if front:
        points = np.random.default_rng(seed).random((6, m)) + shift
        front = Front.from_user(points, names=list("abcdefghi")[:m], directions=["max", "min"] + ["max"] * (m - 2))
        run.write_front(front.replace(ref_point=np.full(m, -2.0)))
        run.write_front(front.replace(points=front.points + 0.1), "exact_front")
    run.set_status("finished")
    return run.path


def read_table(path):
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def test_one_run(tmp_path):
    path = make_run(tmp_path, 1)
    written = plot_runs([path], tmp_path / "plots" / "sea.png", pdf=True, dpi=50)
    assert [p.name for p in written] == ["sea.png", "sea.pdf", "sea-front.csv", "sea-curve.csv"]
    assert written[0].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert written[1].read_bytes()[:5] == b"%PDF-"
    front = read_run(path).front
    rows = read_table(written[2])
    best = front.filter()
    drawn = [[float(r["a"]), float(r["b"])] for r in rows if r["kind"] == "point"]
    assert sorted(drawn) == sorted(best.user_points.tolist())
    assert [front.user_points[int(r["id"])].tolist() for r in rows if r["kind"] == "point"] == drawn
    assert sum(r["kind"] == "dominated" for r in rows) == len(front) - len(best)
    assert sum(r["kind"] == "exact" for r in rows) == len(best)
    assert [[float(r["a"]), float(r["b"])] for r in rows if r["kind"] == "reference"] == [[-2.0, 2.0]]
    curve = read_table(written[3])
    assert [float(r["step"]) for r in curve] == [0, 1000, 2000]
    assert [float(r["median"]) for r in curve] == [2, 3, 4]


def test_several_runs_share_colours_and_bands(tmp_path):
    paths = [make_run(tmp_path, s, algo=a) for a in ("cmorl", "pgmorl") for s in (0, 1, 2)]
    records = [read_run(p) for p in paths]
    fronts, curves = run_fronts(records), run_curves(records, "hv")
    assert [s.label for s in fronts.series] == [f"{a}, seed {s}" for a in ("cmorl", "pgmorl") for s in (0, 1, 2)]
    assert [s.color for s in fronts.series] == [0, 0, 0, 1, 1, 1]
    assert [(s.label, s.n, s.color) for s in curves.series] == [("cmorl", 3, 0), ("pgmorl", 3, 1)]
    assert curves.series[0].median.tolist() == [2, 3, 4]
    assert [p.name for p in plot_runs(paths, tmp_path / "all.svg")] == [
        "all.svg",
        "all-front.csv",
        "all-curve.csv",
    ]


def test_seeds_of_one_method_have_a_colour_each_and_their_median_none_of_them(tmp_path):
    records = [read_run(make_run(tmp_path, s)) for s in (0, 1, 2)]
    assert [s.color for s in run_fronts(records).series] == [0, 1, 2]
    (line,) = run_curves(records, "hv").series
    assert line.color not in (0, 1, 2)
    (line,) = run_curves(records[:1], "hv").series
    assert line.color == 0


def test_curves_begin_with_the_first_evaluation(tmp_path):
    run = RunDir.open(make_run(tmp_path, 0, metrics=False))
    for step, hv, size in ((0, 0.0, 0), (10, 0.0, 0), (20, 5.0, 2), (30, 0.0, 1)):
        run.metrics.write(step, hv=hv, n_front=size)
    (line,) = run_curves([read_run(run.path)], "hv").series
    assert line.steps.tolist() == [20, 30]
    assert line.median.tolist() == [5, 0]


@pytest.mark.parametrize(("ref", "shown"), [(-2.0, True), (-3.0, False)])
def test_the_known_front_marks_a_level_only_if_volumes_compare(tmp_path, monkeypatch, ref, shown):
    drawn = []
    monkeypatch.setattr(
        plots, "draw_runs", lambda fronts, curves, title: drawn.append(curves) or style.new_figure(1, 1)
    )
    paths = [make_run(tmp_path, s) for s in (0, 1)]
    run = RunDir.open(paths[1])
    run.write_front(read_run(run.path).front.replace(ref_point=np.full(2, ref)))
    plot_runs(paths, tmp_path / "a.svg")
    truth = read_run(paths[0]).exact_front.hypervolume(ref_point=[-2.0, -2.0])
    assert drawn[0].level == (pytest.approx(truth) if shown else None)
    plot_runs(paths, tmp_path / "b.svg", metric="n_front")
    assert drawn[1].level is None


@pytest.mark.parametrize(
    ("gammas", "text"),
    [
        ((0.98,), "cmorl on sea, seed 0, returns discounted by 0.98"),
        ((1.0,), "cmorl on sea, seed 0"),
        ((0.9, 0.9), "sea: cmorl, 2 runs, returns discounted by 0.9"),
        ((0.9, 1.0), "sea: cmorl, 2 runs"),
    ],
)
def test_the_title_names_the_discount_of_what_is_drawn(tmp_path, monkeypatch, gammas, text):
    titles = []
    monkeypatch.setattr(
        plots, "draw_runs", lambda fronts, curves, title: titles.append(title) or style.new_figure(1, 1)
    )
    paths = [make_run(tmp_path, seed) for seed in range(len(gammas))]
    for path, gamma in zip(paths, gammas, strict=True):
        front = read_run(path).front
        RunDir.open(path).write_front(front.replace(meta={**front.meta, "gamma_eval": gamma}))
    plot_runs(paths, tmp_path / "a.svg")
    assert titles == [text]


def test_the_same_run_twice_gets_two_labels(tmp_path):
    record = read_run(make_run(tmp_path, 0))
    assert [s.label for s in run_fronts([record, record]).series] == ["cmorl, seed 0", "cmorl, seed 0 (2)"]


def test_many_runs_are_merged_by_method(tmp_path):
    records = [read_run(make_run(tmp_path, s, algo=a)) for a in ("cmorl", "pgmorl") for s in range(4)]
    fronts = run_fronts(records)
    assert [s.label for s in fronts.series] == ["cmorl, 4 runs", "pgmorl, 4 runs"]
    merged = Front(np.concatenate([r.front.points for r in records[:4]])).filter()
    assert sorted((fronts.series[0].points * [1, -1]).tolist()) == sorted(merged.points.tolist())


@pytest.mark.parametrize("m", [3, 6])
def test_more_objectives(m, tmp_path):
    paths = [make_run(tmp_path, s, m=m) for s in (0, 1)]
    assert plot_runs(paths, tmp_path / "p.png", dpi=40)[0].stat().st_size > 5000
    assert plot_runs(paths[:1], tmp_path / "q", dpi=40)[0].name == "q.png"


def test_unfinished_runs_are_drawn_as_far_as_they_are(tmp_path):
    only_curve = make_run(tmp_path, 0, front=False)
    only_front = make_run(tmp_path, 1, metrics=False)
    neither = make_run(tmp_path, 2, front=False, metrics=False)
    assert [p.name for p in plot_runs([only_curve], tmp_path / "a.png", dpi=40)] == ["a.png", "a-curve.csv"]
    assert [p.name for p in plot_runs([only_front], tmp_path / "b.png", dpi=40)] == ["b.png", "b-front.csv"]
    assert len(plot_runs([only_curve, only_front, neither], tmp_path / "c.png", dpi=40)) == 3
    with pytest.raises(ValueError, match="neither a front nor a value"):
        plot_runs([neither], tmp_path / "d.png")
    assert not (tmp_path / "d.png").exists()


def test_exact_front_from_a_plain_table_is_turned(tmp_path):
    path = make_run(tmp_path, 0)
    expected = run_fronts([read_run(path)]).exact.points
    (path / "exact_front.json").unlink()
    assert run_fronts([read_run(path)]).exact.points.tolist() == expected.tolist()


def test_bad_arguments(tmp_path):
    sea, lake = make_run(tmp_path, 0), make_run(tmp_path, 0, env="lake")
    wide = make_run(tmp_path, 7, m=3)
    for paths, out, kwargs, message in (
        ([], "a.png", {}, "at least one run"),
        ([sea, lake], "a.png", {}, "different environments cannot share a figure: lake, sea"),
        ([sea, wide], "a.png", {}, "has objectives"),
        ([sea], "a.pnj", {}, "unknown kind of image '.pnj'"),
        ([sea], "a.png", {"metric": "hvv"}, "no metric 'hvv'.*did you mean 'hv'"),
        ([tmp_path / "nowhere"], "a.png", {}, "nowhere"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_runs(paths, tmp_path / out, **kwargs)
    assert not list(tmp_path.glob("a*"))
