"""The first GPT: norms behind attention and net. Radford et al. 2018, Improving language understanding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes
from .decoder.token_types import TypedDecoder

# Its "gelu" is the approximation by tanh.
_ACTIVATIONS = {"relu": "relu", "silu": "silu", "gelu": "gelu_new", "swish": "silu"}


@dataclass(kw_only=True)
class OpenAIGPTConfig(DecoderConfig):
    """The numbers of a GPT; the `summary_...` fields are those of a head for choices, which is not there.

    >>> votive.models.OpenAIGPTConfig().design.norm_place
    'sum'
    """

    model_type = "openai-gpt"
    aliases = {
        "max_position_embeddings": "n_positions",
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }

    vocab_size: int = 40478
    n_positions: int = 512
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    afn: str = "gelu"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    summary_type: str = "cls_index"
    summary_use_proj: bool = True
    summary_activation: str | None = None
    summary_proj_to_labels: bool = True
    summary_first_dropout: float = 0.1
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.afn not in _ACTIVATIONS:
            raise ValueError(f"OpenAIGPTConfig: afn={self.afn!r}; use one of {', '.join(_ACTIVATIONS)}.")

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(4 * self.n_embd, self.n_positions),
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norms": ("ln_1", "", "ln_2", ""),
            "norm_place": "sum",
            "dropout": self.resid_pdrop,
            "attention": "attn",
            "fused": "c_attn",
            "o": "c_proj",
            "transposed": True,
            "attention_dropout": self.attn_pdrop,
            "net_kind": "plain",
            "net_names": ("", "c_fc", "c_proj"),
            "net_bias": True,
            "act": _ACTIVATIONS[self.afn],
            "embedding": "tokens_embed",
            "embedding_dropout": self.embd_pdrop,
            "places": "positions_embed",
            "stack": "h",
            "last_norm": "",
        }


OpenAIGPTModel, OpenAIGPTLMHeadModel = decoder_classes(
    "OpenAIGPT",
    OpenAIGPTConfig,
    prefix="transformer",
    base=TypedDecoder,
    causal="LMHeadModel",
    # Old files hold the causal mask and the positions, tables.
    ignored=(r"\.attn\.bias$", r"^(transformer\.)?position_ids$"),
)
