"""What a decoder is made of, as data: the choices in which families differ. Knows no modules.

A configuration gives its `Design`; the other files build from it and ask for nothing else. Names are those of Hugging
Face's parameters, so that files load and are written as they are; a name with dots leads through modules that hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..stacked import Stacked

# "1+": the norm scales by 1 + weight. "unbiased": without a bias, "plain": without any parameter.
NORMS = ("rms", "rms 1+", "rms plain", "layer", "layer 1+", "layer unbiased", "layer plain")
# Norms of queries and keys: of each head by shared weights, by weights of its own (one tensor or a list of modules),
# or of all heads' features at once.
QK_NORMS = ("", "head", "heads", "list", "whole")
NETS = ("gated", "fused", "plain")
# One product for queries, keys and values: "split" has all queries, then keys, then values; "groups" has for each key
# head its queries, its key and its value; "quarters" has four parts, each with queries, values, then keys.
FUSED = ("split", "groups", "quarters")
# Norms are of what a part reads ("before"), of the stream with what a part adds ("sum"), or of the stream, which goes
# on normed ("stream").
NORM_PLACES = ("before", "sum", "stream")
# Positions that are learned, or sines and cosines of them (see `positions.py`).
PLACES = ("learned", "sines", "angles")
# How a router's scores become weights: of all experts' chances the best ones; of the best scores the chances;
# sigmoids, of which a correction chooses; the best scores' sigmoids, which weigh what experts read.
ROUTERS = ("softmax", "chosen", "sigmoid", "inputs", "sparsemixer")


@dataclass(frozen=True, kw_only=True)
class Rope:
    """How queries and keys are rotated: the first `part` of a head's features, or so many `features`.

    >>> votive.models.decoder.Rope(theta=1e6).part
    1.0
    """

    theta: float = 10000.0
    scaling: dict[str, Any] | None = None
    part: float = 1.0
    interleaved: bool = False  # pairs are neighbours, not a feature of each half
    features: int | None = None
    name: str = "rotary_emb"


@dataclass(frozen=True, kw_only=True)
class Temper:
    """How queries far into a text are made larger: by `1 + weight * log(1 + floor((position + first) / length))`.

    >>> votive.models.decoder.design.Temper(weight=0.1, length=8192).first
    0
    """

    weight: float
    length: int
    first: int = 0
    by_ids: bool = True  # by the positions that are asked for, not by the place in the text
    layers: tuple[bool, ...] = ()  # empty where all are


@dataclass(frozen=True, kw_only=True)
class Experts:
    """A mixture: `chosen` of `count` experts of width `inner` compute a position.

    >>> votive.models.decoder.Experts(count=8, chosen=2, inner=64).router
    'softmax'
    """

    count: int
    chosen: int
    inner: int
    dense: tuple[int, ...] = ()  # layers without experts
    router: str = "softmax"
    gate: str = "gate"  # the router's name
    gate_bias: bool = False
    wide: bool = False  # its scores are computed in float32
    normed: bool = False  # the weights of those that are chosen add up to one
    scaled: float = 1.0  # times this
    sum_eps: float = 1e-20  # of "sigmoid": what is added to the sum of those weights
    floor: float = 0.0  # what the sum of those weights is at least
    jitter: float = 0.0
    near: float = 0.01  # of "sparsemixer": how much worse others may be to count
    groups: tuple[int, int] | None = None  # of so many groups of experts so many are looked into
    correction: str = ""  # a tensor of the router that is added where experts are chosen, not where they are weighed
    correction_in: str | None = None  # the module of the mixture that has it instead; "" for the mixture itself
    correction_row: bool = False  # it is a matrix of one row
    path: str = "experts"
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")  # of an expert's products
    bias: bool = False
    clamp: tuple[float, float] | None = None  # a limit of neurons, and what gates are times in their sigmoid
    files: Stacked | None = None  # where files have one tensor for all experts, and none for each
    balanced: bool = True  # whether losses ask for an even use of experts
    shared: int | None = None  # the width of an expert that computes all positions
    shared_path: str = "shared_expert"
    shared_beside: bool = False  # it is the layer's, not the mixture's
    shared_kind: str = "gated"
    shared_names: tuple[str, str, str] | None = None  # of its products, by default as those of dense nets
    shared_gate: str = ""  # a product whose sigmoid weighs it


@dataclass(frozen=True, kw_only=True)
class Design:
    """The choices of a decoder, and its sizes.

    >>> config = votive.models.LlamaConfig(hidden_size=64, num_attention_heads=4)
    >>> config.design.head_dim, config.design.norms[0]
    (16, 'input_layernorm')
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    shared: int  # heads of keys and values
    head_dim: int
    inner: int
    positions: int

    # Norms: their kind; names of those before and behind attention, before and behind the net, "" where there is none.
    norm: str = "rms"
    eps: float | None = 1e-6
    norms: tuple[str, str, str, str] = ("input_layernorm", "", "post_attention_layernorm", "")
    norm_place: str = "before"
    # The net reads what the layer reads, not what attention has added to: without a norm of its own, by attention's.
    parallel: bool = False
    residual_scale: float = 1.0  # of what is added to the stream
    dropout: float = 0.0  # of the same
    attention_out_dropout: float | None = None  # of what attention adds, where that differs
    net_dropout: float = 0.0  # between the net's products
    layer_drop: float = 0.0  # the share of layers that are left out at random, in training

    attention: str = "self_attn"
    q: str = "q_proj"
    k: str = "k_proj"
    v: str = "v_proj"
    o: str = "o_proj"
    fused: str = ""  # the name of one product for all three
    fused_layout: str = "split"
    transposed: bool = False  # products' weights are (inputs, outputs)
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: str = ""
    qk_norm_kind: str = ""  # as `norm`, by default the same
    qk_norm_eps: float | None = None  # by default `eps`
    qk_norm_last: bool = False  # behind the rotation
    qk_norm_layers: tuple[bool, ...] = ()  # which layers have it; empty where all do
    qk_names: tuple[str, str] = ("q_norm", "k_norm")
    clip: float | None = None  # of queries, keys and values
    clip_last: bool = False  # behind the norm of all heads
    scale: float | None = None  # of scores: 1 / sqrt(head_dim)
    scale_by_layer: bool = False  # divided by the layer's number
    temper: Temper | None = None
    cap: float | None = None  # of scores
    attention_dropout: float = 0.0
    windows: tuple[int | None, ...] = ()  # by layer; empty where all see all
    chunks: tuple[int | None, ...] = ()  # by layer: only positions of the same chunk are seen
    ropes: tuple[Rope, ...] = ()
    rope_of: tuple[int | None, ...] = ()  # by layer, which of the ropes; empty where all have the first
    alibi: tuple[float, ...] = ()  # by head: how fast scores fall with the distance
    alibi_counts: bool = False  # by positions that are no padding, not by distances
    alibi_rounded: bool = False  # products are rounded to bfloat16
    alibi_scale: float = 1.0  # of those products
    sinks: bool = False  # each head has a score more, that of nothing
    sinks_shown: bool = True  # attention weights that are given are those with it, which do not add up to one

    # Layers whose mixer is not attention, by kind (see `layer.MIXERS`); empty where all have attention.
    mixers: tuple[str, ...] = ()

    net: str = "mlp"
    net_kind: str = "gated"
    net_names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    net_bias: bool = False
    act: str = "silu"
    experts: Experts | None = None
    experts_net: str = ""  # what the net is called in layers that have experts, by default as the others

    embedding: str = "embed_tokens"
    embedding_width: int | None = None  # where tokens have fewer features, and products lead in and out
    embedding_products: tuple[str, str] = ("project_in", "project_out")
    embedding_scale: float = 1.0
    embedding_dropout: float = 0.0
    embedding_norm: str = ""
    places: str = ""  # a table of positions
    places_kind: str = "learned"
    places_offset: int = 0  # its rows before that of the first position
    places_skip_padding: bool = False  # positions are counted from the first that is no padding
    padding: int | None = None  # the row of the table that stays zero
    body: str = ""  # a module that holds all of what follows
    stack: str = "layers"
    last_norm: str = "norm"
    last_norm_eps: float | None = None  # by default `eps`
    head: str = "lm_head"
    head_bias: bool = False
    logit_scale: float = 1.0
    logit_cap: float | None = None

    more_layers: int = 0  # that files hold behind those that are run: they predict further tokens

    extra: Mapping[str, Any] = field(default_factory=dict)  # what mixers of their own ask for

    def __post_init__(self) -> None:
        checked = [
            ("norm", self.norm, NORMS),
            ("qk_norm", self.qk_norm, QK_NORMS),
            ("net_kind", self.net_kind, NETS),
            ("fused_layout", self.fused_layout, FUSED),
            ("norm_place", self.norm_place, NORM_PLACES),
            ("places_kind", self.places_kind, PLACES),
        ]
        if self.experts is not None:
            checked.append(("router", self.experts.router, ROUTERS))
            checked.append(("shared_kind", self.experts.shared_kind, NETS))
        for name, value, known in checked:
            if value not in known:
                raise ValueError(f"Design: {name} must be one of {', '.join(map(repr, known))}, got {value!r}.")
        for name in ("windows", "chunks", "rope_of", "mixers", "qk_norm_layers"):
            found = getattr(self, name)
            if found and len(found) != self.layers:
                raise ValueError(f"Design: {name} has {len(found)} entries for {self.layers} layers.")

    def window(self, layer: int) -> int | None:
        """How many last positions a layer sees; None for all."""
        return self.windows[layer] if self.windows else None

    def chunk(self, layer: int) -> int | None:
        """The length of the chunks in which a layer sees; None for one."""
        return self.chunks[layer] if self.chunks else None

    def rope(self, layer: int) -> int | None:
        """Which of the ropes a layer has; None for none."""
        if self.rope_of:
            return self.rope_of[layer]
        return 0 if self.ropes else None

    def norms_heads(self, layer: int) -> bool:
        """Whether a layer norms queries and keys."""
        return bool(self.qk_norm) and (not self.qk_norm_layers or self.qk_norm_layers[layer])

    def tempers(self, layer: int) -> bool:
        """Whether a layer's queries grow with their positions."""
        return self.temper is not None and (not self.temper.layers or self.temper.layers[layer])

    def mixer(self, layer: int) -> str:
        """The kind of a layer's mixer."""
        return self.mixers[layer] if self.mixers else "attention"

    def has_experts(self, layer: int) -> bool:
        """Whether a layer's net is a mixture."""
        return self.experts is not None and layer not in self.experts.dense
