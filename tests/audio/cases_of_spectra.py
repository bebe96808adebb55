"""The catalog: filters, spectra, masks and features; importing this adds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import BUFFER, Side, case, speech

# Filters ---------------------------------------------------------------------------------------
A3, B3 = [1.0, -0.4, 0.2], [0.5, 0.3, -0.1]
A2D = [[1.0, -0.4, 0.2, 0.1], [2.0, 0.3, -0.2, 0.05]]
B2D = [[0.3, 0.1, 0.2, -0.1], [0.5, -0.3, 0.1, 0.0]]


def _long(m: Side) -> Any:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 40)) * 0.02
    a[0] = 1.5
    return m.F.lfilter(m.x(2, 300), m.leaf(a), m.leaf(b), clamp=False)


case("lfilter", lambda m: m.F.lfilter(m.x(2, 3, 200), m.leaf(A3), m.leaf(B3)))
case("lfilter", lambda m: m.F.lfilter(m.x(200, scale=3.0), m.leaf(A3), m.leaf(B3)), "clamped")
case("lfilter", lambda m: m.F.lfilter(m.x(3, 2, 90), m.leaf(A2D), m.leaf(B2D)), "filter-each")
case("lfilter", lambda m: m.F.lfilter(m.x(3, 90), m.leaf(A2D), m.leaf(B2D), batching=False, clamp=False), "all-filters")
case("lfilter", _long, "order-40")
case("lfilter", lambda m: m.F.lfilter(m.x(2, 20), m.leaf([2.0]), m.leaf([0.5])), "order-1")
case("filtfilt", lambda m: m.F.filtfilt(m.x(2, 3, 100), m.leaf(A3), m.leaf(B3)))
case("filtfilt", lambda m: m.F.filtfilt(m.x(2, 90), m.leaf(A2D), m.leaf(B2D), False), "filter-each")
case("biquad", lambda m: m.F.biquad(m.x(2, 100), *B3, *A3))
case("preemphasis", lambda m: m.F.preemphasis(m.x(2, 3, 50)))
case("deemphasis", lambda m: m.F.deemphasis(m.x(2, 3, 50, scale=0.05)))
for _name in ("lowpass", "highpass"):
    case(f"{_name}_biquad", lambda m, n=f"{_name}_biquad": getattr(m.F, n)(m.x(2, 200), 8000, 900.0))
    case(
        f"{_name}_biquad",
        lambda m, n=f"{_name}_biquad": getattr(m.F, n)(m.x(2, 99), 8000, m.leaf(1e3), m.leaf(0.9)),
        "tensors",
    )
for _name in ("allpass", "bandpass", "bandreject", "band"):
    case(f"{_name}_biquad", lambda m, n=f"{_name}_biquad": getattr(m.F, n)(m.x(2, 200), 8000, 900.0))
case("bandpass_biquad", lambda m: m.F.bandpass_biquad(m.x(90), 8000, 9e2, 1.5, True), "skirt")
case("band_biquad", lambda m: m.F.band_biquad(m.x(90), 8000, 9e2, 1.5, noise=True), "noise")
case("equalizer_biquad", lambda m: m.F.equalizer_biquad(m.x(2, 200), 8000, 900.0, 6.0, 1.2))
case("bass_biquad", lambda m: m.F.bass_biquad(m.x(2, 200, scale=0.1), 8000, 6.0, 500.0))
case("treble_biquad", lambda m: m.F.treble_biquad(m.x(2, 200, scale=0.1), 8000, 6.0, 2000.0))
case("deemph_biquad", lambda m: m.F.deemph_biquad(m.x(2, 100), 44100))
case("deemph_biquad", lambda m: m.F.deemph_biquad(m.x(100), 48000), "48k")
for _rate in (44100, 48000, 88200, 96000):
    case("riaa_biquad", lambda m, r=_rate: m.F.riaa_biquad(m.x(2, 100, scale=0.05), r), str(_rate))

# Spectra ---------------------------------------------------------------------------------------


def _window(m: Side, n: int) -> Any:
    return m.array(np.hanning(n + 1)[:-1])


def _spectrogram(m: Side, power: Any = 2.0, normalized: Any = False, **how: Any) -> Any:
    return m.F.spectrogram(m.x(2, 2, 300), 5, _window(m, 32), 40, 10, 32, power, normalized, **how)


case("spectrogram", _spectrogram)
case("spectrogram", lambda m: _spectrogram(m, power=1.0), "magnitude")
case("spectrogram", lambda m: _spectrogram(m, power=0.7), "odd-power")
case("spectrogram", lambda m: _spectrogram(m, power=None, normalized=True), "complex")
case("spectrogram", lambda m: _spectrogram(m, normalized="frame_length", onesided=False), "whole")
case("spectrogram", lambda m: _spectrogram(m, normalized="window", center=False), "not-centered")
case("spectrogram", lambda m: _spectrogram(m, pad_mode="constant"), "zeros")


def _inverse(m: Side, length: int | None, pad: int = 0, normalized: Any = False) -> Any:
    spectra = m.spectra(2, 2, 21, 30)
    return m.F.inverse_spectrogram(spectra, length, pad, _window(m, 40), 40, 10, 40, normalized)


case("inverse_spectrogram", lambda m: _inverse(m, None))
case("inverse_spectrogram", lambda m: _inverse(m, 250, 8, "window"), "length")
case("inverse_spectrogram", lambda m: _inverse(m, 250, 0, "frame_length"), "frame")


def _griffinlim(m: Side, momentum: float, length: int | None) -> Any:
    loud = m.array(np.abs(m.spectra(2, 1, 21, 12).detach().numpy()))
    return m.F.griffinlim(loud, _window(m, 40), 40, 10, 40, 2.0, 6, momentum, length, False)


case("griffinlim", lambda m: _griffinlim(m, 0.0, None), "plain", grad=False)
case("griffinlim", lambda m: _griffinlim(m, 0.99, 115), "momentum", grad=False, fine=1e-8)
case("spectral_centroid", lambda m: m.F.spectral_centroid(m.x(2, 300), 8000, 3, _window(m, 40), 40, 20, 40), **BUFFER)
case(
    "phase_vocoder",
    lambda m: m.F.phase_vocoder(m.spectra(2, 9, 20), 1.3, m.array(np.linspace(0, 12, 9)[:, None])),
    against64=True,
)
case(
    "phase_vocoder",
    lambda m: m.F.phase_vocoder(m.spectra(9, 20), 0.7, m.array(np.linspace(0, 12, 9)[:, None])),
    "slow",
    against64=True,
)
case(
    "phase_vocoder", lambda m: m.F.phase_vocoder(m.spectra(9, 20), 1.0, m.array(np.linspace(0, 12, 9)[:, None])), "same"
)
for _n, _norm, _scale in ((40, None, "htk"), (23, "slaney", "slaney"), (64, "slaney", "htk")):
    case(
        "melscale_fbanks",
        lambda m, n=_n, norm=_norm, s=_scale: m.F.melscale_fbanks(257, 30.0, 7600.0, n, 16000, norm, s),
        f"{_n}-{_scale}",
        grad=False,
        **BUFFER,
    )
case("linear_fbanks", lambda m: m.F.linear_fbanks(201, 0.0, 8000.0, 64, 16000), grad=False, **BUFFER)
case("create_dct", lambda m: m.F.create_dct(13, 40, "ortho"), grad=False, **BUFFER)
case("create_dct", lambda m: m.F.create_dct(13, 40, None), "plain", grad=False, **BUFFER)

# Masks -----------------------------------------------------------------------------------------


def _masked(m: Side, name: str, *shape: int, axis: int, **how: Any) -> Any:
    with m.drawing():
        return getattr(m.F, name)(m.x(*shape), 12, 0.5, axis, **how)


case("mask_along_axis", lambda m: _masked(m, "mask_along_axis", 2, 3, 20, 30, axis=2))
case("mask_along_axis", lambda m: _masked(m, "mask_along_axis", 20, 30, axis=1, p=0.2), "time")
case("mask_along_axis_iid", lambda m: _masked(m, "mask_along_axis_iid", 2, 3, 20, 30, axis=3))
case("mask_along_axis_iid", lambda m: _masked(m, "mask_along_axis_iid", 4, 20, 30, axis=1, p=0.4), "frequency")
case("mask_along_axis_iid", lambda m: _masked(m, "mask_along_axis_iid", 4, 20, 30, axis=1, p=0.0), "none")

# Features --------------------------------------------------------------------------------------
case("compute_deltas", lambda m: m.F.compute_deltas(m.x(2, 3, 20)))
case("compute_deltas", lambda m: m.F.compute_deltas(m.x(3, 20), 8, "reflect"), "even")
for _center in (False, True):
    for _vars in (False, True):
        case(
            "sliding_window_cmn",
            # torchaudio writes into what its own gradient needs.
            lambda m, c=_center, v=_vars: m.F.sliding_window_cmn(m.x(2, 60, 5).detach(), 20, 8, c, v),
            f"{_center}-{_vars}",
            grad=False,
        )
case(
    "sliding_window_cmn",
    lambda m: m.F.sliding_window_cmn(m.x(30, 5).detach(), 600, 100, False, True),
    "short",
    grad=False,
)
case("sliding_window_cmn", lambda m: m.F.sliding_window_cmn(m.x(1, 5).detach(), norm_vars=True), "frame", grad=False)
case("detect_pitch_frequency", lambda m: m.F.detect_pitch_frequency(m.tone(2, 1, 8000).detach(), 8000), grad=False)
case(
    "detect_pitch_frequency",
    lambda m: m.F.detect_pitch_frequency(m.tone(6000).detach(), 8000, 0.02, 5, 60, 1000),
    "options",
    grad=False,
)
case("loudness", lambda m: m.F.loudness(m.tone(2, 3, 8000), 8000))
case("loudness", lambda m: m.F.loudness(m.tone(5, 16000, rate=16000), 16000), "surround")


case("vad", lambda m: m.F.vad(speech(m), 16000), tol=0.0, fine=0.0)
case(
    "vad",
    lambda m: m.F.vad(speech(m, channels=2), 16000, pre_trigger_time=0.1, trigger_level=9.0),
    "two",
    tol=0.0,
    fine=0.0,
)
case("vad", lambda m: m.F.vad(speech(m, 1.0)[0], 16000, pre_trigger_time=0.05), "silence", tol=0.0, fine=0.0)
