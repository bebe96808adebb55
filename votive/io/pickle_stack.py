"""The state of a pickle being read, and what it may build. Knows no opcode, no torch, no files."""

from __future__ import annotations

import mmap
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..serialization.container import FileFormatError

MAX_DEPTH = 100
Bytes = bytes | mmap.mmap
_PLAIN = (str, int, float, complex, bytes, type(None), np.generic, dt.dtype)


class UnsafeFileError(FileFormatError):
    """A file asks for something that is not data, such as a function to be called."""


class Maker:
    """A name that a pickle may call, and what is done instead of calling it."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[..., Any]) -> None:
        self.name, self.make = name, make


class Part:
    """Something that is not finished when it is made; `set_state` completes it."""

    def set_state(self, state: object) -> None:
        raise FileFormatError(f"pickle: a state for {type(self).__name__} was not expected.")


class Stack:
    """What a pickle being read has: bytes from `at` on, a stack with marks, and a memory."""

    def __init__(
        self, data: Bytes, at: int, find: Callable[[str, str], Any], persistent: Callable[[Any], Any] | None = None
    ) -> None:
        self.data, self.at = data, at
        self.find, self.persistent = find, persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    # --- input ----------------------------------------------------------------------------------

    def read(self, n: int) -> bytes:
        end = self.at + n
        if n < 0 or end > len(self.data):
            raise FileFormatError(f"pickle: {n:,} bytes are announced at {self.at:,}; cut off.")
        out = self.data[self.at : end]
        self.at = end
        return out

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise FileFormatError("pickle: a line has no end; cut off.")
        out = self.read(end - self.at)
        self.at += 1
        return out

    # --- stack ----------------------------------------------------------------------------------

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or (self.marks and len(self.stack) <= self.marks[-1]):
            raise FileFormatError("pickle: it takes something off the stack that was never put there.")
        return self.stack.pop()

    def top(self, kind: type, what: str) -> Any:
        if not self.stack or type(self.stack[-1]) not in (kind, *_KINDS.get(kind, ())):
            raise FileFormatError(f"pickle: {what} needs a {kind.__name__}.")
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        if not self.marks:
            raise FileFormatError("pickle: a mark is missing.")
        at = self.marks.pop()
        out = self.stack[at:]
        del self.stack[at:]
        return out

    def call(self, function: object, args: object) -> None:
        if not isinstance(function, Maker):
            raise UnsafeFileError(f"pickle: {shown(function)} is called, but is not a function.")
        if not isinstance(args, tuple):
            raise FileFormatError(f"pickle: {function.name} is called without arguments.")
        try:
            self.push(function.make(*args))
        except FileFormatError:
            raise
        except Exception as e:
            raise FileFormatError(f"pickle: wrong arguments for {function.name} ({e}).") from None

    def look_up(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise FileFormatError("pickle: the name of a global must be text.")
        self.push(self.find(module, name))


# What stands in for a type when an opcode asks for it.
_KINDS: dict[type, tuple[type, ...]] = {dict: (OrderedDict,)}


def key(value: Any, depth: int = 0) -> Any:
    """`value`, if it can be a key: hashing a deep tuple would exhaust the stack of C."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple) and depth < 8:
        for part in value:
            key(part, depth + 1)
        return value
    raise FileFormatError(f"pickle: a {type(value).__name__} cannot be a key.")


def children(value: object) -> Iterator[Any]:
    """What a value holds, itself being no leaf."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, Part):
        yield from getattr(value, "held", ())


def check_depth(root: object) -> None:
    """Refuse what contains itself or is nested too deep, so that all others may recurse."""
    height: dict[int, int] = {}
    around: set[int] = set()
    stack = [(root, children(root), 0)]
    around.add(id(root))
    while stack:
        value, rest, best = stack.pop()
        for child in rest:
            if not isinstance(child, (dict, list, tuple, Part)):
                continue
            known = height.get(id(child))
            if known is None:
                if id(child) in around:
                    raise FileFormatError("pickle: an object contains itself; refused.")
                stack.append((value, rest, best))
                around.add(id(child))
                stack.append((child, children(child), 0))
                break
            best = max(best, known + 1)
        else:
            height[id(value)] = best
            around.discard(id(value))
            if stack:
                up, rest, most = stack.pop()
                stack.append((up, rest, max(most, best + 1)))
        if len(stack) > MAX_DEPTH or best > MAX_DEPTH:
            raise FileFormatError(f"pickle: nested deeper than {MAX_DEPTH}; refused.")


def shown(value: object) -> str:
    """What an error calls a value."""
    return value.name if isinstance(value, Maker) else f"a {type(value).__name__}"
