"""Optimizer steps: one launch for all tensors of a group."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import native

_KNOWN = frozenset((dt.float32, dt.float64, *dt.HALF))


def fit(*lists: Any) -> bool:
    """Whether the i-th tensors of all lists have one shape and one dtype that the kernels know."""
    first = lists[0].spec
    for listed in lists:
        if len(listed.spec) != len(first):
            return False
        for a, b in zip(first, listed.spec, strict=True):
            if a.dtype not in _KNOWN or a.dtype is not b.dtype or a.shape != b.shape:
                return False
    return True


def _numbers(*slots: Any) -> tuple[Any, ...] | None:
    """A mask of which numbers are integers, and the numbers; None when one is neither."""
    if not all(isinstance(s.spec, (int, float)) for s in slots):
        return None
    return sum(1 << i for i, s in enumerate(slots) if isinstance(s.spec, int)), *slots


def _arranged(
    lists: tuple[Any, ...], numbers: tuple[Any, ...], flags: tuple[int, ...], counts: Any = ()
) -> tuple[Any, ...] | None:
    """(count, mask, numbers, flags) and the lists, then those of 0-d tensors."""
    n = len(lists[0].spec)
    given = _numbers(*numbers)
    if given is None or not fit(*lists):
        return None
    for listed in counts:
        if len(listed.spec) != n or any(s.numel != 1 or s.dtype.is_complex for s in listed.spec):
            return None
    return n, *given, *flags, *lists, *counts


@native("_sgd_step", "sgd_step")
def sgd(
    params: Any,
    grads: Any,
    buffers: Any,
    fresh: Any,
    lr: Any,
    momentum: Any,
    dampening: Any,
    decay: Any,
    nesterov: bool,
    maximize: bool,
    grad_scale: Any,
    found_inf: Any,
) -> Any:
    if grad_scale is not None or found_inf is not None:
        return None
    buffered = bool(buffers.spec)
    lists = (params, grads, buffers) if buffered else (params, grads)
    flags = (buffered, nesterov, maximize, *fresh)
    return _arranged(lists, (lr, momentum, dampening, decay), flags)


@native("_adam_step", "adam_step")
def adam(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    maxima: Any,
    steps: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
    grad_scale: Any,
    found_inf: Any,
) -> Any:
    if grad_scale is not None or found_inf is not None:
        return None
    return _arranged(
        (params, grads, exp_avgs, exp_avg_sqs, *([maxima] if amsgrad else [])),
        (lr, beta1, beta2, eps, decay),
        (amsgrad, maximize, decoupled),
        (steps,),
    )


@native("_rmsprop_step", "rmsprop_step")
def rmsprop(
    params: Any,
    grads: Any,
    square_avgs: Any,
    grad_avgs: Any,
    buffers: Any,
    steps: Any,
    lr: Any,
    alpha: Any,
    eps: Any,
    decay: Any,
    momentum: Any,
    centered: bool,
    maximize: bool,
) -> Any:
    lists = [params, grads, square_avgs]
    lists += [grad_avgs] if centered else []
    lists += [buffers] if buffers.spec else []
    numbers = (lr, alpha, eps, decay, momentum)
    return _arranged(tuple(lists), numbers, (bool(buffers.spec), centered, maximize), (steps,))


@native("_adagrad_step", "adagrad_step")
def adagrad(
    params: Any,
    grads: Any,
    sums: Any,
    steps: Any,
    lr: Any,
    lr_decay: Any,
    eps: Any,
    decay: Any,
    maximize: bool,
    grad_scale: Any,
    found_inf: Any,
) -> Any:
    if grad_scale is not None or found_inf is not None:
        return None
    return _arranged((params, grads, sums), (lr, lr_decay, eps, decay), (maximize,), (steps,))


@native("_adadelta_step", "adadelta_step")
def adadelta(
    params: Any,
    grads: Any,
    square_avgs: Any,
    acc_deltas: Any,
    steps: Any,
    lr: Any,
    rho: Any,
    eps: Any,
    decay: Any,
    maximize: bool,
) -> Any:
    lists = (params, grads, square_avgs, acc_deltas)
    return _arranged(lists, (lr, rho, eps, decay), (maximize,), (steps,))


@native("_adamax_step", "adamax_step")
def adamax(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_infs: Any,
    steps: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    maximize: bool,
) -> Any:
    lists = (params, grads, exp_avgs, exp_infs)
    return _arranged(lists, (lr, beta1, beta2, eps, decay), (maximize,), (steps,))


@native("_nadam_step", "nadam_step")
def nadam(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    mu_products: Any,
    steps: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    momentum_decay: Any,
    decoupled: bool,
    maximize: bool,
) -> Any:
    return _arranged(
        (params, grads, exp_avgs, exp_avg_sqs),
        (lr, beta1, beta2, eps, decay, momentum_decay),
        (decoupled, maximize),
        (mu_products, steps),
    )


@native("_radam_step", "radam_step")
def radam(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    steps: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    decoupled: bool,
    maximize: bool,
) -> Any:
    return _arranged(
        (params, grads, exp_avgs, exp_avg_sqs), (lr, beta1, beta2, eps, decay), (decoupled, maximize), (steps,)
    )


@native("_lion_step", "lion_step")
def lion(params: Any, grads: Any, exp_avgs: Any, lr: Any, beta1: Any, beta2: Any, decay: Any, maximize: bool) -> Any:
    return _arranged((params, grads, exp_avgs), (lr, beta1, beta2, decay), (maximize,))


@native("_rprop_step", "rprop_step")
def rprop(
    params: Any,
    grads: Any,
    prevs: Any,
    step_sizes: Any,
    steps: Any,
    eta_minus: Any,
    eta_plus: Any,
    least: Any,
    most: Any,
    maximize: bool,
) -> Any:
    lists = (params, grads, prevs, step_sizes)
    return _arranged(lists, (eta_minus, eta_plus, least, most), (maximize,), (steps,))


@native("_asgd_step", "asgd_step")
def asgd(
    params: Any,
    grads: Any,
    axs: Any,
    mus: Any,
    etas: Any,
    steps: Any,
    lr: Any,
    lambd: Any,
    alpha: Any,
    t0: Any,
    decay: Any,
    maximize: bool,
) -> Any:
    numbers = (lr, lambd, alpha, t0, decay)
    return _arranged((params, grads, axs), numbers, (maximize,), (mus, etas, steps))


@native("_average_step", "average_step")
def average(averages: Any, values: Any, weight: Any) -> Any:
    return _arranged((averages, values), (weight,), ())


@native("_amp_foreach_non_finite_check_and_unscale_", "check_and_unscale", optional=True)
def check_and_unscale(grads: Any, found_inf: Any, inv_scale: Any) -> Any:
    if not fit(grads):
        return None
    return len(grads.spec), grads, inv_scale, found_inf
