"""Which elements a program of an elementwise kernel takes, and where they lie: three shapes of
index arithmetic serve all layouts. Knows layouts and text, not formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

BLOCK = 1024
FEW = 128  # elements of a block of special functions: they fill the registers with their own numbers


def merged(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> tuple[list[int], list[list[int]]]:
    """Dimensions ordered by the first operand's strides, joined where all operands allow it.

    >>> merged((4, 1, 6), [(6, 6, 1), (6, 6, 1)])
    ([24], [[1], [1]])
    """
    dims = [d for d in range(len(shape)) if shape[d] != 1]
    dims.sort(key=lambda d: -strides[0][d])
    return merge_neighbours(shape, dims, strides)[:2]


def merge_neighbours(
    shape: Sequence[int], dims: Sequence[int], strides: Sequence[Sequence[int]], apart: Collection[int] = ()
) -> tuple[list[int], list[list[int]], list[tuple[int, int]]]:
    """Sizes and strides of some dimensions in order, neighbours joined where all operands agree; those that stay
    `apart` with their new numbers.
    """
    sizes: list[int] = []
    out: list[list[int]] = [[] for _ in strides]
    names: list[tuple[int, int]] = []
    open_ = False  # whether the last dimension may be joined with the next
    for d in dims:
        if open_ and d not in apart and all(o[-1] == s[d] * shape[d] for o, s in zip(out, strides, strict=True)):
            sizes[-1] *= shape[d]
            for o, s in zip(out, strides, strict=True):
                o[-1] = s[d]
        else:
            sizes.append(shape[d])
            for o, s in zip(out, strides, strict=True):
                o.append(s[d])
            if d in apart:
                names.append((d, len(sizes) - 1))
        open_ = d not in apart
    return sizes, out, names


def close_block(n: int, most: int, least: int = 256) -> int:
    """The largest power of two up to `most` whose multiples do not reach far beyond n.

    >>> close_block(1100, 2048), close_block(2000, 2048), close_block(5, 2048)
    (256, 2048, 8)
    """
    block = min(most, 1 << (max(n, 1) - 1).bit_length())
    while block > least and -(-n // block) * block * 4 > 5 * n:
        block //= 2
    return block


class Shape:
    """Which kernel a set of layouts gets: the text of its index arithmetic and its numbers."""

    def __init__(
        self, sizes: list[int], strides: list[list[int]], numel: int, block: int = BLOCK, itemsize: int = 4
    ) -> None:
        self.block = block
        # The edge of squares that are transposed: lines of 128 bytes, where there are squares for all processors.
        self.edge = 64 if itemsize <= 2 and block == BLOCK and numel >> 20 else 1 << (block.bit_length() - 1) // 2
        self.params: list[str] = []
        self.values: list[int] = []
        self.constants: dict[str, int] = {}
        self.lines: list[str] = []
        self.whole = ""  # the test of whether a block needs no mask
        reach = max([numel] + [sum(abs(s) * (n - 1) for s, n in zip(st, sizes, strict=True)) for st in strides])
        self.wide = reach >= 2**31 - 2**20
        self.offsets: list[str]  # per operand; "" when it is a single value
        if len(sizes) <= 1:
            self._flat(sizes, strides, numel)
        elif sizes[-1] >= 32 or (len(sizes) == 2 and sizes[-1] * 2 >= 32):
            self._tiles(sizes, strides)
        else:
            self._divided(sizes, strides, numel)

    def _arg(self, name: str, value: int) -> str:
        """A number that the kernel is given, or a constant where that makes it faster."""
        if value in (0, 1):
            return str(value)
        self.params.append(name)
        self.values.append(value)
        return name

    def _int(self, text: str) -> str:
        return f"({text}).to(tl.int64)" if self.wide else text

    def guarded(self, write: Callable[[str], list[str]]) -> list[str]:
        """Lines that touch memory, given the mask's name: without one in blocks that lie inside as a whole. A mask
        that may end anywhere would take wide loads and stores apart into single elements.
        """
        if not self.whole:
            return write("inside")
        inner, outer = (["    " + line for line in write(mask)] for mask in ("", "inside"))
        return [f"if {self.whole}:", *inner, "else:", *outer]

    def _flat(self, sizes: list[int], strides: list[list[int]], numel: int) -> None:
        self.params, self.values = ["n"], [numel]
        self.constants = {"BLOCK": self.block}
        self.lines = [
            f"first = {self._int('tl.program_id(0)')} * BLOCK",
            "i = first + tl.arange(0, BLOCK)",
            "inside = i < n",
        ]
        if numel % 16 and numel > self.block:
            self.whole = "first + BLOCK <= n"
        self.grid: tuple[int, ...] = (-(-numel // self.block),)
        self.offsets = []
        for k, s in enumerate(strides):
            step = s[0] if s else 0
            if step == 0:
                self.offsets.append("" if k else "i * 0")
            else:
                self.offsets.append("i" if step == 1 else f"i * {self._arg(f's{k}', step)}")

    def _tiles(self, sizes: list[int], strides: list[list[int]]) -> None:
        """Blocks over the innermost dimension and one other: the one that a transposed operand
        is dense along, so that both sides are read and written in whole lines.
        """
        last = len(sizes) - 1
        other = last - 1
        for s in strides[1:]:
            dense = [d for d in range(last) if s[d] == 1 and sizes[d] > 1]
            if dense and s[last] not in (0, 1):
                other = dense[0]
        transposed = any(s[other] == 1 and s[last] not in (0, 1) for s in strides[1:])
        if transposed:
            # Both sides in whole lines: squares, unless a side is short.
            bm = min(self.edge, 1 << (sizes[other] - 1).bit_length())
            bn = min(self.edge * self.edge // bm, 1 << (sizes[last] - 1).bit_length())
            bm = min(self.edge * self.edge // bn, 1 << (sizes[other] - 1).bit_length())
        else:
            bn = close_block(sizes[last], self.block, 128)
            bm = min(self.block // bn, 1 << (sizes[other] - 1).bit_length())
        self.constants = {"BM": bm, "BN": bn}
        rest = [d for d in range(last) if d != other]
        m, n = self._arg("M", sizes[other]), self._arg("N", sizes[last])
        self.lines = [
            f"n = {self._int('tl.program_id(0)')} * BN + tl.arange(0, BN)[None, :]",
            f"mi = {self._int('tl.program_id(1)')} * BM + tl.arange(0, BM)[:, None]",
            f"inside = (mi < {m}) & (n < {n})",
        ]
        count = 1
        if rest:
            self.lines.append(f"r = {self._int('tl.program_id(2)')}")
            for d in reversed(rest):
                size = self._arg(f"S{d}", sizes[d])
                if d != rest[0]:
                    self.lines += [f"i{d} = r % {size}", f"r = r // {size}"]
                else:
                    self.lines.append(f"i{d} = r")
                count *= sizes[d]
        self.offsets = []
        for k, s in enumerate(strides):
            terms = [("n", last), ("mi", other), *((f"i{d}", d) for d in rest)]
            parts = []
            for index, d in terms:
                step = self._arg(f"s{k}_{d}", s[d])
                if step != "0":
                    parts.append(index if step == "1" else f"{index} * {step}")
            text = " + ".join(parts)
            if k == 0 and not {"m", "n"} <= {p[0] for p in parts}:
                text += " + mi * 0 + n * 0"
            elif text and not any(p.split()[0] in ("n", "mi") for p in parts):
                text += " + n * 0"  # the same for the whole tile, but masked like the rest
            self.offsets.append(text)
        self.grid = (-(-sizes[last] // bn), -(-sizes[other] // bm), count)
        if self.grid[1] > 65535 or self.grid[2] > 65535:
            self._divided(sizes, strides, _product(sizes))

    def _divided(self, sizes: list[int], strides: list[list[int]], numel: int) -> None:
        """Every element finds its place by division: for short or odd dimensions."""
        self.params, self.values = ["n"], [numel]
        self.constants = {"BLOCK": self.block}
        self.lines = [f"i = {self._int('tl.program_id(0)')} * BLOCK + tl.arange(0, BLOCK)", "inside = i < n", "r = i"]
        for d in range(len(sizes) - 1, 0, -1):
            size = self._arg(f"S{d}", sizes[d])
            self.lines += [f"i{d} = r % {size}", f"r = r // {size}"]
        self.lines.append("i0 = r")
        self.offsets = []
        for k, s in enumerate(strides):
            parts = []
            for d in range(len(sizes)):
                step = self._arg(f"s{k}_{d}", s[d])
                if step != "0":
                    parts.append(f"i{d}" if step == "1" else f"i{d} * {step}")
            self.offsets.append(" + ".join(parts) or ("" if k else "i * 0"))
        self.grid = (-(-numel // self.block),)


def _product(sizes: list[int]) -> int:
    out = 1
    for s in sizes:
        out *= s
    return out
