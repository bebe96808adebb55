"""Resampling by a filter for each phase: `_polyphase`, its transpose and its products.

The public function is `votive.audio.functional.resample`. Result n of a rate `new / orig` reads the
`taps` samples from `floor(n orig / new) - offset` on, with row `n mod new` of a kernel (new, taps);
outside of the signal there are zeros. Knows no kernel.
"""

from __future__ import annotations

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .registry import F, structured


def _check(x: Spec, kernel: Spec) -> None:
    if not x.dtype.is_floating_point or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, "polyphase", f"takes floating-point signals, got {x.dtype}.")
    if kernel.dtype is not x.dtype:
        fail(DtypeError, "resample", f"the signal is {x.dtype}, the kernel {kernel.dtype}; give both one type.")
    if x.ndim != 2 or kernel.ndim != 2:
        fail(
            ShapeError,
            "polyphase",
            f"needs signals (signal, time) and a kernel (phase, tap), got {x.shape} and {kernel.shape}.",
        )


def _infer(x: Spec, kernel: Spec, orig: int, offset: int, length: int) -> Spec:
    _check(x, kernel)
    return x.like((x.shape[0], length))


structured(
    "_polyphase(Tensor input, Tensor kernel, int orig, int offset, int length)",
    infer=_infer,
    grad={
        "input": lambda c, g: F._polyphase_transposed(g, c.kernel, c.orig, c.offset, c.input.shape[1]),
        "kernel": lambda c, g: F._polyphase_products(
            g, c.input, c.orig, c.offset, c.kernel.shape[0], c.kernel.shape[1]
        ),
    },
    doc="`y[n] = sum_k kernel[n mod new, k] x[floor(n orig / new) - offset + k]`.",
)

structured(
    "_polyphase_transposed(Tensor input, Tensor kernel, int orig, int offset, int length)",
    infer=_infer,
    grad={
        "input": lambda c, g: F._polyphase(g, c.kernel, c.orig, c.offset, c.input.shape[1]),
        "kernel": lambda c, g: F._polyphase_products(
            c.input, g, c.orig, c.offset, c.kernel.shape[0], c.kernel.shape[1]
        ),
    },
    doc="The transpose of `_polyphase`: every result sends its value back to what it read.",
)


def _infer_products(g: Spec, x: Spec, orig: int, offset: int, new: int, taps: int) -> Spec:
    return x.like((new, taps))


structured(
    "_polyphase_products(Tensor grad, Tensor input, int orig, int offset, int new, int taps)",
    infer=_infer_products,
    grad={
        "grad": lambda c, g: F._polyphase(c.input, g, c.orig, c.offset, c.grad.shape[1]),
        "input": lambda c, g: F._polyphase_transposed(c.grad, g, c.orig, c.offset, c.input.shape[1]),
    },
    doc="What each tap of the kernel of `_polyphase` receives.",
)
