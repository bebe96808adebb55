"""Writing at positions along one dimension. A thread has a line and goes along it, so that of several writes to one
place the last one stays, and sums are the same at every run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ....formula.wgsl import literal
from ...common.slot import Slot
from .. import cpu_fallback
from ..rows import Run, webgpu
from ..runtime.faults import message
from ..runtime.views import View, empty
from ..shaders import types
from ..shaders.copy import copy_view
from ..shaders.layouts import Walk
from ..shaders.program import Program, groups_for
from .index import place

Ints = tuple[int, ...]


def joined(how: str, kind: str) -> str:
    """WGSL that joins what is there, `o`, and what comes, `v`."""
    if how == "set":
        return "v"
    if how == "add":
        return "l_add(o, v)" if kind == "l" else "o + v"
    if how == "mul":
        return "l_mul(o, v)" if kind == "l" else "o * v"
    name = "maximum" if how == "amax" else "minimum"
    return f"{kind}_{name}(o, v)"


def neutral(how: str, d: dt.dtype) -> str:
    """What loses against every other value."""
    kind = types.KIND[d]
    if how == "mul":
        return literal(1, kind)
    largest = how == "amin"
    if kind == "f":
        return "f_inf()" if largest else "(-f_inf())"
    if d is dt.bool_:
        return literal(int(largest), kind)
    info = np.iinfo(d.np)
    return literal(int(info.max if largest else info.min), kind)


class Scatter:
    """The kernel: `index` and `source` along `dim`, written over the lines of a tensor."""

    def __init__(
        self,
        op: str,
        to: Spec,
        dim: int,
        index: Spec,
        source: Spec | None,
        how: str,
        error: type[Exception],
        *,
        clear: bool = False,
        number: bool = False,
        negative: bool = False,
        factor: bool = False,
    ) -> None:
        kind = types.KIND[to.dtype]
        shape = index.shape
        rest = tuple(d for d in range(len(shape)) if d != dim)
        strides = [to.strides, index.strides, *([] if source is None else [source.strides])]
        self.walk = Walk("k", tuple(shape[d] for d in rest), [tuple(s[d] for d in rest) for s in strides])
        self.lines = 1
        for d in rest:
            self.lines *= shape[d]
        fault = message(error, f"{op}: index {{value}} is out of bounds for dimension {dim} with size {{size}}.")
        read = f"var i = {place('i_at(k1 + j * P.ij)', index.dtype)};"
        low = "-i32(P.size)" if negative else "0"
        check = f"if (i < {low} || i >= i32(P.size)) {{ fail({fault}u, i, P.size); return; }}"
        check += " if (i < 0) { i += i32(P.size); }" if negative else ""
        at = "k0 + u32(i) * P.yj"
        if number:
            value = types_of_number(to.dtype)
        else:
            assert source is not None
            value = types.cast("s_at(k2 + j * P.sj)", source.dtype, to.dtype)
        if factor:
            value = f"({value}) * P.factor" if kind == "f" else value
        result = joined(how, kind)
        bits = 8 * to.dtype.itemsize
        if kind in "iu" and bits < 32 and how in ("add", "mul"):
            result = f"{kind}_wrap{bits}({result})"
        old = "" if how == "set" else f"let o = y_at({at}); "
        body = "  if (index >= P.lines) { return; }\n" + self.walk.lines("index")
        if clear:
            body += f"  for (var j = 0u; j < P.n; j++) {{ {read} {check} y_set({at}, {neutral(how, to.dtype)}); }}\n"
        body += f"  for (var j = 0u; j < P.n; j++) {{ {read} {check} {old}let v = {value}; y_set({at}, {result}); }}"
        operands = [("y", to.dtype, "w"), ("i", index.dtype, "r")]
        operands += [] if source is None else [("s", source.dtype, "r")]
        numbers = [(n, "I") for n in ("lines", "n", "size", "yj", "ij", "sj")]
        numbers += [("factor", "f"), ("v0", "I"), ("v1", "I"), *self.walk.numbers]
        self.program = Program(op, operands, numbers, body, faults=True)
        along = 0 if source is None else source.strides[dim]
        self.values = (self.lines, shape[dim], to.shape[dim], to.strides[dim], index.strides[dim], along)

    def __call__(self, views: list[View], factor: float = 1.0, words: tuple[int, int] = (0, 0)) -> None:
        self.program(groups_for(self.lines), views, *self.values, factor, *words, *self.walk.values)


def types_of_number(d: dt.dtype) -> str:
    """WGSL of a number that comes as two words."""
    kind = types.KIND[d]
    if kind == "l":
        return "vec2<u32>(P.v0, P.v1)"
    return {"f": "bitcast<f32>(P.v0)", "i": "bitcast<i32>(P.v0)", "u": "P.v0"}[kind]


def words_of(value: Any, d: dt.dtype) -> tuple[int, int]:
    """A Python number as those."""
    if types.KIND[d] == "f":
        return int(np.float32(value).view(np.uint32)), 0
    word = int(value) & 0xFFFFFFFFFFFFFFFF
    return word & 0xFFFFFFFF, word >> 32


def fits(value: Any, d: dt.dtype) -> bool:
    """Whether a number is one of the dtype, as the CPU checks it."""
    if isinstance(value, complex):
        return False
    if d.is_floating_point:
        return bool(np.isinf(value)) or abs(value) <= float(np.finfo(np.float32).max if d is not dt.float16 else 65504)
    if d is dt.bool_:
        return value in (0, 1)
    info = np.iinfo(d.np)
    return int(info.min) <= int(value) <= int(info.max)


def one_dimensional(v: View) -> View:
    """A 0-d view as one of a single element."""
    if v.spec.ndim:
        return v
    return View(v.storage, v.offset, Spec(Layout((1,)), v.spec.dtype, v.spec.device))


def lined(s: Spec) -> Spec:
    """The spec of that."""
    return s if s.ndim else Spec(Layout((1,)), s.dtype, s.device)


def writing(op: str, x: Slot, wide: bool, make: Callable[[Spec], Callable[[View, Any], None]]) -> Callable[..., None]:
    """run(outs, x, *values): the input's values are put where results go, then written over by what `make(spec)` gives.
    `wide`: half types are summed in float32 and rounded once.
    """
    made: dict[Spec, Any] = {}
    through = wide and x.dtype in dt.HALF

    def run(outs: list[View], x: View, *values: Any) -> None:
        out = outs[0]
        to = out
        if through:
            to = empty(out.spec.like(out.spec.shape, dtype=dt.float32))
            copy_view(to, x)
        elif out.storage is not x.storage:
            copy_view(to, x)
        spec = lined(to.spec)
        if spec not in made:
            made[spec] = make(spec)
        apart = []
        for v in values:
            if v.__class__ is View and v.storage is to.storage:
                near = empty(v.spec.like(v.spec.shape))
                copy_view(near, v)
                v = near
            apart.append(v)
        made[spec](one_dimensional(to), apart)
        if through:
            copy_view(out, to)

    return run


def _along(
    op: str, name: str, x: Slot, dim: int, index: Slot, src: Slot, how: str, error: type[Exception], clear: bool = False
) -> Run:
    number = src.spec.__class__ is not Spec
    if x.dtype not in types.NUMBERS or index.dtype not in types.INTEGERS:
        return None
    if not number and src.dtype not in types.NUMBERS:
        return None
    if not index.numel:
        return lambda outs, x, *rest: None if outs[0].storage is x.storage else copy_view(outs[0], x)

    def make(spec: Spec) -> Any:
        at = lined(index.spec)
        source = None if number else lined(src.spec).like(at.shape, strides=lined(src.spec).strides)
        kernel = Scatter(name, spec, dim, at, source, how, error, clear=clear, number=number)

        def write(to: View, values: list[Any]) -> None:
            i, s = values
            if number:
                kernel([to, one_dimensional(i)], 1.0, words_of(s, spec.dtype))
            else:
                kernel([to, one_dimensional(i), one_dimensional(s)])

        return write

    run = writing(op, x, how in ("add", "mul"), make)
    if number:

        def checked(outs: list[View], x: View, index: View, value: Any) -> None:
            if not fits(value, x.spec.dtype):
                raise RuntimeError(f"{name}: value {value} does not fit into {x.spec.dtype.np}.")
            run(outs, x, index, value)

        return checked
    return run


@webgpu("_scatter", into=True, careful=True)
def scatter(x: Slot, dim: int, index: Slot, src: Slot) -> Run:
    return _along("scatter", "scatter", x, dim, index, src, "set", RuntimeError)


@webgpu("scatter_add", into=True, careful=True)
def scatter_add(x: Slot, dim: int, index: Slot, src: Slot) -> Run:
    return _along("scatter_add", "scatter_add", x, dim, index, src, "add", RuntimeError)


@webgpu("_first_order")
def first_order(x: Slot) -> Run:
    return lambda outs, x: copy_view(outs[0], x)


@webgpu("_scatter_prod", into=True, careful=True)
def scatter_prod(x: Slot, dim: int, index: Slot, src: Slot, own: bool) -> Run:
    return _along("scatter_prod", "scatter_reduce", x, dim, index, src, "mul", RuntimeError, not own)


@webgpu("_scatter_extremum", into=True, careful=True)
def scatter_extremum(x: Slot, dim: int, index: Slot, src: Slot, reduce: str, own: bool) -> Run:
    return _along("scatter_extremum", "scatter_reduce", x, dim, index, src, reduce, RuntimeError, not own)


def _vector(op: str, x: Slot, dim: int, index: Slot, source: Slot, how: str, error: type[Exception]) -> Run:
    """Slices along `dim` that a vector names."""
    if x.dtype not in types.NUMBERS or index.dtype not in types.INTEGERS or source.dtype not in types.NUMBERS:
        return None
    if not index.numel or not x.numel:
        return lambda outs, x, *rest: None if outs[0].storage is x.storage else copy_view(outs[0], x)

    def make(spec: Spec) -> Any:
        shape = (*spec.shape[:dim], index.numel, *spec.shape[dim + 1 :])
        step = index.strides[0] if index.ndim else 0
        at = Spec(Layout(shape, tuple(step if d == dim else 0 for d in range(len(shape)))), index.dtype, spec.device)
        given = lined(source.spec)
        strides = given.strides if given.shape == shape else tuple(0 for _ in shape)
        kernel = Scatter(op, spec, dim, at, given.like(shape, strides=strides), how, error, factor=how == "add")

        def write(to: View, values: list[Any]) -> None:
            i, s, *alpha = values
            kernel([to, one_dimensional(i), one_dimensional(s)], float(alpha[0]) if alpha else 1.0)

        return write

    return writing(op, x, how == "add", make)


@webgpu("index_add", into=True, careful=True)
def index_add(x: Slot, dim: int, index: Slot, source: Slot, alpha: Slot) -> Run:
    run = _vector("index_add", x, dim, index, source, "add", RuntimeError)
    if run is None or x.dtype in types.FLOATS:
        return run

    def whole(outs: list[View], x: View, index: View, source: View, alpha: Any) -> None:
        if alpha != 1:  # integers times a factor: the product is taken first
            factor = np.asarray(alpha).astype(source.spec.dtype.np)
            array = cpu_fallback.fetch(source) * factor
            source = cpu_fallback.uploaded(array, source.spec.dense_like())
        run(outs, x, index, source, 1)

    return whole


@webgpu("index_copy", into=True, careful=True)
def index_copy(x: Slot, dim: int, index: Slot, source: Slot) -> Run:
    return _vector("index_copy", x, dim, index, source, "set", IndexError)
