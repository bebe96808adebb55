"""Scaled dot product attention: shapes, masks and gradients. Knows no kernel.

The fused operator works on (batch, heads, length, features), lets several query heads share one key
head, and keeps the logarithm of each row's normaliser, from which any weight can be rebuilt: its
gradient kernel does so, and so may whoever looks inside. The composite twin says the same with
single operators: the oracle of both, and what runs when a gradient will itself be differentiated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.attention_kernels import allowed
from ..core.errors import DimError, DtypeError, ShapeError, UnsupportedError, fail, received
from ..core.layout import Spec, broadcast_shapes
from ..core.mode import mode
from .autocast_policy import LOWER
from .dropout import drawn_for
from .registry import F, composite, structured
from .standardise import widened

if TYPE_CHECKING:
    from .types import Context, Number, Shape, Tensor

OP = "scaled_dot_product_attention"


def _check_types(q: Spec, k: Spec, v: Spec, mask: Spec | None) -> None:
    if not q.dtype is k.dtype is v.dtype:
        types = f"{q.dtype}, {k.dtype} and {v.dtype}"
        fail(DtypeError, OP, f"query, key and value must have one dtype, got {types}.")
    if q.dtype.is_complex or q.dtype in dt.FLOAT8:
        fail(UnsupportedError, OP, f"not implemented for {q.dtype}; use .float().")
    if not q.dtype.is_floating_point:
        fail(DtypeError, OP, f"takes floating-point tensors, got {q.dtype}; use .float().")
    if mask is not None and mask.dtype not in (dt.bool_, dt.float32, q.dtype):
        fail(DtypeError, OP, f"attn_mask must be bool, float32 or {q.dtype}, got {mask.dtype}.")


def _canon(
    q: Spec,
    k: Spec,
    v: Spec,
    mask: Spec | None,
    seed: int,
    counter: int,
    offset: int,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> tuple[Any, ...]:
    _check_types(q, k, v, mask)
    for name, x in (("query", q), ("key", k), ("value", v)):
        if x.ndim != 4:
            fail(ShapeError, OP, f"{name} must be (batch, heads, length, features), got {x.shape}.")
    if k.shape[:3] != v.shape[:3] or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        fail(ShapeError, OP, f"query {q.shape}, key {k.shape} and value {v.shape} do not fit together.")
    if q.shape[1] != k.shape[1] and (k.shape[1] == 0 or q.shape[1] % k.shape[1]):
        fail(ShapeError, OP, f"{k.shape[1]} key heads do not divide {q.shape[1]} query heads.")
    rows = (*q.shape[:3], k.shape[2])
    if mask is not None and broadcast_shapes(OP, mask.shape, rows) != rows:
        fail(ShapeError, OP, f"attn_mask of shape {mask.shape} does not fit into {rows}.")
    if scale is None:
        scale = 1 / math.sqrt(q.shape[3]) if q.shape[3] else 1.0
    return q, k, v, mask, seed, counter, offset, dropout_p, is_causal, scale


def _infer(q: Spec, k: Spec, v: Spec, *rest: Spec | Number | None) -> tuple[Spec, Spec]:
    shape = (*q.shape[:3], v.shape[3])
    # The memory order of the query, so that heads that were split off a row merge without a copy.
    out = q.dense_like() if shape == q.shape else q.like(shape)
    return out, q.like(q.shape[:3], dtype=dt.compute_type(q.dtype))


def _grad(c: Context, g: Tensor, g_lse: Tensor) -> tuple[Any, ...]:
    how = (c.seed, c.counter, c.offset, c.dropout_p, c.is_causal, c.scale)
    if mode.grad:
        return F._attention_backward_composite(g, g_lse, c.query, c.key, c.value, c.attn_mask, *how)
    wants = c.needs("attn_mask")
    return F._attention_backward(g, g_lse, c.query, c.key, c.value, c.attn_mask, c.out0, c.out1, *how, wants)


structured(
    "_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, *, Scalar seed=0, "
    "Scalar counter=0, Scalar offset=0, float dropout_p=0.0, bool is_causal=False, "
    "float? scale=None)",
    placement="attention",
    canon=_canon,
    infer=_infer,
    grad=_grad,
    n_out=2,
    doc="""`softmax(scale * q @ k.T + mask) @ v`, and the row log-sum-exp of what softmax sees.

    `is_causal` lets query i see the keys up to i + offset. Dropout draws from (seed, counter).
    """,
)

structured(
    "_attention_backward(Tensor grad, Tensor grad_lse, Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask, Tensor output, Tensor lse, Scalar seed, Scalar counter, Scalar offset, "
    "float dropout_p, bool is_causal, float scale, bool by_mask)",
    # The memory order of the inputs: heads that were split off a row merge again without a copy.
    infer=lambda g, g_lse, q, k, v, mask, out, lse, *rest: (
        q.dense_like(),
        k.dense_like(),
        v.dense_like(),
        mask.like(mask.shape) if rest[-1] else q.like((0,)),
    ),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=4,
    doc="The gradients of attention by query, key, value and mask.",
)


# --- the composite twin ---------------------------------------------------------------------------


def _share(x: Tensor, heads: int) -> Tensor:
    """One key or value head for each query head."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, offset: int, is_causal: bool, scale: float) -> Tensor:
    scores = F.matmul(q, k.transpose(-2, -1)) * scale
    if mask is not None:
        hides = mask.dtype is dt.bool_
        scores = F.where(mask, scores, -math.inf) if hides else scores + mask
    if is_causal:
        rows, columns = scores.shape[-2:]
        seen = F.ones((rows, columns), dtype=dt.bool_, device=scores.device).tril(offset)
        scores = F.where(seen, scores, -math.inf)
    return scores


