"""Tables of tokens in files: one for encoder and decoder, or one for each, whatever the configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from ...io.source import WeightSource
from ..loading import differ
from ..sine_tables import paired_sines
from .design import Seq2SeqDesign

if TYPE_CHECKING:
    from .model import Seq2SeqModel

SHARED, OWN = "shared.weight", ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")


class TablesOfFiles:
    """What models do whose files may name the table of tokens three times."""

    base_model_prefix: Any
    bare: Any
    config: Any
    design: Seq2SeqDesign
    dtype: Any

    def tables_changed(self) -> None:
        """Say what is tied to the tables that there are now."""

    def adapted(self, source: WeightSource) -> WeightSource:
        """The tables that the file has, by the names that the model has then."""
        prefix = f"{self.base_model_prefix}."
        names = set(source.names())
        there = {n: next((f for f in (prefix + n, n) if f in names), None) for n in (SHARED, *OWN)}
        shared, *own = (there[n] for n in (SHARED, *OWN))
        first = shared or own[0] or own[1]
        if first is None:
            return source
        model: Seq2SeqModel = self.bare
        apart = all(own) and differ(source, own[0] or "", own[1] or "")
        if "shared" in model._modules:
            if apart:
                split(model)
        elif not any(own):
            join(model)  # written when both were shared by any model
        self.tables_changed()
        headed = any(name.startswith(prefix) for name in names)
        head = "" if self is model and not headed else prefix
        if "shared" in model._modules:
            kept = {first: head + SHARED}
        else:
            kept = {name: head + n for name, n in zip(own, OWN, strict=True) if name is not None}
        renamed = {name: kept.get(name) for name in there.values() if name is not None}
        return source.renamed(lambda name: renamed.get(name, name))

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        """With all tables that files have where the configuration says that nothing is shared."""
        prefix = "" if self is self.bare else f"{self.base_model_prefix}."
        weights = self.with_sines(weights, prefix, ("encoder", "decoder"))
        if self.config.tie_word_embeddings:
            return weights
        shared, own = prefix + SHARED, [prefix + name for name in OWN]
        if shared in weights:
            return {**weights, **{name: weights[shared].clone() for name in own}}
        return {**weights, shared: weights[own[0]].clone()} if self.design.names_shared else weights

    def with_sines(self, weights: dict[str, Any], prefix: str, stacks: tuple[str, ...]) -> dict[str, Any]:
        """With positions that are computed, where files of the family have them all the same."""
        if self.design.places != "sines":
            return weights
        made = {name: paired_sines(getattr(self.design, name).positions, self.design.width) for name in stacks}
        tables = {name: votive.from_numpy(table).to(self.dtype) for name, table in made.items()}
        return {**weights, **{f"{prefix}{name}.embed_positions.weight": table for name, table in tables.items()}}


def split(model: Seq2SeqModel) -> None:
    """Give each stack a table of its own, of the shared one's shape.

    >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, encoder_layers=1, decoder_layers=1,
    ...     encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2)
    >>> model = votive.models.BartModel(config)
    >>> votive.models.encoder_decoder.tables.split(model)
    >>> "shared.weight" in model.state_dict(), "encoder.embed_tokens.weight" in model.state_dict()
    (False, True)
    """
    shared = model.shared
    for stack in (model.encoder, model.decoder):
        stack.embed_tokens = nn.Embedding(shared.num_embeddings, shared.embedding_dim, shared.padding_idx)
        with votive.no_grad():
            stack.embed_tokens.weight.copy_(shared.weight)
    del model.shared


def join(model: Seq2SeqModel) -> None:
    """Let both stacks read one table.

    >>> config = votive.models.BartConfig(vocab_size=10, d_model=8, encoder_layers=1, decoder_layers=1,
    ...     encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2,
    ...     tie_word_embeddings=False)
    >>> model = votive.models.BartModel(config)
    >>> votive.models.encoder_decoder.tables.join(model)
    >>> "shared.weight" in model.state_dict(), "encoder.embed_tokens.weight" in model.state_dict()
    (True, False)
    """
    model.shared = model.encoder.embed_tokens
    for stack in (model.encoder, model.decoder):
        del stack.embed_tokens
