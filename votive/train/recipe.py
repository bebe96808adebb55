"""What a language model is trained with: sizes, data, schedule, as numbers in one place.

Knows configurations and optimizers; reads no text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from votive import nn

from .settings import Settings

# GPT-2's configuration has its own words for the same sizes.
_GPT2 = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
    "max_position_embeddings": "n_positions",
}
_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
# What adapters are put beside by default: every product of a decoder's layers, by the names that families have.
ADAPTED = (
    "q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "down_proj",
)  # fmt: skip
# Settings that a base decides.
_OF_BASE = (
    "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "head_dim", "max_position_embeddings", "tie_word_embeddings", "model", "vocab_size", "save_dtype",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Recipe(Settings):
    """Everything that decides what a training run makes; the defaults make a small model fast.

    `model` holds further fields of the model's configuration. `separator` is the text between
    documents, which the end token replaces. `held_out` is the part of the text, at its end, that
    is only measured on. `amp` names the type of mixed precision, `save_dtype` that of the weights
    in the finished folder. `compile` is the trainer's: None means on GPUs.

    With `base`, a model that exists (a folder, a GGUF file, a bundled name), adapters of rank `lora` are trained above
    it in the layers that `lora_targets` name, scaled by `lora_alpha` (twice the rank) over the rank; the base stays as
    it is. `optimizer_name` is adamw, lion, or either with 8bit behind it; `gradient_checkpointing` computes layers
    again in backward instead of keeping what they need.

    >>> recipe = votive.train.Recipe(hidden_size=64, model={"rope_theta": 1e6})
    >>> recipe.config(vocab_size=300).rope_theta, recipe.warmup
    (1000000.0, 30)
    """

    counts: ClassVar[tuple[str, ...]] = (
        *Settings.counts, "hidden_size", "num_hidden_layers", "num_attention_heads", "context", "max_steps",
    )  # fmt: skip

    model_type: str = "qwen3"
    hidden_size: int = 128
    intermediate_size: int | None = None
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int | None = 2
    head_dim: int | None = None
    max_position_embeddings: int | None = None
    tie_word_embeddings: bool = True
    model: Mapping[str, Any] = field(default_factory=dict)

    vocab_size: int = 1024
    separator: str | None = None

    context: int = 128
    stride: int | None = None
    max_steps: int = 300
    lr: float = 2e-3
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    eval_batches: int | None = 20

    base: str | None = None
    lora: int | None = None
    lora_targets: tuple[str, ...] = ADAPTED
    lora_alpha: float | None = None
    lora_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim is None and self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"Recipe: hidden_size={self.hidden_size} does not divide into "
                f"num_attention_heads={self.num_attention_heads}; change one or give head_dim."
            )
        self._check_adapters()

    def _check_adapters(self) -> None:
        if (self.base is None) != (self.lora is None):
            given, lacks = ("base", "lora, the rank of adapters") if self.lora is None else ("lora", "base, a model")
            raise ValueError(f"Recipe: {given} needs {lacks}; a base itself is not trained.")
        if self.lora is None:
            for name, plain in (("lora_alpha", None), ("lora_dropout", 0.0), ("lora_targets", ADAPTED)):
                if getattr(self, name) != plain:
                    raise ValueError(f"Recipe: {name} is for adapters; give base and lora.")
            return
        if type(self.lora) is not int or self.lora < 1:
            raise ValueError(f"Recipe: lora is a rank, a positive integer, got {self.lora!r}.")
        if not 0 <= self.lora_dropout < 1:
            raise ValueError(f"Recipe: lora_dropout is a fraction below 1, got {self.lora_dropout}.")
        if not self.lora_targets:
            raise ValueError("Recipe: lora_targets names no layer.")
        defaults = {f.name: f.default for f in dataclasses.fields(self)} | {"model": {}}
        for name in _OF_BASE:
            if getattr(self, name) != defaults[name]:
                raise ValueError(f"Recipe: {name} is what the base has; leave it out beside base.")

    @property
    def warmup(self) -> int:
        """How many steps the learning rate rises: a tenth of all unless told."""
        return self.warmup_of(self.max_steps) if self.warmup_steps is None else self.warmup_steps

    def config(self, vocab_size: int, eos_token_id: int | None = None) -> Any:
        """The model's configuration.

        >>> votive.train.Recipe(model_type="llama").config(300).intermediate_size
        384
        """
        from ..models import AutoConfig

        sizes: dict[str, Any] = {name: getattr(self, name) for name in _SIZES}
        # Three times the width costs a gated MLP about what four times costs a plain one.
        sizes["intermediate_size"] = self.intermediate_size or (
            (4 if self.model_type == "gpt2" else 3) * self.hidden_size
        )
        sizes["max_position_embeddings"] = self.max_position_embeddings or max(
            2048 if self.model_type != "gpt2" else 0, self.context
        )
        if self.model_type == "gpt2":
            sizes = {_GPT2[name]: value for name, value in sizes.items()}
        else:
            heads = self.num_key_value_heads or self.num_attention_heads
            if self.num_attention_heads % heads:
                raise ValueError(
                    f"Recipe: num_attention_heads={self.num_attention_heads} is no multiple of "
                    f"num_key_value_heads={heads}."
                )
            sizes["num_key_value_heads"] = heads
            sizes["head_dim"] = self.head_dim or self.hidden_size // self.num_attention_heads
        return AutoConfig.from_dict(
            {
                "model_type": self.model_type,
                "vocab_size": vocab_size,
                **sizes,
                "tie_word_embeddings": self.tie_word_embeddings,
                "eos_token_id": eos_token_id,
                "bos_token_id": None,
                "pad_token_id": eos_token_id,
                **self.model,
            }
        )

    def optimizer(self, model: nn.Module) -> tuple[Any, Any]:
        """AdamW (or another) that shrinks matrices only, and its schedule: a rise, then a cosine.

        >>> optimizer, _ = votive.train.Recipe().optimizer(votive.nn.Linear(2, 2))
        >>> [group["weight_decay"] for group in optimizer.param_groups]
        [0.1, 0.0]
        """
        return self.optimizer_for(model, self.lr, self.max_steps, betas=self.betas, weight_decay=self.weight_decay)
