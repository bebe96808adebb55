"""safetensors files: bit-exact with the `safetensors` package, lazy, and read in parts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.io import FileFormatError, open_weights
from votive.io import safetensors as st
from votive.serialization.container import NAMES

TYPES = sorted(NAMES, key=lambda d: d.name)


def sample(d: Any, shape: tuple[int, ...] = (3, 4)) -> Any:
    """A tensor of any type whose bytes are all different kinds of numbers."""
    count = int(np.prod(shape)) * d.itemsize
    raw = np.random.default_rng(0).integers(0, 2 if d is dt.bool_ else 256, count, np.uint8)
    return votive.from_numpy(raw.view(d.np).reshape(shape))


def raw(t: Any) -> bytes:
    array = t if isinstance(t, np.ndarray) else t.detach().numpy()
    return np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("d", TYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(3, 4), (), (0, 5), (7,)], ids=str)
def test_every_dtype_and_shape_comes_back_bit_by_bit(d: Any, shape: Any, tmp_path: Path) -> None:
    t = sample(d, shape)
    st.save_file({"t": t}, tmp_path / "f")
    for got in (
        st.load_file(tmp_path / "f")["t"],
        st.load(st.save({"t": t}))["t"],
        open_weights(tmp_path / "f").tensor("t"),
        open_weights(tmp_path / "f").slice("t", ...),
    ):
        assert got.dtype is d
        assert tuple(got.shape) == shape
        assert raw(got) == raw(t)


@pytest.mark.parity
@pytest.mark.parametrize("d", TYPES, ids=lambda d: d.name)
def test_the_safetensors_package_reads_what_votive_writes(d: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    package = pytest.importorskip("safetensors")
    t = sample(d)
    st.save_file({"t": t, "u": votive.ones(1)}, tmp_path / "f", {"who": "votive"})
    with package.safe_open(tmp_path / "f", "pt") as f:
        assert f.metadata() == {"who": "votive"}
        got = f.get_tensor("t")
        assert tuple(got.shape) == (3, 4)
        assert str(got.dtype).removeprefix("torch.") == d.name
        import torch

        assert raw(got.view(torch.uint8).numpy()) == raw(t)


@pytest.mark.parity
@pytest.mark.parametrize("d", TYPES, ids=lambda d: d.name)
def test_votive_reads_what_the_safetensors_package_writes(d: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    t = sample(d)
    theirs = torch.frombuffer(bytearray(raw(t)), dtype=getattr(torch, d.name)).reshape(3, 4)
    package.save_file({"t": theirs, "odd": torch.ones(3, dtype=torch.uint8)}, tmp_path / "f", {"who": "they"})
    with st.safe_open(tmp_path / "f", framework="pt") as f:
        assert f.metadata() == {"who": "they"}
        assert f.keys() == ["odd", "t"]
        assert raw(f.get_tensor("t")) == raw(t)
        assert f.get_tensor("t").dtype is d
        part = f.get_slice("t")
        assert part.get_shape() == [3, 4]
        assert part.get_dtype() == NAMES[d]
        assert raw(part[1:, 2]) == raw(t.numpy()[1:, 2])


@pytest.mark.parity
def test_files_of_both_are_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.numpy")
    arrays = {"b": np.ones((2, 3), np.float32), "a": np.arange(3), "c": np.ones(1, np.int8)}
    package.save_file(arrays, tmp_path / "theirs", {"k": "v"})
    st.save_file(arrays, tmp_path / "ours", {"k": "v"})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        slice(1, 2),
        slice(None, None, 2),
        (slice(0, 2), 3),
        (..., 1),
        (1, slice(1, 3)),
        (slice(None), slice(-2, None)),
        None,
        ([0, 2],),
        (slice(2, 1),),
    ],
    ids=str,
)
def test_a_slice_is_what_indexing_the_tensor_gives(index: Any, tmp_path: Path) -> None:
    t = votive.arange(12, dtype=votive.float32).reshape(3, 4)
    st.save_file({"t": t}, tmp_path / "f")
    with st.safe_open(tmp_path / "f") as f:
        got = f.get_slice("t")[index]
    assert votive.equal(got, t[index])
    assert got.is_contiguous()


def test_a_slice_out_of_range_or_backwards_is_an_error(tmp_path: Path) -> None:
    st.save_file({"t": votive.ones(3)}, tmp_path / "f")
    source = open_weights(tmp_path / "f")
    with pytest.raises(IndexError):
        source.slice("t", 3)
    with pytest.raises(ValueError, match="step must be greater than zero"):
        source.slice("t", slice(None, None, -1))


def test_numpy_arrays_come_out_when_asked_for(tmp_path: Path) -> None:
    st.save_file({"t": votive.ones(2, dtype=votive.bfloat16)}, tmp_path / "f")
    with st.safe_open(tmp_path / "f", framework="np") as f:
        assert type(f.get_tensor("t")) is np.ndarray
        assert f.get_tensor("t").dtype == votive.bfloat16.np
        assert type(f.get_slice("t")[:1]) is np.ndarray
    with pytest.raises(ValueError, match="framework 'jax' is unknown"):
        st.safe_open(tmp_path / "f", framework="jax")


def resident(label: str = "RssFile") -> int:
    """Bytes of files that this process has in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(label):
            return 1024 * int(line.split()[1])
    raise AssertionError(label)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of 256 MB whose data are a hole."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 14, 1 << 12], "data_offsets": [0, 1 << 28]}}).encode()
    header += b" " * (-len(header) % 8)
    path = tmp_path / "large.safetensors"
    with open(path, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header)
        f.truncate(8 + len(header) + (1 << 28))
    return path


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux about memory")
def test_opening_and_loading_read_nothing(large: Path) -> None:
    before = resident() + resident("RssAnon")
    source = open_weights(large)
    t = source.tensor("w")
    assert resident() + resident("RssAnon") - before < 4_000_000
    assert t[5, 5] == 0


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux about memory")
def test_reading_slices_one_by_one_keeps_memory_flat(large: Path) -> None:
    source = open_weights(large)
    before = resident() + resident("RssAnon")
    for row in range(0, 1 << 14, 1 << 11):
        part = source.slice("w", slice(row, row + (1 << 11)))
        assert part.shape == (1 << 11, 1 << 12)
    del part
    assert resident() + resident("RssAnon") - before < 80_000_000


