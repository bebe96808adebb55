"""Modules that make features of spectrograms: mel, decibels, cepstra, deltas."""

from __future__ import annotations

import math
from typing import Any

import votive
from votive import nn

from ...core.errors import fail
from ...ops.warning import warn
from ...tensor import Tensor
from .. import functional as F
from .projection import BandedProjection, project
from .spectral import Spectrogram, Window


class AmplitudeToDB(nn.Module):
    """A spectrogram in decibels; `stype` says whether it is of `power` or `magnitude`.

    >>> votive.audio.transforms.AmplitudeToDB()(votive.tensor([1.0, 10.0]))
    tensor([ 0., 10.])
    """

    def __init__(self, stype: str = "power", top_db: float | None = None) -> None:
        super().__init__()
        if top_db is not None and top_db < 0:
            fail(ValueError, "AmplitudeToDB", f"top_db must be positive, got {top_db}.")
        self.stype, self.top_db = stype, top_db
        self.multiplier = 10.0 if stype == "power" else 20.0
        self.amin, self.ref_value = 1e-10, 1.0
        self.db_multiplier = math.log10(max(self.amin, self.ref_value))

    def forward(self, x: Tensor) -> Tensor:
        return F.amplitude_to_DB(x, self.multiplier, self.amin, self.db_multiplier, self.top_db)


class _Bank(nn.Module):
    """A module with a bank of mel filters, the buffer `fb` (frequency, mel)."""

    fb: Tensor

    def __init__(
        self, n_mels: int, sample_rate: int, f_min: float, f_max: float, n_stft: int, norm: str | None, mel_scale: str
    ) -> None:
        super().__init__()
        if f_min > f_max:
            fail(ValueError, type(self).__name__, f"f_min={f_min} lies above f_max={f_max}.")
        self.n_mels, self.sample_rate, self.f_min, self.f_max = n_mels, sample_rate, f_min, f_max
        self.n_stft, self.norm, self.mel_scale = n_stft, norm, mel_scale
        bank = F.melscale_fbanks(n_stft, f_min, f_max, n_mels, sample_rate, norm, mel_scale)
        self.register_buffer("fb", bank)


