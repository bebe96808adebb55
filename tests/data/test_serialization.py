"""Saving and loading: everything comes back as it was; bad files are refused, safely."""

from __future__ import annotations

import io
import json
import math
import os
import struct
import subprocess
import sys
import textwrap
import tracemalloc
from collections import Counter, OrderedDict, defaultdict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.serialization import FileFormatError, load, save
from votive.serialization.container import MAX_HEADER


def again(value: Any, **options: Any) -> Any:
    f = io.BytesIO()
    save(value, f)
    f.seek(0)
    return load(f, **options)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -(10**30), 1.5, 5e-324, 0.1 + 0.2, math.inf, -math.inf, 1 - 2j, "", "tü\n\0",
        b"", b"\x00\xff", bytearray(b"x"), [], [1, [2, []]], (), (1,), ((), [()]), {}, {"a": {}},
        {1: 2, None: 3, (1, "x"): 4, 1.5: 5, False: 6}, {"tensor": {"at": 1}}, {1, "a"},
        frozenset({(1, 2)}), OrderedDict(b=1, a=2), Counter({5: 2}), votive.Size([2, 3]),
        votive.bfloat16, votive.device("cuda", 1), {"__metadata__": 1},
    ],
)  # fmt: skip
def test_plain_values_come_back_with_their_types(value: Any) -> None:
    got = again(value)
    assert got == value
    assert type(got) is type(value)
    if not isinstance(value, set):  # their order is not theirs
        assert repr(got) == repr(value)


def test_nan_comes_back_and_a_default_dict_becomes_a_dict() -> None:
    assert math.isnan(again(math.nan))
    got = again(defaultdict(list, a=[1]))
    assert type(got) is dict
    assert got == {"a": [1]}


