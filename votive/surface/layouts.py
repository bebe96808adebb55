"""What every tensor answers about sparse layouts, and the conversions; the work is done by `votive.sparse`, which is
imported when it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from .values import Values

if TYPE_CHECKING:
    from ..core.dtype import dtype as Dtype

if TYPE_CHECKING:
    from ..tensor import Tensor


def _strided(name: str, what: str) -> NoReturn:
    raise RuntimeError(f"{name} expected sparse {what}tensor layout but got Strided")


class Layouts(Values):
    """The part of Tensor that knows of other layouts than strided."""

    def to_sparse(self, *args: Any, **kwargs: Any) -> Any:
        """The elements that are not zero as a sparse tensor: by the number of sparse dimensions, or by
        `layout=`, `blocksize=` and `dense_dim=`.

        >>> votive.eye(2).to_sparse().values()
        tensor([1., 1.])
        """
        from ..sparse import to_sparse

        return to_sparse(self, *args, **kwargs)  # type: ignore[arg-type]

    def to_sparse_coo(self) -> Any:
        """In coordinate format."""
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim: int | None = None) -> Any:
        """In compressed row format."""
        from ..core.memory_format import sparse_csr

        return self.to_sparse(layout=sparse_csr, dense_dim=dense_dim)

    def to_sparse_csc(self, dense_dim: int | None = None) -> Any:
        """In compressed column format."""
        from ..core.memory_format import sparse_csc

        return self.to_sparse(layout=sparse_csc, dense_dim=dense_dim)

    def to_sparse_bsr(self, blocksize: Any, dense_dim: int | None = None) -> Any:
        """In compressed row format, of blocks."""
        from ..core.memory_format import sparse_bsr

        return self.to_sparse(layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)

    def to_sparse_bsc(self, blocksize: Any, dense_dim: int | None = None) -> Any:
        """In compressed column format, of blocks."""
        from ..core.memory_format import sparse_bsc

        return self.to_sparse(layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)

    def to_dense(self, dtype: Dtype | None = None, *, masked_grad: bool | None = None) -> Any:
        """All elements, as a strided tensor; the tensor itself where it is one."""
        if self.layout.name == "strided":
            return self if dtype is None else self.to(dtype)
        from ..sparse import to_dense

        return to_dense(self, dtype, masked_grad=masked_grad)  # type: ignore[arg-type]

    def sparse_mask(self, mask: Tensor) -> Any:
        """The elements at the indices of a sparse tensor."""
        from ..sparse import sparse_mask

        return sparse_mask(self, mask)  # type: ignore[arg-type]

    def sparse_dim(self) -> int:
        """How many dimensions have indices; 0 for a strided tensor."""
        return 0

    def dense_dim(self) -> int:
        """How many dimensions are stored whole."""
        return self.ndim

    def coalesce(self) -> Any:
        """Of a sparse tensor in coordinate format: every index once."""
        _strided("coalesce", "coordinate ")

    def is_coalesced(self) -> bool:
        """Of a sparse tensor in coordinate format: whether every index stands once, in order."""
        _strided("is_coalesced", "coordinate ")

    def indices(self) -> Any:
        """Of a coalesced sparse tensor: where its values stand."""
        _strided("indices", "coordinate ")

    def _indices(self) -> Any:
        raise NotImplementedError("_indices: not implemented for strided tensors; use .to_sparse().")

    def _values(self) -> Any:
        raise NotImplementedError("_values: not implemented for strided tensors; use .to_sparse().")

    def _nnz(self) -> int:
        raise NotImplementedError("_nnz: not implemented for strided tensors; use .to_sparse().")

    def values(self) -> Any:
        """Of a sparse tensor: its elements."""
        _strided("values", "")

    def crow_indices(self) -> Any:
        """Of a CSR or BSR tensor: where each row begins."""
        _strided("crow_indices", "row compressed ")

    def col_indices(self) -> Any:
        """Of a CSR or BSR tensor: the column of each element."""
        _strided("col_indices", "row compressed ")

    def ccol_indices(self) -> Any:
        """Of a CSC or BSC tensor: where each column begins."""
        _strided("ccol_indices", "column compressed ")

    def row_indices(self) -> Any:
        """Of a CSC or BSC tensor: the row of each element."""
        _strided("row_indices", "column compressed ")

    def chalf(self, memory_format: Any = None) -> Any:
        """This tensor as complex32, pairs of float16.

        >>> votive.tensor([1.5]).chalf()
        tensor([1.5000+0.j], dtype=votive.complex32)
        """
        from ..core.dtype import complex32

        return self.to(complex32) if memory_format is None else self.to(complex32, memory_format=memory_format)

    def smm(self, mat: Tensor) -> Any:
        """See `votive.smm`."""
        from ..sparse import smm

        return smm(self, mat)

    def sspaddmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """See `votive.sspaddmm`."""
        from ..sparse import sspaddmm

        return sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)

    def sparse_resize_(self, size: Any, sparse_dim: int, dense_dim: int) -> Any:
        """Of a sparse tensor in coordinate format: another size, in place."""
        raise NotImplementedError("sparse_resize_: takes sparse tensors; use resize_().")

    def sparse_resize_and_clear_(self, size: Any, sparse_dim: int, dense_dim: int) -> Any:
        """Of a sparse tensor in coordinate format: another size, in place, without elements."""
        raise NotImplementedError("sparse_resize_and_clear_: takes sparse tensors; use resize_().")

    def resize_as_sparse_(self, other: Tensor) -> Any:
        """Of a sparse tensor in coordinate format: the size of another, in place."""
        raise NotImplementedError("resize_as_sparse_: takes sparse tensors; use resize_as_().")
