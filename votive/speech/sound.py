"""Recordings as Whisper takes them: one channel, 16,000 samples a second. Knows no model."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

import numpy as np

import votive

from ..tensor import Tensor
from .features import SAMPLE_RATE

if TYPE_CHECKING:
    from .features import Sound


def load_audio(source: Sound | str | os.PathLike[str] | IO[bytes], sampling_rate: int | None = None) -> Tensor:
    """One channel at 16 kHz, (samples,), from a sound file or from samples.

    Samples are (samples,) or (channels, samples); `sampling_rate` is theirs, 16 kHz if not given.
    Channels are averaged. Files need the package soundfile.

    >>> votive.speech.load_audio(votive.zeros(2, 48000), 48000).shape
    votive.Size([16000])
    """
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        from .. import audio

        file: Any = source
        sound, rate = audio.load(file)
        if sampling_rate not in (None, rate):
            raise ValueError(f"load_audio: the file has {rate} samples a second, not {sampling_rate}.")
    else:
        sound, rate = _samples(source), sampling_rate or SAMPLE_RATE
    if sound.dim() == 2:
        sound = sound.mean(0)
    if rate != SAMPLE_RATE:
        from ..audio.functional import resample

        sound = resample(sound, rate, SAMPLE_RATE)
    return sound


def _samples(source: Sound) -> Tensor:
    if isinstance(source, votive.Tensor):
        sound = source.detach()
    else:
        sound = votive.as_tensor(np.asarray(source))
    if sound.dim() not in (1, 2) or (sound.dim() == 2 and sound.shape[0] > 32):
        raise ValueError(f"load_audio: samples must be (samples,) or (channels, samples), got {tuple(sound.shape)}.")
    if not sound.is_floating_point():
        # As files hold them; their largest value is 1.
        if sound.dtype not in (votive.int16, votive.int32):
            raise TypeError(f"load_audio: samples of type {sound.dtype} are not supported.")
        return sound.float() / float(votive.iinfo(sound.dtype).max + 1)
    return sound if sound.dtype == votive.float64 else sound.float()
