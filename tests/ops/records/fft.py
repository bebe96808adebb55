"""Records for the Fourier transforms of one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

# Lengths at, below and above the signal's, even and odd.
SIZES: list[Any] = [
    (S(6),),
    (S(5),),
    (S(6), 4),
    (S(5), 8),
    (S(5), 7),
    (S(6), 1),
    (S(2, 5), {"dim": 0}),
    (S(3, 4), 6, 0),
    (S(3, 4), None, -1, "ortho"),
    (S(3, 4), None, -2, "forward"),
    (S(4), {"norm": "backward"}),
    (S(2, 3, 4), 5, 1, "ortho"),
]
ERRORS: list[Any] = [
    ((S(4), 0), RuntimeError),
    ((S(4), -1), RuntimeError),
    ((S(4), 4, 1), IndexError),
    ((S(),), IndexError),
    ((S(0),), RuntimeError),
    ((S(4), {"norm": "both"}), RuntimeError),
    ((S(4), {"norm": 2}), TypeError),
    ((S(4), 2.0), TypeError),
    ((S(4, dtype="float16"),), RuntimeError),
    ((S(4, dtype="bfloat16"),), RuntimeError),
]
REAL: list[Any] = [((S(4, dtype="complex128"),), RuntimeError)]


def matrix(n: int, sign: float) -> Any:
    """The transform written out: NumPy's own transforms are the kernels under test."""
    k = np.arange(n)
    return np.exp(sign * 2j * np.pi * (np.outer(k, k) % n) / n)


def scale(n: int, norm: str | None, forward: bool) -> float:
    power = {"backward": 0.0, None: 0.0, "ortho": 0.5, "forward": 1.0}[norm]
    return n ** -(power if forward else 1 - power)


def fitted(x: Any, n: int, dim: int) -> Any:
    x = np.moveaxis(x, dim, -1)
    out = np.zeros((*x.shape[:-1], n), np.complex128)
    m = min(n, x.shape[-1])
    out[..., :m] = x[..., :m]
    return out


def fft(x: Any, n: Any = None, dim: int = -1, norm: str | None = None, forward: bool = True) -> Any:
    n = x.shape[dim] if n is None else n
    y = fitted(x, n, dim) @ matrix(n, -1 if forward else 1) * scale(n, norm, forward)
    return np.moveaxis(y, -1, dim)


def ifft(x: Any, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
    return fft(x, n, dim, norm, forward=False)


def rfft(x: Any, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
    y = fft(x, n, dim, norm)
    return np.take(y, range(y.shape[dim] // 2 + 1), dim)


def irfft(x: Any, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
    n = 2 * (x.shape[dim] - 1) if n is None else n
    half = fitted(x, n // 2 + 1, dim)
    half[..., 0] = half[..., 0].real
    if n % 2 == 0:
        half[..., -1] = half[..., -1].real
    mirrored = half[..., 1 : (n + 1) // 2][..., ::-1].conj()
    whole = np.concatenate([half, mirrored], -1)[..., :n]
    return np.moveaxis((whole @ matrix(n, 1)).real * scale(n, norm, False), -1, dim)


def hfft(x: Any, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
    n = 2 * (x.shape[dim] - 1) if n is None else n
    return irfft(np.conj(x), n, dim, norm) / scale(n, norm, False) * scale(n, norm, True)


def ihfft(x: Any, n: Any = None, dim: int = -1, norm: str | None = None) -> Any:
    n = x.shape[dim] if n is None else n
    return np.conj(rfft(x, n, dim, norm)) / scale(n, norm, True) * scale(n, norm, False)


# Not "f": half types have no transform on the CPU, in torch too. Gradients are taken in float64.
RECORDS = [
    op("fft.fft", samples=SIZES, reference=fft, errors=ERRORS, dtypes="bic"),
    op("fft.ifft", samples=SIZES, reference=ifft, errors=ERRORS, dtypes="bic"),
    op("fft.irfft", samples=SIZES, reference=irfft, errors=ERRORS, dtypes="bic"),
    op("fft.hfft", samples=SIZES, reference=hfft, errors=ERRORS, dtypes="bic"),
    op("fft.rfft", samples=SIZES, reference=rfft, errors=ERRORS + REAL, dtypes="bi"),
    op("fft.ihfft", samples=SIZES, reference=ihfft, errors=ERRORS + REAL, dtypes="bi"),
]
