"""DeBERTa's attention, which reads what stands where and how far away apart. He et al. 2020, arXiv:2006.03654.

Scores are sums of content to content, content to distance and distance to content. Knows no layer.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import votive
from votive import nn

from ...tensor import Tensor
from ..attention import AttentionMask, Weights, attend
from .design import EncoderDesign


class Distances(NamedTuple):
    """Embeddings of distances (2 * reach, features), and the row of each query and key (queries, keys)."""

    table: Tensor
    rows: Tensor
    reach: int


def distance_rows(length: int, buckets: int, furthest: int) -> np.ndarray:
    """The distance of each query to each key; with `buckets`, far ones by their logarithm.

    >>> from votive.models.text_encoder.relative import distance_rows
    >>> distance_rows(3, 0, 8).tolist()
    [[0, -1, -2], [1, 0, -1], [2, 1, 0]]
    """
    at = np.arange(length)
    distance = at[:, None] - at[None, :]
    if buckets <= 0:
        return distance
    middle = buckets // 2
    far = np.where(np.abs(distance) < middle, middle - 1, np.abs(distance)).astype(np.float32)
    # In float32, as the models were trained: at the edges of buckets, rounding decides.
    ratio = np.log(far / np.float32(middle)) / np.log(np.float32((furthest - 1) / middle))
    steps = np.ceil(ratio * np.float32(middle - 1)) + middle
    return np.where(far <= middle, distance, steps * np.sign(distance)).astype(np.int64)


class Disentangled(nn.Module):
    """Attention of DeBERTa; the second version has three products, the first one for queries, keys and values."""

    def __init__(self, d: EncoderDesign, layer_idx: int) -> None:
        super().__init__()
        assert d.relative is not None, "asked for by the design"
        options: dict[str, Any] = dict(d.relative)
        self.layer_idx, self.heads, self.head_dim = layer_idx, d.heads, d.head_dim
        self.dropout, self.kinds = d.attention_dropout, options["kinds"]
        self.first, self.own = options["first"], not options["share"]
        self.scale = 1 / math.sqrt(d.head_dim * options["parts"])
        self.pos_dropout = nn.Dropout(d.dropout)
        width, inner = d.width, d.heads * d.head_dim
        if self.first:
            self.in_proj = nn.Linear(width, 3 * inner, bias=False)
            self.q_bias = nn.Parameter(votive.zeros(inner))
            self.v_bias = nn.Parameter(votive.zeros(inner))
        else:
            for name in ("query_proj", "key_proj", "value_proj"):
                setattr(self, name, nn.Linear(width, inner))
        self.key_name, self.query_name = (
            ("pos_proj", "pos_q_proj") if self.first else ("pos_key_proj", "pos_query_proj")
        )
        if options["reach"] and self.own:
            if "c2p" in self.kinds:
                setattr(self, self.key_name, nn.Linear(width, inner, bias=not self.first))
            if "p2c" in self.kinds:
                setattr(self, self.query_name, nn.Linear(width, inner))
        elif options["reach"]:
            self.key_name, self.query_name = "key_proj", "query_proj"

    def forward(
        self, x: Tensor, mask: AttentionMask, weights: Weights = None, places: Distances | None = None
    ) -> Tensor:
        q, k, v = self.project(x)
        bias = votive.zeros(1, 1, 1, 1, dtype=q.dtype, device=q.device) if places is None else self.bias(q, k, places)
        seen = mask.attn_mask
        if seen is not None:
            # A position at padding sees all alike rather than nothing, whatever it asks for. Its scores are zero, not
            # the least of numbers: beside that, the sum that normalizes them would be rounded away.
            padding = ~seen.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
            q, bias = q.masked_fill(padding, 0.0), bias.expand(x.shape[0], self.heads, *seen.shape[-2:])
            bias = bias.masked_fill(~seen, votive.finfo(q.dtype).min).masked_fill(padding, 0.0)
        dropout = self.dropout if self.training else 0.0
        scores = AttentionMask() if seen is None and places is None else AttentionMask(bias)
        y = attend(q, k, v, scores, dropout=dropout, scale=self.scale, weights=weights)
        return y.transpose(1, 2).flatten(2)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (batch, heads, positions, features) each."""
        if not self.first:
            q, k, v = (self.split(getattr(self, name)(x)) for name in ("query_proj", "key_proj", "value_proj"))
            return q, k, v
        # Each head has its query, its key and its value side by side.
        q, k, v = self.in_proj(x).unflatten(-1, (self.heads, 3 * self.head_dim)).transpose(1, 2).chunk(3, -1)
        return q + self.of_heads(self.q_bias), k, v + self.of_heads(self.v_bias)

    def split(self, x: Tensor) -> Tensor:
        """(batch, positions, features) as (batch, heads, positions, features of a head)."""
        return x.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)

    def of_heads(self, bias: Tensor) -> Tensor:
        """A bias for each head's features, (heads, 1, features)."""
        return bias.view(self.heads, 1, self.head_dim)

    def bias(self, q: Tensor, k: Tensor, places: Distances) -> Tensor:
        """What distances add to the scores, (batch, heads, queries, keys)."""
        table, reach = self.pos_dropout(places.table).unsqueeze(0), places.reach
        shape = (q.shape[0], self.heads, *places.rows.shape)
        found: Tensor | None = None
        if "c2p" in self.kinds:
            near = q @ self.split(getattr(self, self.key_name)(table)).transpose(-1, -2)  # (B, H, T, 2 reach)
            found = near.gather(-1, (places.rows + reach).clamp(0, 2 * reach - 1).expand(shape))
        if "p2c" in self.kinds:
            near = k @ self.split(getattr(self, self.query_name)(table)).transpose(-1, -2)
            turned = near.gather(-1, (reach - places.rows).clamp(0, 2 * reach - 1).expand(shape)).transpose(-1, -2)
            found = turned if found is None else found + turned
        if found is None:
            return votive.zeros(shape, dtype=q.dtype, device=q.device)
        return found * self.scale


class Convolution(nn.Module):
    """Neighbours, read beside the first layer and added to what it gives."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__()
        assert d.convolution is not None, "asked for by the design"
        size, groups, act = (d.convolution[name] for name in ("size", "groups", "act"))
        self.conv = nn.Conv1d(d.width, d.width, size, padding=(size - 1) // 2, groups=groups)
        self.LayerNorm = nn.LayerNorm(d.width, eps=d.eps)
        self.dropout = nn.Dropout(d.dropout)
        self.act_fn = act

    def forward(self, x: Tensor, layer: Tensor, real: Tensor | None) -> Tensor:
        """`x` is what the first layer read, `layer` what it gave, `real` (batch, positions) 0 at padding."""
        y = self.conv(x.transpose(1, 2)).transpose(1, 2)
        if real is not None:
            y = y.masked_fill(real.unsqueeze(-1) == 0, 0.0)
        y = self.LayerNorm(layer + self.act_fn(self.dropout(y)))
        return y if real is None else y * real.unsqueeze(-1).to(y.dtype)
