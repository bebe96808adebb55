"""How calls compute with tensors in blocks: what moves whole rows is done to their bytes, products and tables go to the
operators that read blocks, casts lead out. Knows no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from ..backends import quantized
from ..core import dtype as dt
from ..core.blocks import block_dtype
from ..core.device import DeviceLike, resolve
from ..core.dtype import dtype as Dtype
from ..core.errors import ShapeError, UnsupportedError
from ..ops.registry import F
from ..tensor import Tensor
from .block_tensor import BlockTensor, encoded, from_blocks, like
from .destination import destination

_switches: dict[str, str] = quantized._values  # type: ignore[attr-defined]
Fn = TypeVar("Fn", bound=Callable[..., Any])
# What blocks stand for.
_NUMBERS = (dt.float64, dt.float32, *dt.HALF)


def _rule(*names: str) -> Callable[[Fn], Fn]:
    """What calls of these names do, when a tensor in blocks is among their arguments."""

    def register(fn: Fn) -> Fn:
        BlockTensor._rules.update(dict.fromkeys(names, fn))
        return fn

    return register


def _rows(x: BlockTensor, call: Callable[[Tensor], Any], what: str) -> Any:
    """Something that moves whole rows, done to the bytes."""
    if x._flipped:
        raise UnsupportedError(f"{what}: the columns of {x._format.name} blocks cannot be taken apart; {x._advice}")
    made = call(x._bytes)
    if isinstance(made, (tuple, list)):
        return type(made)(like(x, m) for m in made)
    return like(x, made)


def _whole(x: BlockTensor, dim: int, what: str) -> int:
    """A dimension that is not the one along which blocks lie."""
    at = dim + x.ndim if dim < 0 else dim
    if not 0 <= at < x.ndim:
        raise IndexError(f"{what}: dim={dim} is out of range for shape {tuple(x.shape)}.")
    if at == x.ndim - 1:
        raise UnsupportedError(
            f"{what}: {x._format.name} blocks lie along dimension {at}, which cannot be taken apart; {x._advice}"
        )
    return at


def _dims(index: Any) -> int:
    """How many dimensions an index takes."""
    if index is None or isinstance(index, bool):
        return 0
    return index.ndim if isinstance(index, Tensor) and index.dtype is dt.bool_ else 1


@_rule("__getitem__", "_getitem")
def _getitem(x: BlockTensor, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    # Behind dots, or where no dimension is left, the last index is that of the last dimension.
    behind = parts[dots[0] + 1 :] if dots else parts
    taken = sum(_dims(p) for p in parts if p is not Ellipsis)
    if behind and (dots or taken >= x.ndim):
        last = behind[-1]
        if last is None:
            raise UnsupportedError(f"indexing: {x._format.name} blocks lie along the last dimension; {x._advice}")
        if not (isinstance(last, slice) and last == slice(None)):
            raise UnsupportedError(f"indexing: single elements of {x._format.name} blocks cannot be taken; {x._advice}")
    return _rows(x, lambda b: b[index], "indexing")


@_rule("linear")
def _linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    if not isinstance(weight, BlockTensor):
        raise UnsupportedError(f"linear: the input is in {input._format.name} blocks; {input._advice}")
    if weight._flipped:
        out: Tensor = F._block_matmul(input, weight._bytes, weight._format)
        return out if bias is None else out + bias
    if bias is not None and bias.dtype is not input.dtype:
        bias = bias.to(input.dtype)
    return F._block_linear(input, weight._bytes, bias, weight._format, _switches["activations"] == "exact")


@_rule("matmul", "mm", "mv", "__matmul__")
def _matmul(input: Any, other: Any) -> Tensor:
    if isinstance(input, BlockTensor):
        if isinstance(other, BlockTensor):
            raise UnsupportedError(f"matmul: both factors are in blocks; {input._advice}")
        if other.ndim == 1:
            return _linear(other, input)
        return _linear(other.transpose(-1, -2), input).transpose(-1, -2)
    if other._flipped:
        return _linear(input, from_blocks(other._bytes, other._format))
    return F._block_matmul(input, other._bytes, other._format)


@_rule("addmm")
def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return F.add(input * beta, _matmul(mat1, mat2), alpha=alpha)


def _matrix(x: BlockTensor, i: int) -> BlockTensor:
    """One of stacked matrices, transposed or not."""
    return like(x, x._bytes[i])


@_rule("bmm")
def _bmm(input: Any, mat2: Any) -> Tensor:
    if not isinstance(mat2, BlockTensor):
        raise UnsupportedError(f"bmm: the first factor is in {input._format.name} blocks; {input._advice}")
    if isinstance(input, BlockTensor):
        raise UnsupportedError(f"bmm: both factors are in blocks; {input._advice}")
    if input.ndim != 3 or mat2.ndim != 3 or input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise ShapeError(f"bmm: shapes {tuple(input.shape)} and {tuple(mat2.shape)} do not go together.")
    if not len(mat2):
        return input.new_zeros((0, input.shape[1], mat2.shape[2]))
    out: Tensor = F.stack([_matmul(input[i], _matrix(mat2, i)) for i in range(len(mat2))])
    return out


@_rule("nn.functional.grouped_mm")
def _grouped_mm(
    mat_a: Any, mat_b: Any, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Dtype | None = None
) -> Tensor:
    """Rows of numbers, sorted by group, times a matrix in blocks for each group: the experts of a mixture."""
    if isinstance(mat_a, BlockTensor) or mat_b.ndim != 3:
        blocks = mat_a if isinstance(mat_a, BlockTensor) else mat_b
        raise UnsupportedError(
            f"grouped_mm: the second factor may be in {blocks._format.name} blocks, as (groups, K, N), got "
            f"{tuple(mat_a.shape)} and {tuple(mat_b.shape)}; {blocks._advice}"
        )
    if bias is not None or (out_dtype is not None and out_dtype is not mat_a.dtype):
        raise RuntimeError("grouped_mm: bias is not supported, and out_dtype must be that of mat_a.")
    if (mat_a.ndim == 2) != (offs is not None):
        raise RuntimeError("grouped_mm: give offs if one of the matrices has 2 dimensions, and only then.")
    if offs is None:
        return _bmm(mat_a, mat_b)
    if offs.ndim != 1 or offs.dtype is not dt.int32 or len(offs) != len(mat_b):
        raise RuntimeError(
            f"grouped_mm: offs must be {len(mat_b)} ends of int32, got {offs.dtype} {tuple(offs.shape)}."
        )
    if mat_a.shape[1] != mat_b.shape[1]:
        raise RuntimeError(f"grouped_mm: contraction dimensions differ: {tuple(mat_a.shape)} and {tuple(mat_b.shape)}.")
    ends = [0, *offs.tolist()]
    parts = [_matmul(mat_a[lo:hi], _matrix(mat_b, i)) for i, (lo, hi) in enumerate(pairwise(ends)) if hi > lo]
    rest = mat_a.new_zeros((max(mat_a.shape[0] - ends[-1], 0), mat_b.shape[2]))
    out: Tensor = F.cat([*parts, rest], 0)
    return out


@_rule("_linear_activated")
def _linear_activated(input: Any, weight: Any, bias: Any, activation: str) -> Tensor:
    y = _linear(input, weight, bias)
    return F.gelu(y, approximate="tanh") if activation == "gelu_tanh" else getattr(F, activation)(y)


@_rule("nn.functional.embedding")
def _embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    if max_norm is not None:
        raise UnsupportedError(f"embedding: max_norm writes into the table, which is in {weight._format.name} blocks.")
    return F._block_embedding(input, weight._bytes, weight._format, weight._wide)


@_rule("transpose")
def _transpose(input: BlockTensor, dim0: int, dim1: int) -> BlockTensor:
    dims = {dim0 % input.ndim, dim1 % input.ndim}
    if len(dims) == 1:
        return input
    if dims != {input.ndim - 1, input.ndim - 2}:
        raise UnsupportedError(f"transpose: {input._format.name} blocks lie along the last dimension; {input._advice}")
    return like(input, input._bytes, flipped=not input._flipped)


@_rule("t")
def _t(input: BlockTensor) -> BlockTensor:
    return input if input.ndim < 2 else _transpose(input, 0, 1)


@_rule("permute")
def _permute(input: BlockTensor, *dims: Any) -> BlockTensor:
    order = [d % input.ndim for d in (dims[0] if len(dims) == 1 and isinstance(dims[0], Sequence) else dims)]
    same = list(range(input.ndim))
    if order == same:
        return input
    if order == [*same[:-2], same[-1], same[-2]]:
        return _transpose(input, -1, -2)
    raise UnsupportedError(f"permute: {input._format.name} blocks lie along the last dimension; {input._advice}")


@_rule("to", "_to_device")
def _to(
    input: Any,
    *args: Any,
    dtype: Any = None,
    device: DeviceLike = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """Moves keep the blocks; another dtype leaves them."""
    dtype, device, non_blocking = destination(args, dtype, device, non_blocking)
    if not isinstance(input, BlockTensor):  # a tensor beside one in blocks: `x.to(weight)`
        return F.to(input, dtype=dtype, device=device, copy=copy)
    place = input.device if device is None else resolve(device)
    moved = input
    if place is not input.device or copy:
        data = F.to(input._bytes, place, non_blocking=non_blocking, copy=copy)
        moved = like(input, data)
    if dtype is None or dtype is input._format:
        return moved
    if isinstance(dtype, block_dtype):
        return encoded(moved, dtype)
    if dtype not in _NUMBERS:
        raise UnsupportedError(
            f"to: {input._format.name} blocks become {', '.join(d.name for d in _NUMBERS)} or another block format, "
            f"not {dtype}; {input._advice}"
        )
    return moved.dequantize(dtype)


@_rule("clone")
def _clone(input: BlockTensor, memory_format: Any = None) -> BlockTensor:
    return like(input, input._bytes.clone())


@_rule("copy_")
def _copy(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """`copy_`: blocks of the same format are copied, numbers are encoded."""
    if not isinstance(input, BlockTensor):
        return input.copy_(src.dequantize(input.dtype if input.dtype.is_floating_point else dt.float32))
    if tuple(input.shape) != tuple(src.shape):
        raise RuntimeError(f"copy_: shapes must be the same, got {tuple(input.shape)} and {tuple(src.shape)}.")
    if input._flipped and not isinstance(src, BlockTensor):
        input._bytes.copy_(encoded(src.transpose(-1, -2), input._format)._bytes)
        return input
    source = encoded(src, input._format)
    if source._flipped != input._flipped:
        raise UnsupportedError(f"copy_: {input._format.name} blocks lie along the other dimension; {input._advice}")
    input._bytes.copy_(source._bytes)
    return input


@_rule("equal")
def _equal(input: Any, other: Any) -> bool:
    same = isinstance(input, BlockTensor) and isinstance(other, BlockTensor) and input._format is other._format
    return bool(same and input._flipped == other._flipped and input._bytes.equal(other._bytes))


@_rule("cat")
def _cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    first = tensors[0]
    if not all(isinstance(t, BlockTensor) and t._format is first._format and not t._flipped for t in tensors):
        names = ", ".join(str(t.dtype) for t in tensors)
        raise UnsupportedError(f"cat: blocks are joined with blocks of the same format, got {names}.")
    at = _whole(first, dim, "cat")
    return like(first, F.cat([t._bytes for t in tensors], at))


@_rule("split")
def _split(input: BlockTensor, split_size: Any, dim: int = 0) -> Any:
    return _rows(input, lambda b: F.split(b, split_size, _whole(input, dim, "split")), "split")


@_rule("chunk")
def _chunk(input: BlockTensor, chunks: int, dim: int = 0) -> Any:
    return _rows(input, lambda b: F.chunk(b, chunks, _whole(input, dim, "chunk")), "chunk")


@_rule("unbind")
def _unbind(input: BlockTensor, dim: int = 0) -> Any:
    return _rows(input, lambda b: F.unbind(b, _whole(input, dim, "unbind")), "unbind")


@_rule("select")
def _select(input: BlockTensor, dim: int, index: int) -> Any:
    return _rows(input, lambda b: F.select(b, _whole(input, dim, "select"), index), "select")


@_rule("narrow")
def _narrow(input: BlockTensor, dim: int, start: int, length: int) -> Any:
    return _rows(input, lambda b: F.narrow(b, _whole(input, dim, "narrow"), start, length), "narrow")


@_rule("index_select")
def _index_select(input: BlockTensor, dim: int, index: Any) -> Any:
    return _rows(input, lambda b: F.index_select(b, _whole(input, dim, "index_select"), index), "index_select")


@_rule("unsqueeze")
def _unsqueeze(input: BlockTensor, dim: int) -> Any:
    at = dim + input.ndim + 1 if dim < 0 else dim
    if at >= input.ndim:
        raise UnsupportedError(f"unsqueeze: {input._format.name} blocks lie along the last dimension; {input._advice}")
    return _rows(input, lambda b: F.unsqueeze(b, at), "unsqueeze")


@_rule("contiguous")
def _contiguous(input: BlockTensor, memory_format: Any = None) -> Any:
    if input._flipped:
        raise UnsupportedError(f"contiguous: {input._format.name} blocks cannot be transposed; {input._advice}")
    return input if input._bytes.is_contiguous() else like(input, input._bytes.contiguous())


@_rule("view", "reshape", "_view")
def _view(input: BlockTensor, *shape: Any) -> Any:
    """Other leading dimensions over the same rows."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    wanted = list(sizes)
    if wanted.count(-1) == 1:
        known = 1
        for n in wanted:
            known *= n if n != -1 else 1
        wanted[wanted.index(-1)] = input.numel() // max(known, 1)
    if not wanted or wanted[-1] != input.shape[-1] or input._flipped:
        raise UnsupportedError(
            f"view: rows of {input._format.name} blocks stay whole: the last size must be {input.shape[-1]}, got "
            f"{tuple(sizes)}; {input._advice}"
        )
    return _rows(input, lambda b: F.reshape(b, (*wanted[:-1], b.shape[-1])), "view")


@_rule("is_floating_point", "is_complex")
def _no(input: BlockTensor) -> bool:
    return False


@_rule("is_signed", "is_tensor")
def _yes(input: Any) -> bool:
    return True


@_rule("numel")
def _numel(input: BlockTensor) -> int:
    return input._spec.numel


@_rule("element_size")
def _element_size(input: BlockTensor) -> float:
    return input._format.itemsize


for _number in _NUMBERS:
    _named = next((alias for alias, d in dt.ALIASES.items() if d is _number), _number.name)
    _rule(_named)(lambda input, memory_format=None, number=_number: input.dequantize(number))
