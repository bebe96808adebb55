"""Attention over positions that are spread over ranks: keys and values go around in a ring (Liu et al. 2023,
arXiv:2310.01889). With causal attention each rank holds a piece from the front and one from the end, so that all have
as much to do. No rank ever holds all keys, nor any rank's scores.
"""

from __future__ import annotations

import math
from typing import Any

from ..autograd.function import Function, once_differentiable
from ..core.mode import mode
from ..ops.registry import F
from ..tensor import Tensor
from .group import ProcessGroup
from .messages import P2POp, batch_isend_irecv, irecv, isend


def _passed(tensors: list[Tensor], group: ProcessGroup) -> list[Tensor]:
    """What the rank before has, while the next one gets what is here."""
    me, n = group.rank(), group.size()
    if n == 1:
        return tensors
    ahead, behind = group.ranks[(me + 1) % n], group.ranks[(me - 1) % n]
    sent = [t.contiguous() for t in tensors]
    found = [F.empty_like(t) for t in sent]
    ops = [P2POp(isend, t, ahead, group) for t in sent] + [P2POp(irecv, t, behind, group) for t in found]
    for work in batch_isend_irecv(ops):
        work.wait()
    return found


Part = tuple[slice, slice, bool]  # queries, keys, whether the plain causal rule holds among them


def _seen(me: int, other: int, length: int, causal: bool, balanced: bool) -> Part | None:
    """Which of this rank's queries see which keys of another; None where none does."""
    whole = slice(0, length)
    if not causal:
        return whole, whole, False
    if me == other:
        return whole, whole, True
    if not balanced:
        return (whole, whole, False) if other < me else None
    half = length // 2
    # Pieces r and 2n-1-r: those of a lower rank are earlier in front and later at the end.
    return (whole, slice(0, half), False) if other < me else (slice(half, length), whole, False)


def _merged(out: Tensor, lse: Tensor, rows: slice, more: Tensor, more_lse: Tensor) -> None:
    """Add what further keys give to some rows; in float32."""
    a, b = lse[:, :, rows], more_lse
    total = F.logaddexp(a, b)
    finite = F.where(total == -math.inf, 0.0, total)
    first, second = F.exp(a - finite).unsqueeze(-1), F.exp(b - finite).unsqueeze(-1)
    out[:, :, rows] = out[:, :, rows] * first + more.to(out.dtype) * second
    lse[:, :, rows] = total


SCORES = 1 << 22  # that are held at once in backward


