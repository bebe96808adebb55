"""The encoder itself, built from a design: embeddings, layers, a pooler. Knows no family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import votive
from votive import nn

from ...io.source import WeightSource
from ...tensor import Tensor
from ..config import Config
from ..decoder.norms import made_norm
from ..output import EncoderOutput
from ..pretrained import PreTrainedModel
from ..stack import Trace
from .config import EncoderConfig
from .design import EncoderDesign
from .stack import Sight, made_layers, made_stack, run_stack


class EncoderBase(PreTrainedModel):
    """What encoders share, with a head or without."""

    config_class: ClassVar[type[Config]] = EncoderConfig
    # The first files were named after TensorFlow's variables.
    renames = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}
    ignored: ClassVar[tuple[str, ...]] = (r"embeddings\.position_ids$", r"embeddings\.token_type_ids$", r"inv_freq$")

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.design: EncoderDesign = config.design  # what the encoder is made of

    @property
    def bare(self) -> Any:
        """The model without its head."""
        return getattr(self, self.base_model_prefix, self)

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        d = self.design
        return getattr(getattr(self.bare, d.embeddings) if d.embeddings else self.bare, d.table)


class Embeddings(nn.Module):
    """Words, and what is added to them before the first layer: kinds of text, positions, tasks."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__()
        width = d.embedded
        self.table_name, self.norm_name = d.table, d.embedding_norm
        setattr(self, d.table, nn.Embedding(d.vocabulary, width, padding_idx=d.padding))
        if d.places:
            self.position_embeddings = nn.Embedding(d.positions, width, padding_idx=d.places_padding)
        if d.kinds:
            self.token_type_embeddings = nn.Embedding(d.kinds, width)
        if d.tasks:
            self.task_type_embeddings = nn.Embedding(d.tasks, width)
        inside = d.project.startswith(f"{d.embeddings}.") and width != d.width
        self.project_name = d.project.partition(".")[2] if inside else ""
        if inside:
            setattr(self, self.project_name, nn.Linear(width, d.width, bias=d.project_bias))
        if d.embedding_norm:
            setattr(self, d.embedding_norm, made_norm(d.norm, d.width if inside else width, d.eps))
        self.dropout = nn.Dropout(d.dropout if d.embedding_dropout is None else d.embedding_dropout)

    def forward(
        self,
        words: Tensor,
        positions: Tensor | None = None,
        kinds: Tensor | None = None,
        tasks: Tensor | None = None,
        real: Tensor | None = None,
    ) -> Tensor:
        """`words` are embeddings of tokens; with `real` (batch, positions), those at padding become zero."""
        x = words
        if kinds is not None:
            x = x + self.token_type_embeddings(kinds)
        if positions is not None:
            x = x + self.position_embeddings(positions)
        if tasks is not None:
            x = x + self.task_type_embeddings(tasks)
        if self.project_name:
            x = getattr(self, self.project_name)(x)
        if self.norm_name:
            x = getattr(self, self.norm_name)(x)
        if real is not None:
            x = x * real.unsqueeze(-1).to(x.dtype)
        return self.dropout(x)


class Pooler(nn.ModuleDict):
    """One vector for the text, from its first position."""

    def __init__(self, d: EncoderDesign) -> None:
        super().__init__({"dense": nn.Linear(d.width, d.width)})

    def forward(self, x: Tensor) -> Tensor:
        return votive.tanh(self["dense"](x[:, 0]))


