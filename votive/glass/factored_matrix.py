"""A matrix that is known as a product of two thin ones, and what can be said of it without multiplying them out.

Knows matrices only. The matrices of a head, `W_V W_O` and `W_Q W_K^T`, are as wide as the stream or the vocabulary, but
their rank is the width of a head.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import votive

from ..tensor import Tensor


class Svd(NamedTuple):
    """`U diag(S) V^T`, with the singular vectors in the columns of `U` and `V`."""

    U: Tensor
    S: Tensor
    V: Tensor


class FactoredMatrix:
    """`A @ B`, for `A` (..., m, r) and `B` (..., r, n), which is never built unless `AB` is asked for.

    >>> m = votive.glass.FactoredMatrix(votive.tensor([[1.0], [2.0]]), votive.tensor([[3.0, 4.0]]))
    >>> m.shape, m.rank, m.norm(), m.trace()
    (votive.Size([2, 2]), 1, tensor(11.1803), tensor(11.))
    >>> m.AB
    tensor([[3., 4.],
            [6., 8.]])
    """

    def __init__(self, A: Tensor, B: Tensor) -> None:
        if A.dim() < 2 or B.dim() < 2 or A.shape[-1] != B.shape[-2]:
            raise ValueError(
                f"FactoredMatrix: A {tuple(A.shape)} and B {tuple(B.shape)} do not multiply; give (..., m, r) and "
                "(..., r, n)."
            )
        self.A, self.B = A, B

    @property
    def shape(self) -> votive.Size:
        """The shape of the product."""
        leading = votive.broadcast_shapes(self.A.shape[:-2], self.B.shape[:-2])
        return votive.Size((*leading, self.A.shape[-2], self.B.shape[-1]))

    @property
    def rank(self) -> int:
        """The width between the two factors, which the rank does not exceed."""
        return int(self.A.shape[-1])

    @property
    def AB(self) -> Tensor:
        """The product itself: large."""
        return self.A @ self.B

    @property
    def T(self) -> FactoredMatrix:
        """The transposed matrix."""
        return FactoredMatrix(self.B.transpose(-2, -1), self.A.transpose(-2, -1))

    def __getitem__(self, index: Any) -> FactoredMatrix:
        """One of several matrices, by the dimensions in front; all of its rows and columns stay."""
        leading = self.shape[:-2]
        if not leading:
            raise IndexError("FactoredMatrix: there is one matrix; choose rows as FactoredMatrix(m.A[rows], m.B).")
        A = self.A.expand(*leading, *self.A.shape[-2:])[index]
        return FactoredMatrix(A, self.B.expand(*leading, *self.B.shape[-2:])[index])

    def __matmul__(self, other: Tensor | FactoredMatrix) -> Any:
        """The product with a matrix or with another factored one stays factored; with a vector it is one."""
        if isinstance(other, FactoredMatrix):
            middle = self.B @ other.A  # (r, s)
            if self.rank <= other.rank:
                return FactoredMatrix(self.A, middle @ other.B)
            return FactoredMatrix(self.A @ middle, other.B)
        if other.dim() == 1:
            return self.A @ (self.B @ other)
        return FactoredMatrix(self.A, self.B @ other)

    def __rmatmul__(self, other: Tensor) -> Any:
        if other.dim() == 1:
            return (other @ self.A) @ self.B
        return FactoredMatrix(other @ self.A, self.B)

    def _core(self) -> tuple[Tensor, Tensor, Tensor]:
        """Orthonormal columns, a small square, orthonormal columns: their product is the matrix."""
        left, a = votive.linalg.qr(self.A)
        right, b = votive.linalg.qr(self.B.transpose(-2, -1))
        return left, a @ b.transpose(-2, -1), right

    def svd(self) -> Svd:
        """The singular value decomposition, of as many values as the factors are wide.

        >>> m = votive.glass.FactoredMatrix(votive.eye(3)[:, :2], votive.tensor([[5.0, 0.0], [0.0, 2.0]]))
        >>> m.svd().S
        tensor([5., 2.])
        """
        left, core, right = self._core()
        U, S, Vh = votive.linalg.svd(core, full_matrices=False)
        return Svd(left @ U, S, right @ Vh.transpose(-2, -1))

    def singular_values(self) -> Tensor:
        """The singular values, largest first."""
        return votive.linalg.svdvals(self._core()[1])

    def eigenvalues(self) -> Tensor:
        """The eigenvalues that are not known to be zero: those of `B A`, which is small."""
        if self.A.shape[-2] != self.B.shape[-1]:
            raise ValueError(f"FactoredMatrix: {tuple(self.shape)} is not square, so it has no eigenvalues.")
        return votive.linalg.eigvals(self.B @ self.A)

    def norm(self) -> Tensor:
        """The Frobenius norm."""
        # Squaring the factors would lose half of the digits.
        return votive.linalg.matrix_norm(self._core()[1])

    def trace(self) -> Tensor:
        """The sum of the diagonal."""
        if self.A.shape[-2] != self.B.shape[-1]:
            raise ValueError(f"FactoredMatrix: {tuple(self.shape)} is not square, so it has no trace.")
        return (self.B @ self.A).diagonal(dim1=-2, dim2=-1).sum(-1)

    def copying(self) -> Tensor:
        """The sum of the eigenvalues over the sum of their sizes: 1 where a matrix gives on what it is given.

        Elhage et al. 2021, "A mathematical framework for transformer circuits".

        >>> votive.glass.FactoredMatrix(votive.eye(3)[:, :2], 2 * votive.eye(3)[:2]).copying()
        tensor(1.)
        """
        found = self.eigenvalues()
        return found.real.sum(-1) / found.abs().sum(-1)

    def __repr__(self) -> str:
        return f"<factored matrix {tuple(self.shape)} of rank {self.rank}>"


def composition(first: FactoredMatrix, second: FactoredMatrix) -> Tensor:
    """How much of what `first` writes `second` reads: `|first @ second| / (|first| |second|)`.

    Vectors are rows, as in `x @ W`. Elhage et al. 2021.

    >>> m = votive.glass.FactoredMatrix(votive.eye(3)[:, :1], votive.eye(3)[:1])
    >>> votive.glass.composition(m, m)
    tensor(1.)
    """
    return (first @ second).norm() / (first.norm() * second.norm())
