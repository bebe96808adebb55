"""How a reduction goes over memory: which results and terms a tile holds, in which order, and the text of
their places. Knows layouts and text, not what is reduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..runtime import here_count
from .program import Program
from .tiles import close_block, merge_neighbours

TILE = 2048  # elements of a tile
LARGE = 8192  # where rows are few: enough loads at once for a whole processor
ALONE = 32768  # terms that one program takes rather than several and one more launch
WIDE_TILE = {4: 8192}  # by the bytes of an element, where results lie dense and terms do not
WIDE = 64  # results of such a tile


class Walk:
    """Results and terms of a reduction as index arithmetic: which tile, which strides.

    Results are visited in the order of the first operand's memory, so that neighbours in a tile are neighbours
    there; `out` says where each goes. It has a stride per dimension; without it results lie in row-major order.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dims: tuple[int, ...],
        strides: Sequence[tuple[int, ...]],
        size: int,
        out: tuple[int, ...] | None = None,
    ) -> None:
        kept = [d for d in range(len(shape)) if d not in dims and shape[d] != 1]
        gone = [d for d in dims if shape[d] != 1]
        to = _row_major(shape, kept) if out is None else out
        first = strides[0]
        gone.sort(key=lambda d: -first[d])
        # What is the same along a dimension goes first: the last one should lie dense.
        kept.sort(key=lambda d: -first[d] or -math.inf)
        self.kept, strides_kept, _ = merge_neighbours(shape, kept, [*strides, to])
        *self.kept_strides, self.out_strides = strides_kept
        self.gone, self.gone_strides, _ = merge_neighbours(shape, gone, strides)
        self.rows, self.terms = math.prod(self.kept), math.prod(self.gone)
        along = bool(self.gone) and any(s[-1] == 1 for s in self.gone_strides)
        across = bool(self.kept) and any(s[-1] == 1 for s in self.kept_strides) and not along
        if across:
            self._across(len(strides), size)
        else:
            self.bn = close_block(self.terms, (LARGE if size < 8 else LARGE // 2) if self.few else TILE)
            # Many short rows fill a tile, as long as every processor has some.
            fill = max(64, (1 << (self.rows // (4 * here_count())).bit_length()) // 2)
            self.bm = max(1, min(TILE // min(self.bn, TILE), 1 << (max(self.rows, 1) - 1).bit_length(), fill))
        self.across = across

    @property
    def few(self) -> bool:
        """Whether rows are few and short enough that a second launch would take longer than one large program each."""
        return self.rows <= here_count() and self.terms <= ALONE

    def _across(self, operands: int, size: int) -> None:
        """Results lie dense, terms far apart: whole lines of memory, and so many terms at a time
        that every thread waits for several loads at once.
        """
        rows, terms = (1 << (n - 1).bit_length() for n in (self.rows, self.terms))
        most = WIDE_TILE.get(size, 4096) >> (operands - 1).bit_length()
        if terms <= 128:  # nothing to split: fewer results each give every processor work
            fill = max(32, 1 << (self.rows // (2 * here_count())).bit_length())
            self.bm = min(rows, 256, fill)
        else:
            self.bm = min(rows, WIDE)
        self.bn = max(1, min(most // self.bm, terms))

    def split(self) -> int:
        """Into how many parts the terms go so that the whole GPU has work."""
        blocks = -(-self.rows // self.bm)
        steps = -(-self.terms // self.bn)
        wanted = 4 * here_count()
        if blocks * 2 > wanted or steps < 8 or (self.few and not self.across):
            return 1
        return max(1, min(wanted // blocks, steps // (2 if self.across else 4), 1024))

    def each(self, parts: int) -> int:
        """How many terms a part has: whole steps."""
        part = -(-self.terms // parts)
        return -(-part // self.bn) * self.bn

    @property
    def far(self) -> bool:
        """Whether places need 64 bits."""
        reach = self.rows * self.terms
        for k, g in zip(self.kept_strides, self.gone_strides, strict=True):
            last = sum((n - 1) * s for n, s in zip(self.kept, k, strict=True))
            last += sum((n - 1) * s for n, s in zip(self.gone, g, strict=True))
            reach = max(reach, last)
        return reach >= 2**31 - 2**20

    @property
    def warps(self) -> int:
        size = self.bm * self.bn
        return 16 if size >= LARGE and not self.across else 8 if size >= 4096 else 4


def _row_major(shape: tuple[int, ...], kept: list[int]) -> tuple[int, ...]:
    """Strides of results in the order of their dimensions; 0 where there is none."""
    out, step = [0] * len(shape), 1
    for d in reversed(kept):
        out[d] = step
        step *= shape[d]
    return tuple(out)


class Text:
    """Writes places, and collects the numbers that a kernel is given."""

    def __init__(self) -> None:
        self.params: list[str] = []
        self.values: list[int] = []

    def arg(self, name: str, value: int) -> str:
        if value in (0, 1):
            return str(value)
        if name not in self.params:
            self.params.append(name)
            self.values.append(value)
        return name

    def places(self, prefix: str, sizes: list[int], index: str) -> list[str]:
        """Lines that take a linear index apart."""
        lines = []
        rest = index
        for d in range(len(sizes) - 1, 0, -1):
            size = self.arg(f"{prefix.upper()}{d}", sizes[d])
            lines += [f"{prefix}{d} = {rest} % {size}", f"{prefix}r{d} = {rest} // {size}"]
            rest = f"{prefix}r{d}"
        if sizes:
            lines.append(f"{prefix}0 = {rest}")
        return lines

    def offset(self, k: int | str, prefix: str, strides: list[int]) -> str:
        parts = []
        for d, s in enumerate(strides):
            step = self.arg(f"{prefix}s{k}_{d}", s)
            if step != "0":
                parts.append(f"{prefix}{d}" if step == "1" else f"{prefix}{d} * {step}")
        return " + ".join(parts)

    def steps(self, walk: Walk, parts: int, ints: str, body: Callable[[str], list[str]]) -> list[str]:
        """Lines that go over terms from `begin` to `end`. `body(mask)`: those of a step, whose `lane`s are beside
        `start`. Only the last step masks terms: a mask that may end anywhere takes wide loads apart.
        """
        terms = self.arg("TERMS", walk.terms)
        lines = ["begin = 0", f"end = {terms}"]
        if parts > 1:
            size = self.arg("EACH", walk.each(parts))
            lines = [f"begin = tl.program_id(1){ints} * {size}", f"end = tl.minimum(begin + {size}, {terms})"]
        lines.append("lane = tl.arange(0, BN)[None, :]")
        inside = "" if walk.rows % walk.bm == 0 else f"row < {self.arg('ROWS', walk.rows)}"
        first = "begin"
        if walk.terms >= walk.bn:
            first = "whole"
            lines += ["whole = begin + (end - begin) // BN * BN", "for start in range(begin, whole, BN):"]
            lines += ["    " + line for line in body(inside)]
        if walk.terms % walk.bn:
            lines.append(f"for start in range({first}, end, BN):")
            both = f"({inside}) & (i < end)" if inside else "i < end"
            lines += ["    " + line for line in body(both)]
        return lines

    def promise(self, program: Program, first: int) -> None:
        """Say of the numbers, which are arguments from `first` on, what they are multiples of: rows of even lengths
        are read in pairs at least.
        """
        program.divisible = tuple(first + k for k, v in enumerate(self.values) if v % 16 == 0)
        program.multiples = tuple(
            (first + k, 2 if v % 4 else 4) for k, v in enumerate(self.values) if v % 2 == 0 and v % 16
        )

    def target(self, walk: Walk, ints: str, parts: int) -> list[str]:
        """Lines that find `at`, the numbers of a tile's results, and `to`, where they go. Those of several parts
        stay in order: what joins them sees to the rest.
        """
        lines = [f"at = tl.program_id(0){ints} * BM + tl.arange(0, BM)"]
        if parts > 1:
            return [*lines, f"to = at + tl.program_id(1){ints} * {self.arg('ROWS', walk.rows)}"]
        if walk.out_strides in ([], [1]):
            return [*lines, "to = at"]
        return [*lines, *self.places("t", walk.kept, "at"), f"to = {self.offset('o', 't', walk.out_strides)}"]
