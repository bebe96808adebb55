"""Mixtures whose checkpoints have the weights of all experts in one tensor, as GGUF files name them. Tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gguf_bonds import halves_together
from .gguf_experts import LOCAL, some_dense
from .gguf_family import Family, Shapes, number
from .gguf_words import ATTENTION, KEYS, MIXTURE, NET, ROTARY, SILU, STACKED, WHOLE, without
from .stacked import Stacked

_NET = without(NET, "ffn_norm")
_LAYER = ATTENTION | {"ffn_norm": "post_attention_layernorm"}
_GRANITE = {
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
GRANITE_EXPERTS = {
    "ffn_gate_inp": "block_sparse_moe.router.layer",
    "ffn_gate_exps": "block_sparse_moe.experts.{e}.gate_proj",
    "ffn_up_exps": "block_sparse_moe.experts.{e}.up_proj",
    "ffn_down_exps": "block_sparse_moe.experts.{e}.down_proj",
}
GRANITE_FILES = Stacked(gate_up="input_linear.weight", down="output_linear.weight")
GRANITE_MOE = Family(
    "granitemoe",
    "granitemoe",
    "GraniteMoeForCausalLM",
    KEYS | LOCAL | _GRANITE,
    WHOLE,
    _LAYER | GRANITE_EXPERTS,
    fixes=ROTARY | STACKED,
    fixed=SILU | {"attention_bias": False},
    settled=True,
    stacked=GRANITE_FILES,
)
GRANITE_MOE_SHARED = Family(
    "granitemoe",
    "granitemoeshared",
    "GraniteMoeSharedForCausalLM",
    KEYS | LOCAL | _GRANITE | {"expert_shared_feed_forward_length": "shared_intermediate_size"},
    WHOLE,
    _LAYER | GRANITE_EXPERTS | {"ffn_down_shexp": "shared_mlp.output_linear"},
    fixes=ROTARY | STACKED,
    fixed=SILU | {"attention_bias": False},
    settled=True,
    stacked=GRANITE_FILES,
    some=frozenset({"ffn_down_shexp"}),
    bonds=lambda config: [halves_together("shared_mlp.input_linear", "ffn_gate_shexp", "ffn_up_shexp")],
    when=lambda metadata: bool(metadata.get("granitemoe.expert_shared_feed_forward_length")),
)


def _gpt_oss(config: Mapping[str, Any]) -> dict[str, Any]:
    usual = ["full_attention" if i % 2 else "sliding_attention" for i in range(config["num_hidden_layers"])]
    if config["layer_types"] != usual:
        raise ValueError("GGUF files of gpt-oss always mean windows in every other layer, from the first on.")
    if (config.get("rope_scaling") or {}).get("truncate"):
        raise ValueError("rope_scaling.truncate is true; GGUF files of gpt-oss always mean false.")
    return {"expert_feed_forward_length": config["intermediate_size"]}


def _as_gpt_oss(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key = "gpt-oss.expert_feed_forward_length"
    if "intermediate_size" not in config:
        config["intermediate_size"] = number(key, metadata.get(key))
    if config["rope_scaling"] is not None:
        config["rope_scaling"] = {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, **config["rope_scaling"]}
    return config


GPT_OSS = Family(
    "gpt-oss",
    "gpt_oss",
    "GptOssForCausalLM",
    KEYS | LOCAL | {"attention.sliding_window": "sliding_window"},
    WHOLE,
    ATTENTION | {"post_attention_norm": "post_attention_layernorm"} | MIXTURE | {"ffn_gate_inp": "mlp.router"},
    fixes=STACKED,
    fixed=SILU | {"attention_bias": True, "swiglu_alpha": 1.702, "swiglu_limit": 7.0},
    theta=150000.0,
    bare={"attn_sinks.weight": "self_attn.sinks"},
    settled=True,
    stacked=Stacked(gate_up="experts.gate_up_proj", down="experts.down_proj", transposed=True, alternating=True),
    told=_gpt_oss,
    understood=_as_gpt_oss,
)


def _llama4(config: Mapping[str, Any]) -> dict[str, Any]:
    layers, step = config["num_hidden_layers"], config["interleave_moe_layer_step"]
    if config["moe_layers"] != list(range(step - 1, layers, step)):
        raise ValueError(f"moe_layers is {config['moe_layers']}; GGUF files of llama4 mean one in every {step} layers.")
    if config["no_rope_layers"] != [int((i + 1) % 4 != 0) for i in range(layers)]:
        raise ValueError("GGUF files of llama4 always mean that every fourth layer is not rotated.")
    if config["layer_types"] != ["chunked_attention" if n else "full_attention" for n in config["no_rope_layers"]]:
        raise ValueError("GGUF files of llama4 always mean chunks in the layers that are rotated.")
    if config["use_qk_norm"] is not (config["num_local_experts"] != 128):
        raise ValueError("GGUF files of llama4 mean normed queries and keys unless there are 128 experts.")
    return {"expert_feed_forward_length": config["intermediate_size"]}


def _as_llama4(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key = "llama4.expert_feed_forward_length"
    inner = number(key, metadata.get(key, config["intermediate_size_mlp"]))
    return {**config, "intermediate_size": inner, "use_qk_norm": config["num_local_experts"] != 128}


LLAMA4 = Family(
    "llama4",
    "llama4_text",
    "Llama4ForCausalLM",
    KEYS
    | LOCAL
    | {"feed_forward_length": "intermediate_size_mlp", "interleave_moe_layer_step": "interleave_moe_layer_step"},
    WHOLE,
    _LAYER
    | {name: hf.replace("mlp.", "feed_forward.") for name, hf in (_NET | MIXTURE).items()}
    | {"ffn_gate_inp": "feed_forward.router"}
    | {f"ffn_{n}_shexp": f"feed_forward.shared_expert.{n}_proj" for n in ("gate", "up", "down")},
    fixes=STACKED,
    fixed=SILU
    | {
        "attention_bias": False,
        "attention_chunk_size": 8192,
        "attn_temperature_tuning": True,
        "floor_scale": 8192,
        "attn_scale": 0.1,
    },
    some=some_dense(),
    settled=True,
    stacked=Stacked(transposed=True),
    told=_llama4,
    understood=_as_llama4,
)
STACKS = [GRANITE_MOE, GRANITE_MOE_SHARED, GPT_OSS, LLAMA4]