@pytest.mark.parametrize("dtype", dt.ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_tensors_and_arrays_of_every_dtype_come_back_bit_by_bit(dtype: Any, shape: Any) -> None:
    size = math.prod(shape) * dtype.itemsize
    raw = np.random.default_rng(0).integers(0, 2, size, np.uint8)
    array = raw.view(dtype.np).reshape(shape)
    t, a, s = again([votive.from_numpy(array.copy()), array, array.reshape(-1)[:1].sum()])
    assert (t.dtype, tuple(t.shape)) == (dtype, shape)
    assert t.numpy().tobytes() == array.tobytes()
    assert (type(a), a.dtype, a.shape, a.tobytes()) == (np.ndarray, array.dtype, shape, array.tobytes())
    assert isinstance(s, np.generic)


def test_layout_gradient_flag_and_class_come_back() -> None:
    value = {
        "image": votive.randn(2, 3, 4, 5).contiguous(memory_format=votive.channels_last),
        "turned": votive.randn(3, 4).t(),
        "some": votive.randn(6, 6)[::2, 1::3],
        "wide": votive.randn(3, 1).expand(3, 4),
        "leaf": votive.randn(2, requires_grad=True),
        "weight": votive.nn.Parameter(votive.randn(2)),
        "fixed": votive.nn.Parameter(votive.arange(2), requires_grad=False),
        "result": votive.randn(2, requires_grad=True) * 2,
    }
    got = again(value)
    for name, a in value.items():
        b = got[name]
        assert (type(a), a.shape, a.requires_grad) == (type(b), b.shape, b.requires_grad), name
        assert bool((a == b).all()), name
        assert b.is_leaf
    assert got["image"].stride() == value["image"].stride()
    assert got["turned"].stride() == value["turned"].stride()


def test_shared_memory_is_shared_again() -> None:
    base = votive.zeros(4, 3)
    got = again({"base": base, "tied": base, "row": base[1], "turned": base.t(), "own": base + 0})
    got["base"][1] = 7
    assert got["tied"][1].tolist() == got["row"].tolist() == [7, 7, 7]
    assert got["turned"][:, 1].tolist() == [7, 7, 7]
    assert got["own"].sum() == 0


def test_tied_weights_are_stored_once_and_half_overlaps_twice_with_a_note(tmp_path: Path) -> None:
    big = votive.randn(1000)
    save({"a": big, "b": big, "c": big[10:20]}, tmp_path / "tied")
    assert (tmp_path / "tied").stat().st_size < 4000 + 1000
    save({"a": big[:600], "b": big[400:], "c": big[990:]}, tmp_path / "torn")
    header = header_of((tmp_path / "torn").read_bytes())
    assert json.loads(header["__metadata__"]["votive.copies"]) == ["b"]
    got = load(tmp_path / "torn")
    assert bool((got["b"] == big[400:]).all())
    save({"a": big[:500], "b": big[500:]}, tmp_path / "halves")
    assert "votive.copies" not in header_of((tmp_path / "halves").read_bytes())["__metadata__"]


def test_names_that_read_alike_are_kept_apart() -> None:
    value = {"a.b": votive.ones(1), "a": {"b": votive.zeros(1)}, "__metadata__": votive.ones(2)}
    got = again(value)
    assert (got["a.b"].item(), got["a"]["b"].item(), got["__metadata__"].numel()) == (1, 0, 2)


def test_a_module_and_its_optimizer_resume_from_a_file(tmp_path: Path) -> None:
    def make() -> tuple[Any, Any]:
        votive.manual_seed(0)
        model = votive.nn.Linear(3, 2)
        return model, votive.optim.AdamW(model.parameters(), lr=0.1)

    def step(model: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        (model(votive.ones(4, 3)) ** 2).sum().backward()
        optimizer.step()

    model, optimizer = make()
    step(model, optimizer)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    save(state, tmp_path / "s")
    other, second = make()
    saved = load(tmp_path / "s")
    assert type(saved["model"]) is OrderedDict
    assert list(saved["model"]) == ["weight", "bias"]
    other.load_state_dict(saved["model"])
    second.load_state_dict(saved["optimizer"])
    for m, o in ((model, optimizer), (other, second)):
        step(m, o)
    assert bool((model.weight == other.weight).all())


@pytest.mark.parity
def test_a_state_dict_is_a_file_that_other_readers_of_safetensors_understand(tmp_path: Path) -> None:
    reader = pytest.importorskip("safetensors.numpy")
    state = {"w": votive.randn(3, 2), "n": votive.arange(3), "h": votive.ones(2).half()}
    save(state, tmp_path / "s.safetensors")
    theirs = reader.load_file(tmp_path / "s.safetensors")
    assert sorted(theirs) == ["h", "n", "w"]
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, state[name].numpy())
    reader.save_file(theirs, tmp_path / "t.safetensors")
    mine = load(tmp_path / "t.safetensors")
    assert all(bool((mine[name] == state[name]).all()) for name in state)


def test_the_header_follows_the_published_layout(tmp_path: Path) -> None:
    save({"w": votive.ones(2, 3), "b": votive.tensor([1, 2], dtype=votive.uint8)}, tmp_path / "s")
    raw = (tmp_path / "s").read_bytes()
    header = header_of(raw)
    assert header["w"] == {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    assert header["b"] == {"dtype": "U8", "shape": [2], "data_offsets": [24, 26]}
    assert all(isinstance(v, str) for v in header["__metadata__"].values())
    start = 8 + int.from_bytes(raw[:8], "little")
    assert start % 8 == 0
    assert raw[start:] == np.ones(6, "<f4").tobytes() + b"\x01\x02"


def test_mapped_tensors_are_read_on_touch_and_written_to_in_memory_only(tmp_path: Path) -> None:
    path = tmp_path / "s"
    save({"big": votive.arange(1000.0), "odd": votive.ones(3, dtype=votive.int8)}, path)
    before = path.read_bytes()
    got = load(path, mmap=True)
    got["big"][0] = 5
    assert got["big"][:2].tolist() == [5, 1]
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="mmap"):
        load(io.BytesIO(before), mmap=True)


def test_map_location_says_where_tensors_go() -> None:
    t = votive.ones(2)
    for where in (
        "cpu",
        votive.device("cpu"),
        {"cpu": "cpu"},
        lambda tensor, place: tensor,
        lambda tensor, place: None,
    ):
        assert again(t, map_location=where).tolist() == [1, 1]
    assert again(t, map_location=lambda tensor, place: tensor * 3).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="not available"):
        again(t, map_location="remote")


