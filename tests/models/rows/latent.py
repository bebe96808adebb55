"""Decoders with latent attention: DeepSeek V2 and V3, MiniCPM3."""

from __future__ import annotations

from . import SMALL, causal

LATENT = {
    **SMALL, "num_key_value_heads": 4, "kv_lora_rank": 12, "q_lora_rank": 10, "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4, "v_head_dim": 5,
}  # fmt: skip
MIXED = {**LATENT, "moe_intermediate_size": 16, "n_routed_experts": 8, "num_experts_per_tok": 3}
YARN = {
    "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16,
        "mscale": 0.7, "mscale_all_dim": 0.9,
    }
}  # fmt: skip

ROWS = {
    "deepseek v2 moe": causal("DeepseekV2", {**MIXED, "first_k_dense_replace": 1}),
    "deepseek v2 moe in groups": causal(
        "DeepseekV2",
        {
            **MIXED, **YARN, "q_lora_rank": None, "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2,
            "routed_scaling_factor": 1.5, "attention_bias": True, "mlp_bias": True,
        },
    ),
    "deepseek v3 moe": causal(
        "DeepseekV3", {**MIXED, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, "n_shared_experts": 2}
    ),
    "deepseek v3 moe stretched": causal(
        "DeepseekV3",
        {
            **MIXED, **YARN, "first_k_dense_replace": 0, "n_group": 1, "topk_group": 1, "rope_interleave": False,
            "norm_topk_prob": False, "q_lora_rank": None, "attention_bias": True,
        },
    ),
    "minicpm3": causal("MiniCPM3", {**LATENT, "dim_model_base": 20}),
    "minicpm3 unscaled": causal(
        "MiniCPM3",
        {
            **LATENT, "scale_depth": None, "dim_model_base": None, "v_head_dim": None, "scale_emb": 1,
            "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True,
        },
    ),
}  # fmt: skip
