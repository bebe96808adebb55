"""What is compared with transformers: a row for each choice in which decoders differ, by groups of families."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests import tiny_sizes

SMALL = {
    "vocab_size": 64,
    **tiny_sizes.transformer(32, 48, layers=2, heads=4),
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


class Row(NamedTuple):
    """A class of transformers, its configuration, and the class of votive."""

    theirs: str
    config: str
    settings: dict[str, Any]
    ours: str


def causal(name: str, settings: dict[str, Any], config: str | None = None) -> Row:
    """The row of `<name>ForCausalLM`, called so in both."""
    return Row(f"{name}ForCausalLM", config or f"{name}Config", settings, f"{name}ForCausalLM")
