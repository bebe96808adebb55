"""GGUF metadata to a Hugging Face configuration and back. Knows keys and numbers, no tensors.

Shapes of tensors, where the metadata leaves something out, are asked for through a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .config import rope_of
from .gguf_encoders import BERT
from .gguf_families import GEMMA2, GEMMA3, GPT2, LLAMA, MISTRAL, MIXTRAL, PHI3
from .gguf_family import Family, Shapes, fractional, number

_TOKENS = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "pad_token_id": "padding_token_id"}
# Beside the end of text, these end a turn; generation stops at any of them.
_ENDS = ("eot_token_id", "eom_token_id")
_YARN = {
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
    "rope.scaling.attn_factor": "attention_factor",
}
# Llama 3.1's stretching of frequencies is stored as a tensor; these numbers made all known ones.
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
# Every how many layers one sees all positions; and the depth of the largest model, which divides
# scores by another number than the size of a head (Gemma 2 and 3 reports, table 1).
_GEMMA = {"gemma2": (2, 46), "gemma3_text": (6, 62)}
# Their files say how many numbers of a head are turned, which is all of them.
_ROTATED = (LLAMA, MISTRAL, MIXTRAL)


def config_of(family: Family, metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """The content of a config.json for a GGUF file, but for what its rope_freqs tensor says."""
    arch = family.architecture
    config: dict[str, Any] = {"model_type": family.model_type, "architectures": [family.model_class], **family.fixed}
    for key, name in family.keys.items():
        value = metadata.get(f"{arch}.{key}")
        # A window of 0 is none.
        if value is not None and not (key == "attention.sliding_window" and value == 0):
            config[name] = number(f"{arch}.{key}", value)
    # Layers that predict further tokens stand behind those that are run, and are counted with them.
    beyond = metadata.get(f"{arch}.nextn_predict_layers") or 0
    layers = family.keys["block_count"]
    if isinstance(beyond, int) and beyond and layers in config:
        config[layers] = number(f"{arch}.block_count", config[layers] - beyond)
    embedding = shapes("token_embd.weight")
    if embedding is not None and len(embedding) == 2:
        config["vocab_size"] = embedding[0]
    missing = [name for name in _needed(family) if name not in config]
    if missing:
        raise ValueError(f"the GGUF file lacks {', '.join(missing)} (keys {arch}.*); it holds no whole model.")
    if "output" in family.whole:
        config["tie_word_embeddings"] = shapes("output.weight") is None
    _add_tokens(config, metadata)
    config = _rotating(family, config, metadata, shapes) if family.rotates else _small(family, config, shapes)
    return config if family.understood is None else family.understood(config, metadata, shapes)


def _rotating(family: Family, config: dict[str, Any], metadata: Mapping[str, Any], shapes: Shapes) -> dict[str, Any]:
    """The same with heads and their rotation."""
    arch = family.architecture
    config.setdefault("num_key_value_heads", config["num_attention_heads"])
    config.setdefault("rope_theta", family.theta if family is GEMMA3 else 10000.0)
    if "head_dim" not in config:
        key = f"{arch}.rope.dimension_count"
        rotated = number(key, metadata[key]) if family in _ROTATED and key in metadata else 0
        config["head_dim"] = rotated or config["hidden_size"] // config["num_attention_heads"]
    config["rope_scaling"] = _scaling(arch, metadata, config)
    if family is LLAMA:
        config["attention_bias"] = shapes("blk.0.attn_q.bias") is not None
        config["mlp_bias"] = shapes("blk.0.ffn_gate.bias") is not None
    if family.model_type in _GEMMA:
        _add_gemma(config)
    if family is GEMMA2:
        config.setdefault("attn_logit_softcapping", 50.0)
        config.setdefault("final_logit_softcapping", 30.0)
    if family.partial:
        key = f"{arch}.rope.dimension_count"
        rotated = number(key, metadata.get(key, config["head_dim"]))
        config[family.partial] = rotated / config["head_dim"]
    if family is PHI3:
        key = f"{arch}.rope.scaling.original_context_length"
        first = metadata.get(key, config.get("max_position_embeddings", 4096))
        config["original_max_position_embeddings"] = number(key, first)
    return config


def _needed(family: Family) -> list[str]:
    optional = (
        "context_length",
        "attention.head_count_kv",
        "attention.key_length",
        "rope.freq_base",
        "attention.sliding_window",
        "rope.freq_base_swa",
        "attn_logit_softcapping",
        "final_logit_softcapping",
        "feed_forward_length",
        "expert_shared_feed_forward_length",
        "expert_feed_forward_length",
        "expert_group_count",
        "expert_group_used_count",
        "expert_weights_scale",
        "expert_shared_count",
        "leading_dense_block_count",
        "attention.q_lora_rank",
        "interleave_moe_layer_step",
        "attention.scale",
        "embedding_scale",
        "residual_scale",
        "logit_scale",
        "decoder_block_count",
        "decoder_start_token_id",
    )
    return [name for key, name in family.keys.items() if key not in optional]


def _add_tokens(config: dict[str, Any], metadata: Mapping[str, Any]) -> None:
    for name, key in _TOKENS.items():
        value = metadata.get(f"tokenizer.ggml.{key}")
        if isinstance(value, int):
            config[name] = value
    ends = [config.get("eos_token_id"), *(metadata.get(f"tokenizer.ggml.{k}") for k in _ENDS)]
    known = list(dict.fromkeys(e for e in ends if isinstance(e, int)))
    if len(known) > 1:
        config["eos_token_id"] = known


def _small(family: Family, config: dict[str, Any], shapes: Shapes) -> dict[str, Any]:
    if family is BERT:
        types = shapes("token_types.weight")
        config["type_vocab_size"] = types[0] if types else 2
    return config


def _scaling(arch: str, metadata: Mapping[str, Any], config: dict[str, Any]) -> dict[str, Any] | None:
    kind = metadata.get(f"{arch}.rope.scaling.type")
    factor = metadata.get(f"{arch}.rope.scaling.factor", metadata.get(f"{arch}.rope.scale_linear"))
    if kind is None and factor is not None:
        kind = "linear"
    if kind in (None, "none") or factor in (None, 1.0):
        return None
    if kind not in ("linear", "yarn"):
        raise ValueError(f"{arch}.rope.scaling.type {kind!r} is unknown; linear and yarn are read.")
    key = f"{arch}.rope.scaling.factor"
    out: dict[str, Any] = {"rope_type": kind, "factor": number(key, factor)}
    if kind == "yarn":
        key = f"{arch}.rope.scaling.original_context_length"
        if key in metadata:
            out["original_max_position_embeddings"] = number(key, metadata[key])
        for key, name in _YARN.items():
            if f"{arch}.{key}" in metadata:
                out[name] = number(f"{arch}.{key}", metadata[f"{arch}.{key}"])
    return out


def _add_gemma(config: dict[str, Any]) -> None:
    layers = config["num_hidden_layers"]
    every, deepest = _GEMMA[config["model_type"]]
    if config["model_type"] == "gemma3_text":
        config.setdefault("rope_local_base_freq", 10000.0)
        config["sliding_window_pattern"] = every
    config["layer_types"] = ["sliding_attention" if (i + 1) % every else "full_attention" for i in range(layers)]
    own = config["hidden_size"] // config["num_attention_heads"]
    config["query_pre_attn_scalar"] = own if layers == deepest else config["head_dim"]


def llama3_scaling(factors: Any, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The `rope_scaling` that made a rope_freqs tensor; None if it is all ones.

    >>> from votive.models.gguf_config import llama3_factors, llama3_scaling
    >>> scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
    ...     "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    >>> config = {"head_dim": 64, "rope_theta": 500000.0}
    >>> llama3_scaling(llama3_factors(scaling, config), config) == scaling
    True
    """
    got = np.asarray(factors, np.float32).reshape(-1)
    if got.size == 0 or 2 * got.size != config["head_dim"]:
        raise ValueError(
            f"the tensor rope_freqs of the GGUF file has {got.size} numbers; half of {config['head_dim']} are needed."
        )
    factor = float(str(got.max()))
    if factor == 1.0 and got.min() == 1.0:
        return None
    for original in (8192, *(1 << n for n in range(9, 21))):
        scaling = {"rope_type": "llama3", "factor": factor, **_LLAMA3, "original_max_position_embeddings": original}
        want = llama3_factors(scaling, config)
        if np.allclose(got, want, rtol=1e-3):
            return scaling
    raise ValueError("the tensor rope_freqs of the GGUF file follows no rule that is known (that of Llama 3.1).")


