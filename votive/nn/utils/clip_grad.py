"""Bounding gradients, by their common norm or by value. Works on tensors; knows no module."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Iterable
from typing import Any

from ... import linalg
from ...autograd.modes import no_grad
from ...core.device import device
from ...ops.registry import F
from ...tensor import Tensor


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _norm_here(given: list[Tensor], p: float) -> Tensor:
    """The norm of what this process has of some tensors."""
    if len({t._spec.device for t in given}) == 1:
        return F._total_norm(given, p)
    norms = [linalg.vector_norm(t, p).to(given[0].device) for t in given]
    # Half and double gradients side by side: their norms meet in the wider type.
    return linalg.vector_norm(F.cat([n.reshape(1) for n in norms]), p)


def _of_parts(given: list[Tensor], p: float) -> Tensor:
    """The norm of this rank's rows, of which there may be none."""
    if math.isinf(p) and not any(t.numel() for t in given):
        return given[0].new_full((), 0.0 if p > 0 else math.inf)
    return _norm_here([t for t in given if t.numel()] if math.isinf(p) else given, p)


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector.

    `foreach` is accepted for torch's sake; there is one way of computing here.

    >>> votive.nn.utils.get_total_norm([votive.ones(3), votive.ones(1)])
    tensor(2.)
    """
    given = _listed(tensors)
    p = float(norm_type)
    if not given:
        return F.tensor(0.0)
    # Gradients in shards (see distributed.fsdp) have parts on other ranks.
    spread = [t.__dict__.get("_sharding") for t in given]
    if any(s is not None for s in spread):
        by_group: dict[Any, tuple[Any, list[Tensor]]] = {}
        for t, s in zip(given, spread, strict=True):
            by_group.setdefault(None if s is None else s.key, (s, []))[1].append(t)
        norms = [_norm_here(ts, p) if s is None else s.total_norm(_of_parts(ts, p), p) for s, ts in by_group.values()]
        norms = [n.full_tensor() if hasattr(n, "full_tensor") else n for n in norms]
        total = linalg.vector_norm(F.cat([n.to(given[0].device).reshape(1) for n in norms]), p)
    else:
        total = _norm_here(given, p)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {p} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite "
            "norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients by min(max_norm / (total_norm + 1e-6), 1), in place.

    >>> p = votive.zeros(2, requires_grad=True)
    >>> p.grad = votive.tensor([3.0, 4.0])
    >>> votive.nn.utils.clip_grads_with_norm_(p, 10.0, votive.tensor(5.0))
    >>> p.grad
    tensor([3., 4.])
    """
    grads = [p._grad for p in _listed(parameters) if p._grad is not None]
    if not grads:
        return
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    by_device: dict[device, list[Tensor]] = {}
    for g in grads:
        by_device.setdefault(g._spec.device, []).append(g)
    for where, listed in by_device.items():
        F._scale_(listed, factor.to(where))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters so that their common norm is at most `max_norm`.

    Returns the norm before clipping.

    >>> p = votive.zeros(2, requires_grad=True)
    >>> p.grad = votive.tensor([3.0, 4.0])
    >>> votive.nn.utils.clip_grad_norm_(p, 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    listed = _listed(parameters)
    if not listed and isinstance(parameters, types.GeneratorType):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    grads = [p._grad for p in listed if p._grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated name of `clip_grad_norm_`.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     votive.nn.utils.clip_grad_norm([], 1.0)
    tensor(0.)
    """
    warnings.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Bound each element of the gradients to [-clip_value, clip_value], in place.

    >>> p = votive.zeros(2, requires_grad=True)
    >>> p.grad = votive.tensor([3.0, -0.5])
    >>> votive.nn.utils.clip_grad_value_([p], 1.0)
    >>> p.grad
    tensor([ 1.0000, -0.5000])
    """
    bound = float(clip_value)
    for p in _listed(parameters):
        if p.grad is not None:
            p.grad.clamp_(-bound, bound)
