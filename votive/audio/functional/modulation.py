"""Effects by delays that swing: flanger and phaser, as in SoX. Signals are (..., time)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import votive

from ...core.errors import fail
from ...ops.registry import F
from ...tensor import Tensor


def _swing(sinusoidal: bool, size: int, low: float, high: float, phase: float) -> np.ndarray:
    """One period of a slow wave between `low` and `high`, of `size` samples."""
    point = (np.arange(size) + int(phase / math.pi / 2 * size + 0.5)) % size
    if sinusoidal:
        wave = (np.sin(point / size * 2 * math.pi) + 1) / 2
    else:  # 0.5 up to 1, down to 0, and up again
        way, quarter = point * 2 / size, 4 * point // size
        wave = np.choose(quarter, (way + 0.5, 1.5 - way, 1.5 - way, way - 1.5))
    return wave * (high - low) + low


def _delayed(x: Tensor, lags: list[Tensor], weights: list[Tensor]) -> Tensor:
    """`sum_j weights[j, n] x[n - lags[j, n]]`, with silence before the beginning."""
    now = votive.arange(x.shape[-1], device=x.device)
    out: Any = 0.0
    for lag, weight in zip(lags, weights):
        place = now - lag
        read = votive.take_along_dim(x, place.clamp(min=0).unsqueeze(0), -1)
        out = out + votive.where(place >= 0, read, 0.0) * weight
    return out


def _before(t: Tensor, fill: float) -> Tensor:
    """The values one sample earlier."""
    return votive.nn.functional.pad(t[..., :-1], (1, 0), value=fill)


def flanger(
    waveform: Tensor,
    sample_rate: int,
    delay: float = 0.0,
    depth: float = 2.0,
    regen: float = 0.0,
    width: float = 71.0,
    speed: float = 0.5,
    phase: float = 25.0,
    modulation: str = "sinusoidal",
    interpolation: str = "linear",
) -> Tensor:
    """The signal (..., channel, time) with a copy whose delay swings, which sweeps a comb over it.

    `delay` and `depth` are in milliseconds; `regen` (feedback), `width` (of the copy) and `phase`
    (between channels) in percent; `speed` in hertz.

    >>> votive.audio.functional.flanger(votive.rand(2, 100), 8000).shape
    votive.Size([2, 100])
    """
    op = "flanger"
    if modulation not in ("sinusoidal", "triangular"):
        fail(ValueError, op, f"modulation is sinusoidal or triangular, got {modulation!r}.")
    if interpolation not in ("linear", "quadratic"):
        fail(ValueError, op, f"interpolation is linear or quadratic, got {interpolation!r}.")
    shape = waveform.shape
    if shape[-2] > 4:
        fail(ValueError, op, f"takes up to 4 channels, got shape {tuple(shape)}.")
    x = waveform.reshape(-1, *shape[-2:])
    feedback, copy = regen / 100, width / 100
    in_gain, copy_gain = 1.0 / (1 + copy), copy / (1 + copy) * (1 - abs(feedback))
    longest = int((delay + depth) / 1000 * sample_rate + 0.5)
    shortest = math.floor(delay / 1000 * sample_rate + 0.5)
    period = int(sample_rate / speed)
    table = _swing(modulation == "sinusoidal", period, float(shortest), float(longest), 3 * math.pi / 2).astype(
        np.float32
    )
    offsets = (np.arange(shape[-2]) * period * (phase / 100) + 0.5).astype(np.int64)
    swing = table[(np.arange(shape[-1]) + offsets[:, None]) % period]  # (channel, time)
    whole = votive.from_numpy(np.floor(swing).astype(np.int64)).to(x.device)
    part = votive.from_numpy(swing - np.floor(swing)).to(x)
    if interpolation == "linear":
        weights = [1 - part, part]
    else:  # the parabola through three samples
        one, two = 2 * part - part * part, (part * part - part) / 2
        weights = [1 - one - two, one, two]
    lags = [whole + k for k in range(len(weights))]
    if feedback:
        gains = votive.stack([feedback * _before(w, 0.0) for w in weights])
        x_back = F._delay_feedback(x, gains, votive.stack([_before(lag, 0) + 1 for lag in lags]), False)
    else:
        x_back = x
    out = x * in_gain + _delayed(x_back, lags, weights) * copy_gain
    return out.clamp(-1, 1).reshape(shape)


def phaser(
    waveform: Tensor,
    sample_rate: int,
    gain_in: float = 0.4,
    gain_out: float = 0.74,
    delay_ms: float = 3.0,
    decay: float = 0.4,
    mod_speed: float = 0.5,
    sinusoidal: bool = True,
) -> Tensor:
    """The signal (..., time) with echoes of itself, `decay` as loud, whose delay swings.

    `delay_ms` is the longest delay, `mod_speed` the swings per second.

    >>> votive.audio.functional.phaser(votive.rand(2, 100), 8000).shape
    votive.Size([2, 100])
    """
    shape = waveform.shape
    x = waveform.reshape(-1, 1, shape[-1]) * gain_in
    longest = int(delay_ms * 0.001 * sample_rate + 0.5)
    if longest < 1:
        fail(ValueError, "phaser", f"delay_ms={delay_ms} is less than a sample at sample_rate={sample_rate}.")
    period = int(sample_rate / mod_speed + 0.5)
    swing = _swing(sinusoidal, period, 1.0, float(longest), math.pi / 2)
    steps = (swing + np.where(swing < 0, -0.5, 0.5)).astype(np.int64)  # rounds half away from zero
    lag = longest + 1 - steps[np.arange(shape[-1]) % period]
    lags = votive.from_numpy(lag).to(x.device).reshape(1, 1, -1)
    gains = votive.full(lags.shape, decay, dtype=x.dtype, device=x.device)
    out = F._delay_feedback(x, gains, lags, False) * gain_out
    return out.clamp(-1, 1).reshape(shape)
