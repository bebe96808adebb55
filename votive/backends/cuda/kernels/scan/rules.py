"""What scans do with two neighbours. Knows no memory."""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _logaddexp(a, b):
    top = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    low = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    # Equal infinities have no distance; their sum is themselves.
    return tl.where(low == top, top + 0.6931471805599453, top + m.f_log1p(m.f_exp(low - top)))


@triton.jit
def _later(ka, ia, kb, ib):
    keep = ka > kb
    return tl.where(keep, ka, kb), tl.where(keep, ia, ib)


@triton.jit
def _chained(ga, xa, gb, xb):
    return ga * gb, gb * xa + xb
