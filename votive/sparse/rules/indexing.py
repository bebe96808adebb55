"""Parts of sparse tensors: one index, a range, a list of indices."""

from __future__ import annotations

from typing import Any

from ...core.errors import dim_range
from ...core.layout import wrap_dim
from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor
from ..convert import as_coo, convert, whole
from ..indices import compressed, repeat_rows
from ..tensor import BLOCKED, CompressedTensor, CooTensor, SparseTensor, compressed_tensor, coo, values_of
from .table import refuse, rule


@rule("select")
def select(input: SparseTensor, dim: int, index: int) -> Any:
    """One index of a dimension, which is then gone."""
    if input.ndim == 0:
        dim_range("select", dim, 0, ())
    d = wrap_dim("select", dim, input.ndim)
    size = input._spec.shape[d]
    index = int(index)
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {d}"
        )
    index %= size
    shape = [*input.shape[:d], *input.shape[d + 1 :]]
    if isinstance(input, CompressedTensor):
        if d < input._batch:
            parts = (input._starts.select(d, index), input._plain.select(d, index), values_of(input).select(d, index))
            return compressed_tensor(input._layout, *parts, shape)
        if input._batch:
            refuse("select", input, " with batches along this dimension")
        return select(as_coo(input), dim, index)
    assert isinstance(input, CooTensor)
    sparse = input.sparse_dim()
    if d >= sparse:
        return coo(input._at, values_of(input).select(d - sparse + 1, index), shape, input._coalesced)
    kept = F.nonzero(input._at[d] == index).reshape(-1)
    values = F.index_select(values_of(input), 0, kept)
    if sparse == 1:
        return whole(input).select(d, index) if input._rg else values.sum(0)
    rows = [k for k in range(sparse) if k != d]
    return coo(F.index_select(input._at, 1, kept)[rows], values, shape, input._coalesced or kept.shape[0] < 2)


def part(x: CooTensor, d: int, start: int, length: int, step: int = 1) -> Any:
    """A range of a dimension."""
    shape = list(x.shape)
    shape[d] = length
    sparse = x.sparse_dim()
    if d >= sparse:
        values = F._slice(values_of(x), d - sparse + 1, start, start + length * step, step)
        return coo(x._at, values, shape, x._coalesced)
    at = x._at[d] - start
    there = (at >= 0) & (at < length * step)
    if step > 1:
        there = there & (at % step == 0)
    kept = F.nonzero(there).reshape(-1)
    found = F.index_select(x._at, 1, kept)
    rows = [(found[k] - start) // step if k == d else found[k] for k in range(sparse)]
    return coo(F.stack(rows), F.index_select(values_of(x), 0, kept), shape, x._coalesced)


@rule("narrow", "narrow_copy")
def _narrow(input: SparseTensor, dim: int, start: Any, length: int) -> Any:
    d = wrap_dim("narrow", dim, input.ndim)
    size = input._spec.shape[d]
    begin = int(start)
    if not -size <= begin <= size:
        raise IndexError(f"narrow: start {begin} is out of range for dimension {d} of size {size}.")
    begin = begin + size if begin < 0 else begin
    if length < 0 or begin + length > size:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({size}).")
    return _sliced(input, d, begin, length, 1)


def _sliced(x: SparseTensor, d: int, start: int, length: int, step: int) -> Any:
    if isinstance(x, CooTensor):
        return part(x, d, start, length, step)
    assert isinstance(x, CompressedTensor)
    if x._batch or x._layout in BLOCKED or x.dense_dim():
        refuse("slice", x)
    return convert(part(as_coo(x), d, start, length, step), x._layout)


@rule("_slice")
def _slice(input: SparseTensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    d = wrap_dim("slice", dim, input.ndim)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    begin, stop, _ = slice(start, end).indices(input._spec.shape[d])
    return _sliced(input, d, begin, max(0, -(-(stop - begin) // step)), step)


@rule("index_select")
def _index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Any:
    if not isinstance(input, SparseTensor):
        refuse("index_select", index, " as index")
    if out is not None:
        refuse("index_select with out=", input)
    d = wrap_dim("index_select", dim, input.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    index = index.reshape(-1)
    if isinstance(input, CompressedTensor):
        if input._batch or input._layout in BLOCKED:
            refuse("index_select", input)
        return convert(_index_select(as_coo(input), dim, index), input._layout)
    assert isinstance(input, CooTensor)
    shape = list(input.shape)
    size = shape[d]
    shape[d] = index.shape[0]
    low = index.numel() and (int(index.min().item()) < -size or int(index.max().item()) >= size)
    if low:
        raise IndexError(f"index_select(): index out of range for dimension {d} of size {size}")
    index = F.where(index < 0, index + size, index)
    sparse = input.sparse_dim()
    if d >= sparse:
        values = F.index_select(values_of(input), d - sparse + 1, index)
        return coo(input._at, values, shape, input._coalesced)
    # Elements sorted by this dimension; each wanted index takes the run of its elements.
    order = F.argsort(input._at[d], stable=True)
    starts = compressed(input._at[d][order], size)
    counts = starts[index + 1] - starts[index]
    total = int(counts.sum().item())
    which, number = repeat_rows(counts, total)
    taken = order[starts[index][which] + number]
    found = F.index_select(input._at, 1, taken)
    rows = [which if k == d else found[k] for k in range(sparse)]
    return coo(F.stack(rows), F.index_select(values_of(input), 0, taken), shape, False)


@rule("_getitem")
def _getitem(input: Tensor, index: Any) -> Any:
    if not isinstance(input, SparseTensor):
        refuse("indexing", index if isinstance(index, SparseTensor) else input, " as index")
    parts = list(index) if isinstance(index, tuple) else [index]
    given = sum(1 for p in parts if p is not None and p is not Ellipsis)
    if given > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim}")
    if input._rg and mode.grad and given == input.ndim and all(type(p) is int for p in parts):
        return whole(input)[tuple(parts)]
    out, d = input, 0
    for p in parts:
        if p is Ellipsis:
            d += input.ndim - given
        elif p is None:
            out = F.unsqueeze(out, d)
            d += 1
        elif isinstance(p, slice):
            size = out.shape[d]
            begin, stop, step = p.indices(size)
            if (begin, stop, step) != (0, size, 1):
                out = F._slice(out, d, p.start, p.stop, step)
            d += 1
        elif hasattr(p, "__index__") and not isinstance(p, bool) and not (isinstance(p, Tensor) and p.ndim):
            out = F.select(out, d, int(p))
        else:
            refuse("indexing", input, f" by {type(p).__name__}")
    return out


@rule("_setitem")
def _setitem(input: Tensor, index: Any, value: Any) -> Any:
    if isinstance(input, SparseTensor):
        raise TypeError("Cannot assign to a sparse tensor; change its .values(), or use .to_dense().")
    refuse("assignment to parts", value if isinstance(value, SparseTensor) else index)


@rule("unbind")
def _unbind(input: SparseTensor, dim: int = 0) -> Any:
    d = wrap_dim("unbind", dim, input.ndim)
    return tuple(select(input, d, k) for k in range(input._spec.shape[d]))


@rule("diagonal")
def _diagonal(input: SparseTensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    refuse("diagonal", input)
