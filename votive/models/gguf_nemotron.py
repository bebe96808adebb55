"""Nemotron-H as GGUF files name it: layers that are a state space, attention, a net or a mixture. Tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .gguf_experts import SIGMOID
from .gguf_family import EXPERTS, Family, Shapes, number
from .gguf_hybrids import MAMBA2_FIXES, heads_of
from .gguf_states import attending
from .gguf_words import ATTENTION, without

_KV = "attention.head_count_kv"
_HEADS = without(ATTENTION, "attn_norm")


def _named_layers(config: dict[str, Any]) -> dict[str, Any]:
    return {**config, "num_hidden_layers": len(config["layers_block_type"])}


def _nemotron(config: Mapping[str, Any]) -> dict[str, Any]:
    kinds, mixed = config["layers_block_type"], "moe" in config["layers_block_type"]
    wide, name = (config["moe_intermediate_size"], "moe") if mixed else (config["intermediate_size"], "mlp")
    if mixed and "mlp" in kinds:
        raise ValueError("layers have nets and experts; GGUF files of nemotron_h have one kind.")
    heads = config["mamba_num_heads"]
    out = {
        "feed_forward_length": [wide if kind == name else 0 for kind in kinds],
        _KV: [config["num_key_value_heads"] if kind == "full_attention" else 0 for kind in kinds],
        "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"],
        "ssm.inner_size": heads * config["mamba_head_dim"],
        "ssm.time_step_rank": heads,
        "rope.scaling.finetuned": False,
    }
    if not mixed:
        return out
    return {
        **out,
        "expert_count": config["n_routed_experts"],
        "expert_used_count": config["num_experts_per_tok"],
        "expert_feed_forward_length": wide,
        "expert_shared_feed_forward_length": config["moe_shared_expert_intermediate_size"],
        "expert_shared_count": 1,
        "expert_weights_norm": config["norm_topk_prob"],
        "expert_weights_scale": float(config["routed_scaling_factor"]),
        "expert_group_count": config["n_group"],
        "expert_group_used_count": config["topk_group"],
        "expert_gating_func": SIGMOID,
        **({"moe_latent_size": config["moe_latent_size"]} if config["moe_latent_size"] else {}),
    }


def _as_nemotron(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    arch, layers = metadata["general.architecture"], config["num_hidden_layers"]
    places, shared = attending(metadata, arch, layers)
    nets = metadata.get(f"{arch}.feed_forward_length")
    nets = [nets] * layers if isinstance(nets, int) else nets
    if not isinstance(nets, list) or len(nets) != layers or any(type(n) is not int or n < 0 for n in nets):
        raise ValueError(f"{arch}.feed_forward_length is {nets!r}; the width of each layer's net is needed.")
    mixed = arch.endswith("_moe")
    net = "moe" if mixed else "mlp"
    kinds = ["full_attention" if i in places else net if nets[i] else "linear_attention" for i in range(layers)]
    inner, heads = heads_of(arch, metadata)
    told = {
        "layers_block_type": kinds,
        "num_key_value_heads": shared or config["num_attention_heads"],
        "mamba_num_heads": heads,
        "mamba_head_dim": inner // heads,
        "moe_intermediate_size" if mixed else "intermediate_size": max(nets) or 1,
        "use_bias": any(shapes(f"blk.{i}.ssm_in.bias") is not None for i in range(layers)),
        "mlp_bias": any(shapes(f"blk.{i}.{n}.bias") for i in range(layers) for n in ("ffn_up", "ffn_up_shexp")),
    }
    if mixed:
        for key, name in _NEMOTRON_EXPERTS.items():
            if f"{arch}.{key}" in metadata:
                told[name] = number(f"{arch}.{key}", metadata[f"{arch}.{key}"])
        told["norm_topk_prob"] = bool(metadata.get(f"{arch}.expert_weights_norm", False))
    return {**config, **told}


_NEMOTRON_EXPERTS = {
    "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "moe_shared_expert_intermediate_size",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_group_count": "n_group",
    "expert_group_used_count": "topk_group",
    "moe_latent_size": "moe_latent_size",
}
_NEMOTRON = {
    "ssm_in": "mixer.in_proj",
    "ssm_conv1d": "mixer.conv1d",
    "ssm_norm": "mixer.norm",
    "ssm_out": "mixer.out_proj",
    **{name: hf.replace("self_attn.", "mixer.") for name, hf in _HEADS.items()},
    "ffn_up": "mixer.up_proj",
    "ffn_down": "mixer.down_proj",
    "ffn_gate_inp": "mixer.gate",
    "ffn_latent_down": "mixer.fc1_latent_proj",
    "ffn_latent_up": "mixer.fc2_latent_proj",
    "ffn_up_exps": "mixer.experts.{e}.up_proj",
    "ffn_down_exps": "mixer.experts.{e}.down_proj",
    "ffn_up_shexp": "mixer.shared_experts.up_proj",
    "ffn_down_shexp": "mixer.shared_experts.down_proj",
}
_NEMOTRON_BARE = {
    "ssm_dt.bias": "mixer.dt_bias",
    "ssm_a": "mixer.A_log",
    "ssm_d": "mixer.D",
    "exp_probs_b.bias": "mixer.gate.e_score_correction_bias",
}


def _nemotron_family(architecture: str) -> Family:
    """Files with experts have an architecture of their own."""
    return Family(
        architecture,
        "nemotron_h",
        "NemotronHForCausalLM",
        {
            "context_length": "max_position_embeddings",
            "embedding_length": "hidden_size",
            "block_count": "num_hidden_layers",
            "attention.head_count": "num_attention_heads",
            "attention.key_length": "head_dim",
            "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
            "ssm.conv_kernel": "conv_kernel",
            "ssm.state_size": "ssm_state_size",
            "ssm.group_count": "n_groups",
            "vocab_size": "vocab_size",
        },
        {"token_embd": "model.embeddings", "output_norm": "model.norm_f", "output": "lm_head"},
        {"attn_norm": "norm", **_NEMOTRON},
        fixes=MAMBA2_FIXES | dict.fromkeys(("ffn_up_exps", "ffn_down_exps"), EXPERTS),
        fixed={
            "mlp_hidden_act": "relu2",
            "mamba_hidden_act": "silu",
            "use_conv_bias": True,
            "time_step_limit": [0.0, math.inf],
        },
        respelled=((r"^backbone\.", "model."),),
        dropped=(r"^mtp\.",),
        bare=_NEMOTRON_BARE,
        some=frozenset({*_NEMOTRON, *_NEMOTRON_BARE}),
        rotates=False,
        settled=True,
        prepared=_named_layers,
        told=_nemotron,
        understood=_as_nemotron,
        fits=lambda config: ("moe" in config["layers_block_type"]) is architecture.endswith("_moe"),
    )


NEMOTRON_H = _nemotron_family("nemotron_h")
NEMOTRON_H_MOE = _nemotron_family("nemotron_h_moe")
NEMOTRONS = [NEMOTRON_H, NEMOTRON_H_MOE]
