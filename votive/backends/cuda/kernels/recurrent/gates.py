"""What the units of a recurrent network do in one step, forwards and backwards. Knows no memory.

`MODE`: 0 and 1 are plain units with tanh and relu, 2 an LSTM, 3 a GRU.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m

MODES = {"tanh": 0, "relu": 1, "lstm": 2, "gru": 3}


@triton.jit
def sigmoid(x, FAST: tl.constexpr):
    if FAST:
        return tl.sigmoid(x)
    else:
        # One division, since every step waits for it; exp of what is not positive does not overflow.
        e = m.f_exp(-tl.abs(x))
        y = 1 / (1 + e)
        return tl.where(x >= 0, y, e * y)


@triton.jit
def tanh(x, FAST: tl.constexpr):
    return m.fast_tanh(x) if FAST else m.f_tanh(x)


@triton.jit
def plain(x, MODE: tl.constexpr, FAST: tl.constexpr):
    """The new state of a plain unit. A comparison would turn NaN into 0."""
    if MODE == 0:
        return tanh(x, FAST)
    else:
        return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def lstm(i, f, g, o, c, FAST: tl.constexpr):
    """(the gates i, f, g, o, the new cell, the new state)."""
    i = sigmoid(i, FAST)
    f = sigmoid(f, FAST)
    g = tanh(g, FAST)
    o = sigmoid(o, FAST)
    c = f * c + i * g
    return i, f, g, o, c, o * tanh(c, FAST)


@triton.jit
def gru(xr, xz, xn, hn, h, FAST: tl.constexpr):
    """(the gates r, z, n, the new state); `hn` is what r multiplies."""
    r = sigmoid(xr, FAST)
    z = sigmoid(xz, FAST)
    n = tanh(xn + r * hn, FAST)
    return r, z, n, z * (h - n) + n


@triton.jit
def plain_backward(dh, h, MODE: tl.constexpr):
    """The gradient by what the activation got."""
    if MODE == 0:
        return dh * (1 - h * h)
    else:
        return tl.where(h > 0, dh, 0.0)


@triton.jit
def lstm_backward(dh, dc, i, f, g, o, before, c, FAST: tl.constexpr):
    """(gradients by i, f, g, o before their activations, and by the cell before)."""
    y = tanh(c, FAST)
    dc += dh * o * (1 - y * y)
    return dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g * g), dh * y * o * (1 - o), dc * f


@triton.jit
def gru_backward(dh, r, z, n, hn, h):
    """(gradients by r, z, n before their activations, by what r multiplies, and directly by the
    state before).
    """
    dn = dh * (1 - z) * (1 - n * n)
    return dn * hn * r * (1 - r), dh * (h - n) * z * (1 - z), dn, dn * r, dh * z
