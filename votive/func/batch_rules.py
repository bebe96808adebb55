"""Batching rules of operators that neither a formula nor a word in their declaration describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.registry import F
from . import batch_rules_nn as _nn  # noqa: F401 - registers the rules of layers
from .batching import Call, aligned, one_by_one, rule
from .wrapped import expanded, front


def via(call: Call, fn: Callable[..., Any]) -> Any:
    """What other operators make of the arguments, examples in front."""
    out = fn(*call.logical)
    return front(out._value, out._bdim) if out._level == call.level else expanded(out, call.size)


# --- views ----------------------------------------------------------------------------------------


@rule("_view")
def _view(call: Call) -> Any:
    return F._view(call["input"], (call.size, *call.outs().shape))


@rule("squeeze")
def _squeeze(call: Call) -> Any:
    return F._view(call["input"], (call.size, *call.outs().shape))


@rule("unsqueeze")
def _unsqueeze(call: Call) -> Any:
    return F._view(call["input"], (call.size, *call.outs().shape))


@rule("_expand")
def _expand(call: Call) -> Any:
    shape = call.outs().shape
    return F._expand(aligned(call["input"], call.ndim("input"), len(shape)), (call.size, *shape))


@rule("_permute")
def _permute(call: Call) -> Any:
    n = call.ndim("input")
    return call.run(dims=(0, *(d % n + 1 for d in call["dims"])))


@rule("t")
def _t(call: Call) -> Any:
    return F.transpose(call["input"], 1, 2) if call.ndim("input") == 2 else call["input"]


@rule("_window")
def _window(call: Call) -> Any:
    return call.run(index=((0, call.size, 1), *call["index"]))


@rule("_as_strided")
def _as_strided(call: Call) -> Any:
    x = call["input"]
    return call.run(size=(call.size, *call["size"]), stride=(x.stride(0), *call["stride"]))


# --- copies and joins -----------------------------------------------------------------------------


@rule("_copy_as")
def _copy_as(call: Call) -> Any:
    x = call["input"]
    numel = max(x.numel() // max(call.size, 1), 1)
    return call.run(stride=(numel, *call["stride"]))


@rule("copy")
def _copy(call: Call) -> Any:
    src = call["src"]
    if call.is_batched("src"):
        src = aligned(src, call.ndim("src"), call.ndim("input"))
    return call.run(input=call.full("input"), src=src)


@rule("_fill")
def _fill(call: Call) -> Any:
    if not call.is_batched("value"):
        return call.run()
    x = call.full("input")
    value = F._view(call["value"], (call.size, *[1] * (x.ndim - 1)))
    return F._expand(F._to_dtype(value, x.dtype), tuple(x.shape)).clone()


@rule("stack")
def _stack(call: Call) -> Any:
    n = call.logical[0][0].ndim + 1
    return call.run(tensors=call.full("tensors"), dim=call["dim"] % n + 1)


@rule("cat")
def _cat(call: Call) -> Any:
    ranks = [t.ndim for t in call.logical[0]]
    if len(set(ranks)) > 1 or not ranks[0]:
        return NotImplemented
    return call.run(tensors=call.full("tensors"), dim=call["dim"] % ranks[0] + 1)


# --- products -------------------------------------------------------------------------------------


@rule("matmul")
def _matmul(call: Call) -> Any:
    a, b = call["input"], call["other"]
    n, m = call.ndim("input"), call.ndim("other")
    if n == 0 or m == 0:
        return NotImplemented
    if n == 1 and m == 2 and not call.is_batched("other"):
        return F.matmul(a, b)
    if n == 2 and m == 1 and not call.is_batched("input"):
        return F.matmul(b, F.transpose(a, 0, 1))
    a = F.unsqueeze(a, -2) if n == 1 else a
    b = F.unsqueeze(b, -1) if m == 1 else b
    most = max(n, m, 2)
    if call.is_batched("input"):
        a = aligned(a, max(n, 2), most)
    if call.is_batched("other"):
        b = aligned(b, max(m, 2), most)
    out = F.matmul(a, b)
    if n == 1:
        out = F.squeeze(out, -2)
    return F.squeeze(out, -1) if m == 1 else out


@rule("linear")
def _linear(call: Call) -> Any:
    if not call.is_batched("weight") and not (call["bias"] is not None and call.is_batched("bias")):
        return call.run()

    def made(x: Any, weight: Any, bias: Any) -> Any:
        out = F.matmul(x, F.transpose(weight, -2, -1) if weight.ndim > 1 else weight)
        return out if bias is None else out + bias

    return via(call, made)


@rule("_addmm")
def _addmm(call: Call) -> Any:
    return via(call, _sum_of_product)


def _sum_of_product(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    out = F.matmul(a, b)
    out = out if alpha == 1 else out * alpha
    return out if beta == 0 else out + (x if beta == 1 else x * beta)


@rule("_addbmm")
def _addbmm(call: Call) -> Any:
    def made(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        out = F.sum(F.matmul(a, b), 0)
        out = out if alpha == 1 else out * alpha
        return out if beta == 0 else out + (x if beta == 1 else x * beta)

    return via(call, made)


# --- indices --------------------------------------------------------------------------------------


def _offsets(call: Call, step: int, ndim: int) -> Any:
    """Where each example begins among all rows: (B, 1, 1, ...)."""
    device = next(v for v in call.logical if hasattr(v, "_spec")).device
    return F._view(F.arange(call.size, device=device) * step, (call.size, *[1] * ndim))


def _nonnegative(index: Any, n: int) -> Any:
    return F.where(index < 0, index + n, index)


@rule("index_select")
def _index_select(call: Call) -> Any:
    n = call.ndim("input")
    if n == 0 or (call.is_batched("index") and call.ndim("index") == 0):
        return NotImplemented
    dim = call["dim"] % n + 1
    if not call.is_batched("index"):
        return call.run(dim=dim)
    x = F.movedim(call.full("input"), dim, 1)
    rows = F.flatten(x, 0, 1)
    at = F.flatten(call["index"].long() + _offsets(call, x.shape[1], 1))
    return F.movedim(F.reshape(F.index_select(rows, 0, at), (call.size, call["index"].shape[1], *x.shape[2:])), 1, dim)


def _with_index(call: Call) -> Any:
    """Along a dimension, at positions that are the same for all examples."""
    n = call.ndim("input")
    if n == 0 or call.is_batched("index"):
        return NotImplemented
    rest = {k: call.full(k) for k in ("input", "source") if k in call.names}
    if "value" in call.names and call.is_batched("value"):
        return NotImplemented
    return call.run(dim=call["dim"] % n + 1, **rest)


@rule("index_add")
def _index_add(call: Call) -> Any:
    return _with_index(call)


@rule("index_copy")
def _index_copy(call: Call) -> Any:
    return _with_index(call)


@rule("index_fill")
def _index_fill(call: Call) -> Any:
    return _with_index(call)


@rule("take")
def _take(call: Call) -> Any:
    if not call.is_batched("input"):
        return call.run()
    x, index = call["input"], call.full("index")
    n = x.numel() // max(call.size, 1)
    return F.take(x, _nonnegative(index.long(), n) + _offsets(call, n, index.ndim - 1))


@rule("_embedding")
def _embedding(call: Call) -> Any:
    if not call.is_batched("weight"):
        return call.run()
    if call["padding_idx"] >= 0 or call["scale_grad_by_freq"]:
        return NotImplemented
    weight, at = call["weight"], call.full("indices")
    rows = weight.shape[1]
    return call.run(weight=F.flatten(weight, 0, 1), indices=at.long() + _offsets(call, rows, at.ndim - 1))


@rule("_embedding_backward")
def _embedding_backward(call: Call) -> Any:
    if call["scale_grad_by_freq"] or call["padding_idx"] >= 0:
        return NotImplemented
    grad, at, rows = call.full("grad"), call.full("indices"), call["rows"]
    made = call.run(grad=grad, indices=at.long() + _offsets(call, rows, at.ndim - 1), rows=rows * call.size)
    return F.reshape(made, (call.size, rows, made.shape[-1]))


def _place(dims: tuple[int, ...]) -> int:
    """Where the dimensions of the index tensors stand in the result."""
    return dims[0] if list(dims) == list(range(dims[0], dims[0] + len(dims))) else 0


def _index_tensors(call: Call) -> tuple[tuple[Any, ...], int]:
    """Indices with examples in front, all of one number of dimensions, and that number without examples."""
    most = max(t.ndim for t in call.logical[1])
    found = [
        aligned(v, t.ndim, most) if b else v
        for v, t, b in zip(call.values[1], call.logical[1], call.batched[1], strict=True)
    ]
    return tuple(found), most


def _moved(x: Any, m: int, start: int, to: int) -> Any:
    """Move m dimensions beside each other to another place."""
    return x if start == to or not m else F.movedim(x, tuple(range(start, start + m)), tuple(range(to, to + m)))


@rule("_index")
def _index(call: Call) -> Any:
    dims = call["dims"]
    if not dims:
        return NotImplemented
    indices, m = _index_tensors(call)
    place = _place(dims)
    if not any(call.batched[1]):
        shifted = tuple(d + 1 for d in dims)
        out = call.run(dims=shifted)
        return out if _place(shifted) == dims[0] + 1 else F.movedim(out, m, 0)
    first = _offsets(call, 1, m)
    out = call.run(input=call.full("input"), indices=(first, *indices), dims=(0, *(d + 1 for d in dims)))
    return _moved(out, m, 1, 1 + place)


@rule("_index_put")
def _index_put(call: Call) -> Any:
    dims = call["dims"]
    if not dims:
        return NotImplemented
    indices, m = _index_tensors(call)
    x = call.full("input")
    # What one example's positions look like, m dimensions of them first.
    rest = [d for d in range(call.ndim("input")) if d not in dims]
    most = m + len(rest)
    values = aligned(call.full("values"), call.ndim("values"), most)
    values = _moved(values, m, 1 + _place(dims), 1)
    first = _offsets(call, 1, m)
    return call.run(input=x, indices=(first, *indices), dims=(0, *(d + 1 for d in dims)), values=values)


@rule("_searchsorted")
def _searchsorted(call: Call) -> Any:
    only_input = not call.is_batched("sorted_sequence") and call["sorter"] is None
    if only_input and call.ndim("sorted_sequence") == 1:
        return call.run()
    if call.ndim("sorted_sequence") == call.ndim("input") and call["sorter"] is None:
        return call.run(sorted_sequence=call.full("sorted_sequence"), input=call.full("input"))
    return one_by_one(call)
