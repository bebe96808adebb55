"""Decoders whose layers differ in kind, newer ones: Mamba 2, the delta rule, experts among them. Tables.

Which layer is what, a file says by the heads of keys of each layer, the width of its net, or every how many it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .gguf_bonds import delta_rule, halves_together, scaled
from .gguf_dense import PARTIAL
from .gguf_experts import SIGMOID, some_dense
from .gguf_family import COLUMN, DECAY, DECAYS, FILTER, GROUPED, ONE, ROW, Bond, Family, Shapes, number
from .gguf_stacks import GRANITE_EXPERTS, GRANITE_FILES
from .gguf_states import LFM2, attending
from .gguf_words import ATTENTION, EXPERT_KEYS, HEAD_NORMS, KEYS, MIXTURE, ROTARY, SILU, STACKED, WHOLE, without

_KV = "attention.head_count_kv"
_MAMBA_KEYS = {
    "ssm.conv_kernel": "mamba_d_conv",
    "ssm.state_size": "mamba_d_state",
    "ssm.group_count": "mamba_n_groups",
}
_MAMBA = {
    "ssm_in": "mamba.in_proj",
    "ssm_conv1d": "mamba.conv1d",
    "ssm_norm": "mamba.norm",
    "ssm_out": "mamba.out_proj",
}
_MAMBA_BARE = {"ssm_dt.bias": "mamba.dt_bias", "ssm_a": "mamba.A_log", "ssm_d": "mamba.D"}
MAMBA2_FIXES = {"ssm_conv1d": FILTER, "ssm_a": DECAYS, "ssm_d": COLUMN, "ssm_norm": GROUPED}
_MAMBA_FIXED = {"mamba_conv_bias": True, "mamba_proj_bias": False, "time_step_limit": [0.0, math.inf]}
_HEADS = without(ATTENTION, "attn_norm")
_KINDS = ("full_attention", "linear_attention")


def _spaces(config: Mapping[str, Any], inner: int) -> dict[str, Any]:
    heads = config["mamba_n_heads"]
    if heads * config["mamba_d_head"] != inner:
        raise ValueError(f"mamba_n_heads={heads} of mamba_d_head={config['mamba_d_head']} are not {inner} channels.")
    return {"ssm.inner_size": inner, "ssm.time_step_rank": heads}


def heads_of(arch: str, metadata: Mapping[str, Any]) -> tuple[int, int]:
    """The channels of a state space, and its heads.

    >>> from votive.models.gguf_hybrids import heads_of
    >>> heads_of("mamba2", {"mamba2.ssm.inner_size": 64, "mamba2.ssm.time_step_rank": 8})
    (64, 8)
    """
    inner, heads = (number(key, metadata.get(key)) for key in (f"{arch}.ssm.inner_size", f"{arch}.ssm.time_step_rank"))
    if inner % heads:
        raise ValueError(f"{arch}.ssm.inner_size={inner} does not split into {arch}.ssm.time_step_rank={heads} heads.")
    return inner, heads


def _by_layer(config: Mapping[str, Any], kinds: list[str]) -> list[int]:
    if "linear_attention" not in kinds:
        raise ValueError("no layer of this model has a state; GGUF files of granitehybrid have some.")
    return [config["num_key_value_heads"] if kind == "full_attention" else 0 for kind in kinds]


def _hybrid(config: Mapping[str, Any]) -> dict[str, Any]:
    rotates = config["position_embedding_type"] == "rope"
    return {
        **_spaces(config, config["mamba_expand"] * config["hidden_size"]),
        _KV: _by_layer(config, config["layer_types"]),
        "rope.scaling.finetuned": rotates,
        "expert_shared_feed_forward_length": config["shared_intermediate_size"],
    }


def _spaced(arch: str, config: dict[str, Any], metadata: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A configuration with its state space, and the types of its layers."""
    layers = config["num_hidden_layers"]
    places, shared = attending(metadata, arch, layers)
    inner, heads = heads_of(arch, metadata)
    if inner % config["hidden_size"]:
        raise ValueError(f"{arch}.ssm.inner_size={inner} is no multiple of {arch}.embedding_length.")
    told = {
        "num_key_value_heads": shared or config["num_attention_heads"],
        "mamba_n_heads": heads,
        "mamba_d_head": inner // heads,
        "mamba_expand": inner // config["hidden_size"],
    }
    return {**config, **told}, [_KINDS[i not in places] for i in range(layers)]


