"""Fourier transforms with NumPy's names; single precision stays single."""

from __future__ import annotations

from typing import Any

from .. import fft as T
from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, ndarray, to_tensor, wrap
from .creation import resolved
from .layout import axes_of, axis_of
from .ufunc import store

_NORMS = (None, "backward", "ortho", "forward")


def _source(a: Any, real: bool = False) -> Tensor:
    t = to_tensor(a)
    if t.dtype.category in (dt.INT, dt.BOOL):
        return cast(t, "float64")
    if t.dtype in dt.HALF:
        t = cast(t, "float32")
    if real and t.dtype.is_complex:
        raise TypeError(
            "ufunc 'rfft_n_even' did not contain a loop with signature matching types: real input is needed"
        )
    return t


def _one(name: str, a: Any, n: Any, axis: Any, norm: Any, out: Any) -> Any:
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    t = _source(a, name in ("rfft", "ihfft"))
    dim = axis_of(axis, t.ndim)
    if n is not None and n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    if name in ("irfft", "hfft") and n is None:
        n = (int(t.shape[dim]) - 1) * 2
    if t.shape[dim] == 0 and n is None:
        raise ValueError("Invalid number of FFT data points (0) specified.")
    value = getattr(T, name)(t, n=n, dim=dim, norm=norm or "backward")
    return wrap(value) if out is None else store(name, value, out)


def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The discrete Fourier transform.

    >>> votive.np.fft.fft([1.0, 0.0])
    array([1.+0.j, 1.+0.j])
    """
    return _one("fft", a, n, axis, norm, out)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fft`."""
    return _one("ifft", a, n, axis, norm, out)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The transform of real values, without the half that mirrors it."""
    return _one("rfft", a, n, axis, norm, out)


def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft`."""
    return _one("irfft", a, n, axis, norm, out)


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The transform of values with Hermitian symmetry."""
    return _one("hfft", a, n, axis, norm, out)


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `hfft`."""
    return _one("ihfft", a, n, axis, norm, out)


def _several(name: str, a: Any, s: Any, axes: Any, norm: Any, out: Any) -> Any:
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    t = _source(a, name == "rfftn")
    if axes is None:
        dims = tuple(range(t.ndim - len(s), t.ndim)) if s is not None else tuple(range(t.ndim))
    else:
        dims = tuple(axis_of(i, t.ndim) for i in axes)
    sizes = (
        None if s is None else [int(t.shape[d]) if n in (-1, None) else int(n) for n, d in zip(s, dims, strict=True)]
    )
    if name == "irfftn" and sizes is None and dims:
        sizes = [int(t.shape[d]) for d in dims]
        sizes[-1] = (sizes[-1] - 1) * 2
    if len(set(dims)) != len(dims):  # NumPy goes through repeated axes one after the other
        value = t
        for k in reversed(range(len(dims))):
            value = getattr(T, name.removesuffix("n"))(
                value, n=None if sizes is None else sizes[k], dim=dims[k], norm=norm
            )
    elif not dims:
        value = t
    else:
        value = getattr(T, name)(t, s=sizes, dim=list(dims), norm=norm or "backward")
    return wrap(value) if out is None else store(name, value, out)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The transform along several axes."""
    return _several("fftn", a, s, axes, norm, out)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fftn`."""
    return _several("ifftn", a, s, axes, norm, out)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The transform of real values along several axes."""
    return _several("rfftn", a, s, axes, norm, out)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfftn`."""
    return _several("irfftn", a, s, axes, norm, out)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The transform along two axes."""
    return fftn(a, s, axes, norm, out)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fft2`."""
    return ifftn(a, s, axes, norm, out)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The transform of real values along two axes."""
    return rfftn(a, s, axes, norm, out)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft2`."""
    return irfftn(a, s, axes, norm, out)


def fftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> ndarray:
    """The frequencies of the values of `fft`."""
    if not hasattr(n, "__index__"):
        raise ValueError("n should be an integer")
    k = F.arange(int(n), device=resolved(device))
    k = F.where(F.lt(k, (n + 1) // 2), k, k - n)
    return wrap(cast(cast(k, "float64") * (1.0 / (n * d)), dtype))


def rfftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> ndarray:
    """The frequencies of the values of `rfft`."""
    if not hasattr(n, "__index__"):
        raise ValueError("n should be an integer")
    k = F.arange(int(n) // 2 + 1, device=resolved(device))
    return wrap(cast(cast(k, "float64") * (1.0 / (n * d)), dtype))


def _shifted(x: Any, axes: Any, sign: int) -> ndarray:
    t = to_tensor(x)
    for i in axes_of(axes, t.ndim):
        half = int(t.shape[i]) // 2
        t = F.roll(t, half if sign > 0 else -half, i) if t.numel() else t
    return wrap(t)


def fftshift(x: Any, axes: Any = None) -> ndarray:
    """The zero frequency in the middle."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> ndarray:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)