def _weights(scores: Tensor) -> tuple[Any, Any]:
    """Rows of softmax and their log-sum-exp; a row that sees nothing is zero, as in torch."""
    if scores.shape[-1] == 0:
        like = {"dtype": scores.dtype, "device": scores.device}
        return scores, F.full(scores.shape[:-1], -math.inf, **like)
    top = scores.detach().amax(-1, True)
    top = F.where(top == -math.inf, 0, top)
    e = (scores - top).exp()
    total = e.sum(-1, True)
    blind = total == 0
    total = F.where(blind, 1, total)
    lse = F.where(blind, -math.inf, total.log() + top)
    return e / total, lse.squeeze(-1)


def _noise(weights: Tensor, seed: int, counter: int, p: float) -> Tensor:
    return F._dropout(F.ones_like(weights.detach()), seed, counter, p)


@composite(name="_attention_composite")
def attention_composite(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    seed: int = 0,
    counter: int = 0,
    offset: int = 0,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[Any, Any]:
    """Attention from single operators: what the fused kernel must agree with."""
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    heads = query.shape[1]
    q, k, v = widened(query), _share(widened(key), heads), _share(widened(value), heads)
    weights, lse = _weights(_scores(q, k, attn_mask, offset, is_causal, scale))
    if dropout_p:
        weights = weights * _noise(weights, seed, counter, dropout_p)
    return F._to_dtype(F.matmul(weights, v), query.dtype), lse


def _merge(g: Tensor, heads: int) -> Tensor:
    """The gradient of `_share`."""
    return g if g.shape[1] == heads else g.unflatten(1, (heads, -1)).sum(2)


@composite(name="_attention_backward_composite")
def attention_backward_composite(
    grad: Tensor,
    grad_lse: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    seed: int,
    counter: int,
    offset: int,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> tuple[Any, Any, Any, Any]:
    """The gradients of attention from single operators, so that they have gradients too.

    Dao et al. 2022, "FlashAttention", appendix B.2, with the derivative of the log-sum-exp, which
    is the weights themselves.
    """
    heads, shared = query.shape[1], key.shape[1]
    q, k, v = widened(query), _share(widened(key), heads), _share(widened(value), heads)
    weights, _ = _weights(_scores(q, k, attn_mask, offset, is_causal, scale))
    g = widened(grad)
    by_weights, dropped = F.matmul(g, v.transpose(-2, -1)), weights
    if dropout_p:
        noise = _noise(weights, seed, counter, dropout_p)
        by_weights, dropped = by_weights * noise, weights * noise
    mean = (by_weights * weights).sum(-1, True) - grad_lse.unsqueeze(-1)
    by_scores = weights * (by_weights - mean)
    return (
        F.matmul(by_scores, k) * scale,
        _merge(F.matmul(by_scores.transpose(-2, -1), q) * scale, shared),
        _merge(F.matmul(dropped.transpose(-2, -1), g), shared),
        by_scores,
    )


# --- votive.nn.functional -------------------------------------------------------------------------


def _grouped(q: Tensor, k: Tensor, v: Tensor) -> tuple[Any, Any]:
    """Key and value with equally many heads, which divide those of the query."""
    if min(q.ndim, k.ndim, v.ndim) < 3:
        fail(DimError, OP, "enable_gqa needs a dimension of heads before length and features.")
    heads, ours, theirs = q.shape[-3], k.shape[-3], v.shape[-3]
    if not ours or not theirs or heads % ours or heads % theirs:
        fail(ShapeError, OP, f"{ours} key heads and {theirs} value heads do not divide {heads} query heads.")
    if ours == theirs:
        return k, v
    return k.repeat_interleave(heads // ours, -3), v.repeat_interleave(heads // theirs, -3)


def _four(x: Tensor, batch: tuple[int, ...], heads: int) -> Tensor:
    """(..., length, features) as (batch, heads, length, features)."""
    return x.reshape(math.prod(batch), heads, *x.shape[-2:])


def _batched(q: Tensor, k: Tensor, v: Tensor, gqa: bool) -> tuple[Shape, Tensor, Tensor, Tensor]:
    """Leading dimensions broadcast; the last of them is the heads, which gqa leaves alone."""
    shapes = [tuple(x.shape[:-2]) for x in (q, k, v)]
    lead = broadcast_shapes(OP, *(s[: len(s) - gqa] for s in shapes))
    if not gqa:
        batch, heads = lead[:-1], lead[-1] if lead else 1
        q, k, v = (_four(x.expand(*lead, *x.shape[-2:]), batch, heads) for x in (q, k, v))
        return lead, q, k, v
    shape = (*lead, q.shape[-3])
    q, k, v = (_four(x.expand(*lead, *x.shape[-3:]), lead, x.shape[-3]) for x in (q, k, v))
    return shape, q, k, v


def _mask_for(mask: Tensor, lead: tuple[int, ...], rows: int, columns: int) -> Tensor:
    """A mask that broadcasts over four dimensions."""
    full = (*lead, rows, columns)
    if broadcast_shapes(OP, tuple(mask.shape), full) != full:
        fail(ShapeError, OP, f"attn_mask of shape {tuple(mask.shape)} does not fit into {full}.")
    if len(lead) > 2:
        return mask.expand(full).reshape(-1, lead[-1], rows, columns)
    return mask.reshape(*[1] * (4 - mask.ndim), *mask.shape)


def _plain(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, gqa: bool) -> bool:
    """Whether the operator takes the tensors as they are."""
    try:
        q, k, v = query._spec, key._spec, value._spec
        if mask is not None and mask._spec.ndim > 4:
            return False
    except AttributeError:
        return False
    if not q.ndim == k.ndim == v.ndim == 4:
        return False
    a, b, c = q.shape, k.shape, v.shape
    shared = a[1] == b[1] or (gqa and b[1] != 0 and a[1] % b[1] == 0)
    return shared and a[0] == b[0] and b[:3] == c[:3] and a[3] == b[3]


def _fallback() -> Any:
    """What computes attention where the fused kernel is switched off."""
    if not allowed.on:
        fail(RuntimeError, OP, "No available kernel: all are switched off; allow one with sdpa_kernel(...).")
    return F._attention_composite


@composite(namespaces=("nn.functional",), method=False, autocast=LOWER)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(scale * query @ key.T + mask) @ value`, with `scale = 1 / sqrt(features)`.

    A bool mask says what a query sees, a float mask is added. `is_causal` lets query i see keys
    0..i. With `enable_gqa`, groups of query heads share a key and a value head. A query that sees
    nothing gives zeros.

    >>> q, k = votive.tensor([[1.0, 0.0]]), votive.tensor([[4.0, 0.0], [0.0, 4.0]])
    >>> votive.nn.functional.scaled_dot_product_attention(q, k, votive.eye(2))
    tensor([[0.9442, 0.0558]])
    """
    if dropout_p == 0 and _plain(query, key, value, attn_mask, enable_gqa):
        if allowed.restricted:
            return _fallback()(query, key, value, attn_mask, is_causal=is_causal, scale=scale)[0]
        how = (0, 0, 0, 0.0, is_causal, scale)
        return F._attention(query, key, value, attn_mask, *how)[0]
    if attn_mask is not None and hasattr(attn_mask, "_attend"):  # a bias that knows its shape without being a matrix
        return attn_mask._attend(query, key, value, dropout_p, is_causal, scale, enable_gqa)
    given = (query, key, value)
    for name, x in zip(("query", "key", "value"), given, strict=True):
        if not hasattr(x, "_spec"):
            raise TypeError(f"{OP}: {name} must be a Tensor, got {received(x)}.")
    hides = None if attn_mask is None else attn_mask._spec
    _check_types(query._spec, key._spec, value._spec, hides)
    if min(x.ndim for x in given) < 2:
        shapes = ", ".join(str(tuple(x.shape)) for x in given)
        fail(ShapeError, OP, f"query, key and value need 2 or more dimensions, got {shapes}.")
    if attn_mask is not None and is_causal and any(x.ndim != 4 for x in given):
        fail(RuntimeError, OP, "give either attn_mask or is_causal=True, not both.")
    if not 0 <= dropout_p <= 1:
        fail(RuntimeError, OP, f"dropout_p must be between 0 and 1, got {dropout_p}.")
    if enable_gqa:
        key, value = _grouped(query, key, value)
    lead, q, k, v = _batched(query, key, value, enable_gqa)
    rows, columns = q.shape[-2], k.shape[-2]
    if attn_mask is not None:
        attn_mask = _mask_for(attn_mask, lead, rows, columns)
    options: dict[str, Any] = {"is_causal": is_causal, "scale": scale}
    if dropout_p:
        seed, counter = drawn_for(OP, q, (*q.shape[:3], columns), None)
        options.update(dropout_p=dropout_p, seed=seed, counter=counter)
    out, _ = (_fallback() if allowed.restricted else F._attention)(q, k, v, attn_mask, **options)
    return out if query.ndim == len(lead) + 2 == 4 else out.reshape(*lead, rows, v.shape[-1])
