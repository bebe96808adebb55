"""Blocks of few bits as numbers in memory, and rows of tables in blocks. Knows specs, not how products go."""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.blocks import block_dtype
from .....core.layout import Spec
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.layouts import contiguous, next_power_of_two, row_stride
from ...programs.lines import scratch
from ...programs.program import Program, pointer
from ...programs.types import FLOATS, Run
from ...rows import cuda
from ...runtime.views import View
from ..index import reach, reported
from .blocks import FORMATS, Format, tile

ELEMENTS = 2048  # that a program decodes at most


@triton.jit
def _decoded(
    o,
    w,
    indices,
    fault,
    rows,
    stride,
    count,
    across,
    INDEXED: tl.constexpr,
    FORMAT: tl.constexpr,
    SIZE: tl.constexpr,
    GROUPS: tl.constexpr,
    BYTES: tl.constexpr,
    BG: tl.constexpr,
):
    """BG groups of one row. Grid: (rows x parts of a row,). `rows`: of the table; `count`: groups of a row."""
    to = (tl.program_id(0) // across).to(tl.int64)
    group = (tl.program_id(0) % across * BG + tl.arange(0, BG))[None, :, None]
    known = group < count
    row = to
    if INDEXED:
        row = tl.load(indices + to).to(tl.int64)
        bad = (row < 0) | (row >= rows)
        tl.store(fault, 1, mask=bad)
        known = known & (row >= 0) & (row < rows)

    y = tile(w, row * stride, group, known, FORMAT, SIZE, GROUPS, BYTES)

    place = to * count * SIZE + group * SIZE + tl.arange(0, SIZE)[None, None, :]
    tl.store(o + place, y.to(o.dtype.element_ty), mask=group < count)


class Decoder:
    """`decode(out, data)`: rows of blocks as dense rows of numbers; with indices only the rows that those name."""

    def __init__(
        self, format: Format, rows: int, groups: int, stride: int, out: dt.dtype, index: dt.dtype | None
    ) -> None:
        block = min(next_power_of_two(groups), ELEMENTS // format.size)
        types = [pointer(out), "*u8", pointer(index or dt.int32), "*i32", "i64", "i64", "i32", "i32"]
        constants = {"INDEXED": index is not None, **format.constants, "BG": block}
        self.program = Program(_decoded, types, constants)
        self.across = -(-groups // block)
        self.numbers = (rows, stride, groups, self.across)
        self.program.multiples = multiples(5, stride)

    def __call__(self, count: int, out: int, data: int, indices: int = 0, fault: int = 0) -> None:
        # Where nothing is looked up, the kernel is given addresses that it does not read.
        self.program((count * self.across,), out, data, indices or data, fault or out, *self.numbers)


def multiples(at: int, number: int) -> tuple[tuple[int, int], ...]:
    """What power of two up to 16 divides an argument: by it the compiler knows how many bytes it may read at a time."""
    by = min(number & -number, 16)
    return ((at, by),) if by > 1 else ()


def layout(data: Spec, format: Format) -> tuple[bool, int]:
    """(whether rows must be copied together first, the bytes from row to row)."""
    stride = row_stride(data)
    if stride is None or stride % format.even:
        return True, data.shape[-1]
    return False, stride


def readable(data: View, copy: bool, format: Format) -> View:
    """The blocks where kernels can read them: in dense rows, and at addresses that suit the numbers in them."""
    return aligned(contiguous(data) if copy else data, format.even)


def aligned(v: View, by: int) -> View:
    """The same values from an address on that is a multiple, with the distances for which the launch was planned."""
    if v.ptr % by == 0:
        return v
    room = scratch(v.spec, 1 + reach(v.spec), v.spec.dtype)
    made = View(room.ptr, v.spec, room.storage)
    copy_view(made, v)
    return made


@cuda("_block_decode")
def block_decode(data: Slot, format: block_dtype, dtype: dt.dtype) -> Run:
    known = FORMATS.get(format.name)
    if known is None or dtype not in FLOATS:
        return None
    if not data.numel:
        return lambda outs, data: None
    copy, stride = layout(data.spec, known)
    count, groups = data.numel // data.shape[-1], format.row_elements(data.shape[-1]) // known.size
    decode = Decoder(known, count, groups, stride, dtype, None)

    def run(outs: list[View], data: View) -> None:
        data = readable(data, copy, known)
        decode(count, outs[0].ptr, data.ptr)

    return run


@cuda("_block_embedding")
def block_embedding(indices: Slot, data: Slot, format: block_dtype, dtype: dt.dtype) -> Run:
    known = FORMATS.get(format.name)
    if known is None or dtype not in FLOATS:
        return None
    if not indices.numel or not data.shape[1]:
        return lambda outs, indices, data: None
    copy, stride = layout(data.spec, known)
    groups = format.row_elements(data.shape[1]) // known.size
    decode = Decoder(known, data.shape[0], groups, stride, dtype, indices.dtype)
    fault = reported("embedding", 0, data.shape[0], IndexError)

    def run(outs: list[View], indices: View, data: View) -> None:
        data, indices = readable(data, copy, known), contiguous(indices)
        decode(indices.spec.numel, outs[0].ptr, data.ptr, indices.ptr, fault)

    return run
