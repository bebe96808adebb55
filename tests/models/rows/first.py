"""Llama and the families nearest to it."""

from __future__ import annotations

from typing import Any

from . import SMALL, Row

GPT2 = {
    "vocab_size": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def _rope(**told: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 1e4, **told}}


def _llama(**more: Any) -> Row:
    return Row("LlamaForCausalLM", "LlamaConfig", {**SMALL, **more}, "LlamaForCausalLM")


ROWS = {
    "llama": _llama(),
    "llama tied": _llama(tie_word_embeddings=True),
    "llama with biases": _llama(attention_bias=True, mlp_bias=True),
    "llama with wide heads": _llama(head_dim=16),
    "llama without shared heads": _llama(num_key_value_heads=None),
    "llama rope linear": _llama(**_rope(rope_type="linear", factor=2.0)),
    "llama rope dynamic": _llama(**_rope(rope_type="dynamic", factor=2.0)),
    "llama rope llama3": _llama(
        **_rope(
            rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=32,
        )
    ),
    "llama rope yarn": _llama(
        **_rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)
    ),
    "mistral": Row(
        "MistralForCausalLM", "MistralConfig", {**SMALL, "sliding_window": 4}, "MistralForCausalLM"
    ),
    "qwen2": Row("Qwen2ForCausalLM", "Qwen2Config", SMALL, "Qwen2ForCausalLM"),
    "qwen2 with windows": Row(
        "Qwen2ForCausalLM", "Qwen2Config",
        {**SMALL, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
        "Qwen2ForCausalLM",
    ),
    "qwen3": Row(
        "Qwen3ForCausalLM", "Qwen3Config", {**SMALL, "head_dim": 16, "tie_word_embeddings": True},
        "Qwen3ForCausalLM",
    ),
    "gpt2": Row("GPT2LMHeadModel", "GPT2Config", GPT2, "GPT2LMHeadModel"),
    "gpt2 with other scales": Row(
        "GPT2LMHeadModel", "GPT2Config",
        {
            **GPT2, "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True,
            "reorder_and_upcast_attn": True, "n_inner": 40, "activation_function": "relu",
        },
        "GPT2LMHeadModel",
    ),
    "mixtral": Row(
        "MixtralForCausalLM", "MixtralConfig", {**SMALL, "num_local_experts": 5},
        "MixtralForCausalLM",
    ),
    "mixtral with windows": Row(
        "MixtralForCausalLM", "MixtralConfig",
        {**SMALL, "num_local_experts": 3, "sliding_window": 4},
        "MixtralForCausalLM",
    ),
    "qwen3 moe": Row(
        "Qwen3MoeForCausalLM", "Qwen3MoeConfig",
        {
            **SMALL, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 16,
            "norm_topk_prob": True, "head_dim": 16,
        },
        "Qwen3MoeForCausalLM",
    ),
    "qwen3 moe with dense layers": Row(
        "Qwen3MoeForCausalLM", "Qwen3MoeConfig",
        {
            **SMALL, "num_hidden_layers": 4, "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 16, "decoder_sparse_step": 2, "mlp_only_layers": [1],
        },
        "Qwen3MoeForCausalLM",
    ),
    "gemma": Row(
        "GemmaForCausalLM", "GemmaConfig", {**SMALL, "head_dim": 16, "pad_token_id": 0},
        "GemmaForCausalLM",
    ),
    "gemma2": Row(
        "Gemma2ForCausalLM", "Gemma2Config",
        {
            **SMALL, "head_dim": 16, "pad_token_id": 0, "query_pre_attn_scalar": 24,
            "sliding_window": 4, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
        },
        "Gemma2ForCausalLM",
    ),
    "vaultgemma": Row(
        "VaultGemmaForCausalLM", "VaultGemmaConfig",
        {
            **SMALL, "head_dim": 16, "pad_token_id": 0, "query_pre_attn_scalar": 24,
            "sliding_window": 4, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
        },
        "VaultGemmaForCausalLM",
    ),
    "gemma3": Row(
        "Gemma3ForCausalLM", "Gemma3TextConfig",
        {
            **SMALL, "head_dim": 16, "pad_token_id": 0, "query_pre_attn_scalar": 24,
            "sliding_window": 4, "num_hidden_layers": 3,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        "Gemma3ForCausalLM",
    ),
    "phi3": Row(
        "Phi3ForCausalLM", "Phi3Config",
        {**SMALL, "sliding_window": 5, "pad_token_id": 0}, "Phi3ForCausalLM",
    ),
    "phi3 turning a part": Row(
        "Phi3ForCausalLM", "Phi3Config",
        {
            **SMALL, "pad_token_id": 0,
            "rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5},
        },
        "Phi3ForCausalLM",
    ),
    "phi3 for long texts": Row(
        "Phi3ForCausalLM", "Phi3Config",
        {
            **SMALL, "pad_token_id": 0, "original_max_position_embeddings": 16,
            "rope_parameters": {
                "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0, 1.1, 1.5, 2.0],
                "long_factor": [1.0, 2.0, 4.0, 8.0],
            },
        },
        "Phi3ForCausalLM",
    ),
}  # fmt: skip
