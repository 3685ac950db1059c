"""Settings: frozen dataclasses to and from plain mappings and files."""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from moopt.runs.errors import ConfigError, did_you_mean, os_reason

T = TypeVar("T")
_FILE_LIMIT = 2**20
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NONE = frozenset({"none", "null", "~", ""})


def config_to_dict(config: Any) -> dict[str, Any]:
    """Return a dataclass instance as JSON-able data: tuples become lists, paths text, infinities ``"inf"``.

    Args:
        config: An instance of a (nested) dataclass.

    Raises:
        ConfigError: If it is no dataclass instance or a field has a type that JSON cannot hold.
    """
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise ConfigError(f"config must be a dataclass instance, got {type(config).__name__}")
    return {f.name: _plain(getattr(config, f.name), f.name) for f in dataclasses.fields(config) if f.init}


def config_from_mapping(cls: type[T], mapping: Mapping[str, Any]) -> T:
    """Build a dataclass from a mapping, converting each value to the type of its field.

    Text is read as the field's type (``"1e-3"`` for a float, which is what YAML makes of ``1e-3``), lists
    become tuples, mappings become nested dataclasses, ``-`` in a key counts as ``_``. Fields that are absent
    keep their defaults.

    Args:
        cls: The dataclass.
        mapping: Field names to values.

    Raises:
        ConfigError: For an unknown key (with the nearest one), a missing field or a value of the wrong type.
    """
    return typing.cast(T, _build(cls, mapping, ""))


