"""The catalog's transforms; importing this adds them to `cases.CASES`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import BUFFER, Side, case, speech


def module(name: str, x: Callable[[Side], Any], *args: Any, label: str = "", **how: Any) -> None:
    """A case that calls a transform made with these arguments."""
    options = {k: how.pop(k) for k in ("grad", "tol", "fine", "against64") if k in how}

    def run(m: Side) -> Any:
        made = getattr(m.T, name)(*args, **how)
        if m.float == "float64":
            made = made.double()
        given = x(m)
        with m.drawing():
            return made(*given) if isinstance(given, tuple) else made(given)

    case(name, run, label, **options)


def signal(m: Side) -> Any:
    return m.x(2, 1, 900)


def power(m: Side) -> Any:
    return m.x(2, 201, 12) ** 2


module("Spectrogram", signal, **BUFFER)
module("Spectrogram", signal, 64, 50, 20, 3, power=None, normalized=True, label="complex", **BUFFER)
module(
    "Spectrogram",
    signal,
    64,
    label="window",
    center=False,
    wkwargs={"periodic": False},
    normalized="frame_length",
    **BUFFER,
)
module("InverseSpectrogram", lambda m: (m.spectra(2, 201, 9), 1400), **BUFFER)
module("InverseSpectrogram", lambda m: m.spectra(33, 20), 64, label="small", normalized=True, **BUFFER)
module(
    "GriffinLim", lambda m: m.x(2, 33, 20).detach() ** 2, 64, 8, label="zeros", rand_init=False, grad=False, **BUFFER
)
module("SpectralCentroid", signal, 8000, **BUFFER)
module("TimeStretch", lambda m: m.spectra(2, 201, 20), None, 201, 1.2, against64=True, **BUFFER)
module("TimeStretch", lambda m: (m.spectra(2, 33, 20), 0.8), 16, 33, label="overriding", against64=True, **BUFFER)
module("PitchShift", lambda m: m.tone(2, 3000), 8000, 12, against64=True, grad=False, **BUFFER)
module("AmplitudeToDB", power)
module("AmplitudeToDB", power, "magnitude", 30.0, label="top")
module("MelScale", power, 40, **BUFFER)
module("MelScale", power, 40, 22050, 20.0, 8000.0, 201, "slaney", "slaney", label="slaney", **BUFFER)
module("InverseMelScale", lambda m: m.x(2, 40, 5) ** 2, 201, 40, **BUFFER)
module("InverseMelScale", lambda m: m.x(40, 5) ** 2, 201, 40, label="gelsd", driver="gelsd", grad=False, **BUFFER)
module("MelSpectrogram", signal, n_mels=40, **BUFFER)
module(
    "MelSpectrogram",
    signal,
    8000,
    256,
    200,
    80,
    20.0,
    3800.0,
    4,
    30,
    label="options",
    power=1.0,
    norm="slaney",
    mel_scale="slaney",
    normalized=True,
    **BUFFER,
)
module("MFCC", signal, melkwargs={"n_mels": 40}, **BUFFER)
module(
    "MFCC", signal, 8000, 13, norm=None, log_mels=True, label="log", melkwargs={"n_mels": 23, "n_fft": 256}, **BUFFER
)
module("LFCC", signal, **BUFFER)
module(
    "LFCC",
    signal,
    8000,
    40,
    100.0,
    3000.0,
    13,
    norm=None,
    log_lf=True,
    label="log",
    speckwargs={"n_fft": 256},
    **BUFFER,
)
module("ComputeDeltas", power, 7)
module("SlidingWindowCmn", lambda m: m.x(2, 60, 5).detach(), 20, 8, True, True, grad=False)
module("FrequencyMasking", power, 30)
module("FrequencyMasking", power, 30, label="iid", iid_masks=True)
module("TimeMasking", power, 8)
module("TimeMasking", power, 8, label="iid", iid_masks=True, p=0.5)
module("SpecAugment", power, 2, 4, 2, 20)
module("SpecAugment", power, 2, 4, 2, 20, label="zeros", iid_masks=False, zero_masking=True, p=0.5)
module("Resample", signal, 16000, 8000)
module("Resample", signal, 3, 4, "sinc_interp_kaiser", 8, 0.95, 9.0, label="kaiser", **BUFFER)
module("Resample", signal, label="same")
module("Speed", lambda m: (m.x(2, 400), m.array(np.array([400, 250]))), 8000, 1.1)
module("SpeedPerturbation", lambda m: m.x(2, 400), 8000, [0.9, 1.1, 1.0])
module("Vol", signal, 2.0)
module("Vol", signal, 3.0, "db", label="db")
module("Vol", signal, 2.5, "power", label="power")
for _shape in ("linear", "exponential", "logarithmic", "quarter_sine", "half_sine"):
    module("Fade", signal, 100, 200, _shape, label=_shape, **BUFFER)
module("MuLawEncoding", lambda m: m.x(99).detach(), 64, grad=False, tol=0.0, fine=0.0)
module("MuLawDecoding", lambda m: m.array(np.arange(64)), 64, grad=False, **BUFFER)
module("Loudness", lambda m: m.tone(2, 2, 8000), 8000)
module("Vad", speech, 16000, 8.0, tol=0.0, fine=0.0)
module("Convolve", lambda m: (m.x(2, 50), m.x(2, 9, seed=1)), "same")
module("FFTConvolve", lambda m: (m.x(2, 50), m.x(2, 9, seed=1)), "valid")
module("AddNoise", lambda m: (m.x(2, 50), m.x(2, 50, seed=1), m.leaf([3.0, 9.0])))
module("Preemphasis", signal, 0.9)
module("Deemphasis", lambda m: m.x(2, 50, scale=0.05), 0.9)
