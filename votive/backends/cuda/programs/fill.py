"""One value over a view of any layout. Knows no operators."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.layout import Spec
from .. import runtime as rt
from ..programs.index_space import IndexSpace, cached_by_spec, word
from ..runtime.views import View


def bits(value: Any, dtype: dt.dtype) -> int:
    """A number as an element of a dtype, its bits read as an integer."""
    if value.__class__ in (int, bool) or (value.__class__ is float and value != 0):
        kind: Any = value.__class__
        return _bits(kind, value, dtype)
    return _converted(value, dtype)  # zeros of both signs are equal


@lru_cache(256)
def _bits(kind: Any, value: Any, dtype: dt.dtype) -> int:
    return _converted(value, dtype)


def _converted(value: Any, dtype: dt.dtype) -> int:
    with np.errstate(all="ignore"):
        if dtype.category == dt.INT and isinstance(value, int):
            value &= (1 << 64) - 1
            array = np.array([value], np.uint64).astype(dtype.np)
        else:
            array = np.array([value]).astype(dtype.np)
    kind = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[dtype.itemsize]
    return int(array.view(kind)[0])


def filler(spec: Spec) -> Any:
    """`fill(address, bits)` for memory of a layout."""
    p = IndexSpace(spec.shape, [spec.strides])
    types = {"o": word(spec.dtype), "v": "i64"}
    return p.kernel("fill", types, p.stores("v.to(o.dtype.element_ty)"))


_fillers = cached_by_spec(filler)


def fill_view(to: View, value: Any) -> None:
    """Overwrite a view with a number."""
    spec = to.spec
    if not spec.numel:
        return
    if spec.dtype is dt.complex128:  # no word is so wide
        for part, v in zip(parts(to), (complex(value).real, complex(value).imag), strict=True):
            fill_view(part, v)
        return
    number = bits(value, spec.dtype)
    one = number & 0xFF
    repeated = int.from_bytes(bytes([one]) * spec.dtype.itemsize, "little", signed=False)
    if spec.contiguous and number & ((1 << 8 * spec.dtype.itemsize) - 1) == repeated:
        rt.runtime.driver.fill_bytes(to.ptr, one, spec.nbytes, rt.here.stream)
    else:
        _fillers(spec)(to.ptr, number)


def parts(v: View) -> tuple[View, View]:
    """The real and imaginary parts of a complex view, in its memory."""
    spec = v.spec
    half = spec.like(dtype=spec.dtype.to_real(), strides=tuple(2 * s for s in spec.strides))
    return View(v.ptr, half, v.storage), View(v.ptr + half.dtype.itemsize, half, v.storage)


def can_fill(dtype: dt.dtype) -> bool:
    return word(dtype) is not None or dtype is dt.complex128
