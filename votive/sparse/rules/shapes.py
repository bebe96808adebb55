"""Transposing, joining and adding dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.layout import Size, wrap_dim
from ...core.memory_format import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ...core.mode import mode
from ...core.promotion import promote_types
from ...ops.registry import F
from ..convert import as_coo, convert
from ..tensor import BLOCKED, CompressedTensor, CooTensor, SparseTensor, compressed_tensor, coo, rearranged, values_of
from .table import into, refuse, rule

_TRANSPOSED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


@rule("transpose", "swapaxes")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> Any:
    """Two dimensions exchanged."""
    n = input.ndim
    a, b = wrap_dim("transpose", dim0, n), wrap_dim("transpose", dim1, n)
    if a == b:
        return input
    a, b = min(a, b), max(a, b)
    if input._rg and mode.grad:
        return rearranged(input, lambda x: transpose(x, a, b), lambda g: g.transpose(a, b))
    shape = list(input.shape)
    shape[a], shape[b] = shape[b], shape[a]
    values = values_of(input)
    if isinstance(input, CooTensor):
        sparse = input.sparse_dim()
        if b < sparse:
            order = list(range(sparse))
            order[a], order[b] = b, a
            return coo(input._at[order], values, shape, input._nnz() < 2)
        if a >= sparse:
            return coo(input._at, values.transpose(a - sparse + 1, b - sparse + 1), shape, input._coalesced)
        refuse("transpose", input, " between a sparse and a dense dimension")
    assert isinstance(input, CompressedTensor)
    batch = input._batch
    if (a, b) == (batch, batch + 1):
        if input._layout in BLOCKED:
            values = values.transpose(batch + 1, batch + 2)
        return compressed_tensor(_TRANSPOSED[input._layout], input._starts, input._plain, values, shape)
    if b < batch:
        parts = (input._starts.transpose(a, b), input._plain.transpose(a, b), values.transpose(a, b))
        return compressed_tensor(input._layout, *parts, shape)
    refuse("transpose", input, f" along dimensions {a} and {b}")


@rule("t")
def _t(input: SparseTensor) -> Any:
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return input if input.ndim < 2 else transpose(input, 0, 1)


@rule("adjoint")
def _adjoint(input: SparseTensor) -> Any:
    return F.conj_physical(transpose(input, -2, -1))


@rule("permute")
def _permute(input: SparseTensor, *dims: Any) -> Any:
    if len(dims) == 1 and isinstance(dims[0], (tuple, list, Size)):
        dims = tuple(dims[0])
    order = [wrap_dim("permute", d, input.ndim) for d in dims]
    if sorted(order) != list(range(input.ndim)):
        raise RuntimeError(f"permute: dims {tuple(dims)} are not an order of {input.ndim} dimensions.")
    if order == list(range(input.ndim)):
        return input
    if input._rg and mode.grad:
        inverse = [order.index(d) for d in range(input.ndim)]
        return rearranged(input, lambda x: _permute(x, order), lambda g: g.permute(inverse))
    if not isinstance(input, CooTensor):
        if input.ndim == 2:
            return transpose(input, 0, 1)
        refuse("permute", input)
    sparse = input.sparse_dim()
    if any((d < sparse) != (k < sparse) for k, d in enumerate(order)):
        raise RuntimeError("permute: sparse and dense dimensions cannot be exchanged.")
    values = values_of(input).permute(0, *(d - sparse + 1 for d in order[sparse:]))
    moved = order[:sparse] != list(range(sparse))
    shape = [input._spec.shape[d] for d in order]
    coalesced = input._coalesced and not moved
    return coo(input._at[order[:sparse]] if sparse else input._at, values, shape, coalesced)


@rule("_permute")
def _permute_op(input: SparseTensor, dims: Sequence[int]) -> Any:
    return _permute(input, tuple(dims))


@rule("movedim")
def _movedim(input: SparseTensor, source: Any, destination: Any) -> Any:
    src = [source] if isinstance(source, int) else list(source)
    dst = [destination] if isinstance(destination, int) else list(destination)
    src = [wrap_dim("movedim", d, input.ndim) for d in src]
    dst = [wrap_dim("movedim", d, input.ndim) for d in dst]
    order = [d for d in range(input.ndim) if d not in src]
    for to, d in sorted(zip(dst, src, strict=True)):
        order.insert(to, d)
    return _permute(input, tuple(order))


@rule("unsqueeze")
def _unsqueeze(input: SparseTensor, dim: int) -> Any:
    d = wrap_dim("unsqueeze", dim, input.ndim + 1)
    shape = [*input.shape[:d], 1, *input.shape[d:]]
    values = values_of(input)
    if not isinstance(input, CooTensor):
        refuse("unsqueeze", input)
    sparse = input.sparse_dim()
    if d > sparse:
        return coo(input._at, values.unsqueeze(d - sparse + 1), shape, input._coalesced)
    row = F.zeros((1, input._nnz()), dtype=input._at.dtype, device=input.device)
    return coo(F.cat((input._at[:d], row, input._at[d:])), values, shape, input._coalesced)


@rule("squeeze")
def _squeeze(input: SparseTensor, dim: Any = None) -> Any:
    if not isinstance(input, CooTensor):
        refuse("squeeze", input)
    n = input.ndim
    dims = range(n) if dim is None else (dim,) if isinstance(dim, int) else dim
    gone = {d for d in (wrap_dim("squeeze", d, n) for d in dims) if n and input._spec.shape[d] == 1}
    sparse = input.sparse_dim()
    kept = [d for d in range(sparse) if d not in gone]
    if not kept and sparse:
        kept = [0]
        gone.discard(0)
    values = values_of(input)
    for d in sorted((d for d in gone if d >= sparse), reverse=True):
        values = values.squeeze(d - sparse + 1)
    shape = [s for d, s in enumerate(input._spec.shape) if d not in gone]
    return coo(input._at[kept], values, shape, input._coalesced)


@rule("cat")
def _cat(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    tensors = list(tensors)
    if not all(isinstance(t, SparseTensor) for t in tensors):
        raise RuntimeError("cat: all tensors must be sparse, or all dense; convert with to_sparse() or to_dense().")
    first = tensors[0]
    if any(t._layout is not first._layout for t in tensors):
        raise RuntimeError("cat: all tensors must have the same layout.")
    if not isinstance(first, CooTensor):
        if first._batch or first._layout in BLOCKED:
            refuse("cat", first)
        return convert(_cat([as_coo(t) for t in tensors], dim), first._layout)
    d = wrap_dim("cat", dim, first.ndim)
    sparse = first.sparse_dim()
    dtype = first.dtype
    for t in tensors[1:]:
        dtype = promote_types(dtype, t.dtype)
        if t.ndim != first.ndim or t.sparse_dim() != sparse:
            raise RuntimeError("cat: all tensors must have the same numbers of sparse and dense dimensions.")
        same = [a == b or k == d for k, (a, b) in enumerate(zip(t.shape, first.shape, strict=True))]
        if not all(same):
            raise RuntimeError(
                f"cat: sizes {list(first.shape)} and {list(t.shape)} must match except in dimension {d}."
            )
    shape = list(first.shape)
    shape[d] = sum(t._spec.shape[d] for t in tensors)
    values = [values_of(t).to(dtype) for t in tensors]
    if d < sparse:
        parts, start = [], 0
        for t in tensors:
            shift = F.zeros((sparse, 1), dtype=t._at.dtype, device=t.device)
            shift[d] = start
            parts.append(t._at + shift)
            start += t._spec.shape[d]
        made = coo(F.cat(parts, 1), F.cat(values), shape, False)
    else:
        # Along a dense dimension each tensor's rows have zeros where the others stand.
        rows, start = [], 0
        for t, v in zip(tensors, values, strict=True):
            wide = [t._nnz(), *shape[sparse:]]
            before, after = list(wide), list(wide)
            k = d - sparse + 1
            before[k], after[k] = start, shape[d] - start - t._spec.shape[d]
            rows.append(F.cat((v.new_zeros(before), v, v.new_zeros(after)), k))
            start += t._spec.shape[d]
        made = coo(F.cat([t._at for t in tensors], 1), F.cat(rows), shape, False)
    return made if out is None else into("cat", out, made)


@rule("stack")
def _stack(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    tensors = list(tensors)
    if not all(isinstance(t, CooTensor) for t in tensors):
        refuse("stack", next(t for t in tensors if isinstance(t, SparseTensor)))
    d = wrap_dim("stack", dim, tensors[0].ndim + 1)
    return _cat([_unsqueeze(t, d) for t in tensors], d, out=out)


@rule("vstack", "hstack")
def _refused_stack(tensors: Sequence[Any], *, out: Any = None) -> Any:
    refuse("stack", next(t for t in tensors if isinstance(t, SparseTensor)))


@rule("reshape", "view", "_view", "flatten", "reshape_as", "view_as", "ravel")
def _reshape(input: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        f"reshape is not implemented for {input._describe((input,))} tensors; use .to_dense().reshape()."
    )


@rule("expand", "expand_as", "repeat", "broadcast_to", "tile")
def _expand(input: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(f"expand is unsupported for {input._describe((input,))} tensors; use .to_dense().")
