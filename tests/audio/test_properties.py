"""What must hold without a reference: round trips, gradients, batches, convergence."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import votive
from votive.audio import functional as F
from votive.audio import transforms as T
from votive.autograd import gradcheck, gradgradcheck


def noise(*shape: int, scale: float = 0.3, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return votive.from_numpy(rng.standard_normal(shape) * scale)


@pytest.mark.parametrize("normalized", [False, True, "frame_length"])
@pytest.mark.parametrize(("n_fft", "hop"), [(64, 16), (50, 20), (64, 32)])
def test_an_inverse_spectrogram_gives_the_signal_back(n_fft: int, hop: int, normalized: Any) -> None:
    x = noise(2, 3, 500)
    there = T.Spectrogram(n_fft, hop_length=hop, power=None, normalized=normalized, pad=7).double()
    back = T.InverseSpectrogram(n_fft, hop_length=hop, normalized=normalized, pad=7).double()
    np.testing.assert_allclose(back(there(x), 500).numpy(), x.numpy(), atol=1e-10)


@pytest.mark.parametrize("channels", [2, 16, 256, 1000])
def test_mu_law_codes_survive_decoding_and_encoding(channels: int) -> None:
    codes = votive.arange(channels)
    samples = T.MuLawDecoding(channels)(codes)
    assert votive.equal(T.MuLawEncoding(channels)(samples), codes)
    x = votive.linspace(-1, 1, 4001, dtype=votive.float64)
    back = F.mu_law_decoding(F.mu_law_encoding(x, channels).double(), channels)
    # Half of the widest step, at the end of the scale.
    mu = channels - 1
    assert float((back - x).abs().max()) <= ((1 + mu) ** (1 / mu) - 1) * (1 + mu) / mu


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_griffin_lim_converges(momentum: float) -> None:
    t = votive.arange(4000, dtype=votive.float64) / 8000
    x = votive.sin(2 * votive.pi * 220 * t) + 0.5 * votive.sin(2 * votive.pi * 450 * t)
    loud = T.Spectrogram(256, hop_length=64, power=1.0).double()(x)

    def error(n_iter: int) -> float:
        back = T.GriffinLim(
            256, n_iter, hop_length=64, power=1.0, momentum=momentum, length=4000, rand_init=False
        ).double()(loud)
        again = T.Spectrogram(256, hop_length=64, power=1.0).double()(back)
        return float((again - loud).norm() / loud.norm())

    errors = [error(n) for n in (0, 5, 40)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < errors[0] / 3


def test_preemphasis_is_undone() -> None:
    x = noise(2, 400, scale=0.1)
    np.testing.assert_allclose(F.deemphasis(F.preemphasis(x)).numpy(), x.numpy(), atol=1e-12)


def test_a_tone_survives_resampling_there_and_back() -> None:
    x = votive.sin(votive.arange(4000, dtype=votive.float64) * 0.2)
    for methods in [("sinc_interp_hann",) * 2, ("sinc_interp_kaiser",) * 2]:
        there = F.resample(x, 16000, 22050, 64, resampling_method=methods[0])
        back = F.resample(there, 22050, 16000, 64, resampling_method=methods[1])
        assert float((back[:4000] - x)[200:-200].abs().max()) < 2e-3


def test_soxr_agrees_with_a_sharp_sinc() -> None:
    pytest.importorskip("soxr", reason="the package soxr is not installed")
    x = votive.sin(votive.arange(8000, dtype=votive.float64) * 0.05)
    for quality in ("mq", "hq", "vhq"):
        ours = F.resample(x.expand(2, 8000), 44100, 16000, 64)
        theirs = T.Resample(44100, 16000, f"soxr_{quality}")(x.expand(2, 8000))
        assert ours.shape == theirs.shape
        assert float((ours - theirs)[:, 100:-100].abs().max()) < 2e-3
    with pytest.raises(NotImplementedError, match="gradient"):
        F.resample(x.clone().requires_grad_(), 3, 2, resampling_method="soxr_hq")
    with pytest.raises(TypeError, match="float16"):
        F.resample(x.half(), 3, 2, resampling_method="soxr_hq")


NEEDS = {
    "soundfile": lambda: votive.audio.load("a.wav"),
    "soxr": lambda: F.resample(votive.zeros(9), 3, 2, resampling_method="soxr_hq"),
}


@pytest.mark.parametrize("package", NEEDS)
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}; install it with .*votive\[audio\]"):
        NEEDS[package]()


def test_masks_are_no_longer_than_asked() -> None:
    votive.manual_seed(0)
    x = votive.ones(6, 50, 60)
    lengths = set()
    for _ in range(60):
        once = T.TimeMasking(20)(x)
        assert votive.equal(once, once[:1, :1].expand(6, 50, 60))
        gone = (once[0, 0] == 0).nonzero().flatten().tolist()
        assert gone == list(range(gone[0], gone[0] + len(gone))) if gone else True
        lengths.add(len(gone))
        each = T.FrequencyMasking(20, iid_masks=True)(x)
        counts = (each[:, :, 0] == 0).sum(1)
        assert int(counts.max()) < 20
        share = T.TimeMasking(60, p=0.1)(x)
        assert int((share[0, 0] == 0).sum()) <= 6
    assert max(lengths) < 20
    assert len(lengths) > 8


def test_speeds_are_drawn_from_those_given() -> None:
    votive.manual_seed(0)
    made = T.SpeedPerturbation(100, [0.5, 1.0, 2.0])
    seen = {made(votive.zeros(1, 100))[0].shape[-1] for _ in range(40)}
    assert seen == {200, 100, 50}


GRADIENTS = {
    "lfilter": lambda x: F.lfilter(x, noise(2, 3, seed=1) + 1, noise(2, 3, seed=2), clamp=False),
    "filtfilt": lambda x: F.filtfilt(x, noise(3, seed=1) + 1, noise(3, seed=2), clamp=False),
    "lowpass_biquad": lambda x: F.lowpass_biquad(x, 8000, 1000.0),
    "spectrogram": lambda x: T.Spectrogram(16).double()(x),
    "mel": lambda x: T.MelSpectrogram(8000, 32, n_mels=4).double()(x),
    "mfcc": lambda x: T.MFCC(8000, 3, melkwargs={"n_fft": 32, "n_mels": 4}).double()(x),
    "resample": lambda x: F.resample(x, 3, 2),
    "compute_deltas": F.compute_deltas,
    "sliding_window_cmn": lambda x: F.sliding_window_cmn(x.reshape(10, 6), 4, 2, True, True),
    "flanger": lambda x: F.flanger(x, 8000, regen=40.0, depth=1.0),
    "phaser": lambda x: F.phaser(x, 8000),
    "overdrive": lambda x: F.overdrive(x, 5.0),
    "preemphasis": F.preemphasis,
    "convolve": lambda x: F.convolve(x, x.flip(-1), "same"),
    "fftconvolve": lambda x: F.fftconvolve(x, x.flip(-1)),
    "add_noise": lambda x: F.add_noise(x, noise(2, 30, seed=3), noise(2, seed=4)),
    "contrast": F.contrast,
    "loudness": lambda x: F.loudness(x, 40),
    "vad": lambda x: F.vad(x, 16000, pre_trigger_time=0.001),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_agree_with_differences(name: str) -> None:
    x = noise(2, 30, scale=0.2).requires_grad_()
    assert gradcheck(GRADIENTS[name], (x,))


def test_filters_have_gradients_of_second_order() -> None:
    x = noise(2, 2, 12).requires_grad_()
    a, b = (noise(2, 4, seed=1) + 1.5).requires_grad_(), noise(2, 4, seed=2).requires_grad_()
    assert gradcheck(lambda *t: F.lfilter(*t, clamp=False), (x, a, b))
    assert gradgradcheck(lambda *t: F.lfilter(*t, clamp=False), (x, a, b))
    y = noise(2, 20).requires_grad_()
    assert gradgradcheck(lambda t: F.resample(t, 3, 4), (y,))


BATCHED = {
    "lfilter": lambda x: F.lfilter(x, votive.tensor([1.0, 0.2]).double(), votive.tensor([0.3, 0.1]).double()),
    "resample": lambda x: F.resample(x, 3, 2),
    "spectrogram": lambda x: T.Spectrogram(16).double()(x),
    "griffinlim": lambda x: T.GriffinLim(16, 3, rand_init=False).double()(T.Spectrogram(16).double()(x)),
    "pitch_shift": lambda x: F.pitch_shift(x, 8000, 3, n_fft=32),
    "mfcc": lambda x: T.MFCC(8000, 3, log_mels=True, melkwargs={"n_fft": 64, "n_mels": 4}).double()(x),
    "phaser": lambda x: F.phaser(x, 8000),
    "pitch": lambda x: F.detect_pitch_frequency(x, 800, win_length=3, freq_high=200),
    "convolve": lambda x: F.convolve(x, x),
    "overdrive": F.overdrive,
}


@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_is_its_signals_one_by_one(name: str) -> None:
    fn = BATCHED[name]
    x = noise(2, 3, 200)
    whole = fn(x)
    for i in range(2):
        for j in range(3):
            np.testing.assert_allclose(whole[i, j].numpy(), fn(x[i, j]).numpy(), atol=1e-10)
    # A signal read across memory is the same signal.
    across = x.transpose(0, 2).contiguous().transpose(0, 2)
    np.testing.assert_allclose(fn(across).numpy(), whole.numpy(), atol=1e-10)


def test_modules_keep_their_buffers_in_the_state() -> None:
    keys = {
        "Spectrogram": {"window"},
        "MelScale": {"fb"},
        "TimeStretch": {"phase_advance"},
        "MelSpectrogram": {"spectrogram.window", "mel_scale.fb"},
        "MFCC": {"dct_mat", "MelSpectrogram.spectrogram.window", "MelSpectrogram.mel_scale.fb"},
        "LFCC": {"filter_mat", "dct_mat", "Spectrogram.window"},
    }
    made = {
        "Spectrogram": T.Spectrogram(),
        "MelScale": T.MelScale(n_mels=20),
        "TimeStretch": T.TimeStretch(),
        "MelSpectrogram": T.MelSpectrogram(n_mels=20),
        "MFCC": T.MFCC(n_mfcc=5, melkwargs={"n_mels": 20}),
        "LFCC": T.LFCC(),
    }
    assert {name: set(module.state_dict()) for name, module in made.items()} == keys


def test_a_bank_that_was_written_to_is_read_anew() -> None:
    made, x = T.MelScale(n_mels=64), votive.rand(201, 500)
    before = made(x)
    made.fb.mul_(2.0)
    assert votive.allclose(made(x), 2 * before)
    dense = (x.t() @ made.fb).t()
    assert votive.allclose(made(x), dense, rtol=1e-5, atol=1e-5)
