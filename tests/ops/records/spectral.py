"""Records for stft and istft."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

PAD = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}
DONE: dict[str, Any] = {"return_complex": True}


def window(n: int) -> S:
    return S(n, low=0.3, high=1.0, dtype="float64")


def centered(w: Any, n: int) -> Any:
    left = (n - len(w)) // 2
    return np.pad(w, (left, n - len(w) - left))


def stft(
    x: Any,
    n: int,
    hop: Any = None,
    win: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
    align_to_window: Any = None,
) -> Any:
    hop = hop or n // 4
    w = centered(window, n)
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n // 2, n // 2)], PAD[pad_mode])
    if align_to_window:
        left = (n - len(window)) // 2
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(left, n - len(window) - left)])
    starts = range(0, x.shape[-1] - n + 1, hop)
    k = np.arange(n)
    half = np.isrealobj(x) and np.isrealobj(w) and onesided is not False
    f = np.arange(n // 2 + 1 if half else n)
    waves = np.exp(-2j * np.pi * np.outer(k, f) / n) / (np.sqrt(n) if normalized else 1)
    out = np.stack([(x[..., s : s + n] * w) @ waves for s in starts], -1)
    return out if return_complex is not False else np.stack([out.real, out.imag], -1)


def istft(
    X: Any,
    n: int,
    hop: Any = None,
    win: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: Any = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    hop, w = hop or n // 4, centered(window, n)
    scale = np.sqrt(n) if normalized else 1
    count = X.shape[-1]
    size = n + hop * (count - 1)
    total, weight = np.zeros((*X.shape[:-2], size), np.complex128), np.zeros(size)
    for t in range(count):
        column = X[..., t]
        frame = np.fft.ifft(column) if return_complex else np.fft.irfft(column[..., : n // 2 + 1], n)
        total[..., t * hop : t * hop + n] += frame * w * scale
        weight[t * hop : t * hop + n] += w * w
    start = n // 2 if center else 0
    end = size - start if length is None else start + length
    out = (total / np.where(weight == 0, 1, weight))[..., start:end]
    return out if return_complex else out.real


R: dict[str, Any] = {"dtype": "float64"}
# Central differences move real numbers only; gradients by complex inputs are compared with torch.
C: dict[str, Any] = {"dtype": "complex128", "grad": False}
STFT: list[Any] = [
    (S(16, **R), 8, {"window": window(8), **DONE}),
    (S(2, 20, **R), 8, 3, {"window": window(8), **DONE}),
    (S(16, **R), 8, 2, 5, window(5), True, "constant", True, {**DONE}),
    (S(16, **R), 7, 4, 7, window(7), True, "circular", False, {**DONE}),
    (S(3, 16, **R), 6, 2, 6, window(6), True, "replicate", False, False, True),
    (S(16, **R), 8, 2, 4, window(4), False, {**DONE}),
    (S(16, **R), 8, 2, 4, window(4), False, {"align_to_window": True, **DONE}),
    (S(9, **R), 9, 9, {"window": window(9), "center": False, **DONE}),
    (S(16, **C), 8, {"window": window(8)}),
    (S(16, **C), 8, 5, 6, {"window": S(6, **C), "normalized": True}),
    (S(16, **R), 8, {"window": S(8, **C)}),
]
ERRORS: list[Any] = [
    ((S(16, **R), 8, {"window": window(8)}), RuntimeError),
    ((S(16, **R), 20, {"window": window(20), "center": False, **DONE}), RuntimeError),
    ((S(16, **R), 0, {"window": window(8), "center": False, **DONE}), RuntimeError),
    ((S(16, **R), 8, 0, {"window": window(8), **DONE}), RuntimeError),
    ((S(16, **R), 8, 2, 9, {"window": window(9), **DONE}), RuntimeError),
    ((S(16, **R), 8, {"window": window(7), **DONE}), RuntimeError),
    ((S(16, **R), 8, {"window": S(1, 8), **DONE}), RuntimeError),
    ((S(1, 1, 16, **R), 8, {"window": window(8), **DONE}), RuntimeError),
    ((S(16, dtype="int64"), 8, {"window": window(8), **DONE}), RuntimeError),
    ((S(16, **R), 8, {"window": window(8), "align_to_window": True, **DONE}), RuntimeError),
    ((S(16, **R), 8, {"window": S(8, dtype="complex128"), "onesided": True, **DONE}), RuntimeError),
    ((S(16, **R), 8, {"window": window(8), "pad_mode": "mirror", **DONE}), NotImplementedError),
    ((S(16, **R), 8.0, {"window": window(8), **DONE}), TypeError),
]
HALF: list[Any] = [
    (S(5, 6, **C), 8, {"window": window(8)}),
    (S(2, 5, 6, **C), 8, 3, {"window": window(8)}),
    (S(4, 5, **C), 7, 2, 5, window(5), True, True),
    (S(5, 4, **C), 8, 8, {"window": window(8), "center": False}),
    (S(5, 6, **C), 8, 2, {"window": window(8), "length": 9}),
    (S(8, 6, **C), 8, 2, {"window": window(8)}),
    (S(8, 6, **C), 8, 2, {"window": window(8), "return_complex": True}),
]
INVERSE_ERRORS: list[Any] = [
    ((S(5, 6, **R), 8, {"window": window(8)}), RuntimeError),
    ((S(5, 6, **C), 10, {"window": window(10)}), RuntimeError),
    ((S(5, 6, **C), 8, {"window": window(8), "onesided": False}), RuntimeError),
    ((S(5, 6, **C), 8, 9, {"window": window(8)}), RuntimeError),
    ((S(5, 6, **C), 8, 0, {"window": window(8)}), RuntimeError),
    ((S(5, 6, **C), 8, {"window": window(7)}), RuntimeError),
    ((S(5, 6, **C), 8, {"window": S(8, values=[0.0] * 8, **R)}), RuntimeError),
    ((S(5, 6, **C), 8, {"window": S(8, **C)}), RuntimeError),
    ((S(5, 6, **C), 8, {"window": window(8), "return_complex": True}), RuntimeError),
    ((S(1, 1, 5, 6, **C), 8, {"window": window(8)}), RuntimeError),
    ((S(5, **C), 8, {"window": window(8)}), IndexError),
    ((S(5, 0, **C), 8, {"window": window(8)}), RuntimeError),
]

RECORDS = [
    op("stft", samples=STFT, reference=stft, dtypes="c", errors=ERRORS),
    op("istft", samples=HALF, reference=istft, dtypes="c", errors=INVERSE_ERRORS),
]
