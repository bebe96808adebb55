"""Optimizer steps, norms and scaling of many tensors at once: one launch per group of parameters.

The arithmetic keeps the order of the reference. With the step counts on the device (`fused=True`)
nothing is read on the host, so that a whole training step can become a graph.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from . import device_math as m
from .copy import copy_view
from .data import View, empty, zero
from .many import CHUNK, Table, addresses, alike
from .program import TYPE, Program
from .rows import cuda
from .softmax import FLOATS, wide

BLOCK = 1024


@triton.jit
def _place(table, count, chunks, COLUMNS: tl.constexpr):
    """(tensor, first element, size) of this program's chunk."""
    pid = tl.program_id(0)
    sizes = table + COLUMNS * count
    which = tl.load(sizes + count + pid)
    number = tl.load(sizes + count + chunks + pid)
    return which, number * 8192, tl.load(sizes + which)


@triton.jit
def _adam(
    table, count, chunks, lr, beta1, beta2, eps, decay, step_size, root, kept,
    AMSGRAD: tl.constexpr, MAXIMIZE: tl.constexpr, DECOUPLED: tl.constexpr, DECAY: tl.constexpr,
    STEPS: tl.constexpr, T: tl.constexpr, G: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    which, first, n = _place(table, count, chunks, 6)
    p = tl.load(table + which).to(tl.pointer_type(T))
    g = tl.load(table + count + which).to(tl.pointer_type(G))
    a = tl.load(table + 2 * count + which).to(tl.pointer_type(T))
    s = tl.load(table + 3 * count + which).to(tl.pointer_type(T))
    x = tl.load(table + 4 * count + which).to(tl.pointer_type(T))
    if STEPS:
        t = tl.load(tl.load(table + 5 * count + which).to(tl.pointer_type(tl.float32))).to(
            tl.float64
        )
        step_size = (-lr / (1 - m.f_pow(beta1, t))).to(tl.float64)
        root = m.f_sqrt(1 - m.f_pow(beta2, t))
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        inside = i < n
        w = tl.load(p + i, mask=inside, other=0.0).to(WIDE)
        grad = tl.load(g + i, mask=inside, other=0.0).to(WIDE)
        mean = tl.load(a + i, mask=inside, other=0.0).to(WIDE)
        square = tl.load(s + i, mask=inside, other=0.0).to(WIDE)

        if MAXIMIZE:
            grad = -grad
        if DECAY:
            if DECOUPLED:
                w = w * kept.to(WIDE)
            else:
                grad = grad + w * decay.to(WIDE)
        b2 = beta2.to(WIDE)
        mean = mean + (grad - mean) * (1 - beta1).to(WIDE)
        square = square * b2 + grad * (1 - beta2).to(WIDE) * grad
        under = square
        if AMSGRAD:
            under = tl.maximum(tl.load(x + i, mask=inside, other=0.0).to(WIDE), square)
            tl.store(x + i, under.to(T), mask=inside)
        under = m.f_div(m.f_sqrt(under), root.to(WIDE)) + eps.to(WIDE)
        w = w + m.f_div(mean * step_size.to(WIDE), under)

        tl.store(p + i, w.to(T), mask=inside)
        tl.store(a + i, mean.to(T), mask=inside)
        tl.store(s + i, square.to(T), mask=inside)


@triton.jit
def _sgd(
    table, count, chunks, lr, momentum, dampening, decay,
    MOMENTUM: tl.constexpr, FRESH: tl.constexpr, NESTEROV: tl.constexpr, MAXIMIZE: tl.constexpr,
    DECAY: tl.constexpr, T: tl.constexpr, G: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    which, first, n = _place(table, count, chunks, 3)
    p = tl.load(table + which).to(tl.pointer_type(T))
    g = tl.load(table + count + which).to(tl.pointer_type(G))
    b = tl.load(table + 2 * count + which).to(tl.pointer_type(T))
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        inside = i < n
        w = tl.load(p + i, mask=inside, other=0.0).to(WIDE)
        grad = tl.load(g + i, mask=inside, other=0.0).to(WIDE)

        if MAXIMIZE:
            grad = -grad
        if DECAY:
            grad = grad + w * decay.to(WIDE)
        if MOMENTUM:
            if FRESH:
                kept = grad
            else:
                kept = tl.load(b + i, mask=inside, other=0.0).to(WIDE) * momentum.to(WIDE)
                kept = kept + grad * (1 - dampening).to(WIDE)
            tl.store(b + i, kept.to(T), mask=inside)
            grad = grad + kept * momentum.to(WIDE) if NESTEROV else kept

        tl.store(p + i, (w + grad * (-lr).to(WIDE)).to(T), mask=inside)


@triton.jit
def _count(table, count, BLOCK: tl.constexpr):
    """One more step for each parameter."""
    i = tl.arange(0, BLOCK) + tl.program_id(0) * BLOCK
    at = tl.load(table + 5 * count + i, mask=i < count, other=0).to(tl.pointer_type(tl.float32))
    tl.store(at, tl.load(at, mask=i < count, other=0.0) + 1, mask=i < count)


@triton.jit
def _scale(
    table,
    factor,
    found,
    count,
    chunks,
    CHECK: tl.constexpr,
    T: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    which, first, n = _place(table, count, chunks, 1)
    p = tl.load(table + which).to(tl.pointer_type(T))
    f = tl.load(factor).to(WIDE)
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(p + i, mask=i < n, other=0.0).to(WIDE)
        if CHECK:
            bad = tl.max(tl.where((v - v) != 0, 1, 0), 0)
            tl.store(found, 1.0, mask=bad != 0)
        tl.store(p + i, (v * f).to(T), mask=i < n)


@triton.jit
def _squares(o, table, count, chunks, T: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    which, first, n = _place(table, count, chunks, 1)
    p = tl.load(table + which).to(tl.pointer_type(T))
    total = tl.zeros((BLOCK,), WIDE)
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(p + i, mask=i < n, other=0.0).to(WIDE)
        total += v * v
    tl.store(o + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def _root(o, parts, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), parts.dtype.element_ty)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(parts + i, mask=i < n, other=0.0)
    tl.store(o, m.f_sqrt(tl.sum(total, 0)).to(o.dtype.element_ty))


_TL = {"fp64": tl.float64, "fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16}
assert CHUNK == 8192  # written out in the kernels


def _kinds(params: Any, grads: Any) -> dict[str, Any] | None:
    """The constants that types decide; None where a list is mixed or not of floats."""
    types = {p.dtype for p in params}
    others = {g.dtype for g in grads}
    if len(types) != 1 or len(others) != 1 or not (types | others) <= FLOATS:
        return None
    (kind,), (other,) = types, others
    return {"T": _TL[TYPE[kind]], "G": _TL[TYPE[other]], "WIDE": wide(kind), "BLOCK": BLOCK}


def _sizes(params: Any) -> list[int]:
    return [p.numel for p in params]


def _turned(grads: Any, params: Any) -> Any:
    """Gradients in the memory order of their parameters."""
    turn = [
        k
        for k, (g, p) in enumerate(zip(grads, params, strict=True))
        if g.spec.layout is not p.spec.layout
    ]

    def run(views: list[View], like: list[View]) -> list[View]:
        views = list(views)
        for k in turn:
            made = empty(like[k].spec.like(dtype=views[k].spec.dtype))
            copy_view(made, views[k])
            views[k] = made
        return views

    return run


@cuda("_adam_step")
def adam(
    params: Any, grads: Any, means: Any, squares: Any, maxima: Any, steps: Any, lr: Any, beta1: Any,
    beta2: Any, eps: Any, decay: Any, amsgrad: bool, maximize: bool, decoupled: bool,
) -> Any:  # fmt: skip
    fixed = _kinds(params, grads)
    states = [means, squares, *([maxima] if amsgrad else [])]
    if (
        fixed is None
        or not params
        or not alike(params, *states)
        or any(s.dtype is not params[0].dtype for x in states for s in x)
    ):
        return None
    if steps[0].spec.dtype is not dt.float32 and steps[0].spec.device.type == "cuda":
        return None
    types = ["*i64", "i32", "i32", *["fp64"] * 8]
    flags = {"AMSGRAD": amsgrad, "MAXIMIZE": maximize, "DECOUPLED": decoupled}
    programs = {
        (some, here): Program(_adam, types, {**flags, "DECAY": some, "STEPS": here, **fixed})
        for some in (False, True) for here in (False, True)
    }  # fmt: skip
    counter = Program(_count, ["*i64", "i32"], {"BLOCK": 256})
    sizes, turn, table = _sizes(params), _turned(grads, params), Table()

    def run(
        outs: Any, params: Any, grads: Any, means: Any, squares: Any, maxima: Any, steps: Any,
        lr: float, beta1: float, beta2: float, eps: float, decay: float,
    ) -> None:  # fmt: skip
        grads = turn(grads, params)
        n = len(params)
        device = steps[0].__class__ is View
        tops = addresses(maxima) if amsgrad else [0] * n
        marks = addresses(steps) if device else [0] * n
        columns = [
            addresses(params),
            addresses(grads),
            addresses(means),
            addresses(squares),
            tops,
            marks,
        ]
        step_size = root = 0.0
        if not device:
            counts = set()
            for s in steps:
                s += 1
                counts.add(float(s))
            if len(counts) > 1:
                _one_by_one(programs, columns, sizes, steps, lr, beta1, beta2, eps, decay)
                return
            (t,) = counts
            step_size, root = -lr / (1 - beta1**t), (1 - beta2**t) ** 0.5
        at = table.write(columns, sizes)
        if device:
            counter((-(-n // 256),), at, n)
        if table.chunks:
            programs[decay != 0, device](
                (table.chunks,),
                at,
                n,
                table.chunks,
                lr,
                beta1,
                beta2,
                eps,
                decay,
                step_size,
                root,
                1 - lr * decay,
            )

    return run


def _one_by_one(
    programs: Any,
    columns: Any,
    sizes: Any,
    steps: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
) -> None:
    """Parameters that have taken different numbers of steps, each in its own launch."""
    for k, size in enumerate(sizes):
        t = float(steps[k])
        table = Table()
        at = table.write([[c[k]] for c in columns], [size])
        if table.chunks:
            programs[decay != 0, False](
                (table.chunks,), at, 1, table.chunks, lr, beta1, beta2, eps, decay,
                -lr / (1 - beta1**t), (1 - beta2**t) ** 0.5, 1 - lr * decay,
            )  # fmt: skip


@cuda("_sgd_step")
def sgd(
    params: Any, grads: Any, buffers: Any, fresh: Any, lr: Any, momentum: Any, dampening: Any,
    decay: Any, nesterov: bool, maximize: bool,
) -> Any:  # fmt: skip
    fixed = _kinds(params, grads)
    kept = [buffers] if buffers else []
    if fixed is None or not params or not alike(params, *kept) or len(set(fresh)) > 1:
        return None
    flags = {"FRESH": bool(fresh and fresh[0]), "NESTEROV": nesterov, "MAXIMIZE": maximize}
    programs = {
        (moving, some): Program(
            _sgd, ["*i64", "i32", "i32", *["fp64"] * 4],
            {"MOMENTUM": moving, "DECAY": some, **flags, **fixed},
        )
        for moving in (False, True) for some in (False, True)
    }  # fmt: skip
    sizes, turn, table = _sizes(params), _turned(grads, params), Table()

    def run(
        outs: Any,
        params: Any,
        grads: Any,
        buffers: Any,
        lr: float,
        momentum: float,
        dampening: float,
        decay: float,
    ) -> None:
        grads = turn(grads, params)
        n = len(params)
        columns = [addresses(params), addresses(grads), addresses(buffers) if buffers else [0] * n]
        at = table.write(columns, sizes)
        if table.chunks:
            programs[momentum != 0, decay != 0](
                (table.chunks,), at, n, table.chunks, lr, momentum, dampening, decay
            )

    return run


def _in_place(tensors: Any, check: bool) -> Any:
    fixed = _kinds(tensors, tensors)
    if fixed is None or not alike(tensors):
        return None
    fixed.pop("G")
    factor = "*fp64" if fixed["WIDE"] == tl.float64 else "*fp32"
    return Program(_scale, ["*i64", factor, "*fp32", "i32", "i32"], {"CHECK": check, **fixed})


def _factor_type(tensors: Any, factor: Any) -> bool:
    return bool(tensors) and factor.dtype is (
        dt.float64 if tensors[0].dtype is dt.float64 else dt.float32
    )


@cuda("_scale_")
def scale(tensors: Any, factor: Any) -> Any:
    program = _in_place(tensors, False) if _factor_type(tensors, factor) else None
    if program is None:
        return None
    sizes, table = _sizes(tensors), Table()

    def run(outs: Any, tensors: Any, factor: View) -> None:
        at = table.write([addresses(tensors)], sizes)
        if table.chunks:
            program((table.chunks,), at, factor.ptr, factor.ptr, len(tensors), table.chunks)

    return run


@cuda("_unscale_")
def unscale(grads: Any, inv_scale: Any) -> Any:
    program = _in_place(grads, True) if _factor_type(grads, inv_scale) else None
    if program is None:
        return None
    sizes, table = _sizes(grads), Table()

    def run(outs: Any, grads: Any, inv_scale: View) -> None:
        zero(outs[0])
        at = table.write([addresses(grads)], sizes)
        if table.chunks:
            program((table.chunks,), at, inv_scale.ptr, outs[0].ptr, len(grads), table.chunks)

    return run


@cuda("_total_norm")
def total_norm(tensors: Any, ord: float) -> Any:
    fixed = _kinds(tensors, tensors)
    if fixed is None or ord != 2 or not alike(tensors) or not sum(_sizes(tensors)):
        return None
    fixed.pop("G")
    number = "*fp64" if fixed["WIDE"] == tl.float64 else "*fp32"
    squares = Program(_squares, [number, "*i64", "i32", "i32"], fixed)
    root = Program(_root, ["*" + TYPE[tensors[0].dtype], number, "i32"], {"BLOCK": 1024}, warps=8)
    sizes, table = _sizes(tensors), Table()
    kind = dt.float64 if number == "*fp64" else dt.float32
    where = tensors[0].spec.device

    def run(outs: list[View], tensors: Any) -> None:
        at = table.write([addresses(tensors)], sizes)
        parts = empty(Spec(Layout((table.chunks,)), kind, where))
        squares((table.chunks,), parts.ptr, at, len(tensors), table.chunks)
        root((1,), outs[0].ptr, parts.ptr, table.chunks)

    return run
