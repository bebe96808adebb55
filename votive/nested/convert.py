"""Nested tensors from lists, dense tensors and parts of them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.layout import wrap_dim
from ..core.memory_format import jagged, strided
from ..core.memory_format import layout as Layout
from ..ops.registry import F
from ..tensor import Tensor
from .tensor import NestedTensor, Rows, make, nested_like, values_of

if TYPE_CHECKING:
    from ..core.device import DeviceLike
    from ..core.dtype import dtype as Dtype


def _layout(layout: Any) -> Layout:
    if layout is None:
        return strided
    if layout not in (strided, jagged):
        raise RuntimeError(f"nested tensors have layout strided or jagged, got {layout}.")
    return layout


def concatenated(tensors: Sequence[Tensor], layout: Layout) -> Any:
    """Components laid end to end along the dimension in which they differ."""
    if not tensors:
        empty = F.zeros((0,))
        return make(empty, Rows(F.zeros(1, dtype=dt.int64)), 1, layout)
    first = tensors[0]
    for i, t in enumerate(tensors):
        if t.ndim != first.ndim:
            raise RuntimeError(
                f"all tensors of a nested tensor must have the same number of dimensions: {first.ndim} at index 0, "
                f"{t.ndim} at index {i}."
            )
        if t.dtype is not first.dtype or t.device != first.device:
            raise RuntimeError(
                "When constructing a nested tensor, all tensors in list must have the same dtype and device"
            )
    if first.ndim == 0:
        raise RuntimeError("the components of a nested tensor must have at least one dimension.")
    differs = [d for d in range(first.ndim) if any(t.shape[d] != first.shape[d] for t in tensors)]
    if len(differs) > 1:
        raise NotImplementedError(
            f"nested tensors differ in one dimension; these differ in {[d + 1 for d in differs]}. Pad all but one."
        )
    at = differs[0] if differs else 0
    ends = F.cumsum(F.tensor([0, *(int(t.shape[at]) for t in tensors)]), 0).to(first.device)
    values = F.cat(list(tensors), at)
    rows = Rows(ends)
    return nested_like(make(values.detach(), rows, at + 1, layout), values)


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A nested tensor of copies: a leaf of its own, for lists of tensors or of anything that `votive.tensor` takes.

    >>> x = votive.nested.nested_tensor([votive.ones(2, 3), votive.ones(4, 3)], layout=votive.jagged)
    >>> x.offsets()
    tensor([0, 2, 6])
    """
    if pin_memory:
        raise NotImplementedError("nested_tensor: pin_memory is not supported; pin the components.")
    layout = _layout(layout)
    parts = [t.detach() if isinstance(t, Tensor) else F.tensor(t) for t in tensor_list]
    if layout is strided and parts:  # as in torch the first decides
        parts = [t.to(parts[0].dtype) for t in parts]
    out = concatenated([t.to(device=device or t.device, dtype=dtype or t.dtype) for t in parts], layout)
    if len(parts) == 1:
        out = F.clone(out)
    return out.requires_grad_() if requires_grad else out


