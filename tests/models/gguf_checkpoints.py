"""Small checkpoints of every family that GGUF knows, as names and shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import votive
from tests import tiny_sizes
from votive.io.gguf import GGUFFile, write
from votive.models.gguf_names import to_gguf

from .gguf_state_checkpoints import STATES, state_shapes

SMALL = {
    "vocab_size": 64,
    **tiny_sizes.transformer(64, 96, layers=3, heads=4),
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MOE = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": SMALL | {"attention_bias": True},
    "mistral": SMALL | {"sliding_window": 16, "head_dim": 16},
    "mixtral": SMALL | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2": SMALL | {"tie_word_embeddings": True},
    # transformers takes this size of a head for granted when it reads a Qwen3 from GGUF.
    "qwen3": SMALL | {"head_dim": 128},
    "qwen2_moe": SMALL | MOE | {"num_experts": 4, "shared_expert_intermediate_size": 64},
    "qwen3_moe": SMALL | MOE | {"head_dim": 16, "num_experts": 4, "norm_topk_prob": True},
    "gemma3_text": SMALL
    | {
        "head_dim": 256,
        "sliding_window": 8,
        "query_pre_attn_scalar": 256,
        "num_hidden_layers": 7,
        "tie_word_embeddings": True,
    },
    "gemma": SMALL | {"head_dim": 32, "tie_word_embeddings": True},
    "gemma2": SMALL
    | {
        "head_dim": 256,
        "sliding_window": 8,
        "query_pre_attn_scalar": 256,
        "tie_word_embeddings": True,
        "attn_logit_softcapping": 40.0,
        "final_logit_softcapping": 20.0,
    },
    "phi3": SMALL | {"sliding_window": 64, "original_max_position_embeddings": 128, "pad_token_id": 3},
    "cohere": {k: v for k, v in SMALL.items() if k != "rms_norm_eps"}
    | {"layer_norm_eps": 1e-6, "logit_scale": 0.25, "tie_word_embeddings": True},
    "cohere2": {k: v for k, v in SMALL.items() if k != "rms_norm_eps"}
    | {"layer_norm_eps": 1e-6, "logit_scale": 0.25, "sliding_window": 4, "tie_word_embeddings": True},
    "starcoder2": {k: v for k, v in SMALL.items() if k != "rms_norm_eps"}
    | {"norm_epsilon": 1e-6, "sliding_window": 64, "use_bias": True},
    "olmo2": SMALL,
    "seed_oss": SMALL | {"head_dim": 32, "attention_bias": True},
    "granite": SMALL
    | {"attention_multiplier": 0.2, "embedding_multiplier": 2.5, "residual_multiplier": 0.7, "logits_scaling": 3.5},
    "smollm3": SMALL | {"num_hidden_layers": 4},
    "gpt2": {
        "vocab_size": 64,
        "n_positions": 32,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    },
    "bert": {
        "vocab_size": 64,
        **tiny_sizes.transformer(32, 64, layers=2, heads=4),
        "max_position_embeddings": 32,
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
    },
}


CONFIGS |= STATES


def shapes_of(kind: str, config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a Hugging Face checkpoint, written down by hand."""
    if kind == "gpt2":
        return _gpt2(config)
    if kind == "bert":
        return _bert(config)
    if kind in STATES:
        return state_shapes(kind, config)
    C, hidden = config["hidden_size"], config["intermediate_size"]
    D = config.get("head_dim") or C // config["num_attention_heads"]
    q, kv = config["num_attention_heads"] * D, config["num_key_value_heads"] * D
    out: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (64, C), "model.norm.weight": (C,)}
    if not config["tie_word_embeddings"]:
        out["lm_head.weight"] = (64, C)
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        if not kind.startswith("cohere"):
            out |= {p + "post_attention_layernorm.weight": (C,)}
        if kind != "olmo2":
            out |= {p + "input_layernorm.weight": (C,)}
        if kind == "phi3":
            out |= {
                p + "self_attn.qkv_proj.weight": (q + 2 * kv, C),
                p + "self_attn.o_proj.weight": (C, q),
                p + "mlp.gate_up_proj.weight": (2 * hidden, C),
                p + "mlp.down_proj.weight": (C, hidden),
            }
            continue
        for name, shape in {"q": (q, C), "k": (kv, C), "v": (kv, C), "o": (C, q)}.items():
            out[f"{p}self_attn.{name}_proj.weight"] = shape
            some = kind.startswith(("qwen2", "seed_oss"))
            biased = name != "o" if some else config.get("attention_bias") or config.get("use_bias")
            if biased:
                out[f"{p}self_attn.{name}_proj.bias"] = shape[:1]
        if kind.startswith(("qwen3", "gemma3")):
            out |= {p + "self_attn.q_norm.weight": (D,), p + "self_attn.k_norm.weight": (D,)}
        if kind == "olmo2":
            out |= {p + "self_attn.q_norm.weight": (q,), p + "self_attn.k_norm.weight": (kv,)}
            out |= {p + "post_feedforward_layernorm.weight": (C,)}
        if kind == "starcoder2":
            out |= {p + f"{x}_layernorm.bias": (C,) for x in ("input", "post_attention")}
            out |= {"model.norm.bias": (C,), p + "mlp.c_fc.weight": (hidden, C), p + "mlp.c_fc.bias": (hidden,)}
            out |= {p + "mlp.c_proj.weight": (C, hidden), p + "mlp.c_proj.bias": (C,)}
            continue
        if kind.startswith(("gemma2", "gemma3")):
            out |= {p + f"{x}_feedforward_layernorm.weight": (C,) for x in ("pre", "post")}
        out |= _net(kind, p, C, hidden, config)
    return out


