"""Modules that make spectrograms, undo them, or change their time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import votive
from votive import nn

from ...core.errors import fail
from ...ops.warning import warn
from ...tensor import Tensor
from .. import functional as F
from ..functional.resampling import apply_kernel, reduced, sinc_kernel
from ..functional.vocoder import fitted, pitch_rate, stretched

Window = Callable[..., Tensor]


class _Framed(nn.Module):
    """A module with frames: `n_fft`, `win_length`, `hop_length` and the buffer `window`."""

    window: Tensor

    def __init__(
        self,
        n_fft: int,
        win_length: int | None,
        hop_length: int | None,
        window_fn: Window,
        wkwargs: dict[str, Any] | None,
        hops: int = 2,
    ) -> None:
        super().__init__()
        self.n_fft = n_fft
        self.win_length = n_fft if win_length is None else win_length
        self.hop_length = self.win_length // hops if hop_length is None else hop_length
        self.register_buffer("window", window_fn(self.win_length, **(wkwargs or {})))


class Spectrogram(_Framed):
    """`|stft|^power` of (..., time): (..., frequency, frame); complex with `power=None`.

    >>> votive.audio.transforms.Spectrogram(n_fft=64)(votive.zeros(2, 1000)).shape
    votive.Size([2, 33, 32])
    """

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window_fn: Window = votive.hann_window,
        power: float | None = 2.0,
        normalized: bool | str = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool = True,
        return_complex: bool | None = None,
    ) -> None:
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.pad, self.power, self.normalized = pad, power, normalized
        self.center, self.pad_mode, self.onesided = center, pad_mode, onesided
        if return_complex is not None:
            warn("Spectrogram: return_complex has no effect; use power=None for complex spectra.")

    def forward(self, waveform: Tensor) -> Tensor:
        return F.spectrogram(
            waveform,
            self.pad,
            self.window,
            self.n_fft,
            self.hop_length,
            self.win_length,
            self.power,
            self.normalized,
            self.center,
            self.pad_mode,
            self.onesided,
        )


class InverseSpectrogram(_Framed):
    """The signal (..., time) of complex spectra (..., frequency, frame).

    >>> there = votive.audio.transforms.Spectrogram(n_fft=64, power=None)
    >>> back = votive.audio.transforms.InverseSpectrogram(n_fft=64)
    >>> x = votive.randn(1000)
    >>> bool((back(there(x), 1000) - x).abs().max() < 1e-5)
    True
    """

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window_fn: Window = votive.hann_window,
        normalized: bool | str = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool = True,
    ) -> None:
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.pad, self.normalized = pad, normalized
        self.center, self.pad_mode, self.onesided = center, pad_mode, onesided

    def forward(self, spectrogram: Tensor, length: int | None = None) -> Tensor:
        return F.inverse_spectrogram(
            spectrogram,
            length,
            self.pad,
            self.window,
            self.n_fft,
            self.hop_length,
            self.win_length,
            self.normalized,
            self.center,
            self.pad_mode,
            self.onesided,
        )


class GriffinLim(_Framed):
    """A signal (..., time) with this spectrogram (..., frequency, frame), whose phases are lost.

    >>> votive.audio.transforms.GriffinLim(n_fft=64, n_iter=2)(votive.rand(33, 20)).shape
    votive.Size([608])
    """

    def __init__(
        self,
        n_fft: int = 400,
        n_iter: int = 32,
        win_length: int | None = None,
        hop_length: int | None = None,
        window_fn: Window = votive.hann_window,
        power: float = 2.0,
        wkwargs: dict[str, Any] | None = None,
        momentum: float = 0.99,
        length: int | None = None,
        rand_init: bool = True,
    ) -> None:
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        if not 0 <= momentum < 1:
            fail(ValueError, "GriffinLim", f"momentum must lie in [0, 1), got {momentum}.")
        self.n_iter, self.power, self.momentum = n_iter, power, momentum
        self.length, self.rand_init = length, rand_init

    def forward(self, specgram: Tensor) -> Tensor:
        return F.griffinlim(
            specgram,
            self.window,
            self.n_fft,
            self.hop_length,
            self.win_length,
            self.power,
            self.n_iter,
            self.momentum,
            self.length,
            self.rand_init,
        )


class SpectralCentroid(_Framed):
    """The mean frequency of each frame, weighted by magnitude: (..., frame).

    >>> votive.audio.transforms.SpectralCentroid(8000)(votive.randn(2, 4000)).shape
    votive.Size([2, 21])
    """

    def __init__(
        self,
        sample_rate: int,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window_fn: Window = votive.hann_window,
        wkwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.sample_rate, self.pad = sample_rate, pad

    def forward(self, waveform: Tensor) -> Tensor:
        return F.spectral_centroid(
            waveform, self.sample_rate, self.pad, self.window, self.n_fft, self.hop_length, self.win_length
        )


class TimeStretch(nn.Module):
    """Complex spectra (..., frequency, frame) faster or slower at the same pitch.

    >>> spectra = votive.complex(votive.rand(201, 10), votive.rand(201, 10))
    >>> votive.audio.transforms.TimeStretch(fixed_rate=2.0)(spectra).shape
    votive.Size([201, 5])
    """

    phase_advance: Tensor

    def __init__(self, hop_length: int | None = None, n_freq: int = 201, fixed_rate: float | None = None) -> None:
        super().__init__()
        self.fixed_rate = fixed_rate
        hop_length = n_freq - 1 if hop_length is None else hop_length
        advance = votive.linspace(0, math.pi * hop_length, n_freq).unsqueeze(1)
        self.register_buffer("phase_advance", advance)

    def forward(self, complex_specgrams: Tensor, overriding_rate: float | None = None) -> Tensor:
        if not complex_specgrams.is_complex():
            warn("TimeStretch: takes complex spectra; magnitudes alone give no valid result.")
        rate = self.fixed_rate if overriding_rate is None else overriding_rate
        if rate is None:
            fail(ValueError, "TimeStretch", "give fixed_rate, or overriding_rate with each call.")
        return F.phase_vocoder(complex_specgrams, rate, self.phase_advance)


class PitchShift(nn.LazyModuleMixin, _Framed):
    """The signal (..., time) with its pitch shifted by `n_steps` of `bins_per_octave`.

    >>> votive.audio.transforms.PitchShift(8000, n_steps=4)(votive.randn(1, 2000)).shape
    votive.Size([1, 2000])
    """

    kernel: nn.UninitializedBuffer

    def __init__(
        self,
        sample_rate: int,
        n_steps: int,
        bins_per_octave: int = 12,
        n_fft: int = 512,
        win_length: int | None = None,
        hop_length: int | None = None,
        window_fn: Window = votive.hann_window,
        wkwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs, hops=4)
        self.sample_rate, self.n_steps, self.bins_per_octave = sample_rate, n_steps, bins_per_octave
        self.orig_freq = int(sample_rate / pitch_rate(n_steps, bins_per_octave))
        self.orig, self.new = reduced(self.orig_freq, sample_rate)
        self.width = -1
        # Its type is that of the first signal.
        if self.orig != self.new:
            self.register_buffer("kernel", nn.UninitializedBuffer())

    def initialize_parameters(self, waveform: Tensor) -> None:
        if self.has_uninitialized_params():
            kernel, self.width = sinc_kernel(self.orig, self.new, 6, 0.99, "sinc_interp_hann", None, waveform.dtype)
            self.kernel.materialize(kernel.shape, dtype=kernel.dtype)
            self.kernel.copy_(kernel)

    def forward(self, waveform: Tensor) -> Tensor:
        shape = waveform.shape
        rate = pitch_rate(self.n_steps, self.bins_per_octave)
        shifted = stretched(
            waveform.reshape(-1, shape[-1]), rate, self.n_fft, self.hop_length, self.win_length, self.window
        )
        if self.orig != self.new:
            shifted = apply_kernel(shifted, self.orig, self.new, self.kernel, self.width)
        return fitted(shifted, shape[-1]).reshape(shape)
