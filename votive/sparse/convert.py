"""Between layouts: coalescing, dense to sparse and back, and from one sparse layout to another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..autograd.function import Function
from ..core import dtype as dt
from ..core.memory_format import layout as Layout
from ..core.memory_format import sparse_coo, sparse_csr, strided
from ..core.mode import mode
from ..ops.registry import F
from ..tensor import Tensor
from .indices import add_at, blocks_of, compressed, from_blocks, lookup, merge, ravel, unravel
from .tensor import (
    BLOCKED,
    BY_ROWS,
    NAMES,
    CompressedTensor,
    CooTensor,
    SparseTensor,
    compressed_tensor,
    coo,
    like,
    rearranged,
    values_of,
)

if TYPE_CHECKING:
    from ..core.dtype import dtype as Dtype


def coalesce(x: CooTensor) -> CooTensor:
    """Every index once, in order, with the sum of its values."""
    if x._coalesced:
        return x
    if x._nnz() < 2:
        made: CooTensor = coo(x._at, values_of(x), x.shape, True)
        return made
    sizes = x._spec.shape[: x.sparse_dim()]
    flat, values = merge(ravel(x._at, sizes), values_of(x))
    made = coo(unravel(flat, sizes), values, x.shape, True)
    return made


def places(x: CompressedTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Batch, block row and block column of every block of a compressed tensor, flat."""
    nnz = x._nnz()
    plain = x._plain.to(dt.int64)
    n = math.prod(x._starts.shape[:-1])
    major = x._majors().reshape(n * nnz)
    minor = plain.reshape(n * nnz)
    at = F.arange(n, device=x.device)
    batch = at.unsqueeze(1).expand(n, nnz).reshape(n * nnz)
    rows, columns = (major, minor) if x._layout in BY_ROWS else (minor, major)
    return batch, rows, columns


def grid(x: CompressedTensor) -> tuple[int, int, int]:
    """How many batches, block rows and block columns there are."""
    batch = x._batch
    r, c = x._block
    rows, columns = x._spec.shape[batch : batch + 2]
    return math.prod(x._spec.shape[:batch]), rows // r, columns // c


def flat_values(x: CompressedTensor, values: Tensor) -> Tensor:
    """(*batch, nnz, *block, *more) as (B * nnz, r, c, *more)."""
    r, c = x._block
    more = tuple(x._spec.shape[x._batch + 2 :])
    n = math.prod(x._starts.shape[:-1])
    return values.reshape(n * x._nnz(), r, c, *more)


def dense(x: SparseTensor) -> Tensor:
    """All elements of a sparse tensor."""
    values = values_of(x)
    if isinstance(x, CooTensor):
        sizes = x._spec.shape[: x.sparse_dim()]
        out = add_at(math.prod(sizes), ravel(x._at, sizes), values)
        return out.reshape(x._spec.shape)
    assert isinstance(x, CompressedTensor)
    batch, rows, columns = places(x)
    n, r, c = grid(x)
    flat = add_at(n * r * c, (batch * r + rows) * c + columns, flat_values(x, values))
    return from_blocks(flat.reshape(n, r, c, *flat.shape[1:]), x._spec.shape)


def values_at(g: Tensor, pattern: SparseTensor) -> Tensor:
    """The elements of a tensor at the indices of a sparse one, in the shape of its values."""
    if isinstance(g, SparseTensor):
        if pattern._same_indices(g):
            return values_of(g)
        if not g.dense_dim() and not pattern.dense_dim():
            return _looked_up(g, pattern)
        g = dense(g)
    if isinstance(pattern, CooTensor):
        sizes = pattern._spec.shape[: pattern.sparse_dim()]
        rows = g.reshape(math.prod(sizes), *pattern._spec.shape[pattern.sparse_dim() :])
        return F.index_select(rows, 0, ravel(pattern._at, sizes))
    assert isinstance(pattern, CompressedTensor)
    batch, rows, columns = places(pattern)
    _, r, c = grid(pattern)
    blocks = blocks_of(g, pattern._batch, pattern._block)
    flat = blocks.reshape(math.prod(blocks.shape[:3]), *blocks.shape[3:])
    return F.index_select(flat, 0, (batch * r + rows) * c + columns).reshape(pattern._held.shape)


