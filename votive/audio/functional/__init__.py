"""`votive.audio.functional`: what torchaudio.functional has, on tensors (..., time)."""

from .banks import create_dct, linear_fbanks, melscale_fbanks
from .resampling import resample, speed

__all__ = [
    "create_dct",
    "linear_fbanks",
    "melscale_fbanks",
    "resample",
    "speed",
]
