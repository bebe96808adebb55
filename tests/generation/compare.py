"""A tiny model of transformers and votive's with the same weights."""

from __future__ import annotations

from typing import Any

from tests import tiny_sizes
from tests.models.compare import pair, torch, transformers
from votive import models

SIZES: dict[str, Any] = {
    "vocab_size": 31,
    **tiny_sizes.transformer(16, 24, layers=2, heads=4),
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": None,
}


def llamas(seed: int = 0, **changes: Any) -> tuple[Any, Any]:
    """The reference and votive's model."""
    config = transformers.LlamaConfig(**{**SIZES, **changes})
    reference, ours = pair((transformers.LlamaForCausalLM, config), models.LlamaForCausalLM, seed=seed)
    reference.generation_config = transformers.GenerationConfig()
    return reference, ours


__all__ = ["llamas", "torch", "transformers"]
