"""Where elements lie: dimensions merged where strides allow it, and WGSL that goes from a number to an offset."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....core.layout import Layout, Spec, broadcast_strides
from ..runtime.views import View, empty

Shape = tuple[int, ...]


def merged(shape: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """The same elements in the same order with as few dimensions as all the strides allow."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d, size in enumerate(shape):
        if size == 1:
            continue
        here = [s[d] for s in strides]
        if sizes and all(steps[k][-1] == here[k] * size for k in range(len(strides))):
            sizes[-1] *= size
            for k, step in enumerate(here):
                steps[k][-1] = step
        else:
            sizes.append(size)
            for k, step in enumerate(here):
                steps[k].append(step)
    return tuple(sizes), [tuple(s) for s in steps]


class Walk:
    """Offsets of several operands at one index: text, and the numbers it needs."""

    def __init__(self, prefix: str, shape: Shape, strides: Sequence[Shape]) -> None:
        self.prefix = prefix
        self.shape, self.strides = merged(shape, strides)
        p = prefix
        self.numbers = [(f"{p}n{d}", "I") for d in range(1, len(self.shape))]
        self.values = list(self.shape[1:])
        for k, steps in enumerate(self.strides):
            if not self._plain(k):
                self.numbers += [(f"{p}s{k}_{d}", "I") for d in range(len(steps))]
                self.values += list(steps)

    def _plain(self, k: int) -> bool:
        """Whether the offset is the index itself, or nothing."""
        return self.strides[k] in ((), (1,), (0,))

    def key(self) -> tuple[object, ...]:
        """What its text depends on."""
        return (
            self.prefix,
            len(self.shape),
            tuple(s if self._plain(k) else len(s) for k, s in enumerate(self.strides)),
        )

    def lines(self, index: str) -> str:
        """WGSL that declares `{prefix}{k}`, the offset of operand k."""
        p, n = self.prefix, len(self.shape)
        out = []
        if n > 1:
            out.append(f"  var {p}r = {index};")
            for d in range(n - 1, 0, -1):
                out.append(f"  let {p}c{d} = {p}r % P.{p}n{d}; {p}r = {p}r / P.{p}n{d};")
            out.append(f"  let {p}c0 = {p}r;")
        elif n == 1:
            out.append(f"  let {p}c0 = {index};")
        for k, steps in enumerate(self.strides):
            if self._plain(k):
                out.append(f"  let {p}{k} = {f'{p}c0' if steps == (1,) else '0u'};")
            else:
                total = " + ".join(f"{p}c{d} * P.{p}s{k}_{d}" for d in range(n))
                out.append(f"  let {p}{k} = {total};")
        return "\n".join(out) + "\n"

    def function(self, name: str, k: int = 0) -> str:
        """The same as a WGSL function from the index to the offset of operand k."""
        return f"fn {name}(at: u32) -> u32 {{\n{self.lines('at')}  return {self.prefix}{k};\n}}\n"


def contiguous(v: View) -> View:
    """The values row-major, the view itself where they lie so."""
    if v.spec.contiguous:
        return v
    from .copy import copy_view

    made = empty(v.spec.like(v.spec.shape))
    copy_view(made, v)
    return made


def row_major(spec: Spec) -> Spec:
    """The spec with row-major strides."""
    return spec if spec.contiguous else spec.like(spec.shape)


def reshaped(v: View, shape: Shape) -> View:
    """A row-major view in another shape."""
    return View(v.storage, v.offset, Spec(Layout(shape), v.spec.dtype, v.spec.device))


def strides_as(spec: Spec, shape: Shape) -> Shape:
    """The strides that read a spec, broadcast, as a shape."""
    return broadcast_strides(spec.shape, spec.strides, shape)


def around(shape: Shape, dim: int) -> tuple[int, int, int]:
    """(how many before, the size of, how many behind) a dimension."""
    if not shape:
        return 1, 1, 1
    return math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
