"""Tiny models with random weights, and how tests run them."""

from __future__ import annotations

from typing import Any

import votive
from tests import tiny_sizes
from votive.models import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 61
# Large start values: the best token is then far ahead of the second, so rounding cannot swap them.
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    **tiny_sizes.transformer(32, 48, layers=2, heads=4),
    "initializer_range": 0.5,
    "max_position_embeddings": 512,
    "eos_token_id": None,
}


def model(kind: str = "llama", *, seed: int = 0, **changes: Any) -> Any:
    """A model of a family; "grouped" is a Llama with fewer key heads, "mistral" sees 6 tokens."""
    votive.manual_seed(seed)
    sizes = {**SIZES, **changes}
    if kind == "gpt2":
        config = GPT2Config(
            vocab_size=sizes["vocab_size"],
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=512,
            initializer_range=sizes["initializer_range"],
            eos_token_id=None,
        )
        return GPT2LMHeadModel(config).eval()
    if kind == "mixtral":
        sizes.update(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)
        return MixtralForCausalLM(MixtralConfig(**sizes)).eval()
    if kind == "qwen3":
        sizes.update(num_key_value_heads=2, head_dim=8)
        return Qwen3ForCausalLM(Qwen3Config(**sizes)).eval()
    if kind == "mistral":
        sizes.update(num_key_value_heads=2, sliding_window=6)
        return MistralForCausalLM(MistralConfig(**sizes)).eval()
    if kind == "grouped":
        sizes.update(num_key_value_heads=2)
    return LlamaForCausalLM(LlamaConfig(**sizes)).eval()


KINDS = ("llama", "grouped", "qwen3", "mistral", "gpt2", "mixtral")
PROMPT = [5, 17, 3, 42, 8, 29, 11]
