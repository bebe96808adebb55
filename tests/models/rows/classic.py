"""Decoders from before Llama: learned or no positions, biases, layer norms."""

from __future__ import annotations

from typing import Any

from . import SMALL, Row, causal

SHORT = {k: v for k, v in SMALL.items() if k not in ("num_key_value_heads", "max_position_embeddings")}
# Positions that are learned must reach as far as the tests look.
FAR = {**SHORT, "max_position_embeddings": 128}
GPT = {
    "vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
BLOOM = {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2}
MPT = {"vocab_size": 64, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128}
XGLM = {
    "vocab_size": 64, "d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48,
    "max_position_embeddings": 128,
}  # fmt: skip
OPT = {**FAR, "ffn_dim": 48, "pad_token_id": 1, "bos_token_id": 2}
NEO = {**FAR, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 4}
for _name in ("num_hidden_layers", "num_attention_heads"):
    del NEO[_name]


def _head(name: str, settings: dict[str, Any]) -> Row:
    return Row(f"{name}LMHeadModel", f"{name}Config", settings, f"{name}LMHeadModel")


ROWS = {
    "bloom": causal("Bloom", BLOOM),
    "bloom with other heads": causal("Bloom", {**BLOOM, "hidden_size": 36, "n_head": 6, "tie_word_embeddings": False}),
    "bloom with a normed stream": causal("Bloom", {**BLOOM, "apply_residual_connection_post_layernorm": True}),
    "mpt": causal("Mpt", MPT),
    "mpt with other heads": causal(
        "Mpt",
        {
            **MPT, "d_model": 36, "n_heads": 6,
            "attn_config": {"clip_qkv": 0.5, "softmax_scale": 0.7},
        },
    ),
    "falcon": causal("Falcon", SHORT),
    "falcon in sequence": causal("Falcon", {**SHORT, "parallel_attn": False, "multi_query": False, "bias": True}),
    "falcon of the new kind": causal("Falcon", {**SHORT, "new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon with one norm": causal(
        "Falcon",
        {
            **SHORT, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1,
            "ffn_hidden_size": 48, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
        },
    ),
    "opt": causal("OPT", OPT),
    "opt with norms behind": causal(
        "OPT", {**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 16, "activation_function": "gelu"}
    ),
    "opt without biases": causal(
        "OPT",
        {
            **OPT, "enable_bias": False, "layer_norm_elementwise_affine": False, "tie_word_embeddings": False,
            "_remove_final_layer_norm": True,
        },
    ),
    "gpt neo": causal("GPTNeo", NEO),
    "gpt neox": causal("GPTNeoX", {**SHORT, "rotary_pct": 0.5}),
    "gpt neox in sequence": causal(
        "GPTNeoX",
        {
            **SHORT, "use_parallel_residual": False, "attention_bias": False, "tie_word_embeddings": True,
            "rope_parameters": {
                "rope_type": "linear", "factor": 2.0, "rope_theta": 2e4, "partial_rotary_factor": 0.5,
            },
        },
    ),
    "gptj": causal("GPTJ", {**GPT, "rotary_dim": 4}),
    "gptj tied": causal("GPTJ", {**GPT, "rotary_dim": 8, "n_inner": 40, "tie_word_embeddings": True}),
    "codegen": causal("CodeGen", {**GPT, "n_head": 8, "rotary_dim": 2}),
    "gpt bigcode": causal("GPTBigCode", GPT),
    "gpt bigcode with all heads": causal(
        "GPTBigCode", {**GPT, "multi_query": False, "scale_attn_weights": False, "n_inner": 40}
    ),
    "xglm": causal("XGLM", XGLM),
    "xglm unscaled": causal(
        "XGLM", {**XGLM, "scale_embedding": False, "pad_token_id": 7, "d_model": 36, "activation_function": "relu"}
    ),
    "biogpt": causal("BioGpt", FAR),
    "gpt": _head("OpenAIGPT", GPT),
    "ctrl": _head("CTRL", {**GPT, "dff": 48, "layer_norm_epsilon": 1e-3}),
    "persimmon": causal("Persimmon", SHORT),
    "persimmon without normed heads": causal(
        "Persimmon",
        {
            **SHORT, "qk_layernorm": False, "hidden_act": "gelu", "pad_token_id": 3,
            "rope_parameters": {"rope_type": "default", "rope_theta": 3e4, "partial_rotary_factor": 0.25},
        },
    ),
}  # fmt: skip
