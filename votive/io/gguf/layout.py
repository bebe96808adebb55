"""The GGUF file layout: a header of typed values and descriptions of tensors, then aligned data.

Reads bytes into descriptions and checks every count, length and offset against the size of the file
before anything is allocated for it. Knows bytes; knows no tensors.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...serialization.container import FileFormatError
from .types import (
    ALIGNMENT,
    ARRAY,
    BOOL,
    BY_CODE,
    MAGIC,
    MAX_DIMS,
    STRING,
    VALUE_DTYPES,
    VALUE_NAMES,
    VERSIONS,
    TensorType,
)

_MAX_DEPTH = 8
# The least a value and a description of a tensor take: they bound counts by the file's size.
_LEAST_VALUE = 8 + 4 + 1
_LEAST_TENSOR = 8 + 4 + 4 + 8


@dataclass(frozen=True)
class Field:
    """Where a metadata value lies: `kind` is the name of its type, or (ARRAY, of what).

    `at` counts from the start of the file; for an array of `count` items it is that of the first.
    `starts` are the positions of strings, or the fields of nested arrays.
    """

    kind: str
    at: int
    item: str = ""
    count: int = 0
    starts: tuple[Any, ...] | list[Any] = ()


@dataclass(frozen=True)
class Entry:
    """One tensor: `begin` and `nbytes` say where its data lies in the file."""

    name: str
    type: TensorType
    shape: tuple[int, ...]
    begin: int
    nbytes: int


@dataclass(frozen=True)
class Header:
    """What a file holds."""

    version: int
    big: bool
    alignment: int
    fields: dict[str, Field]
    entries: dict[str, Entry]
    start: int


def read_header(data: memoryview, size: int) -> Header:
    """Read and check the header of a file of `size` bytes, of which `data` is the buffer."""
    cursor = _Cursor(data, size)
    if bytes(data[:4]) != MAGIC:
        raise FileFormatError(f"gguf: the file begins with {bytes(data[:4])!r}, not with GGUF.")
    version = cursor.version()
    tensors, values = cursor.number("Q"), cursor.number("Q")
    if values > cursor.left() // _LEAST_VALUE:
        raise cursor.bad(f"{values:,} values are announced")
    fields: dict[str, Field] = {}
    for _ in range(values):
        key = cursor.name("key")
        if key in fields:
            raise FileFormatError(f"gguf: the key {key!r} occurs twice.")
        fields[key] = cursor.field(key)
    if tensors > cursor.left() // _LEAST_TENSOR:
        raise cursor.bad(f"{tensors:,} tensors are announced")
    found = [cursor.tensor() for _ in range(tensors)]
    alignment = _alignment(cursor, fields)
    start = cursor.at + -cursor.at % alignment
    entries: dict[str, Entry] = {}
    for name, type_, shape, offset in found:
        if name in entries:
            raise FileFormatError(f"gguf: two tensors are called {name!r}.")
        entries[name] = _entry(name, type_, shape, start, offset, alignment, size)
    _check_overlap(entries)
    return Header(version, cursor.big, alignment, fields, entries, start)


class _Cursor:
    """A position in the bytes; all reading moves on and stays inside them."""

    def __init__(self, data: memoryview, size: int) -> None:
        self.data, self.size, self.at = data, size, 4
        self.big, self.order = False, "<"
        self.length = struct.Struct("<Q")

    def version(self) -> int:
        version = self.number("I")
        # A small number read in the wrong order has its lower half empty.
        if version and version & 0xFFFF == 0:
            self.big, self.order, self.length = True, ">", struct.Struct(">Q")
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in VERSIONS:
            raise FileFormatError(
                f"gguf: the file has version {version}; versions 2 and 3 can be read. "
                "Convert it again with a current tool."
            )
        return version

    def left(self) -> int:
        return self.size - self.at

    def bad(self, what: str) -> FileFormatError:
        return FileFormatError(
            f"gguf: {what} at byte {self.at:,}, more than the file of {self.size:,} bytes can "
            "hold; it is cut off or damaged."
        )

    def number(self, code: str) -> int:
        layout = struct.Struct(self.order + code)
        if layout.size > self.left():
            raise self.bad("a number is expected")
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return int(value)

    def skip(self, nbytes: int, what: str) -> int:
        if nbytes > self.left():
            raise self.bad(what)
        begin = self.at
        self.at += nbytes
        return begin

    def name(self, what: str) -> str:
        length = self.number("Q")
        begin = self.skip(length, f"a {what} of {length:,} bytes is announced")
        try:
            return str(self.data[begin : begin + length], "utf-8")
        except UnicodeDecodeError as e:
            raise FileFormatError(f"gguf: a {what} at byte {begin:,} is not UTF-8: {e}.") from None

    def kind(self, key: str) -> str:
        code = self.number("I")
        if code not in VALUE_NAMES:
            raise FileFormatError(f"gguf: the value of {key!r} has the unknown type {code}.")
        return VALUE_NAMES[code]

    def field(self, key: str) -> Field:
        kind = self.kind(key)
        if kind == STRING:
            return Field(kind, self.strings(key, 1)[0])
        if kind == ARRAY:
            return self.array(key, 1)
        return Field(kind, self.skip(VALUE_DTYPES[kind].itemsize, f"the value of {key!r}"))

    def array(self, key: str, depth: int) -> Field:
        if depth > _MAX_DEPTH:
            raise FileFormatError(f"gguf: {key!r} holds arrays nested over {_MAX_DEPTH} deep.")
        item, count = self.kind(key), self.number("Q")
        least = {STRING: 8, ARRAY: 12}.get(item) or VALUE_DTYPES[item].itemsize
        if count > self.left() // least:
            raise self.bad(f"an array of {count:,} items for {key!r} is announced")
        begin = self.at
        if item == STRING:
            return Field(ARRAY, begin, item, count, self.strings(key, count))
        if item == ARRAY:
            inner = tuple(self.array(key, depth + 1) for _ in range(count))
            return Field(ARRAY, begin, item, count, inner)
        self.skip(count * least, f"the array {key!r}")
        return Field(ARRAY, begin, item, count)

    def strings(self, key: str, count: int) -> list[int]:
        """Where each of `count` strings begins. Vocabularies are long: the loop does the least."""
        unpack, data, at, starts = self.length.unpack_from, self.data, self.at, []
        try:
            for _ in range(count):
                starts.append(at)
                at += 8 + unpack(data, at)[0]
        except (struct.error, OverflowError):
            at = self.size + 1
        if at > self.size:
            raise self.bad(f"text for {key!r} is expected")
        self.at = at
        return starts

    def tensor(self) -> tuple[str, TensorType, tuple[int, ...], int]:
        name = self.name("name of a tensor")
        dims = self.number("I")
        if dims > MAX_DIMS:
            raise FileFormatError(f"gguf: tensor {name!r} has {dims} dimensions; the format allows {MAX_DIMS}.")
        sizes = [self.number("Q") for _ in range(dims)]
        code = self.number("I")
        type_ = BY_CODE.get(code)
        if type_ is None:
            raise FileFormatError(
                f"gguf: tensor {name!r} has the unknown type {code}; known are "
                f"{', '.join(f'{t.name} ({c})' for c, t in sorted(BY_CODE.items()))}."
            )
        # The file counts dimensions from the fastest one.
        return name, type_, tuple(reversed(sizes)), self.number("Q")


def _alignment(cursor: _Cursor, fields: dict[str, Field]) -> int:
    field = fields.get("general.alignment")
    if field is None:
        return ALIGNMENT
    value = int(scalar(cursor.data, field, cursor.big)) if field.kind == "u32" else None
    if value is None or value <= 0 or value & (value - 1):
        raise FileFormatError(f"gguf: general.alignment is a power of two of type u32, got {value} ({field.kind}).")
    return value


def _entry(name: str, t: TensorType, shape: tuple[int, ...], start: int, offset: int, align: int, size: int) -> Entry:
    elements = span = 1
    for n in shape:
        elements, span = elements * n, span * max(n, 1)
    if (shape[-1] if shape else 1) % t.block:
        raise FileFormatError(
            f"gguf: tensor {name!r} of shape {shape} has rows that are not a multiple of {t.block}, the size of "
            f"{t.name} blocks."
        )
    nbytes = t.nbytes(elements)
    if offset % align:
        raise FileFormatError(f"gguf: tensor {name!r} begins at {offset}, not a multiple of {align}.")
    if start + offset + nbytes > size:
        raise FileFormatError(
            f"gguf: tensor {name!r} takes bytes {start + offset:,}..{start + offset + nbytes:,} "
            f"and the file has {size:,}; it is cut off."
        )
    # Empty tensors take no bytes, yet an array of any shape must be countable without its zeros.
    if elements == 0 and span >= 1 << 59:
        raise FileFormatError(f"gguf: tensor {name!r} has the impossible shape {shape}.")
    return Entry(name, t, shape, start + offset, nbytes)


def _check_overlap(entries: dict[str, Entry]) -> None:
    """No two tensors share bytes: together they are never larger than the file."""
    end, before = 0, ""
    for entry in sorted(entries.values(), key=lambda e: (e.begin, e.nbytes)):
        if entry.nbytes and entry.begin < end:
            raise FileFormatError(f"gguf: tensors {before!r} and {entry.name!r} overlap.")
        if entry.nbytes:
            end, before = entry.begin + entry.nbytes, entry.name


def scalar(data: memoryview, field: Field, big: bool) -> bool | int | float:
    """The value of a field that is a number or truth value."""
    dtype = VALUE_DTYPES[field.kind].newbyteorder(">" if big else "<")
    (value,) = np.frombuffer(data, dtype, 1, field.at).tolist()
    return bool(value) if field.kind == BOOL else value


def value(data: memoryview, field: Field, big: bool) -> Any:
    """The value of a field: a number, text, truth value, or a list of such."""
    if field.kind == STRING:
        return _texts(data, [field.at], big)[0]
    if field.kind != ARRAY:
        return scalar(data, field, big)
    if field.item == STRING:
        return _texts(data, field.starts, big)
    if field.item == ARRAY:
        return [value(data, inner, big) for inner in field.starts]
    dtype = VALUE_DTYPES[field.item].newbyteorder(">" if big else "<")
    numbers = np.frombuffer(data, dtype, field.count, field.at) if field.count else np.empty(0)
    return (numbers != 0).tolist() if field.item == BOOL else numbers.tolist()


def _texts(data: memoryview, starts: Sequence[int], big: bool) -> list[str]:
    unpack = struct.Struct(">Q" if big else "<Q").unpack_from
    # Vocabularies hold pieces of characters now and then; they come back as they were when written.
    return [str(data[s + 8 : s + 8 + unpack(data, s)[0]], "utf-8", "surrogateescape") for s in starts]
