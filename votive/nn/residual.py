"""A residual stream and its norms: the add is deferred to the kernel of the next norm, where no hook
sees the sum between the two.

Knows norms by their classes; decides nothing about values, which are the same either way.
"""

from __future__ import annotations

from ..backends.base import has_own
from ..core import dtype as dt
from ..core.mode import mode
from ..core.promotion import promote_types
from ..ops.registry import F as OPERATORS
from ..tensor import Tensor
from .fast_path import can_bypass
from .layers.normalization import LayerNorm, RMSNorm
from .module import Module


def can_defer_add(module: Module, cls: type[Module], x: Tensor) -> bool:
    """Whether the last sum of a layer of class `cls` may be deferred to the next one's norm.

    >>> from votive.nn.residual import can_defer_add
    >>> layer = votive.nn.TransformerEncoderLayer(4, 2)
    >>> can_defer_add(layer, votive.nn.TransformerEncoderLayer, votive.ones(1))
    False
    """
    return can_bypass(module, cls) and has_own("_add_norm", x.device.type)


def _affine(norm: Module) -> tuple[Tensor | None, Tensor | None]:
    """The norm's weight and bias, read as its forward reads them: they need not be parameters."""
    return norm.weight, norm.bias if isinstance(norm, LayerNorm) else None


def _fusible(norm: Module, x: Tensor, change: Tensor) -> bool:
    a, b = getattr(x, "_spec", None), getattr(change, "_spec", None)
    if a is None or b is None or a.shape != b.shape or a.device != b.device:
        return False
    if not (can_bypass(norm, LayerNorm) or can_bypass(norm, RMSNorm)):
        return False
    total = promote_types(a.dtype, b.dtype)
    shape = norm.normalized_shape
    if not total.is_floating_point or shape.__class__ is not tuple:
        return False
    if not shape or a.shape[-len(shape) :] != shape:
        return False
    own = [p for p in _affine(norm) if p is not None]
    if any(tuple(p.shape) != shape or p.device != a.device for p in own):
        return False  # the norm's own call says what is wrong
    kinds = {p.dtype for p in own}
    fits = kinds <= {total} or (total in dt.HALF and kinds <= {dt.float32})
    return fits and has_own("_add_norm", a.device.type)


def add_norm(x: Tensor, change: Tensor | None, norm: Module, exact: bool = False) -> tuple[Tensor, Tensor]:
    """`(x + change, norm(x + change))`; a change of None adds nothing.

    Under autocast products take their inputs in 16 bits; the norm then writes them so. `exact`
    keeps the norm's own type, for whoever does more with it than products.

    >>> from votive.nn.residual import add_norm
    >>> x, y = add_norm(votive.ones(2), votive.tensor([0.0, 2.0]), votive.nn.LayerNorm(2))
    >>> x, y.detach()
    (tensor([1., 3.]), tensor([-1.0000,  1.0000]))
    """
    if change is None or not _fusible(norm, x, change):
        x = x if change is None else x + change
        return x, norm(x)
    wide = dt.float64 in (x.dtype, change.dtype)
    lower = None if wide else mode.autocast.get(x.device.type)
    kind = None if lower is None else dt.float32 if exact else lower
    eps = norm.eps
    if eps is None:
        eps = dt.finfo(dt.float64 if wide else dt.float32).eps
    normed, total, *_ = OPERATORS._add_norm(
        x, change, *_affine(norm), len(norm.normalized_shape), eps, isinstance(norm, LayerNorm), kind
    )
    return total, normed
