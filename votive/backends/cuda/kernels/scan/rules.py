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
def _add_exponentials(ta, sa, tb, sb):
    """Sums of exponentials as (t, s), which stands for `t + log(s)`: no logarithm is taken on the way."""
    first = ta > tb
    # Equal infinities have no distance.
    e = m.swift_exp(tl.where(ta == tb, 0.0, -tl.abs(ta - tb)))
    return tl.where(first, ta, tb), tl.where(first, sa + sb * e, sa * e + sb)


@triton.jit
def _later(ka, ia, kb, ib):
    keep = ka > kb
    return tl.where(keep, ka, kb), tl.where(keep, ia, ib)


@triton.jit
def _chained(ga, xa, gb, xb):
    return ga * gb, gb * xa + xb
