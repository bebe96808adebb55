"""Optimizer steps on NumPy, in place. Knows arrays and formulas, no parameter groups.

A step is written for one parameter: its gradient, itself and its states, then the numbers. Each formula keeps
the order of operations that torch uses, so that trajectories agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import dtype as dt
from ...base import kernel
from ..arrays import Array
from .vector_norm import vector_norm

_Rule = Callable[..., None]

_NARROW = frozenset(d.np for d in (*dt.HALF, *dt.FLOAT8))


def _workable(a: Array) -> Array:
    """The array as steps compute on it: half types in float32, complex ones as pairs of reals."""
    if a.ndim == 0:
        a = a.reshape(1)  # NumPy turns 0-d results into scalars, which cannot be written into
    if a.dtype in _NARROW:
        return a.astype(np.float32)
    return a[..., None].view(a.real.dtype) if a.dtype.kind == "c" else a


def _write_back(a: Array, computed: Array) -> None:
    """A narrow array is computed in a copy, and rounded once."""
    if a.dtype in _NARROW:
        np.copyto(a, computed.reshape(a.shape), casting="unsafe")


def _skipped(grads: list[Array], grad_scale: Array | None, found_inf: Array | None) -> bool:
    """Whether nothing is to be written; else gradients are divided by the scale if there is one."""
    if found_inf is not None and found_inf.any():
        return True
    if grad_scale is not None:
        for g in grads:
            wide = _workable(g)
            np.divide(wide, wide.dtype.type(grad_scale.item()), out=wide)
            _write_back(g, wide)
    return False


def _step(op: str, *, states: int, more: int = 0, scaled: bool = False) -> Callable[[_Rule], _Rule]:
    """Register rule(g, p, states..., more..., numbers...) for a step over lists of all of these.

    Of the lists behind parameters and gradients, `states` hold arrays like the parameter, None where a list is
    empty because no option needs it; `more` hold one value per parameter. A `scaled` step ends with the
    arguments of a GradScaler.
    """

    def register(rule: _Rule) -> _Rule:
        @kernel(op, widen=False)
        def run(params: list[Array], grads: list[Array], *rest: Any) -> tuple[()]:
            if scaled:
                *rest, grad_scale, found_inf = rest  # type: ignore[assignment]
                if _skipped(grads, grad_scale, found_inf):
                    return ()
            for i, g in enumerate(grads):
                arrays = [kept[i] if kept else None for kept in (params, *rest[:states])]
                work = [None if a is None else _workable(a) for a in arrays]
                rule(_workable(g), *work, *[values[i] for values in rest[states:][:more]], *rest[states + more :])
                for a, w in zip(arrays, work, strict=True):
                    if a is not None and w is not None:
                        _write_back(a, w)
            return ()

        return rule

    return register


def _descent(g: Array, p: Array, decay: float, maximize: bool) -> Array:
    """The gradient to descend along: negated for ascent, with the weight decay of L2 penalties."""
    if maximize:
        g = -g
    return g + p * decay if decay != 0 else g


def _decayed(g: Array, p: Array, lr: float, decay: float, decoupled: bool, maximize: bool) -> Array:
    """The same, or with decoupled decay the bare gradient, and the parameter shrunk at once."""
    g = _descent(g, p, 0 if decoupled else decay, maximize)
    if decoupled and decay != 0:
        p *= 1 - lr * decay
    return g


def _advance(step: Array) -> float:
    step += 1
    return float(step)


def _lerp(x: Array, end: Array, weight: float) -> None:
    """Move x towards `end`, computed from the nearer of the two as torch does."""
    if weight < 0.5:
        x += (end - x) * weight
    else:
        np.subtract(end, (end - x) * (1 - weight), out=x)


def _decay_square(v: Array, g: Array, beta: float) -> None:
    """The running average of squares: v = beta * v + (1 - beta) * g * g."""
    v *= beta
    v += g * (1 - beta) * g


@_step("_sgd_step", states=1, more=1, scaled=True)
def sgd(
    g: Array,
    p: Array,
    buf: Array | None,
    fresh: bool,
    lr: float,
    momentum: float,
    dampening: float,
    decay: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    g = _descent(g, p, decay, maximize)
    if momentum == 0:
        p += g * -lr
        return
    if buf is None:
        raise ValueError("_sgd_step: momentum needs a buffer for each parameter")
    if fresh:
        buf[...] = g
    else:
        buf *= momentum
        buf += g * (1 - dampening)
    p += (g + buf * momentum if nesterov else buf) * -lr


@_step("_adam_step", states=3, more=1, scaled=True)
def adam(
    g: Array,
    p: Array,
    m: Array,
    v: Array,
    top: Array,
    step: Array,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> None:
    t = _advance(step)
    g = _decayed(g, p, lr, decay, decoupled, maximize)
    _lerp(m, g, 1 - beta1)
    _decay_square(v, g, beta2)
    if amsgrad:
        np.maximum(top, v, out=top)
    denom = np.sqrt(top if amsgrad else v) / (1 - beta2**t) ** 0.5
    denom += eps
    p += m * (-lr / (1 - beta1**t)) / denom


@_step("_rmsprop_step", states=3, more=1)
def rmsprop(
    g: Array,
    p: Array,
    v: Array,
    avg: Array,
    buf: Array | None,
    step: Array,
    lr: float,
    alpha: float,
    eps: float,
    decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    _advance(step)
    g = _descent(g, p, decay, maximize)
    _decay_square(v, g, alpha)
    spread = v
    if centered:
        _lerp(avg, g, 1 - alpha)
        spread = v - avg * avg
    denom = np.sqrt(spread)
    denom += eps
    if momentum > 0:
        if buf is None:
            raise ValueError("_rmsprop_step: momentum needs a buffer for each parameter")
        buf *= momentum
        buf += g / denom
        p += buf * -lr
    else:
        p += g * -lr / denom


@_step("_adagrad_step", states=1, more=1, scaled=True)
def adagrad(
    g: Array, p: Array, total: Array, step: Array, lr: float, lr_decay: float, eps: float, decay: float, maximize: bool
) -> None:
    t = _advance(step)
    g = _descent(g, p, decay, maximize)
    total += g * g
    p += g * (-lr / (1 + (t - 1) * lr_decay)) / (np.sqrt(total) + eps)


@_step("_adadelta_step", states=2, more=1)
def adadelta(
    g: Array,
    p: Array,
    v: Array,
    acc: Array,
    step: Array,
    lr: float,
    rho: float,
    eps: float,
    decay: float,
    maximize: bool,
) -> None:
    _advance(step)
    g = _descent(g, p, decay, maximize)
    _decay_square(v, g, rho)
    delta = np.sqrt(acc + eps) / np.sqrt(v + eps) * g
    _decay_square(acc, delta, rho)
    p += delta * -lr


@_step("_adamax_step", states=2, more=1)
def adamax(
    g: Array,
    p: Array,
    m: Array,
    u: Array,
    step: Array,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    maximize: bool,
) -> None:
    t = _advance(step)
    g = _descent(g, p, decay, maximize)
    _lerp(m, g, 1 - beta1)
    np.maximum(u * beta2, np.abs(g) + eps, out=u)
    p += m * (-lr / (1 - beta1**t)) / u


@_step("_nadam_step", states=2, more=2)
def nadam(
    g: Array,
    p: Array,
    m: Array,
    v: Array,
    product: Array,
    step: Array,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    t = _advance(step)
    g = _decayed(g, p, lr, decay, decoupled, maximize)
    # Dozat, "Incorporating Nesterov Momentum into Adam": the schedule of mu with base 0.96.
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay))
    mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
    product *= mu
    _lerp(m, g, 1 - beta1)
    _decay_square(v, g, beta2)
    denom = np.sqrt(v / (1 - beta2**t))
    denom += eps
    p += g * (-lr * (1.0 - mu) / (1.0 - float(product))) / denom
    p += m * (-lr * mu_next / (1.0 - float(product) * mu_next)) / denom


@_step("_radam_step", states=2, more=1)
def radam(
    g: Array,
    p: Array,
    m: Array,
    v: Array,
    step: Array,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    t = _advance(step)
    g = _decayed(g, p, lr, decay, decoupled, maximize)
    _lerp(m, g, 1 - beta1)
    _decay_square(v, g, beta2)
    correction = 1 - beta2**t
    update = m / (1 - beta1**t) * lr
    # Liu et al. 2019, algorithm 2: rho_t is the length of the average's window; the variance of the
    # adaptive rate is finite, and its rectification defined, only beyond 4 (here 5).
    longest = 2 / (1 - beta2) - 1
    rho = longest - 2 * t * beta2**t / correction
    if rho > 5.0:
        top = (rho - 4) * (rho - 2) * longest
        rectifier = (top / ((longest - 4) * (longest - 2) * rho)) ** 0.5
        update = update * (correction**0.5 / (np.sqrt(v) + eps)) * rectifier
    p -= update


@_step("_lion_step", states=1)
def lion(g: Array, p: Array, m: Array, lr: float, beta1: float, beta2: float, decay: float, maximize: bool) -> None:
    g = _decayed(g, p, lr, decay, True, maximize)
    # Chen et al. 2023, algorithm 2: the update looks further ahead than the momentum kept.
    p += np.sign(m * beta1 + g * (1 - beta1)) * -lr
    _lerp(m, g, 1 - beta2)


@_step("_rprop_step", states=2, more=1)
def rprop(
    g: Array,
    p: Array,
    prev: Array,
    size: Array,
    step: Array,
    eta_minus: float,
    eta_plus: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> None:
    _advance(step)
    g = -g if maximize else g
    factor = np.sign(g * prev)
    reversed_ = factor < 0
    factor[factor > 0] = eta_plus
    factor[reversed_] = eta_minus
    factor[factor == 0] = 1
    size *= factor
    np.clip(size, smallest, largest, out=size)
    g = np.where(reversed_, 0, g)
    p -= np.sign(g) * size
    prev[...] = g


@_step("_asgd_step", states=1, more=3)
def asgd(
    g: Array,
    p: Array,
    ax: Array,
    mu: Array,
    eta: Array,
    step: Array,
    lr: float,
    lambd: float,
    alpha: float,
    t0: float,
    decay: float,
    maximize: bool,
) -> None:
    t = _advance(step)
    g = _descent(g, p, decay, maximize)
    rate = float(eta)
    p *= 1 - lambd * rate
    p += g * -rate
    if float(mu) == 1:
        ax[...] = p
    else:
        ax += (p - ax) * float(mu)
    eta[...] = lr / (1 + lambd * lr * t) ** alpha
    mu[...] = 1 / max(1, t - t0)


@_step("_average_step", states=0)
def average(value: Array, mean: Array, weight: float) -> None:
    _lerp(mean, value, weight)


@kernel("_amp_foreach_non_finite_check_and_unscale_", widen=False)
def check_and_unscale(grads: list[Array], found_inf: Array, inv_scale: Array) -> tuple[()]:
    factor = inv_scale.item()
    for g in grads:
        wide = _workable(g)
        if not np.isfinite(wide).all():
            found_inf[...] = 1
        if factor != 1:
            np.multiply(wide, factor, out=wide)
            _write_back(g, wide)
    return ()


@kernel("_amp_update_scale_", widen=False)
def update_scale(
    scale: Array, tracker: Array, found_inf: Array, growth: float, backoff: float, interval: int
) -> tuple[()]:
    if found_inf.any():
        scale[...] = scale * backoff
        tracker[...] = 0
        return ()
    tracker += 1
    if tracker.item() == interval:
        grown = (scale * growth).astype(np.float32)
        if np.isfinite(grown).all():
            scale[...] = grown
        tracker[...] = 0
    return ()


@kernel("_scale_", widen=False)
def scale(tensors: list[Array], factor: Array) -> tuple[()]:
    for t in tensors:
        wide = _workable(t)
        np.multiply(wide, factor.astype(wide.dtype), out=wide)
        _write_back(t, wide)
    return ()


@kernel("_total_norm", widen=False)
def total_norm(tensors: list[Array], ord: float) -> Array:
    norms = []
    for t in tensors:
        wide = t.astype(np.float32) if t.dtype in _NARROW else t
        norm = vector_norm(wide, ord, tuple(range(t.ndim)), False)
        norms.append(norm.astype(t.dtype) if t.dtype in _NARROW else norm)
    kinds = [n.astype(np.float32) if n.dtype in _NARROW else n for n in norms]
    return vector_norm(np.array(kinds), ord, (0,), False)