def _as_hybrid(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    config, kinds = _spaced("granitehybrid", config, metadata)
    dense = shapes("blk.0.ffn_up.weight")
    if dense is not None:
        config |= {"num_local_experts": 0, "shared_intermediate_size": dense[0]}
    rotates = metadata.get("granitehybrid.rope.scaling.finetuned", False)
    return {**config, "layer_types": kinds, "position_embedding_type": "rope" if rotates else None}


def _hybrid_names(config: Mapping[str, Any]) -> dict[str, str]:
    return {f"ffn_down{_end(config)}": "shared_mlp.output_linear"}


def _end(config: Mapping[str, Any]) -> str:
    return "_shexp" if config.get("num_local_experts") else ""


def _hybrid_nets(config: Mapping[str, Any]) -> list[Bond]:
    end = _end(config)
    return [halves_together("shared_mlp.input_linear", f"ffn_gate{end}", f"ffn_up{end}")]


GRANITE_HYBRID = Family(
    "granitehybrid",
    "granitemoehybrid",
    "GraniteMoeHybridForCausalLM",
    without(KEYS, _KV)
    | {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}
    | {"expert_shared_feed_forward_length": "shared_intermediate_size"}
    | {"attention.scale": "attention_multiplier", "embedding_scale": "embedding_multiplier"}
    | {"residual_scale": "residual_multiplier", "logit_scale": "logits_scaling"}
    | _MAMBA_KEYS,
    WHOLE,
    ATTENTION | {"ffn_norm": "post_attention_layernorm"} | _MAMBA | GRANITE_EXPERTS,
    fixes=ROTARY | STACKED | MAMBA2_FIXES,
    fixed=SILU | {"attention_bias": False} | _MAMBA_FIXED,
    bare=_MAMBA_BARE,
    some=some_dense(*_HEADS, *_MAMBA, *_MAMBA_BARE, "ffn_down_shexp"),
    settled=True,
    stacked=GRANITE_FILES,
    told=_hybrid,
    understood=_as_hybrid,
    variant=_hybrid_names,
    bonds=_hybrid_nets,
    when=lambda metadata: "granitehybrid.attention.scale" in metadata,
)


def _bamba(config: Mapping[str, Any]) -> dict[str, Any]:
    here = config["attn_layer_indices"] or ()
    kinds = [_KINDS[i not in here] for i in range(config["num_hidden_layers"])]
    return {
        **_spaces(config, config["mamba_expand"] * config["hidden_size"]),
        _KV: _by_layer(config, kinds),
        "rope.scaling.finetuned": True,
    }


def _as_bamba(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    config, kinds = _spaced("granitehybrid", config, metadata)
    return {**config, "attn_layer_indices": [i for i, kind in enumerate(kinds) if kind == _KINDS[0]]}


_FORWARD = {f"ffn_{n}": f"feed_forward.{n}_proj" for n in ("gate", "up", "down")} | {"ffn_norm": "pre_ff_layernorm"}
BAMBA = Family(
    "granitehybrid",
    "bamba",
    "BambaForCausalLM",
    without(KEYS, _KV) | _MAMBA_KEYS,
    WHOLE | {"output_norm": "model.final_layernorm"},
    ATTENTION | _FORWARD | _MAMBA,
    fixes=ROTARY | MAMBA2_FIXES,
    fixed=SILU | {"attention_bias": False, "mlp_bias": False} | _MAMBA_FIXED,
    bare=_MAMBA_BARE,
    some=frozenset({*_HEADS, *_MAMBA, *_MAMBA_BARE}),
    partial=PARTIAL,
    settled=True,
    told=_bamba,
    understood=_as_bamba,
    when=lambda metadata: "granitehybrid.attention.scale" not in metadata,
)


def _falcon(config: Mapping[str, Any]) -> dict[str, Any]:
    inner = config["mamba_d_ssm"] or config["mamba_expand"] * config["hidden_size"]
    if config["mamba_rms_norm"] and config["mamba_norm_before_gate"]:
        raise ValueError("mamba_norm_before_gate is true; GGUF files of falcon-h1 always mean norms behind the gate.")
    if config["tie_word_embeddings"] and config["lm_head_multiplier"] != config["embedding_multiplier"]:
        raise ValueError("the head is the table of tokens, but their multipliers differ; GGUF files have one for both.")
    return _spaces(config, inner)


def _as_falcon(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """Everything is multiplied already."""
    inner, heads = heads_of("falcon-h1", metadata)
    each = ("lm_head", "embedding", "key", "attention_in", "attention_out", "ssm_in", "ssm_out")
    return {
        **config,
        **{f"{name}_multiplier": 1.0 for name in each},
        "mlp_multipliers": [1.0] * 2,
        "ssm_multipliers": [1.0] * 5,
        "mamba_n_heads": heads,
        "mamba_d_head": inner // heads,
        "mamba_d_ssm": inner,
        "mamba_rms_norm": shapes("blk.0.ssm_norm.weight") is not None,
        "mamba_norm_before_gate": False,
    }


def _falcon_scales(config: Mapping[str, Any]) -> list[Bond]:
    if "mamba_n_groups" not in config:
        return []
    inner = config.get("mamba_d_ssm") or config["mamba_expand"] * config["hidden_size"]
    states, first = config["mamba_n_groups"] * config["mamba_d_state"], config["ssm_in_multiplier"]
    counts = (inner, inner, states, states, config["mamba_n_heads"])
    rows = [first * m for m, count in zip(config["ssm_multipliers"], counts, strict=True) for _ in range(count)]
    into, (gate, down) = config["attention_in_multiplier"], config["mlp_multipliers"]
    return [
        scaled("token_embd", "model.embed_tokens", config["embedding_multiplier"], whole=True),
        scaled("output", "lm_head", config["lm_head_multiplier"], whole=True, optional=True),
        scaled("attn_q", "self_attn.q_proj", into),
        scaled("attn_k", "self_attn.k_proj", into * config["key_multiplier"]),
        scaled("attn_v", "self_attn.v_proj", into),
        scaled("attn_output", "self_attn.o_proj", config["attention_out_multiplier"]),
        scaled("ssm_in", "mamba.in_proj", rows),
        scaled("ssm_out", "mamba.out_proj", config["ssm_out_multiplier"]),
        scaled("ffn_gate", "feed_forward.gate_proj", gate),
        scaled("ffn_down", "feed_forward.down_proj", down),
    ]


FALCON_H1 = Family(
    "falcon-h1",
    "falcon_h1",
    "FalconH1ForCausalLM",
    KEYS | _MAMBA_KEYS,
    WHOLE | {"output_norm": "model.final_layernorm"},
    ATTENTION | _FORWARD | _MAMBA,
    fixes=MAMBA2_FIXES,
    fixed=SILU | {"attention_bias": False, "mlp_bias": False, "projectors_bias": False} | _MAMBA_FIXED,
    bare=_MAMBA_BARE,
    some=frozenset({"ssm_norm"}),
    settled=True,
    told=_falcon,
    understood=_as_falcon,
    bonds=_falcon_scales,
)


def _next(config: Mapping[str, Any]) -> dict[str, Any]:
    kinds = config["layer_types"]
    every = kinds.index("full_attention") + 1 if "full_attention" in kinds else len(kinds) + 1
    if kinds != _every(len(kinds), every):
        raise ValueError(f"layer_types is {kinds}; GGUF files of qwen3next mean that every n-th layer has attention.")
    values = config["linear_num_value_heads"]
    return {
        "full_attention_interval": every,
        "ssm.time_step_rank": values,
        "ssm.inner_size": values * config["linear_value_head_dim"],
    }


def _every(layers: int, every: int) -> list[str]:
    return [_KINDS[(i + 1) % every != 0] for i in range(layers)]


def _as_next(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key = "qwen3next.full_attention_interval"
    every, (inner, values) = number(key, metadata.get(key, 4)), heads_of("qwen3next", metadata)
    return {
        **config,
        "layer_types": _every(config["num_hidden_layers"], every),
        "linear_num_value_heads": values,
        "linear_value_head_dim": inner // values,
        "attention_bias": shapes(f"blk.{every - 1}.attn_q.bias") is not None,
    }


_DELTA = {
    "ssm_in": "linear_attn.in_proj_qkvz",
    "ssm_ba": "linear_attn.in_proj_ba",
    "ssm_conv1d": "linear_attn.conv1d",
    "ssm_norm": "linear_attn.norm",
    "ssm_out": "linear_attn.out_proj",
}
_DELTA_BARE = {"ssm_dt.bias": "linear_attn.dt_bias", "ssm_a": "linear_attn.A_log"}
QWEN3_NEXT = Family(
    "qwen3next",
    "qwen3_next",
    "Qwen3NextForCausalLM",
    KEYS
    | EXPERT_KEYS
    | {
        "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        "ssm.conv_kernel": "linear_conv_kernel_dim",
        "ssm.state_size": "linear_key_head_dim",
        "ssm.group_count": "linear_num_key_heads",
    },
    WHOLE,
    ATTENTION
    | HEAD_NORMS
    | {"post_attention_norm": "post_attention_layernorm"}
    | _DELTA
    | MIXTURE
    | {f"ffn_{n}_shexp": f"mlp.shared_expert.{n}_proj" for n in ("gate", "up", "down")}
    | {"ffn_gate_inp_shexp": "mlp.shared_expert_gate"},
    fixes=STACKED
    | {"ffn_gate_inp_shexp": ROW, "ssm_conv1d": FILTER, "ssm_a": DECAY}
    | dict.fromkeys(("output_norm", "attn_norm", "post_attention_norm", "attn_q_norm", "attn_k_norm"), ONE),
    fixed=SILU | {"norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []},
    dropped=(r"rotary_emb\.inv_freq$", r"^(model\.)?mtp\."),
    bare=_DELTA_BARE,
    some=frozenset({*_HEADS, *HEAD_NORMS, *_DELTA, *_DELTA_BARE}),
    partial=PARTIAL,
    settled=True,
    told=_next,
    understood=_as_next,
    bonds=delta_rule,
)


def _lfm(config: Mapping[str, Any]) -> dict[str, Any]:
    kinds = config["layer_types"]
    heads = [config["num_key_value_heads"] if kind == "full_attention" else 0 for kind in kinds]
    return {_KV: heads, "expert_gating_func": SIGMOID}


def _as_lfm(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    layers = config["num_hidden_layers"]
    places, shared = attending(metadata, "lfm2moe", layers)
    return {
        **config,
        "num_key_value_heads": shared or config["num_attention_heads"],
        "layer_types": ["full_attention" if i in places else "conv" for i in range(layers)],
    }


_LFM_EXPERTS = {
    f"ffn_{n}_exps": f"feed_forward.experts.{{e}}.{w}" for n, w in (("gate", "w1"), ("up", "w3"), ("down", "w2"))
}
LFM2_MOE = Family(
    "lfm2moe",
    "lfm2_moe",
    "Lfm2MoeForCausalLM",
    LFM2.keys | EXPERT_KEYS | {"leading_dense_block_count": "num_dense_layers"},
    LFM2.whole,
    LFM2.block | _LFM_EXPERTS | {"ffn_gate_inp": "feed_forward.gate"},
    fixes=LFM2.fixes | STACKED,
    fixed=LFM2.fixed | {"use_expert_bias": True, "norm_topk_prob": True, "routed_scaling_factor": 1.0},
    theta=1e6,
    respelled=(
        (r"(\.experts\.\d+\.)gate_proj\.", r"\1w1."),
        (r"(\.experts\.\d+\.)down_proj\.", r"\1w2."),
        (r"(\.experts\.\d+\.)up_proj\.", r"\1w3."),
    ),
    bare={"exp_probs_b.bias": "feed_forward.expert_bias"},
    some=LFM2.some | some_dense(),
    settled=True,
    told=_lfm,
    understood=_as_lfm,
)
HYBRIDS = [GRANITE_HYBRID, BAMBA, FALCON_H1, QWEN3_NEXT, LFM2_MOE]
