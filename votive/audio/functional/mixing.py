"""Signals joined: convolution, directly or by Fourier transforms, and noise at a given level."""

from __future__ import annotations

import math

import votive

from ...core.errors import fail
from ...tensor import Tensor
from .checks import shapes

_MODES = ("full", "valid", "same")


def check_mode(op: str, mode: str) -> None:
    """Raise if there is no such mode."""
    if mode not in _MODES:
        fail(ValueError, op, f"mode must be one of {', '.join(_MODES)}, got {mode!r}.")


def _check(op: str, x: Tensor, y: Tensor, mode: str) -> None:
    if x.ndim != y.ndim:
        fail(ValueError, op, f"both must have the same number of dimensions, got {x.ndim} and {y.ndim}.")
    for i, j in zip(x.shape[:-1], y.shape[:-1]):
        if i != j and 1 not in (i, j):
            fail(ValueError, op, f"leading dimensions do not broadcast, {shapes(x, y)}.")
    check_mode(op, mode)


def _cut(full: Tensor, n: int, m: int, mode: str) -> Tensor:
    """The part of a full convolution that the mode asks for."""
    if mode == "full":
        return full
    length = n if mode == "same" else max(n, m) - min(n, m) + 1
    start = (full.shape[-1] - length) // 2
    return full[..., start : start + length]


def _quick_size(n: int) -> int:
    """The least even number from n on without a prime factor above 5: zeros at the end are free."""
    best = 1 << max(n - 1, 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            # The least power of 2 that makes it long enough.
            two = max(2, 1 << (-(-n // three) - 1).bit_length())
            best = min(best, three * two)
            three *= 3
        five *= 5
    return best


def fftconvolve(x: Tensor, y: Tensor, mode: str = "full") -> Tensor:
    """The convolution of (..., N) and (..., M) along time, by Fourier transforms.

    `full` gives N + M - 1 samples, `valid` those where both overlap wholly, `same` the N in the
    middle.

    >>> x, y = votive.tensor([1.0, 2.0, 3.0]), votive.tensor([1.0, 1.0])
    >>> votive.audio.functional.fftconvolve(x, y)
    tensor([1., 3., 5., 3.])
    """
    _check("fftconvolve", x, y, mode)
    length = x.shape[-1] + y.shape[-1] - 1
    n = _quick_size(length) if length > 0 else length  # which rfft refuses
    product = votive.fft.rfft(x, n=n) * votive.fft.rfft(y, n=n)
    return _cut(votive.fft.irfft(product, n=n)[..., :length], x.shape[-1], y.shape[-1], mode)


def convolve(x: Tensor, y: Tensor, mode: str = "full") -> Tensor:
    """The convolution of (..., N) and (..., M) along time, term by term.

    >>> x, y = votive.tensor([1.0, 2.0, 3.0]), votive.tensor([1.0, 1.0])
    >>> votive.audio.functional.convolve(x, y, mode="valid")
    tensor([3., 5.])
    """
    _check("convolve", x, y, mode)
    n, m = x.shape[-1], y.shape[-1]
    if n < m:
        x, y = y, x
    lead = [max(i, j) for i, j in zip(x.shape[:-1], y.shape[:-1])]
    count = math.prod(lead)
    signals = x.expand(*lead, x.shape[-1]).reshape(1, count, x.shape[-1])
    kernels = y.expand(*lead, y.shape[-1]).reshape(count, 1, y.shape[-1]).flip(-1)
    full = votive.nn.functional.conv1d(signals, kernels, groups=count, padding=kernels.shape[-1] - 1)
    return _cut(full.reshape(*lead, full.shape[-1]), n, m, mode)


def add_noise(waveform: Tensor, noise: Tensor, snr: Tensor, lengths: Tensor | None = None) -> Tensor:
    """The signal (..., L) with noise (..., L), scaled so that it is `snr` (...) decibels below it.

    Energies are those of the first `lengths` (...) samples.

    >>> x, n = votive.tensor([[1.0, -1.0]]), votive.tensor([[5.0, 5.0]])
    >>> votive.audio.functional.add_noise(x, n, votive.tensor([20.0]))
    tensor([[ 1.1000, -0.9000]])
    """
    op = "add_noise"
    dims = {waveform.ndim - 1, noise.ndim - 1, snr.ndim}
    if len(dims | (set() if lengths is None else {lengths.ndim})) != 1:
        given = shapes(waveform, noise, snr, *(() if lengths is None else (lengths,)))
        fail(ValueError, op, f"waveform (..., L), noise (..., L), snr (...) and lengths (...) do not fit: {given}.")
    length = waveform.shape[-1]
    if length != noise.shape[-1]:
        fail(ValueError, op, f"waveform and noise differ in length, {length}, {noise.shape[-1]}.")
    heard = [waveform, noise]
    if lengths is not None:
        mask = votive.arange(length, device=lengths.device) < lengths.unsqueeze(-1)
        heard = [t * mask for t in heard]
    signal, other = (votive.linalg.vector_norm(t, ord=2, dim=-1) ** 2 for t in heard)
    have = 10 * (votive.log10(signal) - votive.log10(other))
    scale = 10 ** ((have - snr) / 20.0)
    return waveform + scale.unsqueeze(-1) * noise
