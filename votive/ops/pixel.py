"""Channels and pixels exchanged: pixel_shuffle, pixel_unshuffle, channel_shuffle. Only moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import fail
from .fold import NN
from .registry import F, composite
from .sizes import int_of

if TYPE_CHECKING:
    from .types import Tensor


def _parts(op: str, x: Tensor, name: str, factor: float) -> tuple[tuple[int, ...], int, int, int, int]:
    """(leading sizes, channels, height, width, factor), checked."""
    factor = int_of(op, name, factor)
    if x.ndim < 3:
        fail(RuntimeError, op, f"input needs at least 3 dimensions, got shape {tuple(x.shape)}.")
    if factor <= 0:
        fail(RuntimeError, op, f"{name} must be positive, got {factor}.")
    *lead, c, h, w = tuple(x.shape)
    return tuple(lead), c, h, w, factor


@composite(namespaces=NN, method=False, also=("pixel_shuffle",))
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C r², H, W) as (..., C, H r, W r): each group of r² channels becomes a block of pixels.

    >>> votive.nn.functional.pixel_shuffle(votive.arange(4).view(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    op = "pixel_shuffle"
    lead, c, h, w, r = _parts(op, input, "upscale_factor", upscale_factor)
    if c % (r * r):
        fail(RuntimeError, op, f"{c} channels are not divisible by {r * r}, the squared factor.")
    n = len(lead)
    x = F.reshape(input, (*lead, c // (r * r), r, r, h, w))
    x = F.permute(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return F.reshape(x, (*lead, c // (r * r), h * r, w * r))


@composite(namespaces=NN, method=False, also=("pixel_unshuffle",))
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H r, W r) as (..., C r², H, W): each block of pixels becomes r² channels.

    >>> votive.nn.functional.pixel_unshuffle(votive.arange(4).view(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    op = "pixel_unshuffle"
    lead, c, h, w, r = _parts(op, input, "downscale_factor", downscale_factor)
    if h % r or w % r:
        fail(RuntimeError, op, f"height and width ({h}, {w}) must be divisible by {r}.")
    n = len(lead)
    x = F.reshape(input, (*lead, c, h // r, r, w // r, r))
    x = F.permute(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return F.reshape(x, (*lead, c * r * r, h // r, w // r))


@composite(namespaces=NN, method=False, also=("channel_shuffle",))
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of `groups` groups interleaved: the first of each, then the second of each, ...

    >>> votive.nn.functional.channel_shuffle(votive.arange(4).view(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    op = "channel_shuffle"
    groups, shape = int_of(op, "groups", groups), tuple(input.shape)
    if input.ndim < 3:
        fail(RuntimeError, op, f"input needs at least 3 dimensions, got shape {shape}.")
    if groups <= 0:
        fail(RuntimeError, op, f"groups must be positive, got {groups}.")
    if shape[1] % groups:
        fail(RuntimeError, op, f"{shape[1]} channels are not divisible by groups={groups}.")
    x = F.reshape(input, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return F.reshape(F.transpose(x, 1, 2), shape)
