"""How views, copies and new tensors are written as ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.graph import Value
from ..core import dtype as dt
from .sizes import Int, Sym
from .translate import Call, translates

INT64_MAX = 2**63 - 1


@translates("_view")
def view(c: Call, x: Value, size: Any) -> str:
    return c.b.reshape(c.name(x), c.out_shape)


@translates("transpose")
def transpose(c: Call, x: Value, dim0: int, dim1: int) -> str:
    order = list(range(len(c.shape(x))))
    if not order:
        return c.op("Identity", c.name(x))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return c.op("Transpose", c.name(x), perm=order)


@translates("t")
def t(c: Call, x: Value) -> str:
    order = list(range(len(c.shape(x))))[::-1]
    return c.op("Transpose", c.name(x), perm=order) if order else c.op("Identity", c.name(x))


@translates("_permute")
def permute(c: Call, x: Value, dims: Sequence[int]) -> str:
    return c.op("Transpose", c.name(x), perm=[int(d) for d in dims]) if dims else c.op("Identity", c.name(x))


@translates("squeeze", "unsqueeze")
def squeeze(c: Call, x: Value, dim: Any = None) -> str:
    return c.b.reshape(c.name(x), c.out_shape)


@translates("select")
def select(c: Call, x: Value, dim: int, index: Int) -> str:
    n = len(c.shape(x))
    at = c.b.op("Squeeze", c.b.size(index)) if isinstance(index, Sym) else c.b.constant(index)
    return c.op("Gather", c.name(x), at, axis=dim % n)


def sliced(c: Call, x: str, parts: Sequence[tuple[int, Int, Int, int]]) -> str:
    """(dimension, start, end, step) of each dimension that is cut."""
    if not parts:
        return c.op("Identity", x)
    starts, ends = c.b.sizes([p[1] for p in parts]), c.b.sizes([p[2] for p in parts])
    axes, steps = c.b.constant([p[0] for p in parts]), c.b.constant([p[3] for p in parts])
    return c.op("Slice", x, starts, ends, axes, steps)


@translates("_slice")
def slice_(c: Call, x: Value, dim: int, start: Int | None, end: Int | None, step: int) -> str:
    size = c.shape(x)[dim]
    last = INT64_MAX if end is None or end == size else end
    return sliced(c, c.name(x), [(dim % len(c.shape(x)), 0 if start is None else start, last, step)])


@translates("_window")
def window(c: Call, x: Value, index: Sequence[Any]) -> str:
    parts, d = [], 0
    for entry in index:
        if entry is None:
            continue
        size = c.shape(x)[d]
        if isinstance(entry, tuple):
            begin, end, step = entry
            if not (begin == 0 and end == size and step == 1):
                parts.append((d, begin, INT64_MAX if end == size else end, step))
        else:
            parts.append((d, entry, entry + 1, 1))
        d += 1
    made = sliced(c, c.name(x), parts)
    return c.b.reshape(made, c.out_shape) if any(not isinstance(e, tuple) for e in index) else made


@translates("unfold")
def unfold(c: Call, x: Value, dimension: int, size: int, step: int) -> str:
    shape = c.shape(x)
    axis = dimension % len(shape)
    (length,) = c.fixed([shape[axis]], "windows")
    places = np.arange(0, length - size + 1, step)[:, None] + np.arange(size)
    made = c.op("Gather", c.name(x), c.b.constant(places), axis=axis)
    order = [d for d in range(len(shape) + 1) if d != axis + 1]
    return c.op("Transpose", made, perm=[*order, axis + 1])


@translates("_expand")
def expand(c: Call, x: Value, size: Any) -> str:
    return c.op("Expand", c.name(x), c.b.sizes(c.out_shape))


@translates("_copy_as")
def copy_as(c: Call, x: Value, dtype: dt.dtype, stride: Any) -> str:
    return c.op("Identity", c.name(x)) if c.dtype(x) is dtype else c.b.cast(c.name(x), dtype)


@translates("copy")
def copy(c: Call, x: Value, src: Value) -> str:
    made = c.name(src) if c.dtype(x) is c.dtype(src) else c.b.cast(c.name(src), c.dtype(x))
    return made if c.shape(x) == c.shape(src) else c.op("Expand", made, c.b.sizes(c.shape(x)))


@translates("_to_device")
def to_device(c: Call, x: Value, *where: Any) -> str:
    return c.op("Identity", c.name(x))


@translates("_fill")
def fill(c: Call, x: Value, value: Any) -> str:
    number = c.name(value) if isinstance(value, Value) else c.b.number(value, c.dtype(x))
    if isinstance(value, Value) and c.dtype(value) is not c.dtype(x):
        number = c.b.cast(number, c.dtype(x))
    return c.op("Expand", number, c.b.sizes(c.shape(x)))


@translates("_full")
def full(c: Call, size: Any, stride: Any, value: Any, dtype: dt.dtype, device: Any) -> str:
    return c.op("Expand", c.b.number(value, dtype), c.b.sizes(c.out_shape))


@translates("_empty")
def empty(c: Call, size: Any, stride: Any, dtype: dt.dtype, device: Any) -> str:
    return c.op("Expand", c.b.constant(0, dtype), c.b.sizes(c.out_shape))


@translates("_arange")
def arange(c: Call, start: Any, step: Any, size: Int, dtype: dt.dtype, device: Any) -> str:
    count = c.op("Squeeze", c.b.size(size))
    steps = c.op("Range", c.b.constant(0), count, c.b.constant(1))
    whole = dt.int64 if all(isinstance(v, (int, Sym)) for v in (start, step)) else dt.float64
    steps = steps if whole is dt.int64 else c.b.cast(steps, whole)
    made = c.op("Add", c.op("Mul", steps, c.b.number(step, whole)), c.b.number(start, whole))
    return made if whole is dtype else c.b.cast(made, dtype)


@translates("_eye", "_linspace", "_triangle")
def fixed(c: Call, *args: Any) -> str:
    if any(isinstance(s, Sym) for s in (*c.out_shape, *args)):
        raise c.refuse("it is supported for fixed sizes only")
    made = c.node.op(*[getattr(a, "values", a) if isinstance(a, Sym) else a for a in c.node.args])
    return c.b.constant(np.asarray(made.cpu().numpy()), made.dtype)


@translates("cat")
def cat(c: Call, tensors: Sequence[Value], dim: int) -> str:
    wanted = c.out.spec.dtype if c.node.outs else c.node.plan.out.dtype
    used = [v for v in tensors if not (len(c.shape(v)) == 1 and c.shape(v)[0] == 0 and len(c.out_shape) != 1)]
    names = [c.name(v) if c.dtype(v) is wanted else c.b.cast(c.name(v), wanted) for v in used]
    return c.op("Concat", *names, axis=dim)


@translates("stack")
def stack(c: Call, tensors: Sequence[Value], dim: int) -> str:
    n = len(c.shape(tensors[0])) + 1
    axis = c.b.constant([dim % n])
    return c.op("Concat", *[c.op("Unsqueeze", c.name(v), axis) for v in tensors], axis=dim % n)


@translates("_split")
def split(c: Call, x: Value, sizes: Sequence[Int], dim: int) -> list[str]:
    return c.b.ops("Split", [c.name(x), c.b.sizes(list(sizes))], len(c.node.outs), axis=dim % len(c.shape(x)))


@translates("_unbind")
def unbind(c: Call, x: Value, dim: int) -> list[str]:
    axis = dim % len(c.shape(x))
    return [c.op("Gather", c.name(x), c.b.constant(i), axis=axis) for i in range(len(c.node.outs))]


@translates("_flip")
def flip(c: Call, x: Value, dims: Sequence[int]) -> str:
    n = len(c.shape(x))
    return sliced(c, c.name(x), [(d % n, -1, -INT64_MAX, -1) for d in dims])


@translates("roll")
def roll(c: Call, x: Value, shifts: Sequence[Int], dims: Sequence[int]) -> str:
    made, shape = c.name(x), c.shape(x)
    if not dims:
        flat = c.b.reshape(made, [-1])
        return c.b.reshape(_rolled(c, flat, shifts[0], c.node.args[0].spec.numel, 0), shape)
    for shift, dim in zip(shifts, dims, strict=True):
        made = _rolled(c, made, shift, shape[dim], dim % len(shape))
    return made


def _rolled(c: Call, x: str, shift: Int, size: Int, axis: int) -> str:
    if isinstance(shift, Sym) or (isinstance(size, Sym) and shift < 0):
        raise c.refuse("it is supported for fixed shifts only")
    cut = -(shift % size) if not isinstance(size, Sym) else -shift
    if cut == 0:
        return x
    tail, head = sliced(c, x, [(axis, cut, INT64_MAX, 1)]), sliced(c, x, [(axis, 0, cut, 1)])
    return c.op("Concat", tail, head, axis=axis)


@translates("constant_pad_nd")
def constant_pad(c: Call, x: Value, pad: Sequence[Int], value: Any) -> str:
    return _padded(c, x, pad, "constant", value)


@translates("_pad")
def pad(c: Call, x: Value, pad: Sequence[Int], mode: str) -> str:
    kinds = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return _padded(c, x, pad, kinds[mode], None)


def _padded(c: Call, x: Value, pad: Sequence[Int], mode: str, value: Any) -> str:
    n = len(c.shape(x))
    before: list[Int] = [0] * n
    after: list[Int] = [0] * n
    for i in range(len(pad) // 2):
        before[n - 1 - i], after[n - 1 - i] = pad[2 * i], pad[2 * i + 1]
    if mode != "constant" and any(isinstance(p, Sym) or p < 0 for p in pad):
        raise c.refuse(f"negative padding with mode {mode!r} has no counterpart in ONNX")
    number = None if value is None else c.b.number(value, c.dtype(x))
    return c.op("Pad", c.name(x), c.b.sizes([*before, *after]), number, mode=mode)


@translates("tril", "triu")
def triangle(c: Call, x: Value, diagonal: int) -> str:
    made, dtype = c.name(x), c.dtype(x)
    if dtype is dt.bool_:
        made = c.b.cast(made, dt.int64)
    made = c.op("Trilu", made, c.b.size(diagonal), upper=1 if c.node.op.name == "triu" else 0)
    return c.b.cast(made, dtype) if dtype is dt.bool_ else made
