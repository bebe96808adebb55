"""Sparse tensors: indices and values in one object. COO lists the indices of every element; the compressed layouts
(CSR, CSC, and BSR, BSC of blocks) list where rows or columns begin.

Gradients pass through two links: `values_of` leads from a sparse tensor to its values, `like` from values to a sparse
tensor with given indices. All rules are written with them and with the usual operators.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..autograd.function import Function
from ..core import dtype as dt
from ..core.memory_format import layout as Layout
from ..core.memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..core.mode import mode
from ..ops.operator import Op, Operator
from ..surface.wrapped import Rule, Wrapped
from ..tensor import Tensor
from .indices import expanded

BY_ROWS = (sparse_csr, sparse_bsr)
BLOCKED = (sparse_bsr, sparse_bsc)
NAMES = {
    sparse_coo: "SparseCOO",
    sparse_csr: "SparseCSR",
    sparse_csc: "SparseCSC",
    sparse_bsr: "SparseBSR",
    sparse_bsc: "SparseBSC",
}


class SparseTensor(Wrapped):
    """A tensor that holds its specified elements only."""

    _kind = "sparse"
    _precedence = 1
    _rules: ClassVar[dict[str, Rule]] = {}
    _layout: Layout
    _held: Tensor  # the values, without history

    @classmethod
    def _describe(cls, args: tuple[Any, ...]) -> str:
        for v in args:
            if isinstance(v, SparseTensor):
                return f"{NAMES[v._layout]}"
            if isinstance(v, (tuple, list)):
                found = cls._describe(tuple(v))
                if found != "sparse":
                    return found
        return "sparse"

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name not in cls._rules and isinstance(op, Op) and op.kind == "pointwise":
            from .rules.elementwise import pointwise

            return pointwise(name, op, args, kwargs.get("out"))
        return super()._call(name, op, args, kwargs)

    @property
    def layout(self) -> Layout:
        return self._layout

    def _with(self, values: Tensor) -> Any:
        """The same indices with other values, which have no history."""
        raise NotImplementedError

    def _same_indices(self, other: SparseTensor) -> bool:
        raise NotImplementedError

    def detach(self) -> Any:
        return self._with(self._held)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if self.grad_fn is not None:
            raise RuntimeError("only Tensors created explicitly by the user support the deepcopy protocol.")
        out = self._with(self._held.clone())
        out._copy_indices()
        out._rg = self._rg
        memo[id(self)] = out
        if self._grad is not None:
            from copy import deepcopy

            out._grad = deepcopy(self._grad, memo)
        return out

    def __copy__(self) -> Any:
        out = self._with(self._held)
        out._rg, out._edge, out._grad = self._rg, self._edge, self._grad
        return out

    def _copy_indices(self) -> None:
        raise NotImplementedError

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        from .printing import text_of

        return text_of(self)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._spec.shape[0]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        self._lacks("is_contiguous")

    def to_scipy(self) -> Any:
        """The same elements as one of SciPy's sparse arrays, which look at the same memory."""
        from .interop import to_scipy

        return to_scipy(self)


class CooTensor(SparseTensor):
    """Indices (sparse_dim, nnz) and values (nnz, *dense sizes)."""

    is_sparse = True
    _layout = sparse_coo
    _at: Tensor
    _coalesced: bool

    @staticmethod
    def make(indices: Tensor, values: Tensor, shape: Any, coalesced: bool) -> CooTensor:
        out: CooTensor = object.__new__(CooTensor)
        out._begin(tuple(int(n) for n in shape), values.dtype, values.device)
        out._at, out._held, out._coalesced = indices, values, coalesced
        return out

    def _parts(self) -> tuple[Tensor, ...]:
        return self._at, self._held

    def _with(self, values: Tensor) -> CooTensor:
        shape = self._spec.shape
        return CooTensor.make(self._at, values, shape, self._coalesced)

    def _same_indices(self, other: SparseTensor) -> bool:
        return isinstance(other, CooTensor) and self._at is other._at

    def _copy_indices(self) -> None:
        self._at = self._at.clone()

    def _indices(self) -> Tensor:
        return self._at

    def _values(self) -> Tensor:
        return self._held

    def _nnz(self) -> int:
        return int(self._held.shape[0])

    def sparse_dim(self) -> int:
        return int(self._at.shape[0])

    def dense_dim(self) -> int:
        return self._held.ndim - 1

    def is_coalesced(self) -> bool:
        return self._coalesced

    def _coalesced_(self, coalesced: bool) -> CooTensor:
        self._coalesced = bool(coalesced)
        return self

    def indices(self) -> Tensor:
        if not self._coalesced:
            raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
        return self._at.detach()

    def values(self) -> Tensor:
        if not self._coalesced:
            raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
        return values_of(self)

    def coalesce(self) -> CooTensor:
        from .convert import coalesce

        return coalesce(self)

    def sparse_resize_(self, size: Any, sparse_dim: int, dense_dim: int) -> CooTensor:
        from .resize import sparse_resize_

        return sparse_resize_(self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size: Any, sparse_dim: int, dense_dim: int) -> CooTensor:
        from .resize import sparse_resize_and_clear_

        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)

    def resize_as_sparse_(self, other: Tensor) -> CooTensor:
        return self.sparse_resize_(other.shape, other.sparse_dim(), other.dense_dim())

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .construct import rebuild_coo

        parts = (self._at, self._held, tuple(self.shape), self._coalesced, self._rg)
        return rebuild_coo, parts


