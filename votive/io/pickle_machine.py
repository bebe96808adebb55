"""A reader of pickles that can only build what it is told about. Knows opcodes, no torch, no files.

It is an interpreter of its own, not Python's: a name in the pickle is looked up by `find`, which
gives a value or a `Maker` from a fixed table, and nothing else is ever called. Memory grows with
the length of the pickle and nothing it says about itself.
"""

from __future__ import annotations

import codecs
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..serialization.container import FileFormatError
from .pickle_stack import Part, Stack, UnsafeFileError, check_depth, key, shown

# Generous for real checkpoints: one tensor takes about 40 opcodes.
MAX_OPCODES = 50_000_000
# A number of this many bytes is an attack: printing it alone would take very long.
_MAX_LONG = 1024


class Machine(Stack):
    """Reads one pickle; afterwards `at` is where it ended."""

    def run(self) -> Any:
        """The object, checked to be neither deep nor circular."""
        try:
            out = self._run()
        except FileFormatError:
            raise
        except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError, RecursionError, struct.error) as e:
            raise FileFormatError(f"pickle: damaged before byte {self.at:,} ({e}).") from None
        check_depth(out)
        return out

    def _run(self) -> Any:
        ops, data = _OPS, self.data
        for _ in range(MAX_OPCODES):
            code = data[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                if len(self.stack) != 1 or self.marks:
                    raise FileFormatError("pickle: it ends before its object is complete.")
                return self.stack.pop()
            op = ops.get(code)
            if op is None:
                raise FileFormatError(f"pickle: unknown opcode {code:#04x} at {self.at - 1:,}.")
            op(self)
        raise FileFormatError(f"pickle: more than {MAX_OPCODES:,} steps; refused.")


def _build(m: Stack) -> None:
    state = m.pop()
    target = m.stack[-1] if m.stack else None
    if isinstance(target, Part):
        target.set_state(state)
    elif type(target) is OrderedDict and isinstance(state, dict):
        # The only attribute of a state dict that means something: its modules' versions.
        if isinstance(state.get("_metadata"), dict):
            target._metadata = state["_metadata"]  # type: ignore[attr-defined]
    else:
        raise UnsafeFileError(f"pickle: the state of {shown(target)} cannot be set.")


def _set(m: Stack, items: list[Any]) -> None:
    target = m.top(dict, "setting an item")
    for k, v in zip(items[::2], items[1::2], strict=True):
        target[key(k)] = v


def _long(m: Stack, n: int) -> int:
    if n > _MAX_LONG:
        raise FileFormatError(f"pickle: a number of {n:,} bytes; refused.")
    return int.from_bytes(m.read(n), "little", signed=True)


def _put(m: Stack, index: int) -> None:
    if not m.stack or index < 0:
        raise FileFormatError("pickle: there is nothing to remember.")
    m.memo[index] = m.stack[-1]


def _get(m: Stack, index: int) -> None:
    if index not in m.memo:
        raise FileFormatError(f"pickle: value {index} was never remembered.")
    m.push(m.memo[index])


def _text(raw: bytes) -> str | bytes:
    """Python 2's strings were bytes; most were meant as text."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _quoted(m: Stack) -> str | bytes:
    raw = m.line().strip()
    if len(raw) < 2 or raw[:1] != raw[-1:] or raw[:1] not in b"'\"":
        raise FileFormatError("pickle: a text is not quoted.")
    return _text(codecs.escape_decode(raw[1:-1])[0])


def _int_line(m: Stack) -> Any:
    raw = m.line()
    return {b"00": False, b"01": True}.get(raw) if raw in (b"00", b"01") else int(raw)


def _proto(m: Stack) -> None:
    version = m.read(1)[0]
    if version > 5:
        raise FileFormatError(f"pickle: protocol {version} is unknown.")


def _tuple(m: Stack, n: int) -> None:
    out = tuple(reversed([m.pop() for _ in range(n)]))
    m.push(out)


def _append(m: Stack, values: list[Any]) -> None:
    m.top(list, "appending").extend(values)


def _add_items(m: Stack) -> None:
    values = m.since_mark()
    m.top(set, "adding").update(map(key, values))


def _persist(m: Stack, identity: object) -> None:
    if m.persistent is None:
        raise FileFormatError("pickle: it refers to something outside of it.")
    m.push(m.persistent(identity))


def _reduce(m: Stack) -> None:
    args = m.pop()
    m.call(m.pop(), args)


def _new_with_names(m: Stack) -> None:
    names, args, cls = m.pop(), m.pop(), m.pop()
    if names:
        raise UnsafeFileError(f"pickle: {shown(cls)} is made with named arguments; refused.")
    m.call(cls, args)


def _obj(m: Stack) -> None:
    cls, *args = m.since_mark()
    m.call(cls, tuple(args))


def _inst(m: Stack) -> None:
    module, name = m.line().decode(), m.line().decode()
    args = tuple(m.since_mark())
    m.look_up(module, name)
    m.call(m.pop(), args)


def _stack_global(m: Stack) -> None:
    name = m.pop()
    m.look_up(m.pop(), name)


def _pop(m: Stack) -> None:
    if m.marks and m.marks[-1] == len(m.stack):
        m.marks.pop()
    else:
        m.pop()


def _dup(m: Stack) -> None:
    m.push(m.stack[-1])


def _refuse(what: str) -> Callable[[Stack], None]:
    def refuse(m: Stack) -> None:
        raise UnsafeFileError(f"pickle: {what} are refused.")

    return refuse


def _dict(m: Stack) -> None:
    items = m.since_mark()
    m.push({})
    _set(m, items)


_TABLE: dict[bytes, Callable[[Stack], Any]] = {
    b"\x80": _proto,
    b"\x95": lambda m: m.number("<Q"),
    # Constants, numbers, text
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"I": lambda m: m.push(_int_line(m)),
    b"L": lambda m: m.push(int(m.line().rstrip(b"L"))),
    b"F": lambda m: m.push(float(m.line())),
    b"J": lambda m: m.push(m.number("<i")),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"\x8a": lambda m: m.push(_long(m, m.number("<B"))),
    b"\x8b": lambda m: m.push(_long(m, m.number("<i"))),
    b"G": lambda m: m.push(m.number(">d")),
    b"S": lambda m: m.push(_quoted(m)),
    b"T": lambda m: m.push(_text(m.read(m.number("<i")))),
    b"U": lambda m: m.push(_text(m.read(m.number("<B")))),
    b"V": lambda m: m.push(m.line().decode("raw-unicode-escape")),
    b"X": lambda m: m.push(m.read(m.number("<I")).decode("utf-8", "surrogatepass")),
    b"\x8c": lambda m: m.push(m.read(m.number("<B")).decode("utf-8", "surrogatepass")),
    b"\x8d": lambda m: m.push(m.read(m.number("<Q")).decode("utf-8", "surrogatepass")),
    b"B": lambda m: m.push(m.read(m.number("<I"))),
    b"C": lambda m: m.push(m.read(m.number("<B"))),
    b"\x8e": lambda m: m.push(m.read(m.number("<Q"))),
    b"\x96": lambda m: m.push(bytearray(m.read(m.number("<Q")))),
    # Containers
    b"(": lambda m: m.marks.append(len(m.stack)),
    b"]": lambda m: m.push([]),
    b"l": lambda m: m.push(m.since_mark()),
    b"a": lambda m: _append(m, [m.pop()]),
    b"e": lambda m: _append(m, m.since_mark()),
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push(tuple(m.since_mark())),
    b"\x85": lambda m: _tuple(m, 1),
    b"\x86": lambda m: _tuple(m, 2),
    b"\x87": lambda m: _tuple(m, 3),
    b"}": lambda m: m.push({}),
    b"d": _dict,
    b"s": lambda m: _set(m, [m.pop(), m.pop()][::-1]),
    b"u": lambda m: _set(m, m.since_mark()),
    b"\x8f": lambda m: m.push(set()),
    b"\x90": _add_items,
    b"\x91": lambda m: m.push(frozenset(map(key, m.since_mark()))),
    # Memory
    b"p": lambda m: _put(m, int(m.line())),
    b"q": lambda m: _put(m, m.number("<B")),
    b"r": lambda m: _put(m, m.number("<I")),
    b"\x94": lambda m: _put(m, len(m.memo)),
    b"g": lambda m: _get(m, int(m.line())),
    b"h": lambda m: _get(m, m.number("<B")),
    b"j": lambda m: _get(m, m.number("<I")),
    b"0": _pop,
    b"1": lambda m: m.since_mark(),
    b"2": _dup,
    # Names and calls
    b"c": lambda m: m.look_up(m.line().decode(), m.line().decode()),
    b"\x93": _stack_global,
    b"R": _reduce,
    b"\x81": _reduce,
    b"\x92": _new_with_names,
    b"o": _obj,
    b"i": _inst,
    b"b": _build,
    b"P": lambda m: _persist(m, m.line().decode()),
    b"Q": lambda m: _persist(m, m.pop()),
    b"\x82": _refuse("numbers of registered extensions"),
    b"\x83": _refuse("numbers of registered extensions"),
    b"\x84": _refuse("numbers of registered extensions"),
    b"\x97": _refuse("buffers outside of the pickle"),
    b"\x98": _refuse("buffers outside of the pickle"),
}
_OPS = {code[0]: op for code, op in _TABLE.items()}
