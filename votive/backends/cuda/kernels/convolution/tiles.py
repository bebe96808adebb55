"""Which tiles a convolution is cut into: a rough count of what each choice would take, best first.
Knows sizes, not tensors.

The numbers are those of a Hopper GPU, and only their proportions matter: what is large enough is
timed (`runtime/autotune.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from .....core import dtype as dt
from ... import precision
from ...runtime import here_count

SHAPES = (
    *((128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (64, 32)),
    *((128, 16), (32, 64), (32, 32), (64, 16), (32, 16), (16, 16)),
)
# Microseconds: to start and end a kernel, for one tile to come from memory.
LAUNCH, LATENCY = 2.5, 0.45
# Operations per microsecond of one processor, and bytes that reach it.
RATES = {"half": 3.0e6, "tf32": 1.5e6, "tf32x3": 0.45e6}
ARRIVING = 50e3
MOST_SCRATCH = 1 << 28  # bytes for parts of sums


@dataclass(frozen=True)
class Tile:
    """Rows, columns and terms of a tile, and how many programs share the terms of a sum."""

    bm: int
    bn: int
    bk: int
    parts: int

    def warps(self, kind: str) -> int:
        """How many warps share it: more where numbers are multiplied in three parts, which take registers."""
        return 8 if self.bm * self.bn >= 16384 or (kind == "tf32x3" and self.bm >= 128) else 4

    def stages(self, itemsize: int) -> int:
        """How many tiles are on their way, within 200 kB."""
        return max(2, min(4, 200_000 // ((self.bm + self.bn) * self.bk * itemsize)))


def multiplying(dtype: dt.dtype) -> str:
    """How tensor cores multiply: float32 in one TF32 part, or in three that keep its precision."""
    return "tf32" if dtype in dt.HALF or precision.convolutions.allow_tf32 else "tf32x3"


@cache
def ranked(
    dtype: dt.dtype, kind: str, rows: int, columns: int, run: int, taps: int, others: int, processors: int
) -> tuple[Tile, ...]:
    """Tiles of a product of `taps` times `run` terms, `others` times over, the most promising first."""
    half = dtype in dt.HALF
    rate = RATES["half" if half else kind]
    found = []
    for bm, bn in SHAPES:
        # What would be mostly empty is left out, the narrowest never.
        if (bn > 16 and bn >= 2 * columns) or (bm > 32 and bm >= 2 * rows):
            continue
        for bk in (64, 32, 16) if half else (32, 16):
            if bk > 16 and bk >= 2 * run:
                continue
            steps = taps * -(-run // bk)
            programs = -(-rows // bm) * -(-columns // bn) * others
            work = max(2 * bm * bn * bk / rate, (bm + bn) * bk * dtype.itemsize / ARRIVING) + 0.06
            resident = 1 if bm * bn >= 16384 else 2 if bm * bn >= 8192 else 4
            for parts in (1, 2, 4, 8, 16, 32):
                if parts > 1 and steps < 4 * parts:
                    break
                scratch = parts * rows * columns * others * 4
                if (parts > 1 and scratch > MOST_SCRATCH) or others * parts > 65535:
                    break
                each = -(-steps // parts)
                waves = -(-programs * parts // (processors * resident))
                full = -(-programs * parts // processors)
                time = max(waves * each * LATENCY, full * each * work)
                if parts > 1:
                    time += LAUNCH + scratch / 2e6
                found.append((time, Tile(bm, bn, bk, parts)))
    found.sort(key=lambda f: f[0])
    return tuple(tile for _, tile in found)


def tiles(dtype: dt.dtype, rows: int, columns: int, run: int, taps: int, others: int, count: int) -> tuple[Tile, ...]:
    """The first few of `ranked`, of which each shape occurs once."""
    seen: dict[tuple[int, int], Tile] = {}
    for tile in ranked(dtype, multiplying(dtype), rows, columns, run, taps, others, here_count()):
        seen.setdefault((tile.bm, tile.bn), tile)
        if len(seen) == count:
            break
    return tuple(seen.values())


def weight_tiles(dtype: dt.dtype, rows: int, width: int, positions: int, others: int, count: int) -> tuple[Tile, ...]:
    """Tiles of a product whose terms are positions: few results, many terms."""
    kind, processors = multiplying(dtype), here_count()
    half = dtype in dt.HALF
    rate = RATES["half" if half else kind]
    found = []
    for bm, bn in sorted({*SHAPES, *(shape[::-1] for shape in SHAPES)}):
        if (bn > 16 and bn >= 2 * width) or (bm > 16 and bm >= 2 * rows):
            continue
        if bn > bm and rows >= 2 * bm:  # tall tiles were always faster than wide ones
            continue
        bk = 64 if half and bm * bn <= 8192 else 32
        steps = -(-positions // bk)
        programs = -(-rows // bm) * -(-width // bn) * others
        work = max(2 * bm * bn * bk / rate, (bm + bn) * bk * dtype.itemsize / ARRIVING) + 0.1
        resident = 1 if bm * bn >= 16384 else 2 if bm * bn >= 8192 else 4
        for parts in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            scratch = parts * rows * width * others * 4
            if parts > 1 and (steps < 4 * parts or scratch > MOST_SCRATCH or others * parts > 65535):
                break
            each = -(-steps // parts)
            waves = -(-programs * parts // (processors * resident))
            full = -(-programs * parts // processors)
            time = max(waves * each * LATENCY, full * each * work) + scratch / 1.5e6
            found.append((time, Tile(bm, bn, bk, parts)))
    found.sort(key=lambda f: f[0])
    seen: dict[tuple[int, int], Tile] = {}
    for _, tile in found:
        seen.setdefault((tile.bm, tile.bn), tile)
        if len(seen) == count:
            break
    return tuple(seen.values())
