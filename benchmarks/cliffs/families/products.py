"""Matrix products: squares and slivers, few rows, batches, with bias, any factor transposed."""

from __future__ import annotations

import math

from ..draw import Draw
from ..family import Drawn, family
from ..side import Side, Work


def _sizes(d: Draw, batch: int = 1) -> tuple[int, int, int]:
    """Rows, columns and inner size with log-uniform work."""
    work = d.random.uniform(math.log(64), math.log(d.work / batch))
    cuts = sorted(d.random.uniform(0, work) for _ in range(2))
    sizes = [cuts[0], cuts[1] - cuts[0], work - cuts[1]]
    m, n, k = (min(1 << 14, max(1, round(math.exp(s)))) for s in sizes)
    while max(m * n, n * k, m * k) > 2 * d.elements:
        m, n, k = (m + 1) // 2, (n + 1) // 2, (k + 1) // 2
    return m, n, k


def _matmul(d: Draw) -> Drawn:
    op = d.pick(("matmul", "matmul", "addmm", "mv", "outer"))
    if op in ("mv", "outer"):
        a, b = d.shape(2, least=16)
        return op, {"a": d.layout((a, b)), "n": a, "k": b}
    m, n, k = _sizes(d)
    return op, {"a": d.layout((m, k)), "b": d.layout((k, n))}


@family("matmul", _matmul, weight=2)
def _build_matmul(s: Side) -> Work:
    op, m = s.spec.op, s.m
    if op == "outer":
        x, y = s(str(s.spec["n"])), s(str(s.spec["k"]))
        return lambda: m.outer(x, y)
    scale = 0.1
    a = s(s.spec["a"], scale=scale)
    if op == "mv":
        v = s(str(s.spec["k"]))
        return lambda: a @ v
    b = s(s.spec["b"])
    if op == "addmm":
        bias = s(s.spec["b"].partition(":")[0].split("x")[1])
        return lambda: m.addmm(bias, a, b)
    return lambda: a @ b


def _linear(d: Draw) -> Drawn:
    rows = d.size(1, 64) if d.chance(0.6) else d.size(1, 4096)
    room = min(d.elements * 2, d.work // rows)
    k = d.size(1, min(8192, room))
    n = d.size(1, max(1, min(16384, room // k)))
    batch = (rows, k) if d.chance(0.7) else (d.size(1, 8), max(1, rows // 4), k)
    return d.pick(("linear", "linear_bias")), {"x": d.layout(batch, 0.8), "n": n, "k": k}


@family("linear", _linear, weight=3)
def _build_linear(s: Side) -> Work:
    k, n = s.spec["k"], s.spec["n"]
    x, w = s(s.spec["x"]), s(f"{n}x{k}", scale=1 / math.sqrt(k))
    if s.spec.op == "linear":
        return lambda: s.F.linear(x, w)
    bias = s(str(n))
    return lambda: s.F.linear(x, w, bias)


def _bmm(d: Draw) -> Drawn:
    op = d.pick(("bmm", "bmm", "matmul4", "broadcast", "baddbmm", "einsum"))
    batch = d.size(1, 256)
    m, n, k = _sizes(d, batch)
    room = max(1, 2 * d.elements // max(m * n, n * k, m * k))
    batch = min(batch, room)
    if op in ("matmul4", "einsum"):
        outer = d.size(1, batch)
        lead: tuple[int, ...] = (outer, max(1, batch // outer))
    else:
        lead = (batch,)
    right = d.layout((k, n)) if op == "broadcast" else d.layout((*lead, k, n))
    return op, {"a": d.layout((*lead, m, k)), "b": right}


@family("bmm", _bmm, weight=2)
def _build_bmm(s: Side) -> Work:
    op, m = s.spec.op, s.m
    a, b = s(s.spec["a"], scale=0.1), s(s.spec["b"])
    if op == "bmm":
        return lambda: m.bmm(a, b)
    if op == "einsum":
        return lambda: m.einsum("abij,abjk->aibk", a, b)
    if op == "baddbmm":
        bias = s(f"{b.shape[-1]}")
        return lambda: m.baddbmm(bias, a, b)
    return lambda: a @ b
