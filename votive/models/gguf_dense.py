"""Decoders without experts as GGUF files name them, beside the first ones. Tables, and what follows from numbers.

Where llama.cpp keeps another order of rows than checkpoints do, a bond says how one becomes the other. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gguf_bonds import listed_norms, one_product
from .gguf_family import ONE, Family, Shapes, number
from .gguf_words import (
    ATTENTION,
    HEAD_NORMS,
    KEYS,
    NET,
    ROTARY,
    SILU,
    UNBIASED,
    WHOLE,
    layered,
    unstretched,
    windowed,
    windows,
    without,
)

_LAYER = "attention.layer_norm_epsilon"
_WINDOW = {"attention.sliding_window": "sliding_window"}
_PLAIN_NET = without(NET, "ffn_gate")
_BEHIND = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
PARTIAL = "partial_rotary_factor"


def _biases(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """Which products have biases is seen at the first layer."""
    found = {"attention_bias": "attn_output", "mlp_bias": "ffn_up"}
    return {**config, **{name: shapes(f"blk.0.{stem}.bias") is not None for name, stem in found.items()}}


PHI2 = Family(
    "phi2",
    "phi",
    "PhiForCausalLM",
    layered("layer_norm_eps"),
    WHOLE | {"output_norm": "model.final_layernorm"},
    without(ATTENTION, "ffn_norm") | {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"},
    fixed={"hidden_act": "gelu_new", "qk_layernorm": False},
    partial=PARTIAL,
    settled=True,
    bonds=one_product,
)


def _stablelm(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"use_parallel_residual": config["use_parallel_residual"]}


def _as_stablelm(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    return {
        **config,
        "use_parallel_residual": shapes("blk.0.ffn_norm.weight") is None,
        "use_qkv_bias": shapes("blk.0.attn_q.bias") is not None,
        "qk_layernorm": shapes("blk.0.attn_q_norm.weight") is not None,
    }


STABLELM = Family(
    "stablelm",
    "stablelm",
    "StableLmForCausalLM",
    layered("layer_norm_eps"),
    WHOLE,
    ATTENTION | NET,
    fixed=SILU,
    some=frozenset({"ffn_norm"}),
    partial=PARTIAL,
    settled=True,
    told=_stablelm,
    understood=_as_stablelm,
    bonds=listed_norms,
)


def _olmo(config: Mapping[str, Any]) -> dict[str, Any]:
    clip = config.get("clip_qkv")
    return {_LAYER: 1e-5, **({} if clip is None else {"attention.clamp_kqv": float(clip)})}


def _as_olmo(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    key = "olmo.attention.clamp_kqv"
    return {**config, "clip_qkv": number(key, metadata[key]) if metadata.get(key) else None}


# Its norms have no weights.
OLMO = Family(
    "olmo",
    "olmo",
    "OlmoForCausalLM",
    without(KEYS, "attention.layer_norm_rms_epsilon"),
    without(WHOLE, "output_norm"),
    without(ATTENTION | NET, "attn_norm", "ffn_norm"),
    fixes=ROTARY,
    fixed=SILU | {"attention_bias": False},
    settled=True,
    told=_olmo,
    understood=_as_olmo,
)


def _olmo3(config: Mapping[str, Any]) -> dict[str, Any]:
    near = config.get("rope_local_base_freq")
    if near is not None and near != config["rope_theta"]:
        raise ValueError(
            f"layers with windows have the base {near} and others {config['rope_theta']}; GGUF files of olmo2 have one."
        )
    return windows(config)


def _as_olmo3(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    # Only layers that see all are stretched.
    base, scaling = config.pop("rope_theta"), config.pop("rope_scaling") or {"rope_type": "default"}
    return {
        **config,
        "layer_types": windowed("olmo2", config, metadata),
        "rope_parameters": {
            "full_attention": {**scaling, "rope_theta": base},
            "sliding_attention": {"rope_type": "default", "rope_theta": base},
        },
    }


OLMO3 = Family(
    "olmo2",
    "olmo3",
    "Olmo3ForCausalLM",
    KEYS | _WINDOW,
    WHOLE,
    without(ATTENTION | HEAD_NORMS | NET, "attn_norm", "ffn_norm") | _BEHIND,
    fixed=SILU | {"attention_bias": False},
    settled=True,
    told=_olmo3,
    understood=_as_olmo3,
    when=lambda metadata: bool(metadata.get("olmo2.attention.sliding_window")),
)
_GLM = without(ATTENTION | NET, "ffn_gate") | {"ffn_up": "mlp.gate_up_proj"}


def _as_glm(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    names = ("blk.0.attn_q.bias", "blk.0.attn_qkv.bias")
    return {**config, "attention_bias": any(shapes(name) is not None for name in names)}


GLM = Family(
    "chatglm",
    "glm",
    "GlmForCausalLM",
    KEYS,
    WHOLE,
    _GLM,
    fixed=SILU,
    partial=PARTIAL,
    settled=True,
    understood=_as_glm,
    bonds=one_product,
)
GLM4 = Family(
    "glm4",
    "glm4",
    "Glm4ForCausalLM",
    KEYS,
    WHOLE,
    _GLM | {"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm"},
    fixed=SILU,
    partial=PARTIAL,
    settled=True,
    understood=_as_glm,
    bonds=one_product,
)


def _as_exaone4(config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    kinds = windowed("exaone4", config, metadata)
    if kinds is None:  # all layers see all, or every fourth one
        every = 4 if config.get("sliding_window") else 0
        layers = range(1, config["num_hidden_layers"] + 1)
        kinds = ["sliding_attention" if every and i % every else "full_attention" for i in layers]
    return {**config, "sliding_window": config.get("sliding_window"), "layer_types": kinds}


EXAONE4 = Family(
    "exaone4",
    "exaone4",
    "Exaone4ForCausalLM",
    KEYS | _WINDOW,
    WHOLE,
    without(ATTENTION | HEAD_NORMS | NET, "attn_norm", "ffn_norm") | _BEHIND,
    fixed=SILU,
    settled=True,
    told=windows,
    understood=_as_exaone4,
)
# One is added to the weights of its norms, as with Gemma.
NEMOTRON = Family(
    "nemotron",
    "nemotron",
    "NemotronForCausalLM",
    layered("norm_eps"),
    WHOLE,
    ATTENTION | _PLAIN_NET,
    fixes=dict.fromkeys(("output_norm", "attn_norm", "ffn_norm"), ONE),
    fixed={"hidden_act": "relu2"},
    partial=PARTIAL,
    settled=True,
    told=unstretched,
    understood=_biases,
)
ARCEE = Family(
    "arcee",
    "arcee",
    "ArceeForCausalLM",
    KEYS,
    WHOLE,
    ATTENTION | _PLAIN_NET,
    fixes=ROTARY,
    fixed={"hidden_act": "relu2"},
    settled=True,
    understood=_biases,
)
JAIS2 = Family(
    "jais2",
    "jais2",
    "Jais2ForCausalLM",
    layered("layer_norm_eps"),
    WHOLE,
    ATTENTION | _PLAIN_NET,
    fixed={"hidden_act": "relu2"},
    settled=True,
    understood=_biases,
)
ERNIE = Family(
    "ernie4_5",
    "ernie4_5",
    "Ernie4_5ForCausalLM",
    KEYS,
    WHOLE,
    ATTENTION | NET,
    fixed=SILU | {"use_bias": False},
    settled=True,
)


def ntk_base(values: dict[str, Any]) -> dict[str, Any]:
    """Hunyuan's angles are those of another base, which files have in its place."""
    scaling = values.get("rope_scaling") or {}
    if scaling.get("rope_type") != "dynamic" or not scaling.get("alpha"):
        return values
    size = values["head_dim"]
    base = values["rope_theta"] * scaling["alpha"] ** (size / (size - 2))
    return {**values, "rope_theta": base, "rope_scaling": None}


HUNYUAN = Family(
    "hunyuan-dense",
    "hunyuan_v1_dense",
    "HunYuanDenseV1ForCausalLM",
    KEYS,
    WHOLE,
    ATTENTION | NET | {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
    fixed=UNBIASED,
    settled=True,
    prepared=ntk_base,
    told=unstretched,
)
INTERNLM3 = Family(
    "llama",
    "internlm3",
    "InternLM3ForCausalLM",
    KEYS,
    WHOLE,
    ATTENTION | NET,
    fixes=ROTARY,
    fixed=SILU,
    settled=True,
    when=lambda metadata: False,  # what is read of these is a Llama
)
DENSE = [*(PHI2, STABLELM, OLMO, OLMO3, GLM, GLM4, EXAONE4), *(NEMOTRON, ARCEE, JAIS2, ERNIE, HUNYUAN, INTERNLM3)]
