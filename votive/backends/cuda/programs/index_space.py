"""Index arithmetic of generated kernels: every element of a shape is visited once, in tiles of rows
and columns, and each operand has its own strides. Knows layouts and text, not operators.

Dimensions are joined where all operands allow it; those that a kernel's rule names stay apart. Only
row numbers are divided, so that the work per element is an addition.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ....core import determinism
from ....core import dtype as dt
from ....core.layout import Spec
from ..runtime import here_count
from ..runtime.views import View
from .pointwise import jit
from .program import Program
from .tiles import close_block, merge_neighbours

TILE = 1024  # elements of a tile
LIGHT = 128  # where each takes long and there are few
# Elements are moved as integers of their size: one kernel serves all dtypes of a width.
WORDS = {1: dt.uint8, 2: dt.int16, 4: dt.int32, 8: dt.int64}


def word(dtype: dt.dtype) -> str | None:
    """The pointer type under which elements are moved; None when there is none so wide."""
    found = WORDS.get(dtype.itemsize)
    return None if found is None else {1: "*u8", 2: "*i16", 4: "*i32", 8: "*i64"}[found.itemsize]


class IndexSpace:
    """The text that finds places. `strides`: per operand; that of `order` decides the order of
    visits, so that it is read or written in whole lines.

    `offsets[k]` is operand k's place, `at(d)` the coordinate of a dimension that was kept apart.
    `reach`: the largest offset that the kernel's own arithmetic makes. `heavy`: elements take long, so that few of
    them are spread over all processors.
    """

    def __init__(
        self,
        shape: Sequence[int],
        strides: Sequence[Sequence[int]],
        apart: Collection[int] = (),
        reach: int = 0,
        order: int = 0,
        heavy: bool = False,
    ) -> None:
        self.numel = math.prod(shape)
        self.params: list[str] = []
        self.values: list[int] = []
        self.lines: list[str] = []
        dims = [d for d in range(len(shape)) if shape[d] != 1]
        if strides:
            dims.sort(key=lambda d: -strides[order][d])
        sizes, steps, names = merge_neighbours(shape, dims, strides, apart)
        self._name = dict(names)
        far = [sum(abs(s) * (n - 1) for s, n in zip(st, sizes, strict=True)) for st in steps]
        self.wide = max([self.numel, reach, *far]) >= 2**31 - 2**20
        columns = sizes[-1] if sizes else 1
        rows = math.prod(sizes[:-1])
        tile = LIGHT if heavy and self.numel < 2 * TILE * here_count() else TILE
        bn = close_block(columns, tile, min(tile, 128)) if self.numel else 1
        bm = min(max(tile // bn, 1), 1 << (rows - 1).bit_length()) if self.numel else 1
        self.constants = {"BM": bm, "BN": bn}
        across = -(-columns // bn)
        self.grid = (across * -(-rows // bm),)
        pid = "tl.program_id(0).to(tl.int64)" if self.wide else "tl.program_id(0)"
        if across > 1:
            self.add(f"pid = {pid}", f"n0 = pid % {self.arg('ACROSS', across)} * BN")
            self.add("n = (n0 + tl.arange(0, BN))[None, :]", "r = pid // ACROSS * BM")
        else:
            self.add("n = tl.arange(0, BN)[None, :]", f"r = {pid} * BM")
            if self.wide:
                self.add("n = n.to(tl.int64)")
        self.add("r = (r + tl.arange(0, BM))[:, None]")
        self.column = f"(n < {self.arg('N', columns)})"
        self.row = f"(r < {self.arg('R', rows)})"
        self.add(f"inside = {self.row} & {self.column}")
        # Where all memory is one row, most tiles lie inside as a whole and need no mask, see `Shape.guarded`.
        self.whole = "n0 + BN <= N" if rows == 1 and across > 1 and columns % 16 else ""
        last = len(sizes) - 1
        rest = "r"
        for d in range(last - 1, -1, -1):
            if d:
                size = self.arg(f"S{d}", sizes[d])
                self.add(f"k{d} = {rest} % {size}", f"r{d} = {rest} // {size}")
                rest = f"r{d}"
            else:
                self.add(f"k{d} = {rest}")
        self._coordinate = [f"k{d}" for d in range(last)] + (["n"] if sizes else [])
        self.offsets = [self._offset(k, s) for k, s in enumerate(steps)]

    def add(self, *lines: str) -> None:
        self.lines += lines

    def arg(self, name: str, value: int) -> str:
        """A number that the kernel is given; 0 and 1 are written out."""
        if value in (0, 1):
            return str(value)
        if name not in self.params:
            self.params.append(name)
            self.values.append(value)
        return name

    def _offset(self, k: int, steps: Sequence[int]) -> str:
        parts = []
        for d, s in enumerate(steps):
            step = self.arg(f"s{k}_{d}", s)
            if step != "0":
                c = self._coordinate[d]
                parts.append(c if step == "1" else f"{c} * {step}")
        return " + ".join(parts)

    def at(self, d: int) -> str:
        """The coordinate in a dimension that was kept apart."""
        place = self._name.get(d)
        return "0" if place is None else self._coordinate[place]

    def load(self, pointer: str, k: int, extra: str = "", other: str = "0") -> str:
        """Read operand k: no more often than its place changes inside the tile."""
        offset = self.offsets[k]
        if not offset and not extra:
            return f"tl.load({pointer})"
        if extra:
            offset = " + ".join(p for p in (offset, extra) if p)
            return f"tl.load({pointer} + {offset}, mask=inside, other={other})"
        masks = []
        words = offset.replace("*", " ").split()
        if "n" in words:
            masks.append(self.column)
        if any(w[0] == "k" for w in words):
            masks.append(self.row)
        return f"tl.load({pointer} + {offset}, mask={' & '.join(masks)}, other={other})"

    def store(self, value: str, k: int = 0, pointer: str = "o", extra: str = "") -> str:
        """Write operand k inside the tile."""
        offset = " + ".join(p for p in (self.offsets[k], extra) if p)
        return f"tl.store({pointer} + ({offset or '0'} + r * 0 + n * 0), {value}, mask=inside)"

    def stores(self, value: str) -> list[str]:
        """Write operand 0, without a mask in tiles that need none."""
        if not self.whole:
            return [self.store(value)]
        masked = self.store(value)
        return [f"if {self.whole}:", "    " + masked.replace(", mask=inside", ""), "else:", "    " + masked]

    def kernel(
        self,
        name: str,
        types: Mapping[str, str | None],
        body: Sequence[str],
        known: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Bound:
        """The kernel that does `body` everywhere. `types`: its pointers and numbers by name; `known`: functions that
        it calls.
        """
        if not self.numel:
            return _NOTHING
        args = [*types, *self.params, *(f"{c}: tl.constexpr" for c in self.constants)]
        source = f"@triton.jit\ndef {name}({', '.join(args)}):\n"
        source += "".join(f"    {line}\n" for line in (*self.lines, *body))
        kinds = [t for t in types.values() if t is not None] + ["i64" if self.wide else "i32"] * len(self.params)
        program = Program(jit(source, name, **(known or {})), kinds, self.constants, **options)
        first = len(types)
        program.divisible = tuple(first + i for i, v in enumerate(self.values) if v % 16 == 0)
        loose = (types.get("o") or "")[:3] == "*fp" and any("atomic_add" in line for line in body)
        bound = Unordered if loose else Bound
        return bound(program, tuple(self.values), self.grid)


class Bound:
    """A program with its grid and the numbers of its layouts."""

    __slots__ = ("grid", "program", "values")

    def __init__(self, program: Any, values: tuple[int, ...], grid: tuple[int, ...]) -> None:
        self.program, self.values, self.grid = program, values, grid

    def __call__(self, *args: Any) -> None:
        self.program(self.grid, *args, *self.values)


class Unordered(Bound):
    """A program that adds floats in any order: the last bits may differ from run to run."""

    __slots__ = ()

    def __call__(self, *args: Any) -> None:
        determinism.alert(self.program.fn.__name__)
        self.program(self.grid, *args, *self.values)


class _Nothing(Bound):
    def __init__(self) -> None:
        pass

    def __call__(self, *args: Any) -> None:
        pass


_NOTHING = _Nothing()


def added(place: str, value: str, mask: str = "inside") -> list[str]:
    """Lines that add a value to what is at a place of `o`, in whatever order tiles come."""
    return [
        f"v = ({value}).to(o.dtype.element_ty)",
        "v = v + (r * 0 + n * 0).to(v.dtype)",
        f"tl.atomic_add(o + {place}, v, mask={mask}, sem='relaxed')",
    ]


def without(strides: Sequence[int], *dims: int) -> tuple[int, ...]:
    """Strides that stay where they are along some dimensions."""
    return tuple(0 if d in dims else s for d, s in enumerate(strides))


def window(v: View, shape: Sequence[int], strides: Sequence[int], offset: int) -> View:
    """Other places of the same memory."""
    spec = v.spec.like(tuple(shape), strides=tuple(strides))
    return View(v.ptr + offset * spec.dtype.itemsize, spec, v.storage)


def cached_by_spec(build: Any) -> Any:
    """`build(spec)` of the memory that is written, remembered: in place it may be any layout."""
    made: dict[Spec, Any] = {}

    def find(spec: Spec) -> Any:
        found = made.get(spec)
        if found is None:
            if len(made) > 256:
                made.clear()
            found = made[spec] = build(spec)
        return found

    return find


def pieces(whole: View, sizes: list[int], dim: int, gone: bool) -> list[View]:
    """Windows of these sizes side by side along a dimension; `gone`: without that dimension."""
    spec, out, at = whole.spec, [], 0
    step = spec.strides[dim]
    for n in sizes:
        if gone:
            shape = (*spec.shape[:dim], *spec.shape[dim + 1 :])
            strides = (*spec.strides[:dim], *spec.strides[dim + 1 :])
        else:
            shape, strides = (*spec.shape[:dim], n, *spec.shape[dim + 1 :]), spec.strides
        out.append(window(whole, shape, strides, at * step))
        at += n
    return out
