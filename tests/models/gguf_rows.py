"""Rows of decoders that are written as GGUF files: what of their configurations has to change for that."""

from __future__ import annotations

from typing import Any

from .decoders import ROWS as DECODERS
from .rows import Row
from .state_space_rows import ROWS as STATES

_ALL = {**DECODERS, **STATES}
_ROPE = {"rope_theta": 1e4, "rope_type": "default"}
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 1e4}
_FOUR = ["linear_attention", "full_attention"] * 2
# The name of a row, and what differs; a number after the name tells rows of one name apart.
CHANGES: dict[str, dict[str, Any]] = {
    "phi": {},
    "stablelm": {},
    "stablelm side by side": {},
    "falcon": {},
    "falcon of the new kind": {},
    "falcon with one norm": {},
    "gpt neox": {},
    "gpt neox in sequence": {"attention_bias": True},
    "bloom": {},
    "bloom with other heads": {},
    "mpt": {},
    "mpt with other heads": {"attn_config": {"clip_qkv": 0.5}},
    "gpt bigcode": {},
    "olmo": {"attention_bias": False},
    "olmo3": {"rope_parameters": {"full_attention": _YARN, "sliding_attention": _ROPE}},
    "olmoe": {"clip_qkv": None},
    "glm": {},
    "glm4": {},
    "exaone4": {},
    "exaone4 that sees all": {},
    "nemotron": {},
    "nemotron with biases": {},
    "arcee": {},
    "jais2": {},
    "ernie": {"use_bias": False},
    "hunyuan": {},
    "internlm3": {},
    "phimoe": {},
    "granite moe": {},
    "granite moe with a shared net": {},
    "glm4 moe": {},
    "exaone moe": {},
    "dots1": {"sliding_window": None, "layer_types": None},
    "minimax m2": {},
    "ernie moe": {"use_bias": False, "moe_layer_end_index": -1},
    "hunyuan moe": {},
    "gpt oss": {},
    "llama4": {"attention_chunk_size": 8192, "floor_scale": 8192},
    "deepseek v2 moe": {},
    "deepseek v2 moe in groups": {"attention_bias": False, "mlp_bias": False, "rope_parameters": _ROPE},
    "deepseek v3 moe": {},
    "deepseek v3 moe stretched": {
        "rope_interleave": True, "attention_bias": False,
        "rope_parameters": {**_YARN, "mscale": 0.7, "mscale_all_dim": 0.7},
    },
    "minicpm3": {"dim_model_base": 256},
    "bamba": {},
    "granite hybrid": {},
    "granite hybrid without experts": {},
    "falcon h1": {},
    "falcon h1 normed": {f"{n}_bias": False for n in ("projectors", "mamba_proj", "attention", "mlp")},
    "nemotron h": {"layers_block_type": ["moe", "linear_attention", "full_attention", "moe"]},
    "nemotron h 2": {"layers_block_type": ["linear_attention", "full_attention", "mlp"]},
    "nemotron h latent": {"hybrid_override_pattern": "ME*E", "use_bias": False, "n_group": 1},
    "qwen3 next": {"layer_types": _FOUR, "num_hidden_layers": 4},
    "qwen3 next dense": {"mlp_only_layers": [], "norm_topk_prob": True},
    "lfm2 moe": {"routed_scaling_factor": 1.0},
}  # fmt: skip


def row(name: str) -> Row:
    """A row with what differs."""
    found = _ALL[name.rstrip(" 2345")] if name not in _ALL else _ALL[name]
    return found._replace(settings={**found.settings, **CHANGES[name]})
