"""Kernels that see rows: some dimensions of a tensor are worked through together, the others count the rows.

A workgroup has a row, and its threads share it; `all_sum` and `all_max` are over its threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....core.layout import Spec
from ..runtime.views import View, empty
from .copy import copy_view
from .layouts import Walk

Ints = tuple[int, ...]


class Lines:
    """Offsets of operands of one shape: `x_row(r)` of the first element of a row, `x_col(j)` of one behind it."""

    def __init__(self, shape: Ints, strides: Sequence[Ints], dims: Sequence[int]) -> None:
        kept = [d for d in range(len(shape)) if d not in dims]
        self.rows = math.prod(shape[d] for d in kept)
        self.n = math.prod(shape[d] for d in dims)
        self.outer = Walk("r", tuple(shape[d] for d in kept), [tuple(s[d] for d in kept) for s in strides])
        self.inner = Walk("c", tuple(shape[d] for d in dims), [tuple(s[d] for d in dims) for s in strides])
        self.numbers = [("rows", "I"), ("n", "I"), *self.outer.numbers, *self.inner.numbers]
        self.values = [self.rows, self.n, *self.outer.values, *self.inner.values]

    def head(self, *names: str) -> str:
        """The functions, for operands of these names."""
        text = ""
        for k, name in enumerate(names):
            text += self.outer.function(f"{name}_row", k) + self.inner.function(f"{name}_col", k)
        return text


def lines_of(specs: Sequence[Spec], dims: Sequence[int]) -> Lines:
    """Lines of tensors of one shape."""
    return Lines(specs[0].shape, [s.strides for s in specs], dims)


def width(n: int) -> int:
    """Threads for a row of n elements."""
    return 256 if n >= 4096 else 64 if n > 16 else 16


def shared(threads: int) -> str:
    """Sums and extremes over a workgroup, in every thread of it."""

    def over(name: str, join: str) -> str:
        return f"""fn {name}(lane: u32, v: f32) -> f32 {{
  pool[lane] = v;
  workgroupBarrier();
  for (var s = {threads // 2}u; s > 0u; s = s >> 1u) {{
    if (lane < s) {{ let a = pool[lane]; let b = pool[lane + s]; pool[lane] = {join}; }}
    workgroupBarrier();
  }}
  let y = pool[0];
  workgroupBarrier();
  return y;
}}
"""

    return (
        f"var<workgroup> pool: array<f32, {threads}>;\n"
        + over("all_sum", "a + b")
        + over("all_max", "f_maximum(a, b)")
        + over("all_min", "f_minimum(a, b)")
    )


class Target:
    """Row-major memory for a result, put where it belongs at the end."""

    def __init__(self, out: View) -> None:
        self.out = out
        self.view = out if out.spec.contiguous else empty(out.spec.like(out.spec.shape))

    def done(self) -> None:
        """Copy to where the result lies, if that is elsewhere."""
        if self.view is not self.out:
            copy_view(self.out, self.view)