def as_nested_tensor(ts: Any, dtype: Dtype | None = None, device: DeviceLike | None = None, layout: Any = None) -> Any:
    """A nested tensor of a list of tensors, or of a batch, with their history.

    >>> votive.nested.as_nested_tensor(votive.ones(2, 3), layout=votive.jagged).unbind()
    (tensor([1., 1., 1.]), tensor([1., 1., 1.]))
    """
    if isinstance(ts, NestedTensor):
        if layout is not None and _layout(layout) is not ts._layout:
            raise RuntimeError(f"as_nested_tensor: the layout is {ts._layout} and cannot become {layout}.")
        return ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    layout = _layout(layout)
    if isinstance(ts, Tensor):
        parts = list(F.unbind(ts))
    else:
        parts = [t if isinstance(t, Tensor) else F.tensor(t) for t in ts]
    return concatenated([t.to(device=device or t.device, dtype=dtype or t.dtype) for t in parts], layout)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A view of values that already lie end to end, by where components begin, how long they are, or both.

    >>> x = votive.nested.nested_tensor_from_jagged(votive.arange(5.0), lengths=votive.tensor([2, 3]))
    >>> x.unbind()
    (tensor([0., 1.]), tensor([2., 3., 4.]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        start = F.zeros(1, dtype=dt.int64, device=lengths.device)
        offsets, lengths = F.cat((start, F.cumsum(lengths, 0))), None
    at = 1 if jagged_dim is None else int(jagged_dim)
    if not 1 <= at <= values.ndim:
        raise RuntimeError(f"nested_tensor_from_jagged: jagged_dim={jagged_dim} is not a dimension behind the batch.")
    if offsets.ndim != 1 or offsets.shape[0] < 1 or offsets.dtype not in (dt.int32, dt.int64):
        raise RuntimeError(
            "nested_tensor_from_jagged: offsets must be a vector of int32 or int64, one more than components."
        )
    if lengths is not None and tuple(lengths.shape) != (int(offsets.shape[0]) - 1,):
        raise RuntimeError("nested_tensor_from_jagged: lengths must have one number per component.")
    rows = Rows(offsets.detach(), None if lengths is None else lengths.detach())
    room = int(values.shape[at - 1])
    if any(a < 0 or n < 0 or a + n > room for a, n in rows.limits) or int(offsets[-1].item()) > room:
        raise RuntimeError(f"nested_tensor_from_jagged: offsets reach beyond the {room} rows of values, or fall.")
    shortest = min((n for _, n in rows.limits), default=0)
    if rows.longest > (max_seqlen if max_seqlen is not None else rows.longest) or shortest < (min_seqlen or 0):
        raise RuntimeError(
            f"nested_tensor_from_jagged: components have lengths {shortest} to {rows.longest}, which "
            f"min_seqlen={min_seqlen} and max_seqlen={max_seqlen} exclude."
        )
    return nested_like(make(values.detach(), rows, at), values)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> Any:
    """From each element of a batch a part along dimension 1, without copying (jagged) or copied (strided).

    >>> x = votive.arange(8.0).reshape(2, 4)
    >>> lengths = votive.tensor([2, 1])
    >>> votive.nested.narrow(x, 1, votive.tensor([0, 3]), lengths, layout=votive.jagged).unbind()
    (tensor([0., 1.]), tensor([7.]))
    """
    layout = _layout(layout)
    n, width = int(tensor.shape[0]), int(tensor.shape[1])
    if dim != 1:
        raise RuntimeError(f"narrow: only dimension 1 can be narrowed, got {dim}.")
    if layout is strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(F.narrow(tensor, 1, start, length), layout=strided)
    starts = start if isinstance(start, Tensor) else F.full((n,), int(start), dtype=dt.int64, device=tensor.device)
    sizes = length if isinstance(length, Tensor) else F.full((n,), int(length), dtype=dt.int64, device=tensor.device)
    if bool(((starts < 0) | (sizes < 0) | (starts + sizes > width)).any()):
        raise RuntimeError(f"narrow: start + length must not exceed {width}.")
    begins = F.arange(n, dtype=starts.dtype, device=tensor.device) * width + starts
    offsets = F.cat((begins, (begins[-1:] + sizes[-1:]))) if n else F.zeros(1, dtype=dt.int64)
    values = tensor.reshape(n * width, *tensor.shape[2:])
    return nested_like(make(values.detach(), Rows(offsets, sizes), 1), values)


def masked_select(tensor: Tensor, mask: Tensor) -> Any:
    """From each row of a batch the elements whose mask holds.

    >>> mask = votive.tensor([[True, False], [True, True]])
    >>> votive.nested.masked_select(votive.tensor([[1, 2], [3, 4]]), mask).unbind()
    (tensor([1]), tensor([3, 4]))
    """
    if tensor.layout is not strided or tensor.ndim != 2:
        raise RuntimeError(f"masked_select: takes a strided tensor of two dimensions, got {tensor.ndim}.")
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_select: mask must be bool, got {mask.dtype}.")
    mask = F.expand(mask, tuple(tensor.shape))
    lengths = mask.sum(1)
    return nested_tensor_from_jagged(F.masked_select(tensor, mask), lengths=lengths)


def packed(x: NestedTensor) -> NestedTensor:
    """The same components without holes between them."""
    if x._rows.lengths is None:
        return x
    at = x._ragged - 1
    parts = [F.arange(a, a + n, device=x.device) for a, n in x._rows.limits]
    index = F.cat(parts) if parts else F.zeros(0, dtype=dt.int64)
    start = F.zeros(1, dtype=dt.int64, device=x.device)
    rows = Rows(F.cat((start, F.cumsum(x._rows.lengths, 0))))
    made: NestedTensor = nested_like(x, F.index_select(values_of(x), at, index), rows=rows)
    return made


def components(x: NestedTensor) -> tuple[Tensor, ...]:
    """The tensors that a nested tensor holds; views of its values."""
    values = values_of(x)
    return tuple(F.narrow(values, x._ragged - 1, a, n) for a, n in x._rows.limits)


def positions(rows: Rows, width: int) -> Tensor:
    """For a padded batch (count * width) the row of values at each place, or the number of rows where there is none."""
    total = sum(n for _, n in rows.limits)
    places = F.arange(width, device=rows.offsets.device).unsqueeze(0)
    starts = rows.offsets[:-1].to(dt.int64).unsqueeze(1)
    lengths = (rows.offsets[1:] - rows.offsets[:-1]).to(dt.int64).unsqueeze(1)
    return F.where(places < lengths, starts + places, total).reshape(rows.count * width)


def spread(x: NestedTensor, fill: float, width: int) -> Tensor:
    """(count, width, *rest): the ragged dimension second, filled up."""
    values = F.movedim(values_of(x), x._ragged - 1, 0)
    rest = tuple(values.shape[1:])
    last = F.full((1, *rest), fill, dtype=values.dtype, device=values.device)
    rows = F.index_select(F.cat((values, last)), 0, positions(x._rows, width))
    return rows.reshape(x._rows.count, width, *rest)


def gathered(dense: Tensor, rows: Rows) -> Tensor:
    """The inverse of `spread`: (total, *rest) from (count, width, *rest)."""
    count, width = dense.shape[:2]
    flat = dense.reshape(count * width, *dense.shape[2:])
    within = F.arange(rows.ids.shape[0], device=dense.device) - rows.offsets.to(dt.int64)[rows.ids]
    return F.index_select(flat, 0, rows.ids * width + within)


def padded(x: NestedTensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """`Tensor.to_padded_tensor`."""
    if x._rows.lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes; use .contiguous() first.")
    width = x._rows.longest
    if output_size is not None:
        wanted = [int(n) for n in output_size]
        natural = [x._rows.count, *x._held.shape]
        natural[x._ragged] = width
        if len(wanted) != x.ndim:
            raise RuntimeError(f"to_padded_tensor: output_size must have {x.ndim} sizes, got {len(wanted)}.")
        if any(n < have for n, have in zip(wanted, natural, strict=True)):
            raise RuntimeError(f"to_padded_tensor: output_size {wanted} is smaller than the components, {natural}.")
        width = wanted[x._ragged]
    out = F.movedim(spread(x, padding, width), 1, x._ragged)
    if output_size is not None and tuple(out.shape) != tuple(wanted):
        whole = F.full(tuple(wanted), padding, dtype=out.dtype, device=out.device)
        whole[tuple(slice(0, n) for n in out.shape)] = out
        out = whole
    return out


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """A dense tensor of a nested one, with `padding` behind the components that are shorter.

    >>> x = votive.nested.nested_tensor([[1.0], [2.0, 3.0]], layout=votive.jagged)
    >>> votive.nested.to_padded_tensor(x, 0.0)
    tensor([[1., 0.],
            [2., 3.]])
    """
    if not isinstance(input, NestedTensor):
        raise RuntimeError("to_padded_tensor: expected a nested tensor.")
    made = padded(input, padding, output_size)
    return made if out is None else out.copy_(made)


def dim_of(name: str, x: NestedTensor, dim: int) -> int:
    """A dimension counted from the front; the batch is refused."""
    d = wrap_dim(name, dim, x.ndim)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0; use .unbind().")
    return d
