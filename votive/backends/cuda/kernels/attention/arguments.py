"""How tensors become the arguments of attention kernels: distances and their types, masks, noise.
Knows layouts, and no kernel.
"""

from __future__ import annotations

import math
from typing import Any

from .....core import dtype as dt
from .....core.layout import Spec, contiguous_strides
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.generator_state import shift
from ...programs.layouts import contiguous
from ...programs.program import TYPE
from ...programs.types import Ints
from ...runtime.views import View, empty
from ..random.draws import _word as word

LOG2E = math.log2(math.e)
NONE, TRUTH, ADDED = range(3)
WIDEST = 256  # features of a head that a tile holds at once
HALF = frozenset(dt.HALF)
FLOATS = frozenset((dt.float64, dt.float32, *dt.HALF))
# How dropout's numbers are made: not at all, four keys at a time, key by key.
STILL, BY_FOUR, BY_ONE = range(3)


def takes(q: Spec, *rest: Spec) -> bool:
    """Whether a row of attention knows the dtype."""
    return q.dtype in FLOATS


def fits(D: int, E: int, dtype: dt.dtype) -> bool:
    """Whether the kernels that hold whole heads serve; the plain ones hold parts of them."""
    return dtype is not dt.float64 and max(D, E) <= WIDEST


def packed(v: View) -> View:
    """Features side by side: a copy where they are not."""
    s = v.spec
    return v if s.strides[-1] == 1 or s.shape[-1] == 1 else contiguous(v)


def strides_of(slot: Slot | Spec) -> Ints:
    """Distances by batch, head and position of `packed`: of (batch, heads, positions, features), or
    of (positions, heads, features), which has no batch.
    """
    strides = slot.strides
    if strides[-1] != 1 and slot.shape[-1] != 1:
        strides = contiguous_strides(slot.shape)
    return tuple(strides[:3]) if len(strides) == 4 else (0, strides[1], strides[0])


def stride_types(strides: Ints, lengths: Ints) -> list[str]:
    """Types of (batch, head, position) distances: positions in 32 bits where that reaches, since a
    tile of 64-bit offsets fills the registers.
    """
    out = []
    for k, n in enumerate(lengths):
        short = strides[3 * k + 2] * max(n, 1) + 4096 < 2**31
        out += ["i64", "i64", "i32" if short else "i64"]
    return out


def mask_kind(mask: Slot | None) -> tuple[int, str]:
    """(what a mask does, its type)."""
    if mask is None:
        return NONE, "*u8"
    return (TRUTH if mask.dtype is dt.bool_ else ADDED), "*" + TYPE[mask.dtype]


def mask_strides(mask: Slot | None) -> Ints:
    """Distances by batch, head, query and key; 0 where the mask is stretched."""
    if mask is None:
        return (0, 0, 0, 0)
    pad = 4 - mask.ndim
    return (0,) * pad + tuple(0 if n == 1 else s for n, s in zip(mask.shape, mask.strides, strict=True))


def mask_types(mask: Any, T: int, S: int) -> list[str]:
    """Types of a mask's four distances."""
    s = mask_strides(mask)
    return ["i64", "i64", *["i32" if s[2] * T + s[3] * S < 2**31 else "i64"] * 2]


def precision(dtype: dt.dtype) -> str:
    """How products are taken: float32 in all its digits."""
    return "ieee" if dtype is dt.float64 else "tf32x3" if dtype is dt.float32 else "tf32"


def even(numbers: Ints, first: int) -> Ints:
    """Which of the arguments from place `first` on are multiples of 16."""
    return tuple(first + i for i, s in enumerate(numbers) if s % 16 == 0)


# --- dropout ------------------------------------------------------------------------------------

NOISE_TYPES = ["*i64", "i64", "i64", "i64"]


def noise_kind(p: float, S: int) -> int:
    """A counter makes four numbers, which belong to four keys of one row if rows are multiples."""
    return STILL if not p else BY_ONE if S % 4 else BY_FOUR


def noise_for(p: float) -> Any:
    """noise(seed, counter) -> the address of what is added to the counter, key, counter, and the
    highest word that keeps a weight.
    """
    if not p:
        return lambda seed, counter: (0, 0, 0, 0)
    highest = max(math.ceil((1 - p) * 2.0**32) - 1, 0)
    return lambda seed, counter: (shift(), word(int(seed)), word(int(counter)), highest)


def made_up(p: float) -> float:
    """What the weights that dropout keeps are multiplied by."""
    return 1 / (1 - p) if p < 1 else 0.0


# --- results ------------------------------------------------------------------------------------


def room(v: View) -> View:
    """Memory with features side by side to write a result into: its own where it lies so."""
    s = v.spec
    return v if s.strides[-1] == 1 or s.shape[-1] == 1 else empty(s.like(s.shape))


def put(to: View, made: View) -> None:
    """Bring what was written into `room` where it belongs."""
    if made is not to:
        copy_view(to, made)
