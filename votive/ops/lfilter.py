"""Linear filters in time: `_lfilter` and the products that its gradient needs. Knows no kernel.

The public function is `votive.audio.functional.lfilter`. Both operators take signals
(batch, channel, time) and one filter per channel; each is the other's gradient, so any order works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .registry import F, structured

if TYPE_CHECKING:
    from .types import Tensor


def _infer_filter(x: Spec, a: Spec, b: Spec, reverse: bool) -> Spec:
    if not x.dtype.is_floating_point or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, "lfilter", f"takes floating-point signals, got {x.dtype}.")
    if a.dtype is not x.dtype or b.dtype is not x.dtype:
        fail(
            DtypeError,
            "lfilter",
            f"the signal is {x.dtype}, the coefficients are {a.dtype} and {b.dtype}; they must have one type.",
        )
    if x.ndim != 3 or a.ndim != 2 or a.shape != b.shape or a.shape[0] != x.shape[1]:
        fail(
            ShapeError,
            "lfilter",
            f"needs signals (batch, channel, time) and coefficients (channel, order), got {x.shape}"
            f", {a.shape} and {b.shape}.",
        )
    return x.like(x.shape)


def _back(g: Tensor, a: Tensor, reverse: bool) -> Tensor:
    """What reaches the input of the feedback part."""
    one = F.zeros(a.shape, dtype=a.dtype, device=a.device)
    one[:, :1] = 1
    return F._lfilter(g, a, one, not reverse)


def _by_feedback(g: Tensor, a: Tensor, y: Tensor, reverse: bool) -> Tensor:
    products = F._lag_products(_back(g, a, reverse), y, a.shape[1], reverse)
    # a[0] is not read: it stands for 1.
    return F.constant_pad_nd(-products[:, 1:], (1, 0))


structured(
    "_lfilter(Tensor input, Tensor a, Tensor b, bool reverse)",
    infer=_infer_filter,
    grad={
        "input": lambda c, g: F._lfilter(g, c.a, c.b, not c.reverse),
        "a": lambda c, g: _by_feedback(g, c.a, c.out, c.reverse),
        "b": lambda c, g: F._lag_products(_back(g, c.a, c.reverse), c.input, c.b.shape[1], c.reverse),
    },
    doc="""`y[n] = sum_k b[k] x[n - k] - sum_(k > 0) a[k] y[n - k]`; from the end, `n + k`.

    The gradient of a filter is the filter run in the other direction.
    """,
)


def _infer_products(g: Spec, x: Spec, taps: int, reverse: bool) -> Spec:
    return x.like((x.shape[1], taps))


structured(
    "_lag_products(Tensor grad, Tensor input, int taps, bool reverse)",
    infer=_infer_products,
    grad={"grad": lambda c, g: _fir(c.input, g, c.reverse), "input": lambda c, g: _fir(c.grad, g, not c.reverse)},
    doc="`p[k] = sum_n grad[n] input[n - k]` for each channel; from the end, `input[n + k]`.",
)


def _fir(x: Tensor, b: Tensor, reverse: bool) -> Tensor:
    return F._lfilter(x, F.zeros(b.shape, dtype=b.dtype, device=b.device), b, reverse)
