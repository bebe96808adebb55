"""Frames of a video."""

from __future__ import annotations

from ....ops.registry import F
from ....tensor import Tensor
from .kernels import functional


@functional
def uniform_temporal_subsample(inpt: Tensor, num_samples: int) -> Tensor:
    """`num_samples` frames of (..., T, C, H, W), evenly spaced, the first and last among them.

    >>> video = votive.arange(8).reshape(8, 1, 1, 1)
    >>> votive.vision.transforms.functional.uniform_temporal_subsample(video, 3).flatten()
    tensor([0, 3, 7])
    """
    frames = inpt.shape[-4]
    at = F.linspace(0, frames - 1, num_samples, device=inpt.device).long()
    return F.index_select(inpt, -4, at)
