"""Losses that ask for a margin: between pairs, triplets, and a class and the others.

Written with other operators, so every order of gradient is there, also where torch has only one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from .autocast_policy import FLOAT32
from .loss import NN, reduced, reduction_of
from .registry import F, composite

if TYPE_CHECKING:
    from .types import Tensor

# Added to squared lengths by torch's cosine_embedding_loss.
_COSINE_EPS = 1e-12


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of input where the target is 1, and of `max(0, margin - input)` where it is -1.

    >>> f = votive.nn.functional.hinge_embedding_loss
    >>> f(votive.tensor([0.25, 0.25]), votive.tensor([1, -1]), reduction="none")
    tensor([0.2500, 0.7500])
    """
    kind = reduction_of("hinge_embedding_loss", reduction, size_average, reduce)
    zero = F.zeros_like(input)
    apart = F.where(target != 1, F.clamp_min(margin - input, 0).to(input.dtype), zero)
    return reduced(apart + F.where(target != -1, input, zero), kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of `max(0, margin - target (input1 - input2))`; 1 ranks input1 higher, -1 lower.

    >>> f = votive.nn.functional.margin_ranking_loss
    >>> f(votive.tensor([1.0]), votive.tensor([3.0]), votive.tensor([1.0]))
    tensor(2.)
    """
    op = "margin_ranking_loss"
    kind = reduction_of(op, reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        fail(
            ShapeError,
            op,
            "inputs and target must have the same number of dimensions, got shapes "
            f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}.",
        )
    return reduced(F.clamp_min(-target * (input1 - input2) + float(margin), 0), kind)


def _triplet(
    op: str,
    distance: Callable[[Any, Any], Any],
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float,
    swap: bool,
    kind: str,
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"{op}: margin must be positive, got {margin}.")
    if not anchor.ndim == positive.ndim == negative.ndim:
        fail(
            ShapeError,
            op,
            "anchor, positive and negative must have the same number of dimensions, got "
            f"{anchor.ndim}, {positive.ndim} and {negative.ndim}.",
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = F.minimum(far, distance(positive, negative))
    return reduced(F.clamp_min(margin + near - far, 0), kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of `max(0, margin + |anchor - positive| - |anchor - negative|)`, norms of order p.

    With `swap` the nearer of anchor and positive is compared with the negative (Balntas et al.
    2016).

    >>> a, b, c = votive.tensor([[0.0], [3.0], [1.0]]).unbind()
    >>> votive.nn.functional.triplet_margin_loss(a, b, c)
    tensor(3.)
    """
    op = "triplet_margin_loss"
    kind = reduction_of(op, reduction, size_average, reduce)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return F._vector_norm(a - b + eps, p, -1, False)

    return _triplet(op, distance, anchor, positive, negative, margin, swap, kind)


@composite(namespaces=NN, method=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any function of two tensors as the distance.

    >>> a, b, c = votive.tensor([[0.0], [3.0], [1.0]]).unbind()
    >>> f = votive.nn.functional.triplet_margin_with_distance_loss
    >>> f(a, b, c, distance_function=lambda x, y: (x - y).abs().sum(-1))
    tensor(3.)
    """
    op = "triplet_margin_with_distance_loss"
    kind = reduction_of(op, reduction)
    distance = distance_function or (lambda a, b: F._vector_norm(a - b + 1e-6, 2, -1, False))
    return _triplet(op, distance, anchor, positive, negative, margin, swap, kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of `1 - cos` for pairs with target 1 and of `max(0, cos - margin)` for -1.

    >>> a, b = votive.tensor([[3.0, 4.0]]), votive.tensor([[4.0, 3.0]])
    >>> votive.nn.functional.cosine_embedding_loss(a, b, votive.tensor([1]))
    tensor(0.0400)
    """
    op = "cosine_embedding_loss"
    kind = reduction_of(op, reduction, size_average, reduce)
    dim = target.ndim
    if dim > 1:
        fail(ShapeError, op, f"target must be 0-d or a vector, got shape {tuple(target.shape)}.")
    if input1.ndim != dim + 1 or input2.ndim != dim + 1:
        fail(
            ShapeError,
            op,
            f"a target of {dim} dimensions needs inputs of {dim + 1}, got shapes "
            f"{tuple(input1.shape)} and {tuple(input2.shape)}.",
        )
    lengths = [F.square(x).sum(dim) + _COSINE_EPS for x in (input1, input2)]
    cos = (input1 * input2).sum(dim) / F.sqrt(lengths[0] * lengths[1])
    zero = F.zeros_like(cos)
    alike = F.where(target == 1, 1 - cos, zero)
    return reduced(alike + F.where(target == -1, F.clamp_min(cos - margin, 0), zero), kind)


def _rows(op: str, input: Tensor, target: Tensor) -> Tensor:
    """The input as (sample, class), after the checks that the two losses below share."""
    shape = tuple(input.shape)
    if len(shape) > 2 or (shape and shape[-1] == 0):
        fail(ShapeError, op, f"takes a vector or a matrix with classes, got shape {shape}.")
    if input.dtype not in (dt.float32, dt.float64):
        fail(UnsupportedError, op, f"not implemented for {input.dtype}; use float32 or float64.")
    if target.dtype is not dt.int64:
        fail(DtypeError, op, f"target must be int64, got {target.dtype}.")
    return input if len(shape) == 2 else input.reshape(1, -1)


def _above(z: Tensor) -> Tensor:
    """max(0, z) whose slope at 0 is 0, as torch's loops have it."""
    return F.where(z > 0, z, 0)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of `w_y sum_(i != y) max(0, margin - x_y + x_i)^p / C` for the target class y.

    >>> x = votive.tensor([[0.0, 0.5, 2.0]])
    >>> votive.nn.functional.multi_margin_loss(x, votive.tensor([1]))
    tensor(1.)
    """
    op = "multi_margin_loss"
    kind = reduction_of(op, reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"{op}: p must be 1 or 2, got {p}.")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"{op}: weight must be a vector, got shape {tuple(weight.shape)}.")
    x = _rows(op, input, target)
    count, classes = x.shape
    if target.ndim > 1 or target.numel() != count:
        fail(ShapeError, op, f"target must have {count} classes, got shape {tuple(target.shape)}.")
    if weight is not None and weight.shape[0] != classes:
        fail(ShapeError, op, f"weight must have {classes} classes, got {weight.shape[0]}.")
    if count and not target.is_meta and bool(((target < 0) | (target >= classes)).any()):
        fail(RuntimeError, op, f"targets must lie in 0..{classes - 1}.")
    y = target.reshape(-1, 1)
    others = F.arange(classes, device=x.device) != y
    z = F.where(others, _above(margin - F.gather(x, 1, y) + x), 0)
    loss = (z if p == 1 else z * z).sum(1) / classes
    if weight is not None:
        loss = loss * F.index_select(weight, 0, y.reshape(-1))
    return reduced(loss.reshape(tuple(target.shape)), kind)


@composite(namespaces=NN, method=False, autocast=FLOAT32)
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean of `sum_(y, i) max(0, 1 - x_y + x_i) / C` over target classes y and all others i.

    A row of the target lists its classes and ends at the first -1.

    >>> x, y = votive.tensor([[0.0, 0.5, 2.0]]), votive.tensor([[2, 1, -1]])
    >>> votive.nn.functional.multilabel_margin_loss(x, y)
    tensor(0.1667)
    """
    op = "multilabel_margin_loss"
    kind = reduction_of(op, reduction, size_average, reduce)
    x = _rows(op, input, target)
    classes = x.shape[1]
    if tuple(target.shape) != tuple(input.shape):
        fail(ShapeError, op, f"target must have the input's shape {tuple(input.shape)}, got {tuple(target.shape)}.")
    t = target.reshape(tuple(x.shape))
    if t.numel() and not t.is_meta and bool(((t < -1) | (t >= classes)).any()):
        fail(RuntimeError, op, f"targets must lie in -1..{classes - 1}.")
    listed = F.cumprod((t >= 0).to(dt.int64), 1).to(dt.bool_)
    # Rows mostly list few classes: compare only as many as the longest does.
    longest = int(listed.sum(1).max()) if t.numel() else 0
    listed, y = listed[:, :longest], F.clamp_min(t[:, :longest], 0)
    counts = F.zeros(tuple(x.shape), dtype=dt.int64, device=x.device)
    others = F.scatter_add(counts, 1, y, listed.to(dt.int64)) == 0
    z = _above(1 - F.gather(x, 1, y).unsqueeze(2) + x.unsqueeze(1))  # (sample, listed, class)
    pairs = listed.unsqueeze(2) & others.unsqueeze(1)
    loss = F.where(pairs, z, 0).sum((1, 2)) / classes
    return reduced(loss if input.ndim == 2 else loss.reshape(()), kind)
