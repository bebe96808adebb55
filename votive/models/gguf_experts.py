"""Mixtures of experts as GGUF files name them, beside the first ones. Tables, and what follows from numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gguf_dense import PARTIAL, ntk_base
from .gguf_family import ROW, Family, Shapes, number
from .gguf_words import (
    ATTENTION,
    EXPERT_KEYS,
    HEAD_NORMS,
    KEYS,
    MIXTURE,
    NET,
    SILU,
    STACKED,
    UNBIASED,
    WHOLE,
    unstretched,
    windowed,
    windows,
    without,
)

SOFTMAX, SIGMOID = 1, 2  # llama.cpp's numbers of what routers do with scores
LOCAL = {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}
ROUTED = EXPERT_KEYS | {
    "expert_count": "n_routed_experts",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_scale": "routed_scaling_factor",
    "leading_dense_block_count": "first_k_dense_replace",
}
GROUPS = {"expert_group_count": "n_group", "expert_group_used_count": "topk_group"}
SHARED_EXPERTS = {f"ffn_{n}_shexp": f"mlp.shared_experts.{n}_proj" for n in ("gate", "up", "down")}
_NET = without(NET, "ffn_norm")
_LAYER = ATTENTION | {"ffn_norm": "post_attention_layernorm"}
_OLD_EXPERTS = {
    "ffn_gate_inp": "block_sparse_moe.gate",
    "ffn_gate_exps": "block_sparse_moe.experts.{e}.w1",
    "ffn_down_exps": "block_sparse_moe.experts.{e}.w2",
    "ffn_up_exps": "block_sparse_moe.experts.{e}.w3",
}
CORRECTION = {"exp_probs_b.bias": "mlp.gate.e_score_correction_bias"}


def some_dense(*more: str) -> frozenset[str]:
    """Names that only layers with experts have, or only those without.

    >>> from votive.models.gguf_experts import some_dense
    >>> "ffn_up_exps" in some_dense()
    True
    """
    return frozenset({*_NET, *MIXTURE, *SHARED_EXPERTS, *CORRECTION, *more})


def sigmoids(config: Mapping[str, Any]) -> dict[str, Any]:
    """What files say of routers that choose by sigmoids.

    >>> from votive.models.gguf_experts import sigmoids
    >>> sigmoids({"norm_topk_prob": True})
    {'expert_gating_func': 2, 'expert_weights_norm': True}
    """
    return {"expert_gating_func": SIGMOID, "expert_weights_norm": bool(config["norm_topk_prob"])}


def normed(arch: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Whether weights of experts add up to one; a missing key means that they do not.

    >>> from votive.models.gguf_experts import normed
    >>> normed("dots1", {"dots1.expert_weights_norm": True})
    {'norm_topk_prob': True}
    """
    return {"norm_topk_prob": bool(metadata.get(f"{arch}.expert_weights_norm", False))}


OLMOE = Family(
    "olmoe",
    "olmoe",
    "OlmoeForCausalLM",
    KEYS | without(EXPERT_KEYS, "expert_feed_forward_length"),
    WHOLE,
    _LAYER | HEAD_NORMS | MIXTURE,
    fixes=STACKED,
    fixed=SILU | {"attention_bias": False, "clip_qkv": None, "norm_topk_prob": False},
    settled=True,
)


