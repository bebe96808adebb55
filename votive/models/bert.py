"""BERT, and RoBERTa which counts positions otherwise. Devlin et al. 2018, arXiv:1810.04805.

An encoder: every position sees all others; attention and MLP are followed by layer norm. Parameter
names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..io.source import WeightSource
from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, padding_mask, self_attention
from .config import Config, LabeledConfig
from .encoder import Encoder, Intermediate
from .output import EncoderOutput, PredictionOutput
from .pretrained import PreTrainedModel


@dataclass(kw_only=True)
class BertConfig(LabeledConfig):
    """The numbers of a BERT.

    >>> votive.models.BertConfig(id2label={0: "no", 1: "yes", 2: "maybe"}).num_labels
    3
    """

    model_type = "bert"

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    classifier_dropout: float | None = None
    position_embedding_type: str = "absolute"
    is_decoder: bool = False
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"{type(self).__name__}: hidden_size={self.hidden_size} does not split into "
                f"{self.num_attention_heads} heads."
            )
        if self.position_embedding_type != "absolute":
            raise ValueError(
                f"{type(self).__name__}: position_embedding_type must be 'absolute', got "
                f"{self.position_embedding_type!r}."
            )
        if self.is_decoder:
            raise ValueError(f"{type(self).__name__}: is_decoder=True is not supported.")


class BertEmbeddings(nn.Module):
    """Words, positions and kinds of text, added and normed."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, words: Tensor, positions: Tensor, kinds: Tensor) -> Tensor:
        x = words + self.token_type_embeddings(kinds) + self.position_embeddings(positions)
        return self.dropout(self.LayerNorm(x))


class BertSelfAttention(nn.Module):
    """Attention of all positions to all."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads, self.dropout = config.num_attention_heads, config.attention_probs_dropout_prob
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        projections = self.query, self.key, self.value
        dropout = self.dropout if self.training else 0.0
        return self_attention(x, projections, self.heads, mask, dropout, weights)


class BertOutput(nn.Module):
    """A product, added to what came in before, and normed."""

    def __init__(self, config: BertConfig, inputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(y)) + x)


class BertAttention(nn.ModuleDict):
    """Attention, and what it says added to what came in."""

    def __init__(self, config: BertConfig) -> None:
        output = BertOutput(config, config.hidden_size)
        super().__init__({"self": BertSelfAttention(config), "output": output})

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        return self["output"](self["self"](x, mask, weights), x)


class BertLayer(nn.Module):
    """Attention, then the MLP."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width, hidden = config.hidden_size, config.intermediate_size
        self.attention = BertAttention(config)
        self.intermediate = Intermediate(width, hidden, config.hidden_act)
        self.output = BertOutput(config, hidden)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        x = self.attention(x, mask, weights)
        return self.output(self.intermediate(x), x)


class BertPooler(nn.ModuleDict):
    """One vector for the text, from its first position."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__({"dense": nn.Linear(config.hidden_size, config.hidden_size)})

    def forward(self, x: Tensor) -> Tensor:
        return votive.tanh(self["dense"](x[:, 0]))


class _Bert(PreTrainedModel):
    """What all BERT classes share."""

    config_class = BertConfig
    base_model_prefix = "bert"
    # The first files were named after TensorFlow's variables.
    renames = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}
    ignored: ClassVar[tuple[str, ...]] = (r"embeddings\.position_ids$", r"embeddings\.token_type_ids$")

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return getattr(self, self.base_model_prefix, self).embeddings.word_embeddings


class BertModel(_Bert):
    """The encoder; `pooler_output` is made from the first position.

    A file without a pooler gives a model without one.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> out = votive.models.BertModel(config)(votive.tensor([[1, 2, 3]]))
    >>> out.last_hidden_state.shape, out.pooler_output.shape
    (votive.Size([1, 3, 8]), votive.Size([1, 8]))
    """

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = BertEmbeddings(config)
        self.encoder = Encoder(BertLayer(config) for _ in range(config.num_hidden_layers))
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.post_init()

    def adapted(self, source: WeightSource) -> WeightSource:
        if not any("pooler." in name for name in source.names()):
            self.pooler = None
        if self.pooler is None:
            return source.renamed(lambda name: None if "pooler." in name else name)
        return source

    def positions(self, x: Tensor, input_ids: Tensor | None) -> Tensor:
        """Which position each token has, when the caller does not say."""
        if x.shape[1] > self.config.max_position_embeddings:
            raise IndexError(
                f"{type(self).__name__}: {x.shape[1]} positions are asked for; it has learned "
                f"max_position_embeddings={self.config.max_position_embeddings}."
            )
        return votive.arange(x.shape[1], device=x.device)

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
        x = self.embedded(input_ids, inputs_embeds)
        if position_ids is None:
            position_ids = self.positions(x, input_ids)
        if token_type_ids is None:
            token_type_ids = votive.zeros(x.shape[:2], dtype=votive.int64, device=x.device)
        mask = padding_mask(attention_mask)
        x = self.embeddings(x, position_ids, token_type_ids)
        found = self.encoder(x, mask, output_attentions, output_hidden_states)
        x = found.last_hidden_state
        return replace(found, last_hidden_state=x, pooler_output=None if self.pooler is None else self.pooler(x))


class BertTransform(nn.ModuleDict):
    """What stands before the scores of words."""

    def __init__(self, config: BertConfig) -> None:
        width = config.hidden_size
        norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        super().__init__({"dense": nn.Linear(width, width), "LayerNorm": norm})
        self.act_fn = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self["LayerNorm"](self.act_fn(self["dense"](x)))


class BertLMHead(nn.Module):
    """Scores of all words for each position; the words' own embeddings are its weights."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = BertTransform(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(votive.zeros(config.vocab_size))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.transform(x))


