"""The safetensors file layout: eight bytes of header length, a JSON header, raw tensor data.

The layout is that of https://github.com/huggingface/safetensors (README, "Format"). Nothing in a
file is ever executed, and nothing is allocated that its real size does not justify. Knows arrays
and bytes; knows no tensors.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from typing import IO, Any

import ml_dtypes
import numpy as np

from ..core import dtype as dt

# The reference implementation's limit (safetensors/src/tensor.rs, MAX_HEADER_SIZE).
MAX_HEADER = 100_000_000
_LENGTH = 8

NAMES = {
    dt.float64: "F64",
    dt.float32: "F32",
    dt.float16: "F16",
    dt.bfloat16: "BF16",
    dt.float8_e4m3fn: "F8_E4M3",
    dt.float8_e5m2: "F8_E5M2",
    dt.int64: "I64",
    dt.int32: "I32",
    dt.int16: "I16",
    dt.int8: "I8",
    dt.uint64: "U64",
    dt.uint32: "U32",
    dt.uint16: "U16",
    dt.uint8: "U8",
    dt.bool_: "BOOL",
    dt.complex64: "C64",
}
DTYPES = {name: d for d, name in NAMES.items()}
# What the format has and votive computes with only as float32, which holds all their values:
# bits of an element, and NumPy's type for it. No framework says how six bits are packed.
FOREIGN: dict[str, tuple[int, Any]] = {
    "F8_E8M0": (8, ml_dtypes.float8_e8m0fnu),
    "F8_E4M3FNUZ": (8, ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": (8, ml_dtypes.float8_e5m2fnuz),
    "F4": (4, ml_dtypes.float4_e2m1fn),
    "F6_E2M3": (6, None),
    "F6_E3M2": (6, None),
}
# NumPy's limits on arrays.
_MAX_DIMS = 64
_MAX_BYTES = 2**63 - 1


class FileFormatError(RuntimeError):
    """A file is cut off, damaged, or not what it claims to be."""


@dataclass(frozen=True)
class Entry:
    """One tensor in a file: `begin` and `end` count from the start of the data.

    `dtype` is what it is read as; where the file's own type is another one, `stored` names it.
    """

    dtype: dt.dtype
    shape: tuple[int, ...]
    begin: int
    end: int
    stored: str

    @property
    def foreign(self) -> bool:
        return self.stored in FOREIGN


@dataclass(frozen=True)
class Header:
    """What a file holds; `start` is where its data begins."""

    metadata: dict[str, str]
    entries: dict[str, Entry]
    start: int


def write(f: IO[bytes], arrays: dict[str, np.ndarray[Any, Any]], metadata: dict[str, str]) -> None:
    """Write arrays of votive's dtypes under their names."""
    # Widest first keeps every tensor aligned to its element size without any padding.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name in order:
        a = arrays[name]
        begin, end = end, end + a.nbytes
        kind = NAMES[dt.from_numpy(a.dtype)]
        header[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"save: the description of what is saved has {len(text):,} bytes, more than the "
            f"{MAX_HEADER:,} a file may have; put large lists of numbers into tensors."
        )
    f.write(len(text).to_bytes(_LENGTH, "little"))
    f.write(text)
    for name in order:
        if arrays[name].nbytes:
            f.write(raw_bytes(arrays[name]))


