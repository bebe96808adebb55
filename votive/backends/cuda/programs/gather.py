"""Kernels in which every element is taken from one place: the source's coordinate is a rule of the result's.
Knows no operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.index_space import IndexSpace, without, word

Rule = Callable[[IndexSpace, int, str], str]


def taken(
    name: str,
    x: Slot | Spec,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    rules: dict[int, Rule],
    fill: bool = False,
) -> Any:
    """`run(out address, source address)`: a result of a layout, taken from a source of the same
    rank. `rules`: per dimension the text of the source's coordinate. `fill`: coordinates outside of
    the source have a value that the kernel is given.
    """
    dims = tuple(rules)
    p = IndexSpace(
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
    return p.kernel(name, types, [*read, p.store("v")])