class EncoderModel(EncoderBase):
    """An encoder without a head; `pooler_output` is made from the first position, where there is a pooler.

    A file without a pooler gives a model without one.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> out = votive.models.BertModel(config)(votive.tensor([[1, 2, 3]]))
    >>> out.last_hidden_state.shape, out.pooler_output.shape
    (votive.Size([1, 3, 8]), votive.Size([1, 8]))
    """

    def __init__(self, config: EncoderConfig, add_pooling_layer: bool | None = None) -> None:
        super().__init__(config)
        d = self.design
        if d.embeddings:
            setattr(self, d.embeddings, Embeddings(d))
        else:
            setattr(self, d.table, nn.Embedding(d.vocabulary, d.width, padding_idx=d.padding))
        self.projects = bool(d.project) and "." not in d.project and d.embedded != d.width
        if self.projects:
            setattr(self, d.project, nn.Linear(d.embedded, d.width, bias=d.project_bias))
        if d.holder:
            setattr(self, d.holder, made_stack(d))
        else:
            setattr(self, d.stack, made_layers(d))
            if d.last_norm:
                setattr(self, d.last_norm, made_norm(d.norm, d.width, d.eps))
        for rope in d.ropes:
            options: dict[str, Any] = {"scaling": rope.scaling, "interleaved": rope.interleaved}
            setattr(self, rope.name, nn.RotaryEmbedding(d.head_dim, d.positions, rope.theta, **options))
        wanted = d.pools if add_pooling_layer is None else add_pooling_layer
        self.pooler: nn.Module | None = None
        if wanted and d.pooler:
            self.pooler = Pooler(d) if d.pooler == "dense" else nn.Linear(d.width, d.width)
        self.post_init()

    def adapted(self, source: WeightSource) -> WeightSource:
        if not any("pooler." in name for name in source.names()):
            self.pooler = None
        if self.pooler is None:
            return source.renamed(lambda name: None if "pooler." in name else name)
        return source

    def positions(self, x: Tensor, input_ids: Tensor | None) -> Tensor:
        """Which position each token has, when the caller does not say."""
        d, length = self.design, x.shape[1]
        pad = d.places_padding if d.places == "padded" else None
        most = d.positions - (0 if pad is None else pad + 1)
        if length > most:
            raise IndexError(
                f"{type(self).__name__}: {length} positions are asked for; it has learned {most} "
                f"(max_position_embeddings={d.positions})."
            )
        if pad is None:
            return votive.arange(length, device=x.device)
        if input_ids is None:
            return votive.arange(pad + 1, pad + 1 + length, device=x.device)
        real = (input_ids != pad).long()
        return real.cumsum(1) * real + pad

    def turn(self, module: nn.Module, x: Tensor, position_ids: Tensor | None) -> Callable[[Tensor], Tensor]:
        """What rotates queries and keys of so many positions."""
        told = position_ids if position_ids is None else position_ids.expand(x.shape[:2])
        angles = module.angles(x.shape[1], 0, told)

        def rotated(part: Tensor) -> Tensor:
            return module.rotate(part, angles)

        return rotated

    def encode(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
        inputs_embeds: Tensor | None,
        output_attentions: bool,
        output_hidden_states: bool,
        task_type_ids: Tensor | None = None,
    ) -> EncoderOutput:
        """What every family does, whatever its arguments are called."""
        d = self.design
        x = self.embedded(input_ids, inputs_embeds)
        length = x.shape[1]
        turns = [self.turn(getattr(self, rope.name), x, position_ids) for rope in d.ropes]
        if d.relative is not None and attention_mask is not None and attention_mask.dim() != 2:
            raise ValueError(
                f"{type(self).__name__}: attention_mask must be (batch, positions), got shape "
                f"{tuple(attention_mask.shape)}."
            )
        if d.embeddings:
            if d.places and position_ids is None:
                position_ids = self.positions(x, input_ids)
            x = getattr(self, d.embeddings)(
                x,
                position_ids if d.places else None,
                _kinds(x, token_type_ids) if d.kinds else None,
                _kinds(x, task_type_ids) if d.tasks else None,
                attention_mask if d.silences_padding else None,
            )
        if self.projects:
            x = getattr(self, d.project)(x)
        sight = Sight(d, attention_mask, length, turns)
        if d.holder:
            found = getattr(self, d.holder)(x, sight, output_attentions, output_hidden_states)
        else:
            norm = getattr(self, d.last_norm) if d.last_norm else None
            found = run_stack(getattr(self, d.stack), x, sight, Trace(output_attentions, output_hidden_states), norm)
        return replace(found, pooler_output=self.pooled(found.last_hidden_state))

    def pooled(self, x: Tensor) -> Tensor | None:
        """One vector for each text, where there is a pooler."""
        if self.pooler is None:
            return None
        return self.pooler(x) if isinstance(self.pooler, Pooler) else votive.tanh(self.pooler(x[:, 0]))

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        return self.encode(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            output_attentions,
            output_hidden_states,
        )


class PlainEncoder(EncoderModel):
    """An encoder that knows no kinds of text."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        return self.encode(
            input_ids, attention_mask, None, position_ids, inputs_embeds, output_attentions, output_hidden_states
        )


def _kinds(x: Tensor, told: Tensor | None) -> Tensor:
    """Which kind of text each token is of: the first, where nobody says."""
    return votive.zeros(x.shape[:2], dtype=votive.int64, device=x.device) if told is None else told
