"""Records for filters in time, echoes and resampling, which are public in `votive.audio`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def lfilter(x: Any, a: Any, b: Any, clamp: bool = True, batching: bool = True) -> Any:
    """By the definition, with the whole past of every sample."""
    x, a, b = (t.astype(np.float64) for t in (x, a, b))
    if a.ndim == 2 and not batching:
        x = np.broadcast_to(x[..., None, :], (*x.shape[:-1], len(a), x.shape[-1]))
    if a.ndim == 1:
        a, b = a[None], b[None]
    y = np.zeros(x.shape)
    for n in range(x.shape[-1]):
        total = np.zeros(x.shape[:-1])
        for k in range(min(n + 1, a.shape[-1])):
            total = total + b[:, k] * x[..., n - k]
            if k:
                total = total - a[:, k] * y[..., n - k]
        y[..., n] = total / a[:, 0]
    return y.clip(-1, 1) if clamp else y


def resample(x: Any, orig: int, new: int, width: int = 6) -> Any:
    """Every sample of the result as a sum over all samples of the signal."""
    divisor = math.gcd(orig, new)
    orig, new = orig // divisor, new // divisor
    base = min(orig, new) * 0.99
    length = -(-new * x.shape[-1] // orig)
    t = np.arange(x.shape[-1])[:, None] / orig - np.arange(length) / new
    t = (t * base).clip(-width, width)
    weights = np.sinc(t) * np.cos(t * np.pi / width / 2) ** 2 * base / orig
    return x.astype(np.float64) @ weights


def phaser(x: Any, rate: int, decay: float = 0.4) -> Any:
    """A delay line that is written and read in a circle, as in SoX."""
    size, period = int(0.003 * rate + 0.5), int(rate / 0.5 + 0.5)
    point = (np.arange(period) + int(0.25 * period + 0.5)) % period
    swing = (np.sin(point / period * 2 * np.pi) + 1) / 2 * (size - 1) + 1
    steps = (swing + 0.5).astype(int)
    line, out = np.zeros((*x.shape[:-1], size)), np.zeros(x.shape)
    for n in range(x.shape[-1]):
        out[..., n] = 0.4 * x[..., n] + line[..., (n + steps[n % period]) % size]
        line[..., (n + 1) % size] = out[..., n] * decay
    return (out * 0.74).clip(-1, 1)


FILTER = {"low": 0.5, "high": 1.0}
FORMS: dict[str, Any] = {"torch": False, "out": False, "inplace": False}

RECORDS = [
    op(
        "audio.functional.lfilter",
        samples=[
            (S(2, 3, 12), S(3, **FILTER), S(3), {"clamp": False}),
            (S(12), S(1, **FILTER), S(1), {"clamp": False}),
            (S(2, 3, 9), S(3, 5, **FILTER), S(3, 5), False),
            (S(2, 9), S(3, 4, **FILTER), S(3, 4), {"clamp": False, "batching": False}),
            (S(5), S(9, **FILTER), S(9), False),
            (S(4, 20, low=-0.1, high=0.1), S(2, values=[1.0, 0.5]), S(2), True),
            (S(0, 9), S(3, **FILTER), S(3), False),
        ],
        reference=lfilter,
        tol={"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)},
        errors=[
            ((S(9), S(2), S(3)), ValueError),
            ((S(9), S(2, 2, 2), S(2, 2, 2)), ValueError),
            ((S(3, 9), S(2, 2), S(2, 2)), ValueError),
            ((S(), S(2), S(2)), ValueError),
            ((S(9), S(0), S(0)), ValueError),
            ((S(9, dtype="float32"), S(2), S(2)), RuntimeError),
            ((S(9, dtype="int64"), S(2), S(2)), NotImplementedError),
        ],
        **FORMS,
    ),
    op(
        "audio.functional.resample",
        samples=[
            (S(2, 3, 20), 3, 2),
            (S(30), 2, 3),
            (S(2, 40), 16000, 4000),
            (S(1, 15), 7, 11),
            (S(2, 30), 5, 4, 3),
            (S(0, 9), 3, 2),
        ],
        reference=resample,
        tol={"float16": (1e-2, 5e-3), "bfloat16": (5e-2, 5e-2)},
        errors=[((S(9), 0, 3), ValueError), ((S(9), 3, 2, 0), ValueError), ((S(9, dtype="int64"), 3, 2), TypeError)],
        **FORMS,
    ),
    op(
        "audio.functional.phaser",
        samples=[(S(2, 3, 30, low=-0.5, high=0.5), 2000), (S(40, low=-0.5, high=0.5), 1000)],
        reference=phaser,
        errors=[((S(9), 100), ValueError)],
        **FORMS,
    ),
]
