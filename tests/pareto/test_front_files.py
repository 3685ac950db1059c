"""Fronts on disk: exact round trips, and readers that survive hostile files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moopt.pareto import Front
from moopt.pareto.front_files import MAX_BYTES
from moopt.runs.errors import MooptError

TEXT = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8).filter(lambda s: s != "id")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.just("$float"), inner, max_size=3)
    ),
    max_leaves=6,
)


def same(a, b):
    """Equal to the last bit, NaN and signed zero included."""
    if isinstance(a, float) and isinstance(b, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple | range):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@st.composite
def fronts(draw):
    m, n = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    numbers = st.floats(allow_nan=False)
    solutions = draw(
        st.sampled_from(
            [
                None,
                np.arange(n * 3, dtype=np.float32).reshape(n, 3) / 7,
                np.arange(n, dtype=np.uint8),
                [f"policy-{i}" for i in range(n)],
                [(i, np.full(2, i / 3)) for i in range(n)],
            ]
        )
    )
    return Front(
        draw(hnp.arrays(np.float64, (n, m), elements=numbers)),
        names=draw(st.lists(TEXT, min_size=m, max_size=m, unique=True)),
        units=draw(st.lists(st.text(max_size=4), min_size=m, max_size=m)),
        directions=draw(st.lists(st.sampled_from(["max", "min"]), min_size=m, max_size=m)),
        ref_point=draw(st.none() | hnp.arrays(np.float64, (m,), elements=numbers)),
        solutions=solutions,
        meta=draw(st.dictionaries(st.text(max_size=5), PLAIN, max_size=3)),
    )


@settings(max_examples=80, deadline=None, derandomize=True)
@given(fronts())
def test_json_gives_back_every_bit(tmp_path_factory, front):
    path = tmp_path_factory.mktemp("front") / "front.json"
    front.to_json(path)
    back = Front.from_json(path)
    for field in ("points", "names", "units", "directions", "ref_point", "solutions", "meta"):
        assert same(getattr(front, field), getattr(back, field)), field
    json.loads(path.read_text(), parse_constant=pytest.fail)  # strict JSON: no NaN, no Infinity


@settings(max_examples=40, deadline=None, derandomize=True)
@given(fronts())
def test_csv_gives_back_every_bit(tmp_path_factory, front):
    path = tmp_path_factory.mktemp("front") / "front.csv"
    front.to_csv(path)
    back = Front.from_csv(path, directions=front.directions)
    assert same(front.points, back.points)
    assert back.names == front.names


def test_layout(tmp_path):
    front = Front.from_user([[0.1, 20.0], [3.0, np.inf]], names=["gain, net", "cost"], directions=["max", "min"])
    front.to_csv(tmp_path / "front.csv")
    assert (tmp_path / "front.csv").read_bytes() == b'"gain, net",cost,id\n0.1,20.0,0\n3.0,inf,1\n'
    front.to_json(tmp_path / "front.json")
    document = json.loads((tmp_path / "front.json").read_text())
    assert list(document) == [
        "format", "version", "names", "units", "directions", "points", "ref_point", "solutions", "meta",
    ]  # fmt: skip
    assert document["points"] == [[0.1, 20.0], [3.0, {"$float": "inf"}]]


@pytest.mark.parametrize(
    ("solutions", "ids"),
    [
        (None, [0, 1]),
        (["b7", "a3"], ["b7", "a3"]),
        ([7, 5], [7, 5]),
        (["07", "5"], ["07", "5"]),
        (np.eye(2), [0, 1]),
    ],
)
def test_csv_ids(solutions, ids, tmp_path):
    Front([[1, 2], [2, 1]], solutions=solutions).to_csv(tmp_path / "f.csv")
    assert list(Front.from_csv(tmp_path / "f.csv").solutions) == ids


def test_any_plain_table_is_a_front(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbfspeed, price ,comment\r\n1,2e1,hello\r\n\r\n.5,-3,=cmd()\r\n")
    front = Front.from_csv(path, directions=["max", "min"], objectives=["speed", "price"], ref_point=[0, 50])
    assert front.user_points.tolist() == [[1.0, 20.0], [0.5, -3.0]]
    assert front.points.tolist() == [[1.0, -20.0], [0.5, 3.0]]
    assert front.user_ref_point.tolist() == [0, 50]
    assert front.solutions == range(2)
    turned = Front.from_csv(path, objectives=["price"])
    assert turned.names == ("price",)


def test_empty_front_round_trip(tmp_path):
    front = Front(np.empty((0, 3)))
    front.to_csv(tmp_path / "f.csv")
    front.to_json(tmp_path / "f.json")
    assert Front.from_csv(tmp_path / "f.csv").points.shape == (0, 3)
    assert Front.from_json(tmp_path / "f.json") == front


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no header"),
        (b"\n1,2\n", "no header"),
        (b"a,a\n1,2\n", "repeated"),
        (b"a,b\n1\n", "line 2: 1 cells under 2"),
        (b"a,b\n1,2\n1,2,3\n", "line 3: 3 cells"),
        (b"a,b\n1,x\n", "line 2, column 'b': 'x' is not a number"),
        (b"a,b\n1,1_0\n", "not a number"),
        (b"a,b\n1,\n", "not a number"),
        (b"a,b\n1,nan\n", "not a number"),
        (b"a,b\n1,__import__('os').system('true')\n", "not a number"),
        (b'a,b\n1,"2\n', "not a CSV"),
        (b"\xff\xfe\x00a", "not UTF-8"),
        (b"a,b\n1,\x002\n", "not a"),
        (b"id\n1\n", "objectives"),
        (b"a,b\n1," + b"9" * 200_000 + b"\n", "not a CSV"),
    ],
)
def test_bad_tables(content, message, tmp_path):
    path = tmp_path / "f.csv"
    path.write_bytes(content)
    with pytest.raises(MooptError, match=message):
        Front.from_csv(path)


def test_unknown_column(tmp_path):
    (tmp_path / "f.csv").write_text("speed,price\n1,2\n")
    with pytest.raises(MooptError, match="did you mean 'speed'"):
        Front.from_csv(tmp_path / "f.csv", objectives=["sped"])
    with pytest.raises(MooptError, match="unknown direction"):
        Front.from_csv(tmp_path / "f.csv", directions="up")


GOOD = {
    "format": "moopt-front",
    "version": 1,
    "names": ["a", "b"],
    "units": ["", ""],
    "directions": ["max", "min"],
    "points": [[1, 2.5]],
    "ref_point": None,
    "solutions": [0],
    "meta": {},
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a front"),
        ("[]", "lacks"),
        ("{}", "lacks"),
        ("null", "lacks"),
        ("[" * 100_000, "nested too deeply"),
        ('{"meta": ' * 3000 + "1" + "}" * 3000, "nested too deeply|lacks"),
        ('{"format": "moopt-front", "format": "moopt-front"}', "repeated"),
        ("NaN", "not JSON"),
        ("9" * 10_000, "not a front"),
        ({"version": 2}, "version 2"),
        ({"names": None}, "list of strings"),
        ({"names": ["a", 3]}, "list of strings"),
        ({"names": ["a", "a"]}, "differ"),
        ({"directions": ["max", "up"]}, "unknown direction"),
        ({"points": [[1]]}, "2 numbers each"),
        ({"points": {"a": 1}}, "2 numbers each"),
        ({"points": [[1, "2"]]}, "must be numbers"),
        ({"points": [[1, True]]}, "must be numbers"),
        ({"points": [[1, 10**400]]}, "not a front"),
        ({"points": [[1, {"$float": "nan"}]]}, "NaN"),
        ({"points": [[1, {"$float": "x"}]]}, "unknown tag"),
        ({"ref_point": [1]}, "2 numbers each"),
        ({"ref_point": "x"}, "2 numbers each"),
        ({"solutions": 3}, "solutions a list"),
        ({"solutions": [1, 2]}, "2 solutions for 1"),
        ({"solutions": {"$array": [1], "dtype": "object", "shape": [1]}}, "unknown tag"),
        ({"solutions": {"$array": [[1], [2, 3]], "dtype": "float64", "shape": [2]}}, "not a front"),
        ({"solutions": {"$array": [1], "dtype": "float64", "shape": [10**12]}}, "not a front"),
        ({"solutions": {"$range": 10**15}}, "unknown tag"),
        ({"meta": [1]}, "meta must be"),
        ({"meta": {"$tuple": 3}}, "unknown tag"),
    ],
)
def test_bad_documents(content, message, tmp_path):
    path = tmp_path / "f.json"
    path.write_text(content if isinstance(content, str) else json.dumps({**GOOD, **content}))
    with pytest.raises(MooptError, match=message):
        Front.from_json(path)


def test_missing_key_names_it(tmp_path):
    for key in ("names", "points", "meta"):
        (tmp_path / "f.json").write_text(json.dumps({k: v for k, v in GOOD.items() if k != key}))
        with pytest.raises(MooptError, match=f"lacks '{key}'"):
            Front.from_json(tmp_path / "f.json")


def test_good_document_is_good(tmp_path):
    (tmp_path / "f.json").write_text(json.dumps(GOOD))
    assert Front.from_json(tmp_path / "f.json").points.tolist() == [[1.0, -2.5]]


@pytest.mark.parametrize("read", [Front.from_csv, Front.from_json])
def test_unreadable_files(read, tmp_path):
    with pytest.raises(MooptError, match="cannot read"):
        read(tmp_path / "missing")
    with pytest.raises(MooptError, match="cannot read"):
        read(tmp_path)
    with (tmp_path / "huge").open("wb") as handle:
        handle.truncate(MAX_BYTES + 1)
    with pytest.raises(MooptError, match="larger than"):
        read(tmp_path / "huge")


def test_unwritable_content_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.json"
    Front([[1, 2]]).to_json(path)
    before = path.read_bytes()
    for kwargs, where in (
        ({"solutions": [object()]}, r"solutions\[0\] is of type object"),
        ({"meta": {"a": {1: 2}}}, "meta"),
    ):
        with pytest.raises(MooptError, match=where):
            Front([[1, 2]], **kwargs).to_json(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["f.json"]