def _net(kind: str, p: str, C: int, hidden: int, config: dict[str, Any]) -> dict[str, Any]:
    gated = lambda at, n: {
        f"{at}.gate_proj.weight": (n, C),
        f"{at}.up_proj.weight": (n, C),
        f"{at}.down_proj.weight": (C, n),
    }
    if kind == "mixtral":
        out: dict[str, Any] = {p + "block_sparse_moe.gate.weight": (4, C)}
        for e in range(4):
            at = f"{p}block_sparse_moe.experts.{e}."
            out |= {at + "w1.weight": (hidden, C), at + "w2.weight": (C, hidden)}
            out |= {at + "w3.weight": (hidden, C)}
        return out
    if not kind.endswith("moe"):
        return gated(p + "mlp", hidden)
    out = {p + "mlp.gate.weight": (4, C)}
    for e in range(4):
        out |= gated(f"{p}mlp.experts.{e}", 32)
    if kind == "qwen2_moe":
        out |= gated(p + "mlp.shared_expert", 64)
        out[p + "mlp.shared_expert_gate.weight"] = (1, C)
    return out


def _gpt2(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    t = "transformer."
    out: dict[str, tuple[int, ...]] = {t + "wte.weight": (64, 32), t + "wpe.weight": (32, 32)}
    out |= {t + "ln_f.weight": (32,), t + "ln_f.bias": (32,)}
    for i in range(2):
        p = f"{t}h.{i}."
        for name, shape in {
            "ln_1": (32,),
            "ln_2": (32,),
            "attn.c_attn": (32, 96),
            "attn.c_proj": (32, 32),
            "mlp.c_fc": (32, 128),
            "mlp.c_proj": (128, 32),
        }.items():
            out |= {p + name + ".weight": shape, p + name + ".bias": shape[-1:]}
    return out


def _bert(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    e = "embeddings."
    out: dict[str, tuple[int, ...]] = {
        e + "word_embeddings.weight": (64, 32),
        e + "position_embeddings.weight": (32, 32),
        e + "token_type_embeddings.weight": (2, 32),
        e + "LayerNorm.weight": (32,),
        e + "LayerNorm.bias": (32,),
    }
    for i in range(2):
        p = f"encoder.layer.{i}."
        for name, shape in {
            "attention.self.query": (32, 32),
            "attention.self.key": (32, 32),
            "attention.self.value": (32, 32),
            "attention.output.dense": (32, 32),
            "attention.output.LayerNorm": (32,),
            "intermediate.dense": (64, 32),
            "output.dense": (32, 64),
            "output.LayerNorm": (32,),
        }.items():
            out |= {p + name + ".weight": shape, p + name + ".bias": shape[:1]}
    return out


def checkpoint(kind: str, **change: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    config = {"model_type": kind, **CONFIGS[kind], **change}
    rng = np.random.default_rng(0)
    tensors = {
        name: votive.tensor(rng.standard_normal(shape), dtype=votive.float32)
        for name, shape in shapes_of(kind, config).items()
    }
    return config, tensors


def written(path: Path, config: Any, tensors: Any, **options: Any) -> GGUFFile:
    metadata, made = to_gguf(config, tensors, **options)
    write(path, made, metadata)
    return GGUFFile(path)
