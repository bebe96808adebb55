"""How GGUF and Hugging Face name the same models: keys, tensors, and what differs in their values.

Tables only: the left side is what llama.cpp's converter writes for an architecture, the right side
what config.json and the checkpoints of `transformers` have. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .gguf_dense import DENSE
from .gguf_encoders import ENCODERS
from .gguf_experts import MIXTURES
from .gguf_family import ONE, ROW, TRANSPOSED, Family
from .gguf_hybrids import HYBRIDS
from .gguf_latent import LATENT
from .gguf_nemotron import NEMOTRONS
from .gguf_older import OLDER
from .gguf_stacks import STACKS
from .gguf_states import FALCON_MAMBA, JAMBA, LFM2, MAMBA, MAMBA2
from .gguf_words import (
    ATTENTION,
    EXPERT_KEYS,
    HEAD_NORMS,
    KEYS,
    MIXTURE,
    NET,
    ROTARY,
    SILU,
    STACKED,
    UNBIASED,
    WHOLE,
    unstretched,
)


def _three_of_four(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same, where every fourth layer sees all; others are refused."""
    usual = ["sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(config["num_hidden_layers"])]
    kinds = config.get("layer_types") or usual
    if kinds != usual or config.get("sliding_window_pattern", 4) != 4 or not config.get("sliding_window"):
        raise ValueError("GGUF files of cohere2 always mean windows in three of four layers.")
    return unstretched(config)


def _by_fours(config: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing more to say of layers of which every fourth is not rotated; others are refused."""
    turned = config.get("no_rope_layers")
    if turned is not None and turned != [int((i + 1) % 4 != 0) for i in range(config["num_hidden_layers"])]:
        raise ValueError(f"no_rope_layers is {turned}; GGUF files of smollm3 always mean every fourth.")
    return {}


LLAMA = Family("llama", "llama", "LlamaForCausalLM", KEYS, WHOLE, ATTENTION | NET, fixes=ROTARY, fixed=SILU)
# The window is a key of our own; programs that do not know it let all positions be seen.
MISTRAL = Family(
    "llama",
    "mistral",
    "MistralForCausalLM",
    KEYS | {"attention.sliding_window": "sliding_window"},
    WHOLE,
    ATTENTION | NET,
    fixes=ROTARY,
    fixed=SILU,
    when=lambda metadata: bool(metadata.get("llama.attention.sliding_window")),
)
MIXTRAL = Family(
    "llama",
    "mixtral",
    "MixtralForCausalLM",
    KEYS | {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"},
    WHOLE,
    ATTENTION
    | {
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate_inp": "block_sparse_moe.gate",
        "ffn_gate_exps": "block_sparse_moe.experts.{e}.w1",
        "ffn_down_exps": "block_sparse_moe.experts.{e}.w2",
        "ffn_up_exps": "block_sparse_moe.experts.{e}.w3",
    },
    fixes=ROTARY | STACKED,
    fixed=SILU,
    theta=1e6,
    when=lambda metadata: bool(metadata.get("llama.expert_count")),
)
QWEN2 = Family(
    "qwen2", "qwen2", "Qwen2ForCausalLM", KEYS, WHOLE, ATTENTION | NET, fixed=SILU | {"use_sliding_window": False}
)
QWEN3 = Family(
    "qwen3",
    "qwen3",
    "Qwen3ForCausalLM",
    KEYS,
    WHOLE,
    ATTENTION | HEAD_NORMS | NET,
    fixed=SILU | {"use_sliding_window": False, "attention_bias": False},
)
QWEN2_MOE = Family(
    "qwen2moe",
    "qwen2_moe",
    "Qwen2MoeForCausalLM",
    KEYS | EXPERT_KEYS | {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
    WHOLE,
    ATTENTION
    | MIXTURE
    | {
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
        "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
        "ffn_up_shexp": "mlp.shared_expert.up_proj",
        "ffn_down_shexp": "mlp.shared_expert.down_proj",
    },
    fixes=STACKED | {"ffn_gate_inp_shexp": ROW},
    fixed=SILU
    | {"use_sliding_window": False, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": False},
)
QWEN3_MOE = Family(
    "qwen3moe",
    "qwen3_moe",
    "Qwen3MoeForCausalLM",
    KEYS | EXPERT_KEYS,
    WHOLE,
    ATTENTION | HEAD_NORMS | MIXTURE | {"ffn_norm": "post_attention_layernorm"},
    fixes=STACKED,
    fixed=SILU
    | {
        "use_sliding_window": False,
        "attention_bias": False,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
    },
)
_SHIFTED = dict.fromkeys(
    ("output_norm", "attn_norm", "attn_q_norm", "attn_k_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), ONE
)
_MORE_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_WINDOW = {"attention.sliding_window": "sliding_window"}
_GELU = {"hidden_activation": "gelu_pytorch_tanh", "attention_bias": False}
GEMMA = Family("gemma", "gemma", "GemmaForCausalLM", KEYS, WHOLE, ATTENTION | NET, fixes=_SHIFTED, fixed=_GELU)
GEMMA2 = Family(
    "gemma2",
    "gemma2",
    "Gemma2ForCausalLM",
    KEYS
    | _WINDOW
    | {"attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping"},
    WHOLE,
    ATTENTION | NET | _MORE_NORMS,
    fixes=_SHIFTED,
    fixed=_GELU,
)
GEMMA3 = Family(
    "gemma3",
    "gemma3_text",
    "Gemma3ForCausalLM",
    KEYS | _WINDOW | {"rope.freq_base_swa": "rope_local_base_freq"},
    WHOLE,
    ATTENTION | HEAD_NORMS | NET | _MORE_NORMS,
    fixes=_SHIFTED,
    fixed=_GELU,
    theta=1e6,
)
# Products are fused in both worlds, in the same order.
PHI3 = Family(
    "phi3",
    "phi3",
    "Phi3ForCausalLM",
    KEYS | _WINDOW,
    WHOLE,
    {
        "attn_norm": "input_layernorm",
        "attn_qkv": "self_attn.qkv_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_up": "mlp.gate_up_proj",
        "ffn_down": "mlp.down_proj",
    },
    fixed=SILU | {"attention_bias": False},
    partial="partial_rotary_factor",
)
STARCODER2 = Family(
    "starcoder2",
    "starcoder2",
    "Starcoder2ForCausalLM",
    {key: name for key, name in KEYS.items() if name != "rms_norm_eps"}
    | _WINDOW
    | {"attention.layer_norm_epsilon": "norm_epsilon"},
    WHOLE,
    ATTENTION | {"ffn_norm": "post_attention_layernorm", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
    fixed={"hidden_act": "gelu_pytorch_tanh", "use_bias": True},
)
# Norms are behind attention and the net only, and those of queries and keys are of all heads at once.
OLMO2 = Family(
    "olmo2",
    "olmo2",
    "Olmo2ForCausalLM",
    KEYS,
    WHOLE,
    {name: hf for name, hf in (ATTENTION | HEAD_NORMS | NET).items() if name not in ("attn_norm", "ffn_norm")}
    | {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"},
    fixed=SILU | {"attention_bias": False},
)
SEED_OSS = Family(
    "seed_oss",
    "seed_oss",
    "SeedOssForCausalLM",
    KEYS,
    WHOLE,
    {name: hf for name, hf in (ATTENTION | NET).items() if name != "ffn_norm"}
    | {"post_attention_norm": "post_attention_layernorm"},
    fixed=SILU | {"attention_bias": True, "attention_out_bias": False, "mlp_bias": False},
)
GRANITE = Family(
    "granite",
    "granite",
    "GraniteForCausalLM",
    KEYS
    | {
        "attention.scale": "attention_multiplier",
        "embedding_scale": "embedding_multiplier",
        "residual_scale": "residual_multiplier",
        "logit_scale": "logits_scaling",
    },
    WHOLE,
    ATTENTION | NET,
    fixes=ROTARY,
    fixed=UNBIASED,
)
# Every fourth layer is not rotated; files do not say so.
SMOLLM3 = replace(
    LLAMA,
    architecture="smollm3",
    model_type="smollm3",
    model_class="SmolLM3ForCausalLM",
    fixed=UNBIASED | {"use_sliding_window": False, "no_rope_layer_interval": 4},
    theta=2e6,
    told=_by_fours,
)
# One norm for attention and net; the table of tokens makes the logits, too.
COHERE = Family(
    "command-r",
    "cohere",
    "CohereForCausalLM",
    {key: name for key, name in KEYS.items() if name != "rms_norm_eps"}
    | {"attention.layer_norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale"},
    WHOLE,
    {name: hf for name, hf in (ATTENTION | NET).items() if name != "ffn_norm"},
    fixed=SILU | {"attention_bias": False, "use_qk_norm": False, "tie_word_embeddings": True},
    told=unstretched,
)
# Three of four layers see a window and are rotated, the others do neither; files do not say so.
COHERE2 = replace(
    COHERE,
    architecture="cohere2",
    model_type="cohere2",
    model_class="Cohere2ForCausalLM",
    keys=COHERE.keys | _WINDOW,
    fixed=SILU | {"attention_bias": False, "tie_word_embeddings": True},
    told=_three_of_four,
)
GPT2 = Family(
    "gpt2",
    "gpt2",
    "GPT2LMHeadModel",
    {
        "context_length": "n_positions",
        "embedding_length": "n_embd",
        "block_count": "n_layer",
        "feed_forward_length": "n_inner",
        "attention.head_count": "n_head",
        "attention.layer_norm_epsilon": "layer_norm_epsilon",
        "vocab_size": "vocab_size",
    },
    {
        "token_embd": "transformer.wte",
        "position_embd": "transformer.wpe",
        "output_norm": "transformer.ln_f",
        "output": "lm_head",
    },
    {
        "attn_norm": "ln_1",
        "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj",
        "ffn_norm": "ln_2",
        "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
    },
    layers="transformer.h",
    prefix="transformer.",
    fixes=dict.fromkeys(("attn_qkv", "attn_output", "ffn_up", "ffn_down"), TRANSPOSED),
    fixed={"activation_function": "gelu_new"},
    rotates=False,
    dropped=(r"\.attn\.(masked_)?bias$",),
)
FAMILIES = [
    *(LLAMA, MIXTRAL, MISTRAL, QWEN2, QWEN3, QWEN2_MOE, QWEN3_MOE, GEMMA, GEMMA2, GEMMA3, PHI3, GPT2),
    *(COHERE, COHERE2, STARCODER2, OLMO2, SEED_OSS, GRANITE, SMOLLM3),
    *(MAMBA, FALCON_MAMBA, MAMBA2, JAMBA, LFM2),
    *(*OLDER, *DENSE, *MIXTURES, *STACKS, *LATENT, *HYBRIDS, *NEMOTRONS, *ENCODERS),
]


def by_metadata(metadata: Any) -> Family:
    """The family of a GGUF file.

    >>> from votive.models.gguf_families import by_metadata
    >>> by_metadata({"general.architecture": "llama", "llama.expert_count": 8}).model_type
    'mixtral'
    """
    name = metadata.get("general.architecture")
    found = [f for f in FAMILIES if f.architecture == name]
    if not found:
        known = ", ".join(sorted({f.architecture for f in FAMILIES}))
        raise ValueError(f"GGUF files of the architecture {name!r} are unknown; known: {known}.")
    for family in found:
        if family.when is not None and family.when(metadata):
            return family
    return found[0]


def by_model_type(model_type: object) -> Family:
    """The family of a Hugging Face configuration.

    >>> from votive.models.gguf_families import by_model_type
    >>> by_model_type("mistral").architecture
    'llama'
    """
    found = {f.model_type: f for f in FAMILIES}
    if model_type not in found:
        raise ValueError(f"models of the type {model_type!r} cannot become GGUF; {', '.join(sorted(found))} can.")
    return found[model_type]
