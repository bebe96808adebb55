"""Several tensors side by side in one launch: their addresses are arguments of a kernel that has as many of
them, and a program takes a tile of one. Knows layouts and text, not operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..device.guarded import guarded_load, guarded_store
from .pointwise import jit
from .program import Program
from .tiles import close_block

ARGUMENTS = 60  # of a launch; with more of them the native module takes its general way
TILE = 2048  # elements of a tile
WORDS = {8: "*i64", 4: "*i32", 2: "*i16", 1: "*u8"}


@dataclass(frozen=True)
class Piece:
    """A tensor as rows: how long they are, how far apart, and where in a row of the whole they go; in bytes."""

    length: int
    stride: int
    begin: int


def fits(pieces: Sequence[Piece]) -> bool:
    """Whether there are few enough tensors for one launch."""
    numbers = 1 if len({p.length for p in pieces}) == 1 else len(pieces)
    apart = any(p.stride != p.length for p in pieces)
    return 5 + len(pieces) + numbers + (len(pieces) if apart else 0) <= ARGUMENTS


class Join:
    """`join(out address, addresses)`: pieces of `rows` rows into rows of the whole that are `row` bytes apart."""

    def __init__(self, pieces: Sequence[Piece], rows: int, row: int) -> None:
        self.pieces, self.rows, self.row = pieces, rows, row
        self.bits = row if rows > 1 else 0
        for p in pieces:
            self.bits |= p.length | p.begin | (p.stride if rows > 1 else 0)
        self.programs: dict[int, tuple[Program, tuple[int, ...], tuple[int]]] = {}

    def __call__(self, out: int, addresses: list[int]) -> None:
        bits = self.bits | out
        for a in addresses:
            bits |= a
        # The widest words that all addresses and lengths are multiples of.
        word = min(bits & -bits, 8)
        found = self.programs.get(word)
        if found is None:
            found = self.programs[word] = self._program(word)
        program, numbers, grid = found
        program(grid, out, *addresses, *numbers)

    def _program(self, word: int) -> tuple[Program, tuple[int, ...], tuple[int]]:
        lengths = [p.length // word for p in self.pieces]
        strides = [p.stride // word for p in self.pieces]
        bn = close_block(max(lengths), TILE, 64)
        bm = min(TILE // bn, 1 << (self.rows - 1).bit_length())
        rows = -(-self.rows // bm)
        far = self.rows * max(self.row // word, *strides) >= 2**31 - 2**20
        names: list[str] = []
        values: list[int] = []

        def arg(name: str, value: int) -> str:
            names.append(name)
            values.append(value)
            return name

        count = len(self.pieces)
        ints = ".to(tl.int64)" if far else ""
        lines = [f"pid = tl.program_id(0){ints}", "x, first, begin = x0, pid * 0, 0"]
        same = len(set(lengths)) == 1
        lines.append(f"length = {arg('length0', lengths[0])}")
        if self.rows > 1:
            lines.append(f"stride = {'length' if strides[0] == lengths[0] else arg('stride0', strides[0])}")
        if same:
            lines += [f"each = (length + BN - 1) // BN * {arg('DOWN', rows)}", "which = pid // each"]
            lines += [f"x = tl.where(which >= {k}, x{k}, x)" for k in range(1, count)]
            lines += ["first, begin = which * each, which * length"]
        else:
            # Where the tiles of each begin follows from the lengths before it.
            lines.append(f"first1, begin1 = (length0 + BN - 1) // BN * {arg('DOWN', rows)}, length0")
            for k in range(1, count):
                lines += [
                    f"here = pid >= first{k}",
                    f"x = tl.where(here, x{k}, x)",
                    f"length = tl.where(here, {arg(f'length{k}', lengths[k])}, length)",
                    f"begin = tl.where(here, begin{k}, begin)",
                    f"first = tl.where(here, first{k}, first)",
                    f"first{k + 1} = first{k} + (length{k} + BN - 1) // BN * DOWN",
                    f"begin{k + 1} = begin{k} + length{k}",
                ]
        if self.rows > 1 and strides != lengths:
            here = "which >= {k}" if same else "pid >= first{k}"
            for k in range(1, count):
                if strides[k] != strides[k - 1] or not same:
                    lines.append(f"stride = tl.where({here.format(k=k)}, {arg(f'stride{k}', strides[k])}, stride)")
        elif self.rows > 1:
            lines.append("stride = length")
        read, written = "c", "begin + c"
        if self.rows > 1:
            read, written = "r * stride + c", f"r * {arg('ROW', self.row // word)} + begin + c"
        lines += [
            "across = (length + BN - 1) // BN",
            "r0 = (pid - first) // across * BM",
            "c0 = (pid - first) % across * BN",
            "r = r0 + tl.arange(0, BM)[:, None]",
            "c = c0 + tl.arange(0, BN)[None, :]",
            f"inside = (r < {arg('R', self.rows)}) & (c < length)",
            "whole = (r0 + BM <= R) & (c0 + BN <= length)",
            f"v = guarded_load(x + ({read} + r * 0), inside, whole)",
            f"guarded_store(o + ({written} + r * 0), v, inside, whole)",
        ]
        args = ["o", *(f"x{k}" for k in range(count)), *names]
        source = f"@triton.jit\ndef join{count}({', '.join(args)}, BM: tl.constexpr, BN: tl.constexpr):\n"
        source += "".join(f"    {line}\n" for line in lines)
        types = [WORDS[word]] * (count + 1) + ["i64" if far else "i32"] * len(names)
        fn = jit(source, f"join{count}", guarded_load=guarded_load, guarded_store=guarded_store)
        program = Program(fn, types, {"BM": bm, "BN": bn})
        program.divisible = tuple(count + 1 + k for k, v in enumerate(values) if v % 16 == 0)
        return program, tuple(values), (rows * sum(-(-n // bn) for n in lengths),)