def _gradients(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, out: Tensor, lse: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """What some keys have to do with the gradients of attention to all (Dao et al. 2022, "FlashAttention", B.2).

    Written with single operators, some rows at a time: kernels need not compute with the log-sum-exp of all keys.
    """
    shared, (rows, length), wide = k.shape[1], (q.shape[2], k.shape[2]), lse.dtype
    # Query heads that share a key head stand together: (batch, key heads, group, positions, features).
    q, g, out = (t.to(wide).unflatten(1, (shared, -1)) for t in (q, g, out))
    k, v = (t.to(wide).unsqueeze(2) for t in (k, v))
    lse = lse.unflatten(1, (shared, -1)).unsqueeze(-1)
    mean = (g * out).sum(-1, keepdim=True)
    by_q, by_k, by_v = F.zeros_like(q), F.zeros_like(k), F.zeros_like(v)
    each = max(1, SCORES // max(1, q.shape[0] * q.shape[1] * q.shape[2] * length))
    columns = F.arange(length, device=q.device)
    for first in range(0, rows, each):
        at = slice(first, min(first + each, rows))
        scores = F.matmul(q[..., at, :], k.transpose(-2, -1)) * scale - lse[..., at, :]
        if causal:
            scores = F.where(columns <= F.arange(at.start, at.stop, device=q.device).unsqueeze(-1), scores, -math.inf)
        weights = F.exp(scores)
        by_scores = weights * (F.matmul(g[..., at, :], v.transpose(-2, -1)) - mean[..., at, :])
        by_q[..., at, :] = F.matmul(by_scores, k) * scale
        by_k += F.matmul(by_scores.transpose(-2, -1), q[..., at, :]).sum(2, keepdim=True) * scale
        by_v += F.matmul(weights.transpose(-2, -1), g[..., at, :]).sum(2, keepdim=True)
    return by_q.flatten(1, 2), by_k.squeeze(2), by_v.squeeze(2)


class _Ring(Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, group: ProcessGroup, causal: bool, balanced: bool, scale: float
    ) -> Tensor:
        me, n, length = group.rank(), group.size(), q.shape[2]
        wide = q.dtype if q.dtype.itemsize > 4 else k.new_zeros((), dtype=q.dtype).float().dtype
        out = q.new_zeros((*q.shape[:3], v.shape[3]), dtype=wide)
        lse = q.new_full(tuple(q.shape[:3]), -math.inf, dtype=wide)
        keys, values = k, v
        for step in range(n):
            part = _seen(me, (me - step) % n, length, causal, balanced)
            if part is not None:
                rows, columns, plain = part
                some, some_lse = F._attention(
                    q[:, :, rows], keys[:, :, columns], values[:, :, columns], None, is_causal=plain, scale=scale
                )
                _merged(out, lse, rows, some, some_lse.to(wide))
            if step < n - 1:
                keys, values = _passed([keys, values], group)
        made = out.to(q.dtype)
        ctx.save_for_backward(q, k, v, made, lse.to(q.dtype) if q.dtype.itemsize > 4 else lse)
        ctx.how = (group, causal, balanced, scale)
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        group, causal, balanced, scale = ctx.how
        me, n, length = group.rank(), group.size(), q.shape[2]
        wide = lse.dtype
        by_q = F.zeros_like(q, dtype=wide)
        by_k, by_v = F.zeros_like(k, dtype=wide), F.zeros_like(v, dtype=wide)
        keys, values = k, v
        for step in range(n):
            part = _seen(me, (me - step) % n, length, causal, balanced)
            if part is not None:
                rows, columns, plain = part
                found = _gradients(
                    q[:, :, rows], keys[:, :, columns], values[:, :, columns], g[:, :, rows], out[:, :, rows],
                    lse[:, :, rows], plain, scale,
                )  # fmt: skip
                by_q[:, :, rows] += found[0]
                by_k[:, :, columns] += found[1]
                by_v[:, :, columns] += found[2]
            # Gradients travel with their keys, and once more to come home.
            if step < n - 1:
                keys, values, by_k, by_v = _passed([keys, values, by_k, by_v], group)
            else:
                by_k, by_v = _passed([by_k, by_v], group)
        return by_q.to(q.dtype), by_k.to(k.dtype), by_v.to(v.dtype), None, None, None, None


def ring_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    group: ProcessGroup,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    balanced: bool = True,
) -> Tensor:
    """Attention (batch, heads, positions, features) of this rank's positions to those of all ranks of a group.

    With `balanced`, each rank holds two pieces of the text, one from the front and one from the end, as
    `context_parallel` cuts it; else rank r has the r-th piece. Key heads may be fewer than query heads.

    >>> from votive.distributed.ring_attention import ring_attention
    >>> def attend():
    ...     q = votive.ones(1, 1, 2, 4)
    ...     return tuple(ring_attention(q, q, q, votive.distributed.group.WORLD, is_causal=True).shape)
    >>> votive.distributed.simulate(attend, 2)
    [(1, 1, 2, 4), (1, 1, 2, 4)]
    """
    if min(query.ndim, key.ndim, value.ndim) != 4 or max(query.ndim, key.ndim, value.ndim) != 4:
        raise ValueError("ring attention takes (batch, heads, positions, features).")
    if key.shape[2] != query.shape[2] or value.shape[2] != key.shape[2]:
        raise ValueError(
            f"ring attention: queries, keys and values need equally many positions on each rank, got {query.shape[2]}, "
            f"{key.shape[2]} and {value.shape[2]}."
        )
    if is_causal and balanced and group.size() > 1 and query.shape[2] % 2:
        raise ValueError(
            f"ring attention: each rank holds two pieces of equal length, so {query.shape[2]} positions must be even."
        )
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    if mode.autocast:
        kinds = {t.dtype for t in (query, key, value)}
        lower = mode.autocast.get(query.device.type)
        if lower is not None and len(kinds) > 1:
            query, key, value = (t.to(lower) for t in (query, key, value))
    made: Tensor = _Ring.apply(query, key, value, group, is_causal, balanced, scale)
    return made
