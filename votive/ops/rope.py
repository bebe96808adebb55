"""Rotary position embedding: pairs of features rotated by an angle per position. Knows no kernel.

The fused operator rotates by the inverse angle to give the gradient; its composite twin says the same
with single operators and is what the tests compare it with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec, broadcast_shapes
from .registry import F, composite, structured
from .standardise import widened

if TYPE_CHECKING:
    from .types import Tensor


def _infer(x: Spec, cos: Spec, sin: Spec, offset: int, interleaved: bool) -> Spec:
    for name, t in (("input", x), ("cos", cos), ("sin", sin)):
        if not t.dtype.is_floating_point or t.dtype in dt.FLOAT8:
            kind = UnsupportedError if t is x else DtypeError
            fail(kind, "rope", f"{name} must be floating-point, got {t.dtype}; use .float().")
        if t.ndim < 2:
            fail(ShapeError, "rope", f"{name} needs (positions, features), got shape {t.shape}.")
    if cos.shape != sin.shape:
        fail(ShapeError, "rope", f"cos and sin differ in shape, {cos.shape} and {sin.shape}.")
    if 2 * cos.shape[-1] > x.shape[-1]:
        fail(
            ShapeError,
            "rope",
            f"cos has {cos.shape[-1]} angles, one per pair of features, but the input of shape "
            f"{x.shape} has {x.shape[-1] // 2} pairs.",
        )
    if broadcast_shapes("rope", x.shape[:-2], cos.shape[:-2]) != x.shape[:-2]:
        fail(ShapeError, "rope", f"cos of shape {cos.shape} does not fit into {x.shape}.")
    return x.dense_like()


def _pairs(x: Tensor, angles: int, interleaved: bool) -> tuple[Any, Any]:
    """First and second of each pair that is rotated."""
    rotated = x.narrow(-1, 0, 2 * angles)
    if interleaved:
        return tuple(rotated.unflatten(-1, (angles, 2)).unbind(-1))
    return rotated.narrow(-1, 0, angles), rotated.narrow(-1, angles, angles)


def _table_gradient(part: Tensor, table: Tensor, offset: int) -> Tensor:
    """What the rows that were used receive, among zeros for the others."""
    rows = F._reduce_to(part, (*table.shape[:-2], *part.shape[-2:]))
    if rows.shape == table.shape:
        return rows
    blank = F.zeros(table.shape, dtype=rows.dtype, device=rows.device)
    return F.slice_scatter(blank, rows, -2, offset, offset + rows.shape[-2])


def _by_cos(g: Tensor, x: Tensor, cos: Tensor, offset: int, interleaved: bool) -> Tensor:
    (a, b), (ga, gb) = (_pairs(widened(t), cos.shape[-1], interleaved) for t in (x, g))
    return _table_gradient(ga * a + gb * b, cos, offset)


def _by_sin(g: Tensor, x: Tensor, sin: Tensor, offset: int, interleaved: bool) -> Tensor:
    (a, b), (ga, gb) = (_pairs(widened(t), sin.shape[-1], interleaved) for t in (x, g))
    return _table_gradient(gb * a - ga * b, sin, offset)


structured(
    "_rope(Tensor input, Tensor cos, Tensor sin, Scalar offset, bool interleaved)",
    placement="matrices",
    infer=_infer,
    grad={
        "input": lambda c, g: F._rope(g, c.cos, -c.sin, c.offset, c.interleaved),
        "cos": lambda c, g: _by_cos(g, c.input, c.cos, c.offset, c.interleaved),
        "sin": lambda c, g: _by_sin(g, c.input, c.sin, c.offset, c.interleaved),
    },
    doc="`(a cos - b sin, b cos + a sin)` for each pair of features; see nn.functional.rope.",
)


@composite(name="_rope_composite")
def rope_composite(input: Tensor, cos: Tensor, sin: Tensor, offset: int, interleaved: bool) -> Tensor:
    """rope from single operators: what the fused kernel must agree with."""
    cos, sin = (t.narrow(-2, offset, input.shape[-2]) for t in (cos, sin))
    x, angles = widened(input), cos.shape[-1]
    a, b = _pairs(x, angles, interleaved)
    rotated = [a * cos - b * sin, b * cos + a * sin]
    if interleaved:
        rotated = [F.stack(rotated, -1).flatten(-2)]
    rest = x.narrow(-1, 2 * angles, x.shape[-1] - 2 * angles)
    return F._to_dtype(F.cat([*rotated, rest], -1), input.dtype)


@composite(namespaces=("nn.functional",), method=False)
def rope(input: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False, offset: int = 0) -> Tensor:
    """Pairs of features `(a, b)` rotated to `(a cos - b sin, b cos + a sin)`, by position.

    `input` is (..., positions, features). `cos` and `sin` are (..., positions, angles), one angle
    per pair, and broadcast over the leading dimensions; the first position of the input reads row
    `offset`. Feature i pairs with feature i + angles, or with its neighbour if `interleaved`;
    features past 2 * angles pass through. Su et al. 2021, "RoFormer", equation 34.

    >>> quarter = votive.tensor([[0.0]]), votive.tensor([[1.0]])
    >>> votive.nn.functional.rope(votive.tensor([[1.0, 2.0]]), *quarter)
    tensor([[-2.,  1.]])
    """
    start = offset.__index__()
    if cos.ndim > 1 < input.ndim and not 0 <= start <= cos.shape[-2] - input.shape[-2]:
        fail(
            IndexError,
            "rope",
            f"positions {start}..{start + input.shape[-2] - 1} are outside of the {cos.shape[-2]} rows of cos.",
        )
    return F._rope(input, cos, sin, start, interleaved)
