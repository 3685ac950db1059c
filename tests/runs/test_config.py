"""Settings: coercion, round trips, files."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moopt.agents.cmorl.config import CMORLConfig
from moopt.runs import ConfigError, config_from_mapping, config_to_dict, load_config_file


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.5
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    count: int
    scale: float = 1.0
    flag: bool = False
    kind: Literal["a", "b", 3] = "a"
    sizes: tuple[int, ...] = (64, 64)
    pair: tuple[float, str] = (0.0, "x")
    limit: float | None = None
    mixed: int | str = 1
    table: dict[str, int] = dataclasses.field(default_factory=dict)
    rows: list[float] = dataclasses.field(default_factory=list)
    where: Path = Path()
    inner: Inner = Inner()
    anything: Any = None


numbers = st.floats(allow_nan=False)
samples = st.builds(
    Sample,
    count=st.integers(),
    scale=numbers,
    flag=st.booleans(),
    kind=st.sampled_from(["a", "b", 3]),
    sizes=st.lists(st.integers()).map(tuple),
    pair=st.tuples(numbers, st.text()),
    limit=st.none() | numbers,
    mixed=st.integers() | st.text(),
    table=st.dictionaries(st.text(), st.integers()),
    rows=st.lists(numbers),
    inner=st.builds(Inner, rate=numbers, names=st.lists(st.text()).map(tuple)),
    anything=st.none() | st.integers() | st.lists(st.text()),
)


@given(config=samples)
def test_round_trip_through_json(config):
    text = json.dumps(config_to_dict(config), allow_nan=False)
    assert config_from_mapping(Sample, json.loads(text)) == config


@given(value=st.integers(-(10**15), 10**15))
def test_integers_in_every_spelling(value):
    for spelling in (value, str(value), f" {value} ", float(value), f"{value:_}"):
        assert config_from_mapping(Sample, {"count": spelling}).count == value


@given(value=numbers)
def test_numbers_as_text(value):
    assert config_from_mapping(Sample, {"count": 0, "scale": repr(value)}).scale == value
    assert config_from_mapping(Sample, {"count": 0, "limit": repr(value)}).limit == value


@given(value=st.integers() | numbers | st.text() | st.booleans() | st.none() | st.lists(st.integers()))
def test_any_value_gives_the_right_type_or_our_error(value):
    for field in dataclasses.fields(Sample):
        try:
            got = getattr(config_from_mapping(Sample, {"count": 1, field.name: value}), field.name)
        except ConfigError as error:
            if field.name not in str(error):
                raise
            continue
        kinds = {"count": int, "scale": float, "flag": bool, "sizes": tuple, "inner": Inner, "rows": list}
        if field.name in kinds:
            assert type(got) is kinds[field.name]


def test_real_config_from_yaml(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "learning-rate: 1e-3\nnum_steps: 2e2\nhidden_sizes: [32, 16]\ncorners_only: on\ngamma_eval: null\n"
        "ref_point: [-1, 0.5]\n"
    )
    config = config_from_mapping(CMORLConfig, load_config_file(file))
    assert config == CMORLConfig(
        learning_rate=1e-3, num_steps=200, hidden_sizes=(32, 16), corners_only=True, ref_point=(-1.0, 0.5)
    )
    assert isinstance(config.num_steps, int)
    assert config_from_mapping(CMORLConfig, config_to_dict(config)) == config


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"learning_rat": 1}, "unknown setting 'learning_rat'; did you mean 'learning_rate'"),
        ({"num_steps": 1.5}, "'num_steps' must be an integer, got 1.5"),
        ({"num_steps": True}, "'num_steps' must be an integer, got True"),
        ({"num_steps": "many"}, "'num_steps' must be an integer, got 'many'"),
        ({"gamma": "nan"}, "'gamma' must be a number"),
        ({"gamma": [1]}, "'gamma' must be a number"),
        ({"corners_only": "maybe"}, "'corners_only' must be true or false"),
        ({"truncation": "crowdin"}, "must be one of crowding.*did you mean 'crowding'"),
        ({"hidden_sizes": 64}, "'hidden_sizes' must be a list, got 64"),
        ({"hidden_sizes": ["a"]}, r"'hidden_sizes\[0\]' must be an integer"),
        ({"gamma": 1, "gam-ma": 2}, "unknown setting 'gam-ma'; did you mean 'gamma'"),
        ({"num-steps": 1, "num_steps": 2}, "given twice"),
    ],
)
def test_wrong_settings_are_named(mapping, message):
    with pytest.raises(ConfigError, match=message):
        config_from_mapping(CMORLConfig, mapping)


def test_missing_and_nested():
    with pytest.raises(ConfigError, match="'count' is missing"):
        config_from_mapping(Sample, {})
    with pytest.raises(ConfigError, match=r"unknown setting 'inner\.rat'; did you mean 'rate'"):
        config_from_mapping(Sample, {"count": 1, "inner": {"rat": 2}})
    with pytest.raises(ConfigError, match="inner must be a mapping"):
        config_from_mapping(Sample, {"count": 1, "inner": 3})
    with pytest.raises(ConfigError, match="list of 2 values"):
        config_from_mapping(Sample, {"count": 1, "pair": [1]})
    assert config_from_mapping(Sample, {"count": 1, "scale": "inf"}).scale == math.inf


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{n}: &{n} [{','.join(['*' + p] * 9)}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.yaml", BOMB, "aliases"),
        ("c.yaml", "a: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("c.yaml", "a: 1\na: 2", "'a' comes twice"),
        ("c.yaml", "? [1]\n: 2", "."),
        ("c.yaml", "- 1\n- 2", "must hold a mapping"),
        ("c.yaml", "1: 2", "must hold a mapping"),
        ("c.yaml", "a: [1", "expected"),
        ("c.yaml", "[" * 5000, "."),
        ("c.yaml", "a: 0x" + "f" * 10, None),
        ("c.yaml", "a: " + "9" * 5000, "."),
        ("c.json", '{"a": 1, "a": 2}', "'a' comes twice"),
        ("c.json", "[" * 100_000, "nested too deeply"),
        ("c.json", "{'a': 1}", "cannot be read"),
        ("c.json", "[1]", "must hold a mapping"),
        ("c.json", " " * (2**20 + 1), "larger than"),
        ("c.toml", "a = 1", "must end with"),
        ("c.yaml", "\x00", "cannot be read"),
    ],
)
def test_hostile_files(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    if message is None:
        assert load_config_file(tmp_path / name)
        return
    with pytest.raises(ConfigError, match=message):
        load_config_file(tmp_path / name)


def test_files(tmp_path):
    (tmp_path / "e.yaml").write_text("")
    assert load_config_file(tmp_path / "e.yaml") == {}
    (tmp_path / "e.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config_file(tmp_path / "e.json")
    with pytest.raises(ConfigError, match="No such file"):
        load_config_file(tmp_path / "absent.yaml")
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump(config_to_dict(CMORLConfig())))
    assert config_from_mapping(CMORLConfig, load_config_file(tmp_path / "dump.yaml")) == CMORLConfig()


def test_unsupported_types_are_named():
    @dataclasses.dataclass
    class Odd:
        x: complex = 1j

    with pytest.raises(ConfigError, match="'x' has the type"):
        config_from_mapping(Odd, {"x": 1})
    with pytest.raises(ConfigError, match="x is a complex"):
        config_to_dict(Odd())
    with pytest.raises(ConfigError, match="dataclass instance"):
        config_to_dict({})
