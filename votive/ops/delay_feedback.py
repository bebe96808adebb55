"""Echoes that come back: `_delay_feedback`, a recurrence whose delays change with time.

Flanger and phaser (`votive.audio.functional`) are made of it. Knows no kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .registry import F, structured

if TYPE_CHECKING:
    from .types import Context, Tensor


def _infer(x: Spec, gain: Spec, lag: Spec, transposed: bool) -> Spec:
    if not x.dtype.is_floating_point or x.dtype in dt.FLOAT8 or gain.dtype is not x.dtype:
        fail(
            UnsupportedError,
            "delay_feedback",
            f"takes signals and gains of one floating-point type, got {x.dtype} and {gain.dtype}.",
        )
    if lag.dtype is not dt.int64:
        fail(UnsupportedError, "delay_feedback", f"lags are int64, got {lag.dtype}.")
    if x.ndim != 3 or gain.ndim != 3 or gain.shape != lag.shape or gain.shape[1:] != x.shape[1:]:
        fail(
            ShapeError,
            "delay_feedback",
            "needs (batch, channel, time), and gains and lags (echo, channel, time), got "
            f"{x.shape}, {gain.shape} and {lag.shape}.",
        )
    return x.like(x.shape)


def _by_gain(c: Context, g: Tensor) -> Any:
    back = F._delay_feedback(g, c.gain, c.lag, not c.transposed)
    late, early = (c.out, back) if c.transposed else (back, c.out)
    place = F.arange(c.lag.shape[-1], device=c.lag.device) - c.lag  # (echo, channel, time)
    parts = []
    for echo in place.unbind(0):
        inside = echo >= 0
        read = F.take_along_dim(early, F.where(inside, echo, 0).unsqueeze(0), -1)
        parts.append((late * F.where(inside, read, 0.0)).sum(0))
    return F.stack(parts)


structured(
    "_delay_feedback(Tensor input, Tensor gain, Tensor lag, bool transposed)",
    infer=_infer,
    grad={"input": lambda c, g: F._delay_feedback(g, c.gain, c.lag, not c.transposed), "gain": _by_gain, "lag": None},
    doc="""`y[n] = x[n] + sum_j gain[j, n] y[n - lag[j, n]]`, where lags are at least 1.

    `transposed` solves with the transpose of that matrix, which is what gradients need.
    """,
)
