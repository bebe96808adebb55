"""torch's checkpoints are read as they were saved, and nothing in them runs."""

from __future__ import annotations

import io
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.io import FileFormatError, open_weights, torch_file
from votive.io.torch_file import UnsafeFileError

DATA = Path(__file__).parent / "data"
LAYOUTS = ["zip.pt", "legacy.pt"]


@pytest.fixture(params=[f"{name}, {how}" for name in LAYOUTS for how in ("read", "mapped", "open")])
def loaded(request: pytest.FixtureRequest) -> Any:
    """The stored checkpoint, in both layouts and each way to read it."""
    name, how = request.param.split(", ")
    if how == "open":
        return torch_file.load(io.BytesIO((DATA / name).read_bytes()))
    return torch_file.load(DATA / name, mmap=how == "mapped")


def test_a_state_dict_comes_back_in_order(loaded: Any) -> None:
    model = loaded["model"]
    assert type(model) is OrderedDict
    assert list(model) == ["weight", "bias"]
    assert model["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert model["bias"].tolist() == [0.5, -1]


def test_tensors_over_one_storage_share_it_again(loaded: Any) -> None:
    base, view = loaded["base"], loaded["view"]
    assert view.stride() == (1, 3)
    assert view.tolist() == [[2, 5], [3, 6], [4, 7]]
    base[2] = 100
    assert view[0, 0] == 100
    assert base.untyped_storage() is view.untyped_storage()


@pytest.mark.parametrize("d", dt.ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_dtype_is_read(name: str, d: Any) -> None:
    t = torch_file.load(DATA / name)["types"][d.name]
    assert t.dtype is d
    assert t.to(votive.complex128).tolist() == [0, 1, 1]


def test_parameters_and_gradients_are_what_they_were(loaded: Any) -> None:
    assert isinstance(loaded["parameter"], votive.nn.Parameter)
    assert loaded["parameter"].requires_grad
    assert isinstance(loaded["frozen"], votive.nn.Parameter)
    assert not loaded["frozen"].requires_grad
    assert loaded["grad"].requires_grad
    assert not isinstance(loaded["grad"], votive.nn.Parameter)
    assert not loaded["base"].requires_grad


def test_views_of_every_kind_are_honoured(loaded: Any) -> None:
    assert loaded["conjugate"].tolist() == [1 - 2j]
    assert loaded["scalar"].shape == ()
    assert loaded["scalar"].item() == 7
    assert loaded["empty"].shape == (0, 3)
    assert loaded["expanded"].tolist() == [[1, 1], [1, 1]]


def test_what_is_no_tensor_comes_back_too(loaded: Any) -> None:
    assert loaded["array"].dtype == np.int16
    assert loaded["array"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded["columns"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded["columns"].flags.f_contiguous
    assert loaded["number"] == 2.5
    assert type(loaded["number"]) is np.float32
    assert loaded["set"] == {1, 2}
    assert loaded["bytes"] == b"ab\xff"
    assert loaded["dtype"] is votive.float16
    assert loaded["device"] == votive.device("cpu")
    assert loaded["size"] == votive.Size([2, 3])
    assert loaded["large"] == 2**70
    assert loaded["text"] == "Größe"
    one, (half, nothing, truth, deep) = loaded["nested"]
    assert (one, half, nothing, truth) == (1, 2.5, None, True)
    assert deep["deep"].tolist() == [0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_checkpoint_is_a_source_of_weights(name: str) -> None:
    with open_weights(DATA / name) as source:
        assert "model.weight" in source
        assert "nested.1.3.deep" in source
        assert source.info("view").shape == (3, 2)
        assert source.info("types.bfloat16").dtype is votive.bfloat16
        assert source.metadata["text"] == "Größe"
        assert source.metadata["nested.0"] == 1
        assert source.slice("view", (slice(1, None), 0)).tolist() == [3, 4]
        assert source.prefixed("model").names() == ["weight", "bias"]
        for key in source:
            whole, part = source.tensor(key), source.slice(key, ...)
            assert whole.numpy().tobytes() == part.numpy().tobytes(), key


@pytest.mark.parametrize("name", LAYOUTS)
def test_writing_to_a_tensor_changes_neither_the_file_nor_the_next_one(name: str) -> None:
    before = (DATA / name).read_bytes()
    source = open_weights(DATA / name)
    first = source.tensor("base")
    first.fill_(9)
    assert source.tensor("base").tolist() == list(range(12))
    assert source.slice("base", slice(0, 2)).tolist() == [0, 1]
    assert (DATA / name).read_bytes() == before


def test_an_expanded_tensor_can_be_written_to() -> None:
    t = open_weights(DATA / "zip.pt").tensor("expanded")
    t[0, 0] = 5
    assert t.tolist() == [[5, 1], [1, 1]]


def test_votive_load_reads_them_like_torch_load() -> None:
    for name in LAYOUTS:
        assert votive.load(DATA / name)["text"] == "Größe"
        with open(DATA / name, "rb") as f:
            assert votive.load(f, map_location="cpu")["scalar"].item() == 7


def test_a_module_saved_whole_is_refused_by_name() -> None:
    with pytest.raises(UnsafeFileError, match=r"module\.pt.*torch\.nn\.modules\.linear\.Linear"):
        votive.load(DATA / "module.pt")


def test_quantized_tensors_are_refused_by_name() -> None:
    with pytest.raises(UnsafeFileError, match=r"quantized tensors \(torch\.QInt8Storage\)"):
        torch_file.load(DATA / "quantized.pt")


def test_a_scripted_module_gives_its_values() -> None:
    source = open_weights(DATA / "scripted.pt")
    assert source.info("first.weight").shape == (3, 2)
    assert source.tensor("norm.running_var").tolist() == [1, 1, 1]
    assert source.metadata["sizes"] == [3, 5]
    assert source.metadata["training"] is False
    net = votive.nn.Sequential(OrderedDict(first=votive.nn.Linear(2, 3), norm=votive.nn.BatchNorm1d(3)))
    assert votive.io.load_into(net, source).ok
    assert torch_file.load(DATA / "scripted.pt")["first"]["bias"].shape == (3,)


def test_files_of_a_big_endian_machine_are_read(tmp_path: Path) -> None:
    little = torch_file.load(DATA / "zip.pt")
    path = tmp_path / "big.pt"
    size = {"0": 4, "1": 4, "2": 4}
    with zipfile.ZipFile(DATA / "zip.pt") as z, zipfile.ZipFile(path, "w") as out:
        for info in z.infolist():
            content = z.read(info)
            if info.filename.endswith("byteorder"):
                content = b"big"
            head, _, key = info.filename.rpartition("/")
            if head.endswith("/data") and key in size:
                content = np.frombuffer(content, np.uint32).byteswap().tobytes()
            out.writestr(info.filename, content)
    big = torch_file.load(path)
    assert votive.equal(big["model"]["weight"], little["model"]["weight"])
    assert votive.equal(big["model"]["bias"], little["model"]["bias"])
    assert votive.equal(big["view"], little["view"])
    assert votive.equal(open_weights(path).slice("view", 1), little["view"][1])


def test_a_sharded_checkpoint_of_torch_is_read(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model-00001-of-00001.bin").write_bytes((DATA / "zip.pt").read_bytes())
    (tmp_path / "pytorch_model.bin.index.json").write_text(
        '{"metadata": {"total_size": 1}, "weight_map": {"base": "pytorch_model-00001-of-00001.bin"}}'
    )
    source = open_weights(tmp_path)
    assert source.names() == ["base"]
    assert source.tensor("base").tolist() == list(range(12))


def test_the_oldest_files_in_tar_are_refused_clearly(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    path.write_bytes(b"sys_info".ljust(257, b"\0") + b"ustar".ljust(300, b"\0"))
    for read in (votive.load, torch_file.load, open_weights):
        with pytest.raises(FileFormatError, match="tar archive of torch before"):
            read(path)


def test_devices_follow_map_location(tmp_path: Path) -> None:
    seen = []

    def place(storage: Any, location: str) -> Any:
        seen.append(location)
        return storage

    torch_file.load(DATA / "zip.pt", map_location=place)
    assert set(seen) == {"cpu"}
    with pytest.raises(ValueError, match="mmap=True needs a path"):
        torch_file.load(io.BytesIO(b""), mmap=True)


@pytest.mark.parity
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_it_agrees_with_torch_load(tmp_path: Path, new: bool, protocol: int) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3))
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.randn(2, 2, 5, 5)).sum().backward()
    optimizer.step()
    content = {
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "last": net[0].weight.to(memory_format=torch.channels_last),
        "epoch": 3,
    }
    path = tmp_path / "c.pt"
    torch.save(content, path, pickle_protocol=protocol, _use_new_zipfile_serialization=new)
    want, got = torch.load(path, weights_only=False), votive.load(path)
    assert compare(want, got) == 7 + 4 * 3 + 1


def compare(want: Any, got: Any) -> int:
    """Assert that two nested values are equal; the number of tensors in them."""
    torch = pytest.importorskip("torch")
    if isinstance(want, torch.Tensor):
        assert tuple(want.shape) == tuple(got.shape)
        assert tuple(want.stride()) == tuple(got.stride())
        assert str(want.dtype).removeprefix("torch.") == got.dtype.name
        assert want.detach().numpy().tobytes() == got.detach().numpy().tobytes()
        return 1
    if isinstance(want, dict):
        assert list(want) == list(got)
        return sum(compare(want[k], got[k]) for k in want)
    if isinstance(want, (list, tuple)):
        assert type(want) is type(got)
        assert len(want) == len(got)
        return sum(map(compare, want, got))
    assert want == got
    return 0


@pytest.mark.parity
def test_versions_of_modules_come_along(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = torch.nn.BatchNorm1d(2).state_dict()
    torch.save(state, tmp_path / "s.pt")
    assert votive.load(tmp_path / "s.pt")._metadata == state._metadata
    assert open_weights(tmp_path / "s.pt").metadata["_metadata"] == dict(state._metadata)


@pytest.mark.parity
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("new", [True, False], ids=["zip", "legacy"])
def test_plain_values_come_back_from_every_protocol(tmp_path: Path, new: bool, protocol: int) -> None:
    torch = pytest.importorskip("torch")
    content = {
        "array": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        "big": np.arange(3, dtype=">f4"),
        "scalar": np.int64(3),
        "counts": Counter("abca"),
        "lists": defaultdict(list, {"a": [1]}),
        "sets": (frozenset({1}), {"x"}, set()),
        "bytes": (b"", b"\x00\xff", bytearray(b"ab")),
        "numbers": (-1, 255, 65536, -(2**40), 1e300, float("inf"), 1 - 2j, True, None),
        "text": ("", "ä" * 300, "line\nbreak"),
        ("a", 1): {2: {3.5: "keys"}},
        "slice": slice(1, None, 2),
        "tensor": torch.ones(1),
    }
    path = tmp_path / "c.pt"
    torch.save(content, path, pickle_protocol=protocol, _use_new_zipfile_serialization=new)
    got = votive.load(path)
    assert list(got) == list(content)
    for name, want in content.items():
        if isinstance(want, np.ndarray):
            assert np.array_equal(got[name], want)
            assert got[name].dtype == want.dtype.newbyteorder("=")
        elif name != "tensor":
            assert got[name] == want
            assert type(got[name]) is (dict if name == "lists" else type(want))