def _as_phimoe(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key = "phimoe.rope.scaling.original_context_length"
    if key in metadata:
        config["original_max_position_embeddings"] = number(key, metadata[key])
    return {
        **config,
        "attention_bias": shapes("blk.0.attn_q.bias") is not None,
        "lm_head_bias": shapes("output.bias") is not None,
    }


def _phimoe(config: dict[str, Any]) -> dict[str, Any]:
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "longrope":
        raise ValueError("rope_scaling of the type 'longrope' cannot be written to GGUF files of phimoe.")
    return config


PHIMOE = Family(
    "phimoe",
    "phimoe",
    "PhimoeForCausalLM",
    KEYS | LOCAL | {"attention.sliding_window": "sliding_window"},
    WHOLE,
    _LAYER | _OLD_EXPERTS,
    fixes=STACKED,
    fixed=SILU,
    settled=True,
    prepared=_phimoe,
    understood=_as_phimoe,
)


def _as_glm(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {
        **config,
        **normed("glm4moe", metadata),
        "attention_bias": shapes("blk.0.attn_q.bias") is not None,
        "use_qk_norm": shapes("blk.0.attn_q_norm.weight") is not None,
    }


# Its net's norm is called by what stands before it.
GLM4_MOE = Family(
    "glm4moe",
    "glm4_moe",
    "Glm4MoeForCausalLM",
    KEYS | ROUTED | GROUPS,
    WHOLE,
    ATTENTION | {"post_attention_norm": "post_attention_layernorm"} | HEAD_NORMS | _NET | MIXTURE | SHARED_EXPERTS,
    fixes=STACKED,
    fixed=SILU,
    bare=CORRECTION,
    some=some_dense(*HEAD_NORMS),
    partial=PARTIAL,
    settled=True,
    told=sigmoids,
    understood=_as_glm,
)


def _dots(config: Mapping[str, Any]) -> dict[str, Any]:
    if config.get("sliding_window") and "sliding_attention" in config["layer_types"]:
        raise ValueError("layers of this model see a window; GGUF files of dots1 always mean that all see all.")
    return sigmoids(config)


DOTS1 = Family(
    "dots1",
    "dots1",
    "Dots1ForCausalLM",
    KEYS | ROUTED | GROUPS,
    WHOLE,
    _LAYER | HEAD_NORMS | _NET | MIXTURE | SHARED_EXPERTS,
    fixes=STACKED,
    fixed=SILU | {"attention_bias": False},
    bare=CORRECTION,
    some=some_dense(),
    settled=True,
    told=_dots,
    understood=lambda config, metadata, shapes: {**config, **normed("dots1", metadata), "sliding_window": None},
)


def _exaone(config: Mapping[str, Any]) -> dict[str, Any]:
    first, kinds = config["first_k_dense_replace"], config["mlp_layer_types"]
    if kinds != ["dense" if i < first else "sparse" for i in range(len(kinds))]:
        raise ValueError(f"mlp_layer_types is {kinds}; GGUF files of exaone-moe mean that the first ones are dense.")
    wide = config["moe_intermediate_size"] * config["num_shared_experts"]
    return {**sigmoids(config), **windows(config), **unstretched(config), "expert_shared_feed_forward_length": wide}


def _as_exaone(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    kinds = windowed("exaone-moe", config, metadata) or ["full_attention"] * config["num_hidden_layers"]
    return {**config, **normed("exaone-moe", metadata), "layer_types": kinds}


EXAONE_MOE = Family(
    "exaone-moe",
    "exaone_moe",
    "ExaoneMoeForCausalLM",
    KEYS
    | ROUTED
    | GROUPS
    | {"expert_count": "num_experts", "expert_shared_count": "num_shared_experts"}
    | {"attention.sliding_window": "sliding_window"},
    WHOLE,
    _LAYER | HEAD_NORMS | _NET | MIXTURE | SHARED_EXPERTS,
    fixes=STACKED,
    fixed=SILU,
    bare={"exp_probs_b.bias": "mlp.e_score_correction_bias"},
    some=some_dense(),
    settled=True,
    told=_exaone,
    understood=_as_exaone,
)


def _minimax(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"expert_gating_func": SIGMOID, "expert_feed_forward_length": config["intermediate_size"]}


def _as_minimax(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {**config, "rotary_dim": int(config["head_dim"] * config[PARTIAL])}


MINIMAX_M2 = Family(
    "minimax-m2",
    "minimax_m2",
    "MiniMaxM2ForCausalLM",
    KEYS | LOCAL,
    WHOLE,
    _LAYER | HEAD_NORMS | _OLD_EXPERTS,
    fixes=STACKED,
    fixed=SILU | {"attention_bias": False},
    bare={"exp_probs_b.bias": "block_sparse_moe.e_score_correction_bias"},
    partial=PARTIAL,
    settled=True,
    told=_minimax,
    understood=_as_minimax,
)


def _ernie(config: Mapping[str, Any]) -> dict[str, Any]:
    layers, last = config["num_hidden_layers"], config["moe_layer_end_index"]
    if last not in (-1, layers - 1):
        raise ValueError(f"moe_layer_end_index is {last}; GGUF files of ernie4_5-moe mean the last layer.")
    shared = config["moe_num_shared_experts"] * config["moe_intermediate_size"]
    return {"expert_shared_feed_forward_length": shared, "expert_gating_func": SOFTMAX}


ERNIE_MOE = Family(
    "ernie4_5-moe",
    "ernie4_5_moe",
    "Ernie4_5_MoeForCausalLM",
    KEYS
    | {
        "expert_count": "moe_num_experts",
        "expert_used_count": "moe_k",
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_shared_count": "moe_num_shared_experts",
        "interleave_moe_layer_step": "moe_layer_interval",
        "leading_dense_block_count": "moe_layer_start_index",
    },
    WHOLE,
    _LAYER | _NET | MIXTURE | SHARED_EXPERTS,
    fixes=STACKED | {"exp_probs_b.bias": ROW},
    fixed=SILU | {"use_bias": False},
    bare={"exp_probs_b.bias": "mlp.moe_statics.e_score_correction_bias"},
    some=some_dense(),
    settled=True,
    told=_ernie,
)


def _hunyuan(config: Mapping[str, Any]) -> dict[str, Any]:
    chosen, inner = config["moe_topk"], config["intermediate_size"]
    return {
        **unstretched(config),
        "expert_used_count": chosen[0] if isinstance(chosen, list) else chosen,
        "expert_feed_forward_length": inner,
        "expert_shared_feed_forward_length": inner,
        "expert_shared_count": 1,
    }


def _as_hunyuan(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key = "hunyuan-moe.expert_used_count"
    return {**config, "moe_topk": number(key, metadata.get(key))}


HUNYUAN_MOE = Family(
    "hunyuan-moe",
    "hunyuan_v1_moe",
    "HunYuanMoEV1ForCausalLM",
    KEYS | {"expert_count": "num_experts"},
    WHOLE,
    _LAYER
    | {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"}
    | MIXTURE
    | {"ffn_gate_inp": "mlp.gate.wg"}
    | {f"ffn_{n}_shexp": f"mlp.shared_mlp.{n}_proj" for n in ("gate", "up", "down")},
    fixes=STACKED,
    fixed=UNBIASED,
    settled=True,
    prepared=ntk_base,
    told=_hunyuan,
    understood=_as_hunyuan,
)


MIXTURES = [OLMOE, PHIMOE, GLM4_MOE, DOTS1, EXAONE_MOE, MINIMAX_M2, ERNIE_MOE, HUNYUAN_MOE]
