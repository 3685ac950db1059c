"""Saved state: nested plain data with arrays, in one .npz file, without pickle.

The file is an uncompressed zip of ``.npy`` members, as `numpy.savez` writes it. ``structure.npy`` holds a
JSON text (as bytes) that says how the arrays nest; the others are the arrays. Nothing in it can run code,
every member has a checksum, and nothing is allocated that the file does not hold.
"""

import io
import json
import math
import struct
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moopt.runs.errors import CheckpointError, MooptError, os_reason
from moopt.runs.files import atomic_writer

if TYPE_CHECKING:
    import torch

_FORMAT = "moopt-state"
_VERSION = 1
_STRUCTURE_LIMIT = 256 * 2**20
_DAMAGE = (
    zipfile.BadZipFile,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    OverflowError,
    EOFError,
    RuntimeError,  # also RecursionError and NotImplementedError
    MemoryError,
    struct.error,
)


def save_state(path: str | Path, state: Any) -> None:
    """Write nested plain data atomically.

    Args:
        path: The file, by custom ``*.npz``.
        state: Dicts (keys str, int, float, bool, None), lists and tuples of NumPy arrays and scalars, torch
            tensors (from any device, restored on the CPU without gradient), int, float, bool, str, bytes and
            None.

    Raises:
        MooptError: If a value is of another type; the message says where it is.
        RunError: If the file cannot be written; an earlier file of that name is unchanged.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _encode(state, arrays, "state")
    text = json.dumps(
        {"format": _FORMAT, "version": _VERSION, "arrays": len(arrays), "state": tree},
        separators=(",", ":"),
        allow_nan=False,
    )
    members = {f"a{i}": a for i, a in enumerate(arrays)}
    with atomic_writer(path) as handle:
        np.savez(
            handle,
            allow_pickle=False,
            structure=np.frombuffer(text.encode("utf-8"), dtype=np.uint8),
            **members,
        )


def load_state(path: str | Path, *, max_bytes: int = 16 * 2**30) -> Any:
    """Read what `save_state` wrote.

    Args:
        path: The file.
        max_bytes: Largest file accepted; default 16 GiB.

    Returns:
        The nested data; tensors are on the CPU. torch is imported only if the file holds a tensor.

    Raises:
        CheckpointError: If the file is missing, truncated, damaged, not of this format, or too large.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise CheckpointError(f"{path} is larger ({size} bytes) than the limit of {max_bytes} bytes")
        with zipfile.ZipFile(path) as archive:
            return _read(archive, size)
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {os_reason(error)}") from error
    except _DAMAGE as error:
        detail = str(error) or type(error).__name__
        raise CheckpointError(f"{path} is damaged or no saved state: {detail}") from error


# ---------------------------------------------------------------------------------- encoding
def _encode(value: Any, arrays: list[np.ndarray[Any, Any]], where: str) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, dict):
        return {"dict": [[_key(k, where), _encode(v, arrays, f"{where}[{k!r}]")] for k, v in value.items()]}
    if type(value) in (list, tuple):
        items = [_encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]
        return items if type(value) is list else {"tuple": items}
    if type(value) is bytes:
        return {"bytes": _store(np.frombuffer(value, dtype=np.uint8), arrays, where)}
    if isinstance(value, np.generic):
        return {"scalar": _store(np.asarray(value), arrays, where)}
    if isinstance(value, np.ndarray):
        return {"array": _store(value, arrays, where)}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _encode_tensor(value, arrays, where)
    raise MooptError(
        f"{where} is a {type(value).__name__}, which a saved state cannot hold (plain data and arrays only)"
    )


def _key(key: Any, where: str) -> Any:
    if key is None or type(key) in (bool, int, str) or (type(key) is float and math.isfinite(key)):
        return key
    raise MooptError(f"{where} has the key {key!r}; keys must be str, int, float, bool or None")


def _store(array: np.ndarray[Any, Any], arrays: list[np.ndarray[Any, Any]], where: str) -> int:
    if array.dtype.hasobject:
        raise MooptError(f"{where} is an array of Python objects, which a saved state cannot hold")
    arrays.append(np.asarray(array))
    return len(arrays) - 1


def _encode_tensor(tensor: "torch.Tensor", arrays: list[np.ndarray[Any, Any]], where: str) -> dict[str, Any]:
    import torch

    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise MooptError(f"{where} is a sparse or quantized tensor, which a saved state cannot hold")
    plain = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    name = str(plain.dtype).removeprefix("torch.")
    try:
        array = plain.numpy()
    except TypeError:  # bfloat16 and the 8-bit floats have no NumPy type: their bytes do
        array = plain.reshape(-1).view(torch.uint8).numpy()
    return {"tensor": _store(array, arrays, where), "dtype": name, "shape": list(plain.shape)}


# ---------------------------------------------------------------------------------- decoding
def _read(archive: zipfile.ZipFile, file_size: int) -> Any:
    infos = {info.filename: info for info in archive.infolist()}
    if len(infos) != len(archive.infolist()):
        raise ValueError("a member comes twice")
    # Stored members cannot be larger than the file, so no small file can ask for much memory.
    if any(i.compress_type != zipfile.ZIP_STORED or i.file_size != i.compress_size for i in infos.values()):
        raise ValueError("members must be stored without compression")
    if sum(i.file_size for i in infos.values()) > file_size:
        raise ValueError("members are larger than the file")
    if infos["structure.npy"].file_size > _STRUCTURE_LIMIT:
        raise ValueError("the structure is too large")
    document = json.loads(_member(archive, "structure.npy").tobytes().decode("utf-8"))
    if document["format"] != _FORMAT or document["version"] != _VERSION:
        raise ValueError(f"format {document['format']!r} version {document['version']!r} is not known")
    if len(infos) != document["arrays"] + 1:
        raise ValueError("arrays are missing")
    arrays = [_member(archive, f"a{i}.npy") for i in range(document["arrays"])]
    return _decode(document["state"], arrays)


def _member(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    data = archive.read(name)  # the checksum is verified here
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"array {name} has an unknown version")
    if dtype.hasobject:
        raise ValueError(f"array {name} holds Python objects")
    start, count = stream.tell(), math.prod(shape)
    if any(s < 0 for s in shape) or count * dtype.itemsize != len(data) - start:
        raise ValueError(f"array {name} does not fill its shape")
    if count * dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    flat = np.frombuffer(data, dtype=dtype, count=count, offset=start)
    return np.array(flat.reshape(shape, order="F" if fortran else "C"), order="K")  # a copy that can be written to


def _decode(node: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(node, list):
        return [_decode(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    kind, value = next(iter(node.items()))
    match kind:
        case "dict":
            return {k: _decode(v, arrays) for k, v in value}
        case "tuple":
            return tuple(_decode(item, arrays) for item in value)
        case "float":
            return float(value)
        case "bytes":
            return arrays[value].tobytes()
        case "scalar":
            return arrays[value][()]
        case "array":
            return arrays[value]
        case "tensor":
            return _decode_tensor(arrays[value], node["dtype"], node["shape"])
    raise ValueError(f"unknown kind {kind!r}")


def _decode_tensor(array: np.ndarray[Any, Any], dtype: str, shape: list[int]) -> "torch.Tensor":
    import torch

    kind = getattr(torch, dtype)
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"unknown tensor type {dtype!r}")
    tensor = torch.from_numpy(array)
    if tensor.dtype is not kind:
        tensor = tensor.view(kind)
    return tensor.reshape(shape)