class MelScale(_Bank):
    """A spectrogram (..., frequency, frame) on the mel scale: (..., n_mels, frame).

    >>> votive.audio.transforms.MelScale(n_mels=20)(votive.rand(201, 5)).shape
    votive.Size([20, 5])
    """

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_stft: int = 201,
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        top = float(sample_rate // 2) if f_max is None else f_max
        super().__init__(n_mels, sample_rate, f_min, top, n_stft, norm, mel_scale)
        self._project = BandedProjection()

    def forward(self, specgram: Tensor) -> Tensor:
        return self._project(specgram, self.fb)


class InverseMelScale(_Bank):
    """The spectrogram (..., n_stft, frame) that comes nearest to this mel spectrogram.

    Least squares, of which the shortest is taken, cut at zero.

    >>> votive.audio.transforms.InverseMelScale(n_stft=201, n_mels=20)(votive.rand(20, 5)).shape
    votive.Size([201, 5])
    """

    def __init__(
        self,
        n_stft: int,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        norm: str | None = None,
        mel_scale: str = "htk",
        driver: str = "gels",
    ) -> None:
        top = f_max or float(sample_rate // 2)
        super().__init__(n_mels, sample_rate, f_min, top, n_stft, norm, mel_scale)
        if driver not in ("gels", "gelsy", "gelsd", "gelss"):
            fail(ValueError, "InverseMelScale", f"driver must be one of gels, gelsy, gelsd, gelss, got {driver!r}.")
        self.driver = driver

    def forward(self, melspec: Tensor) -> Tensor:
        lead, (mels, time) = melspec.shape[:-2], melspec.shape[-2:]
        if mels != self.n_mels:
            fail(ValueError, "InverseMelScale", f"expects {self.n_mels} mel bins, got {mels}.")
        bank = self.fb.t().unsqueeze(0)
        found = votive.linalg.lstsq(bank, melspec.reshape(-1, mels, time), driver=self.driver)
        return votive.relu(found.solution).reshape(*lead, self.fb.shape[0], time)


class MelSpectrogram(nn.Module):
    """The mel spectrogram of (..., time): (..., n_mels, frame).

    >>> votive.audio.transforms.MelSpectrogram(n_mels=20)(votive.zeros(1, 4000)).shape
    votive.Size([1, 20, 21])
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        pad: int = 0,
        n_mels: int = 128,
        window_fn: Window = votive.hann_window,
        power: float = 2.0,
        normalized: bool | str = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool | None = None,
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        super().__init__()
        if onesided is not None:
            warn("MelSpectrogram: onesided has no effect; a mel scale needs one side.")
        self.spectrogram = Spectrogram(
            n_fft, win_length, hop_length, pad, window_fn, power, normalized, wkwargs, center, pad_mode, onesided=True
        )
        self.mel_scale = MelScale(n_mels, sample_rate, f_min, f_max, n_fft // 2 + 1, norm, mel_scale)
        self.sample_rate, self.n_fft, self.pad, self.power = sample_rate, n_fft, pad, power
        self.win_length, self.hop_length = self.spectrogram.win_length, self.spectrogram.hop_length
        self.normalized, self.n_mels, self.f_min, self.f_max = normalized, n_mels, f_min, f_max

    def forward(self, waveform: Tensor) -> Tensor:
        return self.mel_scale(self.spectrogram(waveform))


class _Cepstrum(nn.Module):
    """A module that ends in a cosine transform, the buffer `dct_mat` (filter, coefficient)."""

    dct_mat: Tensor

    def __init__(self, sample_rate: int, dct_type: int, norm: str | None, log: bool) -> None:
        super().__init__()
        if dct_type != 2:
            name = type(self).__name__
            fail(ValueError, name, f"only the cosine transform of type 2 is implemented, got dct_type={dct_type}.")
        self.sample_rate, self.dct_type, self.norm = sample_rate, dct_type, norm
        self.top_db, self._log = 80.0, log
        self.amplitude_to_DB = AmplitudeToDB("power", self.top_db)

    def cepstrum(self, bands: Tensor) -> Tensor:
        """Powers (..., filter, frame) to coefficients (..., coefficient, frame)."""
        # The offset keeps silence finite.
        loud = votive.log(bands + 1e-6) if self._log else self.amplitude_to_DB(bands)
        return project(loud, self.dct_mat)


class MFCC(_Cepstrum):
    """Mel-frequency cepstral coefficients of (..., time): (..., n_mfcc, frame).

    >>> votive.audio.transforms.MFCC(n_mfcc=13, melkwargs={"n_mels": 20})(votive.randn(4000)).shape
    votive.Size([13, 21])
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        dct_type: int = 2,
        norm: str | None = "ortho",
        log_mels: bool = False,
        melkwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(sample_rate, dct_type, norm, log_mels)
        self.n_mfcc, self.log_mels = n_mfcc, log_mels
        self.MelSpectrogram = MelSpectrogram(sample_rate=sample_rate, **(melkwargs or {}))
        n_mels = self.MelSpectrogram.n_mels
        if n_mfcc > n_mels:
            fail(ValueError, "MFCC", f"n_mfcc={n_mfcc} is more than the {n_mels} mel bins.")
        self.register_buffer("dct_mat", F.create_dct(n_mfcc, n_mels, norm))

    def forward(self, waveform: Tensor) -> Tensor:
        return self.cepstrum(self.MelSpectrogram(waveform))


class LFCC(_Cepstrum):
    """Linear-frequency cepstral coefficients of (..., time): (..., n_lfcc, frame).

    >>> votive.audio.transforms.LFCC(n_lfcc=13)(votive.randn(4000)).shape
    votive.Size([13, 21])
    """

    filter_mat: Tensor

    def __init__(
        self,
        sample_rate: int = 16000,
        n_filter: int = 128,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_lfcc: int = 40,
        dct_type: int = 2,
        norm: str | None = "ortho",
        log_lf: bool = False,
        speckwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(sample_rate, dct_type, norm, log_lf)
        self.n_filter, self.n_lfcc, self.log_lf, self.f_min = n_filter, n_lfcc, log_lf, f_min
        self.f_max = float(sample_rate // 2) if f_max is None else f_max
        self.Spectrogram = Spectrogram(**(speckwargs or {}))
        n_fft = self.Spectrogram.n_fft
        if n_lfcc > n_fft:
            fail(ValueError, "LFCC", f"n_lfcc={n_lfcc} is more than n_fft={n_fft}.")
        bank = F.linear_fbanks(n_fft // 2 + 1, f_min, self.f_max, n_filter, sample_rate)
        self._project = BandedProjection()
        self.register_buffer("filter_mat", bank)
        self.register_buffer("dct_mat", F.create_dct(n_lfcc, n_filter, norm))

    def forward(self, waveform: Tensor) -> Tensor:
        return self.cepstrum(self._project(self.Spectrogram(waveform), self.filter_mat))


class ComputeDeltas(nn.Module):
    """The slope of each feature of (..., frequency, time) over `win_length` frames.

    >>> votive.audio.transforms.ComputeDeltas()(votive.arange(6.0).unsqueeze(0))
    tensor([[0.5000, 0.8000, 1.0000, 1.0000, 0.8000, 0.5000]])
    """

    def __init__(self, win_length: int = 5, mode: str = "replicate") -> None:
        super().__init__()
        self.win_length, self.mode = win_length, mode

    def forward(self, specgram: Tensor) -> Tensor:
        return F.compute_deltas(specgram, self.win_length, self.mode)


class SlidingWindowCmn(nn.Module):
    """Features (..., time, frequency) less their mean over a window that slides along.

    >>> votive.audio.transforms.SlidingWindowCmn()(votive.tensor([[1.0], [3.0]]))
    tensor([[-1.],
            [ 1.]])
    """

    def __init__(
        self, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False, norm_vars: bool = False
    ) -> None:
        super().__init__()
        self.cmn_window, self.min_cmn_window = cmn_window, min_cmn_window
        self.center, self.norm_vars = center, norm_vars

    def forward(self, specgram: Tensor) -> Tensor:
        return F.sliding_window_cmn(specgram, self.cmn_window, self.min_cmn_window, self.center, self.norm_vars)
