"""Keys and names that most kinds of GGUF files have in common, and small functions that read and write them.

Reads nothing; knows no kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .gguf_family import EXPERTS, KEY, QUERY

KEYS = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
ATTENTION = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
NET = {
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
ROTARY = {"attn_q": QUERY, "attn_k": KEY}
EXPERT_KEYS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}
MIXTURE = {
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.{e}.gate_proj",
    "ffn_up_exps": "mlp.experts.{e}.up_proj",
    "ffn_down_exps": "mlp.experts.{e}.down_proj",
}
STACKED = {"ffn_gate_exps": EXPERTS, "ffn_up_exps": EXPERTS, "ffn_down_exps": EXPERTS}
SILU = {"hidden_act": "silu"}
UNBIASED = {**SILU, "attention_bias": False, "mlp_bias": False}


def unstretched(config: Mapping[str, Any]) -> dict[str, Any]:
    """Rotations are as they are: files say so.

    >>> from votive.models.gguf_words import unstretched
    >>> unstretched({"rope_scaling": None})
    {'rope.scaling.type': 'none'}
    """
    return {} if config.get("rope_scaling") else {"rope.scaling.type": "none"}


def layered(eps: str) -> dict[str, str]:
    """The keys of decoders with norms that take a mean away; `eps` is what their configurations call its number.

    >>> from votive.models.gguf_words import layered
    >>> layered("layer_norm_eps")["attention.layer_norm_epsilon"]
    'layer_norm_eps'
    """
    told = {key: name for key, name in KEYS.items() if name != "rms_norm_eps"}
    return {**told, "attention.layer_norm_epsilon": eps}


def without(names: Mapping[str, str], *left: str) -> dict[str, str]:
    """Names but for some.

    >>> from votive.models.gguf_words import without
    >>> without({"ffn_gate": "a", "ffn_up": "b"}, "ffn_gate")
    {'ffn_up': 'b'}
    """
    return {key: name for key, name in names.items() if key not in left}


def windows(config: Mapping[str, Any]) -> dict[str, Any]:
    """Which layers see a window, as files say it.

    >>> from votive.models.gguf_words import windows
    >>> windows({"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]})
    {'attention.sliding_window_pattern': [True, False]}
    """
    if not config.get("sliding_window"):
        return {}
    return {"attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config["layer_types"]]}


def windowed(arch: str, config: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[str] | None:
    """The types of layers that a file tells; None where it tells none.

    >>> from votive.models.gguf_words import windowed
    >>> told = {"olmo2.attention.sliding_window_pattern": [True, False]}
    >>> windowed("olmo2", {"num_hidden_layers": 2}, told)
    ['sliding_attention', 'full_attention']
    """
    key = f"{arch}.attention.sliding_window_pattern"
    found = metadata.get(key)
    if found is None:
        return None
    layers = config["num_hidden_layers"]
    if not isinstance(found, list) or len(found) != layers or any(type(one) is not bool for one in found):
        raise ValueError(f"{key} is {found!r}; true or false is needed for each of {layers} layers.")
    return ["sliding_attention" if one else "full_attention" for one in found]
