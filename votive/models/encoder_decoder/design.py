"""What a model that reads one text and writes another is made of, as data: the choices in which families differ.

A configuration gives its `Seq2SeqDesign`; the other files build from it and ask for nothing else. Knows no modules.
"""

from __future__ import annotations

from dataclasses import dataclass

# "learned": a table, whose first rows may belong to no position; "sines": sines, then cosines, of pairs of equal
# frequency; "counted": sines and cosines of positions that are counted from behind the padding token and without it.
PLACES = ("learned", "sines", "counted")
# What a decoder reads before the first token of its labels: a token of the configuration's, or the last label, which
# tells the language.
STARTS = ("token", "last")


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two stacks.

    >>> votive.models.BartConfig(encoder_layers=3).design.encoder.layers
    3
    """

    vocabulary: int
    layers: int
    heads: int
    inner: int
    positions: int
    scale: float = 1.0  # of embeddings
    scales_given: bool = False  # whether embeddings that are given are scaled, too
    layer_drop: float = 0.0
    # Embeddings are normed before positions are added to them, not behind it.
    norm_first: bool = False


@dataclass(frozen=True, kw_only=True)
class Seq2SeqDesign:
    """The choices of an encoder with a decoder.

    >>> votive.models.MBartConfig().design.pre_norm, votive.models.BartConfig().design.pre_norm
    (True, False)
    """

    width: int
    encoder: Side
    decoder: Side
    act: str
    dropout: float = 0.0
    attention_dropout: float = 0.0
    net_dropout: float = 0.0  # between the net's products
    pre_norm: bool = False  # norms are of what a part reads, not of the stream with what it adds
    last_norm: bool = False  # behind each stack
    embedding_norm: bool = False
    places: str = "learned"
    places_offset: int = 0  # rows of the table before that of the first position
    padding: int | None = None  # the token of padding
    one_table: bool = True  # encoder, decoder and head share the table of tokens
    names_shared: bool = True  # files name a shared table also where each stack has its own
    head_bias: bool = True  # a row is added to logits, which is not learned
    start: str = "token"
    reads_source: bool = False  # without ids of its own, the decoder reads the encoder's, shifted

    def __post_init__(self) -> None:
        checked = (("places", self.places, PLACES), ("start", self.start, STARTS))
        for name, value, known in checked:
            if value not in known:
                raise ValueError(f"Seq2SeqDesign: {name} must be one of {', '.join(map(repr, known))}, got {value!r}.")
        for name, side in (("encoder", self.encoder), ("decoder", self.decoder)):
            if side.heads < 1 or self.width % side.heads:
                raise ValueError(
                    f"Seq2SeqDesign: d_model={self.width} does not split into {name}_attention_heads={side.heads}."
                )
