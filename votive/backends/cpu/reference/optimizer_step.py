"""Optimizer steps on NumPy, in place. Knows arrays and formulas, no parameter groups.

Each formula keeps the order of operations that torch uses, so that trajectories agree to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....core import dtype as dt
from ...base import kernel
from .vector_norm import vector_norm

_NARROW = frozenset(d.np for d in (*dt.HALF, *dt.FLOAT8))


def _workable(a: Any) -> Any:
    """The array as steps compute on it: half types in float32, complex ones as pairs of reals."""
    if a.ndim == 0:
        a = a.reshape(1)  # NumPy turns 0-d results into scalars, which cannot be written into
    if a.dtype in _NARROW:
        return a.astype(np.float32)
    return a[..., None].view(a.real.dtype) if a.dtype.kind == "c" else a


def _each(grads: Any, *written: Any) -> Iterator[tuple[Any, ...]]:
    """One parameter at a time: its gradient and the arrays to write; half types round once.

    A narrow array is written back when the loop asks for the next one: in `zip` this stands first.
    """
    for g, *outs in zip(grads, *written, strict=True):
        work = [_workable(a) for a in outs]
        yield (_workable(g), *work)
        for a, w in zip(outs, work, strict=True):
            if a.dtype in _NARROW:
                np.copyto(a, w.reshape(a.shape), casting="unsafe")


def _descent(g: Any, p: Any, weight_decay: float, maximize: bool) -> Any:
    """The gradient to descend along: negated for ascent, with the weight decay of L2 penalties."""
    if maximize:
        g = -g
    return g + p * weight_decay if weight_decay != 0 else g


def _skipped(grads: Any, grad_scale: Any, found_inf: Any) -> bool:
    """Whether nothing is to be written; else gradients are divided by the scale if there is one."""
    if found_inf is not None and found_inf.any():
        return True
    if grad_scale is not None:
        for g in grads:
            wide = _workable(g)
            np.divide(wide, wide.dtype.type(grad_scale.item()), out=wide)
            if g.dtype in _NARROW:
                np.copyto(g, wide.reshape(g.shape), casting="unsafe")
    return False


def _advance(step: Any) -> float:
    step += 1
    return float(step)


def _lerp(x: Any, end: Any, weight: float) -> None:
    """Move x towards `end`, computed from the nearer of the two as torch does."""
    if weight < 0.5:
        x += (end - x) * weight
    else:
        np.subtract(end, (end - x) * (1 - weight), out=x)


def _decay_square(v: Any, g: Any, beta: float) -> None:
    """The running average of squares: v = beta * v + (1 - beta) * g * g."""
    v *= beta
    v += g * (1 - beta) * g


@kernel("_sgd_step", widen=False)
def sgd(
    params: Any,
    grads: Any,
    buffers: Any,
    fresh: Any,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> tuple[()]:
    if _skipped(grads, grad_scale, found_inf):
        return ()
    if momentum == 0:
        for g, p in _each(grads, params):
            p += _descent(g, p, weight_decay, maximize) * -lr
        return ()
    for (g, p, buf), new in zip(_each(grads, params, buffers), fresh, strict=True):
        g = _descent(g, p, weight_decay, maximize)
        if new:
            buf[...] = g
        else:
            buf *= momentum
            buf += g * (1 - dampening)
        p += (g + buf * momentum if nesterov else buf) * -lr
    return ()


@kernel("_adam_step", widen=False)
def adam(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    maxima: Any,
    steps: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> tuple[()]:
    if _skipped(grads, grad_scale, found_inf):
        return ()
    lists = (params, exp_avgs, exp_avg_sqs, *([maxima] if amsgrad else []))
    for (g, p, m, v, *top), step in zip(_each(grads, *lists), steps, strict=True):
        t = _advance(step)
        g = _descent(g, p, 0 if decoupled else weight_decay, maximize)
        if decoupled and weight_decay != 0:
            p *= 1 - lr * weight_decay
        _lerp(m, g, 1 - beta1)
        _decay_square(v, g, beta2)
        if amsgrad:
            np.maximum(top[0], v, out=top[0])
        denom = np.sqrt(top[0] if amsgrad else v) / (1 - beta2**t) ** 0.5
        denom += eps
        p += m * (-lr / (1 - beta1**t)) / denom
    return ()


@kernel("_rmsprop_step", widen=False)
def rmsprop(
    params: Any,
    grads: Any,
    square_avgs: Any,
    grad_avgs: Any,
    buffers: Any,
    steps: Any,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> tuple[()]:
    lists = [params, square_avgs]
    lists += [grad_avgs] if centered else []
    lists += [buffers] if momentum > 0 else []
    for (g, p, v, *more), step in zip(_each(grads, *lists), steps, strict=True):
        _advance(step)
        g = _descent(g, p, weight_decay, maximize)
        _decay_square(v, g, alpha)
        spread = v
        if centered:
            _lerp(more[0], g, 1 - alpha)
            spread = v - more[0] * more[0]
        denom = np.sqrt(spread)
        denom += eps
        if momentum > 0:
            buf = more[-1]
            buf *= momentum
            buf += g / denom
            p += buf * -lr
        else:
            p += g * -lr / denom
    return ()


@kernel("_adagrad_step", widen=False)
def adagrad(
    params: Any,
    grads: Any,
    sums: Any,
    steps: Any,
    lr: float,
    lr_decay: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> tuple[()]:
    if _skipped(grads, grad_scale, found_inf):
        return ()
    for (g, p, total), step in zip(_each(grads, params, sums), steps, strict=True):
        t = _advance(step)
        g = _descent(g, p, weight_decay, maximize)
        total += g * g
        p += g * (-lr / (1 + (t - 1) * lr_decay)) / (np.sqrt(total) + eps)
    return ()


@kernel("_adadelta_step", widen=False)
def adadelta(
    params: Any,
    grads: Any,
    square_avgs: Any,
    acc_deltas: Any,
    steps: Any,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> tuple[()]:
    lists = (params, square_avgs, acc_deltas)
    for (g, p, v, acc), step in zip(_each(grads, *lists), steps, strict=True):
        _advance(step)
        g = _descent(g, p, weight_decay, maximize)
        _decay_square(v, g, rho)
        delta = np.sqrt(acc + eps) / np.sqrt(v + eps) * g
        _decay_square(acc, delta, rho)
        p += delta * -lr
    return ()


@kernel("_adamax_step", widen=False)
def adamax(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_infs: Any,
    steps: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> tuple[()]:
    lists = (params, exp_avgs, exp_infs)
    for (g, p, m, u), step in zip(_each(grads, *lists), steps, strict=True):
        t = _advance(step)
        g = _descent(g, p, weight_decay, maximize)
        _lerp(m, g, 1 - beta1)
        np.maximum(u * beta2, np.abs(g) + eps, out=u)
        p += m * (-lr / (1 - beta1**t)) / u
    return ()


@kernel("_nadam_step", widen=False)
def nadam(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    mu_products: Any,
    steps: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> tuple[()]:
    each = _each(grads, params, exp_avgs, exp_avg_sqs)
    for (g, p, m, v), step, product in zip(each, steps, mu_products, strict=True):
        t = _advance(step)
        g = _descent(g, p, 0 if decoupled else weight_decay, maximize)
        if decoupled and weight_decay != 0:
            p *= 1 - lr * weight_decay
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
    return ()


@kernel("_radam_step", widen=False)
def radam(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    steps: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> tuple[()]:
    longest = 2 / (1 - beta2) - 1
    lists = (params, exp_avgs, exp_avg_sqs)
    for (g, p, m, v), step in zip(_each(grads, *lists), steps, strict=True):
        t = _advance(step)
        g = _descent(g, p, 0 if decoupled else weight_decay, maximize)
        if decoupled and weight_decay != 0:
            p *= 1 - lr * weight_decay
        _lerp(m, g, 1 - beta1)
        _decay_square(v, g, beta2)
        correction = 1 - beta2**t
        update = m / (1 - beta1**t) * lr
        # Liu et al. 2019, algorithm 2: rho_t is the length of the average's window; the variance
        # of the adaptive rate is finite, and its rectification defined, only beyond 4 (here 5).
        rho = longest - 2 * t * beta2**t / correction
        if rho > 5.0:
            top = (rho - 4) * (rho - 2) * longest
            rectifier = (top / ((longest - 4) * (longest - 2) * rho)) ** 0.5
            update = update * (correction**0.5 / (np.sqrt(v) + eps)) * rectifier
        p -= update
    return ()


@kernel("_lion_step", widen=False)
def lion(
    params: Any, grads: Any, exp_avgs: Any, lr: float, beta1: float, beta2: float, weight_decay: float, maximize: bool
) -> tuple[()]:
    for g, p, m in _each(grads, params, exp_avgs):
        g = -g if maximize else g
        if weight_decay != 0:
            p *= 1 - lr * weight_decay
        # Chen et al. 2023, algorithm 2: the update looks further ahead than the momentum kept.
        p += np.sign(m * beta1 + g * (1 - beta1)) * -lr
        _lerp(m, g, 1 - beta2)
    return ()


@kernel("_rprop_step", widen=False)
def rprop(
    params: Any,
    grads: Any,
    prevs: Any,
    step_sizes: Any,
    steps: Any,
    eta_minus: float,
    eta_plus: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> tuple[()]:
    lists = (params, prevs, step_sizes)
    for (g, p, prev, size), step in zip(_each(grads, *lists), steps, strict=True):
        _advance(step)
        g = -g if maximize else g
        factor = np.sign(g * prev)
        turned = factor < 0
        factor[factor > 0] = eta_plus
        factor[turned] = eta_minus
        factor[factor == 0] = 1
        size *= factor
        np.clip(size, smallest, largest, out=size)
        g = np.where(turned, 0, g)
        p -= np.sign(g) * size
        prev[...] = g
    return ()


@kernel("_asgd_step", widen=False)
def asgd(
    params: Any,
    grads: Any,
    axs: Any,
    mus: Any,
    etas: Any,
    steps: Any,
    lr: float,
    lambd: float,
    alpha: float,
    t0: float,
    weight_decay: float,
    maximize: bool,
) -> tuple[()]:
    each = _each(grads, params, axs)
    for (g, p, ax), step, mu, eta in zip(each, steps, mus, etas, strict=True):
        t = _advance(step)
        g = _descent(g, p, weight_decay, maximize)
        rate = float(eta)
        p *= 1 - lambd * rate
        p += g * -rate
        if float(mu) == 1:
            ax[...] = p
        else:
            ax += (p - ax) * float(mu)
        eta[...] = lr / (1 + lambd * lr * t) ** alpha
        mu[...] = 1 / max(1, t - t0)
    return ()


@kernel("_average_step", widen=False)
def average(averages: Any, values: Any, weight: float) -> tuple[()]:
    for v, a in _each(values, averages):
        _lerp(a, v, weight)
    return ()


@kernel("_amp_foreach_non_finite_check_and_unscale_", widen=False)
def check_and_unscale(grads: Any, found_inf: Any, inv_scale: Any) -> tuple[()]:
    factor = inv_scale.item()
    for g in grads:
        wide = _workable(g)
        if not np.isfinite(wide).all():
            found_inf[...] = 1
        if factor != 1:
            np.multiply(wide, factor, out=wide)
            if g.dtype in _NARROW:
                np.copyto(g, wide.reshape(g.shape), casting="unsafe")
    return ()


@kernel("_amp_update_scale_", widen=False)
def update_scale(scale: Any, tracker: Any, found_inf: Any, growth: float, backoff: float, interval: int) -> tuple[()]:
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
def scale(tensors: Any, factor: Any) -> tuple[()]:
    for t in tensors:
        wide = _workable(t)
        np.multiply(wide, factor.astype(wide.dtype), out=wide)
        if t.dtype in _NARROW:
            np.copyto(t, wide.reshape(t.shape), casting="unsafe")
    return ()


@kernel("_total_norm", widen=False)
def total_norm(tensors: Any, ord: float) -> Any:
    norms = []
    for t in tensors:
        wide = t.astype(np.float32) if t.dtype in _NARROW else t
        norm = vector_norm(wide, ord, tuple(range(t.ndim)), False)
        norms.append(norm.astype(t.dtype) if t.dtype in _NARROW else norm)
    kinds = [n.astype(np.float32) if n.dtype in _NARROW else n for n in norms]
    return vector_norm(np.array(kinds), ord, (0,), False)
