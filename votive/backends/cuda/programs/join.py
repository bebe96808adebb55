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

MOST = 12  # tensors of a launch; more arguments would cost more than they save
TILE = 2048  # elements of a tile
WORDS = {8: "*i64", 4: "*i32", 2: "*i16", 1: "*u8"}


@dataclass(frozen=True)
class Piece:
    """A tensor as rows: how long they are, how far apart, and where in a row of the whole they go; in bytes."""

    length: int
    stride: int
    begin: int


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
        bn = close_block(max(lengths), TILE, 64)
        bm = min(TILE // bn, 1 << (self.rows - 1).bit_length())
        tiles = [-(-n // bn) * -(-self.rows // bm) for n in lengths]
        firsts = [sum(tiles[:k]) for k in range(len(tiles))]
        far = self.rows * self.row // word >= 2**31 - 2**20
        far = far or any(self.rows * p.stride // word >= 2**31 - 2**20 for p in self.pieces)
        names: list[str] = []
        values: list[int] = []

        def arg(name: str, value: int) -> str:
            names.append(name)
            values.append(value)
            return name

        def chosen(name: str, numbers: list[int]) -> list[str]:
            """Lines that pick the number of this program's tensor."""
            lines = [f"{name} = {arg(f'{name}0', numbers[0])}"]
            if len(set(numbers)) == 1:
                return lines
            return lines + [
                f"{name} = tl.where(in{k}, {arg(f'{name}{k}', n)}, {name})" for k, n in enumerate(numbers) if k
            ]

        count = len(self.pieces)
        ints = ".to(tl.int64)" if far else ""
        lines = [f"pid = tl.program_id(0){ints}", "x = x0"]
        lines += [f"in{k} = pid >= {arg(f'first{k}', firsts[k])}" for k in range(1, count)]
        lines += [f"x = tl.where(in{k}, x{k}, x)" for k in range(1, count)]
        lines += ["start = pid * 0", *(f"start = tl.where(in{k}, first{k}, start)" for k in range(1, count))]
        lines += chosen("length", lengths)
        lines += chosen("begin", [p.begin // word for p in self.pieces])
        read, written = "c", "begin + c"
        if self.rows > 1:
            lines += chosen("stride", [p.stride // word for p in self.pieces])
            read, written = "r * stride + c", f"r * {arg('ROW', self.row // word)} + begin + c"
        lines += [
            "across = (length + BN - 1) // BN",
            "r0 = (pid - start) // across * BM",
            "c0 = (pid - start) % across * BN",
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
        return program, tuple(values), (sum(tiles),)
