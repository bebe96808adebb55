"""Sums, means and maxima of rows of a table, bag by bag. Knows shapes, not how they run."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.mode import mode as recording
from .embedding import NO_ROW, check_indices, embedding_renorm_, padding_row, with_sparse_gradient
from .registry import F, composite, structured
from .standardise import widened
from .untracked import untracked

if TYPE_CHECKING:
    from .types import Context, Tensor

OP = "embedding_bag"

structured(
    "_bag_argmax(Tensor weight, Tensor indices, Tensor bags, int count)",
    infer=lambda weight, indices, bags, count: weight.like((count, weight.shape[1]), dtype=dt.int64),
    differentiable=False,
    doc="For each bag and feature the row with the largest value; -1 for an empty bag.",
)


def _flattened(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Any, Any, bool]:
    """Indices in one row, where each bag begins, and whether the last offset is only an end."""
    if input.ndim == 2:
        if offsets is not None:
            fail(ValueError, OP, "rows of a 2-d input are the bags; offsets must be None.")
        count, length = input.shape
        starts = F.arange(count, dtype=dt.int64, device=input.device) * length
        return input.reshape(-1), starts, False
    if input.ndim != 1:
        fail(ValueError, OP, f"input must have 1 or 2 dimensions, got shape {tuple(input.shape)}.")
    if offsets is None or offsets.ndim != 1:
        have = None if offsets is None else tuple(offsets.shape)
        fail(ValueError, OP, f"a 1-d input needs a vector of offsets, got {have}.")
    return input, offsets, include_last_offset


def _check_values(indices: Tensor, offsets: Tensor, rows: int) -> None:
    if indices.numel():
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= rows:
            bad = low if low < 0 else high
            fail(RuntimeError, OP, f"index {bad} is out of range for {rows} rows.")
    if offsets.numel():
        first, last = int(offsets[0]), int(offsets[-1])
        if first != 0:
            fail(RuntimeError, OP, f"the first bag must begin at 0, offsets begin with {first}.")
        if last > indices.numel():
            fail(RuntimeError, OP, f"offset {last} lies behind all {indices.numel()} indices.")
        falls = (offsets[1:] < offsets[:-1]).nonzero()
        if falls.numel():
            a, b = offsets[int(falls[0]) :][:2].tolist()
            fail(RuntimeError, OP, f"offsets must not fall, but {b} follows {a}.")


def _bag_of_each(offsets: Tensor, count: int) -> Tensor:
    places = F.arange(count, dtype=dt.int64, device=offsets.device)
    return F.searchsorted(offsets.long().contiguous(), places, right=True) - 1


def _largest(weight: Tensor, indices: Tensor, bags: Tensor, count: int, padding: int) -> Tensor:
    if padding >= 0:
        kept = indices != padding
        indices, bags = indices[kept], bags[kept]
    rows = F._bag_argmax(weight.detach(), indices, bags, count)
    return F.where(rows < 0, 0, F.gather(weight, 0, rows.clamp_min(0)))


def rows_of(g: Tensor, indices: Tensor, offsets: Tensor, mean: bool, padding: int) -> Tensor:
    """What each used row receives of its bag's gradient, before its factor."""
    g, count = widened(g), g.shape[0]
    bags = _bag_of_each(offsets, indices.numel())
    # What lies behind the last offset belongs to no bag, if that offset is only an end.
    used = (indices != padding) & (bags < count)
    bags = bags.clamp_max(count - 1)
    if mean:
        sizes = F.zeros(count, dtype=g.dtype, device=g.device).index_add(0, bags, used.to(g.dtype))
        g = g / sizes.clamp_min(1).unsqueeze(-1)
    return F.where(used.unsqueeze(-1), F.index_select(g, 0, bags), 0)


def _grad_weight(c: Context, g: Tensor) -> Tensor:
    rows = rows_of(g, c.indices, c.offsets, c.mean, c.padding_idx)
    if c.factors is not None:
        rows = rows * widened(c.factors).unsqueeze(-1)
    height = c.shape("weight")[0]
    return F._embedding_backward(rows, c.indices, height, c.padding_idx, c.scale_grad_by_freq)


