"""Work on many tensors in one launch: tables of their addresses lie on the device, and a program
takes a chunk of one of them. Knows addresses, sizes and types, not what is computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from .. import runtime as rt
from ..runtime.views import View, empty, to_device
from .copy import copy_view
from .program import TYPE, Program
from .types import FLOATS, wide

CHUNK = 8192  # elements that a program takes
BLOCK = 1024  # that it takes at a time
KEPT = 8  # tables of a group of tensors
REAL = {"fp64": tl.float64, "fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16}


@triton.jit
def place(table, count, chunks, COLUMNS: tl.constexpr):
    """(tensor, first element, size) of this program's chunk."""
    pid = tl.program_id(0)
    sizes = table + COLUMNS * count
    which = tl.load(sizes + count + pid)
    number = tl.load(sizes + count + chunks + pid)
    return which, number * 8192, tl.load(sizes + which)


@triton.jit
def column(table, at, T: tl.constexpr, ALIGNED: tl.constexpr):
    """The address of a tensor in a table. `ALIGNED`: a multiple of 16, so that loads are wide."""
    p = tl.load(table + at).to(tl.pointer_type(T))
    if ALIGNED:
        p = tl.multiple_of(p, 16)
    return p


assert CHUNK == 8192  # written out in the kernel


@triton.jit
def _count(table, count, found, CHECK: tl.constexpr, COLUMN: tl.constexpr, S: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) + tl.program_id(0) * BLOCK
    inside = i < count
    if CHECK:
        inside = inside & (tl.load(found) == 0)
    at = tl.load(table + COLUMN * count + i, mask=inside, other=0).to(tl.pointer_type(S))
    tl.store(at, tl.load(at, mask=inside, other=0.0) + 1, mask=inside)


def counted(steps: Any, column: int) -> Any:
    """count(table, n, found): one more in each of n step counts, whose addresses a column holds.
    `found`: where a number lies that forbids it unless it is zero, or 0.
    """
    fixed = {"COLUMN": column, "S": REAL[TYPE[steps[0].dtype]], "BLOCK": 256}
    programs = [Program(_count, ["*i64", "i32", "*fp32"], {"CHECK": check, **fixed}) for check in (False, True)]

    def count(table: int, n: int, found: int) -> None:
        programs[found != 0]((-(-n // 256),), table, n, found or table)

    return count


class _Written(NamedTuple):
    """What a table says, in which stream's order, and where it lies."""

    columns: list[list[int]]
    sizes: list[int]
    stream: tuple[int, int]
    block: Any
    chunks: int
    even: bool


class Table:
    """Addresses and sizes on the device. The last few are kept: gradients that are made anew come
    back to the same addresses after some steps.
    """

    def __init__(self) -> None:
        self.kept: list[_Written] = []  # the last used comes last
        self.chunks = 0
        self.even = False  # all addresses are multiples of 16

    def write(self, columns: list[list[int]], sizes: list[int]) -> int:
        """The address of a table of int64: `count` addresses (or numbers) per column, the sizes,
        then for each chunk its tensor and its number in that tensor.
        """
        here = rt.here
        if here.capturing:
            return self._captured(columns, sizes)
        stream = (here.device, here.stream)
        for k in range(len(self.kept) - 1, -1, -1):
            found = self.kept[k]
            if found.columns == columns and found.sizes == sizes and found.stream == stream:
                if k != len(self.kept) - 1:
                    self.kept.append(self.kept.pop(k))
                self.chunks, self.even = found.chunks, found.even
                return int(found.block.ptr)
        array = self._text(columns, sizes)
        if len(self.kept) == KEPT:
            self._drop(self.kept.pop(0))
        block = rt.allocate(array.nbytes)
        to_device(block.ptr, array)
        self.kept.append(_Written(columns, sizes, stream, block, self.chunks, self.even))
        return int(block.ptr)

    def _captured(self, columns: list[list[int]], sizes: list[int]) -> int:
        """The table belongs to the graph, and the copy is one of its nodes: its source must stay
        where it is.
        """
        array = self._text(columns, sizes)
        block = rt.allocate(array.nbytes)
        rt.here.kept.append((array, rt._Held(block)))
        to_device(block.ptr, array)
        return int(block.ptr)

    def _text(self, columns: list[list[int]], sizes: list[int]) -> np.ndarray[Any, Any]:
        which: list[int] = []
        number: list[int] = []
        for t, n in enumerate(sizes):
            parts = -(-n // CHUNK)
            which += [t] * parts
            number += range(parts)
        self.chunks = len(which)
        self.even = not any(a & 15 for c in columns for a in c)
        return np.array([*(a for c in columns for a in c), *sizes, *which, *number], np.int64)

    def _drop(self, written: _Written) -> None:
        written.block.pool.give(written.block)

    def __del__(self) -> None:
        for written in self.kept:
            self._drop(written)


def alike(*lists: Any) -> bool:
    """Whether tensors of several lists lie alike, one by one, without holes."""
    for slots in zip(*lists, strict=True):
        first = slots[0].spec
        if first.dense_like() is not first:
            return False
        if any(s.spec.layout is not first.layout for s in slots[1:]):
            return False
    return True


def addresses(views: list[View]) -> list[int]:
    return [v.ptr for v in views]


def kinds(params: Any, grads: Any) -> dict[str, Any] | None:
    """The constants that types decide; None where a list is mixed or not of floats."""
    types = {p.dtype for p in params}
    others = {g.dtype for g in grads}
    if len(types) != 1 or len(others) != 1 or not (types | others) <= FLOATS:
        return None
    (kind,), (other,) = types, others
    return {"T": REAL[TYPE[kind]], "G": REAL[TYPE[other]], "WIDE": wide(kind), "BLOCK": BLOCK}


def sizes_of(params: Any) -> list[int]:
    return [p.numel for p in params]


def laid_out_like(grads: Any, params: Any) -> Any:
    """Gradients in the memory order of their parameters."""
    turn = [k for k, (g, p) in enumerate(zip(grads, params, strict=True)) if g.spec.layout is not p.spec.layout]

    def run(views: list[View], like: list[View]) -> list[View]:
        views = list(views)
        for k in turn:
            made = empty(like[k].spec.like(dtype=views[k].spec.dtype))
            copy_view(made, views[k])
            views[k] = made
        return views

    return run