def _looked_up(g: SparseTensor, pattern: SparseTensor) -> Tensor:
    """`values_at` of one sparse tensor at the indices of another."""
    found = coalesce(as_coo(g))
    sizes = pattern._spec.shape
    at = as_coo(_numbered(pattern))
    where, there = lookup(ravel(found._at, sizes), ravel(at._at, sizes))
    if found._nnz() == 0:
        return F.zeros(pattern._held.shape, dtype=g.dtype, device=g.device)
    values = F.index_select(values_of(found), 0, where)
    values = F.where(there, values, F.zeros_like(values))
    # Back into the order that the pattern has.
    return F.index_select(values, 0, F.argsort(at._held)).reshape(pattern._held.shape)


def _numbered(pattern: SparseTensor) -> SparseTensor:
    """The same indices, with the place of each value in the list of values."""
    held = pattern._held
    return pattern._with(F.arange(held.numel(), device=held.device).reshape(held.shape))


def first_of_each(pattern: CooTensor, g: Tensor) -> Any:
    """The gradient of a tensor whose indices repeat: all values of an index have the same, which counts once."""
    sizes = pattern._spec.shape[: pattern.sparse_dim()]
    flat = ravel(pattern._at, sizes)
    order = F.argsort(flat, stable=True)
    ordered = flat[order]
    begins = F.cat((F.ones_like(ordered[:1], dtype=dt.bool_), ordered[1:] != ordered[:-1]))
    first = order[F.nonzero(begins).reshape(-1)]
    return coo(F.index_select(pattern._at, 1, first), F.index_select(g, 0, first), pattern.shape, True)


