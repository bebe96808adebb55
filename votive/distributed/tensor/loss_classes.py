"""Cross entropy of scores that are cut along the classes, while `loss_parallel` is on: no rank sees them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops.registry import F
from .dtensor import DTensor
from .placement_types import Replicate, Shard

CLASSES: dict[str, Callable[..., Any]] = {}


def _cut(x: Any) -> bool:
    dim = 1 if x.ndim > 1 else 0
    return isinstance(x, DTensor) and any(p.is_shard(dim) for p in x.placements)


def of_classes(
    x: Any, target: Any, weight: Any, ignore_index: int, smoothing: float, mean: bool | None, log: bool = False
) -> Any:
    """Cross entropy of logits that are cut along the classes: no rank sees them all. `mean` None: one for each target;
    `log`: log probabilities are given.
    """
    dim = 1 if x.ndim > 1 else 0
    wide = x.float() if x.dtype.itemsize < 4 else x
    used = target != ignore_index
    at = F.where(used, target, 0).long()
    picked = F.gather(wide, dim, at.unsqueeze(dim)).squeeze(dim)
    if log:
        whole: Any = 0.0
    else:
        top = F.amax(wide.detach(), dim, True)
        # One rank's largest is not that of all: the whole of it is made here.
        top = top.redistribute(placements=[p if isinstance(p, Shard) else Replicate() for p in top.placements])
        whole = (F.exp(wide - top).sum(dim).log() + top.squeeze(dim)) if x.ndim else wide
    loss = whole - picked
    factor = None if weight is None else F.index_select(weight, 0, at.reshape(-1)).reshape(at.shape).to(loss.dtype)
    if factor is not None:
        loss = loss * factor
    if smoothing:
        n = x.shape[dim]
        if weight is None:
            spread = whole * float(n) - wide.sum(dim)
        else:
            shape = [-1 if d == dim else 1 for d in range(x.ndim)]
            by_class = weight.to(wide.dtype).view(shape)
            spread = whole * weight.to(wide.dtype).sum() - (wide * by_class).sum(dim)
        loss = (1 - smoothing) * loss + smoothing / n * spread
    loss = F.where(used, loss, 0.0)
    if mean is None:
        return loss.to(x.dtype)
    total = loss.sum()
    if mean:
        count = used.to(loss.dtype) if factor is None else used.to(loss.dtype) * factor
        total = total / count.sum()
    return total


def _each(log: bool) -> Callable[..., Any]:
    def compute(input: Any, target: Any, weight: Any, ignore_index: int, smoothing: float, dtype: Any) -> Any:
        if not _cut(input):
            return NotImplemented
        return of_classes(input, target, weight, ignore_index, smoothing, None, log).to(dtype)

    return compute


CLASSES["_nll"], CLASSES["_cross_entropy"] = _each(True), _each(False)


def _reduced(input: Any, target: Any, weight: Any, ignore_index: int, smoothing: float, mean: bool) -> Any:
    return (of_classes(input, target, weight, ignore_index, smoothing, mean),) if _cut(input) else NotImplemented


def _reduced_nll(input: Any, target: Any, weight: Any, ignore_index: int, mean: bool) -> Any:
    return (of_classes(input, target, weight, ignore_index, 0.0, mean, True),) if _cut(input) else NotImplemented


CLASSES["_cross_entropy_reduced"], CLASSES["_nll_reduced"] = _reduced, _reduced_nll
