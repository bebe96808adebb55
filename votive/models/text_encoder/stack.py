"""The layers of an encoder run one after the other, and what of positions each sees. Knows no family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive
from votive import nn
from votive.core import dtype as dt

from ...tensor import Tensor
from ..attention import AttentionMask, padding_mask
from ..decoder.norms import made_norm
from ..output import EncoderOutput
from ..stack import Trace
from ..t5_stack import distance_buckets
from .design import EncoderDesign
from .layer import KINDS, Group
from .relative import Convolution, Distances, distance_rows


class Sight:
    """What the layers of a run know of positions: who sees whom, and how what they read is rotated."""

    def __init__(
        self, d: EncoderDesign, attention_mask: Tensor | None, length: int, turns: list[Callable[[Tensor], Tensor]]
    ) -> None:
        self.design, self.length, self.turns = d, length, turns
        self.mask = padding_mask(attention_mask)
        self.real = attention_mask
        self._near: dict[int, AttentionMask] = {}

    def masked(self, layer: int, device: votive.device) -> AttentionMask:
        """The mask of a layer; some see only so far to each side."""
        window = self.design.windows[layer] if self.design.windows else None
        if window is None or window >= self.length - 1:
            return self.mask
        if window not in self._near:
            at = votive.arange(self.length, device=device)
            near = (at[:, None] - at[None, :]).abs() <= window
            seen = self.mask.attn_mask
            if seen is not None:
                hidden = seen if seen.dtype == dt.bool_ else None
                near = near & seen if hidden is not None else seen.masked_fill(~near, votive.finfo(seen.dtype).min)
            self._near[window] = AttentionMask(near)
        return self._near[window]

    def turn(self, layer: int) -> Callable[[Tensor], Tensor] | None:
        """What rotates queries and keys of a layer."""
        if not self.turns:
            return None
        return self.turns[self.design.rope_of[layer] if self.design.rope_of else 0]


def run_stack(layers: nn.ModuleList, x: Tensor, sight: Sight, trace: Trace, norm: nn.Module | None) -> EncoderOutput:
    """All layers, then the last norm."""
    for i, layer in enumerate(layers):
        trace.add_state(x)
        x = layer(x, sight.masked(i, x.device), trace.weights, sight.turn(i))
    return _ended(x, trace, norm)


def _ended(x: Tensor, trace: Trace, norm: nn.Module | None) -> EncoderOutput:
    x = x if norm is None else norm(x)
    trace.add_state(x)
    return EncoderOutput(last_hidden_state=x, hidden_states=trace.hidden_states, attentions=trace.attentions)


def made_layers(d: EncoderDesign) -> nn.ModuleList:
    """The layers of a design."""
    return nn.ModuleList(KINDS[d.layer](d, i) for i in range(d.layers))


class Stack(nn.Module):
    """Layers, in a module that holds them."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__()
        self.stack, self.last_norm, self.buckets = d.stack, d.last_norm, d.buckets
        setattr(self, d.stack, made_layers(d))
        if d.last_norm:
            setattr(self, d.last_norm, made_norm(d.norm, d.width, d.eps))
        if d.buckets is not None:
            rows, used = d.buckets
            self.relative_attention_bias = nn.Embedding(rows, d.heads)
            table = votive.from_numpy(distance_buckets(used, 128, both_ways=True))
            self.register_buffer("distances", table, persistent=False)

    def forward(
        self, x: Tensor, sight: Sight, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> EncoderOutput:
        if self.buckets is not None:
            sight.mask = sight.mask.biased(self.bias(x.shape[1]))
        norm = getattr(self, self.last_norm) if self.last_norm else None
        return run_stack(getattr(self, self.stack), x, sight, Trace(output_attentions, output_hidden_states), norm)

    def bias(self, length: int) -> Tensor:
        """What a position's distance adds to its score, (1, heads, queries, keys)."""
        assert self.buckets is not None, "asked for where there is one"
        at = votive.arange(length, device=self.distances.device)
        ahead = at[None, :] - at[:, None]
        rows = self.distances[ahead.abs().clamp(max=len(self.distances) - 1)]
        rows = rows + (ahead > 0).long() * (self.buckets[1] // 2)
        return self.relative_attention_bias(rows).permute(2, 0, 1).unsqueeze(0)


class DistanceStack(Stack):
    """Layers that read embeddings of distances, which all share; some have neighbours added behind the first."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__(d)
        options: dict[str, Any] = dict(d.relative or {})
        self.reach, self.span = options["reach"], options["buckets"]
        if self.reach:
            self.rel_embeddings = nn.Embedding(2 * (self.span or self.reach), d.width)
        self.normed = options["normed"]
        if self.normed:
            self.LayerNorm = nn.LayerNorm(d.width, eps=d.eps)
        self.first = options["first"]
        if d.convolution is not None:
            self.conv = Convolution(d)

    def distances(self, length: int) -> Distances | None:
        """Embeddings of distances, and which of them each pair of positions has."""
        if not self.reach:
            return None
        table: Tensor = self.rel_embeddings.weight
        if self.normed:
            table = self.LayerNorm(table)
        rows = votive.from_numpy(distance_rows(length, self.span, self.reach)).to(table.device)
        reach = self.span or self.reach
        if self.first and length < reach:
            table, reach = table[reach - length : reach + length], length
        return Distances(table, rows, reach)

    def forward(
        self, x: Tensor, sight: Sight, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> EncoderOutput:
        mask = AttentionMask()
        if sight.mask.attn_mask is not None and sight.real is not None:
            real = sight.real.bool()
            mask = AttentionMask((real[:, None, :] & real[:, :, None])[:, None])
        trace, places = Trace(output_attentions, output_hidden_states), self.distances(x.shape[1])
        read = x
        for i, layer in enumerate(getattr(self, self.stack)):
            trace.add_state(x)
            x = layer(x, mask, trace.weights, places)
            if i == 0 and "conv" in self._modules:
                x = self.conv(read, x, sight.real)
        return _ended(x, trace, None)


class GroupStack(nn.Module):
    """ALBERT's layers: so many groups, each used several times, and a product before them."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__()
        self.count = d.layers
        self.embedding_hidden_mapping_in = nn.Linear(d.embedded, d.width)
        self.albert_layer_groups = nn.ModuleList(Group(d, i) for i in range(d.groups[0]))

    def forward(
        self, x: Tensor, sight: Sight, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> EncoderOutput:
        x = self.embedding_hidden_mapping_in(x)
        trace = Trace(output_attentions, output_hidden_states)
        states = [x]
        for i in range(self.count):
            group = self.albert_layer_groups[int(i / (self.count / len(self.albert_layer_groups)))]
            x = group(x, sight.mask, trace.weights, states)
        for state in states[:-1]:
            trace.add_state(state)
        return _ended(x, trace, None)


def made_stack(d: EncoderDesign) -> nn.Module:
    """The module that holds a design's layers."""
    if d.layer == "grouped":
        return GroupStack(d)
    return Stack(d) if d.relative is None else DistanceStack(d)
