"""Which kernel walks the steps of a layer, and how its programs share rows and units. Knows sizes only."""

from __future__ import annotations

from dataclasses import dataclass

from .....core import dtype as dt
from ...programs.layouts import next_power_of_two

HELD = 16384  # weights that one program holds in registers
REGISTERS = 192  # weights and states of a thread; with more, compilers put them into memory


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


def _registers(bm: int, inputs: int, outputs: int, warps: int) -> int:
    """Weights and states that a thread holds: outputs lie across threads first, then inputs; rows do not."""
    across = min(32 * warps, outputs)
    down = min(32 * warps // across, inputs)
    return inputs * outputs // (across * down) + bm * inputs // down


def held(batch: int, hidden: int, gates: int, directions: int, dtype: dt.dtype, most: int) -> Tiling | None:
    """With weights in registers: a power of two of units times all inputs. `most`: programs that run at the same time;
    1 if they cannot wait for each other.
    """
    bk = max(next_power_of_two(hidden), 16)
    places = 4 if gates > 1 else 1  # a unit's gates side by side, a power of two
    if places * bk * bk <= HELD:
        # More programs than there is room for run one after the other: rather more rows for each.
        bm = 1
        if _split(batch, 1) * directions > 2 * most and bk <= 64:
            bm = 2
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
        # As many numbers are told as there are threads, or more.
        warps = min(4 if places * bh * bk <= HELD // 2 else 8, bm * bk // 32)
        if _registers(bm, bk, places * bh, warps) > REGISTERS or places * bh * bk > HELD // 8 * warps:
            continue
        cost = bm * bk * places * (bh / 128 + 8 / 48)
        made = Tiling(True, bm, bh, bk, warps, slices, _split(batch, bm))
        if found is None or cost < found[0]:
            found = cost, made
    return None if found is None else found[1]


def streamed(batch: int, hidden: int, gates: int, directions: int, dtype: dt.dtype, back: bool, most: int) -> Tiling:
    """With weights from the cache: of the tiles whose programs all run at the same time, the one that reads least."""
    places = 4 if gates > 1 and not back else 1  # forwards a unit's gates lie side by side in the tile
    found: tuple[bool, int, Tiling] | None = None
    for bm in (16, 32, 64):
        for bh in (16, 32, 64) if places == 1 else (8, 16, 32):
            slices, groups = _split(hidden, bh), _split(batch, bm)
            together = slices * groups * directions <= most
            if bm >= 2 * batch and bm > 16:
                continue
            warps = 8 if bm * bh * places >= 1024 else 4
            bk = max(16, min({2: 64, 4: 32}.get(dtype.itemsize, 16), next_power_of_two(hidden) // 2))
            made = Tiling(False, bm, bh, bk, warps, slices, groups, 6 if back else 4)
            key = (not together, bm + bh * places)
            if found is None or key < found[:2]:
                found = *key, made
    assert found is not None
    return found[2]
