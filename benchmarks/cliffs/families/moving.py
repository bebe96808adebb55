"""What moves or orders elements: joining, cutting, padding, copying, indexing, sorting, scanning."""

from __future__ import annotations

import math
from typing import Any

from ..draw import Draw
from ..family import Drawn, family
from ..side import Side, Work
from ..spec import Layout


def _move(d: Draw) -> Drawn:
    op = d.pick(
        [
            "cat",
            "stack",
            "split",
            "roll",
            "flip",
            "pad",
            "pad_reflect",
            "contiguous",
            "repeat",
            "tril",
            "copy_",
            "repeat_interleave",
        ]
    )
    x = d.array(4, 4, dense=0.8) if op == "pad_reflect" else d.array(1, 4, d.elements // 2)
    shape = Layout.parse(x).shape
    dim = d.random.randrange(len(shape))
    params: dict[str, Any] = {"x": x, "dim": dim}
    if op in ("cat", "stack"):
        params["parts"] = d.pick((2, 2, 3, 4, 8))
        if d.elements < params["parts"] * math.prod(shape):
            params["parts"] = 2
    if op == "contiguous":
        params["x"] = d.layout(shape, 0.0)
    if op == "pad_reflect":
        params["x"] = d.layout((*shape[:2], shape[2] + 4, shape[3] + 4), 0.8)
    return op, params


@family("move", _move, weight=3)
def _build_move(s: Side) -> Work:
    op, m, dim = s.spec.op, s.m, s.spec["dim"]
    if op in ("cat", "stack"):
        parts = [s(s.spec["x"]) for _ in range(s.spec["parts"])]
        return lambda: getattr(m, op)(parts, dim)
    x = s(s.spec["x"])
    if op == "split":
        size = max(1, -(-x.shape[dim] // 3))
        return lambda: [part * 2.0 for part in m.split(x, size, dim)]
    if op == "copy_":
        target = m.empty(tuple(x.shape), dtype=x.dtype, device=s.device)
        if s.spec.grad:
            return lambda: m.zeros_like(x).copy_(x)
        return lambda: target.copy_(x)
    rest: dict[str, Any] = {
        "roll": lambda: m.roll(x, max(1, x.shape[dim] // 3), dim),
        "flip": lambda: m.flip(x, (dim,)),
        "pad": lambda: s.F.pad(x, (1, 2) * min(x.ndim, 2)),
        "pad_reflect": lambda: s.F.pad(x, (1, 2, 2, 1), mode="reflect"),
        "contiguous": lambda: x.contiguous(),
        "repeat": lambda: x.repeat(*[2 if i == dim else 1 for i in range(x.ndim)]),
        "tril": lambda: m.tril(x) if x.ndim > 1 else x.clone(),
        "repeat_interleave": lambda: m.repeat_interleave(x, 2, dim),
    }
    return rest[op]  # type: ignore[no-any-return]


INDEX = [
    "index_select",
    "gather",
    "scatter_add",
    "advanced",
    "pair",
    "masked_select",
    "embedding",
    "index_add",
    "index_put",
    "where",
    "take_along",
    "scatter",
]


def _index(d: Draw) -> Drawn:
    op = d.pick(INDEX)
    if op in ("embedding", "pair", "index_put"):
        rows, width = d.shape(2, d.elements)
        return op, {"x": f"{rows}x{width}", "dim": 0, "n": d.size(1, max(1, d.elements // 2 // width))}
    x = d.array(1, 3, d.elements // 2)
    shape = Layout.parse(x).shape
    dim = d.random.randrange(len(shape))
    rest = max(1, math.prod(shape) // shape[dim])
    return op, {"x": x, "dim": dim, "n": d.size(1, max(1, min(4 * shape[dim], d.elements // 2 // rest)))}


@family("index", _index, weight=3)
def _build_index(s: Side) -> Work:
    op, m, dim, n = s.spec.op, s.m, s.spec["dim"], s.spec["n"]
    x = s(s.spec["x"])
    shape = tuple(x.shape)
    size = shape[dim]
    one = s.plain(str(n), f"index:{size}")
    chosen = shape[:dim] + (n,) + shape[dim + 1 :]
    if op in ("gather", "take_along", "scatter_add"):
        full = s.plain(str(Layout(chosen)), f"index:{size}")
        if op == "scatter_add":
            value = s(str(Layout(chosen)))
            return lambda: x.scatter_add(dim, full, value)
        fn = m.gather if op == "gather" else lambda x, dim, i: m.take_along_dim(x, i, dim)
        return lambda: fn(x, dim, full)
    if op == "scatter":
        count = min(n, size)
        places = m.arange(count, device=s.device)
        full = places.view(*[count if i == dim else 1 for i in range(x.ndim)]).expand(
            *[count if i == dim else e for i, e in enumerate(shape)]
        )
        value = s(str(Layout(tuple(full.shape))))
        return lambda: x.scatter(dim, full, value)
    if op == "index_add":
        value = s(str(Layout(chosen)))
        return lambda: x.index_add(dim, one, value)
    if op == "index_select":
        return lambda: m.index_select(x, dim, one)
    if op == "advanced":
        where = (slice(None),) * dim + (one,)
        return lambda: x[where]
    if op in ("masked_select", "where"):
        mask = s.plain(str(Layout(shape)), "bool")
        return (lambda: m.masked_select(x, mask)) if op == "masked_select" else (lambda: m.where(mask, x, -x))
    if op == "embedding":
        return lambda: s.F.embedding(one, x)
    other = s.plain(str(n), f"index:{shape[1]}")
    if op == "pair":
        return lambda: x[one, other]
    value = s(str(n))
    return lambda: x.index_put((one, other), value, accumulate=True)


def _order(d: Draw) -> Drawn:
    op = d.pick(
        [
            "topk",
            "topk",
            "sort",
            "sort",
            "argsort",
            "cumsum",
            "cumsum",
            "cumprod",
            "unique",
            "searchsorted",
            "kthvalue",
            "logcumsumexp",
            "bincount",
        ]
    )
    x = d.array(1, 3, d.elements // 4, least=4)
    shape = Layout.parse(x).shape
    dim = d.pick((len(shape) - 1, len(shape) - 1, d.random.randrange(len(shape))))
    return op, {"x": x, "dim": dim, "n": d.size(1, shape[dim])}


def _values(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) and not isinstance(result[0], (tuple, list)) else result


TIES = ("topk", "sort", "argsort", "unique", "kthvalue")


@family("order", _order, weight=3, gradient=0.2, compared=_values, ties=TIES)
def _build_order(s: Side) -> Work:
    op, m, dim = s.spec.op, s.m, s.spec["dim"]
    if op == "bincount":
        i = s.plain(s.spec["x"], f"index:{s.spec['n'] + 1}").reshape(-1)
        x = s("1")
        return (lambda: x * m.bincount(i).sum()) if s.spec.grad else (lambda: m.bincount(i))
    x = s(s.spec["x"], "positive" if op in ("cumprod",) else "normal", scale=1.7 if op == "cumprod" else 1.0)
    if op in ("topk", "kthvalue"):
        return lambda: getattr(m, op)(x, s.spec["n"], dim)
    if op == "argsort":
        return lambda: x.gather(dim, m.argsort(x, dim))
    if op == "sort":
        return lambda: m.sort(x, dim)
    if op == "unique":
        if s.spec.grad:
            return lambda: m.sort(x, dim, descending=True)
        return lambda: m.unique(x)
    if op == "searchsorted":
        edges = m.sort(s.plain(str(s.spec["n"])))[0]
        flat = x.detach().contiguous()
        return (lambda: x * m.searchsorted(edges, flat)) if s.spec.grad else (lambda: m.searchsorted(edges, flat))
    return lambda: getattr(m, op)(x, dim)
