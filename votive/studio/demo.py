"""A tiny model with random weights and a tokenizer of its own, to try the studio without any file.

It says nothing that makes sense, and everything can be looked at in it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import votive

_TEXT = """Once upon a time there was a small fox who lived at the edge of a wood. Every morning
she went to the river to see the sun come up. One day she met an old bear, and the bear said: "Where
are you going, little fox?" "To the river," said the fox, "to see the sun." Then they went on
together, and the king of the wood saw them and was glad. The end."""


@cache
def tokenizer() -> Any:
    """A byte-level tokenizer trained on a few sentences."""
    return votive.text.train_bpe([_TEXT], vocab_size=400, min_frequency=1, eos_token="<|endoftext|>", progress=False)


def model(*, seed: int = 0, layers: int = 4, hidden: int = 64, heads: int = 4) -> Any:
    """A Qwen3 of a few layers."""
    generator = votive.random.get_rng_state()
    votive.manual_seed(seed)
    config = votive.models.Qwen3Config(
        vocab_size=len(tokenizer()),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        head_dim=hidden // heads,
        max_position_embeddings=2048,
        initializer_range=0.2,
        tie_word_embeddings=True,
    )
    made = votive.models.Qwen3ForCausalLM(config).eval()
    votive.random.set_rng_state(generator)
    made.name_or_path = "demo"
    return made
