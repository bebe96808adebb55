"""Gamma and Dirichlet numbers, and how they move with their parameters. Knows arrays only.

The slope of a sample x by a shape is the mean of `m - log t` over t < x, m being its mean over all
t, divided by the density at x; or the same over t > x with the sign turned. One of the two has an
integrand of one sign. `_tail` takes that one, in a variable u where density times dt/du is smooth
and log-concave, so that a fixed quadrature is exact to float64 for every shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ...base import kernel
from ...common.philox import philox4x32
from ...common.quadrature import nodes
from ...common.sampling import gamma
from ...common.sampling_words import open_unit
from ...common.special.approx import F64, elementwise, fill
from ...common.special.gamma import digamma

# Where the integrand has fallen by exp(-40) the rest is below the last bit of the whole.
_DROP = 40.0
# The densities bend around u = 0 on a scale of 1, and are exponential far from it. Cut here, each
# piece is smooth on its own scale.
_CUTS = (-40.0, -20.0, -8.0, 0.0, 8.0, 20.0, 40.0)
_NEWTON = 60

Function = Callable[[F64], F64]


def _tail(u: F64, side: F64, fall: Function, steepness: Function, start: F64) -> Any:
    """Of a weight exp(-fall(w)) at the places u + side w, w > 0: f -> ∫ f(w) exp(-fall(w)) dw.

    `fall` is convex and beyond _DROP at `start`; `steepness` is its derivative.
    """
    end = start
    for _ in range(_NEWTON):  # comes down monotonically, the function being convex
        step = (fall(end) - _DROP) / steepness(end)
        end = end - step
        if np.all(np.abs(step) <= 1e-3 * end):
            break
    cuts = np.sort([np.clip(side * (at - u), 0.0, end) for at in _CUTS], axis=0)
    pieces = list(zip((np.zeros_like(u), *cuts), (*cuts, end), strict=True))

    def integral(f: Function) -> F64:
        total = np.zeros_like(u)
        for low, high in pieces:
            if not np.any(high > low):
                continue
            for y, weight in zip(*nodes(), strict=True):
                w = low + (high - low) * y
                total += weight * (high - low) * f(w) * np.exp(-fall(w))
        return total

    return integral


def _log_less_digamma(a: F64) -> F64:
    """log a - digamma(a), without the cancellation at large a (DLMF 5.11.2)."""
    v = 1 / (a * a)
    large = 0.5 / a + v * (1 / 12 - v * (1 / 120 - v / 252))
    return np.where(a < 100, np.log(a) - digamma(a), large)


def _gamma_slope(alpha: F64, x: F64) -> F64:
    """t = exp(u); density times dt/du is exp(alpha u - exp(u)) but for a constant."""
    near = np.abs(x - alpha) < 0.5 * alpha
    relative = np.where(near, np.log1p((x - alpha) / alpha), np.log(x) - np.log(alpha))
    ahead = relative + _log_less_digamma(alpha)  # log x - digamma(alpha)
    side = np.where(ahead < 0, -1.0, 1.0)
    start = np.where(side < 0, (_DROP + x) / alpha, np.log1p((_DROP + 8 * alpha) / x) + 2)
    integral = _tail(
        np.log(x),
        side,
        lambda w: x * np.expm1(side * w) - alpha * (side * w),
        lambda w: side * (x * np.exp(side * w) - alpha),
        start,
    )
    return x * integral(lambda w: np.abs(ahead) + w)


def _beta_slope(x: F64, alpha: F64, beta: F64) -> F64:
    """t = 1 / (1 + exp(-u)); density times dt/du is t^alpha (1 - t)^beta but for a constant."""
    ahead = np.log(x) - (digamma(alpha) - digamma(alpha + beta))
    up = ahead >= 0
    side = np.where(up, 1.0, -1.0)
    u = np.log(x) - np.log1p(-x)
    # The chance on the side that is gone to, which grows, and its shape; and the other one.
    p, q = np.where(up, x, 1 - x), np.where(up, 1 - x, x)
    gaining, losing = np.where(up, alpha, beta), np.where(up, beta, alpha)

    def loss(w: F64) -> F64:
        """log(q + p exp(w)), by which the logarithm of the other chance has sunk."""
        return np.where(w < 30, np.log1p(p * np.expm1(w)), w + np.log(p + q * np.exp(-w)))

    def gain(w: F64) -> F64:
        return np.where(p > 0.5, -np.log1p(q * np.expm1(-w)), w - loss(w))

    def steepness(w: F64) -> F64:
        t = 1 / (1 + np.exp(-(u + side * w)))
        return side * (beta * t - alpha * (1 - t))

    # The weight at a place v is at most exp(-losing |v|).
    log_weight = alpha * np.log(x) + beta * np.log1p(-x)
    start = (_DROP - log_weight) / losing - side * u
    integral = _tail(u, side, lambda w: losing * loss(w) - gaining * gain(w), steepness, start)
    return x * integral(lambda w: np.abs(ahead) + np.where(up, gain(w), loss(w)))


@kernel("_standard_gamma_grad")
@elementwise
def standard_gamma_grad(alpha: F64, x: F64) -> F64:
    """-(dF/dalpha) / density at x, of the gamma distribution of shape alpha."""
    out = np.where((alpha > 0) & (x == 0), 0.0, np.nan)
    fill(out, (alpha > 0) & (x > 0) & np.isfinite(alpha * x), _gamma_slope, alpha, x)
    return out


@kernel("_dirichlet_grad")
@elementwise
def dirichlet_grad(x: F64, alpha: F64, total: F64) -> F64:
    """-(dF/dalpha) / density / (1 - x) at x, of the beta distribution of (alpha, total - alpha)."""
    out = np.where(x == 0, 0.0, np.nan)
    # With one coordinate there is nothing to move against.
    out[(x > 0) & (total == alpha)] = 0.0
    inside = (x > 0) & (x < 1) & (alpha > 0) & (total > alpha) & np.isfinite(total)
    fill(out, inside, _beta_slope, x, alpha, total - alpha)
    return out


@kernel("_gamma", widen=False)
def standard_gamma(alpha: Any, key: int, counter: int) -> Any:
    return gamma(key, counter, alpha.shape, alpha, alpha.dtype)


@kernel("_dirichlet", widen=False)
def dirichlet(alpha: Any, key: int, counter: int) -> Any:
    """Gamma numbers over their sum.

    Below shape 1 the sampler multiplies a number of shape alpha + 1 by u^(1 / alpha), which
    vanishes for small shapes; here the same u works on logarithms.
    """
    shapes = alpha.astype(np.float64)
    small = shapes < 1
    logs = np.log(gamma(key, counter, shapes.shape, shapes + small, np.float64))
    last = np.arange(shapes.size, dtype=np.uint64) * np.uint64(2) + np.uint64(counter + 1)
    u = open_unit(philox4x32(key, last)[:, 2:].reshape(-1), wide=True).reshape(shapes.shape)
    logs = np.where(small, logs + np.log(u) / shapes, logs)
    weights = np.exp(logs - logs.max(-1, keepdims=True, initial=-np.inf))
    # Zero and one are no values of this distribution; the nearest numbers stand in, as in torch.
    kind = ml_dtypes.finfo(alpha.dtype)
    low, high = float(kind.smallest_normal), 1 - float(kind.epsneg)
    return np.clip(weights / weights.sum(-1, keepdims=True), low, high)
