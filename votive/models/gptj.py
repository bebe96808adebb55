"""GPT-J and CodeGen: one norm for attention and net, neighbours rotated. Wang, Komatsuzaki 2021, arXiv:2203.13474."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import DecoderConfig, Rope, decoder_classes
from .decoder.token_types import TypedDecoder


@dataclass(kw_only=True)
class GPTJConfig(DecoderConfig):
    """The numbers of a GPT-J.

    >>> votive.models.GPTJConfig(rotary_dim=32).design.ropes[0].features
    32
    """

    model_type = "gptj"
    aliases = {
        "max_position_embeddings": "n_positions",
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }

    vocab_size: int = 50400
    n_positions: int = 2048
    n_embd: int = 4096
    n_layer: int = 28
    n_head: int = 16
    rotary_dim: int = 64
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.0
    embd_pdrop: float = 0.0
    attn_pdrop: float = 0.0
    layer_norm_epsilon: float = 1e-5
    bos_token_id: int | None = 50256
    eos_token_id: int | list[int] | None = 50256

    def sizes(self) -> dict[str, Any]:
        return {
            **self.basic(self.n_inner or 4 * self.n_embd, self.n_positions),
            "norm": "layer",
            "eps": self.layer_norm_epsilon,
            "norms": ("ln_1", "", "", ""),
            "parallel": True,
            "dropout": self.resid_pdrop,
            "attention": "attn",
            "o": "out_proj",
            "attention_dropout": self.attn_pdrop,
            "ropes": (Rope(features=self.rotary_dim, interleaved=True),),
            "net_kind": "plain",
            "net_names": ("", "fc_in", "fc_out"),
            "net_bias": True,
            "act": self.activation_function,
            "embedding": "wte",
            "embedding_dropout": self.embd_pdrop,
            "stack": "h",
            "last_norm": "ln_f",
            "head_bias": True,
        }


# Old files hold the causal mask and the angles, tables.
_TABLES = (r"\.attn\.(bias|masked_bias|causal_mask|embed_positions)$",)
GPTJModel, GPTJForCausalLM = decoder_classes(
    "GPTJ", GPTJConfig, prefix="transformer", base=TypedDecoder, ignored=_TABLES
)


@dataclass(kw_only=True)
class CodeGenConfig(GPTJConfig):
    """A GPT-J with one product for queries, keys and values, as four devices made them.

    >>> votive.models.CodeGenConfig().design.fused_layout
    'quarters'
    """

    model_type = "codegen"

    n_ctx: int = 2048

    def __post_init__(self) -> None:
        if self.n_head % 4:
            raise ValueError(f"CodeGenConfig: n_head={self.n_head} heads do not split into four parts.")

    def choices(self) -> dict[str, Any]:
        return {"fused": "qkv_proj", "fused_layout": "quarters"}


CodeGenModel, CodeGenForCausalLM = decoder_classes(
    "CodeGen", CodeGenConfig, prefix="transformer", base=TypedDecoder, ignored=_TABLES
)
