"""Frames between page and server: how requests are read and replies are written. Knows no actions.

A request is JSON text. A reply is binary: the length of a JSON header as a little-endian uint32,
the header, padded with spaces to a multiple of 8, then the blobs, each at a multiple of 8.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..core.plain import plain

# Bytes of one request; and of what is answered with an error instead of an end of the connection.
LARGEST, READ = 1 << 20, 4 << 20
_DEEPEST = 32
_HALF = re.compile("[\ud800-\udfff]")
_SAFE = 1 << 53  # above this, a number is not the same in JavaScript
# Arrays of a reply by name.
Blobs: TypeAlias = Mapping[str, Any]
_TYPES = {
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint16": "u16",
    "uint32": "u32",
    "float32": "f32",
    "float64": "f64",
}


class BadFrame(ValueError):
    """A frame that is no request; `id` is that of the request where it could be read."""

    def __init__(self, message: str, id: int | None = None) -> None:
        super().__init__(message)
        self.id = id


@dataclass(frozen=True)
class Request:
    """One thing to do; a newer request of the same slot overtakes it."""

    id: int
    do: str
    args: dict[str, Any] = field(default_factory=dict)
    slot: str | None = None


@dataclass(frozen=True)
class Cancel:
    """Nobody waits for the request with this id any more."""

    id: int


@dataclass(frozen=True)
class Enter:
    """Who speaks: a token, and the workspace that was left when the connection was lost."""

    token: str | None = None
    workspace: str | None = None


def read(text: str | bytes) -> Request | Cancel | Enter:
    """What a frame says.

    >>> from votive.studio.protocol import read
    >>> read('{"id": 7, "do": "session.step", "args": {"n": 2}}')
    Request(id=7, do='session.step', args={'n': 2}, slot=None)
    """
    if isinstance(text, bytes):
        raise BadFrame("a request is JSON text, but this frame is binary.")
    if len(text) > LARGEST or len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise BadFrame(f"the request is larger than {LARGEST:,} bytes.")
    try:
        said = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise BadFrame(f"the request is nested deeper than {_DEEPEST}.") from None
    except ValueError as e:
        raise BadFrame(f"the request is no JSON: {e}") from None
    if not isinstance(said, dict):
        raise BadFrame(f"a request is an object, got {_kind(said)}.")
    wrong = _wrong(said)
    if wrong is not None:
        raise BadFrame(wrong, _id_of(said))
    if "cancel" in said:
        return Cancel(_id(said["cancel"], "cancel"))
    if "do" not in said and ("token" in said or "workspace" in said):
        return Enter(_text(said, "token", 200), _text(said, "workspace", 80))
    id = _id(said.get("id"), "id")
    do, args = said.get("do"), said.get("args", {})
    if not isinstance(do, str) or not re.fullmatch(r"[a-z_]{1,40}\.[a-z_]{1,40}", do):
        raise BadFrame(f"'do' must be the name of an action, got {_kind(do)}.", id)
    if args is None:
        args = {}
    if not isinstance(args, dict):
        raise BadFrame(f"'args' must be an object, got {_kind(args)}.", id)
    try:
        slot = _text(said, "slot", 80)
    except BadFrame as e:
        raise BadFrame(str(e), id) from None
    return Request(id, do, args, slot)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def _id(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _SAFE:
        raise BadFrame(f"{name!r} must be a whole number from 0 to 2**53, got {_kind(value)}.")
    return value


def _text(said: dict[str, Any], name: str, most: int) -> str | None:
    value = said.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > most):
        raise BadFrame(f"{name!r} must be a text of at most {most} characters.")
    return value


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a text", bool: "a truth value"}
    return "nothing" if value is None else names.get(type(value), "a number")


def _id_of(said: dict[str, Any]) -> int | None:
    """The id of a request that is wrong elsewhere, so that its page knows which."""
    try:
        return _id(said.get("id"), "id")
    except BadFrame:
        return None


def _wrong(value: object) -> str | None:
    """What no part of a frame may hold, wherever it stands: told, or None."""
    left: list[tuple[Any, int]] = [(value, 1)]
    while left:
        one, depth = left.pop()
        if depth > _DEEPEST:
            return f"the request is nested deeper than {_DEEPEST}."
        if isinstance(one, dict):
            left += [(v, depth + 1) for v in one.values()]
            left += [(k, depth) for k in one]
        elif isinstance(one, list):
            left += [(v, depth + 1) for v in one]
        elif isinstance(one, str):
            if not one.isascii() and _HALF.search(one):
                return "the request holds half a character (a lone surrogate)."
        elif isinstance(one, float):
            if not math.isfinite(one):
                return "the request holds a number that is too large."
        elif isinstance(one, int) and abs(one) >= 1 << 63:
            return "the request holds a number that is too large."
    return None


def write(header: Mapping[str, Any], blobs: Mapping[str, Any] | None = None) -> bytes:
    """A frame of a header and arrays.

    >>> from votive.studio.protocol import unpack, write
    >>> header, blobs = unpack(write({"id": 1, "ok": True}, {"x": np.ones(2, "float32")}))
    >>> header["blobs"], blobs["x"].tolist()
    ([{'name': 'x', 'dtype': 'f32', 'shape': [2], 'at': 0}], [1.0, 1.0])
    """
    listed, parts, at = [], [], 0
    for name, array in (blobs or {}).items():
        array = np.ascontiguousarray(array)
        # Zero-dimensional arrays come back with one dimension from ascontiguousarray.
        entry = {"name": name, "dtype": _TYPES[array.dtype.name], "shape": list(array.shape)}
        listed.append({**entry, "at": at})
        parts.append(array.tobytes() + bytes(-array.nbytes % 8))
        at += len(parts[-1])
    said = {**header, "blobs": listed} if listed else dict(header)
    text = json.dumps(plain(said, null=True), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    text += b" " * (-(4 + len(text)) % 8)
    return b"".join([struct.pack("<I", len(text)), text, *parts])


def unpack(frame: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a frame that `write` made."""
    (length,) = struct.unpack_from("<I", frame)
    header = json.loads(frame[4 : 4 + length])
    dtypes = {short: name for name, short in _TYPES.items()}
    blobs = {}
    for b in header.get("blobs", ()):
        count = math.prod(b["shape"])
        found = np.frombuffer(frame, dtypes[b["dtype"]], count, 4 + length + b["at"])
        blobs[b["name"]] = found.reshape(b["shape"])
    return header, blobs
