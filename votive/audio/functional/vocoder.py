"""Time and pitch apart: the phase vocoder and pitch_shift."""

from __future__ import annotations

import math

import votive

from ...tensor import Tensor
from .resampling import resample


def phase_vocoder(complex_specgrams: Tensor, rate: float, phase_advance: Tensor) -> Tensor:
    """Complex spectra (..., frequency, frame) `rate` times as fast, at the same pitch.

    Magnitudes are interpolated; phases go on by what they advanced between neighbouring frames.
    `phase_advance` (frequency, 1) is how far a bin's own frequency turns in a hop. Flanagan and
    Golden 1966.

    >>> spectra = votive.complex(votive.ones(3, 8), votive.zeros(3, 8))
    >>> advance = votive.linspace(0, votive.pi * 2, 3).unsqueeze(1)
    >>> votive.audio.functional.phase_vocoder(spectra, 2.0, advance).shape
    votive.Size([3, 4])
    """
    if rate == 1.0:
        return complex_specgrams
    lead = complex_specgrams.shape[:-2]
    spectra = complex_specgrams.reshape(-1, *complex_specgrams.shape[-2:])
    real = spectra.real.dtype
    places = votive.arange(0, spectra.shape[-1], rate, dtype=real, device=spectra.device)
    part = places % 1.0
    # Phases add up to thousands of turns, which float32 has no digits for.
    advance = phase_advance.double()
    first = spectra[..., :1].angle().double()
    spectra = votive.nn.functional.pad(spectra, [0, 2])
    left = spectra.index_select(-1, places.long())
    right = spectra.index_select(-1, (places + 1).long())
    deviation = right.angle().double() - left.angle() - advance
    deviation = deviation - 2 * math.pi * votive.round(deviation / (2 * math.pi))
    steps = votive.cat([first, (deviation + advance)[..., :-1]], -1)
    phases = votive.remainder(votive.cumsum(steps, -1), 2 * math.pi).to(real)
    loud = part * right.abs() + (1 - part) * left.abs()
    out = votive.polar(loud, phases)
    return out.reshape(*lead, *out.shape[1:])


def stretched(waveform: Tensor, rate: float, n_fft: int, hop_length: int, win_length: int, window: Tensor) -> Tensor:
    """Signals (signal, time) `1 / rate` times as long, at the same pitch."""
    spectra = votive.stft(waveform, n_fft, hop_length, win_length, window, onesided=True, return_complex=True)
    advance = votive.linspace(0, math.pi * hop_length, spectra.shape[-2], device=spectra.device).unsqueeze(1)
    slow = phase_vocoder(spectra, rate, advance)
    length = round(waveform.shape[-1] / rate)
    return votive.istft(slow, n_fft, hop_length, win_length, window, length=length)


def pitch_rate(n_steps: int, bins_per_octave: int) -> float:
    """How much slower a signal must be so that playing it at its old length shifts the pitch."""
    return 2.0 ** (-float(n_steps) / bins_per_octave)


def fitted(waveform: Tensor, length: int) -> Tensor:
    """The signal cut or filled with zeros to `length`."""
    have = waveform.shape[-1]
    if have > length:
        return waveform[..., :length]
    return votive.nn.functional.pad(waveform, (0, length - have))


def pitch_shift(
    waveform: Tensor,
    sample_rate: int,
    n_steps: int,
    bins_per_octave: int = 12,
    n_fft: int = 512,
    win_length: int | None = None,
    hop_length: int | None = None,
    window: Tensor | None = None,
) -> Tensor:
    """The signal (..., time) with its pitch shifted by `n_steps` of `bins_per_octave`.

    >>> x = votive.sin(votive.arange(2000.0) / 10)
    >>> votive.audio.functional.pitch_shift(x, 8000, 12).shape
    votive.Size([2000])
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if window is None:
        window = votive.hann_window(win_length, device=waveform.device)
    rate = pitch_rate(n_steps, bins_per_octave)
    shape = waveform.shape
    slow = stretched(waveform.reshape(-1, shape[-1]), rate, n_fft, hop_length, win_length, window)
    shifted = resample(slow, int(sample_rate / rate), sample_rate)
    return fitted(shifted, shape[-1]).reshape(shape)
