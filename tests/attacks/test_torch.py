"""Hostile checkpoints of torch are refused, and nothing in them runs."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.io import FileFormatError, open_weights, torch_file
from votive.io.pickle_machine import Machine
from votive.io.torch_file import UnsafeFileError

from .forge import (
    FLOATS,
    FOUR,
    ORDERED,
    REBUILD,
    Call,
    Global,
    Outside,
    both,
    opcodes,
    pickled,
    refusal,
    storage,
    tensor,
    torch_legacy,
    torch_zip,
)

HUGE = 2**62


def call(name: str, *args: Any, state: Any = None) -> Call:
    module, _, last = name.rpartition(".")
    return Call(Global(module, last), *args, state=state)


CODE = {
    "os.system": call("os.system", "touch {}"),
    "posix.system": call("posix.system", "touch {}"),
    "builtins.eval": call("builtins.eval", "open('{}', 'w')"),
    "builtins.exec": call("builtins.exec", "open('{}', 'w')"),
    "builtins.getattr": call("builtins.getattr", "a", "b"),
    "builtins.open": call("builtins.open", "{}", "w"),
    "subprocess.Popen": call("subprocess.Popen", ["touch", "{}"]),
    "torch.load": call("torch.load", "{}"),
    "torch.hub.load": call("torch.hub.load", "{}"),
    "torch._utils.os.system": call("torch._utils.os.system", "touch {}"),
    "numpy.fromfile": call("numpy.fromfile", "{}"),
    "numpy.testing._private.utils.runstring": call("numpy.testing._private.utils.runstring", "open('{}', 'w')", {}),
    "votive.save": call("votive.save", 1, "{}"),
    "pathlib.Path.touch": call("pathlib.Path.touch", "{}"),
    "collections.OrderedDict.__init__": call("collections.OrderedDict.__init__"),
    "__torch__.Net": call("__torch__.Net"),
    "copyreg._reconstructor": call("copyreg._reconstructor", Global("os", "_Environ")),
}


@pytest.mark.parametrize("name", CODE)
@pytest.mark.parametrize("make", [torch_zip, torch_legacy], ids=["zip", "legacy"])
@pytest.mark.parametrize("where", ["root", "value", "key", "argument", "state"])
def test_code_is_named_and_not_run(name: str, make: Any, where: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    attack = Call(
        CODE[name].function, *(a.replace("{}", str(victim)) if isinstance(a, str) else a for a in CODE[name].args)
    )
    content = {
        "root": attack,
        "value": {"a": [1, (attack,)]},
        "key": {"a": opcode_dict(attack)},
        "argument": {"a": tensor(shape=attack)},
        "state": Call(ORDERED, state={"_metadata": attack}),
    }[where]
    path = tmp_path / "m.pt"
    path.write_bytes(make(content))
    for read in (votive.load, torch_file.load, open_weights):
        with pytest.raises(UnsafeFileError, match=f"m.pt.*{name.split('.')[0]}"):
            read(path)
    assert not victim.exists()


def opcode_dict(attack: Any) -> Any:
    return Call(ORDERED, [(attack, 1)])


@pytest.mark.parametrize("opcode", ["i", "o", "\x81", "\x92", "\x93"])
def test_every_opcode_that_calls_is_guarded(opcode: str, tmp_path: Path) -> None:
    name = opcodes("os") + opcodes("system")
    asks = {
        "i": b"(" + opcodes("true") + b"ios\nsystem\n",
        "o": b"(cos\nsystem\n" + opcodes("true") + b"o",
        "\x81": b"cos\nsystem\n" + opcodes(("true",)) + b"\x81",
        "\x92": b"cos\nsystem\n" + opcodes(("true",)) + b"}\x92",
        "\x93": name + b"\x93",
    }[opcode]
    path = tmp_path / "m.pt"
    path.write_bytes(torch_zip(asks))
    with pytest.raises(UnsafeFileError, match=r"'os\.system'.*nothing was run"):
        votive.load(path)


def deep(opening: bytes, closing: bytes, depth: int = 10_000) -> bytes:
    return opening * depth + closing * depth


def laughs(levels: int) -> bytes:
    """Lists of lists, each with ten times the one before: 10^levels tensors in a few bytes."""
    out = opcodes(tensor()) + b"q\x00"
    for i in range(levels):
        out += b"0](" + (b"h" + bytes([i])) * 10 + b"eq" + bytes([i + 1])
    return out


def bad(name: str) -> Call:
    return call(name, "x")


PARTS: dict[str, tuple[Any, str]] = {
    "nested lists": (deep(b"](", b"e"), "deeper than 100"),
    "nested tuples": (b")" + b"\x85" * 20_000, "deeper than 100"),
    "a nested tuple as a key": (b"}" + b")" + b"\x85" * 20_000 + b"Ns", "cannot be a key"),
    "nested dicts": (b"}" + deep(b"K\x00}", b"s"), "deeper than 100"),
    "marks without end": (b"(" * 100_000 + b"N", "ends before"),
    "a list in itself": (b"]q\x00h\x00a", "contains itself"),
    "a dict in itself": (b"}q\x00K\x01h\x00s", "contains itself"),
    "a list as a key": ({"a": Call(ORDERED, [([], 1)])}, "cannot be a key"),
    "a tensor as a key": (b"}" + opcodes(tensor()) + b"K\x01s", "cannot be a key"),
    "a tensor in a set": (b"\x8f(" + opcodes(tensor()) + b"\x90", "cannot be a key"),
    "a number of two gigabytes": (b"\x8b\xff\xff\xff\x7f", "2,147,483,647 bytes; refused"),
    "a number of a megabyte": (b"\x8b\x00\x00\x10\x00" + b"\x01" * (1 << 20), "bytes; refused"),
    "a number of negative length": (b"\x8b\xff\xff\xff\xff", "cut off"),
    "a decimal number of a megabyte": (b"L" + b"9" * (1 << 20) + b"L\n", "damaged"),
    "text of 2^64 bytes": (b"\x8d" + b"\xff" * 8, "cut off"),
    "bytes of 2^63 bytes": (b"\x8e" + b"\xff" * 7 + b"\x7f", "cut off"),
    "a bytearray of a gigabyte": (call("builtins.bytearray", 1 << 30), "must be bytes"),
    "bytes of a gigabyte": (call("builtins.bytes", 1 << 30), "must be bytes"),
    "a memory at 2^32": (b"Nr\xff\xff\xff\xffj\xfe\xff\xff\xff", "was never remembered"),
    "a negative memory": (b"Np-1\n", "nothing to remember"),
    "a pop of nothing": (b"0", "never put"),
    "a value from below a mark": (b"N(\x85", "never put"),
    "two objects": (b"NN", "ends before its object"),
    "an odd number of items": (b"}(NNNu", "damaged"),
    "items for a list": (b"](NNu", "needs a dict"),
    "an append to a dict": (b"}Na", "needs a list"),
    "an unknown opcode": (b"\xff", "unknown opcode 0xff"),
    "protocol 99": (b"\x80\x63N", "protocol 99"),
    "an extension": (b"\x82\x01", "extensions are refused"),
    "a buffer from outside": (b"\x97", "buffers outside"),
    "a call of a tensor": (opcodes(tensor()) + b")R", "is not a function"),
    "a call of text": (opcodes("x") + b")R", "is not a function"),
    "a call with a list": (opcodes(ORDERED) + b"]R", "without arguments"),
    "a state for a list": (b"]}b", "cannot be set"),
    "a function as a value": ({"a": Global("collections", "OrderedDict"), "t": tensor()}, "as a value"),
    "named arguments": (opcodes(ORDERED) + b")" + opcodes({"a": 1}) + b"\x92", "named arguments"),
    "a name that is not text": (b"NN\x93", "must be text"),
    "a name that is not UTF-8": (b"c\xff\n\xff\n", "damaged"),
    "text that is not UTF-8": (b"X\x01\x00\x00\x00\xff", "damaged"),
    "a reference that is no storage": (Outside(("module", 1)), "not a storage"),
    "a reference that is text": (Outside("x"), "not a storage"),
    "a storage that is missing": (tensor(source=storage("7")), "'7' is missing"),
    "a storage of another folder": (tensor(source=storage("../data.pkl")), "is missing"),
    "a storage that is shorter": (tensor(source=storage(numel=5)), "shorter than the file says"),
    "a storage of 2^62 elements": (tensor(source=storage(numel=HUGE)), "cannot be a size"),
    "a storage of -1 elements": (tensor(source=storage(numel=-1)), "cannot be a size"),
    "a storage of 2.0 elements": (tensor(source=storage(numel=2.0)), "cannot be a size"),
    "a storage of no type": (tensor(source=storage(kind="x")), "type or name is wrong"),
    "a tensor beyond its storage": (tensor((5,)), "beyond the 16 bytes"),
    "an offset beyond its storage": (tensor((1,), (1,), 4), "beyond the 16 bytes"),
    "a stride beyond its storage": (tensor((2,), (4,)), "beyond the 16 bytes"),
    "a huge stride": (tensor((2, 2), (HUGE, HUGE)), "beyond the 16 bytes"),
    "an empty tensor beyond its storage": (tensor((0,), (1,), 5), "beyond the 16 bytes"),
    "a negative size": (tensor((-1,)), "at least 0"),
    "a negative stride": (tensor((2,), (-1,), 3), "at least 0"),
    "a negative offset": (tensor((1,), (1,), -1), "at least 0"),
    "a product that overflows": (tensor((HUGE, HUGE), (0, 0)), "too large"),
    "a hundred dimensions": (tensor((1,) * 100, (1,) * 100), "too large"),
    "a stride too few": (tensor((1, 1), (1,)), "do not belong together"),
    "sizes that are text": (tensor("ab", "cd"), "do not belong together"),
    "a tensor over a list": (tensor(source=[1]), "no typed storage"),
    "a tensor without arguments": (Call(REBUILD), "wrong arguments for torch._utils"),
    "a parameter of nothing": (call("torch._utils._rebuild_parameter", 1), "no tensor in it"),
    "a tensor made by code": (
        call("torch._tensor._rebuild_from_type_v2", Global("os", "system"), None, ("true",), None),
        "os.system",
    ),
    "a tensor of a class": (call("torch._tensor._rebuild_from_type_v2", REBUILD, FLOATS, (), {}), "only plain tensors"),
    "an array of objects": (call("numpy.dtype", "O8", False, True), "only numbers"),
    "an array of structures": (call("numpy.dtype", [("a", "f4")]), "only numbers"),
    "an array without content": (
        {"a": call("numpy.core.multiarray._reconstruct", None, (0,), b"b"), "t": tensor()},
        "without content",
    ),
    "an array larger than its bytes": (
        call(
            "numpy.core.multiarray._reconstruct",
            None,
            (0,),
            b"b",
            state=(1, (HUGE,), call("numpy.dtype", "f4"), False, b"1234"),
        ),
        "too large",
    ),
    "an array of the wrong size": (
        call(
            "numpy.core.multiarray._reconstruct",
            None,
            (0,),
            b"b",
            state=(1, (2,), call("numpy.dtype", "f4"), False, b"1234"),
        ),
        "do not fill",
    ),
    "an encoding that runs code": (call("_codecs.encode", "x", "zlib"), "not supported"),
    "quantized tensors": (
        tensor(source=storage(kind=Global("torch", "QInt8Storage"))),
        "quantized tensors (torch.QInt8Storage)",
    ),
    "a sparse tensor of another layout": (call("torch._utils._rebuild_sparse_tensor", "torch.sparse_x", ()), "layout"),
    "a sparse tensor without parts": (
        call("torch._utils._rebuild_sparse_tensor", "torch.sparse_coo", (1, 2, (3,))),
        "parts",
    ),
    "types that votive lacks": (Global("torch", "complex32"), "torch.complex32"),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("make", [torch_zip, torch_legacy], ids=["zip", "legacy"])
def test_it_is_refused(name: str, make: Any, tmp_path: Path) -> None:
    content, expected = PARTS[name]
    if make is torch_legacy and name in LEGACY_SAYS:
        expected = LEGACY_SAYS[name]
    path = tmp_path / "m.pt"
    path.write_bytes(make(content))
    assert expected in refusal(path, memory=64_000_000)
    refusal(path, votive.load, 64_000_000)


# There the storages follow the pickle, so that what is wrong with them shows later.
LEGACY_SAYS = {
    "a storage that is missing": "never used, or listed twice",
    "a storage of another folder": "never used, or listed twice",
    "a storage that is shorter": "two different sizes",
}

LEGACY: dict[str, tuple[bytes, str]] = {
    "another magic": (torch_legacy({}, magic=7), "not one of torch"),
    "a magic that is a dict": (torch_legacy({}, magic={}), "not one of torch"),
    "another protocol": (torch_legacy({}, (), b"", protocol=1002), "protocol 1002"),
    "a system that is text": (torch_legacy({}, (), b"", system="x"), "damaged"),
    "storages that are no list": (
        torch_legacy({"a": tensor()})[:-24][:0]
        + b"".join(map(pickled, (0x1950A86A20F9469CFC6C, 1001, {}, {"a": tensor()}, "0"))),
        "damaged",
    ),
    "a storage twice": (torch_legacy({"a": tensor()}, ("0", "0")), "listed twice"),
    "a storage nobody uses": (torch_legacy({}), "never used"),
    "a storage that is not listed": (torch_legacy({"a": tensor()}, (), b""), "not in the file"),
    "a storage of another size": (
        torch_legacy({"a": tensor()}, data=struct.pack("<q", 2**62) + FOUR),
        "different sizes",
    ),
    "a storage cut off": (torch_legacy({"a": tensor()}, data=struct.pack("<q", 4)), "cut off"),
    "a part beyond its storage": (
        torch_legacy({"a": tensor(source=Outside(("storage", FLOATS, "0", "cpu", 4, ("v", 2, 3))))}),
        "reaches beyond it",
    ),
    "a plain pickle": (pickled({"a": 1}), "not one of torch"),
}


@pytest.mark.parametrize("name", LEGACY)
def test_an_old_file_is_refused(name: str, tmp_path: Path) -> None:
    content, expected = LEGACY[name]
    path = tmp_path / "m.pt"
    path.write_bytes(content)
    assert expected in both(path)


ZIPS: dict[str, tuple[bytes, str]] = {
    "compressed": (torch_zip({"a": tensor()}, compression=zipfile.ZIP_DEFLATED), "is compressed"),
    "a bomb": (torch_zip({"a": tensor()}, {"0": bytes(1 << 26)}, compression=zipfile.ZIP_DEFLATED), "is compressed"),
    "no data.pkl": (torch_zip({})[:0] + torch_zip({}).replace(b"data.pkl", b"beta.pkl"), "without data.pkl"),
    "two of data.pkl": (torch_zip({}, extra={"other/data.pkl": pickled({})}), "without data.pkl"),
    "a name twice": (torch_zip({}, extra={"archive/data.pkl": pickled({})}), "occurs twice"),
    "an unknown byte order": (torch_zip({}).replace(b"little", b"middle"), "byte order b'middle'"),
}


@pytest.mark.parametrize("name", ZIPS)
def test_an_archive_is_refused(name: str, tmp_path: Path) -> None:
    content, expected = ZIPS[name]
    path = tmp_path / "m.pt"
    path.write_bytes(content)
    assert expected in both(path)


def test_a_source_does_not_name_more_tensors_than_there_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("votive.io.torch_file._MAX_NAMES", 10_000)
    path = tmp_path / "m.pt"
    path.write_bytes(torch_zip(laughs(30)))
    assert "too many tensors" in refusal(path)
    monkeypatch.setattr("votive.io.torch_file._MAX_NAMES", 1000)
    path.write_bytes(torch_zip(laughs(3)))
    assert len(open_weights(path)) == 1000


def test_what_is_shared_is_not_multiplied_by_loading(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(torch_zip(laughs(50)))
    out = votive.load(path)
    for _ in range(50):
        assert len(out) == 10
        assert out[0] is out[9]
        out = out[0]
    assert out.tolist() == [1, 2, 3, 4]


def test_a_scripted_file_may_not_hold_objects_of_c(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    content = call("__torch__.torch.classes.quantized.LinearPackedParamsBase")
    path.write_bytes(torch_zip(content, extra={"archive/constants.pkl": pickled(())}))
    assert "object of C++" in both(path)


def test_endless_steps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("votive.io.pickle_machine.MAX_OPCODES", 1000)
    with pytest.raises(FileFormatError, match="more than 1,000 steps"):
        Machine(b"N0" * 1000 + b"N.", 0, lambda m, n: None).run()


def test_parts_of_storages_of_old_are_read(tmp_path: Path) -> None:
    part = Outside(("storage", FLOATS, "0", "cpu", 4, ("v", 1, 3)))
    path = tmp_path / "m.pt"
    path.write_bytes(torch_legacy({"a": tensor(), "b": tensor((2,), (1,), 1, part)}))
    out = votive.load(path)
    assert out["b"].tolist() == [3, 4]
    out["a"][2] = 9
    assert out["b"].tolist() == [9, 4]
    assert open_weights(path).slice("b", 0) == 3


def test_what_the_forge_makes_is_valid_but_for_the_attack(tmp_path: Path) -> None:
    for i, make in enumerate((torch_zip, torch_legacy)):
        path = tmp_path / f"m{i}.pt"
        path.write_bytes(make({"a": tensor(), "n": 1}))
        assert votive.load(path)["a"].tolist() == [1, 2, 3, 4]
        assert os.path.getsize(path) > 100
