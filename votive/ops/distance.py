"""Unit vectors, angles and distances of rows: composites over vector norms. Knows no kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import broadcast_shapes
from ..core.promotion import result_type_of
from .registry import F, composite
from .untracked import unobserved

if TYPE_CHECKING:
    from .types import Ints, Tensor

NN = ("nn.functional",)


@composite(namespaces=NN, method=False, out=True, autocast={"cuda": "float32"})
def normalize(input: Tensor, p: float = 2.0, dim: Ints = 1, eps: float = 1e-12) -> Tensor:
    """Slices along `dim` divided by their norm of order p, or by `eps` where that is larger.

    >>> votive.nn.functional.normalize(votive.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return input / F._vector_norm(input, p, dim, True).clamp_min(eps)


def _clamped_norm(x: Tensor, dim: int, eps: float) -> Tensor:
    """The length along `dim`, at least `eps`.

    Only the value is clamped: as in torch, the derivative is that of the length itself.
    """
    norm = F._vector_norm(x, 2, dim, True).clone()
    with unobserved():
        return norm.clamp_min_(eps)


@composite(also=("nn.functional.cosine_similarity",), method=False, autocast={"cuda": "float32"})
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """`x1 · x2 / (max(|x1|, eps) max(|x2|, eps))` along `dim`.

    >>> votive.cosine_similarity(votive.tensor([[1.0, 0.0]]), votive.tensor([[2.0, 2.0]]))
    tensor([0.7071])
    """
    if not isinstance(dim, int):
        raise TypeError(f"cosine_similarity: dim must be int, got {type(dim).__name__}.")
    ranks: tuple[list[dt.dtype], list[dt.dtype]] = ([], [])
    for x in (x1, x2):
        ranks[x.ndim == 0].append(x.dtype)
    common = result_type_of(*ranks, [])
    if not common.is_floating_point:
        fail(
            DtypeError,
            "cosine_similarity",
            f"takes floating-point tensors, got {x1.dtype} and {x2.dtype}; use .float().",
        )
    shape = broadcast_shapes("cosine_similarity", tuple(x1.shape), tuple(x2.shape))
    a, b = ((x if x.dtype.is_floating_point else x.to(common)).expand(shape) for x in (x1, x2))
    # Each is divided by its own length first: the result then stays within -1..1.
    return ((a / _clamped_norm(a, dim, eps)) * (b / _clamped_norm(b, dim, eps))).sum(dim)


@composite(also=("nn.functional.pairwise_distance",), method=False, autocast={"cuda": "float32"})
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The norm of order p of `x1 - x2 + eps` along the last dimension.

    >>> votive.pairwise_distance(votive.tensor([[3.0, 4.0]]), votive.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """
    return F._vector_norm(x1 - x2 + eps, p, -1, keepdim)


@composite(also=("nn.functional.pdist",), method=False, autocast={"cuda": "float32"})
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Distances of order p of each pair of rows: row 0 to rows 1, 2 …, then row 1 to rows 2, 3 ….

    >>> votive.pdist(votive.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2:
        fail(ShapeError, "pdist", f"takes two dimensions, got shape {tuple(input.shape)}.")
    if not input.dtype.is_floating_point:
        fail(DtypeError, "pdist", f"takes floating-point tensors, got {input.dtype}.")
    if not p >= 0:
        fail(RuntimeError, "pdist", f"p must not be negative, got {p}.")
    # Through cdist, because where several coordinates are the farthest apart its gradient is
    # torch's; that of a vector norm is shared among them.
    rows = input.shape[0]
    first, second = F.triu_indices(rows, rows, 1, device=input.device).unbind(0)
    table = F._cdist(input, input, float(p), False)
    return table.reshape(-1).index_select(0, first * rows + second)