def load_config_file(path: str | Path) -> dict[str, Any]:
    """Read settings from a ``.yaml``, ``.yml`` or ``.json`` file, safely.

    Args:
        path: The file, at most 1 MiB.

    Returns:
        The mapping at the top of the file; an empty file gives ``{}``.

    Raises:
        ConfigError: If the file cannot be read, is too large, is no valid YAML/JSON, names a key twice, uses
            YAML aliases or tags, or does not hold a mapping.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"config file {path} must end with .yaml, .yml or .json")
    try:
        with open(path, "rb") as handle:
            data = handle.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"cannot read config file {path}: {os_reason(error)}") from error
    if len(data) > _FILE_LIMIT:
        raise ConfigError(f"config file {path} is larger than {_FILE_LIMIT} bytes")
    try:
        content = reader(data.decode("utf-8"))
    except RecursionError as error:
        raise ConfigError(f"config file {path} is nested too deeply") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"config file {path} cannot be read: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(k, str) for k in content):
        raise ConfigError(f"config file {path} must hold a mapping of names to values")
    return content


# ----------------------------------------------------------------------------- to plain data
def _plain(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list):
        return [_plain(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        return {str(k): _plain(v, f"{where}[{k!r}]") for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        return config_to_dict(value)
    raise ConfigError(f"setting {where} is a {type(value).__name__}, which a settings file cannot hold")


# --------------------------------------------------------------------------- from plain data
def _build(cls: Any, mapping: Any, prefix: str) -> Any:
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"setting {prefix.rstrip('.') or cls.__name__} must be a mapping, got {_show(mapping)}")
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        name = str(key).replace("-", "_")
        if name not in fields:
            raise ConfigError(f"unknown setting {prefix + str(key)!r}{did_you_mean(name, fields)}")
        if name in values:
            raise ConfigError(f"setting {prefix + name!r} is given twice")
        values[name] = _coerce(value, hints[name], prefix + name)
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"setting {prefix + name!r} is missing")
    return cls(**values)


def _coerce(value: Any, hint: Any, where: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _coerce_union(value, args, hint, where)
    if origin is Literal:
        return _coerce_literal(value, args, where)
    if origin in (tuple, list) or hint in (tuple, list):
        return _coerce_sequence(value, hint, where)
    if origin is dict or hint is dict or origin is Mapping:
        if not isinstance(value, Mapping):
            raise _wrong(where, "a mapping", value)
        inner = args[1] if args else Any
        return {str(k): _coerce(v, inner, f"{where}.{k}") for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, typing.cast(type, hint)) else _build(hint, value, f"{where}.")
    scalar = _SCALARS.get(hint)
    if scalar is None:
        raise ConfigError(f"setting {where!r} has the type {hint}, which cannot be read from a file")
    return scalar(value, where)


def _coerce_union(value: Any, members: tuple[Any, ...], hint: Any, where: str) -> Any:
    if type(None) in members and (value is None or (isinstance(value, str) and value.strip().lower() in _NONE)):
        return None
    kinds = [m for m in members if m is not type(None)]
    # A value that already has the type of one member must not be turned into an earlier one.
    kinds.sort(key=lambda m: type(value) is not m)
    problems = []
    for member in kinds:
        try:
            return _coerce(value, member, where)
        except ConfigError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    raise _wrong(where, str(hint).replace("typing.", ""), value)


def _coerce_literal(value: Any, choices: tuple[Any, ...], where: str) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    for choice in choices:
        if isinstance(value, str) and not isinstance(choice, str) and str(choice).lower() == value.strip().lower():
            return choice
    allowed = ", ".join(str(c) for c in choices)
    near = did_you_mean(value, [str(c) for c in choices]) if isinstance(value, str) else ""
    near = near if near.startswith("; did you mean") else ""
    raise ConfigError(f"setting {where!r} must be one of {allowed}, got {_show(value)}{near}")


def _coerce_sequence(value: Any, hint: Any, where: str) -> Any:
    kind = typing.get_origin(hint) or hint
    args = typing.get_args(hint)
    if isinstance(value, str):
        text = value.strip().strip("[]()")
        value = [part for part in text.replace(",", " ").split() if part]
    if not isinstance(value, list | tuple):
        raise _wrong(where, "a list", value)
    if kind is tuple and args and args[-1] is not Ellipsis and args != ((),):
        if len(value) != len(args):
            raise _wrong(where, f"a list of {len(args)} values", value)
        inner = list(args)
    else:
        inner = [args[0] if args else Any] * len(value)
    return kind(_coerce(v, t, f"{where}[{i}]") for i, (v, t) in enumerate(zip(value, inner, strict=True)))


def _to_bool(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower() if isinstance(value, str | int) else ""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _wrong(where, "true or false", value)


def _to_int(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        try:
            return int(value.strip())
        except ValueError:
            pass
    number = _to_float(value, where, "an integer")
    if not number.is_integer():
        raise _wrong(where, "an integer", value)
    return int(number)


def _to_float(value: Any, where: str, wanted: str = "a number") -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong(where, wanted, value)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _wrong(where, wanted, value) from None
    if math.isnan(number):
        raise _wrong(where, wanted, value)
    return number


def _to_str(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "text", value)
    return value


def _to_path(value: Any, where: str) -> Path:
    if not isinstance(value, str | Path):
        raise _wrong(where, "a path", value)
    return Path(value)


def _to_none(value: Any, where: str) -> None:
    if value is not None:
        raise _wrong(where, "nothing", value)


_SCALARS: dict[Any, Callable[[Any, str], Any]] = {
    bool: _to_bool,
    int: _to_int,
    float: _to_float,
    str: _to_str,
    Path: _to_path,
    type(None): _to_none,
}


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _wrong(where: str, wanted: str, value: Any) -> ConfigError:
    return ConfigError(f"setting {where!r} must be {wanted}, got {_show(value)}")


# ------------------------------------------------------------------------------------- files
def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"the key {key!r} comes twice")
        mapping[key] = value
    return mapping


def _read_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique) if text.strip() else None


def _read_yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe loader that also refuses aliases (small files can unfold to huge ones) and doubled keys."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("YAML aliases are not supported")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(k, deep=True) for k, _ in node.value]
            for i, key in enumerate(keys):
                if key in keys[:i]:
                    raise ValueError(f"the key {key!r} comes twice")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader=Loader)  # a subclass of the safe loader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_READERS: dict[str, Callable[[str], Any]] = {".json": _read_json, ".yaml": _read_yaml, ".yml": _read_yaml}