def test_a_file_larger_than_memory_can_be_opened(tmp_path: Path) -> None:
    size = 1 << 40
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    path = tmp_path / "huge.safetensors"
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header)
        try:
            f.truncate(8 + len(header) + size)
        except OSError:
            pytest.skip("the file system has no room for holes")
    source = open_weights(path)
    t = source.tensor("w")
    t[5] = 1
    assert t[4:7].tolist() == [0, 1, 0]
    assert source.slice("w", slice(size // 4 - 2, None)).tolist() == [0, 0]


def test_a_mapped_tensor_is_private_to_who_asked(tmp_path: Path) -> None:
    path = tmp_path / "f"
    st.save_file({"a": votive.zeros(2000), "b": votive.zeros(3)}, path)
    content = path.read_bytes()
    source = open_weights(path)
    a = source.tensor("a")
    a.add_(1)
    assert source.tensor("a").sum() == 0
    assert source.slice("a", 0) == 0
    assert a.sum() == 2000
    source.close()
    assert a.sum() == 2000
    assert path.read_bytes() == content
    with pytest.raises(ValueError, match="closed"):
        source.tensor("a")


def test_asking_a_thousand_times_does_not_run_out_of_files(tmp_path: Path) -> None:
    st.save_file({"a": votive.ones(2)}, tmp_path / "f")
    source = open_weights(tmp_path / "f")
    for _ in range(3000):
        assert source.tensor("a").sum() == 2


def test_types_that_votive_lacks_are_read_as_float32(tmp_path: Path) -> None:
    path = tmp_path / "f"
    header = {
        "scale": {"dtype": "F8_E8M0", "shape": [3], "data_offsets": [0, 3]},
        "four": {"dtype": "F4", "shape": [2, 2], "data_offsets": [3, 5]},
        "z": {"dtype": "F8_E4M3FNUZ", "shape": [1], "data_offsets": [5, 6]},
        "six": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [6, 9]},
    }
    text = json.dumps(header).encode()
    data = bytes([127, 128, 0, 0x21, 0xF7, 0x80, 1, 2, 3])
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    source = open_weights(path)
    assert source.info("scale").stored == "F8_E8M0"
    assert source.info("scale").dtype is votive.float32
    assert source.tensor("scale").tolist() == [1, 2, 2.0**-127]
    assert source.tensor("four").tolist() == [[0.5, 1], [6, -6]]
    assert source.slice("four", (0, 1)).tolist() == 1
    assert source.tensor("z").isnan().all()
    with pytest.raises(FileFormatError, match=r"'six' is stored as F6_E2M3.*supported: F64"):
        source.tensor("six")
    del header["six"]
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[:6])
    assert votive.load(path)["four"].tolist() == [[0.5, 1], [6, -6]]
    assert st.load(path.read_bytes())["scale"].tolist() == [1, 2, 2.0**-127]


