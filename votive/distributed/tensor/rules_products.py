"""Products of matrices, attention and convolutions: a sum over a dimension that is cut is parts of a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.layout import broadcast_shapes
from ...ops.registry import F
from ..device_mesh import DeviceMesh
from .placement_types import Placement
from .ways import Call, P, Way, rule


def products(c: Call, a: int, b: int, more: dict[int, int] | None = None) -> list[Way]:
    """`a @ b`; `more` are other arguments that are added to it, with their numbers of dimensions."""
    s, t = c.shapes()[a], c.shapes()[b]
    out = c.outs[0].shape
    found: list[Way] = []
    n = len(out)

    def add(ins: dict[int, int | Placement], to: int | Placement) -> None:
        for i, ndim in (more or {}).items():
            if to == P:
                ins[i] = P
            elif isinstance(to, int):
                at = to - (n - ndim)
                if at >= 0 and c.shapes()[i][at] == out[to]:
                    ins[i] = at
        found.append(c.way(ins, [to]))

    rows, columns = len(s) > 1, len(t) > 1
    if rows:
        add({a: len(s) - 2}, n - 1 - columns)
    if columns:
        add({b: len(t) - 1}, n - 1)
    add({a: len(s) - 1, b: max(len(t) - 2, 0)}, P)
    lead = broadcast_shapes("matmul", s[:-2], t[:-2])
    for d, size in enumerate(lead):
        ins: dict[int, int | Placement] = {}
        for i, shape in ((a, s), (b, t)):
            at = d - (len(lead) - (len(shape) - 2))
            if at >= 0 and len(shape) > 2 and shape[at] == size:
                ins[i] = at
        add(ins, d)
    add({a: P}, P)
    add({b: P}, P)
    return found


@rule("matmul")
def matmul(c: Call) -> list[Way]:
    return products(c, 0, 1)


@rule("addmm")
def addmm(c: Call) -> list[Way]:
    ways = products(c, 1, 2, {0: len(c.shapes()[0])})
    if c.op.name == "_addbmm":  # its batch is summed up, too
        return [w for w in ways if w.outs == (P,)]
    return ways


def linear_ways(c: Call, x: int, w: int, b: int) -> list[Way]:
    """`x @ w.T + b`."""
    s, t = c.shapes()[x], c.shapes()[w]
    vector = len(t) == 1
    n = len(s) - 1
    found = [c.way({x: d}, [d]) for d in range(n)]
    inner: dict[int, int | Placement] = {x: n, w: len(t) - 1}
    rows: dict[int, int | Placement] = {w: 0}
    parts: dict[int, int | Placement] = {x: P}
    by_weight: dict[int, int | Placement] = {w: P}
    if b >= 0:
        inner[b] = parts[b] = by_weight[b] = P
        if len(c.shapes()[b]):
            rows[b] = 0
    found.append(c.way(inner, [P]))
    found += [c.way(parts, [P]), c.way(by_weight, [P])]
    if not vector:
        found.append(c.way(rows, [n]))
    return found


@rule("linear")
def linear(c: Call) -> list[Way]:
    return linear_ways(c, *c.given_at("input", "weight", "bias"))


@rule("activated linear")
def activated_linear(c: Call) -> list[Way]:
    return [w for w in linear_ways(c, *c.given_at("input", "weight", "bias")) if P not in w.outs]


@rule("added linear")
def added_linear(c: Call) -> list[Way]:
    """A product and what is added to it, and what else has its shape."""
    names = [a.name for a in c.op.schema.args if a.type.startswith("Tensor")]
    at = dict(zip(names, c.given_at(*names), strict=True))
    n = len(c.shapes()[at["input"]]) - 1
    return [c.way({i: d for i, s in enumerate(c.shapes()) if len(s) == n + 1}, [d] * len(c.outs)) for d in range(n)]


def _attend(c: Call, local: Sequence[Any], ways: Sequence[Way], mesh: DeviceMesh) -> Any:
    if c.dropout_p:
        from .rules_random import shifted

        q, counter = local[0], local[5]
        # Weights are drawn by their place among those of all heads.
        begin = shifted(c, ways, mesh)
        heads = c.shapes()[0][1]
        rows, keys = c.shapes()[0][2], c.shapes()[1][2]
        first = (begin[0] * heads + begin[1]) * rows * keys
        if first % 4 or ((begin[1] or q._spec.shape[1] != heads) and q._spec.shape[0] > 1):
            raise NotImplementedError(
                "scaled_dot_product_attention: dropout of DTensors that are cut along heads with more than one sample "
                "is not supported; use dropout_p=0, or cut along the batch."
            )
        return F._attention(*local[:5], counter + first // 4, *local[6:])
    return c.op.apply(tuple(local))


@rule("attention", _attend)
def attention(c: Call) -> list[Way]:
    """Batches, and heads where queries and keys are cut alike."""
    q, k, _, mask = c.given_at("query", "key", "value", "attn_mask")
    shapes = c.shapes()
    found = []
    for d in (0, 1):
        ins: dict[int, int | Placement] = dict.fromkeys((q, k, 2), d)
        if mask >= 0:
            at = d - (4 - len(shapes[mask]))
            if at >= 0 and shapes[mask][at] != 1:
                ins[mask] = at
        even = [] if d == 0 or shapes[q][1] == shapes[k][1] else [(k, 1, shapes[k][1])]
        found.append(c.way(ins, [d, d], even))
    if not c.dropout_p and not c.is_causal and mask < 0:
        found.append(c.way({q: 2}, [2, 2]))
    return found


@rule("convolution")
def convolution(c: Call) -> list[Way]:
    """Samples; and channels that come out, of convolutions in one group."""
    x, w, b = c.given_at("input", "weight", "bias")
    # A size of the result without samples has none.
    dims = c.shapes()[x]
    found = [c.way({x: 0}, [0])] if len(dims) == len(c.outs[0].shape) else []
    if c.groups == 1:
        cut = 0 if c.op.name == "_convolution" else 1
        ins: dict[int, int | Placement] = {w: cut}
        if b >= 0:
            ins[b] = 0
        found.append(c.way(ins, [1]))
    return found


@rule("samples")
def samples(c: Call) -> list[Way]:
    """Only the first dimension, of the first argument."""
    return [c.way({0: 0}, [0] * len(c.outs))]


@rule("samples and channels")
def samples_and_channels(c: Call) -> list[Way]:
    """The two first dimensions of all arguments of this many."""
    n = len(c.shapes()[0])
    return [
        c.way({i: d for i, s in enumerate(c.shapes()) if len(s) == n}, [d] * len(c.outs)) for d in range(min(2, n - 1))
    ]