def _grad_factors(c: Context, g: Tensor) -> Tensor:
    rows = rows_of(g, c.indices, c.offsets, c.mean, c.padding_idx)
    return (rows * widened(F._embedding(c.weight, c.indices, NO_ROW, False))).sum(-1)


structured(
    "_bag(Tensor weight, Tensor indices, Tensor offsets, Tensor? factors, bool mean, "
    "int padding_idx, bool scale_grad_by_freq, bool ends)",
    infer=lambda weight, indices, offsets, factors, mean, padding, by_frequency, ends: weight.like(
        (offsets.numel - ends, weight.shape[1])
    ),
    grad={"weight": _grad_weight, "factors": _grad_factors},
    doc="The sum or mean of the rows that each bag names, padding left out.",
)


@composite(namespaces=("nn.functional",), method=False)
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The mean, sum or maximum of rows of `weight`, for each bag of indices.

    Bags are the rows of a 2-d input, or the parts of a 1-d input that begin at `offsets`. Indices
    equal to `padding_idx` do not count; an empty bag gives zeros. In mode "sum", rows can be
    weighted by `per_sample_weights`.

    >>> weight = votive.tensor([[1.0], [2.0], [4.0]])
    >>> bags = votive.tensor([0, 1, 2]), votive.tensor([0, 2])
    >>> votive.nn.functional.embedding_bag(bags[0], weight, bags[1], mode="sum")
    tensor([[3.],
            [4.]])
    """
    if weight.dtype is dt.int64 and input.dtype.is_floating_point:
        warnings.warn(f"{OP}: weight comes second; swapping the two is deprecated.", stacklevel=2)
        input, weight = weight, input
    factors = per_sample_weights
    if factors is not None and factors.shape != input.shape:
        have = f"{tuple(factors.shape)} for {tuple(input.shape)}"
        fail(ValueError, OP, f"per_sample_weights must have the input's shape, got {have}.")
    if weight.ndim != 2:
        fail(ValueError, OP, f"weight must be (rows, features), got {tuple(weight.shape)}.")
    indices, offsets, ends = _flattened(input, offsets, include_last_offset)
    if mode not in ("sum", "mean", "max"):
        fail(ValueError, OP, f"mode must be 'sum', 'mean' or 'max', got {mode!r}.")
    if mode == "max" and (scale_grad_by_freq or sparse):
        fail(ValueError, OP, "mode 'max' has neither scale_grad_by_freq nor sparse gradients.")
    if factors is not None and mode != "sum":
        fail(UnsupportedError, OP, f"per_sample_weights go with mode 'sum', got {mode!r}.")
    for name, given in (("input", indices), ("offsets", offsets)):
        check_indices(OP, name, given._spec)
    if not weight.dtype.is_floating_point:
        fail(DtypeError, OP, f"weight must be floating-point, got {weight.dtype}.")
    if factors is not None and factors.dtype is not weight.dtype:
        types = f"{factors.dtype} and {weight.dtype}"
        fail(DtypeError, OP, f"per_sample_weights and weight must have one dtype, got {types}.")
    padding = padding_row(OP, padding_idx, weight, RuntimeError)
    if max_norm is not None or mode == "max":
        _check_values(indices, offsets, weight.shape[0])
    if max_norm is not None:
        with untracked():
            embedding_renorm_(weight, indices, max_norm, norm_type)

    if ends and offsets.numel() == 0:
        fail(ShapeError, OP, "include_last_offset needs at least one offset.")
    count = offsets.numel() - ends
    if count == 0:
        _check_values(indices, offsets, weight.shape[0])
        return F.zeros((0, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    if mode != "max":
        factors = None if factors is None else factors.reshape(-1)
        mean = mode == "mean"
        if sparse and recording.grad and (weight._rg or (factors is not None and factors._rg)):
            module = with_sparse_gradient(OP, scale_grad_by_freq)
            made: Tensor = module.bags(weight, factors, indices, offsets, mean, padding, ends)
            return made
        return F._bag(weight, indices, offsets, factors, mean, padding, scale_grad_by_freq, ends)
    bags = _bag_of_each(offsets, indices.numel())
    if ends:  # what lies behind the last offset belongs to no bag
        inside = bags < count
        indices, bags = indices[inside], bags[inside]
    return _largest(weight, indices, bags, count, padding)
