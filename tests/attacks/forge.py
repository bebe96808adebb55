"""Makes files of every kind, valid or not, out of their parts; and judges how they are received."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import votive
from votive.io import FileFormatError, open_weights

# Far below what the files claim, far above what refusing them needs.
MEMORY = 16_000_000


def read_all(path: Path) -> None:
    """Open a file as weights, look at everything, read everything."""
    with open_weights(path) as source:
        for name in source.names():
            source.info(name)
            source.tensor(name)
            source.slice(name, ...)


def refusal(path: Path, read: Callable[[Path], Any] = read_all, memory: int = MEMORY) -> str:
    """The message with which a file is refused; anything but a FileFormatError fails."""
    tracemalloc.start()
    try:
        read(path)
    except FileFormatError as e:
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < memory, f"{peak:,} bytes were taken to refuse it"
        return str(e)
    finally:
        tracemalloc.stop()
    raise AssertionError("the file was accepted")


def both(path: Path) -> str:
    """The refusal of a file by `open_weights`; `votive.load` must refuse it too."""
    refusal(path, votive.load)
    return refusal(path)


# --- safetensors ----------------------------------------------------------------------------------


def safetensors(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


# --- pickles --------------------------------------------------------------------------------------


class Global:
    """A name in a pickle."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class Call:
    """A call in a pickle, with a state set afterwards if given."""

    def __init__(self, function: Global, *args: Any, state: Any = None) -> None:
        self.function, self.args, self.state = function, args, state


class Outside:
    """A reference to something outside of the pickle."""

    def __init__(self, identity: Any) -> None:
        self.identity = identity


def opcodes(value: Any) -> bytes:
    """The opcodes that push a value."""
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return b"J" + struct.pack("<i", value)
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8b" + struct.pack("<i", len(raw)) + raw
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        raw = value.encode()
        return b"X" + struct.pack("<I", len(raw)) + raw
    if isinstance(value, bytes):
        return b"B" + struct.pack("<I", len(value)) + value
    if isinstance(value, tuple):
        return b"(" + b"".join(map(opcodes, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(opcodes, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(opcodes(k) + opcodes(v) for k, v in value.items()) + b"u"
    if isinstance(value, Global):
        return f"c{value.module}\n{value.name}\n".encode()
    if isinstance(value, Outside):
        return opcodes(value.identity) + b"Q"
    assert isinstance(value, Call)
    made = opcodes(value.function) + opcodes(value.args) + b"R"
    return made if value.state is None else made + opcodes(value.state) + b"b"


def pickled(value: Any) -> bytes:
    return b"\x80\x02" + (value if isinstance(value, bytes) else opcodes(value)) + b"."


# --- torch ----------------------------------------------------------------------------------------

FLOATS = Global("torch", "FloatStorage")
REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
ORDERED = Global("collections", "OrderedDict")


def storage(key: Any = "0", numel: Any = 4, kind: Any = FLOATS, location: Any = "cpu") -> Outside:
    return Outside(("storage", kind, key, location, numel))


def tensor(shape: Any = (4,), stride: Any = (1,), offset: Any = 0, source: Any = None) -> Call:
    return Call(REBUILD, storage() if source is None else source, offset, shape, stride, False, Call(ORDERED))


FOUR = struct.pack("<4f", 1, 2, 3, 4)


def torch_zip(
    content: Any,
    storages: dict[str, bytes] | None = None,
    extra: dict[str, bytes] | None = None,
    compression: int = zipfile.ZIP_STORED,
) -> bytes:
    """An archive as torch.save writes it."""
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", compression) as z:
        z.writestr("archive/data.pkl", pickled(content))
        z.writestr("archive/byteorder", b"little")
        for key, raw in ({"0": FOUR} if storages is None else storages).items():
            z.writestr(f"archive/data/{key}", raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that occur twice
            for name, raw in (extra or {}).items():
                z.writestr(name, raw)
    return f.getvalue()


def torch_legacy(
    content: Any,
    keys: Any = ("0",),
    data: bytes = struct.pack("<q", 4) + FOUR,
    magic: Any = 0x1950A86A20F9469CFC6C,
    protocol: Any = 1001,
    system: Any = None,
) -> bytes:
    """A sequence of pickles and storages, as torch wrote before version 1.6."""
    if system is None:
        system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    head = b"".join(pickled(v) for v in (magic, protocol, system, content, list(keys)))
    return head + data


# --- NumPy ----------------------------------------------------------------------------------------


def npy(header: Any, data: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else repr(header).encode()
    size = len(text) if length is None else length
    head = b"\x93NUMPY" + bytes([version, 0]) + size.to_bytes(2 if version == 1 else 4, "little")
    return head + text + data


def described(descr: Any = "<f4", shape: Any = (2,), fortran: Any = False) -> dict[str, Any]:
    return {"descr": descr, "fortran_order": fortran, "shape": shape}


def npz(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", compression) as z:
        for name, content in members.items():
            z.writestr(name, content)
    return f.getvalue()


# --- one small, valid file of each kind -----------------------------------------------------------


def nested() -> dict[str, Any]:
    return {
        "model": {"weight": tensor((2, 2), (2, 1)), "bias": tensor((2,), (1,), 2)},
        "epoch": 3,
        "notes": ["a", (1.5, None, True, b"x")],
        "size": Call(Global("torch", "Size"), (1, 2)),
    }


def valid() -> dict[str, bytes]:
    two = np.array([1, 2], np.float32)
    plain = npy(described(), two.tobytes())
    return {
        "safetensors": safetensors(
            {"__metadata__": {"k": "v"}, "a": entry(), "b": entry("I8", (3,), (8, 11))}, two.tobytes() + b"abc"
        ),
        "torch zip": torch_zip(nested()),
        "torch legacy": torch_legacy(nested()),
        "npy": plain,
        "npz": npz({"a.npy": plain, "b.npy": npy(described("|i1", (3,)), b"abc")}),
        "npz, compressed": npz({"a.npy": plain}, zipfile.ZIP_DEFLATED),
    }
