"""Shapes of nested tensors: everything behind the batch, without touching the ragged dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.layout import Size, wrap_dim
from ..ops.registry import F
from ..tensor import Tensor
from .convert import components, concatenated, dim_of
from .rules import pattern_of, rule
from .size import RaggedSize
from .tensor import NestedTensor, nested_like, values_of

if TYPE_CHECKING:
    from ..core.dtype import dtype as Dtype


@rule("transpose", "swapaxes")
def _transpose(input: NestedTensor, dim0: int, dim1: int) -> Any:
    a, b = dim_of("transpose", input, dim0), dim_of("transpose", input, dim1)
    ragged = b if input._ragged == a else a if input._ragged == b else input._ragged
    return nested_like(input, values_of(input).transpose(a - 1, b - 1), ragged)


@rule("permute")
def _permute(input: NestedTensor, *dims: Any) -> Any:
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list, Size)) else dims
    order = [wrap_dim("permute", d, input.ndim) for d in order]
    if not order or order[0] != 0 or sorted(order) != list(range(input.ndim)):
        raise RuntimeError(f"permute: the batch must stay first, got {tuple(order)}.")
    return nested_like(input, values_of(input).permute([d - 1 for d in order[1:]]), order.index(input._ragged))


@rule("unsqueeze")
def _unsqueeze(input: NestedTensor, dim: int) -> Any:
    d = wrap_dim("unsqueeze", dim, input.ndim + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return nested_like(input, values_of(input).unsqueeze(d - 1), input._ragged + (d <= input._ragged))


@rule("squeeze")
def _squeeze(input: NestedTensor, dim: Any = None) -> Any:
    if not isinstance(dim, int):
        raise NotImplementedError("squeeze: nested tensors take one dimension.")
    d = dim_of("squeeze", input, dim)
    if d == input._ragged or input._held.shape[d - 1] != 1:
        return input
    return nested_like(input, values_of(input).squeeze(d - 1), input._ragged - (d < input._ragged))


def _off_ragged(name: str, x: NestedTensor, dim: int) -> int:
    d = dim_of(name, x, dim)
    if d == x._ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return d


@rule("select")
def _select(input: NestedTensor, dim: int, index: int) -> Any:
    if wrap_dim("select", dim, input.ndim) == 0:
        return components(input)[int(index)]
    d = _off_ragged("select", input, dim)
    return nested_like(input, values_of(input).select(d - 1, int(index)), input._ragged - (d < input._ragged))


@rule("_getitem")
def _getitem(input: NestedTensor, index: Any) -> Any:
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(p, NestedTensor) for p in parts):
        raise NotImplementedError("indexing: nested tensors cannot be indices; use their values().")
    given = sum(p is not None and p is not Ellipsis for p in parts)
    if Ellipsis in [p for p in parts if not isinstance(p, Tensor)]:
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (input.ndim - given)
    if not parts:
        return input
    first, rest = parts[0], parts[1:]
    if isinstance(first, int) or (isinstance(first, Tensor) and first.ndim == 0 and not first.dtype.is_inexact):
        one = components(input)[int(first)]
        return one[tuple(rest)] if rest else one
    if first != slice(None):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    out, d = input, 1
    for p in rest:
        if p is None:
            out = _unsqueeze(out, d)
        elif isinstance(p, int):
            out = _select(out, d, p)
            continue
        elif isinstance(p, slice):
            if p != slice(None):
                _off_ragged("slice", out, d)
                cut = (slice(None),) * (d - 1) + (p,)
                out = nested_like(out, values_of(out)[cut])
        else:
            raise NotImplementedError(f"indexing: not implemented for nested tensors by {type(p).__name__}.")
        d += 1
    return out


@rule("narrow")
def _narrow(input: NestedTensor, dim: int, start: Any, length: int) -> Any:
    d = _off_ragged("narrow", input, dim)
    return nested_like(input, F.narrow(values_of(input), d - 1, start, length))


@rule("chunk")
def _chunk(input: NestedTensor, chunks: int, dim: int = 0) -> Any:
    if wrap_dim("chunk", dim, input.ndim) == 0:
        each = -(-len(input) // chunks)
        groups = [components(input)[i : i + each] for i in range(0, len(input), each)]
        return tuple(concatenated(list(g), input._layout) for g in groups)
    d = _off_ragged("chunk", input, dim)
    return tuple(nested_like(input, v) for v in F.chunk(values_of(input), chunks, d - 1))


@rule("split")
def _split(input: NestedTensor, split_size: Any, dim: int = 0) -> Any:
    d = _off_ragged("split", input, dim)
    return tuple(nested_like(input, v) for v in F.split(values_of(input), split_size, d - 1))


@rule("cat")
def _cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    if not all(isinstance(t, NestedTensor) for t in tensors):
        raise RuntimeError("cat: all tensors must be nested, or none.")
    first = tensors[0]
    if wrap_dim("cat", dim, first.ndim) == 0:
        return concatenated([c for t in tensors for c in components(t)], first._layout)
    pattern_of("cat", tensors)
    d = _off_ragged("cat", first, dim)
    return nested_like(first, F.cat([values_of(t) for t in tensors], d - 1))


@rule("stack")
def _stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    first = pattern_of("stack", tensors)
    d = wrap_dim("stack", dim, first.ndim + 1)
    if d == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    return nested_like(first, F.stack([values_of(t) for t in tensors], d - 1), first._ragged + (d <= first._ragged))


@rule("view", "reshape")
def _view(input: NestedTensor, *size: Any, dtype: Dtype | None = None) -> Any:
    sizes = list(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list, Size)) else list(size)
    if dtype is not None:
        raise NotImplementedError("view: nested tensors cannot be seen as another dtype; use values().")
    at = [i for i, n in enumerate(sizes) if n == -1 or isinstance(n, RaggedSize)]
    known = [int(n) for i, n in enumerate(sizes[1:], 1) if i not in at]
    if sizes[:1] not in ([len(input)], [-1]) or (at[:1] == [0]):
        raise RuntimeError(f"view: the batch of {len(input)} must stay first, got {tuple(sizes)}.")
    ragged = next((i for i in at if isinstance(sizes[i], RaggedSize)), input._ragged if input._ragged in at else None)
    if (
        ragged is None
        or len(at) > 2
        or (ragged != input._ragged and known[: ragged - 1] != list(input._held.shape)[: ragged - 1])
    ):
        raise RuntimeError(
            f"view: the ragged dimension of {tuple(input._shown())} must stay whole, got {tuple(sizes)}."
        )
    before = list(input._held.shape)[: input._ragged - 1]
    wanted = [int(n) if i not in at else -1 for i, n in enumerate(sizes)][1:]
    wanted[ragged - 1] = int(input._held.shape[input._ragged - 1])
    if ragged != input._ragged or wanted[: ragged - 1] != before:
        raise RuntimeError(
            f"view: {tuple(input._shown())} cannot be seen as {tuple(sizes)}; change inner dimensions only."
        )
    return nested_like(input, F.reshape(values_of(input), tuple(wanted)))


@rule("unflatten")
def _unflatten(input: NestedTensor, dim: int, sizes: Sequence[int]) -> Any:
    d = _off_ragged("unflatten", input, dim)
    more = len(sizes) - 1 if d < input._ragged else 0
    return nested_like(input, F.unflatten(values_of(input), d - 1, sizes), input._ragged + more)


@rule("flatten")
def _flatten(input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    a, b = wrap_dim("flatten", start_dim, input.ndim), wrap_dim("flatten", end_dim, input.ndim)
    if a == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if a <= input._ragged <= b:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    less = b - a if b < input._ragged else 0
    return nested_like(input, F.flatten(values_of(input), a - 1, b - 1), input._ragged - less)


@rule("expand")
def _expand(input: NestedTensor, *size: Any, implicit: bool = False) -> Any:
    sizes = list(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list, Size)) else list(size)
    if len(sizes) != input.ndim or sizes[0] not in (-1, len(input)):
        raise RuntimeError(f"expand: {tuple(input._shown())} cannot become {tuple(sizes)}.")
    inner = [-1 if isinstance(n, RaggedSize) else int(n) for n in sizes[1:]]
    if inner[input._ragged - 1] != -1:
        raise RuntimeError("expand(): not supported for NestedTensor on ragged dim")
    return nested_like(input, values_of(input).expand(*inner))


rule("numel")(lambda input: input.numel())
rule("is_tensor")(lambda obj: True)
rule("is_floating_point")(lambda input: input.dtype.is_floating_point)
rule("is_complex")(lambda input: input.dtype.is_complex)
