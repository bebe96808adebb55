"""Phi-3 and Phi-4: a Llama whose products are fused. Abdin et al. 2024, arXiv:2404.14219."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .decoder import decoder_classes
from .llama import LlamaConfig


@dataclass(kw_only=True)
class Phi3Config(LlamaConfig):
    """The numbers of a Phi-3.

    >>> votive.models.Phi3Config(sliding_window=8).window_of(0)
    8
    """

    model_type = "phi3"
    rotates_part = True

    vocab_size: int = 32064
    hidden_size: int = 3072
    intermediate_size: int = 8192
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    original_max_position_embeddings: int = 4096
    resid_pdrop: float = 0.0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 32000
    pad_token_id: int | None = 32000

    def __post_init__(self) -> None:
        super().__post_init__()
        scaling = self.rope_scaling
        kind = scaling and (scaling.get("rope_type") or scaling.get("type"))
        if kind == "default":
            self.rope_scaling = None
        if self.rope_scaling is not None:
            # The first files call it "su", some "yarn", and all mean the same.
            if kind not in ("longrope", "su", "yarn"):
                raise ValueError(
                    f"Phi3Config: rope_scaling has rope_type {kind!r}; a Phi-3 is stretched by "
                    "'longrope' alone, which older files call 'su' or 'yarn'."
                )
            self.rope_scaling = {
                "original_max_position_embeddings": self.original_max_position_embeddings,
                **self.rope_scaling,
                "rope_type": "longrope",
            }

    all_slide = True

    def choices(self) -> dict[str, Any]:
        return {
            "fused": "qkv_proj",
            "qkv_bias": False,
            "out_bias": False,
            "net_kind": "fused",
            "net_bias": False,
            "net_names": ("gate_up_proj", "", "down_proj"),
            "dropout": self.resid_pdrop,
        }


Phi3Model, Phi3ForCausalLM = decoder_classes("Phi3", Phi3Config)
