"""The two stacks: embeddings and positions, layers, a norm. Knows no head and no words.

A stack has a table of tokens of its own only where the design shares none; otherwise the model looks tokens up.
"""

from __future__ import annotations

import votive
from votive import nn

from ...tensor import Tensor
from ..attention import causal_mask, padding_mask
from ..cross_cache import Cache
from ..output import BaseModelOutput
from ..stack import Trace
from .design import Seq2SeqDesign, Side
from .layers import DecoderLayer, EncoderLayer
from .positions import PLACES


class _Stack(nn.Module):
    """What both stacks share."""

    def __init__(self, d: Seq2SeqDesign, side: Side, layer: type[EncoderLayer | DecoderLayer]) -> None:
        super().__init__()
        self.side = side
        self.embed_positions = PLACES[d.places](d, side)
        self.layers = nn.ModuleList(layer(d, side, i) for i in range(side.layers))
        if d.embedding_norm:
            self.layernorm_embedding = nn.LayerNorm(d.width)
        if d.last_norm:
            self.layer_norm = nn.LayerNorm(d.width)
        self.dropout = nn.Dropout(d.dropout)

    def start(self, x: Tensor, input_ids: Tensor | None, past: int = 0, position_ids: Tensor | None = None) -> Tensor:
        """The stream before the first layer, of embeddings of tokens."""
        norm = self._modules.get("layernorm_embedding")
        if norm is not None and self.side.norm_first:
            x = norm(x)
        x = x + self.embed_positions(x, input_ids, past, position_ids)
        if norm is not None and not self.side.norm_first:
            x = norm(x)
        return self.dropout(x)

    def skipped(self) -> bool:
        """Whether training leaves the next layer out: Fan et al. 2019, arXiv:1909.11556."""
        drop = self.side.layer_drop
        return bool(self.training and drop and float(votive.rand(())) < drop)

    def finished(self, x: Tensor, trace: Trace) -> Tensor:
        """The last state."""
        norm = self._modules.get("layer_norm")
        x = x if norm is None else norm(x)
        trace.add_state(x)
        return x


class EncoderStack(_Stack):
    """What reads a text."""

    def __init__(self, d: Seq2SeqDesign) -> None:
        super().__init__(d, d.encoder, EncoderLayer)

    def forward(
        self,
        x: Tensor,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """States of embeddings `x`; `input_ids` are what positions are counted in."""
        x = self.start(x, input_ids)
        mask, trace = padding_mask(attention_mask), Trace(output_attentions, output_hidden_states)
        for layer in self.layers:
            trace.add_state(x)
            if not self.skipped():
                x = layer(x, mask, trace.weights)
        x = self.finished(x, trace)
        return BaseModelOutput(last_hidden_state=x, hidden_states=trace.hidden_states, attentions=trace.attentions)


class DecoderStack(_Stack):
    """What writes a text, and looks at what was read."""

    def __init__(self, d: Seq2SeqDesign) -> None:
        super().__init__(d, d.decoder, DecoderLayer)

    def forward(
        self,
        x: Tensor,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        other: Tensor | None = None,
        other_mask: Tensor | None = None,
        cache: Cache | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        position_ids: Tensor | None = None,
    ) -> tuple[BaseModelOutput, tuple[Tensor, ...] | None]:
        """States of embeddings `x`, and attention weights to `other`, the encoder's states."""
        past, T = 0 if cache is None else cache.get_seq_length(), x.shape[1]
        x = self.start(x, input_ids, past, position_ids)
        mask = causal_mask(attention_mask, T, past + T, device=x.device)
        across = None if other is None else padding_mask(other_mask)
        trace = Trace(output_attentions, output_hidden_states)
        crossed: list[Tensor] | None = [] if output_attentions and other is not None else None
        for layer in self.layers:
            trace.add_state(x)
            if not self.skipped():
                x = layer(x, mask, other, across, cache, trace.weights, crossed)
        x = self.finished(x, trace)
        found = BaseModelOutput(
            last_hidden_state=x, past_key_values=cache, hidden_states=trace.hidden_states, attentions=trace.attentions
        )
        return found, None if crossed is None else tuple(crossed)
