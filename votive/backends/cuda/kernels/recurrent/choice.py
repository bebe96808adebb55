"""Which kernel walks the steps of a layer, and how its programs share rows and units. Knows sizes only."""

from __future__ import annotations

from dataclasses import dataclass

from .....core import dtype as dt
from ...programs.layouts import next_power_of_two

HELD = 16384  # weights that one program holds in registers
ROWS = 8  # rows of a program that holds its weights


@dataclass(frozen=True)
class Tiling:
    """Programs have `bm` rows and `bh` units; `bk` numbers are multiplied at a time."""

    held: bool  # whether the weights stay in registers
    bm: int
    bh: int
    bk: int
    warps: int
    slices: int
    groups: int
    stages: int = 1


def _split(n: int, parts: int) -> int:
    return -(-n // parts)


def held(batch: int, hidden: int, gates: int, directions: int, dtype: dt.dtype, most: int) -> Tiling | None:
    """With weights in registers: a power of two of units times all inputs. `most`: programs that run at the same time;
    1 if they cannot wait for each other.
    """
    bk = max(next_power_of_two(hidden), 16)
    places = 4 if gates > 1 else 1  # a unit's gates side by side, a power of two
    if places * bk * bk <= HELD:
        # More programs than there is room for run one after the other: rather more rows for each.
        bm = 1
        while bm < 4 and _split(batch, bm) * directions > 2 * most:
            bm *= 2
        warps = max(1, min(8, places * bk * bk // 2048))
        return Tiling(True, bm, bk, bk, warps, 1, _split(batch, bm))
    if dtype is dt.float64:
        return None
    found: tuple[float, Tiling] | None = None
    for bh in (4, 8, 16, 32, 64):
        if places * bh * bk > HELD or bh >= 2 * hidden:
            continue
        # Multiplications, and reading what others told, in cycles.
        slices = _split(hidden, bh)
        groups = min(most // (slices * directions), batch)
        if groups < 1:
            continue
        bm = next_power_of_two(_split(batch, groups))
        if bm > ROWS:
            continue
        warps = 4 if places * bh * bk <= 8192 else 8
        cost = bm * bk * places * (bh / 128 + 8 / 48)
        made = Tiling(True, bm, bh, bk, warps, slices, _split(batch, bm))
        if found is None or cost < found[0]:
            found = cost, made
    return None if found is None else found[1]


def streamed(batch: int, hidden: int, gates: int, directions: int, dtype: dt.dtype, back: bool) -> Tiling:
    """With weights from the cache: tiles of 16 to 64 rows."""
    item = dtype.itemsize
    bm = max(16, min(next_power_of_two(batch), 32))
    # Forwards a unit's gates lie side by side in the tile.
    bh = 16 if back else (8 if gates > 1 else 16)
    if hidden > 256 and back:
        bh = 32 if batch <= 32 else 16
    bk = 64 if item <= 2 else 32 if item == 4 else 16
    bk = max(16, min(bk, next_power_of_two(hidden)))
    return Tiling(False, bm, bh, bk, 4, _split(hidden, bh), _split(batch, bm), 3)
