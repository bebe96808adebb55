"""Decoders with states in place of keys that are compared with transformers, and what sets them apart."""

from __future__ import annotations

from typing import Any

from tests.models.rows import Row, causal

_SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_HEADS = {**_SMALL, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
_MAMBA2 = {"mamba_n_heads": 8, "mamba_n_groups": 2, "mamba_d_state": 8, "mamba_chunk_size": 4}
_FREE = {"projectors_bias": True, "mamba_proj_bias": True, "attention_bias": True, "mlp_bias": True}

ROWS: dict[str, Row] = {
    "mamba": causal("Mamba", {**_SMALL, "state_size": 5}),
    "mamba with biases": causal(
        "Mamba",
        {**_SMALL, "use_bias": True, "use_conv_bias": False, "conv_kernel": 3, "expand": 3, "time_step_rank": 5,
         "tie_word_embeddings": False, "hidden_act": "gelu", "residual_in_fp32": False},
    ),
    "falcon mamba": causal(
        "FalconMamba",
        {**_SMALL, "state_size": 5, "mixer_rms_eps": 1e-3, "intermediate_size": 40},
    ),
    "mamba2": causal(
        "Mamba2",
        {**_SMALL, "num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2, "chunk_size": 4},
    ),
    "mamba2 with biases": causal(
        "Mamba2",
        {**_SMALL, "num_heads": 4, "head_dim": 16, "state_size": 6, "n_groups": 1, "chunk_size": 16, "use_bias": True,
         "use_conv_bias": False, "conv_kernel": 2, "tie_word_embeddings": True},
    ),
    "jamba": causal(
        "Jamba",
        {**_HEADS, "attn_layer_period": 3, "attn_layer_offset": 1, "num_experts": 4, "mamba_d_state": 5},
    ),
    "jamba without experts": causal(
        "Jamba",
        {**_HEADS, "attn_layer_period": 2, "attn_layer_offset": 0, "num_experts": 1, "mamba_proj_bias": True,
         "mamba_conv_bias": False, "mamba_d_conv": 2, "mamba_dt_rank": 3, "tie_word_embeddings": True},
    ),
    "bamba": causal("Bamba", {**_HEADS, **_MAMBA2, "attn_layer_indices": [1], "z_loss_coefficient": 0.1}),
    "bamba with biases": causal(
        "Bamba",
        {**_HEADS, **_MAMBA2, "attn_layer_indices": [0, 2], "attention_bias": True, "mlp_bias": True,
         "mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_n_groups": 1},
    ),
    "granite hybrid": causal(
        "GraniteMoeHybrid",
        {**_HEADS, **_MAMBA2, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
         "num_local_experts": 4, "shared_intermediate_size": 24, "position_embedding_type": "rope",
         "embedding_multiplier": 2.0, "logits_scaling": 3.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2},
    ),
    "granite hybrid without experts": causal(
        "GraniteMoeHybrid",
        {**_HEADS, **_MAMBA2, "layer_types": ["mamba", "attention", "mamba"], "num_local_experts": 0,
         "shared_intermediate_size": 24, "tie_word_embeddings": True},
    ),
    "falcon h1": causal(
        "FalconH1",
        {**_HEADS, **_MAMBA2, "mamba_d_ssm": 48, "mlp_multipliers": [0.7, 1.3], "ssm_multipliers": [0.5, 1.5,
         0.8, 1.2, 0.9],
         "key_multiplier": 0.6, "attention_in_multiplier": 1.4, "attention_out_multiplier": 0.7,
         "ssm_in_multiplier": 1.1,
         "ssm_out_multiplier": 0.6, "lm_head_multiplier": 0.5, "embedding_multiplier": 3.0},
    ),
    "falcon h1 normed": causal(
        "FalconH1", {**_HEADS, **_MAMBA2, **_FREE, "mamba_d_ssm": None, "mamba_rms_norm": True,
        "mamba_norm_before_gate": False}
    ),
    "falcon h1 normed first": causal("FalconH1", {**_HEADS, **_MAMBA2, "mamba_d_ssm": 48, "mamba_rms_norm": True}),
    "nemotron h": causal(
        "NemotronH",
        {**{k: v for k, v in _HEADS.items() if k != "num_hidden_layers"}, "head_dim": 8, "ssm_state_size": 6,
         "layers_block_type": ["moe", "linear_attention", "full_attention", "mlp", "moe"], "mamba_num_heads": 4,
         "mamba_head_dim": 12, "n_groups": 2, "chunk_size": 4, "n_routed_experts": 4, "moe_intermediate_size": 24,
         "moe_shared_expert_intermediate_size": 24, "routed_scaling_factor": 1.5},
    ),
    "nemotron h latent": causal(
        "NemotronH",
        {**{k: v for k, v in _HEADS.items() if k != "num_hidden_layers"}, "head_dim": 8, "ssm_state_size": 6,
         "hybrid_override_pattern": "ME*-", "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 1,
         "n_routed_experts": 6, "moe_intermediate_size": 24, "moe_shared_expert_intermediate_size": 24,
         "moe_latent_size": 16, "mlp_bias": True, "use_bias": True, "n_group": 2, "norm_topk_prob": False},
    ),
    "qwen3 next": causal(
        "Qwen3Next",
        {**_HEADS, "head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
         "linear_value_head_dim": 6, "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
         "shared_expert_intermediate_size": 24, "layer_types": ["linear_attention", "full_attention",
         "linear_attention"]},
    ),
    "qwen3 next dense": causal(
        "Qwen3Next",
        {**_HEADS, "head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8,
         "linear_value_head_dim": 8, "num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 24,
         "norm_topk_prob": False, "shared_expert_intermediate_size": 24, "full_attention_interval": 2,
         "mlp_only_layers": [1], "linear_conv_kernel_dim": 2, "attention_bias": True,
         "rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5}},
    ),
    "lfm2": causal("Lfm2", {**_HEADS, "full_attn_idxs": [1], "block_multiple_of": 8}),
    "lfm2 with biases": causal(
        "Lfm2",
        {**_HEADS, "layer_types": ["full_attention", "conv", "conv"], "conv_bias": True, "conv_L_cache": 4,
         "block_auto_adjust_ff_dim": False, "tie_word_embeddings": False},
    ),
    "lfm2 moe": causal(
        "Lfm2Moe",
        {**_HEADS, "layer_types": ["conv", "full_attention", "conv"], "moe_intermediate_size": 24,
         "num_dense_layers": 1,
         "num_experts": 5, "num_experts_per_tok": 2, "routed_scaling_factor": 1.5},
    ),
    "recurrent gemma": causal("RecurrentGemma", {**_HEADS, "attention_window_size": 5}),
    "recurrent gemma with biases": causal(
        "RecurrentGemma",
        {**_HEADS, "attention_window_size": 64, "attention_bias": True, "num_key_value_heads": 1, "conv1d_width": 3,
         "head_dim": 16,
         "block_types": ["attention", "recurrent"], "logits_soft_cap": 5.0, "hidden_activation": "relu"},
    ),
    "minimax": causal(
        "MiniMax",
        {**_HEADS, "num_local_experts": 4, "block_size": 4, "full_attn_alpha_factor": 1.5,
         "full_attn_beta_factor": 0.5,
         "linear_attn_alpha_factor": 1.2, "linear_attn_beta_factor": 0.8, "mlp_alpha_factor": 0.9,
         "mlp_beta_factor": 1.1},
    ),
    "minimax with a window": causal("MiniMax", {**_HEADS, "num_local_experts": 2, "sliding_window": 4}),
    "rwkv": causal("Rwkv", {**_SMALL, "rescale_every": 2}),
    "rwkv with other widths": causal(
        "Rwkv",
        {**_SMALL, "intermediate_size": 40, "rescale_every": 0, "layer_norm_epsilon": 1e-3},
    ),
}  # fmt: skip
# Where transformers takes no positions.
WITHOUT_POSITIONS = ("mamba", "falcon mamba", "rwkv")
# Where it lets padding into states, or has texts of a batch read each other's: texts are compared one by one.
ALONE = ("rwkv", "recurrent gemma")
