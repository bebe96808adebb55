"""The numbers of a Swin. Knows no tensors."""

from __future__ import annotations

from dataclasses import dataclass

from .backbone import BackboneConfig, sized


@dataclass(kw_only=True)
class SwinConfig(BackboneConfig):
    """The numbers of a Swin: a stage has a depth and heads, and twice the features of the one before.

    >>> votive.models.SwinConfig(embed_dim=8, depths=[1, 1], num_heads=[2, 4]).hidden_size
    16
    """

    model_type = "swin"

    image_size: int | list[int] | tuple[int, int] = 224
    patch_size: int | list[int] | tuple[int, int] = 4
    num_channels: int = 3
    embed_dim: int = 96
    depths: list[int] | tuple[int, ...] = (2, 2, 6, 2)
    num_heads: list[int] | tuple[int, ...] = (3, 6, 12, 24)
    window_size: int = 7
    mlp_ratio: float = 4.0
    qkv_bias: bool = True
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    drop_path_rate: float = 0.1
    hidden_act: str = "gelu"
    use_absolute_embeddings: bool = False
    layer_norm_eps: float = 1e-5
    encoder_stride: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden_size", "num_layers", "num_attention_heads", "num_hidden_layers"):
            self.extra.pop(name, None)  # computed
        name = type(self).__name__
        if len(self.depths) != len(self.num_heads):
            raise ValueError(f"{name}: depths={self.depths} and num_heads={self.num_heads} are of as many stages.")
        for stage, heads in enumerate(self.num_heads):
            if self.width_of(stage) % heads:
                raise ValueError(
                    f"{name}: stage {stage + 1} has {self.width_of(stage)} features, which do not split into "
                    f"{heads} heads."
                )

    def stage_count(self) -> int:
        return len(self.depths)

    def width_of(self, stage: int) -> int:
        """The features of a stage, the first being 0."""
        return self.embed_dim << stage

    @property
    def hidden_size(self) -> int:
        """The features of the last stage."""
        return self.width_of(len(self.depths) - 1)

    @property
    def num_layers(self) -> int:
        """How many stages there are."""
        return len(self.depths)

    @property
    def patches(self) -> tuple[int, int]:
        """Height and width of a patch."""
        return sized(self, "patch_size")

    @property
    def grid(self) -> tuple[int, int]:
        """How many patches of a picture stand above and beside each other."""
        (height, width), (high, wide) = sized(self, "image_size"), self.patches
        return height // high, width // wide
