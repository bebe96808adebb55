"""Designs of filters of second order. Knows no signal but by `biquad`.

Formulas: R. Bristow-Johnson, "Cookbook formulae for audio EQ biquad filter coefficients"; `band`,
`deemph` and `riaa` as in SoX. Frequencies, Q and gains may be tensors, and have gradients then.
"""

from __future__ import annotations

import math

import votive

from ...core.errors import fail
from ...tensor import Tensor
from .filtering import biquad

Value = float | Tensor


def _tensors(waveform: Tensor, *values: Value) -> list[Tensor]:
    return [votive.as_tensor(v, dtype=waveform.dtype, device=waveform.device) for v in values]


def _angle(waveform: Tensor, sample_rate: int, freq: Value, Q: Value) -> tuple[Tensor, Tensor, Tensor]:
    """cos(w0), sin(w0) and alpha of the cookbook."""
    hertz, quality = _tensors(waveform, freq, Q)
    w0 = 2 * math.pi * hertz / sample_rate
    return votive.cos(w0), votive.sin(w0), votive.sin(w0) / 2 / quality


def lowpass_biquad(waveform: Tensor, sample_rate: int, cutoff_freq: Value, Q: Value = 0.707) -> Tensor:
    """Frequencies above `cutoff_freq` taken away, 12 dB per octave.

    >>> step = votive.ones(4)
    >>> votive.audio.functional.lowpass_biquad(step, 8000, 2000.0).shape
    votive.Size([4])
    """
    cos, _, alpha = _angle(waveform, sample_rate, cutoff_freq, Q)
    b = (1 - cos) / 2
    return biquad(waveform, b, 1 - cos, b, 1 + alpha, -2 * cos, 1 - alpha)


def highpass_biquad(waveform: Tensor, sample_rate: int, cutoff_freq: Value, Q: Value = 0.707) -> Tensor:
    """Frequencies below `cutoff_freq` taken away, 12 dB per octave.

    >>> y = votive.audio.functional.highpass_biquad(votive.ones(1000), 8000, 2000.0)
    >>> bool(y[-1].abs() < 1e-6)
    True
    """
    cos, _, alpha = _angle(waveform, sample_rate, cutoff_freq, Q)
    b = (1 + cos) / 2
    return biquad(waveform, b, -1 - cos, b, 1 + alpha, -2 * cos, 1 - alpha)


def allpass_biquad(waveform: Tensor, sample_rate: int, central_freq: Value, Q: Value = 0.707) -> Tensor:
    """Every frequency kept, its phase shifted around `central_freq`.

    >>> votive.audio.functional.allpass_biquad(votive.ones(4), 8000, 2000.0).shape
    votive.Size([4])
    """
    cos, _, alpha = _angle(waveform, sample_rate, central_freq, Q)
    return biquad(waveform, 1 - alpha, -2 * cos, 1 + alpha, 1 + alpha, -2 * cos, 1 - alpha)


def bandpass_biquad(
    waveform: Tensor, sample_rate: int, central_freq: Value, Q: Value = 0.707, const_skirt_gain: bool = False
) -> Tensor:
    """Frequencies around `central_freq` kept; its gain is 1, or Q if the skirts are to stay.

    >>> votive.audio.functional.bandpass_biquad(votive.ones(4), 8000, 2000.0).shape
    votive.Size([4])
    """
    cos, sin, alpha = _angle(waveform, sample_rate, central_freq, Q)
    peak = sin / 2 if const_skirt_gain else alpha
    return biquad(waveform, peak, 0.0, -peak, 1 + alpha, -2 * cos, 1 - alpha)


def bandreject_biquad(waveform: Tensor, sample_rate: int, central_freq: Value, Q: Value = 0.707) -> Tensor:
    """Frequencies around `central_freq` taken away.

    >>> votive.audio.functional.bandreject_biquad(votive.ones(4), 8000, 2000.0).shape
    votive.Size([4])
    """
    cos, _, alpha = _angle(waveform, sample_rate, central_freq, Q)
    return biquad(waveform, 1.0, -2 * cos, 1.0, 1 + alpha, -2 * cos, 1 - alpha)


def equalizer_biquad(waveform: Tensor, sample_rate: int, center_freq: Value, gain: Value, Q: Value = 0.707) -> Tensor:
    """Frequencies around `center_freq` raised by `gain` decibels.

    >>> votive.audio.functional.equalizer_biquad(votive.ones(4), 8000, 2000.0, 3.0).shape
    votive.Size([4])
    """
    cos, _, alpha = _angle(waveform, sample_rate, center_freq, Q)
    (decibels,) = _tensors(waveform, gain)
    amp = votive.exp(decibels / 40.0 * math.log(10))
    return biquad(waveform, 1 + alpha * amp, -2 * cos, 1 - alpha * amp, 1 + alpha / amp, -2 * cos, 1 - alpha / amp)


