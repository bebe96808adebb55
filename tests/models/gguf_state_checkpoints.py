"""Small checkpoints of families with states that GGUF knows, as names and shapes written down by hand."""

from __future__ import annotations

import math
from typing import Any

Shapes = dict[str, tuple[int, ...]]

_SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 3, "bos_token_id": 1, "eos_token_id": 2}
_MAMBA = {**_SMALL, "state_size": 4, "conv_kernel": 4, "layer_norm_epsilon": 1e-6}
_HEADS = {**_SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
STATES: dict[str, dict[str, Any]] = {
    "mamba": {**_MAMBA, "intermediate_size": 64, "time_step_rank": 3, "tie_word_embeddings": True},
    "falcon_mamba": {**_MAMBA, "intermediate_size": 64, "time_step_rank": 2, "tie_word_embeddings": False},
    "mamba2": {
        **_MAMBA, "num_heads": 8, "head_dim": 8, "n_groups": 2, "time_step_limit": [0.0, math.inf],
        "tie_word_embeddings": False,
    },
    "jamba": {
        **_HEADS, "rms_norm_eps": 1e-6, "max_position_embeddings": 128, "num_experts": 2, "num_experts_per_tok": 1,
        "attn_layer_period": 3, "attn_layer_offset": 1, "expert_layer_period": 3, "expert_layer_offset": 2,
        "mamba_d_state": 4, "mamba_d_conv": 4, "mamba_expand": 3, "mamba_dt_rank": 5, "tie_word_embeddings": False,
    },
    "lfm2": {
        **_HEADS, "norm_eps": 1e-6, "max_position_embeddings": 128, "conv_L_cache": 3, "rope_theta": 5e5,
        "layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False,
        "tie_word_embeddings": True,
    },
}  # fmt: skip


def state_shapes(kind: str, config: dict[str, Any]) -> Shapes:
    if kind == "jamba":
        return _jamba()
    return _lfm2() if kind == "lfm2" else _solo(kind, config)


def _solo(kind: str, config: dict[str, Any]) -> Shapes:
    out: Shapes = {"backbone.embeddings.weight": (64, 32), "backbone.norm_f.weight": (32,)}
    if not config["tie_word_embeddings"]:
        out["lm_head.weight"] = (64, 32)
    for i in range(config["num_hidden_layers"]):
        p = f"backbone.layers.{i}."
        out |= {p + "norm.weight": (32,), p + "mixer.out_proj.weight": (32, 64)}
        if kind == "mamba2":
            out |= _conv(p + "mixer.", 64 + 2 * 2 * 4)
            out |= {p + "mixer.in_proj.weight": (64 + 80 + 8, 32), p + "mixer.norm.weight": (64,)}
            out |= {p + f"mixer.{name}": (8,) for name in ("A_log", "D", "dt_bias")}
        else:
            out |= _space(p + "mixer.", 64, config["time_step_rank"])
    return out


def _conv(p: str, channels: int) -> Shapes:
    return {p + "conv1d.weight": (channels, 1, 4), p + "conv1d.bias": (channels,)}


def _space(p: str, inner: int, rank: int) -> Shapes:
    return {
        **_conv(p, inner),
        p + "in_proj.weight": (2 * inner, 32),
        p + "x_proj.weight": (rank + 8, inner),
        p + "dt_proj.weight": (inner, rank),
        p + "dt_proj.bias": (inner,),
        p + "A_log": (inner, 4),
        p + "D": (inner,),
        p + "out_proj.weight": (32, inner),
    }


def _attention(p: str, out: str) -> Shapes:
    return {
        p + "q_proj.weight": (32, 32),
        p + "k_proj.weight": (16, 32),
        p + "v_proj.weight": (16, 32),
        p + out: (32, 32),
    }


def _net(p: str, gate: str = "gate_proj", up: str = "up_proj", down: str = "down_proj") -> Shapes:
    return {f"{p}{gate}.weight": (48, 32), f"{p}{up}.weight": (48, 32), f"{p}{down}.weight": (32, 48)}


def _jamba() -> Shapes:
    out: Shapes = {"model.embed_tokens.weight": (64, 32), "model.final_layernorm.weight": (32,)}
    out["lm_head.weight"] = (64, 32)
    for i in range(3):
        p = f"model.layers.{i}."
        out |= {p + "input_layernorm.weight": (32,), p + "pre_ff_layernorm.weight": (32,)}
        if i == 1:
            out |= _attention(p + "self_attn.", "o_proj.weight")
        else:
            out |= _space(p + "mamba.", 96, 5)
            out |= {p + f"mamba.{n}_layernorm.weight": (size,) for n, size in (("dt", 5), ("b", 4), ("c", 4))}
        if i == 2:
            out |= {p + "feed_forward.router.weight": (2, 32)}
            out |= _net(p + "feed_forward.experts.0.") | _net(p + "feed_forward.experts.1.")
        else:
            out |= _net(p + "feed_forward.")
    return out


def _lfm2() -> Shapes:
    out: Shapes = {"model.embed_tokens.weight": (64, 32), "model.embedding_norm.weight": (32,)}
    for i in range(3):
        p = f"model.layers.{i}."
        out |= {p + "operator_norm.weight": (32,), p + "ffn_norm.weight": (32,)}
        out |= _net(p + "feed_forward.", "w1", "w3", "w2")
        if i == 1:
            out |= _attention(p + "self_attn.", "out_proj.weight")
            out |= {p + "self_attn.q_layernorm.weight": (8,), p + "self_attn.k_layernorm.weight": (8,)}
        else:
            out |= {p + "conv.conv.weight": (32, 1, 3), p + "conv.in_proj.weight": (96, 32)}
            out[p + "conv.out_proj.weight"] = (32, 32)
    return out
