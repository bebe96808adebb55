"""Sound: `votive.audio` next to torchaudio, in turns on the same signals.

    python -m benchmarks.audio [--seconds 30] [--budget 1.0] [--only mel] [--json figures.json]
    python -m benchmarks.audio --cpu-time      # one thread each, on a machine that is busy

A ratio below 1 means that votive is faster. Signals are 16 kHz (44.1 kHz where resampled), float32.
torchaudio's filters run in Python where its compiled part is missing; then `lfilter` and what is
made of it is left out, for a loop in Python is no comparison.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import votive
import votive.audio.functional
import votive.audio.transforms

from .pairing import Row, mean_ratio, pair, report

Build = Callable[[Any, Any, Any, Any], Callable[[], object]]


def _with_gradient(lib: Any, fn: Callable[[Any], Any], x: Any) -> Callable[[], object]:
    leaf = x.clone().requires_grad_()

    def step() -> None:
        leaf.grad = None
        fn(leaf).sum().backward()

    return step


def cases(seconds: int) -> Iterator[tuple[str, bool, Build]]:
    """Name, whether torchaudio needs its compiled part, and what makes the call.

    `build(lib, F, T, x)` gets a library, its functionals and transforms, and a maker of signals.
    """
    n = 16000 * seconds

    def module(name: str, **how: Any) -> Build:
        def build(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
            made, signal = getattr(T, name)(**how), x(1, n)
            return lambda: made(signal)

        return build

    def mel(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        made, power = T.MelScale(n_mels=80), x(1, 201, n // 160).square()
        power = power.transpose(-1, -2).contiguous().transpose(-1, -2)  # as stft leaves it
        return lambda: made(power)

    def there_and_back(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        back, spectra = T.InverseSpectrogram(), T.Spectrogram(power=None)(x(1, n))
        return lambda: back(spectra)

    def stretch(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        made, spectra = T.TimeStretch(fixed_rate=1.2), T.Spectrogram(power=None)(x(1, n))
        return lambda: made(spectra)

    def griffin(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        made = T.GriffinLim(n_iter=8, rand_init=False)
        power = T.Spectrogram()(x(1, n // 4))
        return lambda: made(power)

    def filters(order: int, channels: int) -> Build:
        def build(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
            signal = x(channels, n)
            a, b = x(order) * (0.3 / order), x(order)
            a[0] = 1.0
            return lambda: F.lfilter(signal, a, b)

        return build

    def resample(old: int, new: int, gradient: bool = False) -> Build:
        def build(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
            made, signal = T.Resample(old, new), x(1, old * seconds)
            return _with_gradient(lib, made, signal) if gradient else lambda: made(signal)

        return build

    def mel_gradient(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        return _with_gradient(lib, T.MelSpectrogram(n_mels=80), x(1, n))

    def fft(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        signal, room = x(1, n), x(1, 8000)
        return lambda: F.fftconvolve(signal, room)

    def small(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        made, signal = T.MelSpectrogram(n_mels=40), x(1, 1600)
        return lambda: made(signal)

    def biquad(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        signal = x(2, n)
        return lambda: F.lowpass_biquad(signal, 16000, 1000.0)

    def deltas(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        features = x(1, 40, n // 160)
        return lambda: F.compute_deltas(features)

    def pitch(lib: Any, F: Any, T: Any, x: Any) -> Callable[[], object]:
        signal = x(1, n // 4)
        return lambda: F.detect_pitch_frequency(signal, 16000)

    yield "Spectrogram", False, module("Spectrogram", hop_length=160)
    yield "InverseSpectrogram", False, there_and_back
    yield "MelScale, 80 mels", False, mel
    yield "MelSpectrogram, 80 mels", False, module("MelSpectrogram", hop_length=160, n_mels=80)
    yield "MelSpectrogram and gradient", False, mel_gradient
    yield "MelSpectrogram of 0.1 s", False, small
    yield "MFCC", False, module("MFCC", melkwargs={"n_mels": 80, "hop_length": 160})
    yield "LFCC", False, module("LFCC")
    yield "TimeStretch", False, stretch
    yield "GriffinLim, 8 rounds", False, griffin
    yield "Resample 44100 to 16000", False, resample(44100, 16000)
    yield "Resample 48000 to 16000", False, resample(48000, 16000)
    yield "Resample 16000 to 22050", False, resample(16000, 22050)
    yield "Resample 44100 to 16000 and gradient", False, resample(44100, 16000, True)
    yield "fftconvolve, 0.5 s of room", False, fft
    yield "compute_deltas", False, deltas
    yield "detect_pitch_frequency", False, pitch
    yield "MuLawEncoding", False, module("MuLawEncoding")
    yield "lfilter, order 3", True, filters(3, 1)
    yield "lfilter, order 3, 8 channels", True, filters(3, 8)
    yield "lfilter, order 9", True, filters(9, 1)
    yield "lowpass_biquad, stereo", True, biquad


def signals(lib: Any) -> Callable[..., Any]:
    """A maker of noise in a library."""

    def make(*shape: int) -> Any:
        return lib.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))

    return make


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="length of the signals")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each row")
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cpu-time", action="store_true", help="one thread each, by the time that it computed")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch
    import torchaudio

    if given.cpu_time:
        torch.set_num_threads(1)
        votive.set_num_threads(1)
        time.perf_counter = time.process_time
    compiled = torchaudio._extension._IS_TORCHAUDIO_EXT_AVAILABLE
    rows = []
    for name, needs, build in cases(given.seconds):
        if given.only.lower() not in name.lower():
            continue
        ours = build(votive, votive.audio.functional, votive.audio.transforms, signals(votive))
        if needs and not compiled:
            row = pair(name, ours, ours, seconds=given.budget / 2)
            row = Row(name, 0, 0, 0, 0, 0, error=f"{row.votive_us:10.2f} us; torchaudio: Python")
        else:
            theirs = build(torch, torchaudio.functional, torchaudio.transforms, signals(torch))
            row = pair(name, ours, theirs, seconds=given.budget)
        rows.append(row)
    report(rows, given.json)
    print(f"geometric mean {mean_ratio(rows):.2f}")


if __name__ == "__main__":
    main()