def llama3_factors(scaling: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
    """What each rotary frequency is divided by, float32 (head_dim / 2,)."""
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    steps = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
    wavelength = 2 * np.pi * float(config["rope_theta"]) ** steps
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] / wavelength
    # Between the two limits the frequency itself is interpolated, hence the reciprocals.
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / scaling["factor"] + smooth)).astype(np.float32)


def metadata_of(family: Family, config: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a GGUF file for a configuration, but for what a tokenizer adds."""
    arch = family.architecture
    values = dict(config)
    _check_fixed(family, values)
    if family.rotates:
        values |= rope_values(family, values)
    out: dict[str, Any] = {"general.architecture": arch, "general.type": "model"}
    experts = family.keys.get("expert_count")
    if experts is not None and values.get(experts) is None:  # two spellings of one number
        values[experts] = values.get("num_local_experts") or values.get("num_experts")
    if family is GPT2:
        values["n_inner"] = values.get("n_inner") or 4 * values["n_embd"]
    for key, name in family.keys.items():
        value = values.get(name)
        if value is not None:
            out[f"{arch}.{key}"] = _written(value, key)
    told = {} if family.told is None else {f"{arch}.{key}": value for key, value in family.told(values).items()}
    missing = [
        name
        for key, name in family.keys.items()
        if name in _needed(family) and values.get(name) is None and f"{arch}.{key}" not in told
    ]
    if missing:
        raise ValueError(f"the configuration lacks {', '.join(missing)}, which GGUF needs.")
    if family.rotates:
        heads = values["num_attention_heads"]
        out.setdefault(f"{arch}.attention.head_count_kv", heads)
        size = values.get("head_dim") or values["hidden_size"] // heads
        out[f"{arch}.attention.key_length"] = out[f"{arch}.attention.value_length"] = size
        out[f"{arch}.rope.dimension_count"] = int(size * _share(family, values))
        if family is PHI3:
            original = values.get("original_max_position_embeddings") or values["max_position_embeddings"]
            out[f"{arch}.rope.scaling.original_context_length"] = int(original)
        out |= _written_scaling(arch, values["rope_scaling"])
    if "token_types" in family.whole:
        out["tokenizer.ggml.token_type_count"] = int(values.get("type_vocab_size") or 1)
    return out | told | _written_tokens(values)


def _share(family: Family, values: Mapping[str, Any]) -> float:
    """Which share of a head's features is rotated; raises where files cannot say that it is not all."""
    found = values.get(family.partial or "partial_rotary_factor")
    for nested in (values.get("rope_parameters"), values.get("rope_scaling")):
        found = found or (nested or {}).get("partial_rotary_factor")
    if not family.partial and found not in (None, 1):
        raise ValueError(
            f"partial_rotary_factor is {found}; GGUF files of {family.architecture} always mean that all features are "
            "rotated."
        )
    return found or 1.0


def rope_values(family: Family, config: Mapping[str, Any]) -> dict[str, Any]:
    """`rope_theta`, `rope_scaling` and, if local layers have one, `rope_local_base_freq`."""
    values = dict(config)
    kinds = values.get("rope_parameters") or {}
    out = {}
    if "full_attention" in kinds:  # one set for each kind of layer
        values["rope_parameters"] = kinds["full_attention"]
        local = kinds.get("sliding_attention", {}).get("rope_theta")
        if local is not None:
            out["rope_local_base_freq"] = local
    theta, scaling = rope_of(values, family.theta)
    return {**out, "rope_theta": theta, "rope_scaling": scaling}


def _check_fixed(family: Family, config: Mapping[str, Any]) -> None:
    """What a GGUF file of this kind cannot say has the value that readers take for granted."""
    fixed = dict(family.fixed)
    if family.model_type in _GEMMA:
        own = {**config, "head_dim": config.get("head_dim") or 256}
        _add_gemma(own)
        fixed |= {"query_pre_attn_scalar": own["query_pre_attn_scalar"], "layer_types": own["layer_types"]}
    for name, value in fixed.items():
        if config.get(name, value) != value and config[name] is not None:
            raise ValueError(f"{name} is {config[name]!r}; GGUF files of {family.architecture} always mean {value!r}.")


def _written(value: Any, key: str) -> Any:
    return float(value) if fractional(key) else int(value)


def _written_scaling(arch: str, scaling: Mapping[str, Any] | None) -> dict[str, Any]:
    if scaling is None or scaling["rope_type"] in ("llama3", "longrope"):  # tensors
        return {}
    kind = scaling["rope_type"]
    if kind not in ("linear", "yarn"):
        raise ValueError(f"rope_scaling of the type {kind!r} cannot be written to GGUF.")
    out = {f"{arch}.rope.scaling.type": kind, f"{arch}.rope.scaling.factor": float(scaling["factor"])}
    original = scaling.get("original_max_position_embeddings")
    if kind == "yarn" and original:
        out[f"{arch}.rope.scaling.original_context_length"] = int(original)
    for key, name in _YARN.items():
        if kind == "yarn" and scaling.get(name) is not None:
            out[f"{arch}.{key}"] = float(scaling[name])
    return out


def _written_tokens(config: Mapping[str, Any]) -> dict[str, Any]:
    out = {}
    for name, key in _TOKENS.items():
        value = config.get(name)
        if isinstance(value, list):  # the first ends the text, the second a turn
            for k, one in zip((key, *_ENDS), value):
                out[f"tokenizer.ggml.{k}"] = int(one)
        elif value is not None:
            out[f"tokenizer.ggml.{key}"] = int(value)
    return out
