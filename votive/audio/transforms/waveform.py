"""Modules from signals to signals, and what is measured on signals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import votive
from votive import nn

from ...core import dtype as dt
from ...core.errors import fail
from ...tensor import Tensor
from .. import functional as F
from ..functional.mixing import check_mode
from ..functional.resampling import SOXR, apply_kernel, reduced, sinc_kernel, sped_lengths, speed_rates, window_of


class Resample(nn.Module):
    """The signal (..., time) at another sample rate; the filter is made once.

    `resampling_method` may also be one of soxr's, such as `soxr_hq`; see `functional.resample`.

    >>> votive.audio.transforms.Resample(16000, 8000)(votive.zeros(2, 1000)).shape
    votive.Size([2, 500])
    """

    kernel: Tensor

    def __init__(
        self,
        orig_freq: int = 16000,
        new_freq: int = 16000,
        resampling_method: str = "sinc_interp_hann",
        lowpass_filter_width: int = 6,
        rolloff: float = 0.99,
        beta: float | None = None,
        *,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        self.orig_freq, self.new_freq = orig_freq, new_freq
        self.resampling_method, self.lowpass_filter_width = resampling_method, lowpass_filter_width
        self.rolloff, self.beta = rolloff, beta
        self.orig, self.new = reduced(orig_freq, new_freq)
        self.width = -1
        if self.orig != self.new and resampling_method not in SOXR:
            window = window_of(resampling_method)
            kernel, self.width = sinc_kernel(self.orig, self.new, lowpass_filter_width, rolloff, window, beta, dtype)
            self.register_buffer("kernel", kernel.clone())

    def forward(self, waveform: Tensor) -> Tensor:
        if self.orig == self.new:
            return waveform
        if self.resampling_method in SOXR:
            return F.resample(waveform, self.orig, self.new, resampling_method=self.resampling_method)
        return apply_kernel(waveform, self.orig, self.new, self.kernel, self.width)


class Speed(nn.Module):
    """The signal (..., time) `factor` times as fast, and the lengths that signals now have.

    >>> votive.audio.transforms.Speed(16000, 2.0)(votive.zeros(1, 100))[0].shape
    votive.Size([1, 50])
    """

    def __init__(self, orig_freq: int, factor: float) -> None:
        super().__init__()
        self.orig_freq, self.factor = orig_freq, factor
        self.source_sample_rate, self.target_sample_rate = speed_rates(orig_freq, factor)
        self.resampler = Resample(self.source_sample_rate, self.target_sample_rate)

    def forward(self, waveform: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        return self.resampler(waveform), sped_lengths(lengths, self.source_sample_rate, self.target_sample_rate)


class SpeedPerturbation(nn.Module):
    """One of several speeds, drawn anew for each call.

    >>> votive.audio.transforms.SpeedPerturbation(10, [1.0, 2.0])(votive.zeros(1, 100))[0].ndim
    2
    """

    def __init__(self, orig_freq: int, factors: Sequence[float]) -> None:
        super().__init__()
        self.speeders = nn.ModuleList([Speed(orig_freq, factor) for factor in factors])

    def forward(self, waveform: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        return self.speeders[int(votive.randint(len(self.speeders), ()))](waveform, lengths)


class Vol(nn.Module):
    """The signal louder by `gain`, an `amplitude`, a `power` or `db`, cut to -1..1.

    >>> votive.audio.transforms.Vol(2.0)(votive.tensor([0.25, 0.75]))
    tensor([0.5000, 1.0000])
    """

    def __init__(self, gain: float, gain_type: str = "amplitude") -> None:
        super().__init__()
        if gain_type in ("amplitude", "power") and gain < 0:
            fail(ValueError, "Vol", f"gain must be positive for gain_type={gain_type!r}.")
        self.gain, self.gain_type = gain, gain_type

    def forward(self, waveform: Tensor) -> Tensor:
        if self.gain_type == "amplitude":
            waveform = waveform * self.gain
        if self.gain_type == "db":
            waveform = F.gain(waveform, self.gain)
        if self.gain_type == "power":
            waveform = F.gain(waveform, 10 * math.log10(self.gain))
        return votive.clamp(waveform, -1, 1)


# How a fade rises from 0 to 1, and how it falls, at places 0..1. Their sums need not be 1.
_RISE: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda t: t,
    "exponential": lambda t: votive.pow(2, t - 1) * t,
    "logarithmic": lambda t: votive.log10(0.1 + t) + 1,
    "quarter_sine": lambda t: votive.sin(t * math.pi / 2),
    "half_sine": lambda t: votive.sin(t * math.pi - math.pi / 2) / 2 + 0.5,
}
_FALL: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda t: -t + 1,
    "exponential": lambda t: votive.pow(2, -t) * (1 - t),
    "logarithmic": lambda t: votive.log10(1.1 - t) + 1,
    "quarter_sine": lambda t: votive.sin(t * math.pi / 2 + math.pi / 2),
    "half_sine": lambda t: votive.sin(t * math.pi + math.pi / 2) / 2 + 0.5,
}


class Fade(nn.Module):
    """The signal (..., time) faded in and out over so many samples.

    `fade_shape` is `linear`, `exponential`, `logarithmic`, `quarter_sine` or `half_sine`.

    >>> votive.audio.transforms.Fade(3, 2)(votive.ones(6))
    tensor([0.0000, 0.5000, 1.0000, 1.0000, 1.0000, 0.0000])
    """

    def __init__(self, fade_in_len: int = 0, fade_out_len: int = 0, fade_shape: str = "linear") -> None:
        super().__init__()
        if fade_shape not in _RISE:
            names = ", ".join(_RISE)
            fail(ValueError, "Fade", f"fade_shape must be one of {names}, got {fade_shape!r}.")
        self.fade_in_len, self.fade_out_len, self.fade_shape = fade_in_len, fade_out_len, fade_shape

    def forward(self, waveform: Tensor) -> Tensor:
        length, device = waveform.shape[-1], waveform.device
        rise = _RISE[self.fade_shape](votive.linspace(0, 1, self.fade_in_len, device=device))
        fall = _FALL[self.fade_shape](votive.linspace(0, 1, self.fade_out_len, device=device))
        start = votive.cat([rise, votive.ones(length - self.fade_in_len, device=device)])
        end = votive.cat([votive.ones(length - self.fade_out_len, device=device), fall])
        return start.clamp(0, 1) * end.clamp(0, 1) * waveform


class MuLawEncoding(nn.Module):
    """Samples in -1..1 as whole numbers, finer near zero.

    >>> votive.audio.transforms.MuLawEncoding()(votive.tensor([-1.0, 0.0, 1.0]))
    tensor([  0, 128, 255])
    """

    def __init__(self, quantization_channels: int = 256) -> None:
        super().__init__()
        self.quantization_channels = quantization_channels

    def forward(self, x: Tensor) -> Tensor:
        return F.mu_law_encoding(x, self.quantization_channels)


class MuLawDecoding(nn.Module):
    """The samples that `MuLawEncoding` made numbers of.

    >>> votive.audio.transforms.MuLawDecoding()(votive.tensor([0, 255]))
    tensor([-1.,  1.])
    """

    def __init__(self, quantization_channels: int = 256) -> None:
        super().__init__()
        self.quantization_channels = quantization_channels

    def forward(self, x_mu: Tensor) -> Tensor:
        return F.mu_law_decoding(x_mu, self.quantization_channels)


class Loudness(nn.Module):
    """The loudness of (..., channel, time) in LKFS, by ITU-R BS.1770-4.

    >>> votive.audio.transforms.Loudness(8000)(votive.randn(2, 2, 8000)).shape
    votive.Size([2])
    """

    def __init__(self, sample_rate: int) -> None:
        super().__init__()
        self.sample_rate = sample_rate

    def forward(self, wavefrom: Tensor) -> Tensor:  # torchaudio spells it so
        return F.loudness(wavefrom, self.sample_rate)


class Convolve(nn.Module):
    """The convolution of two signals along time, term by term.

    >>> votive.audio.transforms.Convolve()(votive.ones(3), votive.ones(2))
    tensor([1., 2., 2., 1.])
    """

    def __init__(self, mode: str = "full") -> None:
        check_mode("Convolve", mode)
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.convolve(x, y, mode=self.mode)


class FFTConvolve(nn.Module):
    """The convolution of two signals along time, by Fourier transforms.

    >>> votive.audio.transforms.FFTConvolve("same")(votive.ones(3), votive.ones(2)).shape
    votive.Size([3])
    """

    def __init__(self, mode: str = "full") -> None:
        check_mode("FFTConvolve", mode)
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.fftconvolve(x, y, mode=self.mode)


class AddNoise(nn.Module):
    """The signal with noise `snr` decibels below it.

    >>> x = votive.tensor([[1.0, -1.0]])
    >>> votive.audio.transforms.AddNoise()(x, x, votive.tensor([20.0]))
    tensor([[ 1.1000, -1.1000]])
    """

    def forward(self, waveform: Tensor, noise: Tensor, snr: Tensor, lengths: Tensor | None = None) -> Tensor:
        return F.add_noise(waveform, noise, snr, lengths)


class Preemphasis(nn.Module):
    """High frequencies raised: `y[n] = x[n] - coeff x[n - 1]`.

    >>> votive.audio.transforms.Preemphasis(0.5)(votive.ones(3))
    tensor([1.0000, 0.5000, 0.5000])
    """

    def __init__(self, coeff: float = 0.97) -> None:
        super().__init__()
        self.coeff = coeff

    def forward(self, waveform: Tensor) -> Tensor:
        return F.preemphasis(waveform, self.coeff)


class Deemphasis(nn.Module):
    """The inverse of `Preemphasis`.

    >>> votive.audio.transforms.Deemphasis(0.5)(votive.tensor([1.0, 0.5, 0.5]))
    tensor([1., 1., 1.])
    """

    def __init__(self, coeff: float = 0.97) -> None:
        super().__init__()
        self.coeff = coeff

    def forward(self, waveform: Tensor) -> Tensor:
        return F.deemphasis(waveform, self.coeff)
