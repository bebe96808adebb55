"""The numbers of Qwen2-VL and Qwen2.5-VL: of their decoders, towers and both. No tensors."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from .config import Config
from .nested import MultimodalConfig
from .qwen import Qwen2Config


@dataclass(kw_only=True)
class Qwen2VLTextConfig(Qwen2Config):
    """The numbers of Qwen2-VL's decoder; `mrope_section` says how many pairs each axis of positions turns.

    >>> votive.models.Qwen2VLTextConfig.from_dict({"rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]},
    ...     "head_dim": 64}).mrope_section
    [8, 12, 12]
    """

    model_type = "qwen2_vl_text"

    vocab_size: int = 152064
    hidden_size: int = 8192
    intermediate_size: int = 29568
    num_hidden_layers: int = 80
    num_attention_heads: int = 64
    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    max_window_layers: int = 80
    bos_token_id: int | None = 151643
    eos_token_id: int | list[int] | None = 151645
    mrope_section: list[int] | None = None

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name in ("rope_scaling", "rope_parameters"):
            given = values.get(name)
            if isinstance(given, dict) and "mrope_section" in given:
                values[name] = {k: v for k, v in given.items() if k != "mrope_section"}
                values["mrope_section"] = given["mrope_section"]
        return super().adapt(values)

    @property
    def sections(self) -> list[int]:
        """How many pairs of features time, height and width turn."""
        found = [16, 24, 24] if self.mrope_section is None else self.mrope_section
        if sum(found) != (self.head_dim or 0) // 2:
            raise ValueError(
                f"{type(self).__name__}: mrope_section={found} must be the {(self.head_dim or 0) // 2} pairs of a head."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        section = values.pop("mrope_section")
        if section is not None:
            scaling = values.get("rope_scaling") or {"rope_type": "default"}
            values["rope_scaling"] = {**scaling, "mrope_section": section}
        return values


@dataclass(kw_only=True)
class Qwen2_5_VLTextConfig(Qwen2VLTextConfig):
    """The numbers of Qwen2.5-VL's decoder.

    >>> votive.models.Qwen2_5_VLTextConfig().num_key_value_heads
    8
    """

    model_type = "qwen2_5_vl_text"


@dataclass(kw_only=True)
class _Tower(Config):
    """What both towers are made from."""

    depth: int = 32
    hidden_size: int = 3584
    num_heads: int = 16
    in_channels: int = 3
    patch_size: int = 14
    spatial_merge_size: int = 2
    temporal_patch_size: int = 2
    rope_parameters: dict[str, Any] | None = None

    @property
    def width(self) -> int:
        """The width of the layers."""
        return self.hidden_size

    @property
    def out_width(self) -> int:
        """The width of what the decoder reads."""
        return self.hidden_size

    @property
    def theta(self) -> float:
        """The base of the rotation of patches."""
        kind = (self.rope_parameters or {}).get("rope_type", "axial")
        if kind not in ("axial", "default"):
            raise ValueError(f"{type(self).__name__}: rope_parameters has rope_type {kind!r}; towers know 'axial'.")
        return float((self.rope_parameters or {}).get("rope_theta", 10000.0))

    def __post_init__(self) -> None:
        if self.width % (4 * self.num_heads):
            raise ValueError(
                f"{type(self).__name__}: {self.width} features do not split into num_heads={self.num_heads} heads "
                "whose features split into four."
            )


@dataclass(kw_only=True)
class Qwen2VLVisionConfig(_Tower):
    """The numbers of Qwen2-VL's tower.

    >>> votive.models.qwen2_vl_config.Qwen2VLVisionConfig().width
    1280
    """

    model_type = "qwen2_vl_vision"

    embed_dim: int = 1280
    hidden_act: str = "quick_gelu"
    mlp_ratio: int = 4

    @property
    def width(self) -> int:
        return self.embed_dim


@dataclass(kw_only=True)
class Qwen2_5_VLVisionConfig(_Tower):
    """The numbers of Qwen2.5-VL's tower, most of whose layers see windows of `window_size` pixels.

    >>> votive.models.qwen2_vl_config.Qwen2_5_VLVisionConfig().fullatt_block_indexes
    [7, 15, 23, 31]
    """

    model_type = "qwen2_5_vl_vision"

    hidden_act: str = "silu"
    intermediate_size: int = 3420
    tokens_per_second: int = 4
    window_size: int = 112
    out_hidden_size: int = 3584
    fullatt_block_indexes: list[int] | tuple[int, ...] = (7, 15, 23, 31)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fullatt_block_indexes = list(self.fullatt_block_indexes)
        if self.window_size // self.spatial_merge_size // self.patch_size < 1:
            raise ValueError(f"{type(self).__name__}: window_size={self.window_size} holds no group of patches.")

    @property
    def out_width(self) -> int:
        return self.out_hidden_size


@dataclass(kw_only=True)
class Qwen2VLConfig(MultimodalConfig, Config):
    """The numbers of a Qwen2-VL.

    >>> votive.models.Qwen2VLConfig.from_dict({"vocab_size": 99}).text_config.vocab_size  # as older files have it
    99
    """

    model_type = "qwen2_vl"
    sides = {"vision_config": Qwen2VLVisionConfig, "text_config": Qwen2VLTextConfig}

    text_config: Any = None
    vision_config: Any = None
    image_token_id: int = 151655
    video_token_id: int = 151656
    vision_start_token_id: int = 151652
    vision_end_token_id: int = 151653

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        if values.get("text_config") is None:
            kind: Any = cls.sides["text_config"]
            known = {f.name for f in fields(kind)} | {"rope_parameters"}
            known -= {"architectures", "extra", "tie_word_embeddings"}
            # The first files have the decoder's numbers beside those of the whole.
            values["text_config"] = {k: values.pop(k) for k in list(values) if k in known and k != "dtype"}
        return values

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tie_word_embeddings = self.tie_word_embeddings or self.text_config.tie_word_embeddings


@dataclass(kw_only=True)
class Qwen2_5_VLConfig(Qwen2VLConfig):
    """The numbers of a Qwen2.5-VL.

    >>> votive.models.Qwen2_5_VLConfig().vision_config.window_size
    112
    """

    model_type = "qwen2_5_vl"
    sides = {"vision_config": Qwen2_5_VLVisionConfig, "text_config": Qwen2_5_VLTextConfig}
