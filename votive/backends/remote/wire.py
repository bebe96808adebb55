"""The protocol of remote devices: what goes over the line, and how specs, arguments and formulas become data.

docs/remote.md says it for readers. Both sides use this file; it opens no connection and runs nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import json
import struct
from functools import cache
from typing import Any

from ...core import dtype as dt
from ...core.blocks import FORMATS, block_dtype
from ...core.device import device
from ...core.layout import Layout, Spec, extent, is_dense
from ...formula import Expr, Formula
from ..common.primitives import FUNCTIONS, UFUNCS

VERSION = 1
MAGIC = b"VOTIVE-DEVICE\n"
# The first words of the server: magic, version, a number used once, which the token signs.
GREETING = struct.Struct("<14sH32s")

# Messages of the client: a byte that says which, the length of the rest, the rest.
HEAD = struct.Struct("<BI")
SPEC, PLAN, FORGET, CALL, INTO, FIND, EMPTY, UPLOAD, DATA, KNOWN, COPY, CLONE, FREE, KEEP = range(1, 15)
READ, WAIT, SAVE, LOAD, LIST, DELETE, BYE = range(32, 39)  # those that wait for an answer
# Answers: what kind, then JSON or bytes.
OK, ERROR, VALUES = range(3)

FRAME = struct.Struct("<I")
FRAME_LIMIT = 16 << 20
HELLO_LIMIT = 4 << 10
CHUNK = 4 << 20
PART = struct.Struct("<QqI")  # a storage, an offset in elements, a spec
STORAGE = struct.Struct("<Q")
SIZED = struct.Struct("<QQ")  # a storage and its bytes; or a storage and another
CONTENT = struct.Struct("<QQ32s")  # a storage, its bytes, SHA-256 of them or zeros
SLICE = struct.Struct("<QQ")  # a storage and where in it the bytes that follow go
CALLED = struct.Struct("<IQ")  # a plan and the number of its first result
WRITTEN = struct.Struct("<IQqI")  # a plan and the part that the result goes to
COUNT = struct.Struct("<I")
NO_DIGEST = bytes(32)

MOST = 2**63 - 1
DIMS = 64
DEPTH = 16
NODES = 4096
NAME_LIMIT = 200


class ProtocolError(RuntimeError):
    """The other side does not keep to the protocol."""


def proof(token: str, nonce: bytes) -> bytes:
    """What shows that a client knows the token, without saying it."""
    return hmac.new(token.encode(), MAGIC + nonce, hashlib.sha256).digest()


def packed(value: Any) -> bytes:
    """JSON without spaces; NaN and infinities are written as JavaScript's names."""
    return json.dumps(value, separators=(",", ":")).encode()


def unpacked(data: bytes | bytearray | memoryview) -> Any:
    """The value of JSON text, or a ProtocolError."""
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError) as e:
        raise ProtocolError(f"not JSON: {type(e).__name__}.") from None


def message(kind: int, body: bytes) -> bytes:
    return HEAD.pack(kind, len(body)) + body


# --- specs ----------------------------------------------------------------------------------------


def spec_data(spec: Spec) -> list[Any]:
    return [spec.dtype.name, list(spec.shape), list(spec.strides)]


def whole(value: Any, low: int, high: int, what: str) -> int:
    """A whole number within bounds."""
    if value.__class__ is not int or not low <= value <= high:
        raise ProtocolError(f"{what} must be a whole number from {low} to {high}.")
    return int(value)


def dtype_named(name: Any) -> dt.dtype:
    """The dtype of a name; formats of blocks are none."""
    try:
        found = dt.by_name(name)
    except TypeError:
        found = None
    if found is None or isinstance(found, block_dtype):
        raise ProtocolError("no such dtype.")
    return found


