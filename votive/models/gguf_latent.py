"""Decoders with latent attention as GGUF files name them: DeepSeek V2 and V3, MiniCPM 3. Tables.

Newer files have what makes keys and values apart by heads; older ones have it as checkpoints do, and are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gguf_bonds import latent_heads
from .gguf_experts import CORRECTION, GROUPS, ROUTED, SHARED_EXPERTS, SIGMOID, SOFTMAX, normed, sigmoids, some_dense
from .gguf_family import Family, Shapes, number
from .gguf_words import KEYS, MIXTURE, NET, SILU, STACKED, UNBIASED, WHOLE, without

_NET = without(NET, "ffn_norm")
_LATENT = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_a_norm": "self_attn.q_a_layernorm",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_a_norm": "self_attn.kv_a_layernorm",
    "attn_kv_b": "self_attn.kv_b_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
}
_QUERIES = ("attn_q", "attn_q_a", "attn_q_a_norm", "attn_q_b", "attn_kv_b")
_LATENT_KEYS = without(KEYS, "attention.head_count_kv", "attention.key_length") | {
    "attention.q_lora_rank": "q_lora_rank",
    "attention.kv_lora_rank": "kv_lora_rank",
}


def _latent_scaling(config: Mapping[str, Any]) -> dict[str, Any]:
    """The stretching of rotations, with what it does to scores."""
    found = config.get("rope_scaling") or {}
    weight, other = found.get("mscale_all_dim"), found.get("mscale")
    if (weight or other) and weight != other:
        raise ValueError(f"rope_scaling has mscale={other} and mscale_all_dim={weight}; GGUF files have one for both.")
    return {"rope.scaling.yarn_log_multiplier": 0.1 * weight} if weight else {}


def _deepseek(config: Mapping[str, Any]) -> dict[str, Any]:
    rank, turned = config["kv_lora_rank"], config["qk_rope_head_dim"]
    own = config["qk_nope_head_dim"] + turned
    if config["model_type"] == "deepseek_v3":
        more = sigmoids(config)
    else:
        more = {"expert_gating_func": SOFTMAX}
        if config["topk_method"] == "greedy" and (config["n_group"] or 1) > 1:
            raise ValueError("topk_method is 'greedy'; GGUF files of deepseek2 with groups mean that they limit it.")
    return {
        **_latent_scaling(config),
        **more,
        "attention.head_count_kv": 1,
        "attention.key_length": rank + turned,
        "attention.value_length": rank,
        "attention.key_length_mla": own,
        "attention.value_length_mla": config["v_head_dim"],
        "rope.dimension_count": turned,
    }


def _lengths(config: dict[str, Any], metadata: Mapping[str, Any], arch: str) -> dict[str, Any]:
    """The features of queries and values, which older files have where newer ones have those of what is kept."""
    out = {}
    for name, what in (("key", "qk_nope_head_dim"), ("value", "v_head_dim")):
        key = f"{arch}.attention.{name}_length_mla"
        if key not in metadata:
            key = f"{arch}.attention.{name}_length"
        out[what] = number(key, metadata.get(key))
    key = f"{arch}.rope.dimension_count"
    out["qk_rope_head_dim"] = number(key, metadata.get(key))
    out["qk_nope_head_dim"] -= out["qk_rope_head_dim"]
    if out["qk_nope_head_dim"] < 0:
        raise ValueError(f"{key} is {out['qk_rope_head_dim']}, more than a query has.")
    config.pop("head_dim", None)
    return {**config, **out, "num_key_value_heads": config["num_attention_heads"]}


def _as_deepseek(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    config = {"q_lora_rank": None, **_lengths(config, metadata, "deepseek2")}
    key = "deepseek2.rope.scaling.yarn_log_multiplier"
    if config["rope_scaling"] is not None and metadata.get(key):
        weight = float(f"{number(key, metadata[key]) * 10:.6g}")
        config["rope_scaling"] |= {"mscale": weight, "mscale_all_dim": weight}
    if config["model_type"] == "deepseek_v3":
        return {**config, **normed("deepseek2", metadata)}
    grouped = (config.get("n_group") or 1) > 1
    return {**config, "topk_method": "group_limited_greedy" if grouped else "greedy"}


def _interleaved(config: dict[str, Any]) -> dict[str, Any]:
    if not config.get("rope_interleave", True):
        raise ValueError("rope_interleave is false; GGUF files of deepseek2 always mean pairs of neighbours.")
    return config


DEEPSEEK_V2 = Family(
    "deepseek2",
    "deepseek_v2",
    "DeepseekV2ForCausalLM",
    _LATENT_KEYS | ROUTED | GROUPS,
    WHOLE,
    _LATENT | _NET | MIXTURE | SHARED_EXPERTS,
    fixes=STACKED,
    fixed=SILU | {"attention_bias": False, "mlp_bias": False, "norm_topk_prob": False},
    some=some_dense(*_QUERIES),
    settled=True,
    told=_deepseek,
    understood=_as_deepseek,
    bonds=latent_heads,
    when=lambda metadata: metadata.get("deepseek2.expert_gating_func", SOFTMAX) == SOFTMAX,
)
DEEPSEEK_V3 = Family(
    "deepseek2",
    "deepseek_v3",
    "DeepseekV3ForCausalLM",
    _LATENT_KEYS | ROUTED | GROUPS,
    WHOLE,
    _LATENT | _NET | MIXTURE | SHARED_EXPERTS,
    fixes=STACKED,
    fixed=SILU | {"attention_bias": False},
    bare=CORRECTION,
    some=some_dense(*_QUERIES),
    settled=True,
    prepared=_interleaved,
    told=_deepseek,
    understood=_as_deepseek,
    bonds=latent_heads,
    when=lambda metadata: metadata.get("deepseek2.expert_gating_func") == SIGMOID,
)


def _minicpm3(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "attention.key_length": config["qk_nope_head_dim"] + config["qk_rope_head_dim"],
        "attention.value_length": config["v_head_dim"],
        "attention.head_count_kv": config["num_attention_heads"],
        "rope.dimension_count": config["qk_rope_head_dim"],
    }


def _as_minicpm3(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    kept, rank = shapes("blk.0.attn_kv_b.weight"), config["num_attention_heads"]
    if kept is not None:  # the converter leaves values' lengths out
        key = "minicpm3.attention.key_length"
        turned = number("minicpm3.rope.dimension_count", metadata.get("minicpm3.rope.dimension_count"))
        fixed = number(key, metadata.get(key)) - turned
        metadata = {**metadata, "minicpm3.attention.value_length": kept[0] // rank - fixed}
    return {"q_lora_rank": None, **_lengths(config, metadata, "minicpm3")}


# Its factors are known to whoever reads such files.
MINICPM3 = Family(
    "minicpm3",
    "minicpm3",
    "MiniCPM3ForCausalLM",
    _LATENT_KEYS,
    WHOLE,
    _LATENT | _NET,
    fixed=UNBIASED | {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256},
    some=frozenset(set(_QUERIES) - {"attn_kv_b"}),
    settled=True,
    told=_minicpm3,
    understood=_as_minicpm3,
)


LATENT = [DEEPSEEK_V2, DEEPSEEK_V3, MINICPM3]
