"""Parametrizations that are often wanted: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any, TypeVar

from ... import linalg
from ...autograd.modes import no_grad
from ...core.dtype import finfo
from ...ops.registry import F
from ...tensor import Tensor
from ..module import Module
from .parametrize import register_parametrization
from .spectral_norm import as_matrix, outputs_dim, unit
from .weight_norm import norm_except_dim, scaled_direction

M = TypeVar("M", bound=Module)


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# --- weight norm ----------------------------------------------------------------------------------


class _WeightNorm(Module):
    """w = g·v / ‖v‖, the norm over all dimensions but `dim` (Salimans and Kingma 2016)."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled_direction(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Split a weight into its length and its direction.

    >>> from votive.nn.utils.parametrizations import weight_norm
    >>> m = weight_norm(votive.nn.Linear(2, 3))
    >>> [(n, tuple(p.shape)) for n, p in m.parametrizations.named_parameters()]
    [('weight.original0', (3, 1)), ('weight.original1', (3, 2))]
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_older_form(state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """States of `nn.utils.weight_norm` load as well."""
        if f"{prefix}{name}_g" in state and f"{prefix}{name}_v" in state:
            for i, suffix in enumerate("gv"):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state[new] = state.pop(f"{prefix}{name}_{suffix}")

    module._register_load_state_dict_pre_hook(from_older_form)
    return module


# --- spectral norm --------------------------------------------------------------------------------


class _SpectralNorm(Module):
    """w / σ(w), the largest singular value found by power iteration (Miyato et al. 2018)."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        n = weight.ndim
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{n}, {n - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % n, eps
        if n > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            h, w = matrix.shape
            self.register_buffer("_u", unit(matrix.new_empty(h).normal_(0, 1), eps))
            self.register_buffer("_v", unit(matrix.new_empty(w).normal_(0, 1), eps))
            # 15 rounds, as torch does, so that the first forward starts near the true value.
            self._iterate(matrix, 15)

    @no_grad()
    def _iterate(self, matrix: Tensor, n: int) -> None:
        for _ in range(n):
            self._u.copy_(unit(F.mv(matrix, self._v), self.eps))
            self._v.copy_(unit(F.mv(matrix.mH, self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies: a second forward must not change what the first one's backward needs.
        u, v = self._u.clone(), self._v.clone()
        return weight / F.vdot(u, F.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value.

    >>> from votive.nn.utils.parametrizations import spectral_norm
    >>> m = spectral_norm(votive.nn.Linear(4, 3))
    >>> round(float(votive.linalg.svdvals(m.weight)[0]), 2)
    1.0
    """
    weight = _tensor_of(module, name)
    where = outputs_dim(module) if dim is None else dim
    norm = _SpectralNorm(weight, n_power_iterations, where, eps)
    register_parametrization(module, name, norm)
    return module


# --- orthogonal -----------------------------------------------------------------------------------

_MAPS = ("matrix_exp", "cayley", "householder")


def _orthonormal(a: Tensor) -> Any:
    """The factor Q of a tall matrix, such that R has a positive diagonal."""
    q, r = linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthonormal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    eye = F.eye(k, dtype=q.dtype, device=q.device)
    return bool(F.allclose(q.mH @ q, eye, atol=10.0 * n * finfo(q.dtype).eps))


class _Orthogonal(Module):
    """Orthogonal or unitary matrices from free ones (Lezcano-Casado 2019, dynamic trivialisation).

    With a base B the result is B·Q(x), so that x = 0 gives B and any start matrix can be reached.
    """

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            # n(n-1) real numbers in the reflectors cannot reach all unitary matrices.
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        q = self._reflect(x) if self.orthogonal_map == "householder" else self._rotate(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _rotate(self, x: Tensor) -> Tensor:
        """The first columns of a rotation made from a skew-symmetric matrix."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = F.cat([x, x.new_zeros((*x.shape[:-2], n, n - k))], dim=-1)
        a = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = F.matrix_exp(a)
        else:
            eye = F.eye(n, dtype=a.dtype, device=a.device)
            q = linalg.solve(eye - 0.5 * a, eye + 0.5 * a)
        return q[..., :k]

    def _reflect(self, x: Tensor) -> Tensor:
        """A product of reflections; the diagonal of x holds signs, which are not learned."""
        a = x.tril(-1)
        tau = 2.0 / (1.0 + (a * a).sum(-2))
        q = linalg.householder_product(a, tau)
        return q * x.detach().diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        n, k = q.shape[-2:]
        if not hasattr(self, "base"):
            return self._without_base(q, wide)
        if n != k:
            rest = F.randn((*q.shape[:-2], n, n - k), dtype=q.dtype, device=q.device)
            self.base = _orthonormal(F.cat([q, rest], dim=-1))
        else:
            self.base = q.clone() if _is_orthonormal(q) else _orthonormal(q)
        # -1 on the diagonal makes the product of no reflections the identity.
        start = F.zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _without_base(self, q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        a, tau = F.geqrf(q)
        diagonal = a.diagonal(dim1=-2, dim2=-1)
        # LAPACK leaves tau exactly 0 where it needs no reflection; then the sign flips.
        diagonal.copy_(diagonal.sign() * F.where(tau == 0.0, -1.0, 1.0))
        return a.mT if wide else a


def orthogonal(
    module: M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> M:
    """Keep a weight orthogonal (or with orthonormal rows or columns).

    >>> from votive.nn.utils.parametrizations import orthogonal
    >>> w = orthogonal(votive.nn.Linear(2, 4)).weight
    >>> votive.allclose(w.T @ w, votive.eye(2), atol=1e-5)
    True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    chosen = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    register_parametrization(module, name, chosen, unsafe=True)
    return module