def _shelf(amp: Value, cos: Value, alpha: Value, sign: int) -> tuple[Value, ...]:
    """b0, b1, b2, a0, a1, a2 of a shelf: sign 1 above the frequency, -1 below it."""
    root = amp**0.5 if isinstance(amp, float) else votive.sqrt(amp)
    slope, minus, plus = 2 * root * alpha, sign * (amp - 1) * cos, (amp + 1) * cos
    return (
        amp * (amp + 1 + minus + slope),
        -2 * sign * amp * (amp - 1 + sign * plus),
        amp * (amp + 1 + minus - slope),
        amp + 1 - minus + slope,
        2 * sign * (amp - 1 - sign * plus),
        amp + 1 - minus - slope,
    )


def _tone(waveform: Tensor, sample_rate: int, gain: Value, freq: Value, Q: Value, sign: int) -> tuple[Value, ...]:
    cos, _, alpha = _angle(waveform, sample_rate, freq, Q)
    (decibels,) = _tensors(waveform, gain)
    return _shelf(votive.exp(decibels / 40 * math.log(10)), cos, alpha, sign)


def bass_biquad(waveform: Tensor, sample_rate: int, gain: Value, central_freq: Value = 100, Q: Value = 0.707) -> Tensor:
    """Low frequencies raised by `gain` decibels: a shelf below `central_freq`.

    >>> votive.audio.functional.bass_biquad(votive.ones(4), 8000, 3.0).shape
    votive.Size([4])
    """
    return biquad(waveform, *_tone(waveform, sample_rate, gain, central_freq, Q, -1))


def treble_biquad(
    waveform: Tensor, sample_rate: int, gain: Value, central_freq: Value = 3000, Q: Value = 0.707
) -> Tensor:
    """High frequencies raised by `gain` decibels: a shelf above `central_freq`.

    >>> votive.audio.functional.treble_biquad(votive.ones(4), 8000, 3.0).shape
    votive.Size([4])
    """
    return biquad(waveform, *_tone(waveform, sample_rate, gain, central_freq, Q, 1))


def band_biquad(
    waveform: Tensor, sample_rate: int, central_freq: Value, Q: Value = 0.707, noise: bool = False
) -> Tensor:
    """A resonance at `central_freq`; `noise` scales it for sounds without pitch.

    >>> votive.audio.functional.band_biquad(votive.ones(4), 8000, 2000.0).shape
    votive.Size([4])
    """
    freq, quality = _tensors(waveform, central_freq, Q)
    a2 = votive.exp(-2 * math.pi * (freq / quality) / sample_rate)
    a1 = -4 * a2 / (1 + a2) * votive.cos(2 * math.pi * freq / sample_rate)
    b0 = votive.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
    if noise:
        b0 = votive.sqrt(((1 + a2) * (1 + a2) - a1 * a1) * (1 - a2) / (1 + a2))
    return biquad(waveform, b0, 0.0, 0.0, 1.0, a1, a2)


# Centre, slope and gain of the shelf that undoes the emphasis of IEC 60908.
_DEEMPH = {44100: (5283, 0.4845, -9.477), 48000: (5356, 0.479, -9.62)}
# Zeros and poles of the RIAA playback curve, from SoX.
_RIAA = {
    44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
    48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
    88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
    96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
}


def deemph_biquad(waveform: Tensor, sample_rate: int) -> Tensor:
    """The emphasis of compact discs undone; `sample_rate` is 44100 or 48000.

    >>> votive.audio.functional.deemph_biquad(votive.ones(4), 44100).shape
    votive.Size([4])
    """
    if sample_rate not in _DEEMPH:
        fail(ValueError, "deemph_biquad", f"sample_rate is 44100 or 48000, got {sample_rate}.")
    freq, slope, gain = _DEEMPH[sample_rate]
    w0 = 2 * math.pi * freq / sample_rate
    amp = math.exp(gain / 40.0 * math.log(10))
    alpha = math.sin(w0) / 2 * math.sqrt((amp + 1 / amp) * (1 / slope - 1) + 2)
    return biquad(waveform, *_shelf(amp, math.cos(w0), alpha, 1))


def riaa_biquad(waveform: Tensor, sample_rate: int) -> Tensor:
    """The playback curve of vinyl records, with gain 1 at 1 kHz.

    >>> votive.audio.functional.riaa_biquad(votive.ones(4), 44100).shape
    votive.Size([4])
    """
    if sample_rate not in _RIAA:
        fail(ValueError, "riaa_biquad", f"sample_rate is one of {', '.join(map(str, _RIAA))}, got {sample_rate}.")
    zeros, poles = _RIAA[sample_rate]
    b, a = ([1.0, -(p + q), p * q] for p, q in (zeros, poles))
    unit = complex(math.cos(2e3 * math.pi / sample_rate), -math.sin(2e3 * math.pi / sample_rate))
    at_1k = [abs(sum(c * unit**k for k, c in enumerate(poly))) for poly in (a, b)]
    gain = at_1k[0] / at_1k[1]
    return biquad(waveform, *(c * gain for c in b), *a)