def spec_of(data: Any, place: device) -> Spec:
    """The spec that data describes on a device. Its bytes can be counted in 64 bits."""
    if data.__class__ is not list or len(data) != 3:
        raise ProtocolError("a spec is a dtype, a shape and strides.")
    name, shape, strides = data
    if shape.__class__ is not list or strides.__class__ is not list or not len(shape) == len(strides) <= DIMS:
        raise ProtocolError(f"a shape and strides are lists of one length, at most {DIMS}.")
    kind = dtype_named(name)
    sizes = tuple([whole(n, 0, MOST, "a size") for n in shape])
    steps = tuple([whole(n, 0, MOST, "a stride") for n in strides])
    try:
        spec = Spec(Layout(sizes, steps), kind, place)
    except (RuntimeError, NotImplementedError) as e:
        raise ProtocolError(str(e)) from None
    if extent(sizes, steps) * kind.itemsize > MOST:
        raise ProtocolError("a spec reaches further than 64 bits can address.")
    return spec


def dense(spec: Spec) -> bool:
    """Whether new memory of `spec.nbytes` bytes is all that the spec reaches."""
    return is_dense(spec.shape, spec.strides)


# --- arguments ------------------------------------------------------------------------------------

_NUMBERS = {"bool": bool, "int": int, "float": float, "complex": complex}


class Unsendable(TypeError):
    """An argument that is not data."""


def argument_data(v: Any) -> Any:
    """An argument of an operator as JSON: specs in place of tensors, types in place of run-time numbers."""
    if v is None or v.__class__ in (bool, int, float, str):
        return v
    if isinstance(v, Spec):
        return {"cpu" if v.device.type == "cpu" else "spec": spec_data(v)}
    if isinstance(v, (tuple, list)):
        return [argument_data(x) for x in v]
    if isinstance(v, type) and _NUMBERS.get(v.__name__) is v:
        return {"number": v.__name__}
    if isinstance(v, block_dtype):
        return {"format": v.name}
    if isinstance(v, dt.dtype):
        return {"dtype": v.name}
    if isinstance(v, device):
        return {"device": "here"}
    if isinstance(v, complex):
        return {"complex": [v.real, v.imag]}
    for kind in (bool, int, float):
        if isinstance(v, kind):
            return kind(v)
    raise Unsendable(type(v).__name__)


def argument_of(data: Any, place: device, depth: int = 0) -> Any:
    """The argument that JSON describes; tensors lie on `place`."""
    if data is None or data.__class__ in (bool, float):
        return data
    if data.__class__ is int:
        return whole(data, -(1 << 127), 1 << 127, "an argument")
    if data.__class__ is str:
        if len(data) > NAME_LIMIT:
            raise ProtocolError("a text among the arguments is too long.")
        return data
    if data.__class__ is list:
        if depth >= DEPTH:
            raise ProtocolError("lists of arguments are nested too deep.")
        return tuple([argument_of(x, place, depth + 1) for x in data])
    if data.__class__ is dict and len(data) == 1:
        ((kind, value),) = data.items()
        if kind == "spec":
            return spec_of(value, place)
        if kind == "cpu":
            spec = spec_of(value, device("cpu"))
            if spec.ndim:
                raise ProtocolError("only tensors without dimensions come with a call.")
            return spec
        if kind == "number" and value in _NUMBERS:
            return _NUMBERS[value]
        if kind == "dtype":
            return dtype_named(value)
        if kind == "format" and value in FORMATS:
            return FORMATS[value]
        if kind == "device":
            return place
        if kind == "complex" and isinstance(value, list) and [type(x) for x in value] == [float, float]:
            return complex(*value)
    raise ProtocolError("an argument is none of the known kinds.")


# --- formulas -------------------------------------------------------------------------------------


@cache
def arity() -> dict[str, int]:
    """The primitives of formulas and how many operands each takes."""
    found: dict[str, int] = {}
    for name, fn in FUNCTIONS.items():
        if name in UFUNCS:
            found[name] = UFUNCS[name].nin
        elif callable(fn):
            known = [p for p in inspect.signature(fn).parameters.values() if p.kind is not p.VAR_POSITIONAL]
            found[name] = len(known) or _counted(name)
    return found


