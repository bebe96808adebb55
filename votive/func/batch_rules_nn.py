"""Batching rules of layers: convolutions, norms, losses, attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.layout import Spec
from ..ops.registry import F
from .batching import Call, rule
from .wrapped import expanded, front

if TYPE_CHECKING:
    from ..tensor import Tensor


def _merged(x: Tensor, at: int) -> Any:
    """Examples become part of dimension `at` of one example: (B, N, C) with at=1 as (N, B * C)."""
    return F.flatten(F.movedim(x, 0, at), at, at + 1)


def _parted(x: Tensor, at: int, size: int) -> Any:
    """The opposite."""
    return F.movedim(F.unflatten(x, at, (size, x.shape[at] // size)), at, 0)


def _affine(call: Call) -> bool:
    return any(call[n] is not None and call.is_batched(n) for n in ("weight", "bias") if n in call.names)


def _flat(v: object) -> Any:
    return None if v is None else F.flatten(v, 0, 1)


def _grouped(call: Call, weight_at: int) -> Any:
    """A convolution of B examples as one with B times the groups."""
    x, weight, bias = call.full("input"), call.full("weight"), call.full("bias")
    out = call.run(
        input=_merged(x, 1), weight=F.flatten(weight, 0, 1), bias=_flat(bias), groups=call["groups"] * call.size
    )
    return _parted(out, 1, call.size)


@rule("_convolution")
def _convolution(call: Call) -> Any:
    if not _affine(call):
        return _folded_input(call)
    if not call.is_batched("input") and call["groups"] == 1:
        return _parted(
            call.run(weight=F.flatten(call.full("weight"), 0, 1), bias=_flat(call.full("bias"))), 1, call.size
        )
    return _grouped(call, 0)


@rule("_convolution_transpose")
def _convolution_transpose(call: Call) -> Any:
    return _grouped(call, 0) if _affine(call) else _folded_input(call)


def _folded_input(call: Call) -> Any:
    out = call.run(input=F.flatten(call["input"], 0, 1))
    return F.unflatten(out, 0, (call.size, out.shape[0] // call.size)) if call.size else NotImplemented


@rule("_convolution_weight")
def _convolution_weight(call: Call) -> Any:
    x, g = _merged(call.full("input"), 1), _merged(call.full("grad"), 1)
    out = call.run(input=x, grad=g, groups=call["groups"] * call.size)
    return F.unflatten(out, 0, (call.size, out.shape[0] // call.size)) if call.size else NotImplemented


def _shaped(call: Call, results: Any) -> Any:
    outs = call.outs()
    if isinstance(outs, Spec):
        return F.reshape(results, (call.size, *outs.shape))
    return tuple(F.reshape(r, (call.size, *s.shape)) for r, s in zip(results, outs, strict=True))


def _then_affine(call: Call, results: Any, dims: int) -> Any:
    """The first result times weight plus bias, where these are batched; they belong to the last `dims` dimensions."""
    y, *rest = results
    for name in ("weight", "bias"):
        if name in call.names and call[name] is not None:
            v = call[name]
            if call.is_batched(name):
                v = F._view(v, (call.size, *[1] * (y.ndim - 1 - (v.ndim - 1)), *v.shape[1:]))
            y = y * v if name == "weight" else y + v
    return (y, *rest)


@rule("_layer_norm")
def _layer_norm(call: Call) -> Any:
    if not _affine(call):
        return call.run()
    return _then_affine(call, call.run(input=call.full("input"), weight=None, bias=None), call["dims"])


@rule("_rms_norm")
def _rms_norm(call: Call) -> Any:
    if not _affine(call):
        return call.run()
    return _then_affine(call, call.run(input=call.full("input"), weight=None), call["dims"])


@rule("_group_norm")
def _group_norm(call: Call) -> Any:
    x = F.flatten(call.full("input"), 0, 1)
    if not _affine(call):
        return _shaped(call, call.run(input=x))
    y, *rest = _shaped(call, call.run(input=x, weight=None, bias=None))
    for name in ("weight", "bias"):
        if call[name] is not None:
            v = F._view(call.full(name), (call.size, 1, -1, *[1] * (y.ndim - 3)))
            y = y * v if name == "weight" else y + v
    return (y, *rest)


def _by_channel(call: Call) -> Any:
    """Channels of all examples side by side: statistics are per channel."""
    changed = {"input": _merged(call.full("input"), 1)}
    for name in ("mean", "var", "weight", "bias"):
        if name in call.names:
            changed[name] = _flat(call.full(name))
    made = call.run(**changed)
    if not isinstance(made, tuple):
        return _parted(made, 1, call.size)
    y, *rest = made
    return (_parted(y, 1, call.size), *(F.unflatten(r, 0, (call.size, -1)) for r in rest))


@rule("_batch_norm")
def _batch_norm(call: Call) -> Any:
    return _by_channel(call) if call.ndim("input") > 1 and call.size else NotImplemented


@rule("_batch_norm_by")
def _batch_norm_by(call: Call) -> Any:
    return _by_channel(call) if call.ndim("input") > 1 and call.size else NotImplemented


def _per_target(call: Call) -> Any:
    """A loss for each target: classes are the dimension behind the samples, or all there is."""
    if call["weight"] is not None and call.is_batched("weight"):
        return NotImplemented
    first = "input" if "input" in call.names else "grad"
    changed: dict[str, Any]
    if call.ndim(first) == (1 if first == "input" else 0):
        changed = {n: call.full(n) for n in ("grad", "input", "target") if n in call.names}
    else:
        changed = {n: F.flatten(call.full(n), 0, 1) for n in ("grad", "input", "target") if n in call.names}
    if "size" in call.names:
        size = call["size"]
        changed["size"] = (call.size, *size) if len(size) == 1 else (call.size * size[0], *size[1:])
    return _shaped(call, call.run(**changed))


@rule("_nll")
def _nll(call: Call) -> Any:
    return _per_target(call)


@rule("_nll_backward")
def _nll_backward(call: Call) -> Any:
    return _per_target(call)


@rule("_cross_entropy")
def _cross_entropy(call: Call) -> Any:
    return _per_target(call)


@rule("_cross_entropy_backward")
def _cross_entropy_backward(call: Call) -> Any:
    return _per_target(call)


def _reduced(call: Call, losses: Any) -> Any:
    """Sum or mean of losses per target; what the fused operator keeps for its backward is not needed."""
    x, target, weight, ignored, *rest = call.logical
    each = losses(x, target, weight, ignored, *rest[:-1], call.outs()[0].dtype)
    loss = each.sum()
    if call["mean"]:
        counts = target != ignored
        if weight is None:
            total = counts.sum()
        else:
            total = (F.where(counts, F.index_select(weight, 0, F.flatten(target.clamp(0))).view(target.shape), 0)).sum()
        loss = loss / total
    first = front(loss._value, loss._bdim) if loss._level == call.level else expanded(loss, call.size)
    others = call.outs()[1:]
    return (first, *(F.zeros((call.size, *s.shape), dtype=s.dtype, device=s.device) for s in others))


@rule("_nll_reduced")
def _nll_reduced(call: Call) -> Any:
    return _reduced(call, lambda x, t, w, ignored, dtype: F._nll(x, t, w, ignored, 0.0, dtype))


@rule("_cross_entropy_reduced")
def _cross_entropy_reduced(call: Call) -> Any:
    return _reduced(call, F._cross_entropy)


@rule("_attention")
def _attention(call: Call) -> Any:
    mask = call["attn_mask"]
    ranks = {call.ndim(n) for n in ("query", "key", "value")}
    if call["dropout_p"] or ranks != {4} or (mask is not None and (call.is_batched("attn_mask") or mask.ndim > 2)):
        return NotImplemented
    return _shaped(call, call.run(**{n: F.flatten(call.full(n), 0, 1) for n in ("query", "key", "value")}))
