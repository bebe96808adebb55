"""SegFormer, a transformer with stages whose every state tells classes of pixels. Xie et al. 2021, arXiv:2105.15203.

Keys and values are of a coarser grid than queries, and places are known by convolutions within the MLP. Parameter names
are those of Hugging Face checkpoints; those that transformers 5 has in memory are understood too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, attend
from .backbone import PictureModel, dropped_path, path_rates
from .config import LabeledConfig
from .encoder import DenseOutput
from .losses import class_output
from .output import EncoderOutput, PredictionOutput
from .stack import Trace
from .vit import Pair, check_pictures

_LISTS = ("depths", "sr_ratios", "hidden_sizes", "patch_sizes", "strides", "num_attention_heads", "mlp_ratios")


@dataclass(kw_only=True)
class SegformerConfig(LabeledConfig):
    """The numbers of a SegFormer, one of each for every stage.

    >>> votive.models.SegformerConfig().hidden_sizes
    [32, 64, 160, 256]
    """

    model_type = "segformer"

    num_channels: int = 3
    num_encoder_blocks: int = 4
    depths: list[int] | tuple[int, ...] = (2, 2, 2, 2)
    sr_ratios: list[int] | tuple[int, ...] = (8, 4, 2, 1)
    hidden_sizes: list[int] | tuple[int, ...] = (32, 64, 160, 256)
    patch_sizes: list[int] | tuple[int, ...] = (7, 3, 3, 3)
    strides: list[int] | tuple[int, ...] = (4, 2, 2, 2)
    num_attention_heads: list[int] | tuple[int, ...] = (1, 2, 5, 8)
    mlp_ratios: list[int] | tuple[int, ...] = (4, 4, 4, 4)
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    drop_path_rate: float = 0.1
    layer_norm_eps: float = 1e-6
    decoder_hidden_size: int = 256
    semantic_loss_ignore_index: int = 255
    reshape_last_stage: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        for key in _LISTS:
            if len(getattr(self, key)) < self.num_encoder_blocks:
                raise ValueError(
                    f"{name}: {key}={getattr(self, key)} must have a number for each of "
                    f"num_encoder_blocks={self.num_encoder_blocks} stages."
                )
        for width, heads in zip(self.hidden_sizes, self.num_attention_heads, strict=False):
            if width % heads:
                raise ValueError(f"{name}: {width} features do not split into {heads} heads.")


def on_grid(x: Tensor, grid: Pair) -> Tensor:
    """Places (batch, places, features) as (batch, features, height, width)."""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], *grid)


class SegformerPatchEmbeddings(nn.Module):
    """A vector for each patch, which reaches into its neighbours."""

    def __init__(self, config: SegformerConfig, stage: int) -> None:
        super().__init__()
        before = config.hidden_sizes[stage - 1] if stage else config.num_channels
        width, size = config.hidden_sizes[stage], config.patch_sizes[stage]
        self.proj = nn.Conv2d(before, width, size, stride=config.strides[stage], padding=size // 2)
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer_norm(self.proj(x).permute(0, 2, 3, 1))  # (B, H, W, C)


class SegformerSelfAttention(nn.Module):
    """Attention whose keys and values are of a grid that a convolution made coarser."""

    def __init__(self, config: SegformerConfig, stage: int) -> None:
        super().__init__()
        width, ratio = config.hidden_sizes[stage], config.sr_ratios[stage]
        self.heads, self.dropout = config.num_attention_heads[stage], config.attention_probs_dropout_prob
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.sr = nn.Conv2d(width, width, ratio, stride=ratio) if ratio > 1 else None
        self.layer_norm = nn.LayerNorm(width) if ratio > 1 else None

    def split(self, x: Tensor) -> Tensor:
        """(batch, heads, places, features)."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, grid: Pair, weights: Weights = None) -> Tensor:
        seen = x
        if self.sr is not None and self.layer_norm is not None:
            seen = self.layer_norm(self.sr(on_grid(x, grid)).flatten(2).transpose(1, 2))
        q, k, v = self.split(self.query(x)), self.split(self.key(seen)), self.split(self.value(seen))
        dropout = self.dropout if self.training else 0.0
        return attend(q, k, v, AttentionMask(), dropout=dropout, weights=weights).transpose(1, 2).reshape(x.shape)


