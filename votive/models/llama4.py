"""Llama 4, the text model: a mixture whose layers see chunks, but for every fourth, which rotates nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .decoder import Experts, decoder_classes
from .decoder.config import RotaryConfig, counted
from .decoder.design import Temper
from .stacked import Stacked


@dataclass(kw_only=True)
class Llama4TextConfig(RotaryConfig):
    """The numbers of a Llama 4.

    >>> votive.models.Llama4TextConfig(num_hidden_layers=4).layer_types[-2:]
    ['chunked_attention', 'full_attention']
    """

    model_type = "llama4_text"
    layer_kinds: ClassVar[tuple[str, ...]] = ("full_attention", "chunked_attention")
    unread: ClassVar[tuple[str, ...]] = ("sliding_window",)

    vocab_size: int = 202048
    hidden_size: int = 5120
    intermediate_size: int = 8192
    intermediate_size_mlp: int = 16384
    num_hidden_layers: int = 48
    num_attention_heads: int = 40
    num_key_value_heads: int = 8
    head_dim: int = 128
    max_position_embeddings: int = 4096 * 32
    rms_norm_eps: float = 1e-5
    rope_theta: float = 5e5
    num_experts_per_tok: int = 1
    num_local_experts: int = 16
    moe_layers: list[int] | None = None
    interleave_moe_layer_step: int = 1
    use_qk_norm: bool = True
    output_router_logits: bool = False
    router_aux_loss_coef: float = 0.001
    router_jitter_noise: float = 0.0
    no_rope_layers: list[int] | None = None  # 1 where a layer rotates, in spite of the name
    no_rope_layer_interval: int = 4
    attention_chunk_size: int | None = 8192
    attn_temperature_tuning: bool = True
    floor_scale: int = 8192
    attn_scale: float = 0.1
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        counted(self, "no_rope_layer_interval", "interleave_moe_layer_step")
        count = range(self.num_hidden_layers)
        if not self.no_rope_layers:
            self.no_rope_layers = [int((i + 1) % self.no_rope_layer_interval != 0) for i in count]
        if len(self.no_rope_layers) < self.num_hidden_layers:
            raise ValueError(f"Llama4TextConfig: no_rope_layers names {len(self.no_rope_layers)} of {len(count)}.")
        if self.moe_layers is None:
            self.moe_layers = list(count[self.interleave_moe_layer_step - 1 :: self.interleave_moe_layer_step])
        if self.layer_types is None:
            self.layer_types = ["chunked_attention" if rope else "full_attention" for rope in self.no_rope_layers]
        super().__post_init__()

    def choices(self) -> dict[str, Any]:
        count, inner = range(self.num_hidden_layers), self.intermediate_size
        kinds, sparse = self.layer_types or [], self.moe_layers or []
        rotates = tuple(bool((self.no_rope_layers or [])[i]) for i in count)
        still = tuple(not turns for turns in rotates)
        temper = Temper(weight=self.attn_scale, length=self.floor_scale, first=1, by_ids=False, layers=still)
        return {
            "inner": self.intermediate_size_mlp,
            "eps": self.rms_norm_eps,
            "qk_norm": "head" if self.use_qk_norm else "",
            "qk_norm_kind": "rms plain",
            "qk_norm_last": True,
            "qk_norm_layers": rotates,
            "ropes": (self.rope(interleaved=True),),
            "rope_of": tuple(0 if turns else None for turns in rotates),
            "chunks": tuple(self.attention_chunk_size if kinds[i] == "chunked_attention" else None for i in count),
            "temper": temper if self.attn_temperature_tuning else None,
            "net": "feed_forward",
            "experts": Experts(
                count=self.num_local_experts,
                chosen=self.num_experts_per_tok,
                inner=inner,
                dense=tuple(i for i in count if i not in sparse),
                router="inputs",
                gate="router",
                files=Stacked(transposed=True),
                balanced=False,
                shared=inner,
            ),
        }


Llama4TextModel, Llama4ForCausalLM = decoder_classes("Llama4", Llama4TextConfig, model="TextModel")