class BertHeads(nn.ModuleDict):
    """The head that fills gaps, under the name that files have for it."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__({"predictions": BertLMHead(config)})

    def forward(self, x: Tensor) -> Tensor:
        return self["predictions"](x)


class BertForMaskedLM(_Bert):
    """BERT that fills gaps.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BertForMaskedLM(config)(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3, 10])
    """

    # The heads of pretraining that say whether one text follows another.
    ignored = (*_Bert.ignored, r"\bpooler\.", r"^cls\.seq_relationship\.")
    tied = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.cls = BertHeads(config)
        self.post_init()

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels` with -100 where nothing is to be predicted."""
        found = self.bert(input_ids, *args, **kwargs)
        return masked_output(self.cls(found.last_hidden_state), labels, found)


class BertForSequenceClassification(_Bert):
    """BERT that gives a text one of `num_labels` classes, several, or a number.

    >>> config = votive.models.BertConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_labels=3)
    >>> model = votive.models.BertForSequenceClassification(config)
    >>> model(votive.tensor([[1, 2, 3]])).logits.shape
    votive.Size([1, 3])
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        p = config.classifier_dropout
        self.dropout = nn.Dropout(config.hidden_dropout_prob if p is None else p)
        self.classifier = nn.Linear(config.hidden_size, config.label_count)
        self.post_init()

    def forward(
        self, input_ids: Tensor | None = None, *args: Any, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = self.bert(input_ids, *args, **kwargs)
        logits = self.classifier(self.dropout(found.pooler_output))
        return class_output(logits, labels, self.config, found)


def masked_output(logits: Tensor, labels: Tensor | None, found: EncoderOutput) -> PredictionOutput:
    """Word scores, and their cross entropy against labels."""
    loss = None
    if labels is not None:
        loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100)
    return PredictionOutput(loss=loss, logits=logits, hidden_states=found.hidden_states, attentions=found.attentions)


def class_output(logits: Tensor, labels: Tensor | None, config: Config, found: EncoderOutput) -> PredictionOutput:
    """Class scores, and the loss that `problem_type` names or that fits the labels."""
    loss = None
    if labels is not None:
        kind = config.problem_type
        if kind is None:
            whole = not labels.is_floating_point()
            kind = "single_label" if whole else "multi_label"
            kind = "regression" if config.num_labels == 1 else f"{kind}_classification"
        if kind == "regression":
            loss = F.mse_loss(logits.view(labels.shape).float(), labels.float())
        elif kind == "single_label_classification":
            loss = F.cross_entropy(logits.float(), labels.flatten())
        elif kind == "multi_label_classification":
            loss = F.binary_cross_entropy_with_logits(logits.float(), labels.float())
        else:
            raise ValueError(
                f"problem_type must be 'regression', 'single_label_classification' or "
                f"'multi_label_classification', got {kind!r}."
            )
    return PredictionOutput(loss=loss, logits=logits, hidden_states=found.hidden_states, attentions=found.attentions)
