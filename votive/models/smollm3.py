"""SmolLM3: a Llama of which every fourth layer rotates nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import decoder_classes
from .decoder.config import counted
from .llama import LlamaConfig


@dataclass(kw_only=True)
class SmolLM3Config(LlamaConfig):
    """The numbers of a SmolLM3.

    >>> votive.models.SmolLM3Config(num_hidden_layers=4).no_rope_layers
    [1, 1, 1, 0]
    """

    model_type = "smollm3"

    vocab_size: int = 128256
    hidden_size: int = 2048
    num_hidden_layers: int = 36
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    rope_theta: float = 2e6
    use_sliding_window: bool = False
    no_rope_layers: list[int] | None = None  # 1 where a layer rotates, in spite of the name
    no_rope_layer_interval: int = 4
    pad_token_id: int | None = 128004
    bos_token_id: int | None = 128000
    eos_token_id: int | list[int] | None = 128001
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        counted(self, "no_rope_layer_interval")
        count = range(self.num_hidden_layers)
        if self.no_rope_layers is None:
            self.no_rope_layers = [int((i + 1) % self.no_rope_layer_interval != 0) for i in count]
        if len(self.no_rope_layers) < self.num_hidden_layers:
            raise ValueError(f"SmolLM3Config: no_rope_layers names {len(self.no_rope_layers)} of {len(count)} layers.")
        if self.layer_types is None:
            near = self.use_sliding_window and self.sliding_window is not None
            self.layer_types = [
                "sliding_attention" if near and not self.no_rope_layers[i] else "full_attention" for i in count
            ]
        super().__post_init__()

    def choices(self) -> dict[str, Any]:
        rotates = (self.no_rope_layers or [])[: self.num_hidden_layers]
        return {"rope_of": tuple(0 if turns else None for turns in rotates)}


SmolLM3Model, SmolLM3ForCausalLM = decoder_classes("SmolLM3", SmolLM3Config)
