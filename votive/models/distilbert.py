"""DistilBERT: BERT without kinds of text and pooler, and half as deep. arXiv:1910.01108."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.fused_linear import feed_forward

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, padding_mask, self_attention
from .bert import class_output, masked_output
from .config import LabeledConfig
from .encoder import Encoder
from .output import EncoderOutput, PredictionOutput
from .pretrained import PreTrainedModel


@dataclass(kw_only=True)
class DistilBertConfig(LabeledConfig):
    """The numbers of a DistilBERT.

    >>> votive.models.DistilBertConfig(dim=64, n_heads=4).hidden_size
    64
    """

    model_type = "distilbert"

    vocab_size: int = 30522
    max_position_embeddings: int = 512
    sinusoidal_pos_embds: bool = False
    n_layers: int = 6
    n_heads: int = 12
    dim: int = 768
    hidden_dim: int = 4 * 768
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    seq_classif_dropout: float = 0.2
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim % self.n_heads:
            raise ValueError(f"DistilBertConfig: dim={self.dim} does not split into n_heads={self.n_heads}.")

    @property
    def hidden_size(self) -> int:
        return self.dim

    @property
    def num_hidden_layers(self) -> int:
        return self.n_layers

    @property
    def num_attention_heads(self) -> int:
        return self.n_heads


class DistilBertAttention(nn.Module):
    """Attention of all positions to all."""

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__()
        self.heads, self.dropout = config.n_heads, config.attention_dropout
        for name in ("q_lin", "k_lin", "v_lin", "out_lin"):
            setattr(self, name, nn.Linear(config.dim, config.dim))

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        projections = self.q_lin, self.k_lin, self.v_lin
        dropout = self.dropout if self.training else 0.0
        return self.out_lin(self_attention(x, projections, self.heads, mask, dropout, weights))


class DistilBertMLP(nn.ModuleDict):
    """`lin2(act(lin1(x)))`, of which dropout leaves a part."""

    def __init__(self, config: DistilBertConfig) -> None:
        up, down = (config.dim, config.hidden_dim), (config.hidden_dim, config.dim)
        super().__init__({"lin1": nn.Linear(*up), "lin2": nn.Linear(*down)})
        self.act_fn, self.dropout = activation(config.activation), config.dropout

    def forward(self, x: Tensor) -> Tensor:
        y = feed_forward(self["lin1"], self.act_fn, self["lin2"], x)
        return F.dropout(y, self.dropout, self.training)


class DistilBertLayer(nn.Module):
    """Attention, then the MLP; what each adds is normed."""

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__()
        self.attention = DistilBertAttention(config)
        self.sa_layer_norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.ffn = DistilBertMLP(config)
        self.output_layer_norm = nn.LayerNorm(config.dim, eps=1e-12)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        x = self.sa_layer_norm(self.attention(x, mask, weights) + x)
        return self.output_layer_norm(self.ffn(x) + x)


class DistilBertEmbeddings(nn.Module):
    """Words and positions, added and normed."""

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.dim, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.dim)
        self.LayerNorm = nn.LayerNorm(config.dim, eps=1e-12)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, words: Tensor, positions: Tensor) -> Tensor:
        return self.dropout(self.LayerNorm(words + self.position_embeddings(positions)))


class _DistilBert(PreTrainedModel):
    """What all DistilBERT classes share."""

    config_class = DistilBertConfig
    base_model_prefix = "distilbert"
    ignored = (r"embeddings\.position_ids$",)

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return getattr(self, self.base_model_prefix, self).embeddings.word_embeddings


class DistilBertModel(_DistilBert):
    """The encoder.

    >>> config = votive.models.DistilBertConfig(vocab_size=10, dim=8, hidden_dim=16, n_layers=1,
    ...     n_heads=2)
    >>> votive.models.DistilBertModel(config)(votive.tensor([[1, 2, 3]])).last_hidden_state.shape
    votive.Size([1, 3, 8])
    """

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__(config)
        self.embeddings = DistilBertEmbeddings(config)
        self.transformer = Encoder(DistilBertLayer(config) for _ in range(config.n_layers))
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        x = self.embedded(input_ids, inputs_embeds)
        most = self.config.max_position_embeddings
        if position_ids is None:
            if x.shape[1] > most:
                raise IndexError(
                    f"DistilBertModel: {x.shape[1]} positions are asked for; it has learned "
                    f"max_position_embeddings={most}."
                )
            position_ids = votive.arange(x.shape[1], device=x.device)
        mask = padding_mask(attention_mask)
        x = self.embeddings(x, position_ids)
        found: EncoderOutput = self.transformer(x, mask, output_attentions, output_hidden_states)
        return found


class DistilBertForMaskedLM(_DistilBert):
    """DistilBERT that fills gaps.

    >>> votive.models.DistilBertForMaskedLM.config_class.model_type
    'distilbert'
    """

    tied = {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__(config)
        self.distilbert = DistilBertModel(config)
        self.vocab_transform = nn.Linear(config.dim, config.dim)
        self.vocab_layer_norm = nn.LayerNorm(config.dim, eps=1e-12)
        self.vocab_projector = nn.Linear(config.dim, config.vocab_size)
        self.act_fn = activation(config.activation)
        self.post_init()

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels` with -100 where nothing is to be predicted."""
        found = self.distilbert(input_ids, *args, **kwargs)
        x = self.vocab_layer_norm(self.act_fn(self.vocab_transform(found.last_hidden_state)))
        return masked_output(self.vocab_projector(x), labels, found)


class DistilBertForSequenceClassification(_DistilBert):
    """DistilBERT that gives a text one of `num_labels` classes, several, or a number.

    >>> votive.models.DistilBertForSequenceClassification.config_class.model_type
    'distilbert'
    """

    def __init__(self, config: DistilBertConfig) -> None:
        super().__init__(config)
        self.distilbert = DistilBertModel(config)
        self.pre_classifier = nn.Linear(config.dim, config.dim)
        self.classifier = nn.Linear(config.dim, config.label_count)
        self.dropout = nn.Dropout(config.seq_classif_dropout)
        self.post_init()

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = self.distilbert(input_ids, *args, **kwargs)
        x = F.relu(self.pre_classifier(found.last_hidden_state[:, 0]))
        return class_output(self.classifier(self.dropout(x)), labels, self.config, found)
