"""Matrix products with sparse tensors: rows are gathered, multiplied and added, by operators that are
differentiable and run on every device.
"""

from __future__ import annotations

import math
from typing import Any

from ...autograd.function import Function
from ...core.memory_format import sparse_csr
from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor
from ..convert import as_coo, coalesce, convert, dense, flat_values, grid, places, whole
from ..indices import add_at, compressed, merge, repeat_rows, unravel
from ..tensor import BLOCKED, CompressedTensor, CooTensor, SparseTensor, coo, like, values_of
from .elementwise import add
from .shapes import transpose
from .table import into, refuse, rule


def _check(name: str, a: Tensor, b: Tensor) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"{name}: Expected 2-dimensional matrices, got {a.ndim}D and {b.ndim}D tensors.")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
            f"{b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name}: expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")


def _rows(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row, column and value of every element of a matrix; elements need not be distinct."""
    if isinstance(x, CompressedTensor) and x._layout not in BLOCKED:
        _, rows, columns = places(x)
        return rows, columns, values_of(x)
    x = as_coo(x)
    return x._at[0], x._at[1], values_of(x)


def sparse_dense(a: SparseTensor, b: Tensor) -> Tensor:
    """A sparse matrix times a dense one, or a batch of columns (K, N)."""
    if a.dense_dim():
        refuse("mm", a, " with dense dimensions")
    if isinstance(a, CompressedTensor) and a._layout in BLOCKED:
        return _blocks_dense(a, b)
    rows, columns, values = _rows(a)
    return add_at(a._spec.shape[0], rows, values.unsqueeze(1) * F.index_select(b, 0, columns))


def _blocks_dense(a: CompressedTensor, b: Tensor) -> Tensor:
    """Products of blocks, added by rows of blocks."""
    _, rows, columns = places(a)
    _, height, width = grid(a)
    r, c = a._block
    n = b.shape[1]
    blocks = flat_values(a, values_of(a))  # (nnz, r, c)
    parts = F.matmul(blocks, F.index_select(b.reshape(width, c, n), 0, columns))  # (nnz, r, n)
    return add_at(height, rows, parts).reshape(height * r, n)


def sparse_sparse(a: SparseTensor, b: SparseTensor) -> CooTensor:
    """The product of two sparse matrices, coalesced."""
    if a.dense_dim() or b.dense_dim():
        refuse("mm", a, " with dense dimensions")
    rows, inner, left = _rows(a)
    y = coalesce(as_coo(b))
    starts = compressed(y._at[0], b._spec.shape[0])
    counts = starts[inner + 1] - starts[inner]
    total = int(counts.sum().item()) if counts.shape[0] else 0
    which, number = repeat_rows(counts, total)
    taken = starts[inner][which] + number
    values = F.index_select(left, 0, which) * F.index_select(values_of(y), 0, taken)
    sizes = (a._spec.shape[0], b._spec.shape[1])
    flat, values = merge(rows[which] * sizes[1] + y._at[1][taken], values)
    made: CooTensor = coo(unravel(flat, sizes), values, sizes, True)
    return made


class _Product(Function):
    """A sparse matrix times any other, where every element of it is a variable, as for `mm` in torch."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.both = (a, b)
        return masked_mm(a, b)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.both
        by_a, by_b = ctx.needs_input_grad
        return (mm(g, _adjoint(b)) if by_a else None), (mm(_adjoint(a), g) if by_b else None)


def _adjoint(x: Any) -> Any:
    flipped = transpose(x, 0, 1) if isinstance(x, SparseTensor) else x.t()
    return F.conj_physical(flipped) if x.dtype.is_complex else flipped


def mm(a: Any, b: Any) -> Any:
    """The product of two matrices; gradients are those of all elements, so that they are dense."""
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        return F.mm(a, b)
    if mode.grad and any(x._rg and isinstance(x, SparseTensor) for x in (a, b)):
        return _Product.apply(a, b)
    return masked_mm(a, b)


def masked_mm(a: Any, b: Any) -> Any:
    """The product of two matrices, one or both sparse; gradients are those of the specified elements."""
    _check("mm", a, b)
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        made = sparse_sparse(a, b)
        return made if isinstance(a, CooTensor) and isinstance(b, CooTensor) else convert(made, sparse_csr)
    if isinstance(a, SparseTensor):
        return sparse_dense(a, b)
    return sparse_dense(transpose(b, 0, 1), a.t()).t()


@rule("mm", "_whole_product")
def _mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    made = mm(input, mat2)
    return made if out is None else into("mm", out, made)


@rule("mv")
def _mv(input: Any, vec: Any, *, out: Any = None) -> Any:
    if isinstance(vec, SparseTensor) or input.ndim != 2 or vec.ndim != 1:
        refuse("mv", vec if isinstance(vec, SparseTensor) else input, f" of {input.ndim} and {vec.ndim} dimensions")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(f"mv: Expected self.size(-1) == vec.size(-1), got {input.shape[1]} and {vec.shape[0]}.")
    made = mm(input, vec.unsqueeze(1)).squeeze(1)
    return made if out is None else into("mv", out, made)


@rule("matmul")
def _matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    if out is not None:
        refuse("matmul with out=", input if isinstance(input, SparseTensor) else other)
    a, b = input, other
    if a.ndim == 2 and b.ndim == 1 and isinstance(a, SparseTensor):
        return _mv(a, b)
    if a.ndim == 1 and b.ndim == 2 and isinstance(b, SparseTensor):
        return _mv(transpose(b, 0, 1), a)
    if a.ndim == 2 and b.ndim == 2:
        return mm(a, b)
    if a.ndim == 3 and b.ndim == 3:
        return bmm(a, b)
    refuse("matmul", a if isinstance(a, SparseTensor) else b, f" of {a.ndim} and {b.ndim} dimensions")


@rule("bmm")
def bmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Products of a batch of sparse matrices and dense ones."""
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor) or out is not None:
        refuse("bmm", mat2 if isinstance(mat2, SparseTensor) else input, " as second operand or with out=")
    if input.ndim != 3 or mat2.ndim != 3 or input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(f"bmm: shapes {tuple(input.shape)} and {tuple(mat2.shape)} cannot be multiplied.")
    if input._rg and mode.grad:
        return F.bmm(whole(input), mat2)
    x = as_coo(input)
    if x.dense_dim():
        refuse("bmm", x, " with dense dimensions")
    n, rows, inner = input._spec.shape
    columns = mat2.shape[2]
    flat = mat2.reshape(n * inner, columns)
    parts = values_of(x).unsqueeze(1) * F.index_select(flat, 0, x._at[0] * inner + x._at[2])
    return add_at(n * rows, x._at[0] * rows + x._at[1], parts).reshape(n, rows, columns)


def addmm(input: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1, multiply: Any = mm) -> Any:
    """beta * input + alpha * (mat1 @ mat2)."""
    product = multiply(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if isinstance(input, SparseTensor) and isinstance(product, SparseTensor):
        left = input if beta == 1 else input * beta
        return add(left, convert(product, left._layout) if product._layout is not left._layout else product)
    if isinstance(product, SparseTensor):
        product = dense(product)
    if isinstance(input, SparseTensor):
        if not isinstance(input, CooTensor):
            refuse("addmm", input, " as input of a dense product")
        input = dense(input)
    if beta == 0:
        return product.expand(F.broadcast_shapes(tuple(input.shape), tuple(product.shape)))
    return (input if beta == 1 else input * beta) + product


@rule("addmm")
def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    made = addmm(input, mat1, mat2, beta, alpha)
    return made if out is None else into("addmm", out, made)


@rule("addmm_")
def _addmm_(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return into("addmm_", input, addmm(input, mat1, mat2, beta, alpha))


@rule("addmv")
def _addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    made = input * beta + alpha * _mv(mat, vec)
    return made if out is None else into("addmv", out, made)


@rule("linear")
def _linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Any:
    if isinstance(bias, SparseTensor) or out is not None:
        refuse("linear", bias, " as bias or with out=")
    w = transpose(weight, 0, 1) if isinstance(weight, SparseTensor) else weight.t()
    if input.ndim == 1:
        made = _mv(weight, input)
    elif isinstance(input, SparseTensor) or input.ndim == 2:
        made = mm(input, w)
    else:
        made = mm(input.reshape(math.prod(input.shape[:-1]), input.shape[-1]), w).reshape(
            *input.shape[:-1], weight.shape[0]
        )
    return made if bias is None else made + bias


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)` at the indices of `input` only."""
    if not isinstance(input, CompressedTensor) or input._layout is not sparse_csr:
        raise RuntimeError("sampled_addmm: Expected self to be a sparse CSR tensor; use .to_sparse_csr().")
    if mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(f"sampled_addmm: shapes {tuple(mat1.shape)} and {tuple(mat2.shape)} cannot be multiplied.")
    if (*mat1.shape[:-1], mat2.shape[-1]) != tuple(input.shape):
        raise RuntimeError(f"sampled_addmm: the product has another shape than input, {tuple(input.shape)}.")
    batch, rows, columns = places(input)
    height, width = input._spec.shape[-2:]
    inner = mat1.shape[-1]
    left = F.index_select(mat1.reshape(math.prod(mat1.shape[:-1]), inner), 0, batch * height + rows)
    right = F.index_select(
        mat2.transpose(-2, -1).reshape(mat2.numel() // max(inner, 1), inner), 0, batch * width + columns
    )
    values = (left * right).sum(-1).reshape(input._held.shape)
    return like(input, values_of(input) * beta + values * alpha)


def smm(input: Any, mat: Any) -> Any:
    """The product of a sparse and a dense matrix as a sparse one.

    >>> votive.smm(votive.eye(2).to_sparse(), votive.tensor([[1.0], [2.0]])).to_dense()
    tensor([[1.],
            [2.]])
    """
    return sspaddmm(
        coo(_no_index(2, input), input._held.new_zeros((0,)), (input.shape[0], mat.shape[1]), True), input, mat
    )


def _no_index(n: int, x: Any) -> Tensor:
    return F.zeros((n, 0), dtype=as_coo(x)._at.dtype, device=x.device)


def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)` as a sparse matrix that has the rows `mat1` has.

    >>> one = votive.eye(2).to_sparse()
    >>> votive.sspaddmm(one, one, votive.eye(2), beta=3).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    if not isinstance(mat1, CooTensor) or not isinstance(input, CooTensor):
        refuse("sspaddmm", mat1 if isinstance(mat1, SparseTensor) else input, " that are not SparseCOO")
    _check("sspaddmm", mat1, mat2)
    product = hspmm(mat1, mat2)
    n = mat2.shape[1]
    rows = product._at[0]
    columns = F.arange(n, dtype=rows.dtype, device=rows.device)
    at = F.stack((rows.unsqueeze(1).expand(rows.shape[0], n).reshape(-1), columns.expand(rows.shape[0], n).reshape(-1)))
    made = coo(at, values_of(product).reshape(-1) * alpha, (mat1.shape[0], n), True)
    joined = coo(F.cat((input._at, at), 1), F.cat((values_of(input) * beta, values_of(made))), made.shape, False)
    return joined


def hspmm(mat1: Any, mat2: Any) -> Any:
    """The product of a sparse and a dense matrix as a hybrid tensor: its rows are dense, empty ones absent.

    >>> votive.hspmm(votive.tensor([[0.0, 0.0], [0.0, 2.0]]).to_sparse(), votive.ones(2, 2)).values()
    tensor([[2., 2.]])
    """
    if not isinstance(mat1, CooTensor):
        refuse("hspmm", mat1)
    _check("hspmm", mat1, mat2)
    rows, columns, values = _rows(mat1)
    found, inverse = F.unique(rows, sorted=True, return_inverse=True)
    parts = values.unsqueeze(1) * F.index_select(mat2, 0, columns)
    return coo(found.unsqueeze(0), add_at(found.shape[0], inverse, parts), (mat1.shape[0], mat2.shape[1]), True)
