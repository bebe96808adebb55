"""Mamba, Falcon Mamba and Mamba 2: state spaces in place of attention, and no nets.

Gu and Dao 2023, arXiv:2312.00752; Zuo et al. 2024, arXiv:2410.05355; Dao and Gu 2024, arXiv:2405.21060.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..tensor import Tensor
from .decoder import Decoder, DecoderConfig, DecoderForCausalLM, decoder_classes
from .decoder.config import counted
from .decoder.hybrid import step_limit
from .decoder.layer import MIXERS
from .decoder.scan import BLOCK
from .decoder.solo import SoloLayer
from .decoder.state_space import Mamba, Mamba2, StateSpace

MIXERS["mamba"] = (Mamba, "mamba")
MIXERS["mamba2"] = (Mamba2, "mamba")


class SoloDecoder(Decoder):
    """A decoder whose layers have one part each."""

    layer_class = SoloLayer
    states_behind = True


class WideHead(DecoderForCausalLM):
    """A head whose scores are of 32 bits or more."""

    def scores(self, x: Tensor) -> Tensor:
        kind = getattr(self, self.design.head).weight.dtype
        found = super().scores(x.to(kind) if kind.is_floating_point else x)  # blocks take what comes
        return found.float() if found.dtype.itemsize < 4 else found


@dataclass(kw_only=True)
class _StateSpaceConfig(DecoderConfig):
    """What the families share."""

    vocab_size: int = 50280
    hidden_size: int = 768
    state_size: int = 16
    num_hidden_layers: int = 32
    layer_norm_epsilon: float = 1e-5
    pad_token_id: int | None = 0
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 0
    expand: int = 2
    intermediate_size: int | None = None
    conv_kernel: int = 4
    use_bias: bool = False
    use_conv_bias: bool = True
    hidden_act: str = "silu"
    initializer_range: float = 0.1
    residual_in_fp32: bool = True
    time_step_rank: int | str = "auto"
    time_step_min: float = 0.001
    time_step_max: float = 0.1
    time_step_floor: float = 1e-4
    rescale_prenorm_residual: bool = False

    mixer: ClassVar[str] = "mamba"
    starts_wide: ClassVar[bool] = True  # filters and last products, as without a configuration
    # What other implementations there are, which compute the same.
    ignored_keys: ClassVar[tuple[str, ...]] = ("use_mambapy", "use_associative_scan")

    def __post_init__(self) -> None:
        if self.time_step_rank == "auto":
            self.time_step_rank = math.ceil(self.hidden_size / 16)
        if not isinstance(self.time_step_rank, int) or self.time_step_rank < 1:
            raise ValueError(
                f"{type(self).__name__}: time_step_rank must be 'auto' or a number above 0, got "
                f"{self.time_step_rank!r}."
            )
        counted(self, "expand")
        if self.intermediate_size is None:
            self.intermediate_size = self.expand * self.hidden_size

    def space(self) -> dict[str, Any]:
        """Fields of the state space."""
        return {
            "inner": self.intermediate_size,
            "state": self.state_size,
            "conv": self.conv_kernel,
            "conv_bias": self.use_conv_bias,
            "bias": self.use_bias,
            "act": self.hidden_act,
            "rank": self.time_step_rank,
        }

    def sizes(self) -> dict[str, Any]:
        return {
            "vocabulary": self.vocab_size,
            "width": self.hidden_size,
            "layers": self.num_hidden_layers,
            "heads": 1,
            "shared": 1,
            "head_dim": self.hidden_size,
            "inner": self.intermediate_size,
            "positions": 1 << 20,
            "eps": self.layer_norm_epsilon,
            "norms": ("norm", "", "", ""),
            "attention": "mixer",
            "mixers": (self.mixer,) * self.num_hidden_layers,
            "embedding": "embeddings",
            "last_norm": "norm_f",
            "extra": {"state_space": StateSpace(**self.space()), "wide_stream": self.residual_in_fp32},
        }


@dataclass(kw_only=True)
class MambaConfig(_StateSpaceConfig):
    """The numbers of a Mamba.

    >>> votive.models.MambaConfig(hidden_size=64).intermediate_size
    128
    """

    model_type = "mamba"

    time_step_scale: float = 1.0
    time_step_init_scheme: str = "random"
    tie_word_embeddings: bool = True


_CLASSES: dict[str, Any] = {"prefix": "backbone", "base": SoloDecoder, "head": WideHead}
MambaModel, MambaForCausalLM = decoder_classes(
    "Mamba", MambaConfig, renames={r"\bembedding\.": "embeddings."}, **_CLASSES
)


@dataclass(kw_only=True)
class FalconMambaConfig(MambaConfig):
    """The numbers of a Falcon Mamba: step sizes and what goes into and out of the state are normed.

    >>> votive.models.FalconMambaConfig().design.extra["state_space"].norms
    'plain'
    """

    model_type = "falcon_mamba"

    mixer_rms_eps: float = 1e-6

    def space(self) -> dict[str, Any]:
        return {**super().space(), "norms": "plain", "eps": self.mixer_rms_eps}


FalconMambaModel, FalconMambaForCausalLM = decoder_classes("FalconMamba", FalconMambaConfig, **_CLASSES)


@dataclass(kw_only=True)
class Mamba2Config(_StateSpaceConfig):
    """The numbers of a Mamba 2.

    >>> votive.models.Mamba2Config(hidden_size=64, num_heads=8, head_dim=16).design.mixer(0)
    'mamba2'
    """

    model_type = "mamba2"

    num_heads: int = 128
    head_dim: int = 64
    vocab_size: int = 32768
    hidden_size: int = 4096
    state_size: int = 128
    num_hidden_layers: int = 64
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    n_groups: int = 8
    time_step_limit: list[float] = field(default_factory=lambda: [0.0, math.inf])
    chunk_size: int = 256

    mixer = "mamba2"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size * self.expand != self.num_heads * self.head_dim:
            raise ValueError(
                f"Mamba2Config: hidden_size={self.hidden_size} * expand={self.expand} must be "
                f"num_heads={self.num_heads} * head_dim={self.head_dim}."
            )

    def space(self) -> dict[str, Any]:
        return {
            **super().space(),
            "eps": self.layer_norm_epsilon,
            "heads": self.num_heads,
            "groups": self.n_groups,
            "limit": step_limit(self),
            "block": min(self.chunk_size, BLOCK),
        }


Mamba2Model, Mamba2ForCausalLM = decoder_classes("Mamba2", Mamba2Config, **_CLASSES)
