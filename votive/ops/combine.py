"""Joining tensors: cat, stack and kin, block_diag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import ShapeError, devices_differ, fail, received
from ..core.layout import Spec, wrap_dim
from ..core.promotion import result_type_of
from .copy import agreed_strides
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Sequence, Tensor, dtype


def _promoted(tensors: tuple[Spec, ...]) -> dtype:
    return result_type_of([t.dtype for t in tensors if t.ndim], [t.dtype for t in tensors if not t.ndim], [])


def _is_skipped(x: Spec) -> bool:
    """A tensor of shape (0,) joins anything and adds nothing: a rule that old code relies on."""
    return x.shape == (0,)


def _canon_cat(tensors: tuple[Spec, ...], dim: int) -> tuple[Any, ...]:
    if not tensors:
        raise ValueError("cat: expected a non-empty list of tensors.")
    for i, t in enumerate(tensors):
        if t.ndim == 0:
            fail(ShapeError, "cat", f"tensor {i} is 0-d and cannot be joined; use stack().")
    first = next((t for t in tensors if not _is_skipped(t)), None)
    return tensors, 0 if first is None else wrap_dim("cat", dim, first.ndim, first.shape)


def _infer_cat(tensors: tuple[Spec, ...], dim: int) -> Spec:
    used = [t for t in tensors if not _is_skipped(t)] or [tensors[0]]
    first = used[0]
    for t in used:
        if t.ndim != first.ndim or any(
            a != b for i, (a, b) in enumerate(zip(t.shape, first.shape, strict=True)) if i != dim
        ):
            fail(ShapeError, "cat", f"sizes must match except in dimension {dim}, got {first.shape} and {t.shape}.")
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in used)
    strides = agreed_strides(tuple(shape), used)
    return first.like(tuple(shape), dtype=_promoted(tensors), strides=strides)


def _pieces(g: Tensor, specs: tuple[Spec, ...], dim: int) -> list[Any]:
    if all(_is_skipped(x) for x in specs):
        return [g] * len(specs)
    used = iter(F.split_with_sizes(g, [x.shape[dim] for x in specs if not _is_skipped(x)], dim))
    empty = F.zeros((0,), dtype=g.dtype, device=g.device)
    return [empty if _is_skipped(x) else next(used) for x in specs]


structured(
    "cat(Tensor[] tensors, int dim=0)",
    placement="joined",
    canon=_canon_cat,
    infer=_infer_cat,
    grad={"tensors": lambda c, g: _pieces(g, c.spec("tensors"), c.dim)},
    method=False,
    aliases=("concat", "concatenate"),
    doc="""Join tensors along an existing dimension.

    >>> votive.cat([votive.tensor([1, 2]), votive.tensor([3])])
    tensor([1, 2, 3])
    """,
    out_no_overlap=True,
    autocast={"cpu": "widest"},
    moves=(0,),
)


def _canon_stack(tensors: tuple[Spec, ...], dim: int) -> tuple[Any, ...]:
    if not tensors:
        fail(RuntimeError, "stack", "expected a non-empty list of tensors.")
    for t in tensors:
        if t.shape != tensors[0].shape:
            fail(ShapeError, "stack", f"shapes must be equal, got {tensors[0].shape}, {t.shape}.")
        if t.device != tensors[0].device:
            devices_differ("stack", tensors[0].device, t.device)
    return tensors, wrap_dim("stack", dim, tensors[0].ndim + 1)


def _infer_stack(tensors: tuple[Spec, ...], dim: int) -> Spec:
    shape, n = tensors[0].shape, len(tensors)
    strides = None
    if dim < len(shape):
        # As if joined along `dim`, which is then cut in two.
        size = shape[dim]
        joined = agreed_strides((*shape[:dim], n * size, *shape[dim + 1 :]), tensors)
        strides = (*joined[:dim], size * joined[dim], *joined[dim:])
    full = (*shape[:dim], n, *shape[dim:])
    return tensors[0].like(full, dtype=_promoted(tensors), strides=strides)


structured(
    "stack(Tensor[] tensors, int dim=0)",
    placement="joined",
    canon=_canon_stack,
    infer=_infer_stack,
    grad={"tensors": lambda c, g: g.unbind(c.dim)},
    method=False,
    doc="""Join tensors of one shape along a new dimension.

    >>> votive.stack([votive.tensor([1, 2]), votive.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """,
    autocast={"cpu": "widest"},
    moves=(0,),
)


def _listed(op: str, tensors: Sequence[Tensor]) -> list[Any]:
    """A non-empty list of tensors."""
    if hasattr(tensors, "_spec"):
        raise TypeError(f"{op}: expected a list of tensors, got a Tensor.")
    out = list(tensors)
    if not out:
        fail(RuntimeError, op, "expected a non-empty list of tensors.")
    return out


@composite(method=False, out=True)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join side by side: along dimension 1, or 0 for vectors.

    >>> votive.hstack((votive.tensor([1, 2]), votive.tensor([3])))
    tensor([1, 2, 3])
    """
    parts = F.atleast_1d(_listed("hstack", tensors))
    return F.cat(parts, 0 if parts[0].ndim == 1 else 1)


@composite(method=False, out=True, aliases=("row_stack",))
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join below each other: along dimension 0, vectors as rows.

    >>> votive.vstack((votive.tensor([1, 2]), votive.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return F.cat(F.atleast_2d(_listed("vstack", tensors)), 0)


@composite(method=False, out=True)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join behind each other: along dimension 2.

    >>> votive.dstack((votive.tensor([1, 2]), votive.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return F.cat(F.atleast_3d(_listed("dstack", tensors)), 2)


@composite(method=False, out=True)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Join side by side, vectors as columns.

    >>> votive.column_stack((votive.tensor([1, 2]), votive.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    parts = [F.reshape(t, (t._spec.numel, 1)) if t.ndim <= 1 else t for t in _listed("column_stack", tensors)]
    return F.cat(parts, 1)


@composite(method=False, autocast={"cpu": "off"})
def block_diag(*tensors: Any) -> Tensor:
    """Matrices along the diagonal of a larger one, zeros elsewhere.

    >>> votive.block_diag(votive.tensor([[1, 2]]), votive.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    for i, t in enumerate(tensors):
        if not hasattr(t, "_spec"):
            raise TypeError(f"block_diag: expected tensors, got {received(t)}.")
        if t.ndim > 2:
            fail(ShapeError, "block_diag", f"tensor {i} has shape {t._spec.shape}; use 0..2 dims.")
    if not tensors:
        return F.zeros((1, 0))
    blocks = F.atleast_2d(tensors)
    width, left, rows = sum(b._spec.shape[1] for b in blocks), 0, []
    for b in blocks:
        w = b._spec.shape[1]
        rows.append(F.constant_pad_nd(b, (left, width - left - w)))
        left += w
    return F.cat(rows, 0)
