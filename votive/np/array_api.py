"""The array-API standard for plain tensors: `tensor.__array_namespace__()`. The functions of `votive.np` on tensors.

Dtypes are votive's here, arrays are tensors, and promotion is the standard's also for tensors without dimensions.
"""

from __future__ import annotations

import functools
import math as _math
import sys
from typing import Any

import numpy as _numpy

from ..core import dtype as _dt
from .array import ndarray as _ndarray
from .element_types import finfo as _finfo
from .element_types import iinfo as _iinfo
from .standard import _NAMES, Info, checked_version
from .standard import __array_api_version__ as __array_api_version__

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None

_FUNCTIONS = (
    "abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and "
    "bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to "
    "can_cast ceil clip concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide "
    "empty empty_like equal exp expand_dims expm1 eye flip floor floor_divide from_dlpack full full_like greater "
    "greater_equal hypot imag isdtype isfinite isin isinf isnan less less_equal linspace log log10 log1p log2 "
    "logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min "
    "minimum moveaxis multiply negative nextafter nonzero not_equal ones ones_like permute_dims positive pow prod "
    "real reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt "
    "square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc unique_all "
    "unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like broadcast_shapes"
)
_LINALG = (
    "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose "
    "outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm eig eigvals"
)
_FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift"


def _plain(x: Any) -> Any:
    """Results as tensors and votive dtypes, inside tuples, too."""
    if isinstance(x, _ndarray):
        return x.tensor
    if isinstance(x, _numpy.dtype):
        return _dt.from_numpy(x)
    if isinstance(x, tuple):
        values = [_plain(v) for v in x]
        return type(x)(*values) if hasattr(x, "_fields") else tuple(values)
    return [_plain(v) for v in x] if isinstance(x, list) else x


def _lifted(fn: Any) -> Any:
    @functools.wraps(fn, assigned=("__name__", "__doc__"), updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        return _plain(fn(*args, **kwargs))

    return run


class _Part:
    """An extension of the standard: `linalg` and `fft`."""

    def __init__(self, source: Any, names: str) -> None:
        for name in names.split():
            setattr(self, name, _lifted(getattr(source, name)))


def _filled() -> dict[str, Any]:
    source = sys.modules[__package__]
    found = {name: _lifted(getattr(source, name)) for name in _FUNCTIONS.split()}
    found |= {name: _dt.by_name(name) for name in _NAMES}
    found["linalg"], found["fft"] = _Part(source.linalg, _LINALG), _Part(source.fft, _FFT)
    return found


def finfo(type: Any, /) -> Any:
    """Limits of a floating-point dtype."""
    info = _finfo(type)
    info.dtype = _dt.from_numpy(info.dtype)
    return info


def iinfo(type: Any, /) -> Any:
    """Limits of an integer dtype."""
    info = _iinfo(type)
    info.dtype = _dt.from_numpy(info.dtype)
    return info


def __array_namespace_info__() -> Info:
    """Dtypes, devices and capabilities of this namespace."""
    return Info(_dt.by_name)


def namespace(api_version: str | None = None) -> Any:
    """This module, for a version of the standard."""
    checked_version(api_version)
    return sys.modules[__name__]


globals().update(_filled())
