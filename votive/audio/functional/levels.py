"""How loud: decibels, gain, loudness, mu-law. Signals are (..., time)."""

from __future__ import annotations

import math

import votive

from ...core.errors import fail
from ...ops.warning import warn
from ...tensor import Tensor
from .biquads import highpass_biquad, treble_biquad


def amplitude_to_DB(
    x: Tensor, multiplier: float, amin: float, db_multiplier: float, top_db: float | None = None
) -> Tensor:
    """`multiplier (log10(max(x, amin)) - db_multiplier)`, at most `top_db` below the loudest.

    The loudest is that of each (channel, frequency, time).

    >>> x = votive.tensor([[1.0, 0.1, 0.0]])
    >>> votive.audio.functional.amplitude_to_DB(x, 10.0, 1e-10, 0.0, top_db=80.0)
    tensor([[  0., -10., -80.]])
    """
    db = multiplier * votive.log10(votive.clamp(x, min=amin)) - multiplier * db_multiplier
    if top_db is None:
        return db
    shape = db.shape
    channels = shape[-3] if db.ndim > 2 else 1
    packed = db.reshape(-1, channels, shape[-2], shape[-1])
    floor = packed.amax(dim=(-3, -2, -1), keepdim=True) - top_db
    return votive.maximum(packed, floor).reshape(shape)


def DB_to_amplitude(x: Tensor, ref: float, power: float) -> Tensor:
    """`ref (10^(x / 10))^power`: 1 is the power of the spectrum, 0.5 its amplitude.

    >>> votive.audio.functional.DB_to_amplitude(votive.tensor([0.0, 20.0]), 1.0, 0.5)
    tensor([ 1., 10.])
    """
    return ref * votive.pow(votive.pow(10.0, 0.1 * x), power)


def gain(waveform: Tensor, gain_db: float = 1.0) -> Tensor:
    """The signal `gain_db` decibels louder.

    >>> votive.audio.functional.gain(votive.tensor([0.1]), 20.0)
    tensor([1.])
    """
    return waveform if gain_db == 0 else waveform * 10 ** (gain_db / 20)


def mu_law_encoding(x: Tensor, quantization_channels: int) -> Tensor:
    """Samples in -1..1 as whole numbers, finer near zero: `sign(x) log(1 + mu |x|) / log(1 + mu)`.

    >>> votive.audio.functional.mu_law_encoding(votive.tensor([-1.0, 0.0, 0.5, 1.0]), 256)
    tensor([  0, 128, 239, 255])
    """
    if not x.is_floating_point():
        warn(f"mu_law_encoding: takes floating-point samples, got {x.dtype}; they are converted.")
        x = x.to(votive.float32)
    mu = votive.tensor(quantization_channels - 1.0, dtype=x.dtype)
    squeezed = votive.sign(x) * votive.log1p(mu * votive.abs(x)) / votive.log1p(mu)
    return ((squeezed + 1) / 2 * mu + 0.5).to(votive.int64)


def mu_law_decoding(x_mu: Tensor, quantization_channels: int) -> Tensor:
    """The samples that `mu_law_encoding` made numbers of.

    >>> votive.audio.functional.mu_law_decoding(votive.tensor([0, 128, 255]), 256)
    tensor([-1.0000e+00,  8.6213e-05,  1.0000e+00])
    """
    if not x_mu.is_floating_point():
        x_mu = x_mu.to(votive.float32)
    mu = votive.tensor(quantization_channels - 1.0, dtype=x_mu.dtype)
    x = x_mu / mu * 2 - 1.0
    return votive.sign(x) * (votive.exp(votive.abs(x) * votive.log1p(mu)) - 1.0) / mu


# ITU-R BS.1770-4: blocks of 400 ms that overlap by 75 %, weights of the channels L R C Ls Rs, the
# offset of equation 2, and the gates of -70 LKFS and 10 LU below the ungated loudness.
_BLOCK_S, _OVERLAP = 0.4, 0.75
_WEIGHTS = (1.0, 1.0, 1.0, 1.41, 1.41)
_OFFSET, _GATE, _RELATIVE_GATE = -0.691, -70.0, 10.0


def loudness(waveform: Tensor, sample_rate: int) -> Tensor:
    """The loudness of (..., channel, time) in LKFS, by ITU-R BS.1770-4.

    >>> x = votive.sin(votive.arange(48000) * (2 * votive.pi * 997 / 48000)).unsqueeze(0) / 2
    >>> round(float(votive.audio.functional.loudness(x, 48000)), 1)
    -9.1
    """
    if waveform.shape[-2] > len(_WEIGHTS):
        fail(ValueError, "loudness", f"takes up to 5 channels, got shape {tuple(waveform.shape)}.")
    size = round(_BLOCK_S * sample_rate)
    step = round(size * (1 - _OVERLAP))
    heard = treble_biquad(waveform, sample_rate, 4.0, 1500.0, 1 / math.sqrt(2))
    heard = highpass_biquad(heard, sample_rate, 38.0, 0.5)
    energy = votive.square(heard).unfold(-1, size, step).mean(dim=-1)  # (..., channel, block)
    weights = votive.tensor(_WEIGHTS, dtype=heard.dtype, device=heard.device)[: energy.shape[-2]]

    def level(weighted: Tensor) -> Tensor:
        return _OFFSET + 10 * votive.log10(weighted)

    def over(open: Tensor) -> Tensor:
        """The loudness of those blocks for which the gate is open."""
        gate = open.unsqueeze(-2)
        mean = (gate * energy).sum(dim=-1) / votive.count_nonzero(gate, dim=-1)
        return level((weights * mean).sum(dim=-1))

    blocks = level((weights.unsqueeze(-1) * energy).sum(dim=-2))
    absolute = blocks > _GATE
    relative = over(absolute) - _RELATIVE_GATE
    return over(votive.logical_and(absolute, blocks > relative.unsqueeze(-1)))
