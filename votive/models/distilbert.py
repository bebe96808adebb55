"""DistilBERT: BERT without kinds of text and pooler, and half as deep. arXiv:1910.01108."""

from __future__ import annotations

from dataclasses import dataclass

from ..tensor import Tensor
from .config import LabeledConfig
from .output import EncoderOutput
from .text_encoder import EncoderDesign, EncoderModel, Heads, encoder_classes


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
    qa_dropout: float = 0.1
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

    @property
    def design(self) -> EncoderDesign:
        """What the encoder is made of."""
        return EncoderDesign(
            vocabulary=self.vocab_size,
            width=self.dim,
            layers=self.n_layers,
            heads=self.n_heads,
            inner=self.hidden_dim,
            positions=self.max_position_embeddings,
            act=self.activation,
            padding=self.pad_token_id,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            layer="flat",
            holder="transformer",
            q="q_lin",
            k="k_lin",
            v="v_lin",
            o="out_lin",
            out_dropout=0.0,
            norms=("sa_layer_norm", "output_layer_norm"),
            net="ffn",
            net_names=("", "lin1", "lin2"),
            pooler="",
            head=Heads(
                masked="apart",
                masked_name="",
                masked_dense="vocab_transform",
                masked_norm="vocab_layer_norm",
                masked_decoder="vocab_projector",
                classify="layer",
                dropout=self.seq_classif_dropout,
                token_dropout=self.dropout,
                answer_dropout=self.qa_dropout,
            ),
        )


class _DistilBert(EncoderModel):
    """An encoder that knows no kinds of text, and whose arguments come in an order of their own."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        return self.encode(
            input_ids, attention_mask, None, position_ids, inputs_embeds, output_attentions, output_hidden_states
        )


(
    DistilBertModel,
    DistilBertForMaskedLM,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    DistilBertForQuestionAnswering,
    DistilBertForMultipleChoice,
) = encoder_classes("DistilBert", DistilBertConfig, "distilbert", base=_DistilBert)
