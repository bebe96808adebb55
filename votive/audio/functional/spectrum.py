"""Spectrograms, their inverses, and what is read off them. Signals are (..., time)."""

from __future__ import annotations

import votive

from ...core.errors import fail
from ...ops.warning import warn
from ...tensor import Tensor


def _norms(op: str, normalized: bool | str) -> tuple[bool, bool]:
    """Whether to divide by the square root of the frame's length, and by the window's norm."""
    if isinstance(normalized, str):
        if normalized not in ("frame_length", "window"):
            fail(ValueError, op, f'normalized must be a bool, "window" or "frame_length", got {normalized!r}.')
        return normalized == "frame_length", normalized == "window"
    if not isinstance(normalized, bool):
        fail(TypeError, op, f"normalized must be a bool or a str, got {type(normalized).__name__}.")
    return False, normalized


def spectrogram(
    waveform: Tensor,
    pad: int,
    window: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    power: float | None,
    normalized: bool | str,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
    return_complex: bool | None = None,
) -> Tensor:
    """`|stft|^power` of the signal: (..., frequency, frame); complex with `power=None`.

    `normalized` divides by the norm of the window (True or "window") or by the square root of the
    frame's length ("frame_length").

    >>> x = votive.sin(votive.arange(64.0))
    >>> window = votive.hann_window(16)
    >>> votive.audio.functional.spectrogram(x, 0, window, 16, 8, 16, 2.0, False).shape
    votive.Size([9, 9])
    """
    by_frame, by_window = _norms("spectrogram", normalized)
    if return_complex is not None:
        warn("spectrogram: return_complex has no effect; use power=None for complex spectra.")
    if pad > 0:
        waveform = votive.nn.functional.pad(waveform, (pad, pad), "constant")
    lead = waveform.shape[:-1]
    spectra = votive.stft(
        waveform.reshape(-1, waveform.shape[-1]),
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        pad_mode,
        by_frame,
        onesided,
        return_complex=True,
    )
    spectra = spectra.reshape(*lead, *spectra.shape[-2:])
    if by_window:
        spectra = spectra / window.pow(2.0).sum().sqrt()
    if power is None:
        return spectra
    if power == 2.0:  # without the root that the square would undo, in gradients too
        return spectra.real.square() + spectra.imag.square()
    return spectra.abs() if power == 1.0 else spectra.abs().pow(power)


def inverse_spectrogram(
    spectrogram: Tensor,
    length: int | None,
    pad: int,
    window: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool | str,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
) -> Tensor:
    """The signal (..., time) whose complex spectrogram this is, by least squares.

    `pad` frames of it are cut from both ends when `length` is given; `pad_mode` stands beside that
    of `spectrogram` and changes nothing, for what was padded is cut away.

    >>> F, w = votive.audio.functional, votive.hann_window(16)
    >>> x = votive.sin(votive.arange(64.0))
    >>> spectra = F.spectrogram(x, 0, w, 16, 8, 16, None, False)
    >>> y = F.inverse_spectrogram(spectra, 64, 0, w, 16, 8, 16, False)
    >>> bool((x - y).abs().max() < 1e-6)
    True
    """
    op = "inverse_spectrogram"
    by_frame, by_window = _norms(op, normalized)
    if not spectrogram.is_complex():
        fail(ValueError, op, f"takes complex spectra, got {spectrogram.dtype}; use power=None.")
    if by_window:
        spectrogram = spectrogram * window.pow(2.0).sum().sqrt()
    lead = spectrogram.shape[:-2]
    waveform = votive.istft(
        spectrogram.reshape(-1, *spectrogram.shape[-2:]),
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        by_frame,
        onesided,
        None if length is None else length + 2 * pad,
    )
    if length is not None and pad > 0:
        waveform = waveform[:, pad:-pad]
    return waveform.reshape(*lead, waveform.shape[-1])


def griffinlim(
    specgram: Tensor,
    window: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    power: float,
    n_iter: int,
    momentum: float,
    length: int | None,
    rand_init: bool,
) -> Tensor:
    """A signal with this spectrogram (..., frequency, frame), whose phases are lost.

    Signal and spectrum are made from each other in turn, and the given magnitudes are put back
    (Griffin and Lim 1984); `momentum` goes on in the direction of the last step (Perraudin 2013).

    >>> F, w = votive.audio.functional, votive.hann_window(16)
    >>> x = votive.sin(votive.arange(64.0))
    >>> loud = F.spectrogram(x, 0, w, 16, 4, 16, 1.0, False)
    >>> y = F.griffinlim(loud, w, 16, 4, 16, 1.0, 30, 0.9, 64, False)
    >>> again = F.spectrogram(y, 0, w, 16, 4, 16, 1.0, False)
    >>> bool((again - loud).norm() < 0.15 * loud.norm())
    True
    """
    if not 0 <= momentum < 1:
        fail(ValueError, "griffinlim", f"momentum must lie in [0, 1), got {momentum}.")
    momentum = momentum / (1 + momentum)
    lead = specgram.shape[:-2]
    loud = specgram.reshape(-1, *specgram.shape[-2:]).pow(1 / power)
    if rand_init:
        phases = votive.complex(votive.rand_like(loud), votive.rand_like(loud))
    else:
        phases = votive.complex(votive.ones_like(loud), votive.zeros_like(loud))
    before = None
    for _ in range(n_iter):
        signal = votive.istft(loud * phases, n_fft, hop_length, win_length, window, length=length)
        rebuilt = votive.stft(signal, n_fft, hop_length, win_length, window, onesided=True, return_complex=True)
        phases = rebuilt
        if momentum and before is not None:
            phases = phases - momentum * before
        phases = phases / (phases.abs() + 1e-16)
        before = rebuilt
    signal = votive.istft(loud * phases, n_fft, hop_length, win_length, window, length=length)
    return signal.reshape(*lead, signal.shape[-1])


def spectral_centroid(
    waveform: Tensor, sample_rate: int, pad: int, window: Tensor, n_fft: int, hop_length: int, win_length: int
) -> Tensor:
    """The mean frequency of each frame, weighted by its magnitudes: (..., frame).

    >>> x = votive.sin(votive.arange(400.0) * (2 * votive.pi * 1000 / 8000))
    >>> w = votive.hann_window(80)
    >>> round(float(votive.audio.functional.spectral_centroid(x, 8000, 0, w, 80, 40, 80)[5]))
    1000
    """
    loud = spectrogram(waveform, pad, window, n_fft, hop_length, win_length, 1.0, False)
    freqs = votive.linspace(0, sample_rate // 2, 1 + n_fft // 2, device=loud.device).unsqueeze(1)
    return (freqs * loud).sum(dim=-2) / loud.sum(dim=-2)
