"""Linear filters of any order: lfilter, filtfilt, biquad, emphasis. Knows no design of a filter."""

from __future__ import annotations

import votive

from ...core.errors import fail
from ...ops.registry import F
from ...tensor import Tensor
from .checks import shapes


def _checked(waveform: Tensor, a: Tensor, b: Tensor, batching: bool) -> None:
    op = "lfilter"
    if a.shape != b.shape:
        fail(ValueError, op, f"a_coeffs and b_coeffs differ in shape, {shapes(a, b)}; pad the shorter one with zeros.")
    if a.ndim not in (1, 2):
        fail(ValueError, op, f"coefficients have 1 or 2 dimensions, got shape {tuple(a.shape)}.")
    if not a.shape[-1]:
        fail(ValueError, op, "there are no coefficients; at least a_coeffs[0] is needed.")
    if waveform.ndim == 0:
        fail(ValueError, op, "the signal needs a time dimension, got a number.")
    if a.ndim == 2 and batching and (waveform.ndim < 2 or waveform.shape[-2] != a.shape[0]):
        fail(
            ValueError,
            op,
            f"with batching, filter i is for channel i: {a.shape[0]} filters do not fit a signal "
            f"of shape {tuple(waveform.shape)}; use batching=False to run all on each.",
        )


def lfilter(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True, batching: bool = True) -> Tensor:
    """A recursive filter over the signal (..., time), differentiable in all three tensors.

    `a[0] y[n] = sum_k b[k] x[n - k] - sum_(k > 0) a[k] y[n - k]`. Coefficients are (order) or, for
    several filters, (filter, order): with `batching` filter i runs on channel i of (..., filter,
    time), without it every filter on every signal, which gives (..., filter, time). `clamp` cuts
    the result to -1..1.

    >>> x = votive.tensor([1.0, 0.0, 0.0, 0.0])
    >>> a, b = votive.tensor([1.0, -0.5]), votive.tensor([1.0, 0.0])
    >>> votive.audio.functional.lfilter(x, a, b)
    tensor([1.0000, 0.5000, 0.2500, 0.1250])
    """
    _checked(waveform, a_coeffs, b_coeffs, batching)
    if a_coeffs.ndim == 1:
        a_coeffs, b_coeffs = a_coeffs.unsqueeze(0), b_coeffs.unsqueeze(0)
    elif not batching:
        lead = waveform.shape[:-1]
        waveform = waveform.unsqueeze(-2).expand(*lead, a_coeffs.shape[0], waveform.shape[-1])
    shape = waveform.shape
    first = a_coeffs[:, :1]
    signals = waveform.reshape(-1, a_coeffs.shape[0], shape[-1])
    out = F._lfilter(signals, a_coeffs / first, b_coeffs / first, False)
    if clamp:
        out = out.clamp(-1.0, 1.0)
    return out.reshape(shape)


def filtfilt(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True) -> Tensor:
    """The filter run forward and then backward in time, which moves no phase.

    >>> x = votive.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
    >>> a, b = votive.tensor([1.0, 0.0]), votive.tensor([0.5, 0.5])
    >>> votive.audio.functional.filtfilt(x, a, b)
    tensor([0.0000, 0.2500, 0.5000, 0.2500, 0.0000])
    """
    forward = lfilter(waveform, a_coeffs, b_coeffs, clamp=False, batching=True)
    return lfilter(forward.flip(-1), a_coeffs, b_coeffs, clamp=clamp, batching=True).flip(-1)


def biquad(
    waveform: Tensor,
    b0: float | Tensor,
    b1: float | Tensor,
    b2: float | Tensor,
    a0: float | Tensor,
    a1: float | Tensor,
    a2: float | Tensor,
) -> Tensor:
    """A filter of second order by its six coefficients, numbers or tensors of one element.

    >>> x = votive.tensor([1.0, 0.0, 0.0])
    >>> votive.audio.functional.biquad(x, 1.0, 0.0, 0.0, 2.0, -1.0, 0.0)
    tensor([0.5000, 0.2500, 0.1250])
    """
    like = {"dtype": waveform.dtype, "device": waveform.device}
    a, b = (
        votive.cat([votive.as_tensor(v, **like).reshape(1) for v in three]) for three in ((a0, a1, a2), (b0, b1, b2))
    )
    return lfilter(waveform, a, b)


def preemphasis(waveform: Tensor, coeff: float = 0.97) -> Tensor:
    """High frequencies raised: `y[n] = x[n] - coeff x[n - 1]`.

    >>> votive.audio.functional.preemphasis(votive.tensor([1.0, 1.0, 1.0]), 0.5)
    tensor([1.0000, 0.5000, 0.5000])
    """
    rest = waveform[..., 1:] - coeff * waveform[..., :-1]
    return votive.cat([waveform[..., :1], rest], -1)


def deemphasis(waveform: Tensor, coeff: float = 0.97) -> Tensor:
    """The inverse of `preemphasis`, `y[n] = x[n] + coeff y[n - 1]`, cut to -1..1.

    >>> votive.audio.functional.deemphasis(votive.tensor([1.0, 0.5, 0.5]), 0.5)
    tensor([1., 1., 1.])
    """
    a, b = (votive.tensor(c, dtype=waveform.dtype, device=waveform.device) for c in ([1.0, -coeff], [1.0, 0.0]))
    return lfilter(waveform, a, b)
