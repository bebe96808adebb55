"""What an encoder of texts is made of, as data: the choices in which families differ. Knows no modules.

A configuration gives its `EncoderDesign`; the other files build from it and ask for nothing else. Names are those of
Hugging Face's parameters, so that files load and are written as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..decoder.design import Rope

# "nested": attention, intermediate and output each hold their product and norm, as BERT's; "flat": attention, a net
# and norms side by side; "grouped": ALBERT's, of which layers share.
LAYERS = ("nested", "flat", "grouped")
# "absolute": 0, 1, ...; "padded": counted from behind the padding token, padding has a place of its own.
PLACES = ("", "absolute", "padded")
POOLERS = ("", "dense", "plain")
MASKED = ("nested", "flat", "apart", "plain", "shared")
# How a text is classified: from the pooler; by a net of its own on the first position; from a pooler of the head's;
# by a head before the classifier; by a layer before it; each position, of which the mean is taken.
CLASSIFY = ("pooled", "net", "context", "head", "layer", "late")


@dataclass(frozen=True, kw_only=True)
class Heads:
    """How the heads of a family are built and called.

    >>> votive.models.text_encoder.Heads().masked
    'nested'
    """

    masked: str = "nested"
    masked_name: str = "cls"  # what holds the head
    masked_dense: str = "dense"
    masked_norm: str = "LayerNorm"
    masked_act: str = ""  # by default the layers'
    masked_decoder: str = "decoder"
    masked_bias: bool = True  # of the decoder
    masked_dense_bias: bool = True
    shared_bias: bool = True  # the head holds the decoder's bias, too
    only_labeled: int | None = None  # with labels, only positions whose label is another are scored
    classify: str = "pooled"
    classify_act: str = "tanh"
    pooling: str = "cls"  # or "mean", of heads that pool
    dropout: float = 0.0  # before classifiers of texts, tokens and choices
    token_dropout: float | None = None
    choice_dropout: float | None = None
    answer_dropout: float = 0.0
    net_dropout: float = 0.0  # inside a pooler of the head's
    choose: str = ""  # how texts are read that are chosen between; by default as classified
    counts_padding: bool = True  # whether labels of positions count at padding
    soft_labels: bool = False  # DeBERTa's losses, where no problem type is told
    sequence: bool = False  # whether the second score of pretraining is whether texts are in order
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EncoderDesign:
    """The choices of an encoder, and its sizes.

    >>> config = votive.models.BertConfig(hidden_size=64, num_attention_heads=4)
    >>> config.design.head_dim, config.design.layer
    (16, 'nested')
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int
    positions: int
    act: str
    shared: int | None = None  # heads of keys and values, where they are fewer
    features: int | None = None  # of a head, where it is not the width by the heads
    padding: int | None = None  # the row of the table that stays zero, and the token of padding
    norm: str = "layer"
    eps: float = 1e-12
    dropout: float = 0.0
    attention_dropout: float = 0.0

    # Embeddings: "" where the table is the model's own.
    embeddings: str = "embeddings"
    table: str = "word_embeddings"
    narrow: int | None = None  # features of embeddings, where they are fewer
    # Where a product leads from these to the layers' width: a path of the model's.
    project: str = ""
    project_bias: bool = True
    project_always: bool = False
    kinds: int = 0  # of text
    tasks: int = 0
    places: str = "absolute"
    places_padding: int | None = None  # the token that "padded" counts from
    embedding_norm: str = "LayerNorm"
    embedding_dropout: float | None = None  # by default `dropout`
    silences_padding: bool = False  # embeddings at padding are zero

    # Layers.
    layer: str = "nested"
    holder: str = "encoder"  # "" where the list of layers is the model's own
    stack: str = "layer"
    pre_norm: bool = False
    skips_first_norm: bool = False
    last_norm: str = ""
    groups: tuple[int, int] = (1, 1)  # of layers that share, and layers in each

    attention: str = "attention"
    q: str = "query"
    k: str = "key"
    v: str = "value"
    o: str = ""  # of attention that has the product behind it
    fused: str = ""  # one product for queries, keys and values
    qkv_bias: bool = True
    out_bias: bool = True
    out_dropout: float | None = None  # behind attention, by default `dropout`
    wrapped: str = ""  # what attention is called inside a module that norms
    norms: tuple[str, str] = ("", "")  # of attention and of the net, in flat layers
    ropes: tuple[Rope, ...] = ()
    rope_of: tuple[int, ...] = ()  # by layer, which of the ropes
    turns_values: bool = False  # values are rotated, too
    windows: tuple[int | None, ...] = ()  # by layer, how far positions see to each side
    buckets: tuple[int, int] | None = None  # rows of a table of distances, and how many are used
    relative: Mapping[str, Any] | None = None  # what attention that reads distances asks for, see `relative.py`
    convolution: Mapping[str, Any] | None = None  # behind the first layer

    net: str = "mlp"
    net_kind: str = "plain"
    net_names: tuple[str, str, str] = ("", "fc1", "fc2")
    net_bias: bool = True
    net_out_bias: bool = True
    net_dropout: float = 0.0  # between the products
    net_end_dropout: float | None = None  # behind the net, by default `dropout`

    pooler: str = "dense"
    pools: bool = True  # whether a bare model has its pooler
    head: Heads = field(default_factory=Heads)

    def __post_init__(self) -> None:
        checked = (
            ("layer", self.layer, LAYERS),
            ("places", self.places, PLACES),
            ("pooler", self.pooler, POOLERS),
            ("net_kind", self.net_kind, ("plain", "gated", "fused")),
            ("head.masked", self.head.masked, MASKED),
            ("head.classify", self.head.classify, CLASSIFY),
        )
        for name, value, known in checked:
            if value not in known:
                raise ValueError(f"EncoderDesign: {name} must be one of {', '.join(map(repr, known))}, got {value!r}.")

    @property
    def head_dim(self) -> int:
        """Features of a head."""
        return self.features or self.width // self.heads

    @property
    def embedded(self) -> int:
        """Features of embeddings."""
        return self.narrow or self.width

    @property
    def table_path(self) -> str:
        """Where the table of token embeddings is, inside the bare model."""
        return f"{self.embeddings}.{self.table}" if self.embeddings else self.table
