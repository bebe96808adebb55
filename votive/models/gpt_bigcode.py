"""GPT-BigCode, that is StarCoder: a GPT-2 whose heads share a key and a value. Li et al. 2023, arXiv:2305.06161."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, decoder_classes
from .decoder.token_types import TypedDecoder


@dataclass(kw_only=True)
class GPTBigCodeConfig(DecoderConfig):
    """The numbers of a GPT-BigCode.

    >>> votive.models.GPTBigCodeConfig().design.shared, votive.models.GPTBigCodeConfig(multi_query=False).design.shared
    (1, 12)
    """

    model_type = "gpt_bigcode"
    aliases = {
        "max_position_embeddings": "n_positions",
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_pytorch_tanh"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    # Weights are always computed in float32.
    attention_softmax_in_fp32: bool = True
    scale_attention_softmax_in_fp32: bool = True
    multi_query: bool = True
    add_cross_attention: bool = False
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.add_cross_attention:
            raise ValueError("GPTBigCodeConfig: add_cross_attention is not supported.")

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(self.n_inner or 4 * self.n_embd, self.n_positions),
            "shared": 1 if self.multi_query else self.n_head,
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norms": ("ln_1", "", "ln_2", ""),
            "dropout": self.resid_pdrop,
            "attention": "attn",
            "fused": "c_attn",
            "fused_layout": "groups",
            "o": "c_proj",
            "qkv_bias": True,
            "out_bias": True,
            "scale": None if self.scale_attn_weights else 1.0,
            "attention_dropout": self.attn_pdrop,
            "net_kind": "plain",
            "net_names": ("", "c_fc", "c_proj"),
            "net_bias": True,
            "act": self.activation_function,
            "embedding": "wte",
            "embedding_dropout": self.embd_pdrop,
            "places": "wpe",
            "stack": "h",
            "last_norm": "ln_f",
        }


GPTBigCodeModel, GPTBigCodeForCausalLM = decoder_classes(
    "GPTBigCode",
    GPTBigCodeConfig,
    prefix="transformer",
    base=TypedDecoder,
    ignored=(r"\.attn\.(bias|masked_bias)$", r"^(transformer\.)?bias$"),
)
