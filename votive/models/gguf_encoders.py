"""Encoders, and T5 with its decoder, as GGUF files name them. Tables, and what follows from numbers.

Files of the architecture `bert` are read as BERT, whatever they were: positions of RoBERTa begin at the first row of
its table there, and DistilBERT's have no segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import votive

from ..tensor import Tensor
from .gguf_bonds import joined_product
from .gguf_family import Bond, Family, Shapes, number
from .gguf_words import ATTENTION, KEYS, NET, SILU, without

_EPS = "attention.layer_norm_epsilon"
_SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "vocab_size": "vocab_size",
    _EPS: "layer_norm_eps",
}
_BOTH_WAYS = {"attention.causal": False}


def _segments(config: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_BOTH_WAYS)


BERT = Family(
    "bert",
    "bert",
    "BertModel",
    _SIZES,
    {
        "token_embd": "embeddings.word_embeddings",
        "position_embd": "embeddings.position_embeddings",
        "token_types": "embeddings.token_type_embeddings",
        "token_embd_norm": "embeddings.LayerNorm",
    },
    {
        "attn_q": "attention.self.query",
        "attn_k": "attention.self.key",
        "attn_v": "attention.self.value",
        "attn_output": "attention.output.dense",
        "attn_output_norm": "attention.output.LayerNorm",
        "ffn_up": "intermediate.dense",
        "ffn_down": "output.dense",
        "layer_output_norm": "output.LayerNorm",
    },
    layers="encoder.layer",
    prefix="",
    fixed={"hidden_act": "gelu"},
    rotates=False,
    respelled=((r"^bert\.", ""),),
    dropped=(r"^pooler\.", r"^cls\.", r"position_ids$"),
    told=_segments,
)


def _later(t: Tensor, first: int) -> Tensor:
    return t[first:]


def _same(t: Tensor) -> Tensor:
    return t


def _roberta_places(config: Mapping[str, Any]) -> list[Bond]:
    """Rows of padding and before it are left out."""
    first = (config.get("pad_token_id") or 0) + 1
    return [
        Bond(
            stored={"position_embd.weight": partial(_later, first=first)},
            named={"embeddings.position_embeddings.weight": _same},
            whole=True,
        )
    ]


def _roberta(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**_BOTH_WAYS, "context_length": config["max_position_embeddings"] - (config.get("pad_token_id") or 0) - 1}


def _like_bert(model_type: str, model_class: str, prefix: str) -> Family:
    return Family(
        "bert",
        model_type,
        model_class,
        _SIZES,
        BERT.whole,
        BERT.block,
        layers=BERT.layers,
        prefix="",
        fixed=BERT.fixed,
        rotates=False,
        respelled=((rf"^{prefix}\.", ""),),
        dropped=(*BERT.dropped, r"^lm_head\."),
        settled=True,
        told=_roberta,
        bonds=_roberta_places,
        when=lambda metadata: False,
    )


ROBERTA = _like_bert("roberta", "RobertaModel", "roberta")
XLM_ROBERTA = _like_bert("xlm-roberta", "XLMRobertaModel", "roberta")
CAMEMBERT = _like_bert("camembert", "CamembertModel", "roberta")


def _distil(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**_BOTH_WAYS, _EPS: 1e-12}


DISTILBERT = Family(
    "bert",
    "distilbert",
    "DistilBertModel",
    {
        "context_length": "max_position_embeddings",
        "embedding_length": "dim",
        "block_count": "n_layers",
        "feed_forward_length": "hidden_dim",
        "attention.head_count": "n_heads",
        "vocab_size": "vocab_size",
    },
    without(BERT.whole, "token_types"),
    {
        "attn_q": "attention.q_lin",
        "attn_k": "attention.k_lin",
        "attn_v": "attention.v_lin",
        "attn_output": "attention.out_lin",
        "attn_output_norm": "sa_layer_norm",
        "ffn_up": "ffn.lin1",
        "ffn_down": "ffn.lin2",
        "layer_output_norm": "output_layer_norm",
    },
    layers="transformer.layer",
    prefix="",
    fixed={"activation": "gelu"},
    rotates=False,
    respelled=((r"^distilbert\.", ""),),
    dropped=(r"^vocab_", r"position_ids$"),
    settled=True,
    told=_distil,
    when=lambda metadata: False,
)


def _nomic(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**_BOTH_WAYS, "rope.freq_base": float(config["rope_theta"])}


def _as_nomic(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key, types = "nomic-bert.rope.freq_base", shapes("token_types.weight")
    return {
        **config,
        "rope_theta": number(key, metadata.get(key, 10000.0)),
        "type_vocab_size": types[0] if types else 2,
    }


NOMIC_BERT = Family(
    "nomic-bert",
    "nomic_bert",
    "NomicBertModel",
    _SIZES,
    without(BERT.whole, "position_embd"),
    {
        "attn_output": "self_attn.o_proj",
        "attn_output_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
        "layer_output_norm": "post_mlp_layernorm",
    },
    layers="layers",
    prefix="",
    fixed=SILU | {"rope_scaling": None},
    rotates=False,
    respelled=(
        (r"^nomic_bert\.", ""),
        # As checkpoints of the first releases say it.
        (r"^emb_ln\.", "embeddings.LayerNorm."),
        (r"^encoder\.layers\.", "layers."),
        (r"\.attn\.out_proj\.", ".self_attn.o_proj."),
        (r"\.mlp\.fc11\.", ".mlp.up_proj."),
        (r"\.mlp\.fc12\.", ".mlp.gate_proj."),
        (r"\.mlp\.fc2\.", ".mlp.down_proj."),
        (r"\.norm1\.", ".post_attention_layernorm."),
        (r"\.norm2\.", ".post_mlp_layernorm."),
    ),
    dropped=(r"^pooler\.", r"^(cls|head|decoder)\.", r"inv_freq$"),
    settled=True,
    told=_nomic,
    understood=_as_nomic,
    bonds=joined_product,
)


def _modern(config: Mapping[str, Any]) -> dict[str, Any]:
    kinds, layers = config["layer_types"], config["num_hidden_layers"]
    every = next((i for i in range(1, layers) if kinds[i] == "full_attention"), layers)
    if kinds != ["sliding_attention" if i % every else "full_attention" for i in range(layers)]:
        raise ValueError(f"layer_types is {kinds}; GGUF files of modern-bert mean that every n-th layer sees all.")
    ropes = config["rope_parameters"]
    if any((rope.get("rope_type") or "default") != "default" for rope in ropes.values()):
        raise ValueError("rope_parameters stretch rotations; GGUF files of modern-bert have none of that.")
    return {
        **_BOTH_WAYS,
        "attention.sliding_window": config["local_attention"],
        "attention.sliding_window_pattern": every,
        "rope.freq_base": float(ropes["full_attention"]["rope_theta"]),
        "rope.freq_base_swa": float(ropes["sliding_attention"]["rope_theta"]),
        "rope.scaling.type": "none",
    }


def _as_modern(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    arch = "modern-bert"
    every = number(
        f"{arch}.attention.sliding_window_pattern", metadata.get(f"{arch}.attention.sliding_window_pattern", 3)
    )
    far, near = (
        number(key, metadata.get(key, usual))
        for key, usual in ((f"{arch}.rope.freq_base", 160000.0), (f"{arch}.rope.freq_base_swa", 10000.0))
    )
    layers = range(config["num_hidden_layers"])
    return {
        **config,
        "layer_types": ["sliding_attention" if i % every else "full_attention" for i in layers],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": far},
            "sliding_attention": {"rope_type": "default", "rope_theta": near},
        },
    }


MODERN_BERT = Family(
    "modern-bert",
    "modernbert",
    "ModernBertModel",
    without(_SIZES, _EPS) | {_EPS: "norm_eps", "attention.sliding_window": "local_attention"},
    {"token_embd": "embeddings.tok_embeddings", "token_embd_norm": "embeddings.norm", "output_norm": "final_norm"},
    {
        "attn_norm": "attn_norm",
        "attn_qkv": "attn.Wqkv",
        "attn_output": "attn.Wo",
        "ffn_norm": "mlp_norm",
        "ffn_up": "mlp.Wi",
        "ffn_down": "mlp.Wo",
    },
    layers="layers",
    prefix="",
    fixed={"hidden_activation": "gelu", "attention_bias": False, "mlp_bias": False, "norm_bias": False},
    some=frozenset({"attn_norm"}),  # the first layer reads what is normed already
    rotates=False,
    respelled=((r"^model\.", ""),),
    dropped=(r"^(head|decoder|classifier)\.", r"inv_freq$"),
    settled=True,
    told=_modern,
    understood=_as_modern,
)


def _euro(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**_BOTH_WAYS, "rope.scaling.type": "none"}


EUROBERT = Family(
    "eurobert",
    "eurobert",
    "EuroBertModel",
    KEYS,
    {"token_embd": "embed_tokens", "output_norm": "norm"},
    ATTENTION | NET,
    layers="layers",
    prefix="",
    fixed=SILU | {"attention_bias": False, "mlp_bias": False, "rope_scaling": None},
    respelled=((r"^model\.", ""),),
    dropped=(r"^(lm_head|classifier|dense)\.", r"inv_freq$"),
    settled=True,
    told=_euro,
)


def zeros_of_segments(config: Mapping[str, Any]) -> dict[str, Tensor]:
    """What a BERT adds for segments where a file knows none.

    >>> from votive.models.gguf_encoders import zeros_of_segments
    >>> {k: tuple(t.shape) for k, t in zeros_of_segments({"type_vocab_size": 2, "hidden_size": 4}).items()}
    {'embeddings.token_type_embeddings.weight': (2, 4)}
    """
    shape = config["type_vocab_size"], config["hidden_size"]
    return {"embeddings.token_type_embeddings.weight": votive.zeros(*shape)}


_T5_NET = {"ffn_gate": "wi_0", "ffn_up": "wi_1", "ffn_down": "wo"}


def _t5_side(side: str, layers: int, gated: bool) -> dict[str, str]:
    """Names of one of the two stacks."""
    short = side[:3]
    out: dict[str, str] = {}
    net = 1 if side == "encoder" else 2
    products = _T5_NET if gated else {"ffn_up": "wi", "ffn_down": "wo"}
    for i in range(layers):
        theirs, ours = f"{short}.blk.{i}.", f"{side}.block.{i}.layer."
        names = {"attn_norm": "0.layer_norm", "attn_rel_b": "0.SelfAttention.relative_attention_bias"}
        names |= {f"attn_{n}": f"0.SelfAttention.{n}" for n in "qkvo"}
        if side == "decoder":
            names |= {f"cross_attn_{n}": f"1.EncDecAttention.{n}" for n in "qkvo"} | {"cross_attn_norm": "1.layer_norm"}
        names |= {"ffn_norm": f"{net}.layer_norm"}
        names |= {n: f"{net}.DenseReluDense.{m}" for n, m in products.items()}
        out |= {f"{theirs}{a}.weight": f"{ours}{b}.weight" for a, b in names.items()}
    return {**out, f"{short}.output_norm.weight": f"{side}.final_layer_norm.weight"}


def _t5_names(config: Mapping[str, Any]) -> dict[str, str]:
    gated = str(config.get("feed_forward_proj", "relu")).startswith("gated")
    first = _t5_side("encoder", config["num_layers"], gated)
    second = _t5_side("decoder", config.get("num_decoder_layers") or config["num_layers"], gated)
    return {"token_embd.weight": "shared.weight", **first, **second, "output.weight": "lm_head.weight"}


def _t5(config: Mapping[str, Any]) -> dict[str, Any]:
    if config["feed_forward_proj"] not in ("relu", "gated-gelu"):
        raise ValueError(
            f"feed_forward_proj is {config['feed_forward_proj']!r}; GGUF files of t5 mean 'relu', or with gates "
            "'gated-gelu'."
        )
    eps = float(config["layer_norm_epsilon"])
    return {
        "context_length": config.get("n_positions") or 512,
        "attention.value_length": config["d_kv"],
        _EPS: eps,
        "attention.layer_norm_rms_epsilon": eps,
    }


def _as_t5(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    gated = shapes("enc.blk.0.ffn_gate.weight") is not None
    own = shapes("enc.blk.1.attn_rel_b.weight") is not None
    return {
        **config,
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        **({"model_type": "umt5", "architectures": ["UMT5ForConditionalGeneration"]} if own else {}),
    }


def _t5_family(model_type: str, model_class: str) -> Family:
    return Family(
        "t5",
        model_type,
        model_class,
        {
            "embedding_length": "d_model",
            "feed_forward_length": "d_ff",
            "block_count": "num_layers",
            "decoder_block_count": "num_decoder_layers",
            "attention.head_count": "num_heads",
            "attention.key_length": "d_kv",
            "attention.relative_buckets_count": "relative_attention_num_buckets",
            _EPS: "layer_norm_epsilon",
            "decoder_start_token_id": "decoder_start_token_id",
            "vocab_size": "vocab_size",
        },
        {"output": "lm_head"},
        {},
        prefix="",
        fixed={"relative_attention_max_distance": 128},
        rotates=False,
        respelled=((r"^(encoder|decoder)\.embed_tokens\.", "shared."),),
        dropped=(r"EncDecAttention\.relative_attention_bias",),
        settled=True,
        told=_t5,
        understood=_as_t5,
        table=_t5_names,
        when=None if model_type == "t5" else lambda metadata: False,
    )


T5 = _t5_family("t5", "T5ForConditionalGeneration")
MT5 = _t5_family("mt5", "MT5ForConditionalGeneration")
UMT5 = _t5_family("umt5", "UMT5ForConditionalGeneration")
ENCODERS = [BERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, DISTILBERT, NOMIC_BERT, MODERN_BERT, EUROBERT, T5, MT5, UMT5]
