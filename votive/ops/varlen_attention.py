"""Attention of sequences of different lengths, packed one after another: shapes, rules, gradients.
Knows no kernel.

The operator works on (positions, heads, features); where sequences end is a tensor, so that a batch
of other lengths needs no other plan and a GPU is not asked. Query i of a sequence of T queries and
S keys stands at key i + S - T: the last query and the last key are side by side.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .attention import _check_types
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Context, DeviceLike, Tensor

OP = "varlen_attn"


def _canon(
    q: Spec,
    k: Spec,
    v: Spec,
    ends_q: Spec,
    ends_k: Spec,
    used: Any,
    max_q: int,
    max_k: int,
    scale: float | None,
    left: int,
    right: int,
) -> tuple[Any, ...]:
    _check_types(q, k, v, None)
    for name, x in (("query", q), ("key", k), ("value", v)):
        if x.ndim != 3:
            fail(ShapeError, OP, f"{name} must be (positions, heads, features), got {x.shape}.")
    if k.shape[:2] != v.shape[:2] or q.shape[2] != k.shape[2]:
        fail(ShapeError, OP, f"query {q.shape}, key {k.shape} and value {v.shape} do not fit together.")
    if q.shape[1] != k.shape[1] and (k.shape[1] == 0 or q.shape[1] % k.shape[1]):
        fail(ShapeError, OP, f"{k.shape[1]} key heads do not divide {q.shape[1]} query heads.")
    for name, x in (("cu_seq_q", ends_q), ("cu_seq_k", ends_k), ("seqused_k", used)):
        if x is not None and x.dtype not in (dt.int32, dt.int64):
            fail(DtypeError, OP, f"{name} must be int32, got {x.dtype}.")
    if ends_q.ndim != 1 or ends_q.shape != ends_k.shape or not ends_q.shape[0]:
        fail(
            ShapeError,
            OP,
            "cu_seq_q and cu_seq_k must be vectors of one more number than there are sequences, "
            f"got {ends_q.shape} and {ends_k.shape}.",
        )
    if used is not None and used.shape != (ends_q.shape[0] - 1,):
        fail(
            ShapeError,
            OP,
            f"seqused_k must have one number for each of {ends_q.shape[0] - 1} sequences, got {used.shape}.",
        )
    if scale is None:
        scale = 1 / math.sqrt(q.shape[2]) if q.shape[2] else 1.0
    return q, k, v, ends_q, ends_k, used, max_q, max_k, scale, left, right


def _grad(c: Context, g: Tensor, g_lse: Tensor) -> tuple[Any, ...]:
    if c.seqused_k is not None:
        fail(RuntimeError, OP, "seqused_k has no gradient; pass sequences of their own length.")
    given = (c.query, c.key, c.value, c.cu_seq_q, c.cu_seq_k)
    how = (c.scale, c.left, c.right)
    if mode.grad:
        found = F._varlen_attention_backward_composite(g, g_lse, *given, *how)
    else:
        longest = (c.max_q, c.max_k)
        found = F._varlen_attention_backward(g, g_lse, *given, c.out0, c.out1, *longest, *how)
    return *found, None, None, None


structured(
    "_varlen_attention(Tensor query, Tensor key, Tensor value, Tensor cu_seq_q, Tensor cu_seq_k, "
    "Tensor? seqused_k, Scalar max_q, Scalar max_k, float? scale=None, int left=-1, int right=-1)",
    canon=_canon,
    infer=lambda q, k, v, *rest: (
        q.dense_like() if q.shape[2] == v.shape[2] else q.like((*q.shape[:2], v.shape[2])),
        q.like((q.shape[1], q.shape[0]), dtype=dt.compute_type(q.dtype)),
    ),
    grad=_grad,
    n_out=2,
    doc="""`softmax(scale * q @ k.T) @ v` of each sequence, and (heads, positions) log-sum-exps.

    A query sees `left` keys before its own place and `right` after it, all of them where that is
    -1. Positions that belong to no sequence are zero.
    """,
)

structured(
    "_varlen_attention_backward(Tensor grad, Tensor grad_lse, Tensor query, Tensor key, "
    "Tensor value, Tensor cu_seq_q, Tensor cu_seq_k, Tensor output, Tensor lse, Scalar max_q, "
    "Scalar max_k, float scale, int left, int right)",
    infer=lambda g, g_lse, q, k, v, *rest: (q.dense_like(), k.dense_like(), v.dense_like()),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=3,
    doc="The gradients of varlen attention by query, key and value.",
)


# --- the composite twin ---------------------------------------------------------------------------


def _sees(rows: int, columns: int, left: int, right: int, device: DeviceLike) -> Tensor | None:
    """The mask of a window, or None when every query sees every key."""
    if left < 0 and right < 0:
        return None
    seen = F.ones((rows, columns), dtype=dt.bool_, device=device)
    apart = columns - rows
    if right >= 0:
        seen = seen.tril(apart + right)
    return seen.triu(apart - left) if left >= 0 else seen


def _sequences(ends_q: Tensor, ends_k: Tensor, used: Any = None) -> list[tuple[slice, slice]]:
    of_q, of_k = pairwise(ends_q.tolist()), list(pairwise(ends_k.tolist()))
    if used is not None:
        of_k = [(a, min(b, a + n)) for (a, b), n in zip(of_k, used.tolist(), strict=True)]
    return [(slice(*a), slice(*b)) for a, b in zip(of_q, of_k, strict=True)]


def _one(x: Tensor) -> Tensor:
    """A sequence as a batch of one: (1, heads, positions, features)."""
    return x.transpose(0, 1).unsqueeze(0)


def _flat(x: Tensor) -> Tensor:
    return x.squeeze(0).transpose(0, 1)


def _packed(parts: list[Any], like: Tensor) -> Tensor:
    """Sequences one after another, and zeros for positions that belong to none."""
    made = sum(x.shape[0] for x in parts)
    left = like.shape[0] - made
    rest = F.zeros((left, *like.shape[1:]), dtype=like.dtype, device=like.device)
    return F.cat([*parts, rest])


@composite(name="_varlen_attention_composite")
def varlen_attention_composite(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    seqused_k: Tensor | None,
    max_q: int,
    max_k: int,
    scale: float | None = None,
    left: int = -1,
    right: int = -1,
) -> tuple[Any, Any]:
    """Each sequence by itself: what the fused kernel must agree with."""
    outs, ends = [], []
    for a, b in _sequences(cu_seq_q, cu_seq_k, seqused_k):
        q, k, v = _one(query[a]), _one(key[b]), _one(value[b])
        mask = _sees(q.shape[2], k.shape[2], left, right, q.device)
        out, lse = F._attention_composite(q, k, v, mask, scale=scale)
        outs.append(_flat(out))
        ends.append(lse.squeeze(0).transpose(0, 1))
    wide = F.zeros(query.shape[:2], dtype=dt.compute_type(query.dtype), device=query.device)
    like = F.zeros((*query.shape[:2], value.shape[2]), dtype=query.dtype, device=query.device)
    return _packed(outs, like), _packed(ends, wide).transpose(0, 1)


@composite(name="_varlen_attention_backward_composite")
def varlen_attention_backward_composite(
    grad: Tensor,
    grad_lse: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    scale: float,
    left: int,
    right: int,
) -> tuple[Tensor, ...]:
    """The gradients of varlen attention from single operators, so that they have gradients too."""
    made: tuple[list[Any], ...] = ([], [], [])
    for a, b in _sequences(cu_seq_q, cu_seq_k):
        q, k, v = _one(query[a]), _one(key[b]), _one(value[b])
        mask = _sees(q.shape[2], k.shape[2], left, right, q.device)
        found = F._attention_backward_composite(
            _one(grad[a]), grad_lse[:, a].unsqueeze(0), q, k, v, mask, 0, 0, 0, 0.0, False, scale
        )
        for parts, x in zip(made, found, strict=False):
            parts.append(_flat(x))
    return tuple(
        _packed([F._to_dtype(x, like.dtype) for x in parts], like)
        for parts, like in zip(made, (query, key, value), strict=True)
    )
