"""Metadata values with their types: what Python values become. Knows bytes, no files."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .types import ARRAY, BOOL, STRING, VALUE_CODES, VALUE_DTYPES

Order = Literal["<", ">"]


@dataclass(frozen=True)
class Value:
    """A metadata value of an explicit type: `Value(7, "u64")`, `Value([1, 2], "array", "i32")`.

    Types are u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool string array; an array needs the type of
    its items, and one of arrays takes a list of Values.

    >>> from votive.io.gguf import Value
    >>> Value([1, 2], "array", "u8")
    Value(value=[1, 2], type='array', item='u8')
    """

    value: Any
    type: str
    item: str = ""

    def __post_init__(self) -> None:
        for name in (self.type, self.item) if self.type == ARRAY else (self.type,):
            if name not in VALUE_CODES:
                raise ValueError(f"gguf: {name!r} is not a type of value; there are {', '.join(VALUE_CODES)}.")


def typed(key: str, value: object) -> Value:
    """The type a plain value gets.

    Integers become u32, which readers of models expect, or the smallest of i32, u64, i64 that
    holds them; floats f32; lists of integers i32 where they fit. NumPy values keep their type.
    """
    if isinstance(value, Value):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(key, value)
    if isinstance(value, bool):
        return Value(value, BOOL)
    if isinstance(value, int):
        return Value(value, _integer(key, [value], ("u32", "i32", "u64", "i64")))
    if isinstance(value, float):
        return Value(value, "f32")
    if isinstance(value, str):
        return Value(value, STRING)
    if isinstance(value, (list, tuple)):
        return _from_list(key, list(value))
    raise TypeError(
        f"gguf: the value of {key!r} is a {type(value).__name__}; use bool, int, float, str, a "
        "list of one of them, or a Value."
    )


def _from_list(key: str, values: list[Any]) -> Value:
    kinds = {bool if isinstance(v, np.bool_) else type(v) for v in values}
    if kinds == {int, float}:
        kinds = {float}
    if len(kinds) != 1:
        what = "is empty" if not kinds else f"mixes {', '.join(sorted(k.__name__ for k in kinds))}"
        raise TypeError(f"gguf: the list {key!r} {what}; give it as Value(list, 'array', type).")
    (kind,) = kinds
    if kind is bool:
        return Value(values, ARRAY, BOOL)
    if kind is int:
        return Value(values, ARRAY, _integer(key, values, ("i32", "u32", "i64", "u64")))
    if kind is float:
        return Value(values, ARRAY, "f32")
    if kind is str:
        return Value(values, ARRAY, STRING)
    return Value([_nested(key, v) for v in values], ARRAY, ARRAY)


def _nested(key: str, value: object) -> Value:
    inner = typed(key, value)
    if inner.type != ARRAY:
        raise TypeError(f"gguf: the list {key!r} holds {type(value).__name__}, not only lists.")
    return inner


def _from_numpy(key: str, value: np.ndarray | np.generic) -> Value:
    name = {"b": BOOL}.get(value.dtype.kind, f"{value.dtype.kind}{value.dtype.itemsize * 8}")
    if name not in VALUE_DTYPES or value.ndim > 1:
        raise TypeError(
            f"gguf: the value of {key!r} is an array of {value.dtype} with {value.ndim} "
            "dimensions; use numbers in one dimension."
        )
    if value.ndim == 0:
        return Value(value.item(), name)
    return Value(value, ARRAY, name)


def _integer(key: str, values: list[int], names: tuple[str, ...]) -> str:
    low, high = min(values), max(values)
    for name in names:
        limits = np.iinfo(VALUE_DTYPES[name])
        if limits.min <= low and high <= limits.max:
            return name
    raise ValueError(f"gguf: the value of {key!r} needs more than 64 bits.")


def encoded(key: str, value: Value, order: Order) -> bytes:
    """Type and value in bytes; `order` is '<' or '>'."""
    return struct.pack(f"{order}I", VALUE_CODES[value.type]) + _body(key, value, order)


def _body(key: str, v: Value, order: Order) -> bytes:
    if v.type == STRING:
        return text(v.value, order, key)
    if v.type != ARRAY:
        return _numbers(key, [v.value], v.type, order)
    items = v.value
    head = struct.pack(f"{order}IQ", VALUE_CODES[v.item], len(items))
    if v.item == STRING:
        return head + b"".join(text(s, order, key) for s in items)
    if v.item == ARRAY:
        return head + b"".join(_body(key, _nested(key, inner), order) for inner in items)
    return head + _numbers(key, items, v.item, order)


def _numbers(key: str, values: Sequence[float] | np.ndarray, name: str, order: Order) -> bytes:
    dtype = VALUE_DTYPES[name]
    given = np.asarray(values)
    if len(given) and given.dtype.kind not in ("biuf" if dtype.kind == "f" else "biu"):
        raise TypeError(f"gguf: {key!r} is to be {name} and holds {given.dtype}.")
    with np.errstate(over="ignore"):  # float32 of a large float64 is infinite, as everywhere
        out = given.astype(dtype)
    if dtype.kind != "f" and not np.array_equal(out, given):
        raise ValueError(f"gguf: {key!r} holds numbers outside the range of {name}.")
    return out.astype(dtype.newbyteorder(order)).tobytes()


def text(value: object, order: Order, key: str) -> bytes:
    """Length and UTF-8 bytes."""
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"gguf: {key!r} is to be text and holds {type(value).__name__}.")
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    return struct.pack(f"{order}Q", len(raw)) + raw
