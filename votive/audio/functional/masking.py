"""Stretches of spectrograms masked at random, for training (Park et al. 2019, SpecAugment)."""

from __future__ import annotations

import votive

from ...core.errors import fail
from ...tensor import Tensor


def _longest(op: str, specgram: Tensor, mask_param: int, axis: int, p: float, least: int) -> int:
    """The longest mask, after checking the arguments."""
    dim = specgram.ndim
    if dim < least:
        fail(ValueError, op, f"takes at least {least} dimensions, got shape {tuple(specgram.shape)}.")
    if axis not in (dim - 2, dim - 1):
        fail(ValueError, op, f"axis must be that of frequency, {dim - 2}, or of time, {dim - 1}, got {axis}.")
    if not 0.0 <= p <= 1.0:
        fail(ValueError, op, f"p must lie in 0..1, got {p}.")
    return mask_param if p == 1.0 else min(mask_param, int(specgram.shape[axis] * p))


def mask_along_axis_iid(
    specgrams: Tensor, mask_param: int, mask_value: float | Tensor, axis: int, p: float = 1.0
) -> Tensor:
    """A stretch of frequencies or frames masked, another one in each (..., frequency, frame).

    It is shorter than `mask_param`, and than `p` times the axis.

    >>> x = votive.ones(2, 3, 8)
    >>> votive.audio.functional.mask_along_axis_iid(x, 4, 0.0, axis=2).shape
    votive.Size([2, 3, 8])
    """
    op = "mask_along_axis_iid"
    longest = _longest(op, specgrams, mask_param, axis, p, 3)
    if longest < 1:
        return specgrams
    size, lead = specgrams.shape[axis], specgrams.shape[:-2]
    length, start = (votive.rand(lead, dtype=specgrams.dtype, device=specgrams.device) for _ in range(2))
    length = length * longest
    start, length = (t.long()[..., None, None] for t in (start * (size - length), length))
    places = votive.arange(size, device=specgrams.device)
    mask = (places >= start) & (places < start + length)  # (..., 1, size)
    if axis == specgrams.ndim - 2:
        mask = mask.transpose(-1, -2)
    if isinstance(mask_value, Tensor):
        return votive.where(mask, mask_value, specgrams)
    return specgrams.masked_fill(mask, mask_value)


def mask_along_axis(specgram: Tensor, mask_param: int, mask_value: float | Tensor, axis: int, p: float = 1.0) -> Tensor:
    """A stretch of frequencies or frames masked, the same in all of (..., frequency, frame).

    >>> x = votive.ones(2, 3, 8)
    >>> votive.audio.functional.mask_along_axis(x, 4, 0.0, axis=1).shape
    votive.Size([2, 3, 8])
    """
    longest = _longest("mask_along_axis", specgram, mask_param, axis, p, 2)
    if longest < 1:
        return specgram
    size = specgram.shape[axis]
    length = votive.rand(1) * longest
    start = int(votive.rand(1) * (size - length))
    places = votive.arange(size, device=specgram.device)
    mask = (places >= start) & (places < start + int(length))
    return specgram.masked_fill(mask if axis == specgram.ndim - 1 else mask.unsqueeze(-1), mask_value)
