"""Maps of parts of a tensor put side by side, and to Cholesky factors of correlations. Knows no distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core import dtype as dt
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .parameters import sum_rightmost
from .transform import Transform


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The rows of a vector as a lower triangular matrix, whose last diagonal is `diag`.

    >>> from votive.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(votive.tensor([1, 2, 3]))
    tensor([[1, 0],
            [2, 3]])
    """
    count = vec.shape[-1]
    n = (-(1 + 2 * diag) + math.sqrt((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1))) / 2
    if not n.is_integer():
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as a lower triangle.")
    size = int(n)
    rows, columns = F.tril_indices(size, size, diag)
    made = F.zeros((*vec.shape[:-1], size * size), dtype=vec.dtype, device=vec.device)
    at = (rows * size + columns).to(vec.device).expand(vec.shape)
    return made.scatter(-1, at, vec).reshape(*vec.shape[:-1], size, size)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of a matrix, row by row: the inverse of `vec_to_tril_matrix`.

    >>> from votive.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(votive.tensor([[1, 0], [2, 3]]))
    tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = F.tril_indices(n, n, diag)
    return mat[..., rows.to(mat.device), columns.to(mat.device)]


class CorrCholeskyTransform(Transform):
    """From n(n - 1)/2 real numbers to the Cholesky factor of a correlation matrix of size n.

    >>> votive.distributions.CorrCholeskyTransform()(votive.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = F.tanh(x)
        edge = 1 - dt.finfo(x.dtype).eps
        r = vec_to_tril_matrix(F.clamp(x, -edge, edge), diag=-1)
        one = F.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        # What of each row's length of 1 is left for the entries behind.
        rest = F.cumprod(F.sqrt(1 - r**2), -1)
        return (r + one) * F.cat([F.ones_like(rest[..., :1]), rest[..., :-1]], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = 1 - F.cumsum(y * y, -1)
        shifted = F.cat([F.ones_like(rest[..., :1]), rest[..., :-1]], -1)
        t = tril_matrix_to_vec(y, diag=-1) / F.sqrt(tril_matrix_to_vec(shifted, diag=-1))
        return (F.log1p(t) - F.log1p(-t)) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        rest = 1 - F.cumsum(y * y, -1)
        lengths = 0.5 * F.sum(F.log(tril_matrix_to_vec(rest, diag=-2)), -1)
        # log(1 - tanh(x)^2)
        return lengths - 2 * F.sum(x - F.logsigmoid(2 * x) - math.log(2.0), -1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class _Parts(Transform):
    """Maps, each for a part of a tensor along a dimension."""

    transforms: list[Any]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def _pieces(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _each(self, x: Tensor, fn: Callable[[Any, Tensor], Tensor]) -> Tensor:
        return self._join([fn(t, piece) for t, piece in zip(self.transforms, self._pieces(x), strict=True)])

    def _call(self, x: Tensor) -> Tensor:
        return self._each(x, lambda t, piece: t(piece))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each(y, lambda t, piece: t.inv(piece))

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Maps for consecutive parts of a dimension, of `lengths` each.

    >>> D = votive.distributions
    >>> both = D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], dim=0, lengths=[1, 2])
    >>> both(votive.zeros(3))
    tensor([1., 1., 1.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths of tseq {len(self.transforms)} and of lengths {len(self.lengths)} differ")

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        if x.shape[self.dim] != self.length:
            raise AssertionError(f"dimension {self.dim} has {x.shape[self.dim]} entries, not {self.length}")
        return list(x.split(self.lengths, self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        made: Tensor = F.cat(parts, self.dim)
        return made

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = []
        for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y), strict=True):
            slope = t.log_abs_det_jacobian(a, b)
            parts.append(sum_rightmost(slope, self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return F.cat(parts, dim) if dim < 0 else sum(parts[1:], parts[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """A map for each entry of a dimension.

    >>> D = votive.distributions
    >>> D.StackTransform([D.ExpTransform(), D.AbsTransform()], dim=0)(votive.tensor([0.0, -2.0]))
    tensor([1., 2.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        if x.shape[self.dim] != len(self.transforms):
            raise AssertionError(f"dimension {self.dim} has {x.shape[self.dim]} entries, not {len(self.transforms)}")
        return list(x.unbind(self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        made: Tensor = F.stack(parts, self.dim)
        return made

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._pieces(x), self._pieces(y), strict=True)
        made: Tensor = F.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)
        return made

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
