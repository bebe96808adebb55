"""Wrong and empty arguments: an error of the type that torchaudio raises, or the same shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive

from .cases import Side
from .test_parity import ours, theirs

Call = Callable[[Side], Any]


def spectrogram(m: Side, **how: Any) -> Any:
    args = {"power": 2.0, "normalized": False} | how
    return m.F.spectrogram(m.x(100), 0, m.array(np.ones(16)), 16, 8, 16, args["power"], args["normalized"])


WRONG: dict[str, tuple[Call, str]] = {
    "lfilter sizes": (lambda m: m.F.lfilter(m.x(9), m.x(2), m.x(3)), "differ in shape"),
    "lfilter dims": (lambda m: m.F.lfilter(m.x(9), m.x(2, 2, 2), m.x(2, 2, 2)), "dimensions"),
    "lfilter batch": (lambda m: m.F.lfilter(m.x(3, 9), m.x(2, 4), m.x(2, 4)), "2 filters"),
    "lfilter types": (lambda m: m.F.lfilter(m.x(9), m.x(2).float(), m.x(2).float()), "one type"),
    "normalized name": (lambda m: spectrogram(m, normalized="energy"), "energy"),
    "normalized type": (lambda m: spectrogram(m, normalized=3), "bool or a str"),
    "inverse of real": (
        lambda m: m.F.inverse_spectrogram(m.x(9, 5), None, 0, m.array(np.ones(16)), 16, 8, 16, False),
        "complex",
    ),
    "griffinlim momentum": (lambda m: m.T.GriffinLim(momentum=1.0), "momentum"),
    "griffinlim function": (
        lambda m: m.F.griffinlim(m.x(9, 5), m.array(np.ones(16)), 16, 8, 16, 1.0, 1, -0.1, None, False),
        "momentum",
    ),
    "fbanks norm": (lambda m: m.F.melscale_fbanks(9, 0.0, 4e3, 4, 8000, norm="area"), "area"),
    "fbanks scale": (lambda m: m.F.melscale_fbanks(9, 0.0, 4e3, 4, 8000, mel_scale="bark"), "bark"),
    "dct norm": (lambda m: m.F.create_dct(3, 4, "l2"), "l2"),
    "mask dims": (lambda m: m.F.mask_along_axis(m.x(5), 2, 0.0, 0), "dimensions"),
    "mask dims iid": (lambda m: m.F.mask_along_axis_iid(m.x(5, 5), 2, 0.0, 1), "dimensions"),
    "mask axis": (lambda m: m.F.mask_along_axis(m.x(2, 5, 5), 2, 0.0, 0), "axis"),
    "mask p": (lambda m: m.F.mask_along_axis(m.x(5, 5), 2, 0.0, 1, p=1.5), "0..1"),
    "mask module p": (lambda m: m.T.TimeMasking(4, p=-0.5), "0..1"),
    "deltas window": (lambda m: m.F.compute_deltas(m.x(2, 9), win_length=2), "at least 3"),
    "loudness channels": (lambda m: m.F.loudness(m.x(6, 8000), 8000), "5 channels"),
    "loudness short": (lambda m: m.F.loudness(m.x(2, 100), 8000), "unfold"),
    "vad lifter": (lambda m: m.F.vad(m.x(1, 9000), 8000, hp_lifter_freq=3e3), "cepstrum"),
    "resample rate": (lambda m: m.F.resample(m.x(9), 0, 3), "positive"),
    "resample method": (lambda m: m.F.resample(m.x(9), 2, 3, resampling_method="fft"), "fft"),
    "resample width": (lambda m: m.F.resample(m.x(9), 2, 3, 0), "width"),
    "resample ints": (lambda m: m.F.resample(m.array(np.arange(9)), 2, 3), "floating"),
    "resample type": (lambda m: m.T.Resample(2, 3)(m.x(9)), "one type"),
    "convolve mode": (lambda m: m.F.convolve(m.x(9), m.x(3), "half"), "half"),
    "convolve module": (lambda m: m.T.Convolve("half"), "half"),
    "convolve dims": (lambda m: m.F.fftconvolve(m.x(2, 9), m.x(3)), "dimensions"),
    "convolve lead": (lambda m: m.F.convolve(m.x(2, 9), m.x(3, 4)), "broadcast"),
    "noise dims": (lambda m: m.F.add_noise(m.x(2, 9), m.x(2, 9), m.x(2, 1)), "do not fit"),
    "noise length": (lambda m: m.F.add_noise(m.x(2, 9), m.x(2, 8), m.x(2)), "length"),
    "contrast amount": (lambda m: m.F.contrast(m.x(9), 101), "0..100"),
    "deemph rate": (lambda m: m.F.deemph_biquad(m.x(9), 16000), "44100"),
    "riaa rate": (lambda m: m.F.riaa_biquad(m.x(9), 16000), "44100"),
    "flanger modulation": (lambda m: m.F.flanger(m.x(2, 9), 8000, modulation="saw"), "saw"),
    "flanger interpolation": (lambda m: m.F.flanger(m.x(2, 9), 8000, interpolation="cubic"), "cubic"),
    "flanger channels": (lambda m: m.F.flanger(m.x(5, 9), 8000), "4 channels"),
    "merge dims": (lambda m: m.F.merge_tokens(m.x(2, 3), m.x(2, 3)), "one dimension"),
    "merge lengths": (lambda m: m.F.merge_tokens(m.x(3), m.x(2)), "length"),
    "frechet mean": (lambda m: m.F.frechet_distance(m.x(2, 2), m.x(2, 2), m.x(2), m.x(2, 2)), "mean"),
    "frechet sizes": (lambda m: m.F.frechet_distance(m.x(2), m.x(2, 2), m.x(3), m.x(3, 3)), "differ"),
    "top_db": (lambda m: m.T.AmplitudeToDB(top_db=-1.0), "top_db"),
    "mel range": (lambda m: m.T.MelScale(f_min=9e3, sample_rate=16000), "f_min"),
    "inverse mel bins": (lambda m: m.T.InverseMelScale(201, 20)(m.x(19, 4)), "20 mel bins"),
    "inverse mel driver": (lambda m: m.T.InverseMelScale(201, 20, driver="qr"), "driver"),
    "mfcc type": (lambda m: m.T.MFCC(dct_type=3), "type 2"),
    "mfcc count": (lambda m: m.T.MFCC(n_mfcc=41, melkwargs={"n_mels": 40}), "mel bins"),
    "lfcc count": (lambda m: m.T.LFCC(n_lfcc=500), "n_fft"),
    "stretch rate": (lambda m: m.T.TimeStretch()(m.spectra(201, 4)), "rate"),
    "volume": (lambda m: m.T.Vol(-1.0), "positive"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(Exception, match=message):
        call(ours())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_raises_what_torchaudio_raises(name: str) -> None:
    call, _ = WRONG[name]
    got, want = outcome(call, ours()), outcome(call, theirs())
    assert isinstance(want, type), f"torchaudio accepts it: {want}"
    assert isinstance(got, type)
    assert issubclass(got, want)


def test_a_rate_that_is_not_whole_is_refused() -> None:
    with pytest.raises(ValueError, match="whole"):
        votive.audio.functional.resample(votive.zeros(9), 5512.5, 3)


def test_an_unknown_fade_is_refused() -> None:
    # torchaudio takes it for a linear one into which nothing fades.
    with pytest.raises(ValueError, match="cubic"):
        votive.audio.transforms.Fade(2, 2, "cubic")


EMPTY: dict[str, Call] = {
    "spectrogram": lambda m: m.T.Spectrogram(16)(m.x(0, 200).float()),
    "griffinlim": lambda m: m.T.GriffinLim(16, 3)(m.x(0, 9, 5).float()),
    "lfilter": lambda m: m.F.lfilter(m.x(0, 20), m.x(2), m.x(2)),
    "lfilter time": lambda m: m.F.lfilter(m.x(2, 0), m.x(2), m.x(2)),
    "resample time": lambda m: m.F.resample(m.x(2, 0), 3, 2),
    "convolve": lambda m: m.F.convolve(m.x(0, 20), m.x(0, 3)),
    "phaser": lambda m: m.F.phaser(m.x(0, 20), 8000),
    "flanger": lambda m: m.F.flanger(m.x(0, 2, 20), 8000),
    "overdrive": lambda m: m.F.overdrive(m.x(0, 20).detach()),
    "pitch": lambda m: m.F.detect_pitch_frequency(m.x(0, 200).detach(), 800, 0.01, 3, 85, 200),
    "deltas": lambda m: m.F.compute_deltas(m.x(0, 3, 20)),
    "deltas time": lambda m: m.F.compute_deltas(m.x(2, 3, 0)),
    "cmn": lambda m: m.F.sliding_window_cmn(m.x(0, 20, 3).detach()),
    "cmn time": lambda m: m.F.sliding_window_cmn(m.x(2, 0, 3).detach()),
    "preemphasis": lambda m: m.F.preemphasis(m.x(2, 0)),
    "mu law": lambda m: m.F.mu_law_encoding(m.x(0), 256),
    "decibels": lambda m: m.F.amplitude_to_DB(m.x(0, 3, 4), 10.0, 1e-10, 0.0, 80.0),
    "decibels plain": lambda m: m.F.amplitude_to_DB(m.x(0, 3, 4), 10.0, 1e-10, 0.0),
    "loudness": lambda m: m.F.loudness(m.x(0, 2, 8000), 8000),
    "mask": lambda m: m.F.mask_along_axis(m.x(0, 4, 5), 2, 0.0, 2),
    "vad": lambda m: m.F.vad(m.x(1, 0), 16000),
    "add_noise": lambda m: m.F.add_noise(m.x(0, 5), m.x(0, 5), m.x(0)),
    "dither": lambda m: m.F.dither(m.x(0, 20).detach()),
    "phase_vocoder": lambda m: m.F.phase_vocoder(m.spectra(0, 3, 9), 2.0, m.array(np.zeros((3, 1)))),
}


def outcome(call: Call, side: Side) -> Any:
    """The shape of the result, or the type of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = call(side)
        except Exception as error:
            return type(error)
    return tuple(out.shape) if hasattr(out, "shape") else out


@pytest.mark.parametrize("name", EMPTY)
def test_empty_tensors_give_what_torchaudio_gives(name: str) -> None:
    got, want = outcome(EMPTY[name], ours()), outcome(EMPTY[name], theirs())
    assert got == want or (isinstance(got, type) and issubclass(got, want))


def test_a_batch_without_signals_is_resampled_to_none() -> None:
    # torchaudio cannot tell the length of nothing.
    assert votive.audio.functional.resample(votive.zeros(0, 30), 3, 2).shape == (0, 20)