def to_dense(x: SparseTensor, dtype: Dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """`Tensor.to_dense` of a sparse tensor."""
    out = dense(x) if masked_grad in (None, True) or not x._rg else _Whole.apply(x)
    return out if dtype is None else out.to(dtype)


def sparse_coo_of(x: Tensor, sparse_dim: int | None = None) -> Any:
    """A dense tensor as COO: the elements (or rows of `dense_dim` dimensions) that are not zero."""
    n = x.ndim if sparse_dim is None else sparse_dim
    if n == 0 and x.ndim > 0:
        raise RuntimeError("sparse_dim argument must be >0 when dim>0, but 0 is given")
    if not 0 <= n <= x.ndim:
        raise RuntimeError(f"sparse_dim argument must be in range [0,{x.ndim}], but {n} is given")
    there = x.detach() != 0
    if n < x.ndim:
        there = there.reshape(*x.shape[:n], math.prod(x._spec.shape[n:])).any(-1)
    flat = F.nonzero(there.reshape(-1)).reshape(-1)
    sizes = tuple(x.shape[:n])
    rows = x.reshape(math.prod(sizes), *x.shape[n:])
    return coo(unravel(flat, sizes), F.index_select(rows, 0, flat), x.shape, True)


def compressed_of(x: Tensor, layout: Layout, block: tuple[int, int] = (1, 1), dense_dim: int = 0) -> Any:
    """A dense tensor as one of the compressed layouts."""
    name = f"to_{layout.name}"
    batch = x.ndim - 2 - dense_dim
    if batch < 0 or dense_dim < 0:
        raise RuntimeError(f"{name}: a tensor of {x.ndim} dimensions has not two sparse ones beside {dense_dim} dense.")
    rows, columns = x.shape[batch : batch + 2]
    check_block(name, (rows, columns), block)
    cut = blocks_of(x, batch, block)  # (B, R, C, r, c, *more)
    there = cut.detach() != 0
    there = there.reshape(*there.shape[:3], math.prod(there._spec.shape[3:])).any(-1)
    if layout not in BY_ROWS:
        there = there.transpose(1, 2)
    n, major, _ = there.shape
    counts = there.sum((1, 2))
    nnz = int(counts[0].item()) if n else 0
    if n and not bool((counts == nnz).all().item()):
        raise RuntimeError(
            f"Expect the same number of specified elements per batch; {name} got {counts.tolist()} in its batches."
        )
    at = F.nonzero(there)  # (B * nnz, 3)
    if layout in BY_ROWS:
        values = cut[at[:, 0], at[:, 1], at[:, 2]]
    else:
        values = cut[at[:, 0], at[:, 2], at[:, 1]]
    starts = F.stack([compressed(at[b * nnz : (b + 1) * nnz, 1], major) for b in range(n)]) if n else None
    lead = tuple(x.shape[:batch])
    if starts is None:
        starts = F.zeros((0, major + 1), dtype=dt.int64, device=x.device)
    inner = tuple(block) if layout in BLOCKED else ()
    return compressed_tensor(
        layout,
        starts.reshape(*lead, major + 1),
        at[:, 2].reshape(*lead, nnz),
        values.reshape(*lead, nnz, *inner, *x.shape[batch + 2 :]),
        x.shape,
    )


def check_block(name: str, sizes: tuple[int, int], block: tuple[int, int]) -> None:
    """Blocks must fill the matrix."""
    if block[0] < 1 or block[1] < 1:
        raise RuntimeError(f"{name}: blocksize needs to be positive, got {tuple(block)}.")
    if sizes[0] % block[0] or sizes[1] % block[1]:
        raise RuntimeError(
            f"{name}: tensor sparse size ({sizes[0]}, {sizes[1]}) must be divisible by given blocksize "
            f"({block[0]}, {block[1]})."
        )


def as_coo(x: SparseTensor) -> CooTensor:
    """Any sparse tensor as a coalesced COO one; every element of a block counts as specified."""
    if isinstance(x, CooTensor):
        return x
    assert isinstance(x, CompressedTensor)
    batch, rows, columns = places(x)
    r, c = x._block
    values = flat_values(x, values_of(x))
    more = values.shape[3:]
    within = F.arange(r * c, device=x.device)
    rows = (rows.unsqueeze(1) * r + within // c).reshape(-1)
    columns = (columns.unsqueeze(1) * c + within % c).reshape(-1)
    values = values.reshape(values.shape[0] * r * c, *more)
    sizes = x._spec.shape[: x._batch + 2]
    batch = batch.unsqueeze(1).expand(batch.shape[0], r * c).reshape(-1)
    flat = (batch * sizes[-2] + rows) * sizes[-1] + columns
    if x._layout is not sparse_csr:
        order = F.argsort(flat, stable=True)
        flat, values = flat[order], F.index_select(values, 0, order)
    made: CooTensor = coo(unravel(flat, sizes), values, x.shape, True)
    return made


def from_coo(x: CooTensor, layout: Layout, block: tuple[int, int] | None) -> Any:
    """A COO tensor in a compressed layout."""
    name = f"to_{layout.name}"
    if x.sparse_dim() != 2:
        raise RuntimeError(
            f"{name}: conversion from SparseCOO to {NAMES[layout]} takes two sparse dimensions, got {x.sparse_dim()}."
        )
    x = coalesce(x)
    rows, columns = x._at[0], x._at[1]
    sizes = (x._spec.shape[0], x._spec.shape[1])
    values = values_of(x)
    if layout in BLOCKED:
        if block is None:
            raise RuntimeError(f"{name}: a blocksize is needed.")
        check_block(name, sizes, block)
        (r, c), more = block, values.shape[1:]
        gr, gc = sizes[0] // r, sizes[1] // c
        block_row, block_column = rows // r, columns // c
        flat = block_row * gc + block_column if layout in BY_ROWS else block_column * gr + block_row
        found, inverse = F.unique(flat, sorted=True, return_inverse=True)
        inside = inverse * (r * c) + (rows % r) * c + columns % c
        values = add_at(found.shape[0] * r * c, inside, values).reshape(found.shape[0], r, c, *more)
        width, height = (gc, gr) if layout in BY_ROWS else (gr, gc)
        return compressed_tensor(layout, compressed(found // width, height), found % width, values, x.shape)
    if layout is sparse_csr:
        return compressed_tensor(layout, compressed(rows, sizes[0]), columns.clone(), values, x.shape)
    order = F.argsort(columns, stable=True)
    starts = compressed(columns[order], sizes[1])
    return compressed_tensor(layout, starts, rows[order], F.index_select(values, 0, order), x.shape)


def convert(x: SparseTensor, layout: Layout, block: tuple[int, int] | None = None) -> Any:
    """A sparse tensor in another layout; a gradient comes back in the first."""
    if layout is strided:
        return dense(x)
    if x._rg and mode.grad and x._layout is not layout:
        own = x._block if isinstance(x, CompressedTensor) and x._layout in BLOCKED else None
        first = x._layout

        def back(g: Tensor) -> Any:
            return convert(g, first, own) if isinstance(g, SparseTensor) else g

        return rearranged(x, lambda x: convert(x, layout, block), back)
    same_blocks = block is None or (isinstance(x, CompressedTensor) and block == x._block)
    if x._layout is layout and same_blocks:
        return x
    if layout is sparse_coo:
        return as_coo(x)
    if isinstance(x, CompressedTensor) and x._batch:
        if block is None and layout in BLOCKED:
            block = x._block
        return compressed_of(dense(x), layout, block or (1, 1), x.dense_dim())
    if isinstance(x, CompressedTensor) and layout in BLOCKED and x._layout in BLOCKED and block in (None, x._block):
        return _exchanged(x, layout)
    return from_coo(as_coo(x), layout, block)


def _exchanged(x: CompressedTensor, layout: Layout) -> Any:
    """BSR as BSC, or the other way: the same blocks in another order."""
    _, rows, columns = places(x)
    _, r, c = grid(x)
    major, minor, n = (rows, columns, r) if layout in BY_ROWS else (columns, rows, c)
    order = F.argsort(major, stable=True)
    values = F.index_select(values_of(x), 0, order)
    return compressed_tensor(layout, compressed(major[order], n), minor[order], values, x.shape)


def to_sparse(x: Tensor, *args: Any, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """`Tensor.to_sparse`: by a number of sparse dimensions, or by layout."""
    if args and isinstance(args[0], Layout):
        layout, args = args[0], args[1:]
    if args:
        if len(args) > 1 or layout is not None:
            raise TypeError("to_sparse: takes the number of sparse dimensions, or layout=, blocksize= and dense_dim=.")
        n = int(args[0])
        if isinstance(x, SparseTensor):
            if n != x.sparse_dim():
                raise RuntimeError(f"to_sparse: the tensor has {x.sparse_dim()} sparse dimensions, not {n}.")
            return convert(x, sparse_coo)
        return sparse_coo_of(x, n)
    layout = sparse_coo if layout is None else layout
    block = None if blocksize is None else (int(blocksize[0]), int(blocksize[1]))
    if (block is not None) != (layout in BLOCKED) and not (isinstance(x, SparseTensor) and block is None):
        what = "is needed for" if block is None else "is only for SparseBSR and SparseBSC, not for"
        raise RuntimeError(f"to_sparse: blocksize {what} {NAMES.get(layout, layout)}.")
    if isinstance(x, SparseTensor):
        if dense_dim is not None and dense_dim != x.dense_dim():
            raise RuntimeError(f"to_sparse: dense_dim is {x.dense_dim()} and cannot become {dense_dim}.")
        return convert(x, layout, block)
    if layout is strided:
        return x
    if layout is sparse_coo:
        return sparse_coo_of(x, None if dense_dim is None else x.ndim - dense_dim)
    return compressed_of(x, layout, block or (1, 1), dense_dim or 0)


def sparse_mask(x: Tensor, mask: SparseTensor) -> Any:
    """The elements of `x` at the indices of a sparse tensor; zero where `x` is sparse and has none."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask: mask must be sparse; make one with to_sparse().")
    if tuple(x.shape) != tuple(mask.shape):
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    if isinstance(mask, CooTensor):
        mask = coalesce(mask)
    return like(mask.detach(), values_at(x, mask))


class _AsDense(Function):
    """Dense, with the gradient as it comes: for operators whose gradient is dense in torch."""

    @staticmethod
    def forward(ctx: Any, x: SparseTensor) -> Tensor:
        return dense(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g


def whole(x: SparseTensor) -> Tensor:
    """All elements of a sparse tensor, each of which counts as a variable."""
    return _AsDense.apply(x) if x._rg and mode.grad else dense(x)


class _Whole(Function):
    """Dense, with a gradient of all elements, in the layout of the input."""

    @staticmethod
    def forward(ctx: Any, x: SparseTensor) -> Tensor:
        ctx.layout, ctx.block = x._layout, x._block if isinstance(x, CompressedTensor) else None
        return dense(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return to_sparse(g, layout=ctx.layout, blocksize=ctx.block if ctx.layout in BLOCKED else None)
