"""Elements in other places: the source's coordinate is a rule of the result's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.layout import Layout, Spec
from ..programs.index_space import Places, by_spec, without, word
from ..programs.layouts import dense, written
from ..rows import cuda
from ..runtime.views import View
from .fill import bits, fill_view

Rule = Callable[[Places, int, str], str]


def taken(
    name: str, x: Any, shape: tuple[int, ...], strides: tuple[int, ...], rules: dict[int, Rule], fill: bool = False
) -> Any:
    """`run(out address, source address)`: a result of a layout, taken from a source of the same
    rank. `rules`: per dimension the text of the source's coordinate. `fill`: coordinates outside of
    the source have a value that the kernel is given.
    """
    dims = tuple(rules)
    p = Places(
        shape,
        [strides, without(x.strides, *dims)],
        apart=dims,
        reach=sum(abs(s) * (n - 1) for s, n in zip(x.strides, x.shape, strict=True)),
    )
    parts = []
    for d, rule in rules.items():
        p.add(f"c{d} = {rule(p, d, p.at(d))}")
        step = p.arg(f"xs{d}", x.strides[d])
        parts.append(f"c{d} * {step}")
    offset = " + ".join(t for t in (p.offsets[1], *parts) if t) or "0"
    read = [f"at = x + ({offset} + r * 0 + n * 0)"]
    types = {"o": word(x.dtype), "x": word(x.dtype)}
    if fill:
        p.add("there = inside")
        for d in dims:
            p.add(f"there = there & (c{d} >= 0) & (c{d} < {p.arg(f'xn{d}', x.shape[d])})")
        read.append("v = tl.load(at, mask=there, other=0)")
        read.append("v = tl.where(there, v, value.to(v.dtype))")
        types["value"] = "i64"
    else:
        read.append("v = tl.load(at, mask=inside, other=0)")
    return p.kernel(name, types, [*read, p.store("v")])  # type: ignore[arg-type]


def _flipped(n: int) -> Rule:
    return lambda p, d, c: f"{p.arg(f'top{d}', n - 1)} - {c}"


@cuda("_flip")
def flip(x: Any, dims: Any) -> Any:
    if word(x.dtype) is None:
        return None
    rules = {d: _flipped(x.shape[d]) for d in dims} if x.ndim else {}
    find = by_spec(lambda s: taken("flip", x, s.shape, s.strides, rules))
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


def _rolled(n: int, shift: int) -> Rule:
    def rule(p: Places, d: int, c: str) -> str:
        s, size = p.arg(f"shift{d}", shift), p.arg(f"size{d}", n)
        return f"tl.where({c} >= {s}, {c} - {s}, {c} + {size} - {s})"

    return rule


@cuda("roll")
def roll(x: Any, shifts: Any, dims: Any) -> Any:
    if word(x.dtype) is None:
        return None
    if not x.numel:
        return lambda outs, x: None
    if not dims:
        flat = Spec(Layout((x.numel,)), x.dtype, x.spec.device)
        run = taken("roll", flat, flat.shape, flat.strides, {0: _rolled(x.numel, shifts[0] % x.numel)})

        def flatly(outs: list[View], x: View) -> None:
            x = dense(x)
            with written(outs[0]) as out:
                run(out.ptr, x.ptr)

        return flatly
    total: dict[int, int] = {}
    for d, s in zip(dims, shifts, strict=True):
        total[d] = (total.get(d, 0) + s) % x.shape[d]
    rules = {d: _rolled(x.shape[d], s) for d, s in total.items() if s}
    find = by_spec(lambda s: taken("roll", x, s.shape, s.strides, rules))
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr)


@cuda("_shift")
def shift(x: Any, dim: int, by: int, fill: Any) -> Any:
    if word(x.dtype) is None or isinstance(fill, complex):
        return None
    if not x.ndim:
        return lambda outs, x: fill_view(outs[0], fill)
    rules = {dim: lambda p, d, c: f"{c} - {p.arg('by', by)}"}
    find = by_spec(lambda s: taken("shift", x, s.shape, s.strides, rules, fill=True))
    value = bits(fill, x.dtype)
    return lambda outs, x: find(outs[0].spec)(outs[0].ptr, x.ptr, value)
