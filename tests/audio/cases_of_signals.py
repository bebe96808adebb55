"""The catalog: levels, signals and texts; importing this adds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import BUFFER, Side, case

# Levels ----------------------------------------------------------------------------------------
case("amplitude_to_DB", lambda m: m.F.amplitude_to_DB(m.x(2, 9, 20).abs(), 10.0, 1e-10, 0.0))
case("amplitude_to_DB", lambda m: m.F.amplitude_to_DB(m.x(2, 2, 9, 20) ** 2, 20.0, 1e-10, 0.3, 20.0), "top")
case("amplitude_to_DB", lambda m: m.F.amplitude_to_DB(m.x(9, 20) ** 2, 10.0, 1e-10, 0.0, 30.0), "two-dims")
case("DB_to_amplitude", lambda m: m.F.DB_to_amplitude(m.x(2, 30, scale=9.0), 2.0, 0.5))
case("gain", lambda m: m.F.gain(m.x(2, 30), -3.0))
case("gain", lambda m: m.F.gain(m.x(2, 30), 0.0), "none")
case(
    "mu_law_encoding",
    lambda m: m.F.mu_law_encoding(m.array(np.linspace(-1, 1, 999)), 256),
    grad=False,
    tol=0.0,
    fine=0.0,
)
case("mu_law_decoding", lambda m: m.F.mu_law_decoding(m.array(np.arange(256)), 256), grad=False, **BUFFER)
case("mu_law_decoding", lambda m: m.F.mu_law_decoding(m.leaf(np.linspace(0, 99, 50)), 100), "float")

# Signals ---------------------------------------------------------------------------------------
case("resample", lambda m: m.F.resample(m.x(2, 3, 441), 44100, 16000))
case(
    "resample",
    lambda m: m.F.resample(m.x(2, 160), 16000, 44100, resampling_method="sinc_interp_kaiser"),
    "kaiser",
    **BUFFER,
)
case("resample", lambda m: m.F.resample(m.x(100), 3, 2, 16, 0.9, "sinc_interp_kaiser", 8.0), "options", **BUFFER)
case("resample", lambda m: m.F.resample(m.x(2, 1000), 1000, 997), "coprime")
case("resample", lambda m: m.F.resample(m.x(2, 10), 8000, 8000), "same")
case("speed", lambda m: m.F.speed(m.x(2, 400), 8000, 1.1, m.array(np.array([400, 250])))[0])
case(
    "speed",
    lambda m: m.F.speed(m.x(2, 400), 8000, 0.9, m.array(np.array([400, 251])))[1],
    "lengths",
    grad=False,
    tol=0.0,
    fine=0.0,
)
# Gradients are compared with one window on both sides: small spectra magnify its last digit.
case("pitch_shift", lambda m: m.F.pitch_shift(m.tone(2, 1, 2000), 8000, 12), against64=True, grad=False, **BUFFER)
case(
    "pitch_shift",
    lambda m: m.F.pitch_shift(m.tone(1500), 8000, -24, 24, 128, 100, 30, m.array(np.hanning(100))),
    "options",
    against64=True,
    **BUFFER,
)
for _mode in ("full", "valid", "same"):
    case("convolve", lambda m, s=_mode: m.F.convolve(m.x(2, 3, 50), m.x(2, 1, 21, seed=1), s), _mode)
    case("fftconvolve", lambda m, s=_mode: m.F.fftconvolve(m.x(2, 3, 50), m.x(2, 1, 21, seed=1), s), _mode)
case("convolve", lambda m: m.F.convolve(m.x(7), m.x(20, seed=1), "same"), "short-first")
case("add_noise", lambda m: m.F.add_noise(m.x(2, 3, 50), m.x(2, 3, 50, seed=1), m.leaf([[5.0, 0.0, -5.0]] * 2)))
case(
    "add_noise",
    lambda m: m.F.add_noise(m.x(2, 50), m.x(2, 50, seed=1), m.leaf([5.0, 3.0]), m.array(np.array([50, 20]))),
    "lengths",
)
case("contrast", lambda m: m.F.contrast(m.x(2, 50), 60.0))
case("dcshift", lambda m: m.F.dcshift(m.x(2, 50, scale=0.6), 0.3))
# torchaudio's limiter writes into its input, so that has to be a copy.
case("dcshift", lambda m: m.F.dcshift(m.x(2, 50, scale=0.6).detach().clone(), 0.3, 0.1), "limit", grad=False)
case("dcshift", lambda m: m.F.dcshift(m.x(2, 50, scale=0.6).detach().clone(), -0.3, 0.1), "down", grad=False)


def _dithered(m: Side, *how: Any) -> Any:
    with m.drawing():
        return m.F.dither(m.x(3, 60).detach().clone(), *how)


case("dither", lambda m: _dithered(m), grad=False)
case("dither", lambda m: _dithered(m, "RPDF"), "rectangular", grad=False)
case("dither", lambda m: _dithered(m, "TPDF", True), "shaped", grad=False)
case("overdrive", lambda m: m.F.overdrive(m.x(2, 3, 80).detach(), 15, 30), grad=False)

case("flanger", lambda m: m.F.flanger(m.x(2, 3, 200), 8000), grad=False)
case(
    "flanger",
    lambda m: m.F.flanger(m.x(2, 200).detach(), 8000, 0.5, 1.0, -60.0, 30.0, 5.0, 60.0, "triangular", "quadratic"),
    "feedback",
    grad=False,
)
case("phaser", lambda m: m.F.phaser(m.x(2, 3, 200), 8000))
case("phaser", lambda m: m.F.phaser(m.x(200), 8000, 0.5, 0.9, 1.0, 0.8, 2.0, False), "triangle")

# Texts -----------------------------------------------------------------------------------------
case("edit_distance", lambda m: m.F.edit_distance("a cat sat", "the cats at"), grad=False)
case("edit_distance", lambda m: m.F.edit_distance([], ["one", "two"]), "words", grad=False)


def _spd(n: int, seed: int) -> Any:
    half = np.random.default_rng(seed).standard_normal((n, n))
    return half @ half.T + np.eye(n)


case(
    "frechet_distance",
    lambda m: m.F.frechet_distance(m.leaf(np.ones(4)), m.leaf(_spd(4, 0)), m.leaf(np.zeros(4)), m.leaf(_spd(4, 1))),
)
case(
    "merge_tokens",
    lambda m: [
        (s.token, s.start, s.end, s.score)
        for s in m.F.merge_tokens(m.array(np.array([0, 3, 3, 0, 3, 2, 2])), m.array(np.linspace(-1, 0, 7)))
    ],
    grad=False,
)
