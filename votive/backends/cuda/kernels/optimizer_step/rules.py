"""Update rules of optimizers as formulas of one element. Knows no memory.

A rule takes a parameter, its gradient, its states and numbers, and gives the new parameter and
states, in the order of operations of the reference. The numbers come of step counts: on the host
where the counts are there, else on the device.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m


@triton.jit
def descent(g, w, decay, sign):
    """The gradient to descend along: negated for ascent, with the weight decay of L2 penalties."""
    g = g * sign
    return tl.where(decay != 0, g + w * decay, g)


@triton.jit
def lerp(x, end, weight, rest):
    """x moved towards `end`, from the nearer of the two. `rest` is 1 - weight."""
    return tl.where(weight < 0.5, x + (end - x) * weight, end - (end - x) * rest)


@triton.jit
def sgd(w, g, buffer, rate, momentum, new, decay, sign, fresh, MOMENTUM: tl.constexpr, NESTEROV: tl.constexpr):
    g = descent(g, w, decay, sign)
    if MOMENTUM:
        moved = tl.where(fresh != 0, g, buffer * momentum + g * new)
        buffer = tl.where(momentum != 0, moved, buffer)
        toward = g + moved * momentum if NESTEROV else moved
        g = tl.where(momentum != 0, toward, g)
    return w + g * rate, buffer


@triton.jit
def adam(w, g, mean, v, top, rate, root, beta2, square, weight, rest, eps, decay, shrink, sign, AMSGRAD: tl.constexpr):
    g = descent(g, w, decay, sign)
    w = w * shrink
    mean = lerp(mean, g, weight, rest)
    v = v * beta2 + g * square * g
    under = v
    if AMSGRAD:
        top = m.f_maximum(top, v)
        under = top
    under = m.f_div(m.f_sqrt(under), root) + eps
    return w + m.f_div(mean * rate, under), mean, v, top


@triton.jit
def adam_numbers(t, lr, beta1, beta2, eps, decay, amsgrad, maximize, decoupled):
    rate = -lr / (1 - m.f_pow(beta1, t))
    root = m.f_sqrt(1 - m.f_pow(beta2, t))
    shrink = tl.where(decoupled != 0, 1 - lr * decay, 1.0)
    decay = tl.where(decoupled != 0, 0.0, decay)
    return rate, root, beta2, 1 - beta2, 1 - beta1, beta1, eps, decay, shrink, 1 - 2 * maximize


@triton.jit
def rmsprop(
    w,
    g,
    v,
    mean,
    buffer,
    rate,
    alpha,
    rest,
    kept,
    eps,
    decay,
    momentum,
    sign,
    CENTERED: tl.constexpr,
    MOMENTUM: tl.constexpr,
):
    g = descent(g, w, decay, sign)
    v = v * alpha + g * rest * g
    spread = v
    if CENTERED:
        mean = lerp(mean, g, rest, kept)
        spread = v - mean * mean
    under = m.f_sqrt(spread) + eps
    if MOMENTUM:
        buffer = buffer * momentum + m.f_div(g, under)
        w = w + buffer * rate
    else:
        w = w + m.f_div(g * rate, under)
    return w, v, mean, buffer


@triton.jit
def adagrad(w, g, total, rate, eps, decay, sign):
    g = descent(g, w, decay, sign)
    total = total + g * g
    return w + m.f_div(g * rate, m.f_sqrt(total) + eps), total


@triton.jit
def adagrad_numbers(t, lr, lr_decay, eps, decay, maximize):
    return -lr / (1 + (t - 1) * lr_decay), eps, decay, 1 - 2 * maximize


@triton.jit
def adadelta(w, g, v, moved, rate, rho, rest, eps, decay, sign):
    g = descent(g, w, decay, sign)
    v = v * rho + g * rest * g
    delta = m.f_div(m.f_sqrt(moved + eps), m.f_sqrt(v + eps)) * g
    moved = moved * rho + delta * rest * delta
    return w + delta * rate, v, moved


@triton.jit
def adamax(w, g, mean, most, rate, beta2, weight, rest, eps, decay, sign):
    g = descent(g, w, decay, sign)
    mean = lerp(mean, g, weight, rest)
    most = m.f_maximum(most * beta2, tl.abs(g) + eps)
    return w + m.f_div(mean * rate, most), mean, most


@triton.jit
def nadam(w, g, mean, v, rate, further, correction, beta2, square, weight, rest, eps, decay, shrink, sign):
    g = descent(g, w, decay, sign)
    w = w * shrink
    mean = lerp(mean, g, weight, rest)
    v = v * beta2 + g * square * g
    under = m.f_sqrt(m.f_div(v, correction)) + eps
    w = w + m.f_div(g * rate, under)
    return w + m.f_div(mean * further, under), mean, v


@triton.jit
def radam(w, g, mean, v, lr, correction, root, rectifier, beta2, square, weight, rest, eps, decay, shrink, sign):
    g = descent(g, w, decay, sign)
    w = w * shrink
    mean = lerp(mean, g, weight, rest)
    v = v * beta2 + g * square * g
    update = m.f_div(mean, correction) * lr
    scaled = update * m.f_div(tl.zeros_like(v) + root, m.f_sqrt(v) + eps) * rectifier
    return w - tl.where(rectifier != 0, scaled, update), mean, v


@triton.jit
def lion(w, g, mean, rate, beta1, ahead, weight, rest, shrink, sign):
    g = g * sign
    toward = mean * beta1 + g * ahead
    w = w * shrink + m.f_sign(toward) * rate
    return w, lerp(mean, g, weight, rest)


@triton.jit
def rprop(w, g, before, size, minus, plus, least, most, sign):
    g = g * sign
    turn = g * before
    factor = tl.where(turn > 0, plus, tl.where(turn < 0, minus, 1))
    size = size * tl.where(turn != turn, turn, factor)
    size = m.f_minimum(m.f_maximum(size, least + size * 0), most + size * 0)
    g = tl.where(turn < 0, 0, g)
    return w - m.f_sign(g) * size, g, size


@triton.jit
def asgd(w, g, ax, shrink, rate, mu, decay, sign):
    g = descent(g, w, decay, sign)
    w = w * shrink + g * rate
    return w, tl.where(mu == 1, w, ax + (w - ax) * mu)


@triton.jit
def asgd_numbers(mu, eta, t, lr, lambd, alpha, t0, decay, maximize):
    return 1 - lambd * eta, -eta, mu, decay, 1 - 2 * maximize


@triton.jit
def asgd_after(table, count, lr, lambd, alpha, t0, decay, maximize, S: tl.constexpr):
    """The weight and the rate of the next step, one program per parameter."""
    at = table + 3 * count + tl.program_id(0)
    mu = tl.load(at).to(tl.pointer_type(S))
    eta = tl.load(at + count).to(tl.pointer_type(S))
    t = tl.load(tl.load(at + 2 * count).to(tl.pointer_type(S))).to(tl.float64)
    under = m.f_pow(1 + lambd * lr * t, alpha)
    tl.store(mu, (1 / tl.maximum(t - t0, 1.0)).to(S))
    tl.store(eta, (lr / under).to(S))


@triton.jit
def average(w, g, weight, rest):
    return (lerp(w, g, weight, rest),)


# From counts and hyperparameters to (the numbers of a rule, the counts to come but the step, which
# has been counted already), on the host. Other counts than the step come in their own precision.
Numbers = tuple[tuple[float, ...], tuple[float, ...]]


def sgd_on_host(
    fresh: bool, lr: float, momentum: float, dampening: float, decay: float, nesterov: bool, maximize: bool
) -> Numbers:
    return (-lr, momentum, 1 - dampening, decay, sign(maximize), float(fresh)), ()


def adam_on_host(
    t: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
) -> Numbers:
    rate, root = -lr / (1 - beta1**t), (1 - beta2**t) ** 0.5
    return (rate, root, beta2, 1 - beta2, *_weights(beta1), eps, *_decays(lr, decay, decoupled), sign(maximize)), ()


def rmsprop_on_host(
    t: float, lr: float, alpha: float, eps: float, decay: float, momentum: float, centered: bool, maximize: bool
) -> Numbers:
    return (-lr, alpha, *_weights(alpha), eps, decay, momentum, sign(maximize)), ()


def adagrad_on_host(t: float, lr: float, lr_decay: float, eps: float, decay: float, maximize: bool) -> Numbers:
    return (-lr / (1 + (t - 1) * lr_decay), eps, decay, sign(maximize)), ()


def adadelta_on_host(t: float, lr: float, rho: float, eps: float, decay: float, maximize: bool) -> Numbers:
    return (-lr, rho, 1 - rho, eps, decay, sign(maximize)), ()


def adamax_on_host(
    t: float, lr: float, beta1: float, beta2: float, eps: float, decay: float, maximize: bool
) -> Numbers:
    return (-lr / (1 - beta1**t), beta2, *_weights(beta1), eps, decay, sign(maximize)), ()


def nadam_on_host(
    product: float,
    t: float,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> Numbers:
    mu = beta1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay))
    after = beta1 * (1.0 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
    product *= mu
    rate = -lr * (1.0 - mu) / (1.0 - float(product))
    further = -lr * after / (1.0 - float(product) * after)
    return (
        rate,
        further,
        1 - beta2**t,
        beta2,
        1 - beta2,
        *_weights(beta1),
        eps,
        *_decays(lr, decay, decoupled),
        sign(maximize),
    ), (product,)


def radam_on_host(
    t: float, lr: float, beta1: float, beta2: float, eps: float, decay: float, decoupled: bool, maximize: bool
) -> Numbers:
    longest, correction = 2 / (1 - beta2) - 1, 1 - beta2**t
    rho = longest - 2 * t * beta2**t / correction
    rectifier = 0.0
    if rho > 5.0:
        top = (rho - 4) * (rho - 2) * longest
        rectifier = (top / ((longest - 4) * (longest - 2) * rho)) ** 0.5
    return (
        lr,
        1 - beta1**t,
        correction**0.5,
        rectifier,
        beta2,
        1 - beta2,
        *_weights(beta1),
        eps,
        *_decays(lr, decay, decoupled),
        sign(maximize),
    ), ()


def lion_on_host(lr: float, beta1: float, beta2: float, decay: float, maximize: bool) -> Numbers:
    return (-lr, beta1, 1 - beta1, *_weights(beta2), 1 - lr * decay, sign(maximize)), ()


def rprop_on_host(t: float, minus: float, plus: float, least: float, most: float, maximize: bool) -> Numbers:
    return (minus, plus, least, most, sign(maximize)), ()


def asgd_on_host(
    mu: float, eta: float, t: float, lr: float, lambd: float, alpha: float, t0: float, decay: float, maximize: bool
) -> Numbers:
    now, rate = float(eta), lr / (1 + lambd * lr * t) ** alpha
    numbers = 1 - lambd * now, -now, float(mu), decay, sign(maximize)
    return numbers, (1 / max(1, t - t0), rate)


def average_on_host(weight: float) -> Numbers:
    return (weight, 1 - weight), ()


def sign(maximize: bool) -> float:
    return -1.0 if maximize else 1.0


def _weights(beta: float) -> tuple[float, float]:
    """Of an average that keeps `beta` of itself: the weight of what is new, and its rest."""
    return 1 - beta, 1 - (1 - beta)


def _decays(lr: float, decay: float, decoupled: bool) -> tuple[float, float]:
    """(what the gradient gets of the parameter, the factor that shrinks the parameter)."""
    return (0.0, 1 - lr * decay) if decoupled else (decay, 1.0)
