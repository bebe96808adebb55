"""Modules that mask spectrograms at random, for training."""

from __future__ import annotations

from votive import nn

from ...core.errors import fail
from ...tensor import Tensor
from .. import functional as F


class _AxisMasking(nn.Module):
    """A module that masks along an axis of (..., frequency, time), counted from the end."""

    def __init__(self, mask_param: int, axis: int, iid_masks: bool, p: float = 1.0) -> None:
        super().__init__()
        self.mask_param, self.axis, self.iid_masks, self.p = mask_param, axis, iid_masks, p

    def forward(self, specgram: Tensor, mask_value: float | Tensor = 0.0) -> Tensor:
        axis = specgram.ndim + self.axis
        if self.iid_masks:
            return F.mask_along_axis_iid(specgram, self.mask_param, mask_value, axis, p=self.p)
        value = float(mask_value) if isinstance(mask_value, Tensor) else mask_value
        return F.mask_along_axis(specgram, self.mask_param, value, axis, p=self.p)


class FrequencyMasking(_AxisMasking):
    """A stretch of frequencies masked; with `iid_masks` another one in each spectrogram.

    >>> votive.audio.transforms.FrequencyMasking(4)(votive.ones(2, 8, 5)).shape
    votive.Size([2, 8, 5])
    """

    def __init__(self, freq_mask_param: int, iid_masks: bool = False) -> None:
        super().__init__(freq_mask_param, -2, iid_masks)


class TimeMasking(_AxisMasking):
    """A stretch of frames masked, at most `p` of all.

    >>> votive.audio.transforms.TimeMasking(4, p=0.5)(votive.ones(2, 8, 5)).shape
    votive.Size([2, 8, 5])
    """

    def __init__(self, time_mask_param: int, iid_masks: bool = False, p: float = 1.0) -> None:
        if not 0.0 <= p <= 1.0:
            fail(ValueError, "TimeMasking", f"p must lie in 0..1, got {p}.")
        super().__init__(time_mask_param, -1, iid_masks, p=p)


class SpecAugment(nn.Module):
    """Several masks of time and frequency, filled with the mean or with zeros.

    >>> votive.audio.transforms.SpecAugment(2, 4, 2, 4)(votive.rand(2, 8, 20)).shape
    votive.Size([2, 8, 20])
    """

    def __init__(
        self,
        n_time_masks: int,
        time_mask_param: int,
        n_freq_masks: int,
        freq_mask_param: int,
        iid_masks: bool = True,
        p: float = 1.0,
        zero_masking: bool = False,
    ) -> None:
        super().__init__()
        self.n_time_masks, self.time_mask_param = n_time_masks, time_mask_param
        self.n_freq_masks, self.freq_mask_param = n_freq_masks, freq_mask_param
        self.iid_masks, self.p, self.zero_masking = iid_masks, p, zero_masking

    def forward(self, specgram: Tensor) -> Tensor:
        value = 0.0 if self.zero_masking else specgram.mean()
        mask = F.mask_along_axis_iid if specgram.ndim > 2 and self.iid_masks else F.mask_along_axis
        for count, longest, axis in (
            (self.n_time_masks, self.time_mask_param, specgram.ndim - 1),
            (self.n_freq_masks, self.freq_mask_param, specgram.ndim - 2),
        ):
            for _ in range(count):
                specgram = mask(specgram, longest, value, axis, p=self.p)
        return specgram