Named = namedtuple("Named", ["x"])


class Weird(int):
    pass


@pytest.mark.parametrize(
    "value",
    [
        votive.nn.Linear(1, 1),
        print,
        object(),
        Named(1),
        Weird(3),
        Path("x"),
        np.array(["text"]),
        np.array([None]),
        range(3),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_would_need_code_to_load_is_refused_with_its_place(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match=r"save: model\.0 is a"):
        save({"model": [value]}, tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_contains_itself_is_refused_and_one_used_twice_is_not() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        again(loop)
    part = [1]
    assert again([part, part]) == [[1], [1]]


# --- files that are not what they seem --------------------------------------------------------


def header_of(raw: bytes) -> Any:
    n = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + n])


def file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(begin: int, end: int, shape: Any = None, dtype: Any = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape or [end - begin], "data_offsets": [begin, end]}


def told(description: Any, **tensors: Any) -> bytes:
    meta = {"__metadata__": {"votive": json.dumps(description)}}
    size = max((t["data_offsets"][1] for t in tensors.values()), default=0)
    return file({**meta, **tensors}, bytes(size))


def at(name: str, **more: Any) -> Any:
    return {"tensor": {"at": {"name": name, **more}}}


deep = b"[" * 100_000
HOSTILE = {
    "nothing": b"",
    "too short": b"\x01\x02",
    "a zip": b"PK\x03\x04" + bytes(100),
    "a pickle": b"\x80\x04" + bytes(100),
    "header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "header beyond the limit": struct.pack("<Q", MAX_HEADER + 1) + b"{}",
    "header of 2**63 bytes": struct.pack("<Q", 2**63) + b"{}",
    "no json": file(b"{nonsense"),
    "no object": file(b"[1, 2]"),
    "bad text": file(b'{"\xff": 1}'),
    "nested too deep": file(b'{"a":' + deep),
    "a name twice": file(b'{"a":1,"a":2}'),
    "a huge number": file(b'{"a":' + b"9" * 10_000 + b"}"),
    "not finite": file(b'{"a": NaN}'),
    "metadata of numbers": file({"__metadata__": {"a": 1}}),
    "entry is a number": file({"a": 1}),
    "entry without dtype": file({"a": {"shape": [], "data_offsets": [0, 0]}}),
    "unknown dtype": file({"a": entry(0, 1, dtype="F99")}, b"x"),
    "dtype is a list": file({"a": entry(0, 1, dtype=[])}, b"x"),
    "negative offset": file({"a": entry(-1, 0)}),
    "negative size": file({"a": entry(0, 1, [-1, -1])}, b"x"),
    "size is true": file({"a": entry(0, 1, [True])}, b"x"),
    "size is a fraction": file({"a": entry(0, 1, [1.0])}, b"x"),
    "three offsets": file({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}}, b"x"),
    "shape does not fit": file({"a": entry(0, 4, [5])}, b"xxxx"),
    "an enormous shape": file({"a": entry(0, 4, [2**62, 2**62])}, b"xxxx"),
    "backwards": file({"a": entry(4, 0, [0])}, b"xxxx"),
    "beyond the end": file({"a": entry(0, 100)}, b"xxxx"),
    "cut off": file({"a": entry(0, 4)}, b"xxx"),
    "trailing bytes": file({"a": entry(0, 4)}, b"xxxxx"),
    "overlap": file({"a": entry(0, 4), "b": entry(2, 6)}, b"xxxxxx"),
    "same bytes twice": file({"a": entry(0, 4), "b": entry(0, 4)}, b"xxxx"),
    "gap": file({"a": entry(0, 2), "b": entry(4, 6)}, b"xxxxxx"),
    "description is no json": file({"__metadata__": {"votive": "{"}}),
    "unknown kind": told({"exec": "import os"}),
    "two kinds at once": told({"tuple": [], "set": []}),
    "wrong pairs": told({"dict": [1, 2]}),
    "unhashable key": told({"dict": [[[], 1]]}),
    "unknown dtype name": told({"dtype": "float7"}),
    "unknown device": told({"device": "toaster"}),
    "odd bytes": told({"bytes": "???"}),
    "odd float": told({"float": "1e5"}),
    "odd size": told({"size": ["a"]}),
    "missing tensor": told(at("a")),
    "tensor without a place": told({"tensor": {}}, a=entry(0, 4)),
    "tensor is a list": told({"tensor": []}, a=entry(0, 4)),
    "view too long": told(at("a", view=[0, [5], [1]]), a=entry(0, 4)),
    "view too far": told(at("a", view=[3, [2], [1]]), a=entry(0, 4)),
    "view before": told(at("a", view=[-1, [2], [1]]), a=entry(0, 4)),
    "view backwards": told(at("a", view=[3, [2], [-1]]), a=entry(0, 4)),
    "view of uneven length": told(at("a", view=[0, [2], [1, 1]]), a=entry(0, 4)),
    "stride too long": told({"tensor": {"at": {"name": "a"}, "stride": [9]}}, a=entry(0, 4)),
    "integers with gradient": told({"tensor": {"at": {"name": "a"}, "grad": True}}, a=entry(0, 4)),
    "pairs of bytes": told({"tensor": {"at": {"pairs": {"name": "a"}}}}, a=entry(0, 4)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_file_is_refused_without_taking_much_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="load: "):
            load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_every_cut_of_a_good_file_is_refused(tmp_path: Path) -> None:
    f = io.BytesIO()
    save({"a": votive.ones(3), "b": [1, 2]}, f)
    raw = f.getvalue()
    for n in range(len(raw)):
        with pytest.raises(FileFormatError):
            load(io.BytesIO(raw[:n]))


# --- files appear whole or not at all ---------------------------------------------------------


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    save([1], path)

    def full(fd: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        save([2], path)
    assert load(path) == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_link_stays_a_link_and_permissions_follow_the_umask(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save([3], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "real") == [3]
    mask = os.umask(0o027)
    try:
        save([4], tmp_path / "new")
    finally:
        os.umask(mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")
@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_a_process_killed_while_saving_never_leaves_a_broken_file(tmp_path: Path, moment: str) -> None:
    script = f"""
        import os, signal, sys
        import votive
        from votive.serialization import atomic, container, save
        path = sys.argv[1]
        save({{"x": votive.zeros(1000)}}, path)
        def die(*args):
            os.kill(os.getpid(), signal.SIGKILL)
        if {moment!r} == "write":
            container.raw_bytes = die
        else:
            setattr(os, {moment!r}, die)
        save({{"x": votive.ones(1000)}}, path)
    """
    path = tmp_path / "s"
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(path)], check=False)
    assert run.returncode == -9
    assert load(path)["x"].sum() == 0


@pytest.mark.parametrize("length", [0x280, 0x380, 0x480, 0x580])
def test_a_header_whose_length_looks_like_a_pickle_is_read(length: int, tmp_path: Path) -> None:
    told: dict[str, object] = {"x": votive.ones(2), "note": ""}
    # Grow the note until the header has just this length; the layout pads to eight bytes.
    for fill in range(length):
        told["note"] = "n" * fill
        file = io.BytesIO()
        votive.save(told, file)
        if int.from_bytes(file.getvalue()[:8], "little") == length:
            break
    assert file.getvalue()[:2] == length.to_bytes(2, "little")
    (tmp_path / "state").write_bytes(file.getvalue())
    assert votive.load(tmp_path / "state")["note"] == told["note"]
    assert len(votive.io.open_weights(tmp_path / "state")) == 1