def test_a_file_can_be_read_without_mapping_it(tmp_path: Path) -> None:
    st.save_file({"a": votive.ones(4096)}, tmp_path / "f")
    got = st.load_file(tmp_path / "f", backend="pread")["a"]
    with open(tmp_path / "f", "r+b") as f:
        f.seek(-4096 * 4, os.SEEK_END)
        f.write(bytes(4096 * 4))
    assert got.sum() == 4096
    with pytest.raises(ValueError, match="backend 'x' is unknown"):
        st.safe_open(tmp_path / "f", backend="x")


class Tied(votive.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = votive.nn.Embedding(4, 3)
        self.head = votive.nn.Linear(3, 4)
        self.head.weight = self.embed.weight


def test_a_module_with_tied_parameters_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "f"
    net, other = Tied(), Tied()
    st.save_model(net, path, {"k": "v"})
    assert st.safe_open(path).keys() == ["embed.weight", "head.bias"]
    assert st.safe_open(path).metadata() == {"k": "v", "head.weight": "embed.weight"}
    assert st.load_model(other, path) == (set(), [])
    assert votive.equal(other.embed.weight, net.embed.weight)
    assert other.head.weight is other.embed.weight
    wrong = votive.nn.Linear(3, 4)
    assert st.load_model(wrong, path, strict=False) == ({"weight", "bias"}, ["embed.weight", "head.bias"])
    with pytest.raises(votive.io.LoadError):
        st.load_model(wrong, path)
    net.head.bias = votive.nn.Parameter(votive.ones(4, 2)[:, 0])
    with pytest.raises(ValueError, match=r"\['head.bias'\] are not contiguous"):
        st.save_model(net, path, force_contiguous=False)


@pytest.mark.parity
def test_the_package_loads_a_module_saved_with_ties(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")

    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(4, 3)
            self.head = torch.nn.Linear(3, 4)
            self.head.weight = self.embed.weight

    net, theirs = Tied(), Theirs()
    st.save_model(net, tmp_path / "ours")
    assert package.load_model(theirs, tmp_path / "ours") == (set(), [])
    assert theirs.head.weight.tolist() == net.head.weight.tolist()
    package.save_model(Theirs(), tmp_path / "theirs")
    assert st.load_model(net, tmp_path / "theirs") == (set(), [])


def test_shared_memory_is_refused_and_named(tmp_path: Path) -> None:
    t = votive.arange(6)
    with pytest.raises(RuntimeError, match=r"share memory.*'a', 'b'"):
        st.save_file({"a": t, "b": t[2:], "c": votive.ones(1)}, tmp_path / "f")
    assert not (tmp_path / "f").exists()
    # Halves of one block do not overlap.
    st.save_file({"a": t[:3], "b": t[3:]}, tmp_path / "f")
    assert st.load_file(tmp_path / "f")["b"].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("tensors", "metadata", "error", "match"),
    [
        ({"a": [1]}, None, ValueError, "'a' must be a Tensor"),
        ({"__metadata__": np.ones(1)}, None, ValueError, "cannot be the name"),
        ({"a": np.ones(1, np.complex128)}, None, TypeError, "view_as_real"),
        ({"a": np.array(["x"])}, None, TypeError, "cannot hold"),
        ({"a": np.ones(1)}, {"k": 1}, TypeError, "metadata must map text to text"),
    ],
)
def test_what_cannot_be_saved_is_refused(tensors: Any, metadata: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        st.save(tensors, metadata)


def test_strided_and_foreign_endian_values_are_written_row_by_row(tmp_path: Path) -> None:
    t = votive.arange(6).reshape(2, 3).t()
    big = np.arange(3, dtype=">i4")
    st.save_file({"t": t, "big": big}, tmp_path / "f")
    got = st.load_file(tmp_path / "f")
    assert votive.equal(got["t"], t)
    assert got["big"].tolist() == [0, 1, 2]


def test_a_failing_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    st.save_file({"a": votive.ones(1)}, path)
    with pytest.raises(TypeError):
        st.save_file({"a": np.ones(1, np.complex128)}, path)
    assert st.load_file(path)["a"].tolist() == [1]
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("length", [0x280, 0x480, 0x580])
def test_a_header_whose_length_begins_as_a_pickle_does_is_read(length: int, tmp_path: Path) -> None:
    text = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(length)
    file = tmp_path / "w.safetensors"
    file.write_bytes(length.to_bytes(8, "little") + text + b"\0\0\0\0")
    assert votive.io.safetensors.load_file(file)["w"].tolist() == [0.0]
    assert votive.io.open_weights(file).tensor("w").tolist() == [0.0]