def raw_bytes(array: np.ndarray[Any, Any]) -> Any:
    """The elements row by row, little-endian."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if sys.byteorder == "big":
        flat = flat.byteswap()
    return flat.view(np.uint8).data


def read_header(f: IO[bytes], size: int) -> Header:
    """Read and check the header of a file of `size` bytes; `f` stands at its beginning."""
    head = f.read(_LENGTH)
    if len(head) < _LENGTH:
        raise FileFormatError(f"load: {size} bytes are too few for a header; the file is cut off.")
    length = int.from_bytes(head, "little")
    first = f.read(1)
    # The length of a header may begin with the same bytes; what follows then is its brace.
    pickled = head[:4] == b"PK\x03\x04" or head[:2] in (b"\x80\x02", b"\x80\x04", b"\x80\x05")
    if pickled and first != b"{":
        raise FileFormatError(
            "load: this is a pickle or a torch checkpoint, which could run code when loaded; "
            "load it with torch and save it as safetensors."
        )
    if length > min(MAX_HEADER, size - _LENGTH):
        raise FileFormatError(
            f"load: the header should have {length:,} bytes, the file has {size:,} and the limit "
            f"is {MAX_HEADER:,}; it is cut off or not a safetensors file."
        )
    text = first + f.read(length - 1) if length else b""
    if len(text) < length or not text.startswith(b"{"):
        raise FileFormatError("load: the header is cut off or not a JSON object.")
    header = parse_json(text)
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileFormatError("load: __metadata__ must map names to text.")
    entries = {name: _entry(name, spec) for name, spec in header.items()}
    _check_extent(entries, size - _LENGTH - length)
    return Header(metadata, entries, _LENGTH + length)


def parse_json(text: str | bytes) -> Any:
    """JSON without duplicate names; whatever is wrong with it is a FileFormatError."""
    try:
        if isinstance(text, bytes):
            text = text.decode()  # json would guess other encodings from the first bytes
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        raise FileFormatError(f"load: the description in the file is not valid JSON: {e}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name occurs twice")
    for name in out:
        if not name.isascii():
            name.encode()  # half of a surrogate pair is no text
    return out


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _entry(name: str, spec: Any) -> Entry:
    def bad(why: str) -> FileFormatError:
        return FileFormatError(f"load: tensor {name!r}: {why}.")

    if not isinstance(spec, dict) or not spec.keys() >= {"dtype", "shape", "data_offsets"}:
        raise bad("expected dtype, shape and data_offsets")
    stored = spec["dtype"]
    if not isinstance(stored, str) or (stored not in DTYPES and stored not in FOREIGN):
        raise bad(f"unknown dtype {stored!r}; known: {', '.join([*DTYPES, *FOREIGN])}")
    dtype = DTYPES.get(stored, dt.float32)
    bits = FOREIGN[stored][0] if stored in FOREIGN else 8 * dtype.itemsize
    shape, offsets = spec["shape"], spec["data_offsets"]
    if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
        raise bad("shape and data_offsets must be lists of non-negative integers")
    if len(shape) > _MAX_DIMS or math.prod(n or 1 for n in shape) * dtype.itemsize > _MAX_BYTES:
        raise bad(f"the shape is too large: {str(shape)[:200]}")
    begin, end = offsets
    if 8 * (end - begin) != math.prod(shape) * bits:
        raise bad(f"shape {shape} of {stored} does not fill bytes {begin}..{end}")
    return Entry(dtype, tuple(shape), begin, end, stored)


def widen(name: str, raw: np.ndarray[Any, Any], entry: Entry) -> np.ndarray[Any, Any]:
    """The float32 values of a tensor whose own type is foreign."""
    kind = FOREIGN[entry.stored][1]
    if kind is None:
        known = ", ".join([*DTYPES, *(n for n, (_, k) in FOREIGN.items() if k is not None)])
        raise FileFormatError(
            f"load: tensor {name!r} is stored as {entry.stored}, which cannot be read; supported: {known}."
        )
    if entry.stored == "F4":  # two in a byte, the first in the low half
        raw = np.stack([raw & 15, raw >> 4], -1)
    return raw.reshape(-1).view(kind).astype(np.float32).reshape(entry.shape)


def _naturals(values: object) -> bool:
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def _check_extent(entries: dict[str, Entry], size: int) -> None:
    """Tensors must fill the data without gap and overlap, so reading never exceeds the file."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != end:
            what = "overlaps another" if entry.begin < end else "leaves a gap before it"
            raise FileFormatError(f"load: tensor {name!r} {what} (bytes {entry.begin}..).")
        end = entry.end
    if end != size:
        raise FileFormatError(f"load: the tensors need {end:,} bytes, but {size:,} are present; the file is damaged.")
