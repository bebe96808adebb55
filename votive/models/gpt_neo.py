"""GPT-Neo: a GPT-2 every second layer of which sees a window. Black et al. 2021, doi:10.5281/zenodo.5297715."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes
from .decoder.token_types import TypedDecoder


@dataclass(kw_only=True)
class GPTNeoConfig(DecoderConfig):
    """The numbers of a GPT-Neo; `attention_types` says which layers are "global" and which "local".

    >>> config = votive.models.GPTNeoConfig(num_layers=2, attention_types=[[["global", "local"], 1]])
    >>> config.attention_layers, config.design.windows
    (['global', 'local'], (None, 256))
    """

    model_type = "gpt_neo"
    aliases = {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"}

    vocab_size: int = 50257
    max_position_embeddings: int = 2048
    hidden_size: int = 2048
    num_layers: int = 24
    attention_types: list[Any] | None = None
    num_heads: int = 16
    intermediate_size: int | None = None
    window_size: int = 256
    activation_function: str = "gelu_new"
    resid_dropout: float = 0.0
    embed_dropout: float = 0.0
    attention_dropout: float = 0.0
    classifier_dropout: float = 0.1
    layer_norm_epsilon: float = 1e-5
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.attention_types is None:
            self.attention_types = [[["global", "local"], 12]]
        self.extra.pop("attention_layers", None)  # files hold it, too; it follows from the types
        kinds = self.attention_layers
        if len(kinds) != self.num_layers or set(kinds) - {"global", "local"}:
            raise ValueError(
                f"GPTNeoConfig: attention_types={self.attention_types} gives {kinds}; say for each of "
                f"num_layers={self.num_layers} layers whether it is 'global' or 'local'."
            )

    @property
    def attention_layers(self) -> list[str]:
        """Of each layer what it sees, "global" for all and "local" for a window."""
        return [kind for kinds, times in self.attention_types or () for _ in range(times) for kind in kinds]

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(self.intermediate_size or 4 * self.hidden_size, self.max_position_embeddings),
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norms": ("ln_1", "", "ln_2", ""),
            "dropout": self.resid_dropout,
            "attention": "attn.attention",
            "o": "out_proj",
            "out_bias": True,
            "scale": 1.0,
            "attention_dropout": self.attention_dropout,
            "windows": tuple(self.window_size if kind == "local" else None for kind in self.attention_layers),
            "net_kind": "plain",
            "net_names": ("", "c_fc", "c_proj"),
            "net_bias": True,
            "act": self.activation_function,
            "embedding": "wte",
            "embedding_dropout": self.embed_dropout,
            "places": "wpe",
            "stack": "h",
            "last_norm": "ln_f",
        }


GPTNeoModel, GPTNeoForCausalLM = decoder_classes(
    "GPTNeo",
    GPTNeoConfig,
    prefix="transformer",
    base=TypedDecoder,
    # Old files hold the causal mask, a table.
    ignored=(r"\.attn\.attention\.(bias|masked_bias)$",),
)
