"""Saved state: what goes in comes out, and no file can do harm."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moopt.runs import CheckpointError, MooptError, load_state, save_state

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=20)
arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_, np.complex64]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
trees = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=15,
)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
    if isinstance(a, np.ndarray | np.generic):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (a == b or a != a) and str(a) == str(b)


@settings(max_examples=60)
@given(tree=trees)
def test_round_trip(tree, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round_trip.npz"
    save_state(path, tree)
    assert same(tree, load_state(path))


def test_round_trip_of_a_training_state(tmp_path):
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    state = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "torch": torch.Generator().get_state(),
        "numpy": np.random.default_rng(3).bit_generator.state,
        "odd": (
            torch.ones(2, 2, dtype=torch.bfloat16),
            torch.zeros(0, 3),
            torch.tensor(5),
            torch.eye(3).T[1:],
            np.float32(1),
        ),
        "non-finite": [float("inf"), float("-inf"), float("nan")],
    }
    save_state(tmp_path / "s.npz", state)
    loaded = load_state(tmp_path / "s.npz")
    assert same({**state, "net": dict(state["net"])}, loaded)
    optimizer.load_state_dict(loaded["optimizer"])
    net.load_state_dict(loaded["net"])
    loaded["odd"][0].add_(1)  # restored tensors and arrays can be written to


def test_memory_layout_is_kept(tmp_path):
    save_state(tmp_path / "s.npz", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert load_state(tmp_path / "s.npz").flags.f_contiguous


def test_torch_is_imported_only_for_tensors(tmp_path):
    save_state(tmp_path / "plain.npz", {"a": np.ones(3)})
    code = "import sys; from moopt.runs import load_state; load_state(sys.argv[1]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, tmp_path / "plain.npz"], check=True)


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ({"a": [object()]}, r"state\['a'\]\[0\] is a object"),
        ({(1, 2): 3}, r"keys must be"),
        ({"a": np.array([None, 1], dtype=object)}, "Python objects"),
        (torch.eye(2).to_sparse(), "sparse"),
        ({"f": lambda: 0}, "function"),
    ],
)
def test_unsupported_values_are_named_and_nothing_is_written(tmp_path, bad, where):
    with pytest.raises(MooptError, match=where):
        save_state(tmp_path / "s.npz", bad)
    assert list(tmp_path.iterdir()) == []


def test_every_damaged_byte_is_noticed(tmp_path):
    """Flip bits of every byte: either the state is still the same, or the error is ours."""
    path = tmp_path / "s.npz"
    state = {"a": np.arange(3, dtype=np.int16), "b": [1, "x", 2.5]}
    save_state(path, state)
    data = path.read_bytes()
    noticed = 0
    for i in range(len(data)):
        path.write_bytes(data[:i] + bytes([data[i] ^ 0x11]) + data[i + 1 :])
        try:
            assert same(state, load_state(path)), f"byte {i} changed the state without an error"
        except CheckpointError:
            noticed += 1
    assert noticed > len(data) / 2


def test_every_truncation_is_noticed(tmp_path):
    path = tmp_path / "s.npz"
    save_state(path, {"a": np.arange(100)})
    data = path.read_bytes()
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(CheckpointError):
            load_state(path)
    with pytest.raises(CheckpointError, match="No such file"):
        load_state(tmp_path / "absent.npz")
    with pytest.raises(CheckpointError, match="limit of 10 bytes"):
        load_state(path, max_bytes=10)


def npy(array=None, header=None):
    stream = io.BytesIO()
    if header is None:
        np.save(stream, array, allow_pickle=True)
    else:
        np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def document(state, arrays=0, **changes):
    text = json.dumps({"format": "moopt-state", "version": 1, "arrays": arrays, "state": state, **changes})
    return npy(np.frombuffer(text.encode(), dtype=np.uint8))


HUGE = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
DEEP = npy(np.frombuffer(b"[" * 200_000, dtype=np.uint8))
HOSTILE = {
    "compressed bomb": ({"structure.npy": npy(np.zeros(10**7, np.uint8))}, zipfile.ZIP_DEFLATED),
    "huge claim": (
        {"structure.npy": document({"array": 0}, 1), "a0.npy": npy(header=HUGE)},
        zipfile.ZIP_STORED,
    ),
    "pickle inside": (
        {"structure.npy": document({"array": 0}, 1), "a0.npy": npy(np.array([object()], dtype=object))},
        zipfile.ZIP_STORED,
    ),
    "deep nesting": ({"structure.npy": DEEP}, zipfile.ZIP_STORED),
    "deep tree": ({"structure.npy": document(json.loads("[" * 900 + "]" * 900))}, zipfile.ZIP_STORED),
    "other version": ({"structure.npy": document(1, version=99)}, zipfile.ZIP_STORED),
    "unknown kind": ({"structure.npy": document({"exec": "1"})}, zipfile.ZIP_STORED),
    "array out of range": ({"structure.npy": document({"array": 7})}, zipfile.ZIP_STORED),
    "no torch type": (
        {
            "structure.npy": document({"tensor": 0, "dtype": "load", "shape": [1]}, 1),
            "a0.npy": npy(np.ones(1)),
        },
        zipfile.ZIP_STORED,
    ),
    "no structure": ({"x.npy": npy(np.ones(2))}, zipfile.ZIP_STORED),
    "no json": ({"structure.npy": npy(np.ones(2))}, zipfile.ZIP_STORED),
    "unhashable key": ({"structure.npy": document({"dict": [[[], 1]]})}, zipfile.ZIP_STORED),
    "missing array": ({"structure.npy": document(1, arrays=3)}, zipfile.ZIP_STORED),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_our_error(tmp_path, kind):
    members, compression = HOSTILE[kind]
    path = tmp_path / "hostile.npz"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    if kind == "deep tree":
        load_or_error(path)
    else:
        with pytest.raises(CheckpointError, match=r"hostile\.npz"):
            load_state(path)


def load_or_error(path):
    try:
        state = load_state(path)
    except CheckpointError:
        return
    assert isinstance(state, list)


def test_other_files_are_our_error(tmp_path):
    for name, data in {
        "text": b"hello",
        "empty": b"",
        "npy": npy(np.ones(3)),
        "pickle": b"\x80\x04K\x01.",
    }.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CheckpointError):
            load_state(tmp_path / name)
    with pytest.raises(CheckpointError):
        load_state(tmp_path)
