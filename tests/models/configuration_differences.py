"""Where newer families decide otherwise than transformers what a key means: states, why, families and keys."""

from __future__ import annotations

# Each line: a family, and keys.
REFUSED_HERE_NULL = """
bart activation_dropout activation_function classifier_dropout d_model decoder_attention_heads decoder_ffn_dim
  decoder_layerdrop decoder_layers dropout encoder_attention_heads encoder_ffn_dim encoder_layerdrop
  encoder_layers init_std is_decoder is_encoder_decoder scale_embedding
camembert pad_token_id
deepseek_v2 topk_method
deepseek_v3 first_k_dense_replace n_group topk_group
falcon activation hidden_dropout layer_norm_epsilon
m2m_100 pad_token_id
nomic_bert tie_word_embeddings
plbart initializer_range
qwen2_5_vl_text max_window_layers use_sliding_window
qwen2_vl_text max_window_layers use_sliding_window
roberta pad_token_id
xlm-roberta pad_token_id
xlm-roberta-xl pad_token_id
"""
REFUSED_HERE_VALUE = """
convnext depths hidden_sizes num_stages
convnextv2 depths hidden_sizes num_stages
deberta max_relative_positions
deberta-v2 max_relative_positions
deepseek_v2 norm_topk_prob num_key_value_heads topk_method
deepseek_v3 num_attention_heads num_key_value_heads
detr dilation
electra summary_type
eurobert classifier_pooling
falcon_h1 mlp_multipliers ssm_multipliers
granitemoehybrid position_embedding_type
minicpm3 num_attention_heads num_key_value_heads
mpt expansion_ratio no_bias
mvp use_prompt
phimoe num_experts_per_tok
resnet depths hidden_sizes
segformer num_encoder_blocks
swin depths num_heads
"""
REFUSED_THERE_NULL = """
bamba layer_types mamba_d_head
blenderbot decoder_start_token_id
convnext depths
convnextv2 depths
cwm bos_token_id
deepseek_v2 v_head_dim
dots1 max_window_layers
electra summary_activation
exaone4 sliding_window
falcon_h1 layer_types mamba_d_head
granite attention_multiplier embedding_multiplier logits_scaling residual_multiplier
granite_swa attention_multiplier embedding_multiplier logits_scaling residual_multiplier
granitemoehybrid mamba_d_head
hubert vocab_size
hyperclovax embedding_multiplier logits_scaling residual_multiplier
jamba num_key_value_heads
lfm2 block_ffn_dim_multiplier num_key_value_heads
lfm2_moe num_key_value_heads
marian decoder_start_token_id
modernbert initializer_cutoff_factor
nemotron_h num_key_value_heads
nomic_bert pad_token_id
phimoe num_key_value_heads
qwen3_next num_key_value_heads
resnet depths hidden_sizes
seed_oss head_dim
"""
REFUSED_THERE_VALUE = """
bamba time_step_limit
exaone_moe mlp_layer_types
falcon_h1 time_step_limit
granitemoehybrid time_step_limit
internlm3 attention_bias mlp_bias
llama4_text no_rope_layers
"""
COMPUTED_ABSENT = """
bamba layer_types
deberta pooler_hidden_size
deberta-v2 pooler_hidden_size
falcon_h1 layer_types
hunyuan_v1_dense head_dim
hunyuan_v1_moe head_dim
minimax head_dim
ministral head_dim
nemotron num_key_value_heads
qwen2_moe sliding_window
"""
COMPUTED_NULL = """
cohere2 head_dim
convnext hidden_sizes
convnextv2 hidden_sizes
cwm eos_token_id
deepseek_v3 head_dim
ernie4_5_moe num_key_value_heads
falcon_mamba intermediate_size
glm head_dim num_key_value_heads
hunyuan_v1_dense head_dim
hunyuan_v1_moe head_dim
mamba intermediate_size
minimax head_dim
ministral head_dim
nemotron num_key_value_heads
qwen2_moe num_key_value_heads sliding_window
umt5 decoder_start_token_id
"""
COMPUTED_VALUE = """
qwen2_moe sliding_window
umt5 tie_word_embeddings
"""
# What transformers reads of a file otherwise than it was: one number of two names, and one that it computes.
READ_OTHERWISE = {
    ("plbart", "init_std"), ("plbart", "initializer_range"), ("deberta", "pooler_hidden_size"),
    ("deberta-v2", "pooler_hidden_size"),
}  # fmt: skip
_TABLES = (
    (REFUSED_HERE_NULL, "null", "no model can be made of it"),
    (REFUSED_HERE_VALUE, "value", "it contradicts what the file says else, and is told so"),
    (REFUSED_THERE_NULL, "null", "transformers is stricter of types; here it means what is absent"),
    (REFUSED_THERE_VALUE, "value", "transformers is stricter of types; here it means what is absent"),
    (COMPUTED_ABSENT, "absent", "computed at once on one side, and when it is used on the other; or kept as told"),
    (COMPUTED_NULL, "null", "computed at once on one side, and when it is used on the other; or kept as told"),
    (COMPUTED_VALUE, "value", "computed at once on one side, and when it is used on the other; or kept as told"),
)


def differences() -> dict[tuple[str, str], tuple[set[str], str]]:
    """The states of each family's key that are decided otherwise, and why."""
    found: dict[tuple[str, str], tuple[set[str], str]] = {}
    for table, state, why in _TABLES:
        for line in table.replace("\n  ", " ").strip().splitlines():
            family, *keys = line.split()
            for key in keys:
                states, before = found.get((family, key), (set(), why))
                found[family, key] = {*states, state}, before
    return found
