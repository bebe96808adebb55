"""DETR, which finds things in pictures: a network, a transformer, a query for each. arXiv:2005.12872.

Parameter names are those of Hugging Face checkpoints; files whose network is timm's are read, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .attention import AttentionMask, Weights, padding_mask
from .auto_seeing import AutoBackbone
from .config import LabeledConfig
from .detr_layers import BoxPredictor, DetrDecoder, DetrEncoder, LearnedPositions, SinePositions, freeze_norms
from .detr_loss import Targets, detection_loss
from .nested import Nested, Side
from .output import ModelOutput
from .pretrained import PreTrainedModel
from .resnet import TIMM_NAMES
from .stack import Trace
from .vit import check_pictures

# Depths and kinds of layers of timm's networks, by their names.
_TIMM: dict[str, dict[str, Any]] = {
    "resnet18": {"depths": [2, 2, 2, 2], "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512]},
    "resnet34": {"depths": [3, 4, 6, 3], "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512]},
    "resnet50": {"depths": [3, 4, 6, 3]},
    "resnet101": {"depths": [3, 4, 23, 3]},
    "resnet152": {"depths": [3, 8, 36, 3]},
}


@dataclass(kw_only=True)
class DetrConfig(Nested, LabeledConfig):
    """The numbers of a DETR; `backbone_config` is that of a network, or names one of timm's ResNets.

    >>> votive.models.DetrConfig().backbone_config.depths
    [3, 4, 6, 3]
    """

    model_type = "detr"
    sides: ClassVar[dict[str, Side]] = {"backbone_config": ("resnet", {"out_features": ["stage4"]})}

    backbone_config: Any = None
    num_channels: int = 3
    num_queries: int = 100
    encoder_layers: int = 6
    encoder_ffn_dim: int = 2048
    encoder_attention_heads: int = 8
    decoder_layers: int = 6
    decoder_ffn_dim: int = 2048
    decoder_attention_heads: int = 8
    activation_function: str = "relu"
    d_model: int = 256
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    init_std: float = 0.02
    init_xavier_std: float = 1.0
    auxiliary_loss: bool = False
    position_embedding_type: str = "sine"
    dilation: bool = False
    class_cost: float = 1
    bbox_cost: float = 5
    giou_cost: float = 2
    bbox_loss_coefficient: float = 5
    giou_loss_coefficient: float = 2
    eos_coefficient: float = 0.1

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        values = super().adapt(values)
        told = values.get("backbone_config")
        timm = told is None or (isinstance(told, dict) and told.get("model_type") == "timm_backbone")
        name = values.pop("backbone", None)
        values.pop("use_timm_backbone", None)
        if timm:
            name = (told or {}).get("backbone") or name or "resnet50"
            if name not in _TIMM:
                raise ValueError(f"DetrConfig: the network {name!r} is not known; known: {', '.join(_TIMM)}.")
            values["backbone_config"] = {"model_type": "resnet", "out_features": ["stage4"], **_TIMM[name]}
        return values

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = self.position_embedding_type
        if kind not in ("sine", "learned"):
            raise ValueError(f"DetrConfig: position_embedding_type must be 'sine' or 'learned', got {kind!r}.")
        if self.dilation:
            raise ValueError("DetrConfig: dilation=True, a network with a finer last stage, is not supported.")
        for heads in ("encoder_attention_heads", "decoder_attention_heads"):
            if self.d_model % getattr(self, heads):
                raise ValueError(
                    f"DetrConfig: d_model={self.d_model} does not split into {heads}={getattr(self, heads)}."
                )
        if self.d_model % 4:
            raise ValueError(f"DetrConfig: d_model={self.d_model} must be a multiple of 4.")

    @property
    def hidden_size(self) -> int:
        return self.d_model

    @property
    def num_hidden_layers(self) -> int:
        return self.encoder_layers

    @property
    def num_attention_heads(self) -> int:
        return self.encoder_attention_heads


@dataclass
class DetrModelOutput(ModelOutput):
    """States of queries, and of the grid that they looked at.

    >>> list(votive.models.detr.DetrModelOutput(last_hidden_state=votive.ones(1)).keys())
    ['last_hidden_state']
    """

    last_hidden_state: Tensor | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None
    intermediate_hidden_states: Tensor | None = None


@dataclass
class DetrObjectDetectionOutput(ModelOutput):
    """What each query found: scores of classes, the last of which is nothing, and a box as shares of the picture.

    >>> list(votive.models.detr.DetrObjectDetectionOutput(logits=votive.ones(1)).keys())
    ['logits']
    """

    loss: Tensor | None = None
    loss_dict: dict[str, Tensor] | None = None
    logits: Tensor | None = None
    pred_boxes: Tensor | None = None
    auxiliary_outputs: list[dict[str, Tensor]] | None = None
    last_hidden_state: Tensor | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None


class _Detr(PreTrainedModel):
    """What all classes share."""

    config_class = DetrConfig
    base_model_prefix = "model"
    renames: ClassVar[dict[str, str]] = {
        r"^((?:model\.)?backbone)\.model\.": r"\1.conv_encoder.model.",
        r"(_attn)\.o_proj\.": r"\1.out_proj.",
        r"(layers\.\d+)\.mlp\.": r"\1.",
        **TIMM_NAMES,
    }
    ignored: ClassVar[tuple[str, ...]] = (r"num_batches_tracked$",)

    def init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Conv2d, nn.Embedding)):
            nn.init.normal_(module.weight, std=self.config.init_std)
        if isinstance(module, (nn.Linear, nn.Conv2d)) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, LearnedPositions):
            nn.init.uniform_(module.row_embeddings.weight)
            nn.init.uniform_(module.column_embeddings.weight)


class DetrModel(_Detr):
    """The network, the encoder of its grid, and the decoder of queries.

    >>> config = votive.models.DetrConfig(d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=8,
    ...     decoder_ffn_dim=8, num_queries=5, encoder_attention_heads=2, decoder_attention_heads=2,
    ...     backbone_config={"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]})
    >>> votive.models.DetrModel(config)(votive.ones(1, 3, 32, 32)).last_hidden_state.shape
    votive.Size([1, 5, 16])
    """

    ignored = (*_Detr.ignored, r"^(class_labels_classifier|bbox_predictor)\.")

    def __init__(self, config: DetrConfig) -> None:
        super().__init__(config)
        network: Any = AutoBackbone.from_config(config.backbone_config)
        freeze_norms(network)
        self.backbone = nn.ModuleDict({"conv_encoder": nn.ModuleDict({"model": network})})
        kind = SinePositions if config.position_embedding_type == "sine" else LearnedPositions
        self.position_embedding = kind(config.d_model)
        self.query_position_embeddings = nn.Embedding(config.num_queries, config.d_model)
        self.input_projection = nn.Conv2d(network.channels[-1], config.d_model, 1)
        self.encoder, self.decoder = DetrEncoder(config), DetrDecoder(config)
        self.post_init()

    @property
    def network(self) -> Any:
        """What makes a grid of a picture."""
        return self.backbone["conv_encoder"]["model"]

    def freeze_backbone(self) -> None:
        """Let training leave the network as it is."""
        self.network.requires_grad_(False)

    def unfreeze_backbone(self) -> None:
        """Let training change the network, too."""
        self.network.requires_grad_(True)

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of a grid."""
        return self.input_projection

    def forward(
        self,
        pixel_values: Tensor | None = None,
        pixel_mask: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> DetrModelOutput:
        """`pixel_mask` (batch, height, width) has 0 at padding."""
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels).to(self.dtype)
        grid = self.network(pictures).feature_maps[-1]
        B, _, H, W = grid.shape
        if pixel_mask is None:
            pixel_mask = votive.ones(B, *pictures.shape[2:], device=pictures.device)
        real = F.interpolate(pixel_mask.unsqueeze(0).float(), size=(H, W))[0] > 0
        at = self.position_embedding(real, grid.dtype)
        seen = padding_mask(real.flatten(1))
        one, two = (Trace(output_attentions, output_hidden_states) for _ in range(2))
        x = self.encoder(self.input_projection(grid).flatten(2).transpose(1, 2), at, seen, one)
        numbers = votive.arange(self.query_position_embeddings.num_embeddings, device=pictures.device)
        queries = self.query_position_embeddings(numbers).unsqueeze(0).expand(B, -1, -1)
        start = votive.zeros_like(queries) if decoder_inputs_embeds is None else decoder_inputs_embeds
        own = AttentionMask() if decoder_attention_mask is None else padding_mask(decoder_attention_mask)
        crossed: Weights = [] if output_attentions else None
        last, each = self.decoder(start, queries, own, x, at, seen, two, crossed)
        return DetrModelOutput(
            last_hidden_state=last,
            decoder_hidden_states=two.hidden_states,
            decoder_attentions=two.attentions,
            cross_attentions=None if crossed is None else tuple(crossed),
            encoder_last_hidden_state=x,
            encoder_hidden_states=one.hidden_states,
            encoder_attentions=one.attentions,
            intermediate_hidden_states=each,
        )


class DetrForObjectDetection(_Detr):
    """DETR that says of each query which thing it found, and where.

    >>> config = votive.models.DetrConfig(d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=8,
    ...     decoder_ffn_dim=8, num_queries=5, encoder_attention_heads=2, decoder_attention_heads=2, num_labels=3,
    ...     backbone_config={"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]})
    >>> out = votive.models.DetrForObjectDetection(config)(votive.ones(1, 3, 32, 32))
    >>> out.logits.shape, out.pred_boxes.shape
    (votive.Size([1, 5, 4]), votive.Size([1, 5, 4]))
    """

    def __init__(self, config: DetrConfig) -> None:
        super().__init__(config)
        self.model = DetrModel(config)
        self.class_labels_classifier = nn.Linear(config.d_model, config.label_count + 1)
        self.bbox_predictor = BoxPredictor(config.d_model)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of a grid."""
        return self.model.input_projection

    def forward(
        self, pixel_values: Tensor | None = None, *args: Any, labels: Targets | None = None, **kwargs: Any
    ) -> DetrObjectDetectionOutput:
        """As the model, and `labels`: for each picture a dict of `class_labels` (things,) and `boxes` (things, 4)."""
        found = self.model(pixel_values, *args, **kwargs)
        x, each = found.last_hidden_state, found.intermediate_hidden_states
        logits, boxes = self.class_labels_classifier(x), self.bbox_predictor(x)
        loss, losses, before = None, None, None
        if labels is not None:
            pairs = []
            if each is not None:
                scores, places = self.class_labels_classifier(each), self.bbox_predictor(each)
                pairs = list(zip(scores[:-1], places[:-1], strict=True))
                before = [{"logits": a, "pred_boxes": b} for a, b in pairs]
            loss, losses = detection_loss(logits, boxes, labels, self.config, pairs)
        rest = {name: value for name, value in found.items() if name != "intermediate_hidden_states"}
        return DetrObjectDetectionOutput(
            loss=loss, loss_dict=losses, logits=logits, pred_boxes=boxes, auxiliary_outputs=before, **rest
        )
