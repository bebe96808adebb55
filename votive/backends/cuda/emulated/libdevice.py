"""`libdevice` for Triton's interpreter: the same names, computed by NumPy. Knows no GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from ...common.primitives import FUNCTIONS


def _tgamma(x: float) -> float:
    try:
        return math.gamma(x)
    except (OverflowError, ValueError):
        return math.inf


_OTHER: dict[str, Callable[..., Any]] = {
    "div_rn": np.divide,
    "fast_dividef": np.divide,
    "rint": np.rint,
    "fmod": np.fmod,
    "cyl_bessel_i0": FUNCTIONS["i0"],
    "cyl_bessel_i1": FUNCTIONS["i1"],
    "normcdfinv": FUNCTIONS["ndtri"],
    "pow": np.power,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "fast_tanf": np.tan,
    "fma_rn": lambda a, b, c: a * b + c,
    "tgamma": np.vectorize(_tgamma, otypes=[float]),
}


class _Library:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        fn = _OTHER.get(name) or FUNCTIONS[name]

        def run(*args: Any) -> Any:
            given = [a for a in args if isinstance(a, tl.tensor)]
            kind = given[0].dtype
            arrays = [a.handle.data if isinstance(a, tl.tensor) else a for a in args]
            with np.errstate(all="ignore"):
                out = np.asarray(fn(*arrays)).astype(given[0].handle.data.dtype)
            block = any(a.type.is_block() for a in given)
            type_ = tl.block_type(kind, list(out.shape)) if block else kind
            return tl.tensor(TensorHandle(out, kind), type_)

        return run


libdevice = _Library()
