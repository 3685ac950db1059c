"""Rules of the house that no linter checks."""

import ast
import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import moopt

ROOT = Path(__file__).parent.parent
ROOMS = ("agents", "envs", "samplers", "kernels")
SOURCES = sorted(p for room in ("moopt", *ROOMS) for p in (ROOT / room).rglob("*.py") if not p.parent.is_symlink())
MODULES = sorted(
    {
        ".".join(("moopt" if p.relative_to(ROOT).parts[0] in ROOMS else "", *p.relative_to(ROOT).with_suffix("").parts))
        .strip(".")
        .removesuffix(".__init__")
        for p in SOURCES
        if p.name != "__main__.py" and not set(p.relative_to(ROOT).parts[1:-1]) & set(ROOMS)
    }
)


def tracked():
    """Text files under version control, or all sources where there is no git."""
    try:
        done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return SOURCES
    paths = [ROOT / line for line in done.stdout.splitlines()]
    return [p for p in paths if p.is_file() and not p.is_symlink() and p.suffix not in (".png", ".pdf", ".npz")]


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_links_of_the_package(room):
    link = ROOT / "moopt" / room
    assert link.is_symlink()
    assert os.readlink(link) == f"../{room}"


@pytest.mark.parametrize("room", ROOMS)
def test_bare_names_are_refused(room):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {room}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert f"import moopt.{room}, not {room}" in done.stderr


PUBLIC = {
    "moopt": "CMORL Front __version__",
    "moopt.kernels": "hypervolume hypervolume_and_grad hv_contributions hv_improvement hv_subset hv_approx "
    "box_decomposition is_non_dominated non_dominated_rank crowding_distance warmup",
    "moopt.pareto": "Front Archive simplex_weights infer_reference_point igd igd_plus epsilon_additive "
    "expected_utility maximum_utility_loss sparsity eaf",
    "moopt.agents": "CMORL CMORLConfig",
    "moopt.samplers": "MeanFieldLangevin MFLDRegressor MFLDClassifier ParetoMFLD",
    "moopt.envs": "MOVecEnv describe_env list_envs make_env make_vec_env random_returns suggest_ref_point",
    "moopt.runs": "Callback Progress Result RunDir find_runs read_run load_state save_state seed_streams",
    "moopt.parallel": "Executor TaskError get_executor",
    "moopt.plotting": "front_data plot_front plot_pairs plot_parallel plot_curve plot_runs",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_names_that_users_type_are_there(module):
    home = importlib.import_module(module)
    for name in PUBLIC[module].split():
        assert getattr(home, name) is not None
        assert name in dir(home)


@pytest.mark.parametrize("name", MODULES)
def test_names_a_module_offers_are_there(name):
    module = importlib.import_module(name)
    for offered in getattr(module, "__all__", ()):
        assert hasattr(module, offered), offered


@pytest.mark.parametrize("name", [m for m in MODULES if "." not in m.removeprefix("moopt.")] + ["moopt"])
def test_a_name_that_is_not_there_is_an_ordinary_error(name):
    with pytest.raises(AttributeError, match="no_such_name"):
        importlib.import_module(name).no_such_name  # noqa: B018


def test_the_walk_finds_every_room():
    """A package without ``__init__`` would drop out of the wheel, the type check and the tests of this file."""
    assert len(MODULES) > 100
    assert set(MODULES) == {m.name for m in pkgutil.walk_packages(moopt.__path__, "moopt.")} - {"moopt.__main__"} | {
        "moopt"
    }


def public_functions():
    """Public functions and methods of the package, with where they stand."""
    for path in SOURCES:
        todo = [(path.relative_to(ROOT), node) for node in ast.parse(path.read_text()).body]
        for where, node in todo:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                todo += [(f"{where}:{node.name}", child) for child in node.body]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                yield f"{where}:{node.name}", node


def test_public_functions_say_what_they_take_and_give():
    """Types on every argument and the result; compiled kernels get theirs from numba."""
    count = 0
    for where, node in public_functions():
        if "kernels/compiled" in where:
            continue
        count += 1
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        bare = [a.arg for a in arguments if a is not None and a.annotation is None and a.arg not in ("self", "cls")]
        assert not bare, f"{where}: no type for {', '.join(bare)}"
        assert node.returns is not None, f"{where}: no type for the result"
    assert count > 500


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_fits_a_head(path):
    assert len(path.read_text().splitlines()) <= 600


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=flags).failed == 0


