"""Optimizer steps, and the norm and scaling of all gradients: one launch for all tensors of a group."""

from __future__ import annotations

import math

from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .dtypes import FLOATS
from .rows import OUT, native

_ORDERS = {1.0: 1, 2.0: 2, math.inf: 3}


def _fit(*lists: Slot) -> bool:
    """Whether the i-th tensors of all lists have one shape and one dtype that the kernels know."""
    first: list[Spec] = lists[0].spec
    for listed in lists:
        if len(listed.spec) != len(first):
            return False
        for a, b in zip(first, listed.spec, strict=True):
            if a.dtype not in FLOATS or a.dtype is not b.dtype or a.shape != b.shape:
                return False
    return True


def _arranged(
    lists: tuple[Slot, ...], numbers: tuple[Slot, ...], flags: tuple[int, ...], counts: tuple[Slot, ...] = ()
) -> Args:
    """(count, mask of which numbers are integers, numbers, flags), the lists, then those of 0-d tensors."""
    n = len(lists[0].spec)
    if not all(isinstance(s.spec, (int, float)) for s in numbers) or not _fit(*lists):
        return None
    for listed in counts:
        if len(listed.spec) != n or any(s.numel != 1 or s.dtype.is_complex for s in listed.spec):
            return None
    integers = sum(1 << i for i, s in enumerate(numbers) if isinstance(s.spec, int))
    return n, integers, *numbers, *flags, *lists, *counts


# How many lists of tensors, lists of 0-d tensors and numbers a step takes before its flags, where it needs all.
_STEPS = {
    "adagrad": (3, 1, 4),
    "adadelta": (4, 1, 4),
    "adamax": (4, 1, 5),
    "nadam": (4, 2, 6),
    "radam": (4, 1, 5),
    "lion": (3, 0, 4),
    "rprop": (4, 1, 4),
    "asgd": (3, 3, 5),
    "average": (2, 0, 1),
}


def _register(name: str, lists: int, counts: int, numbers: int) -> None:
    @native(f"_{name}_step", f"{name}_step")
    def arrange(*args: Slot) -> Args:
        if name == "adagrad":
            *args, grad_scale, found_inf = args  # type: ignore[assignment]
            if grad_scale is not None or found_inf is not None:
                return None
        first, last = lists + counts, lists + counts + numbers
        flags = tuple(int(flag) for flag in args[last:])  # type: ignore[call-overload]
        return _arranged(tuple(args[:lists]), tuple(args[first:last]), flags, tuple(args[lists:first]))


for _name, _sizes in _STEPS.items():
    _register(_name, *_sizes)


@native("_sgd_step", "sgd_step")
def sgd(
    params: Slot,
    grads: Slot,
    buffers: Slot,
    fresh: tuple[bool, ...],
    lr: Slot,
    momentum: Slot,
    dampening: Slot,
    decay: Slot,
    nesterov: bool,
    maximize: bool,
    grad_scale: Slot | None,
    found_inf: Slot | None,
) -> Args:
    if grad_scale is not None or found_inf is not None:
        return None
    buffered = bool(buffers.spec)
    lists = (params, grads, buffers) if buffered else (params, grads)
    return _arranged(lists, (lr, momentum, dampening, decay), (buffered, nesterov, maximize, *fresh))


@native("_adam_step", "adam_step")
def adam(
    params: Slot,
    grads: Slot,
    exp_avgs: Slot,
    exp_avg_sqs: Slot,
    maxima: Slot,
    steps: Slot,
    lr: Slot,
    beta1: Slot,
    beta2: Slot,
    eps: Slot,
    decay: Slot,
    amsgrad: bool,
    maximize: bool,
    decoupled: bool,
    grad_scale: Slot | None,
    found_inf: Slot | None,
) -> Args:
    if grad_scale is not None or found_inf is not None:
        return None
    lists = (params, grads, exp_avgs, exp_avg_sqs, *([maxima] if amsgrad else []))
    return _arranged(lists, (lr, beta1, beta2, eps, decay), (amsgrad, maximize, decoupled), (steps,))


@native("_rmsprop_step", "rmsprop_step")
def rmsprop(
    params: Slot,
    grads: Slot,
    square_avgs: Slot,
    grad_avgs: Slot,
    buffers: Slot,
    steps: Slot,
    lr: Slot,
    alpha: Slot,
    eps: Slot,
    decay: Slot,
    momentum: Slot,
    centered: bool,
    maximize: bool,
) -> Args:
    used = ([grad_avgs] if centered else []) + ([buffers] if buffers.spec else [])
    flags = (bool(buffers.spec), centered, maximize)
    return _arranged((params, grads, square_avgs, *used), (lr, alpha, eps, decay, momentum), flags, (steps,))


@native("_amp_foreach_non_finite_check_and_unscale_", "check_and_unscale", optional=True)
def check_and_unscale(grads: Slot, found_inf: Slot, inv_scale: Slot) -> Args:
    return (len(grads.spec), grads, inv_scale, found_inf) if _fit(grads) else None


@native("_total_norm", "total_norm")
def total_norm(tensors: Slot, ord: float) -> Args:
    if ord not in _ORDERS or not _fit(tensors):
        return None
    return len(tensors.spec), _ORDERS[ord], tensors, OUT


@native("_scale_", "scale_all")
def scale(tensors: Slot, factor: Slot) -> Args:
    if not _fit(tensors) or factor.numel != 1 or factor.dtype.is_complex:
        return None
    return len(tensors.spec), tensors, factor
