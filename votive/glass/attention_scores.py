"""What attention can be told by: entropy, distance, known patterns, rollout. Knows maps only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import votive

from ..tensor import Tensor
from .heatmap import Heatmap

if TYPE_CHECKING:
    from .attention_maps import AttentionMap


# Of a map, a sample, some queries and their weights (queries, keys): a number for each query.
Rows: TypeAlias = Callable[["AttentionMap", int, list[int], Tensor], Tensor]
PATTERNS = ("previous", "duplicate", "induction", "first")


class Scores:
    """Numbers for each layer and head, (calls, heads), from the maps of a run."""

    maps: list[Any]
    tokens: Any

    def entropy(self) -> Tensor:
        """How widely each head looks, in nats, averaged over samples and queries."""

        def rows(m: AttentionMap, b: int, queries: list[int], w: Tensor) -> Tensor:
            return -(w * w.log()).nan_to_num(0.0).sum(-1)

        return self._averaged(rows)

    def distance(self) -> Tensor:
        """How many positions back each head looks on average."""

        def rows(m: AttentionMap, b: int, queries: list[int], w: Tensor) -> Tensor:
            at = votive.tensor(queries).unsqueeze(1) + m.first_query
            keys = votive.arange(m.first_key, m.first_key + w.shape[1])
            return (w * (at - keys).abs().to(w.dtype)).sum(-1)

        return self._averaged(rows)

    def score(self, pattern: str) -> Tensor:
        """The share of attention on what a pattern names, over the queries that have it.

        "previous" is the position before the query, "first" the beginning of the text,
        "duplicate" all earlier positions with the query's token, and "induction" the positions
        behind those (Olsson et al. 2022, arXiv:2209.11895). NaN where no query has any.

        >>> _ = votive.manual_seed(0)
        >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
        ...     num_hidden_layers=1, num_attention_heads=2)
        >>> model = votive.models.LlamaForCausalLM(config)
        >>> maps = votive.glass.attention_maps(model, votive.tensor([[1, 2, 3, 1, 2, 3]]))
        >>> maps.score("induction").shape
        votive.Size([1, 2])
        """
        if pattern not in PATTERNS:
            raise ValueError(f"score: pattern must be one of {PATTERNS}, got {pattern!r}.")

        def rows(m: AttentionMap, b: int, queries: list[int], w: Tensor) -> Tensor:
            wanted = self._wanted(pattern, m, b, queries)
            share = (w * wanted.to(w.dtype)).sum(-1)
            return share.masked_fill(~wanted.any(-1), math.nan)

        return self._averaged(rows)

    def _wanted(self, pattern: str, m: AttentionMap, b: int, queries: list[int]) -> Tensor:
        """Which keys each query should look at, (queries, keys)."""
        at = votive.tensor(queries).unsqueeze(1) + m.first_query
        keys = votive.arange(m.first_key, m.first_key + m.shape[3]).unsqueeze(0)
        if pattern == "previous":
            return keys == at - 1
        if pattern == "first":
            return (keys == 0) & (at > 0)
        if m.tokens is None:
            raise ValueError(
                f"score: {pattern!r} looks at tokens, and {m.address} has none that fit; give "
                "tokens= to attention_maps, the ids of the whole text."
            )
        text = m.tokens[b]
        own = text[at]  # (queries, 1)
        if pattern == "duplicate":
            return (text[keys] == own) & (keys < at)
        before = text[(keys - 1).clamp(min=0)]
        return (before == own) & (keys - 1 >= 0) & (keys <= at)

    def _averaged(self, rows: Rows) -> Tensor:
        """The mean of a number per row, by call and head, but for NaN and fully masked rows."""
        most = max(m.shape[1] for m in self.maps)
        out = votive.full((len(self.maps), most), math.nan)
        for i, m in enumerate(self.maps):
            total, count = [0.0] * m.shape[1], [0] * m.shape[1]
            for b, h, queries, w in m.pieces():
                w = w.cpu()
                found = rows(m, b, queries, w)
                # Queries that see nothing, at padding, have no attention to speak of.
                known = found[~found.isnan() & (w.sum(-1) > 0)]
                total[h] += float(known.sum())
                count[h] += known.numel()
            for h in range(m.shape[1]):
                out[i, h] = total[h] / count[h] if count[h] else math.nan
        return out

    def rollout(self, residual: float = 0.5) -> Tensor:
        """How much of each position is in each last one, (batch, positions, positions).

        The heads' mean with `residual` of the identity, multiplied from layer to layer: Abnar and
        Zuidema 2020, arXiv:2005.00928, section 3.
        """
        B, _, T, _ = self.maps[0].shape
        out = votive.eye(T).expand(B, T, T)
        for m in self.maps:
            if m.shape[0] != B or m.shape[2] != T or m.shape[3] != T:
                raise ValueError(
                    f"rollout: {m.address} is {m.shape}; it needs queries and keys of one whole "
                    "text in all layers, so run without a cache, and choose layers with at=."
                )
            mean = votive.zeros(B, T, T)
            for b, _, queries, w in m.pieces():
                mean[b, queries] = mean[b, queries] + w.cpu().float() / m.shape[1]
            mixed = (1 - residual) * mean + residual * votive.eye(T)
            out = (mixed / mixed.sum(-1, keepdim=True)) @ out
        return out

    def figure(self, what: str = "entropy") -> Heatmap:
        """A heat map of calls and heads: "entropy", "distance" or one of the patterns."""
        if what not in ("entropy", "distance", *PATTERNS):
            raise ValueError(f"attention: {what!r} is none of entropy, distance, {PATTERNS}.")
        found = self.score(what) if what in PATTERNS else getattr(self, what)()
        return Heatmap(
            found.tolist(),
            [m.address.partition("/")[0] for m in self.maps],
            [str(h) for h in range(found.shape[1])],
            title=f"attention: {what}",
            x_name="head",
            y_name="layer",
            legend=what,
        )