class SegformerMLP(nn.Module):
    """An MLP with a convolution of each feature before the activation, which tells places."""

    def __init__(self, config: SegformerConfig, stage: int) -> None:
        super().__init__()
        width, inner = config.hidden_sizes[stage], int(config.hidden_sizes[stage] * config.mlp_ratios[stage])
        self.dense1 = nn.Linear(width, inner)
        self.dwconv = nn.ModuleDict({"dwconv": nn.Conv2d(inner, inner, 3, padding=1, groups=inner)})
        self.act_fn = activation(config.hidden_act)
        self.dense2 = nn.Linear(inner, width)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, grid: Pair) -> Tensor:
        x = self.dwconv["dwconv"](on_grid(self.dense1(x), grid)).flatten(2).transpose(1, 2)
        return self.dropout(self.dense2(self.dropout(self.act_fn(x))))


class SegformerLayer(nn.Module):
    """Norm and attention, norm and MLP, each added to what came in."""

    def __init__(self, config: SegformerConfig, stage: int, drop: float) -> None:
        super().__init__()
        width = config.hidden_sizes[stage]
        self.drop = drop
        self.layer_norm_1 = nn.LayerNorm(width)
        self.attention = nn.ModuleDict(
            {
                "self": SegformerSelfAttention(config, stage),
                "output": DenseOutput(width, width, config.hidden_dropout_prob),
            }
        )
        self.layer_norm_2 = nn.LayerNorm(width)
        self.mlp = SegformerMLP(config, stage)

    def forward(self, x: Tensor, grid: Pair, weights: Weights = None) -> Tensor:
        y = self.attention["output"](self.attention["self"](self.layer_norm_1(x), grid, weights))
        x = x + dropped_path(y, self.drop, self.training)
        return x + dropped_path(self.mlp(self.layer_norm_2(x), grid), self.drop, self.training)


class SegformerEncoder(nn.Module):
    """All stages, one after the other; what makes patches, layers and norms stand in lists by stage."""

    def __init__(self, config: SegformerConfig) -> None:
        super().__init__()
        self.config, stages = config, range(config.num_encoder_blocks)
        rates = iter(path_rates(config.drop_path_rate, sum(config.depths)))
        self.patch_embeddings = nn.ModuleList(SegformerPatchEmbeddings(config, i) for i in stages)
        self.block = nn.ModuleList(
            nn.ModuleList(SegformerLayer(config, i, next(rates)) for _ in range(config.depths[i])) for i in stages
        )
        self.layer_norm = nn.ModuleList(nn.LayerNorm(config.hidden_sizes[i]) for i in stages)

    def forward(self, x: Tensor, trace: Trace) -> EncoderOutput:
        """Of pictures; states are (batch, features, height, width), the last as the configuration says."""
        last = self.config.num_encoder_blocks - 1
        for i, patches in enumerate(self.patch_embeddings):
            x = patches(x)
            grid = (x.shape[1], x.shape[2])
            x = x.flatten(1, 2)
            for layer in self.block.get_submodule(str(i)).children():
                x = layer(x, grid, trace.weights)
            x = self.layer_norm[i](x)
            if i < last or self.config.reshape_last_stage:
                x = on_grid(x, grid)
            trace.add_state(x)
        return EncoderOutput(last_hidden_state=x, hidden_states=trace.hidden_states, attentions=trace.attentions)


class _Segformer(PictureModel):
    """What all classes of SegFormer share."""

    config_class = SegformerConfig
    base_model_prefix = "segformer"
    # From the names that transformers 5 has in memory to those in files.
    renames: ClassVar[dict[str, str]] = {
        r"^((?:segformer\.)?)stages\.(\d+)\.blocks\.(\d+)\.": r"\1encoder.block.\2.\3.",
        r"^((?:segformer\.)?)stages\.(\d+)\.(patch_embeddings|layer_norm)\.": r"\1encoder.\3.\2.",
        r"\.attention\.q_proj\.": ".attention.self.query.",
        r"\.attention\.k_proj\.": ".attention.self.key.",
        r"\.attention\.v_proj\.": ".attention.self.value.",
        r"\.attention\.o_proj\.": ".attention.output.dense.",
        r"\.attention\.sequence_reduction\.sequence_reduction\.": ".attention.self.sr.",
        r"\.attention\.sequence_reduction\.layer_norm\.": ".attention.self.layer_norm.",
        r"\.layernorm_before\.": ".layer_norm_1.",
        r"\.layernorm_after\.": ".layer_norm_2.",
        r"\.mlp\.fc(\d)\.": r".mlp.dense\1.",
        r"\.linear_projections\.": ".linear_c.",
    }

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of the first patches."""
        return getattr(self, "segformer", self).encoder.patch_embeddings[0]


class SegformerModel(_Segformer):
    """The encoder: `last_hidden_state` (batch, features, height, width) of the last stage.

    >>> config = votive.models.SegformerConfig(num_encoder_blocks=1, hidden_sizes=[8], depths=[1])
    >>> votive.models.SegformerModel(config)(votive.ones(1, 3, 32, 32)).last_hidden_state.shape
    votive.Size([1, 8, 8, 8])
    """

    def __init__(self, config: SegformerConfig) -> None:
        super().__init__(config)
        self.encoder = SegformerEncoder(config)
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, output_attentions: bool = False, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """Of pictures (batch, channels, height, width) of any size."""
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        return self.encoder(pictures.to(self.dtype), Trace(output_attentions, output_hidden_states))


class SegformerForImageClassification(_Segformer):
    """SegFormer that gives a picture one of `num_labels` classes, from the mean of the last stage.

    >>> config = votive.models.SegformerConfig(num_encoder_blocks=1, hidden_sizes=[8], depths=[1], num_labels=3)
    >>> votive.models.SegformerForImageClassification(config)(votive.ones(1, 3, 32, 32)).logits.shape
    votive.Size([1, 3])
    """

    def __init__(self, config: SegformerConfig) -> None:
        super().__init__(config)
        self.segformer = SegformerModel(config)
        self.classifier = nn.Linear(config.hidden_sizes[config.num_encoder_blocks - 1], config.label_count)
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the encoder, and `labels`: classes (batch,), or values per class."""
        found = self.segformer(pixel_values, **kwargs)
        x = found.last_hidden_state
        read = x.mean((2, 3)) if self.config.reshape_last_stage else x.mean(1)
        return class_output(self.classifier(read), labels, self.config, found)


