"""State spaces, short convolutions and what stands beside them, as GGUF names them. Reads nothing.

Layers differ in these kinds: which of them has attention, a file says by the heads of keys that each layer has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .gguf_family import COLUMN, DECAY, DECAYS, EXPERTS, FILTER, GROUPED, Family, Shapes

_SIZES = {"embedding_length": "hidden_size", "block_count": "num_hidden_layers", "vocab_size": "vocab_size"}
_EPS = "attention.layer_norm_rms_epsilon"
_SPACE = {
    "ssm.conv_kernel": "conv_kernel",
    "ssm.inner_size": "intermediate_size",
    "ssm.state_size": "state_size",
    "ssm.time_step_rank": "time_step_rank",
}
_WHOLE = {"token_embd": "backbone.embeddings", "output_norm": "backbone.norm_f", "output": "lm_head"}
_IN = {"attn_norm": "norm", "ssm_in": "mixer.in_proj", "ssm_conv1d": "mixer.conv1d"}
_OUT = {"ssm_out": "mixer.out_proj"}
_FIXED = {"hidden_act": "silu", "use_bias": False, "use_conv_bias": True, "expand": 2}
# Texts of any length are read, and there are no heads; llama.cpp asks for both.
_ENDLESS = {"context_length": 1 << 20, "feed_forward_length": 0, "attention.head_count": 0}


def _doubled(config: Mapping[str, Any]) -> int:
    """The number of channels, which is twice the width in all files."""
    inner, width = config.get("intermediate_size"), int(config["hidden_size"])
    if inner not in (None, 2 * width):
        raise ValueError(
            f"intermediate_size is {inner}; GGUF files of state spaces have twice hidden_size={width} channels."
        )
    return 2 * width


def _mamba(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**_ENDLESS, "ssm.inner_size": _doubled(config), "ssm.dt_b_c_rms": config["model_type"] == "falcon_mamba"}


MAMBA = Family(
    "mamba",
    "mamba",
    "MambaForCausalLM",
    _SIZES | _SPACE | {_EPS: "layer_norm_epsilon"},
    _WHOLE,
    _IN | {"ssm_x": "mixer.x_proj", "ssm_dt": "mixer.dt_proj"} | _OUT,
    layers="backbone.layers",
    fixes={"ssm_conv1d": FILTER, "ssm_a": DECAY},
    fixed=_FIXED,
    prefix="backbone.",
    bare={"ssm_a": "mixer.A_log", "ssm_d": "mixer.D"},
    rotates=False,
    told=_mamba,
)
# Step sizes and what goes into and out of the state are normed, with one eps in all such files.
FALCON_MAMBA = Family(
    "mamba",
    "falcon_mamba",
    "FalconMambaForCausalLM",
    MAMBA.keys,
    _WHOLE,
    MAMBA.block,
    layers=MAMBA.layers,
    fixes=MAMBA.fixes,
    fixed=_FIXED | {"mixer_rms_eps": 1e-6},
    prefix=MAMBA.prefix,
    bare=MAMBA.bare,
    rotates=False,
    told=_mamba,
    when=lambda metadata: bool(metadata.get("mamba.ssm.dt_b_c_rms")),
)


def _mamba2(config: Mapping[str, Any]) -> dict[str, Any]:
    heads, each, inner = config["num_heads"], config["head_dim"], _doubled(config)
    if heads * each != inner:
        raise ValueError(f"num_heads={heads} of head_dim={each} are not the {inner} channels.")
    return {**_ENDLESS, "ssm.inner_size": inner}


def _of_heads(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    inner, heads = config.pop("intermediate_size"), config["num_heads"]
    if inner != 2 * config["hidden_size"] or inner % heads:
        raise ValueError(
            f"the GGUF file has {inner} channels of {heads} heads; twice embedding_length, split evenly, is read."
        )
    return {**config, "head_dim": inner // heads}


MAMBA2 = Family(
    "mamba2",
    "mamba2",
    "Mamba2ForCausalLM",
    _SIZES | _SPACE | {"ssm.time_step_rank": "num_heads", "ssm.group_count": "n_groups", _EPS: "layer_norm_epsilon"},
    _WHOLE,
    _IN | {"ssm_norm": "mixer.norm"} | _OUT,
    layers="backbone.layers",
    fixes={"ssm_conv1d": FILTER, "ssm_a": DECAYS, "ssm_d": COLUMN, "ssm_norm": GROUPED},
    fixed=_FIXED | {"time_step_limit": [0.0, math.inf]},
    prefix="backbone.",
    bare={"ssm_dt.bias": "mixer.dt_bias", "ssm_a": "mixer.A_log", "ssm_d": "mixer.D"},
    rotates=False,
    told=_mamba2,
    understood=_of_heads,
)


def attending(metadata: Mapping[str, Any], arch: str, layers: int) -> tuple[list[int], int]:
    """Which layers have attention, and how many heads of keys these have.

    >>> from votive.models.gguf_states import attending
    >>> attending({"jamba.attention.head_count_kv": [0, 2, 0]}, "jamba", 3)
    ([1], 2)
    """
    key = f"{arch}.attention.head_count_kv"
    found = metadata.get(key)
    each = [found] * layers if isinstance(found, int) and not isinstance(found, bool) else found
    if not isinstance(each, list) or len(each) != layers or any(type(n) is not int or n < 0 for n in each):
        raise ValueError(f"{key} is {found!r}; the number of each layer's heads of keys is needed.")
    if len({n for n in each if n}) > 1:
        raise ValueError(f"{key} differs between layers with attention ({found}); such models are unknown.")
    return [i for i, n in enumerate(each) if n], max(each, default=0)


def _every(places: list[int], layers: int, what: str) -> tuple[int, int]:
    """The period and the offset of layers that come back regularly."""
    if not places:
        return layers + 1, layers
    period = places[1] - places[0] if len(places) > 1 else layers
    if places != list(range(layers))[places[0] :: period] or places[0] >= period:
        raise ValueError(f"layers {places} of {layers} have {what}; a Jamba's come back regularly.")
    return period, places[0]


def _jamba(config: Mapping[str, Any]) -> dict[str, Any]:
    from .jamba import JambaConfig

    made = JambaConfig.from_dict(config)
    heads = [made.num_key_value_heads if kind == "full_attention" else 0 for kind in made.kinds()]
    return {
        "attention.head_count_kv": heads,
        "ssm.inner_size": made.mamba_expand * made.hidden_size,
        "ssm.time_step_rank": made.mamba_dt_rank,
    }


def _as_jamba(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    layers, inner = config["num_hidden_layers"], config.pop("inner")
    if inner % config["hidden_size"]:
        raise ValueError(f"jamba.ssm.inner_size={inner} is no multiple of jamba.embedding_length.")
    places, shared = attending(metadata, "jamba", layers)
    sparse = [i for i in range(layers) if shapes(f"blk.{i}.ffn_gate_inp.weight") is not None]
    out = dict(zip(("attn_layer_period", "attn_layer_offset"), _every(places, layers, "attention"), strict=True))
    out |= dict(zip(("expert_layer_period", "expert_layer_offset"), _every(sparse, layers, "experts"), strict=True))
    out["num_key_value_heads"] = shared or config["num_attention_heads"]
    return {**config, **out, "mamba_expand": inner // config["hidden_size"]}


_ATTENTION = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
_JAMBA = {
    **_ATTENTION,
    "ssm_in": "mamba.in_proj",
    "ssm_conv1d": "mamba.conv1d",
    "ssm_x": "mamba.x_proj",
    "ssm_dt": "mamba.dt_proj",
    "ssm_dt_norm": "mamba.dt_layernorm",
    "ssm_b_norm": "mamba.b_layernorm",
    "ssm_c_norm": "mamba.c_layernorm",
    "ssm_out": "mamba.out_proj",
    "ffn_gate_inp": "feed_forward.router",
    "ffn_gate": "feed_forward.gate_proj",
    "ffn_up": "feed_forward.up_proj",
    "ffn_down": "feed_forward.down_proj",
    "ffn_gate_exps": "feed_forward.experts.{e}.gate_proj",
    "ffn_up_exps": "feed_forward.experts.{e}.up_proj",
    "ffn_down_exps": "feed_forward.experts.{e}.down_proj",
}
JAMBA = Family(
    "jamba",
    "jamba",
    "JambaForCausalLM",
    _SIZES
    | {
        "context_length": "max_position_embeddings",
        "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads",
        _EPS: "rms_norm_eps",
        "expert_count": "num_experts",
        "expert_used_count": "num_experts_per_tok",
        "ssm.conv_kernel": "mamba_d_conv",
        "ssm.inner_size": "inner",
        "ssm.state_size": "mamba_d_state",
        "ssm.time_step_rank": "mamba_dt_rank",
    },
    {"token_embd": "model.embed_tokens", "output_norm": "model.final_layernorm", "output": "lm_head"},
    {"attn_norm": "input_layernorm", "ffn_norm": "pre_ff_layernorm", **_JAMBA},
    fixes={"ssm_conv1d": FILTER, "ssm_a": DECAY}
    | dict.fromkeys(("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"), EXPERTS),
    fixed={"hidden_act": "silu", "mamba_conv_bias": True, "mamba_proj_bias": False},
    bare={"ssm_a": "mamba.A_log", "ssm_d": "mamba.D"},
    some=frozenset({*_JAMBA, "ssm_a", "ssm_d"}),
    rotates=False,
    told=_jamba,
    understood=_as_jamba,
)


def _lfm2(config: Mapping[str, Any]) -> dict[str, Any]:
    from .lfm2 import Lfm2Config

    made = Lfm2Config.from_dict(config)
    kinds = (made.layer_types or [])[: made.num_hidden_layers]
    heads = [made.num_key_value_heads if kind == "full_attention" else 0 for kind in kinds]
    return {"attention.head_count_kv": heads, "feed_forward_length": made.inner()}


def _as_lfm2(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    layers = config["num_hidden_layers"]
    places, shared = attending(metadata, "lfm2", layers)
    return {
        **config,
        "num_key_value_heads": shared or config["num_attention_heads"],
        "layer_types": ["full_attention" if i in places else "conv" for i in range(layers)],
        "block_auto_adjust_ff_dim": False,
    }


_LFM2 = {
    **_ATTENTION,
    "attn_output": "self_attn.out_proj",
    "attn_q_norm": "self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_layernorm",
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
}
LFM2 = Family(
    "lfm2",
    "lfm2",
    "Lfm2ForCausalLM",
    _SIZES
    | {
        "context_length": "max_position_embeddings",
        "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads",
        "attention.key_length": "head_dim",
        _EPS: "norm_eps",
        "rope.freq_base": "rope_theta",
        "shortconv.l_cache": "conv_L_cache",
    },
    {"token_embd": "model.embed_tokens", "token_embd_norm": "model.embedding_norm", "output": "lm_head"},
    {
        "attn_norm": "operator_norm",
        "ffn_norm": "ffn_norm",
        "ffn_gate": "feed_forward.w1",
        "ffn_up": "feed_forward.w3",
        "ffn_down": "feed_forward.w2",
        **_LFM2,
    },
    fixes={"shortconv.conv": FILTER},
    fixed={"conv_bias": False},
    theta=1e6,
    some=frozenset(_LFM2),
    told=_lfm2,
    understood=_as_lfm2,
)
