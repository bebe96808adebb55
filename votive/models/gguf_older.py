"""Decoders from before Llama as GGUF files name them: products for all three at once, biases, slopes. Tables.

Where llama.cpp keeps another order of rows than checkpoints do, a bond says how one becomes the other. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gguf_bonds import by_head, by_key_head
from .gguf_family import Bond, Family, Shapes, number
from .gguf_words import KEYS, layered, without

_LAYER = "attention.layer_norm_epsilon"
_OLD_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_output": "self_attention.dense",
    "ffn_up": "mlp.dense_h_to_4h",
    "ffn_down": "mlp.dense_4h_to_h",
}
_OLD_WHOLE = {"token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f", "output": "lm_head"}


def _falcon_heads(config: Mapping[str, Any]) -> int:
    if config.get("new_decoder_architecture"):
        return int(config["num_kv_heads"])
    return 1 if config.get("multi_query") else int(config["num_attention_heads"])


def _falcon_rows(config: Mapping[str, Any]) -> list[Bond]:
    return by_key_head("self_attention.query_key_value", config["num_attention_heads"], _falcon_heads(config))


def _falcon(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"attention.head_count_kv": _falcon_heads(config), "tensor_data_layout": "jploski"}


def _as_falcon(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    shared = config.pop("num_key_value_heads")
    two = shapes("blk.0.attn_norm_2.weight") is not None
    new = two or 1 < shared < config["num_attention_heads"]
    return {
        **config,
        "num_kv_heads": shared,
        "new_decoder_architecture": new,
        "multi_query": shared == 1,
        "num_ln_in_parallel_attn": 2 if two else 1,
    }


def _falcon_norms(config: Mapping[str, Any]) -> dict[str, str]:
    two = config.get("new_decoder_architecture") and config.get("num_ln_in_parallel_attn") in (None, 2)
    return {"attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"} if two else {}


FALCON = Family(
    "falcon",
    "falcon",
    "FalconForCausalLM",
    {
        **without(KEYS, "attention.layer_norm_rms_epsilon", "attention.key_length"),
        "feed_forward_length": "ffn_hidden_size",
        _LAYER: "layer_norm_epsilon",
    },
    _OLD_WHOLE,
    _OLD_LAYER,
    layers="transformer.h",
    prefix="transformer.",
    fixed={"activation": "gelu", "alibi": False, "bias": False, "parallel_attn": True},
    settled=True,
    told=_falcon,
    understood=_as_falcon,
    variant=_falcon_norms,
    bonds=lambda config: by_key_head(
        "self_attention.query_key_value", config["num_attention_heads"], _falcon_heads(config)
    ),
)


def _neox(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"use_parallel_residual": config["use_parallel_residual"]}


def _as_neox(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    del config["num_key_value_heads"], config["head_dim"]
    return {**config, "use_parallel_residual": bool(metadata.get("gptneox.use_parallel_residual", True))}


GPTNEOX = Family(
    "gptneox",
    "gpt_neox",
    "GPTNeoXForCausalLM",
    without(layered("layer_norm_eps"), "attention.head_count_kv", "attention.key_length"),
    {"token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm", "output": "embed_out"},
    _OLD_LAYER | {"attn_output": "attention.dense", "ffn_norm": "post_attention_layernorm"},
    layers="gpt_neox.layers",
    prefix="gpt_neox.",
    fixed={"hidden_act": "gelu", "attention_bias": True},
    dropped=(r"\.attention\.(masked_)?bias$", r"rotary_emb\.inv_freq$"),
    partial="rotary_pct",
    settled=True,
    told=_neox,
    understood=_as_neox,
    bonds=lambda config: by_head("attention.query_key_value", config["num_attention_heads"]),
)


def _bloom(config: Mapping[str, Any]) -> dict[str, Any]:
    width = config["hidden_size"]
    return {
        "context_length": config.get("seq_length") or width,
        "feed_forward_length": 4 * width,
        "attention.head_count_kv": config["n_head"],
    }


BLOOM = Family(
    "bloom",
    "bloom",
    "BloomForCausalLM",
    {
        "embedding_length": "hidden_size",
        "block_count": "n_layer",
        "attention.head_count": "n_head",
        _LAYER: "layer_norm_epsilon",
        "vocab_size": "vocab_size",
    },
    _OLD_WHOLE | {"token_embd_norm": "transformer.word_embeddings_layernorm"},
    _OLD_LAYER | {"ffn_norm": "post_attention_layernorm"},
    layers="transformer.h",
    prefix="transformer.",
    fixed={"apply_residual_connection_post_layernorm": False},
    rotates=False,
    settled=True,
    told=_bloom,
    bonds=lambda config: by_head("self_attention.query_key_value", config["n_head"]),
)


def _mpt(config: Mapping[str, Any]) -> dict[str, Any]:
    attention = config["attn_config"]
    for name, usual in (("alibi", True), ("softmax_scale", None), ("qk_ln", False), ("prefix_lm", False)):
        if attention.get(name, usual) not in (usual, None):
            raise ValueError(f"attn_config.{name} is {attention[name]!r}; GGUF files of mpt always mean {usual!r}.")
    clip = attention.get("clip_qkv")
    return {
        "feed_forward_length": config["expansion_ratio"] * config["d_model"],
        "attention.max_alibi_bias": float(attention.get("alibi_bias_max", 8)),
        **({} if clip is None else {"attention.clamp_kqv": float(clip)}),
    }


def _as_mpt(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key = "mpt.attention.max_alibi_bias"
    attention: dict[str, Any] = {"alibi": True, "alibi_bias_max": int(number(key, metadata.get(key, 8.0)))}
    key = "mpt.attention.clamp_kqv"
    if metadata.get(key):
        attention["clip_qkv"] = number(key, metadata[key])
    key = "mpt.feed_forward_length"
    inner, width = number(key, metadata.get(key, 4 * config["d_model"])), config["d_model"]
    if inner % width:
        raise ValueError(f"{key}={inner} is no multiple of mpt.embedding_length={width}.")
    return {**config, "attn_config": attention, "expansion_ratio": inner // width}


MPT = Family(
    "mpt",
    "mpt",
    "MptForCausalLM",
    {
        "context_length": "max_seq_len",
        "embedding_length": "d_model",
        "block_count": "n_layers",
        "attention.head_count": "n_heads",
        _LAYER: "layer_norm_epsilon",
        "vocab_size": "vocab_size",
    },
    {"token_embd": "transformer.wte", "output_norm": "transformer.norm_f", "output": "lm_head"},
    {
        "attn_norm": "norm_1",
        "attn_qkv": "attn.Wqkv",
        "attn_output": "attn.out_proj",
        "ffn_norm": "norm_2",
        "ffn_up": "ffn.up_proj",
        "ffn_down": "ffn.down_proj",
    },
    layers="transformer.blocks",
    prefix="transformer.",
    fixed={"no_bias": True, "logit_scale": None},
    rotates=False,
    settled=True,
    told=_mpt,
    understood=_as_mpt,
)


def _starcoder(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"feed_forward_length": config["n_inner"] or 4 * config["n_embd"], "attention.head_count_kv": 1}


STARCODER = Family(
    "starcoder",
    "gpt_bigcode",
    "GPTBigCodeForCausalLM",
    {
        "context_length": "n_positions",
        "embedding_length": "n_embd",
        "block_count": "n_layer",
        "feed_forward_length": "n_inner",
        "attention.head_count": "n_head",
        _LAYER: "layer_norm_epsilon",
        "vocab_size": "vocab_size",
    },
    {
        "token_embd": "transformer.wte",
        "position_embd": "transformer.wpe",
        "output_norm": "transformer.ln_f",
        "output": "lm_head",
    },
    {
        "attn_norm": "ln_1",
        "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj",
        "ffn_norm": "ln_2",
        "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
    },
    layers="transformer.h",
    prefix="transformer.",
    fixed={
        "activation_function": "gelu_pytorch_tanh",
        "multi_query": True,
        "scale_attn_weights": True,
        "add_cross_attention": False,
    },
    rotates=False,
    dropped=(r"\.attn\.(masked_)?bias$",),
    settled=True,
    told=_starcoder,
)


OLDER = [FALCON, GPTNEOX, BLOOM, MPT, STARCODER]
