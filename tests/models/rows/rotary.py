"""Dense decoders with rotary positions that are near a Llama."""

from __future__ import annotations

from . import SMALL, Row, causal

FOUR = {**SMALL, "num_hidden_layers": 4}
_YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}

ROWS: dict[str, Row] = {
    "phi": causal("Phi", {**SMALL, "num_key_value_heads": None}),
    "phi with normed heads": causal(
        "Phi", {**SMALL, "qk_layernorm": True, "partial_rotary_factor": 1.0, "rope_parameters": _YARN}
    ),
    "stablelm": causal("StableLm", {**SMALL, "hidden_size": 64}),
    "stablelm side by side": causal(
        "StableLm",
        {
            **SMALL,
            "use_parallel_residual": True,
            "qk_layernorm": True,
            "use_qkv_bias": True,
            "partial_rotary_factor": 0.5,
        },
    ),
    "olmo": causal("Olmo", {**SMALL, "clip_qkv": 0.5, "attention_bias": True}),
    "olmo2": causal("Olmo2", SMALL),
    "olmo3": causal(
        "Olmo3",
        {
            **FOUR,
            "sliding_window": 4,
            "rope_parameters": {
                "full_attention": _YARN,
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e3},
            },
        },
    ),
    "granite": causal(
        "Granite",
        {
            **SMALL,
            "embedding_multiplier": 3.0,
            "logits_scaling": 5.0,
            "residual_multiplier": 0.4,
            "attention_multiplier": 0.2,
        },
    ),
    "granite with windows": causal(
        "GraniteSWA",
        {
            **SMALL,
            "num_hidden_layers": 3,
            "sliding_window": 4,
            "layer_rope_theta": [0.0, 1e4, 100.0],
            "attention_multiplier": 0.3,
            "attention_bias": True,
        },
    ),
    "hyperclovax": causal("HyperCLOVAX", {**SMALL, "logits_scaling": 0.3, "residual_multiplier": 0.5, "head_dim": 16}),
    "hyperclovax without more norms": causal("HyperCLOVAX", {**SMALL, "use_post_norm": False}),
    "cohere": causal("Cohere", {**SMALL, "pad_token_id": 0}),
    "cohere with normed heads": causal(
        "Cohere",
        {**SMALL, "pad_token_id": 0, "use_qk_norm": True, "attention_bias": True, "tie_word_embeddings": False},
    ),
    "cohere2": causal("Cohere2", {**FOUR, "pad_token_id": 0, "sliding_window": 4, "head_dim": 16}),
    "starcoder2": causal("Starcoder2", SMALL),
    "starcoder2 with windows": causal("Starcoder2", {**SMALL, "sliding_window": 4, "use_bias": False}),
    "smollm3": causal("SmolLM3", {**SMALL, "no_rope_layer_interval": 2, "pad_token_id": 0}),
    "smollm3 with windows": causal(
        "SmolLM3",
        {**SMALL, "no_rope_layers": [0, 1], "use_sliding_window": True, "sliding_window": 4, "attention_bias": True},
    ),
    "glm": causal("Glm", {**SMALL, "head_dim": 16, "pad_token_id": 0}),
    "glm4": causal("Glm4", {**SMALL, "head_dim": 8, "pad_token_id": 0, "attention_bias": False}),
    "exaone4": causal("Exaone4", {**SMALL, "sliding_window": 4, "sliding_window_pattern": 2}),
    "exaone4 that sees all": causal(
        "Exaone4", {**SMALL, "sliding_window": None, "layer_types": ["full_attention"] * 2}
    ),
    "nemotron": causal("Nemotron", {**SMALL, "head_dim": 16}),
    "nemotron with biases": causal(
        "Nemotron", {**SMALL, "attention_bias": True, "mlp_bias": True, "partial_rotary_factor": 1.0}
    ),
    "arcee": causal("Arcee", {**SMALL, "mlp_bias": True}),
    "jais2": causal("Jais2", SMALL),
    "apertus": causal("Apertus", {**SMALL, "pad_token_id": 0}),
    "ernie": causal("Ernie4_5", {**SMALL, "head_dim": 16, "use_bias": True}),
    "hunyuan": causal(
        "HunYuanDenseV1",
        {
            **SMALL,
            "pad_token_id": 0,
            "head_dim": 16,
            "rope_parameters": {"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0, "rope_theta": 1e4},
        },
    ),
    "ministral": causal(
        "Ministral",
        {**SMALL, "sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"], "head_dim": 16},
    ),
    "ministral3": causal(
        "Ministral3",
        {
            **SMALL,
            "head_dim": 16,
            "rope_parameters": {**_YARN, "llama_4_scaling_beta": 0.5, "mscale": 1.0, "mscale_all_dim": 1.0},
        },
    ),
    "cwm": causal("Cwm", {**SMALL, "head_dim": 16, "sliding_window": 4}),
    "internlm3": Row(
        "LlamaForCausalLM",
        "InternLM3Config",
        {**SMALL, "head_dim": 16, "attention_bias": True, "mlp_bias": True},
        "InternLM3ForCausalLM",
    ),
    "iquestcoder": Row("LlamaForCausalLM", "IQuestCoderConfig", {**SMALL, "head_dim": 16}, "IQuestCoderForCausalLM"),
    "seed oss": causal("SeedOss", {**SMALL, "head_dim": 16, "attention_out_bias": True}),
    "helium": causal("Helium", {**SMALL, "head_dim": 8, "attention_bias": True}),
}
