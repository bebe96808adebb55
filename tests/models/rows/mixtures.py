"""Mixtures of experts with rotary positions."""

from __future__ import annotations

from . import SMALL, Row, causal

THREE = {**SMALL, "num_hidden_layers": 3}
_SIGMOID = {"n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 16, "routed_scaling_factor": 1.5}
_GROUPS = {"n_group": 4, "topk_group": 2}
_GRANITE = {"num_local_experts": 5, "embedding_multiplier": 3.0, "logits_scaling": 2.0, "attention_multiplier": 0.3}

ROWS: dict[str, Row] = {
    "phimoe": causal("Phimoe", {**SMALL, "num_local_experts": 5, "lm_head_bias": True, "attention_bias": True}),
    "phimoe for long texts": causal(
        "Phimoe",
        {
            **SMALL,
            "num_local_experts": 4,
            "router_jitter_noise": 0.2,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 1e4,
                "short_factor": [1.0, 1.1, 1.5, 2.0],
                "long_factor": [1.0, 2.0, 4.0, 8.0],
                "short_mscale": 1.2,
                "long_mscale": 1.4,
                "original_max_position_embeddings": 16,
            },
        },
    ),
    "olmoe": causal("Olmoe", {**SMALL, "num_experts": 6, "num_experts_per_tok": 3, "clip_qkv": 1.0}),
    "flex olmo": causal(
        "FlexOlmo", {**SMALL, "num_experts": 5, "num_experts_per_tok": 4, "norm_topk_prob": True, "pad_token_id": 0}
    ),
    "granite moe": causal("GraniteMoe", {**SMALL, **_GRANITE, "residual_multiplier": 0.5}),
    "granite moe with a shared net": causal(
        "GraniteMoeShared", {**SMALL, **_GRANITE, "shared_intermediate_size": 24, "tie_word_embeddings": True}
    ),
    "granite moe with windows": causal(
        "GraniteMoeSWA",
        {**SMALL, **_GRANITE, "shared_intermediate_size": 24, "sliding_window": 4, "layer_rope_theta": [1e4, 0]},
    ),
    "qwen2 moe": causal(
        "Qwen2Moe",
        {
            **SMALL,
            "num_experts": 6,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 24,
        },
    ),
    "qwen2 moe with dense layers": causal(
        "Qwen2Moe",
        {
            **SMALL,
            "num_hidden_layers": 4,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 24,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [1],
            "qkv_bias": False,
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 3,
            "norm_topk_prob": True,
        },
    ),
    "glm4 moe": causal("Glm4Moe", {**SMALL, **_SIGMOID, **_GROUPS, "use_qk_norm": True, "head_dim": 16}),
    "solar open": causal("SolarOpen", {**SMALL, **_SIGMOID, "head_dim": 16, "attention_bias": True}),
    "exaone moe": causal(
        "ExaoneMoe",
        {
            **THREE,
            "num_experts": 8,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 16,
            **_GROUPS,
            "sliding_window": 4,
        },
    ),
    "dots1": causal(
        "Dots1",
        {
            **THREE,
            **_SIGMOID,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "sliding_window": 4,
            "max_window_layers": 2,
            "norm_topk_prob": True,
        },
    ),
    "minimax m2": causal(
        "MiniMaxM2", {**SMALL, "num_local_experts": 6, "num_experts_per_tok": 3, "head_dim": 16, "rotary_dim": 8}
    ),
    "ernie moe": causal(
        "Ernie4_5_Moe",
        {
            **THREE,
            "moe_num_experts": 6,
            "moe_k": 3,
            "moe_intermediate_size": 16,
            "moe_layer_end_index": 1,
            "use_bias": True,
            "pad_token_id": 0,
        },
    ),
    "hunyuan moe": causal(
        "HunYuanMoEV1", {**SMALL, "num_experts": 5, "moe_topk": 2, "pad_token_id": 0, "head_dim": 16}
    ),
    "gpt oss": causal(
        "GptOss", {**SMALL, "num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 4}
    ),
    "llama4": causal(
        "Llama4",
        {
            **SMALL,
            "num_hidden_layers": 4,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "head_dim": 16,
            "intermediate_size_mlp": 40,
            "interleave_moe_layer_step": 2,
            "attention_chunk_size": 5,
            "floor_scale": 3,
            "pad_token_id": 0,
        },
        "Llama4TextConfig",
    ),
}