class CompressedTensor(SparseTensor):
    """Compressed indices (*batch, n + 1), plain indices (*batch, nnz), values (*batch, nnz, *block, *dense sizes)."""

    _starts: Tensor
    _plain: Tensor
    # The row (or column) of each element, once it was needed, and the version of the indices it was found for.
    _major: tuple[int, Tensor] | None = None

    @staticmethod
    def make(layout: Layout, starts: Tensor, plain: Tensor, values: Tensor, shape: Any) -> CompressedTensor:
        out: CompressedTensor = object.__new__(CompressedTensor)
        out._begin(tuple(int(n) for n in shape), values.dtype, values.device)
        out._layout, out._starts, out._plain, out._held = layout, starts, plain, values
        return out

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self._layout is sparse_csr

    def _parts(self) -> tuple[Tensor, ...]:
        return self._starts, self._plain, self._held

    def _with(self, values: Tensor) -> CompressedTensor:
        shape = self._spec.shape
        out = CompressedTensor.make(self._layout, self._starts, self._plain, values, shape)
        out._major = self._major
        return out

    def _same_indices(self, other: SparseTensor) -> bool:
        return (
            isinstance(other, CompressedTensor)
            and other._layout is self._layout
            and self._starts is other._starts
            and self._plain is other._plain
            and self._block == other._block
        )

    def _copy_indices(self) -> None:
        self._starts, self._plain = self._starts.clone(), self._plain.clone()

    @property
    def _batch(self) -> int:
        """How many dimensions of a batch stand in front."""
        return self._starts.ndim - 1

    @property
    def _block(self) -> tuple[int, int]:
        if self._layout not in BLOCKED:
            return (1, 1)
        sizes = self._held.shape[self._batch + 1 : self._batch + 3]
        return (int(sizes[0]), int(sizes[1]))

    def _nnz(self) -> int:
        return int(self._plain.shape[-1])

    def _majors(self) -> Tensor:
        """The row, or column, of each element: compressed indices spelt out."""
        version = self._starts._version
        if self._major is None or self._major[0] != version:
            self._major = version, expanded(self._starts.to(dt.int64), self._nnz())
        return self._major[1]

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self.ndim - self._batch - 2

    def values(self) -> Tensor:
        return values_of(self)

    def _values(self) -> Tensor:
        return self._held

    def _of_layout(self, name: str, layouts: tuple[Layout, ...], part: Tensor) -> Tensor:
        if self._layout not in layouts:
            wanted = " or ".join(NAMES[x][6:] for x in layouts)
            raise RuntimeError(f"{name}: expected sparse {wanted} tensor but got {NAMES[self._layout]}.")
        return part.detach()

    def crow_indices(self) -> Tensor:
        return self._of_layout("crow_indices", (sparse_csr, sparse_bsr), self._starts)

    def col_indices(self) -> Tensor:
        return self._of_layout("col_indices", (sparse_csr, sparse_bsr), self._plain)

    def ccol_indices(self) -> Tensor:
        return self._of_layout("ccol_indices", (sparse_csc, sparse_bsc), self._starts)

    def row_indices(self) -> Tensor:
        return self._of_layout("row_indices", (sparse_csc, sparse_bsc), self._plain)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .construct import rebuild_compressed

        parts = (self._layout.name, self._starts, self._plain, self._held, tuple(self.shape), self._rg)
        return rebuild_compressed, parts


class _ValuesOf(Function):
    """The values of a sparse tensor; their gradient is a sparse tensor with the same indices."""

    @staticmethod
    def forward(ctx: Any, x: SparseTensor) -> Tensor:
        ctx.pattern = x.detach()
        return x._held.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        pattern = ctx.pattern
        if isinstance(pattern, CooTensor) and not pattern._coalesced:
            from .convert import first_of_each

            return first_of_each(pattern, g)
        return like(pattern, g)


class _Like(Function):
    """A sparse tensor of values; what counts of its gradient are the elements that are there."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, pattern: SparseTensor) -> Any:
        ctx.pattern = pattern
        return pattern._with(values.detach())

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        from .convert import values_at

        return values_at(g, ctx.pattern), None


class _Rearranged(Function):
    """A sparse tensor in another order, whose gradient comes back by the inverse, whatever its layout."""

    @staticmethod
    def forward(ctx: Any, x: SparseTensor, there: Any, back: Any) -> Any:
        ctx.back = back
        return there(x.detach())

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return ctx.back(g), None, None


def rearranged(x: SparseTensor, there: Any, back: Any) -> Any:
    """`there(x)`, with a gradient that `back` leads to x."""
    return _Rearranged.apply(x, there, back) if x._rg and mode.grad else there(x)


def values_of(x: SparseTensor) -> Tensor:
    """The values of a sparse tensor, with its history."""
    if x._rg and mode.grad:
        made: Tensor = _ValuesOf.apply(x)
        return made
    return x._held.detach()


def like(pattern: SparseTensor, values: Tensor) -> Any:
    """A sparse tensor with the indices, shape and flags of another, and given values with their history."""
    pattern = pattern if not pattern._rg else pattern.detach()
    if values._rg and mode.grad:
        return _Like.apply(values, pattern)
    return pattern._with(values)


def coo(indices: Tensor, values: Tensor, shape: Any, coalesced: bool) -> Any:
    """A COO tensor of values with their history."""
    return like(CooTensor.make(indices, values.detach(), shape, coalesced), values)


def compressed_tensor(layout: Layout, starts: Tensor, plain: Tensor, values: Tensor, shape: Any) -> Any:
    """A compressed tensor of values with their history."""
    return like(CompressedTensor.make(layout, starts, plain, values.detach(), shape), values)