class SegformerStageWidth(nn.Module):
    """A stage's features as the head's, on the same grid."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(before, width)

    def forward(self, x: Tensor) -> Tensor:
        return on_grid(self.proj(x.flatten(2).transpose(1, 2)), (x.shape[2], x.shape[3]))


class SegformerDecodeHead(nn.Module):
    """All stages on the first one's grid, side by side, as classes of each place."""

    def __init__(self, config: SegformerConfig) -> None:
        super().__init__()
        width, stages = config.decoder_hidden_size, config.num_encoder_blocks
        self.linear_c = nn.ModuleList(SegformerStageWidth(config.hidden_sizes[i], width) for i in range(stages))
        self.linear_fuse = nn.Conv2d(width * stages, width, 1, bias=False)
        self.batch_norm = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout(config.classifier_dropout_prob)
        self.classifier = nn.Conv2d(width, config.label_count, 1)

    def forward(self, states: tuple[Tensor, ...]) -> Tensor:
        parts = []
        for x, part in zip(states, self.linear_c, strict=True):
            parts.append(F.interpolate(part(x), size=states[0].shape[2:], mode="bilinear", align_corners=False))
        x = F.relu(self.batch_norm(self.linear_fuse(votive.cat(parts[::-1], 1))))
        return self.classifier(self.dropout(x))


class SegformerForSemanticSegmentation(_Segformer):
    """SegFormer that gives pixels classes: `logits` (batch, classes, height / 4, width / 4).

    >>> config = votive.models.SegformerConfig(num_encoder_blocks=1, hidden_sizes=[8], depths=[1], num_labels=3)
    >>> votive.models.SegformerForSemanticSegmentation(config).eval()(votive.ones(1, 3, 32, 32)).logits.shape
    votive.Size([1, 3, 8, 8])
    """

    def __init__(self, config: SegformerConfig) -> None:
        super().__init__(config)
        self.segformer = SegformerModel(config)
        self.decode_head = SegformerDecodeHead(config)
        self.post_init()

    def forward(
        self,
        pixel_values: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> PredictionOutput:
        """`labels` (batch, height, width) are classes; `semantic_loss_ignore_index` does not count."""
        found = self.segformer(pixel_values, output_attentions, True)
        states = found.hidden_states
        if not self.config.reshape_last_stage:
            raise ValueError(f"{type(self).__name__}: reshape_last_stage must be true, so that places have a grid.")
        logits = self.decode_head(states)
        found = replace(found, hidden_states=states if output_hidden_states else None)
        return PredictionOutput(
            loss=None if labels is None else self.loss(logits, labels),
            logits=logits,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
        )

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross entropy of the pixels, of scores stretched to the size of the labels."""
        left_out = self.config.semantic_loss_ignore_index
        x = F.interpolate(logits.float(), size=labels.shape[-2:], mode="bilinear", align_corners=False)
        if self.config.label_count > 1:
            return F.cross_entropy(x, labels.long(), ignore_index=left_out)
        counted = ((labels >= 0) & (labels != left_out)).float()
        each = F.binary_cross_entropy_with_logits(x.squeeze(1), labels.float(), reduction="none")
        return (each * counted).mean()
