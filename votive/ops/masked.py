"""Choosing by truth: masks, positions of non-zero values, one-hot rows. Knows shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Shape, Spec, broadcast_shapes
from .index import blank, check_same
from .registry import OPS, F, Op, composite, structured

if TYPE_CHECKING:
    from .types import Tensor


def _check_mask(op: str, mask: Tensor) -> None:
    if mask.dtype is not dt.bool_:
        fail(DtypeError, op, f"mask must be a bool tensor, got {mask.dtype}; use .bool().")


structured(
    "_masked_select(Tensor input, Tensor mask)",
    infer=lambda x, mask: None,
    grad={"input": lambda c, g: F._masked_scatter(blank(c.shape("input"), g), c.mask, g)},
    doc="The values under a mask of the same shape, in row-major order.",
)


@composite(out=True, out_no_overlap=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The values where the mask is true, as a vector; both broadcast.

    >>> x = votive.tensor([3, 0, 5])
    >>> votive.masked_select(x, x > 1)
    tensor([3, 5])
    """
    _check_mask("masked_select", mask)
    if input._spec.shape == mask._spec.shape:
        return F._masked_select(input, mask)
    shape = broadcast_shapes("masked_select", input._spec.shape, mask._spec.shape)
    return F._masked_select(F.expand(input, shape), F.expand(mask, shape))


def _infer_masked_scatter(x: Spec, mask: Spec, source: Spec) -> Spec:
    check_same("masked_scatter", x, source)
    return x.like(x.shape)


def _taken(g: Tensor, mask: Tensor, shape: Shape) -> Tensor:
    """The gradient of a source of `shape` whose first values went under the mask."""
    part = F._masked_select(g, mask)
    size = 1
    for n in shape:
        size *= n
    if part._spec.numel != size:
        whole = blank((size,), g)
        F._slice(whole, 0, 0, part._spec.numel, 1).copy_(part)
        part = whole
    return F.reshape(part, shape)


structured(
    "_masked_scatter(Tensor input, Tensor mask, Tensor source)",
    infer=_infer_masked_scatter,
    grad={
        "input": lambda c, g: F.masked_fill(g, c.mask, 0),
        "source": lambda c, g: _taken(g, c.mask, c.shape("source")),
    },
    doc="Write the first values of `source` under a mask of the shape of `input`.",
)


@composite
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write the first values of `source`, in order, where the mask is true.

    >>> votive.masked_scatter(votive.zeros(3), votive.tensor([True, False, True]), votive.ones(2))
    tensor([1., 0., 1.])
    """
    _check_mask("masked_scatter", mask)
    shape = broadcast_shapes("masked_scatter", input._spec.shape, mask._spec.shape)
    return F._masked_scatter(F.expand(input, shape), F.expand(mask, shape), source)


@composite(name="masked_scatter_", namespaces=())
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """In-place form of `masked_scatter`.

    >>> votive.zeros(3).masked_scatter_(votive.tensor([True, False, True]), votive.ones(2))
    tensor([1., 0., 1.])
    """
    _check_mask("masked_scatter_", mask)
    return Op.write(OPS["_masked_scatter"], (input, F.expand(mask, input.shape), source))


structured(
    "_nonzero(Tensor input)",
    infer=lambda x: None,
    differentiable=False,
    doc="The positions of non-zero values: one row per dimension, so that each is contiguous.",
)


@composite(out=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of values that are not zero: a row each, or a vector per dimension.

    >>> votive.nonzero(votive.tensor([[0, 7], [8, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if not as_tuple:
        return F.transpose(F._nonzero(input), 0, 1)
    return F.unbind(F._nonzero(F.reshape(input, 1) if input.ndim == 0 else input), 0)


@composite
def argwhere(input: Tensor) -> Tensor:
    """The positions of values that are not zero, a row each.

    >>> votive.argwhere(votive.tensor([0, 7, 8]))
    tensor([[1],
            [2]])
    """
    return F.transpose(F._nonzero(input), 0, 1)


@composite(method=False, namespaces=("nn.functional",))
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at each class; by default there are as many as the largest asks for.

    >>> votive.nn.functional.one_hot(votive.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    op = "one_hot"
    if input.dtype is not dt.int64:
        fail(DtypeError, op, f"classes must be int64, got {input.dtype}; use .long().")
    if input._spec.numel == 0:
        if num_classes <= 0:
            fail(ShapeError, op, "cannot infer the number of classes from an empty tensor.")
        return F.zeros((*input.shape, num_classes), dtype=dt.int64, device=input.device)
    if input.is_meta and num_classes > 0:
        return F.empty((*input.shape, num_classes), dtype=dt.int64, device=input.device)
    low, high = int(input.min()), int(input.max())
    if low < 0:
        fail(RuntimeError, op, f"class values must be non-negative, got {low}.")
    if num_classes == -1:
        num_classes = high + 1
    elif high >= num_classes:
        fail(RuntimeError, op, f"class values must be smaller than {num_classes}, got {high}.")
    rows = F.zeros((*input.shape, num_classes), dtype=dt.int64, device=input.device)
    return rows.scatter_(-1, F.unsqueeze(input, -1), 1)
