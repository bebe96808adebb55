"""What configurations of readers of samples share, in the words of wav2vec 2.0. Knows no modules."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..config import LabeledConfig

NORMS = ("group", "layer")


@dataclass(kw_only=True)
class WaveConfig(LabeledConfig):
    """The numbers of a reader of samples; `conv_dim`, `conv_kernel` and `conv_stride` are of its convolutions.

    >>> votive.models.Wav2Vec2Config().inputs_to_logits_ratio
    320
    """

    vocab_size: int | None = 32
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout: float = 0.1
    activation_dropout: float = 0.1
    attention_dropout: float = 0.1
    feat_proj_dropout: float = 0.0
    final_dropout: float = 0.1
    layerdrop: float = 0.1
    layer_norm_eps: float = 1e-5
    feat_extract_norm: str = "group"
    feat_extract_activation: str = "gelu"
    conv_dim: list[int] = field(default_factory=lambda: [512] * 7)
    conv_stride: list[int] = field(default_factory=lambda: [5, 2, 2, 2, 2, 2, 2])
    conv_kernel: list[int] = field(default_factory=lambda: [10, 3, 3, 3, 3, 2, 2])
    conv_bias: bool = False
    num_conv_pos_embeddings: int = 128
    num_conv_pos_embedding_groups: int = 16
    do_stable_layer_norm: bool = False
    apply_spec_augment: bool = True
    mask_time_prob: float = 0.05
    mask_time_length: int = 10
    mask_time_min_masks: int = 2
    mask_feature_prob: float = 0.0
    mask_feature_length: int = 10
    mask_feature_min_masks: int = 0
    ctc_loss_reduction: str = "sum"
    ctc_zero_infinity: bool = False
    use_weighted_layer_sum: bool = False
    classifier_proj_size: int = 256
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.extra.pop("num_feat_extract_layers", None)  # counted
        name = type(self).__name__
        sizes = {key: list(getattr(self, key)) for key in ("conv_dim", "conv_stride", "conv_kernel")}
        if not sizes["conv_dim"] or len({len(each) for each in sizes.values()}) > 1:
            raise ValueError(f"{name}: conv_dim, conv_stride and conv_kernel name each convolution once, got {sizes}.")
        for key, each in sizes.items():
            if not all(isinstance(n, int) and n > 0 for n in each):
                raise ValueError(f"{name}: {key} must be positive integers, got {each}.")
        if self.feat_extract_norm not in NORMS:
            raise ValueError(f"{name}: feat_extract_norm must be 'group' or 'layer', got {self.feat_extract_norm!r}.")
        for key in ("num_attention_heads", "num_conv_pos_embedding_groups"):
            if self.hidden_size % getattr(self, key):
                raise ValueError(
                    f"{name}: hidden_size={self.hidden_size} does not split into {key}={getattr(self, key)}."
                )

    @property
    def inputs_to_logits_ratio(self) -> int:
        """How many samples lead to one state."""
        return math.prod(self.conv_stride)

    def lengths(self, samples: Any) -> Any:
        """How many states so many samples give: a number, or a tensor of numbers."""
        for kernel, stride in zip(self.conv_kernel, self.conv_stride, strict=True):
            samples = (samples - kernel) // stride + 1
        return samples

    # What not every family has; none of them is a field here.

    @property
    def projected_norm(self) -> bool:
        """Whether features are normed before they are projected."""
        return bool(getattr(self, "feat_proj_layer_norm", True))

    @property
    def position_norm(self) -> bool:
        """Whether positions are of normed states, rather than by a convolution of normed weights."""
        return bool(getattr(self, "conv_pos_batch_norm", False))

    @property
    def adapts(self) -> bool:
        """Whether convolutions shorten what the encoder gives."""
        return bool(getattr(self, "add_adapter", False))

    @property
    def between(self) -> int | None:
        """The width of the small nets behind the layers, where they have some."""
        return getattr(self, "adapter_attn_dim", None)
