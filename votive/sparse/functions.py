"""The functions of `votive.sparse`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..core import dtype as dt
from ..core.layout import wrap_dims
from ..core.memory_format import layout as Layout
from ..ops.registry import F
from ..tensor import Tensor
from .convert import coalesce, convert
from .rules import products, reductions
from .tensor import CompressedTensor, CooTensor, SparseTensor, coo, values_of


def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices, of which at least one is sparse; gradients go to both.

    >>> votive.sparse.mm(votive.eye(2).to_sparse(), votive.tensor([[1.0], [2.0]]))
    tensor([[1.],
            [2.]])
    """
    if reduce is not None and reduce != "sum":
        return _reduced(mat1, mat2, reduce)
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return F.mm(mat1, mat2)
    return products.masked_mm(mat1, mat2)


def _reduced(mat1: Any, mat2: Tensor, reduce: str) -> Tensor:
    """Rows joined by their mean or an extremum, over the elements that are specified."""
    if reduce != "mean" and reduce not in ("amax", "amin"):
        raise ValueError(f'sparse.mm: reduce must be "sum", "mean", "amax" or "amin", got {reduce!r}.')
    if not isinstance(mat1, CompressedTensor):
        raise RuntimeError("sparse.mm: reduce takes a SparseCSR matrix; use .to_sparse_csr().")
    products._check("mm", mat1, mat2)
    rows, columns, values = products._rows(mat1)
    parts = values.unsqueeze(1) * F.index_select(mat2, 0, columns)
    out = parts.new_zeros((mat1.shape[0], mat2.shape[1]))
    wide = rows.unsqueeze(1).expand(parts.shape)
    return F.scatter_reduce(out, 0, wide, parts, reduce, include_self=False)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """`beta * mat + alpha * (mat1 @ mat2)` for a sparse `mat1`; gradients go to all three.

    >>> votive.sparse.addmm(votive.ones(2, 1), votive.eye(2).to_sparse(), votive.tensor([[1.0], [2.0]]))
    tensor([[2.],
            [3.]])
    """
    return products.addmm(mat, mat1, mat2, beta, alpha, multiply=products.masked_mm)


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)`, computed only where the CSR matrix `input` has elements."""
    made = products.sampled_addmm(input, mat1, mat2, beta, alpha)
    return made if out is None else out._become(made)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of a sparse tensor over dimensions: sparse as long as a sparse dimension is left, else dense.

    >>> votive.sparse.sum(votive.eye(3).to_sparse())
    tensor(3.)
    """
    if not isinstance(input, CooTensor):
        raise RuntimeError("sparse.sum: expected a SparseCOO tensor; use .to_sparse_coo(), or .sum().")
    if dim is None:
        return values_of(input).sum(dtype=dtype)
    return reductions.sum_over(input, wrap_dims("sum", dim, input.ndim), False, dtype or input.dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Softmax over the specified elements along `dim`; the others count as minus infinity."""
    return reductions.softmax(input, dim, dtype, log=False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`."""
    return reductions.softmax(input, dim, dtype, log=True)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Layout | None = None) -> Any:
    """A sparse matrix whose diagonals are rows of a dense one.

    >>> votive.sparse.spdiags(votive.ones(1, 2), votive.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 1.],
            [0., 0.]])
    """
    shape = tuple(int(n) for n in shape)
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {shape}.")
    wide = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    at = offsets.reshape(-1).to(dt.int64)
    if wide.ndim != 2 or offsets.ndim > 1:
        raise RuntimeError("Diagonals must be vector or matrix, and offsets scalar or vector.")
    if at.shape[0] != wide.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({wide.shape[0]}) does not match the number of offsets ({at.shape[0]})."
        )
    if len(set(at.tolist())) != at.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    width = min(wide.shape[1], shape[1])
    columns = F.arange(width, device=wide.device)
    rows = columns.unsqueeze(0) - at.unsqueeze(1)  # (diagonals, columns)
    there = (rows >= 0) & (rows < shape[0])
    which = F.nonzero(there)
    indices = F.stack((rows[which[:, 0], which[:, 1]], which[:, 1]))
    made = coo(indices, wide[which[:, 0], which[:, 1]], shape, False)
    return made if layout is None else convert(coalesce(made), layout)


def spsolve(A: Any, b: Tensor, *, left: bool = True) -> NoReturn:
    """Solving a sparse system: refused, as by torch without cuDSS."""
    raise NotImplementedError(
        "sparse.spsolve: there is no sparse factorisation; use votive.linalg.solve(A.to_dense(), b), or SciPy's "
        "scipy.sparse.linalg.spsolve with A.to_scipy()."
    )


solve = spsolve


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck` that takes sparse inputs: with `masked` (the default here too) only specified elements are varied.

    >>> check = votive.sparse.as_sparse_gradcheck(votive.autograd.gradcheck)
    >>> x = votive.eye(2, dtype=votive.float64).to_sparse_csr().requires_grad_()
    >>> check(lambda x: x.to_dense(), x, masked=True)
    True
    """

    def check(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        masked = kwargs.pop("masked", False)
        inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        plain: list[Tensor] = []
        restore: list[Callable[[Tensor], Any]] = []
        for x in inputs:
            value, back = _plain(x, masked)
            plain.append(value)
            restore.append(back)

        def dense_func(*values: Tensor) -> Any:
            out = func(*(back(v) for back, v in zip(restore, values, strict=True)))
            outs = out if isinstance(out, (tuple, list)) else (out,)
            return tuple(o.to_dense(masked_grad=masked) if isinstance(o, SparseTensor) else o for o in outs)

        return gradcheck(dense_func, tuple(plain), **kwargs)

    return check


def _plain(x: Any, masked: bool) -> tuple[Any, Callable[[Any], Any]]:
    """A strided tensor that stands for an input, and how it becomes the input again."""
    from .tensor import like

    if not isinstance(x, SparseTensor) or not x._rg:
        return x, lambda v: v
    if not masked:
        block = x._block if isinstance(x, CompressedTensor) and x._block != (1, 1) else None
        whole = x.detach().to_dense().requires_grad_()
        return whole, lambda v: v.to_sparse(layout=x._layout, blocksize=block)
    pattern = x.detach()
    return x._held.detach().clone().requires_grad_(), lambda v: like(pattern, v)