def _counted(name: str) -> int:
    from ..common import special

    return len(inspect.signature(getattr(special, name)).parameters)


def formula_data(formula: Formula, names: list[str]) -> list[Any]:
    """A formula as a list of nodes, operands before users: ["var", i], ["const", x], [primitive, node, ...]."""
    place: dict[int, int] = {}
    nodes: list[Any] = []
    stack = [_plain(formula.body)]
    while stack:
        e = stack[-1]
        if e.id in place:
            stack.pop()
            continue
        operands = [_plain(a) for a in e.args]
        missing = [a for a in operands if a.id not in place]
        if missing:
            stack.extend(missing)
            continue
        if e.op == "var":
            nodes.append(["var", names.index(e.value)])
        elif e.op == "const":
            nodes.append(["const", argument_data(e.value)])
        else:
            nodes.append([e.op, *(place[a.id] for a in operands)])
        place[e.id] = len(nodes) - 1
    return nodes


def _plain(e: Expr) -> Expr:
    """Without marks that only say whose gradient to take."""
    while e.op == "annotated":
        e = e.args[0]
    return e


def formula_of(nodes: Any, count: int) -> Formula:
    """The formula that data describes, over `count` inputs x0, x1, …; primitives are known, operands come before."""
    if nodes.__class__ is not list or not 0 < len(nodes) <= NODES:
        raise ProtocolError(f"a formula is a list of 1 to {NODES} nodes.")
    known, made = arity(), []
    place = device("cpu")
    for i, node in enumerate(nodes):
        if node.__class__ is not list or not node or node[0].__class__ is not str:
            raise ProtocolError("a node of a formula is a name and its operands.")
        op, *rest = node
        if op == "var" and len(rest) == 1:
            made.append(Expr("var", value=f"x{whole(rest[0], 0, count - 1, 'an input of a formula')}"))
        elif op == "const" and len(rest) == 1:
            value = argument_of(rest[0], place)
            if value.__class__ not in (bool, int, float, complex):
                raise ProtocolError("a constant of a formula is a number.")
            made.append(Expr("const", value=value))
        elif known.get(op) == len(rest):
            made.append(Expr(op, tuple([made[whole(k, 0, i - 1, "an operand")] for k in rest])))
        else:
            raise ProtocolError(f"formulas have no primitive {op[:40]!r} of {len(rest)} operands.")
    return Formula("formula", tuple(f"x{i}" for i in range(count)), made[-1])


# --- values of a call -----------------------------------------------------------------------------

# Kinds of run-time values: a tensor there, one without dimensions that comes along, numbers, nothing.
TENSOR, ALONG, INT, FLOAT, BOOL, COMPLEX, NOTHING = "tcifbzn"
FORMATS_OF = {TENSOR: "Qq", ALONG: "16s", INT: "Qq", FLOAT: "d", BOOL: "?", COMPLEX: "dd", NOTHING: ""}
_KIND_OF = {int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX}
LOW = (1 << 64) - 1


def kinds_of(values: tuple[Any, ...]) -> list[str]:
    """The kind of each run-time argument, a spec or a number or its type; lists of tensors are in brackets."""
    return [f"[{''.join(_kind(x) for x in v)}]" if v.__class__ is tuple else _kind(v) for v in values]


def _kind(v: Any) -> str:
    if v is None:
        return NOTHING
    if isinstance(v, Spec):
        return ALONG if v.device.type == "cpu" else TENSOR
    return _KIND_OF[v if isinstance(v, type) else type(v)]


def packing(kinds: list[str]) -> str:
    """The format of the values of a call, for `struct`."""
    return "".join(FORMATS_OF[k] for k in "".join(kinds).replace("[", "").replace("]", ""))