NUMPY_RANDOM = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "Philox", "SFC64"}
TORCH_DRAWS = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "rand_like"}
TORCH_DRAWS |= {"randn_like", "randint_like", "manual_seed", "seed", "set_rng_state", "fork_rng"}


def draws_globally(call, keywords):
    """Tell whether a call changes or uses a generator that all share, going by its name and keywords."""
    home, _, name = call.rpartition(".")
    if home in ("np.random", "numpy.random"):
        return name not in NUMPY_RANDOM
    if "generator" in keywords:
        return False
    in_place = name in ("normal_", "uniform_", "exponential_", "bernoulli_", "random_", "cauchy_", "geometric_")
    return in_place or (home == "torch" and name in TORCH_DRAWS) or (home.endswith("nn.init") and "orthogonal" in name)


@pytest.mark.parametrize(
    ("call", "keywords", "shared"),
    [
        ("np.random.rand", (), True),
        ("numpy.random.seed", (), True),
        ("np.random.default_rng", (), False),
        ("rng.normal", (), False),
        ("torch.manual_seed", (), True),
        ("torch.randn", ("dtype",), True),
        ("torch.randn", ("generator",), False),
        ("torch.Generator", (), False),
        ("weight.normal_", (), True),
        ("torch.nn.init.orthogonal_", (), True),
        ("torch.nn.init.orthogonal_", ("generator",), False),
    ],
)
def test_shared_generators_are_recognised(call, keywords, shared):
    assert draws_globally(call, set(keywords)) == shared


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_global_randomness_and_no_pickle(path):
    """Also no ``.cuda()``: everything takes a device. cloudpickle serves the pipes to a process's own workers."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & {"pickle", "random", "dill"}, node.lineno
        if isinstance(node, ast.ImportFrom):
            assert node.module not in ("pickle", "random", "dill"), node.lineno
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        call = ast.unparse(node.func)
        assert not draws_globally(call, {k.arg for k in node.keywords}), f"line {node.lineno}: {call}"
        assert not call.endswith(".cuda"), node.lineno
        assert call not in ("joblib.load", "joblib.dump", "torch.save", "pd.read_pickle"), node.lineno
        if call == "torch.load":
            assert any(k.arg == "weights_only" and ast.literal_eval(k.value) for k in node.keywords), node.lineno
        if call in ("np.load", "numpy.load"):
            assert not any(k.arg == "allow_pickle" and ast.literal_eval(k.value) for k in node.keywords), node.lineno


def test_pages_link_to_what_exists():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("experiments/*/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


LOCAL = re.compile(
    r"(?<![\w.])/(work|home|root|opt|Users)/\w|file:///|localhost:\d"
    r"|://(10|127|172\.(1[6-9]|2\d|3[01])|192\.168)\.\d|://[\w.-]+\.(corp|internal|lan|local)\b"
    r"|--(extra-)?index-url[ =]|--trusted-host[ =]|--find-links[ =]"
)


def test_the_project_speaks_of_itself_alone():
    own = Path(__file__)
    for path in tracked():
        if path == own or path.name == "constraints.txt":
            continue
        text = path.read_text(errors="replace")
        found = LOCAL.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found.group()}"


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("see /home/someone/x", True),
        ("http://10.1.2.3/simple", True),
        ("pip install --index-url https://mirror", True),
        ("https://mirror.corp/simple", True),
        ("https://pypi.org/simple", False),
        ("version 10.1.2", False),
        ("docs/home/page", False),
    ],
)
def test_local_places_are_recognised(text, local):
    assert (LOCAL.search(text) is not None) == local


def test_constraints_pin_releases_only():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[\w.]+( ;.*)?", line), line


@pytest.mark.slow
def test_the_wheel_holds_the_rooms(tmp_path):
    """As ``make build`` makes it: the source archive, and from that the wheel; the links have become folders."""
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    committed = subprocess.run(["git", "ls-files"], cwd=source, capture_output=True, text=True, check=True)
    files = [Path(line) for line in committed.stdout.splitlines() if line.endswith(".py")]
    wanted = {str(p if p.parts[0] == "moopt" else Path("moopt") / p) for p in files if p.parts[0] in ("moopt", *ROOMS)}
    assert len(wanted) > 100
    assert not wanted - names
    assert "moopt/py.typed" in names
    assert {name.split("/")[0] for name in names} <= {
        "moopt",
        next(n for n in names if ".dist-info/" in n).split("/")[0],
    }
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        packed = {member.name.partition("/")[2]: member for member in members}
    assert not wanted - set(packed)
    assert not [name for name, member in packed.items() if member.issym() or member.islnk()]
