"""A bias added to the results of a library that does not know it."""

from __future__ import annotations

import math

import triton
import triton.language as tl

from .....core.layout import Spec
from ...programs.lines import shared_program
from ...programs.program import pointer
from ...programs.types import wide
from ...runtime.views import View

BLOCK = 1024


@triton.jit
def _add_bias(o, bias, N, C, S, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Dense (channels, S) over and over, with a number for each channel added."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    c = (i // S % C).to(tl.int32)
    v = tl.load(o + i, mask=i < N, other=0.0).to(WIDE) + tl.load(bias + c, mask=i < N, other=0.0).to(WIDE)
    tl.store(o + i, v.to(o.dtype.element_ty), mask=i < N)


class BiasAdder:
    """`add(out, bias)`: in place, to a dense result with its channels anywhere."""

    def __init__(self, out: Spec) -> None:
        last = out.strides[1] == 1 and out.shape[1] > 1 and out.ndim > 3
        n = out.numel
        self.numbers = (n, out.shape[1], 1 if last else math.prod(out.shape[2:]))
        even = tuple(2 + i for i, v in enumerate(self.numbers) if v % 16 == 0)
        types = [pointer(out.dtype)] * 2 + ["i64", "i32", "i32"]
        self.program = shared_program(_add_bias, types, {"WIDE": wide(out.dtype), "BLOCK": BLOCK}, even=even)
        self.grid = (-(-n // BLOCK),)

    def __call__(self, out: View, bias: View) -> None:
        self.program(self.grid, out.ptr, bias.ptr, *self.numbers)
