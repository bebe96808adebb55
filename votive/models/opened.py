"""A decoder's layer run piece by piece, with every value between the pieces shown. Knows no family.

What is computed is what the fused kernels compute; sums may be rounded otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import votive
from votive import nn
from votive.core import dtype as dt
from votive.nn import functional as F
from votive.nn.points import inside, point, reads, wanted

from ..surface.block_attention import as_numbers
from ..tensor import Tensor
from .attention import AttentionMask, _causal, _of_last, softmax_with_sinks

Norms = tuple[nn.Module | None, nn.Module | None, nn.Module | None, nn.Module | None]
Projections = Callable[[Tensor], tuple[Tensor, ...]]


def wide(dtype: dt.dtype) -> dt.dtype:
    """The type in which norms and scores are computed."""
    return dt.float64 if dtype == dt.float64 else dt.float32


def open_norm(norm: nn.Module | None, x: Tensor, at: str) -> Any:
    """A norm whose scale and normed vectors are shown, if anybody asks for them; None gives its input.

    >>> norm = votive.nn.RMSNorm(2)
    >>> votive.models.opened.open_norm(norm, votive.ones(2), "ln_final").shape
    votive.Size([2])
    """
    if norm is None:
        return x
    if not wanted(f"{at}.scale", f"{at}.normalized") or not isinstance(norm, (nn.LayerNorm, nn.RMSNorm)):
        return norm(x)
    own = norm.__dict__.get("forward")
    if own is not None:
        return norm(x)  # somebody's own norm, of which nothing is known

    def forward(x: Tensor) -> Tensor:
        eps = norm.eps
        if eps is None:
            eps = dt.finfo(wide(x.dtype)).eps
        h = x.to(wide(x.dtype))
        if isinstance(norm, nn.LayerNorm):
            h = h - h.mean(-1, keepdim=True)
        scale = point(f"{at}.scale", (h.square().mean(-1, keepdim=True) + eps).sqrt())
        h = point(f"{at}.normalized", h / scale)
        if norm.weight is not None:
            h = h * (norm.weight.to(h.dtype) + getattr(norm, "weight_offset", 0.0))
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        return (h if bias is None else h + bias.to(h.dtype)).to(x.dtype)

    # The module is called as ever, so that its hooks and its address stay.
    norm.__dict__["forward"] = forward
    try:
        return norm(x)
    finally:
        del norm.__dict__["forward"]


def _head_reads(
    at: str, x: Tensor, y: Tensor, norm: nn.Module | None, heads: tuple[int, int, int]
) -> tuple[Tensor | None, ...] | None:
    """What each head reads for its query, key and value, normed, where anybody asks for it.

    `y` is what all read otherwise, the norm of `x`: what was changed there is part of what each head reads, too.
    """
    found: list[Tensor | None] = []
    for name, count in zip("qkv", heads, strict=True):
        address = f"{at}.{name}_input"
        if not count or not wanted(address):
            found.append(None)
            continue
        shape = (*x.shape[:2], count, x.shape[2])
        plain: Callable[[Tensor], Tensor] = (lambda h: h) if norm is None else norm.forward
        own = plain(point(address, x.unsqueeze(2).expand(shape)))  # (B, T, H, C)
        found.append(own + (y - plain(x)).unsqueeze(2))
    return tuple(found) if any(f is not None for f in found) else None


def open_layer(
    at: str,
    x: Tensor,
    attention: Callable[[Tensor], Tensor],
    net: Callable[[Tensor], Tensor],
    norms: Norms,
    heads: tuple[int, int, int],
    added: Callable[[Tensor], Tensor] = lambda y: y,
    *,
    parallel: bool = False,
    added_by_attention: Callable[[Tensor], Tensor] | None = None,
    norm_place: str = "before",
) -> Tensor:
    """A layer of attention and a net, each added to the stream.

    `norms` are those before and behind attention and the net, None where there is none; `heads` the numbers of query,
    key and value heads; `added` what of a result is added. In a `parallel` layer both read the stream before it, the
    net by attention's norm if it has none of its own. With `norm_place`, norms are of the stream itself: where it is
    "sum" of what attention and the net have added to, and where it is "stream" of what they read and add to.

    >>> norm = votive.nn.RMSNorm(2)
    >>> y = votive.models.opened.open_layer("layers.0", votive.ones(1, 1, 2), lambda y: y, lambda y: y,
    ...     (norm, None, norm, None), (1, 1, 1))
    >>> y.detach()
    tensor([[[3., 3.]]])
    """
    if norm_place != "before":
        return _open_on_stream(at, x, attention, net, norms, heads, added, added_by_attention or added, norm_place)
    before, behind, before_net, behind_net = norms
    x = point(f"{at}.resid_pre", x)
    one_norm = parallel and before_net is None
    if one_norm:
        shared = open_norm(before, x, f"{at}.ln1")
        read = point(f"{at}.attn_in", x)
        normed = _own_read(before, shared, x, read)
    else:
        read = point(f"{at}.attn_in", x)
        normed = open_norm(before, read, f"{at}.ln1")
    with inside(at, _head_reads(at, read, normed, before, heads)):
        y = attention(normed)
    if behind is not None:
        y = open_norm(behind, y, f"{at}.ln1_post")
    y = point(f"{at}.attn_out", (added_by_attention or added)(y))
    start = x
    x = x + y if parallel else point(f"{at}.resid_mid", x + y)
    read = point(f"{at}.mlp_in", start if parallel else x)
    y = _own_read(before, shared, start, read) if one_norm else open_norm(before_net, read, f"{at}.ln2")
    with inside(at):
        y = net(y)
    if behind_net is not None:
        y = open_norm(behind_net, y, f"{at}.ln2_post")
    return point(f"{at}.resid_post", x + point(f"{at}.mlp_out", added(y)))


def _open_on_stream(
    at: str,
    x: Tensor,
    attention: Callable[[Tensor], Tensor],
    net: Callable[[Tensor], Tensor],
    norms: Norms,
    heads: tuple[int, int, int],
    added: Callable[[Tensor], Tensor],
    added_by_attention: Callable[[Tensor], Tensor],
    norm_place: str,
) -> Tensor:
    """`open_layer` with norms of the stream: `resid_mid` and `resid_post` are what is handed on."""
    first, _, second, _ = norms
    normed_first = norm_place == "stream"
    x = point(f"{at}.resid_pre", x)
    if normed_first:
        x = open_norm(first, x, f"{at}.ln1")
    read = point(f"{at}.attn_in", x)
    with inside(at, _head_reads(at, read, read, None, heads)):
        y = attention(read)
    x = x + point(f"{at}.attn_out", added_by_attention(y))
    x = point(f"{at}.resid_mid", x if normed_first else open_norm(first, x, f"{at}.ln1"))
    if normed_first:
        x = open_norm(second, x, f"{at}.ln2")
    with inside(at):
        y = net(point(f"{at}.mlp_in", x))
    x = x + point(f"{at}.mlp_out", added(y))
    return point(f"{at}.resid_post", x if normed_first else open_norm(second, x, f"{at}.ln2"))


def _own_read(norm: nn.Module | None, shared: Tensor, x: Tensor, read: Tensor) -> Tensor:
    """What one of two readers of a norm gets: the norm's result, changed as much as the reader's own input differs."""
    if read is x:
        return shared
    if norm is None:
        return shared + (read - x)
    return shared + (norm.forward(read) - norm.forward(x))


def open_project(project: Projections, x: Tensor, head_dim: int | tuple[int, int, int]) -> list[Tensor]:
    """Queries, keys and values (batch, positions, heads, features), of heads that may read different vectors.

    `head_dim` is how many features a head has, or how many of queries, keys and values.

    >>> parts = votive.models.opened.open_project(lambda x: (x, x, x), votive.ones(1, 2, 4), 2)
    >>> parts[0].shape
    votive.Size([1, 2, 2, 2])
    """
    sizes = head_dim if isinstance(head_dim, tuple) else (head_dim,) * 3
    parts = [p.unflatten(-1, (-1, size)) for p, size in zip(project(x), sizes, strict=True)]
    for i, own in enumerate(reads() or ()):
        if own is not None:
            # Every head's vector goes through the whole product, of which its own part is taken: so the product may
            # be of any kind, in blocks of few bits too.
            all_heads = project(own)[i].unflatten(-1, (-1, sizes[i]))  # (B, T, H, H, D)
            parts[i] = all_heads.diagonal(dim1=2, dim2=3).transpose(2, 3)
    return parts


def open_attend(
    at: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: AttentionMask,
    *,
    scale: float | None = None,
    cap: float | None = None,
    dropout: float = 0.0,
    weights: list[Tensor] | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention of (batch, heads, positions, features) whose scores and pattern are shown.

    Scores are scaled, capped and masked; a query that sees nothing has a pattern of zeros.

    >>> q = votive.ones(1, 1, 2, 4)
    >>> votive.models.opened.open_attend("layers.0", q, q, q, votive.models.AttentionMask(is_causal=True)).shape
    votive.Size([1, 1, 2, 4])
    """
    kind, last = q.dtype, mask.last
    if last is not None and k.shape[2] > last:
        k, v = k[:, :, -last:], v[:, :, -last:]
    k, v = as_numbers(k, kind), as_numbers(v, kind)
    if k.shape[1] != q.shape[1]:
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q.to(wide(kind)) @ k.to(wide(kind)).transpose(-2, -1)) * scale
    if cap is not None:
        scores = cap * votive.tanh(scores / cap)
    seen = _causal(scores) if mask.is_causal else _of_last(mask.attn_mask, k)
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf) if seen.dtype == dt.bool_ else scores + seen
    scores = point(f"{at}.attn.scores", scores)
    pattern = point(f"{at}.attn.pattern", softmax_with_sinks(scores, sinks))
    if weights is not None:
        weights.append(pattern.to(kind))
    used = F.dropout(pattern, dropout, dropout > 0)
    return (used @ v.to(wide(kind))).to(kind)


def open_heads(at: str, z: Tensor, product: nn.Module) -> Any:
    """What attention gives of its heads' results (batch, positions, heads, features), with each head's share shown.

    >>> votive.models.opened.open_heads("layers.0", votive.ones(1, 2, 2, 2), votive.nn.Linear(4, 3)).shape
    votive.Size([1, 2, 3])
    """
    z = point(f"{at}.attn.z", z)
    if not wanted(f"{at}.attn.result"):
        return product(z.flatten(2))
    heads = z.shape[2]
    own = votive.eye(heads, dtype=dt.bool_, device=z.device).view(1, 1, heads, heads, 1)
    # One head at a time through the whole product, which may be of any kind.
    alone = votive.where(own, z.unsqueeze(2), votive.zeros_like(z).unsqueeze(2)).flatten(3)  # (B, T, H, H D)
    bias = getattr(product, "bias", None)
    result = product(alone) if bias is None else product(alone) - bias
    result = point(f"{at}.attn.result", result)
    return result.sum(2) if bias is None else result.sum(2) + bias
