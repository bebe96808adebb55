"""SigLIP, which puts texts and pictures into one space. Zhai et al. 2023, arXiv:2303.15343.

Their layers are CLIP's; each text and picture is a vector by itself, and pairs are told by a sigmoid. Parameter names
are those of Hugging Face checkpoints; the numbers are in `siglip_config.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .attention import AttentionMask, attend, padding_mask
from .bert import class_output
from .clip import CLIPOutput, _unit
from .clip_sides import CLIPMLP, CLIPEncoder
from .config import Config
from .output import EncoderOutput, PredictionOutput
from .pretrained import PreTrainedModel
from .siglip_config import Siglip2VisionConfig, SiglipConfig, SiglipTextConfig, SiglipVisionConfig
from .vit import check_pictures, stretched

__all__ = [
    "SiglipConfig",
    "SiglipForImageClassification",
    "SiglipModel",
    "SiglipTextConfig",
    "SiglipTextModel",
    "SiglipVisionConfig",
    "SiglipVisionModel",
]


class _Siglip(PreTrainedModel):
    """What all classes of SigLIP share."""

    config_class: ClassVar[type[Config]] = SiglipConfig
    base_model_prefix = "siglip"

    def init_weights(self, module: nn.Module) -> None:
        """Start values after widths, as in the paper's code."""
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        elif isinstance(module, CLIPMLP):
            for part in module.values():
                nn.init.xavier_uniform_(part.weight)
                nn.init.normal_(part.bias, std=1e-6)
        elif isinstance(module, SiglipHead):
            nn.init.xavier_uniform_(module.probe)
            nn.init.xavier_uniform_(module.attention.in_proj_weight)
            nn.init.zeros_(module.attention.in_proj_bias)
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings, or what makes vectors of patches."""
        side = getattr(self, "text_model", getattr(self, "vision_model", self))
        return side.embeddings.table


class SiglipTextEmbeddings(nn.ModuleDict):
    """Tokens and their places."""

    def __init__(self, config: SiglipTextConfig) -> None:
        width = config.hidden_size
        super().__init__(
            {
                "token_embedding": nn.Embedding(config.vocab_size, width),
                "position_embedding": nn.Embedding(config.max_position_embeddings, width),
            }
        )

    @property
    def table(self) -> nn.Module:
        """That of tokens."""
        return self["token_embedding"]


class SiglipTextModel(_Siglip):
    """The reader of texts, all of whose tokens see each other; `pooler_output` comes from the last one.

    >>> config = votive.models.SiglipTextConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.SiglipTextModel(config)(votive.tensor([[1, 2, 9]])).pooler_output.shape
    votive.Size([1, 8])
    """

    config_class: ClassVar[type[Config]] = SiglipTextConfig
    base_model_prefix = "text_model"
    ignored = (*_Siglip.ignored, r"^(siglip\.)?(vision_model\.|logit_)")

    def __init__(self, config: SiglipTextConfig) -> None:
        super().__init__(config)
        self.embeddings = SiglipTextEmbeddings(config)
        self.encoder = CLIPEncoder(config)  # type: ignore[arg-type]  # which has its fields
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        assert config.projection_size is not None, "the configuration fills it in"
        self.head = nn.Linear(config.hidden_size, config.projection_size)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """Texts are trained padded to `max_position_embeddings`: pad them so, and give no mask."""
        x, most = self.embedded(input_ids, None), self.config.max_position_embeddings
        if x.shape[1] > most:
            raise ValueError(
                f"{type(self).__name__}: the text has {x.shape[1]} tokens, the model was made for "
                f"max_position_embeddings={most}; cut it."
            )
        if position_ids is None:
            position_ids = votive.arange(x.shape[1], device=x.device).unsqueeze(0)
        x = x + self.embeddings["position_embedding"](position_ids)
        found = self.encoder(x, padding_mask(attention_mask), output_attentions, output_hidden_states)
        x = found.last_hidden_state = self.final_layer_norm(found.last_hidden_state)
        found.pooler_output = self.head(x[:, -1])
        return found


class SiglipVisionEmbeddings(nn.Module):
    """Patches and their places."""

    def __init__(self, config: SiglipVisionConfig) -> None:
        super().__init__()
        self.config, width, side = config, config.hidden_size, config.patch_size
        self.patch_embedding = nn.Conv2d(config.num_channels, width, side, stride=side)
        self.grid = config.image_size // side
        self.position_embedding = nn.Embedding(self.grid**2, width)

    @property
    def table(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.patch_embedding

    def forward(self, pixel_values: Tensor, interpolate: bool) -> Tensor:
        size, config = tuple(pixel_values.shape[2:]), self.config
        if not interpolate and size != (config.image_size, config.image_size):
            raise ValueError(
                f"{type(self).__name__}: pictures are {size[0]} x {size[1]} pixels, the model was made for "
                f"{config.image_size} x {config.image_size}; resize them, or pass interpolate_pos_encoding=True."
            )
        positions = self.position_embedding(votive.arange(self.grid**2, device=pixel_values.device)).unsqueeze(0)
        new = size[0] // config.patch_size, size[1] // config.patch_size
        if new != (self.grid, self.grid):
            positions = stretched(positions, 0, (self.grid, self.grid), new)
        return self.patch_embedding(pixel_values).flatten(2).transpose(1, 2) + positions


class SiglipHead(nn.Module):
    """One vector for the picture: what a learned query finds in its patches."""

    def __init__(self, config: SiglipVisionConfig | Siglip2VisionConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.probe = nn.Parameter(votive.randn(1, 1, width))
        self.attention = nn.MultiheadAttention(width, config.num_attention_heads, batch_first=True)
        self.layernorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.mlp = CLIPMLP(config)

    def forward(self, x: Tensor, mask: AttentionMask) -> Tensor:
        own, heads = self.attention, self.attention.num_heads
        w, b = own.in_proj_weight.chunk(3), own.in_proj_bias.chunk(3)
        read = (self.probe.expand(x.shape[0], -1, -1), x, x)
        q, k, v = (F.linear(t, w[i], b[i]).unflatten(-1, (heads, -1)).transpose(1, 2) for i, t in enumerate(read))
        y = own.out_proj(attend(q, k, v, mask).transpose(1, 2).flatten(2))
        return (y + self.mlp(self.layernorm(y)))[:, 0]


class SiglipVision(_Siglip):
    """What both readers of pictures share."""

    base_model_prefix = "vision_model"
    ignored = (*_Siglip.ignored, r"^(siglip\.)?(text_model\.|logit_)")
    embeddings_class: ClassVar[type[nn.Module]] = SiglipVisionEmbeddings

    def __init__(self, config: SiglipVisionConfig | Siglip2VisionConfig) -> None:
        super().__init__(config)
        self.embeddings = self.embeddings_class(config)
        self.encoder = CLIPEncoder(config)  # type: ignore[arg-type]  # which has its fields
        self.post_layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        if config.vision_use_head:
            self.head = SiglipHead(config)
        self.post_init()

    def read(self, x: Tensor, mask: AttentionMask, attentions: bool, states: bool) -> EncoderOutput:
        """Layers, the last norm, and the one vector if there is a head."""
        found = self.encoder(x, mask, attentions, states)
        x = found.last_hidden_state = self.post_layernorm(found.last_hidden_state)
        found.pooler_output = self.head(x, mask) if self.config.vision_use_head else None
        return found


class SiglipVisionModel(SiglipVision):
    """The reader of pictures; `pooler_output` is what a learned query finds in the patches.

    >>> config = votive.models.SiglipVisionConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.SiglipVisionModel(config)(votive.ones(1, 3, 16, 16)).last_hidden_state.shape
    votive.Size([1, 4, 8])
    """

    config_class: ClassVar[type[Config]] = SiglipVisionConfig

    def forward(
        self,
        pixel_values: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        pictures = check_pictures(type(self).__name__, pixel_values, self.config.num_channels)
        x = self.embeddings(pictures.to(self.dtype), bool(interpolate_pos_encoding))
        return self.read(x, AttentionMask(), output_attentions, output_hidden_states)


class SiglipModel(_Siglip):
    """Both readers, and how near a text and a picture are.

    >>> small = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> config = votive.models.SiglipConfig(text_config={**small, "vocab_size": 9},
    ...     vision_config={**small, "image_size": 16, "patch_size": 8})
    >>> model = votive.models.SiglipModel(config)
    >>> model(votive.tensor([[1, 8], [2, 8]]), votive.ones(3, 3, 16, 16)).logits_per_image.shape
    votive.Size([3, 2])
    """

    text_class: ClassVar[type[SiglipTextModel]] = SiglipTextModel
    vision_class: ClassVar[type[SiglipVision]] = SiglipVisionModel

    def __init__(self, config: SiglipConfig) -> None:
        super().__init__(config)
        self.text_model, self.vision_model = (
            self.text_class(config.text_config),
            self.vision_class(config.vision_config),
        )
        self.logit_scale, self.logit_bias = nn.Parameter(votive.zeros(1)), nn.Parameter(votive.zeros(1))
        self.post_init()

    def get_text_features(self, input_ids: Tensor | None = None, **kwargs: Any) -> Any:
        """Texts (batch, projection_size) in the shared space, not scaled to length one.

        >>> hasattr(votive.models.SiglipModel, "get_text_features")
        True
        """
        return self.text_model(input_ids, **kwargs).pooler_output

    def get_image_features(self, pixel_values: Tensor | None = None, **kwargs: Any) -> Any:
        """Pictures (batch, hidden_size) in the shared space, not scaled to length one.

        >>> hasattr(votive.models.SiglipModel, "get_image_features")
        True
        """
        return self.vision_model(pixel_values, **kwargs).pooler_output

    def forward(
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        return_loss: bool = False,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> CLIPOutput:
        """`return_loss` asks for the loss of all pairs, of which those at the same place belong together."""
        wanted = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        seen = self.vision_model(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding, **wanted)
        return self.compared(seen, self.text_model(input_ids, attention_mask, position_ids, **wanted), return_loss)

    def compared(self, seen: EncoderOutput, read: EncoderOutput, return_loss: bool) -> CLIPOutput:
        """How near pictures and texts are that both readers have read."""
        assert seen.pooler_output is not None, "both readers have a pooler"
        assert read.pooler_output is not None, "both readers have a pooler"
        pictures, texts = _unit(seen.pooler_output), _unit(read.pooler_output)
        near = texts @ pictures.t() * self.logit_scale.exp() + self.logit_bias
        loss = None
        if return_loss:
            signs = 2 * votive.eye(near.shape[0], dtype=near.dtype, device=near.device) - 1
            loss = -F.logsigmoid(signs * near).sum(-1).mean()
        return CLIPOutput(
            loss=loss,
            logits_per_image=near.t(),
            logits_per_text=near,
            text_embeds=texts,
            image_embeds=pictures,
            text_model_output=read,
            vision_model_output=seen,
        )


class SiglipForImageClassification(_Siglip):
    """The reader of pictures with a head of classes on the mean of its patches.

    >>> config = votive.models.SiglipConfig(num_labels=3, vision_config={"image_size": 16, "patch_size": 8,
    ...     "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2})
    >>> votive.models.SiglipForImageClassification(config)(votive.ones(1, 3, 16, 16)).logits.shape
    votive.Size([1, 3])
    """

    ignored = (*_Siglip.ignored, r"^(text_model\.|logit_)")
    vision_class: ClassVar[type[SiglipVision]] = SiglipVisionModel

    def __init__(self, config: SiglipConfig) -> None:
        super().__init__(config)
        self.vision_model = self.vision_class(config.vision_config)
        self.classifier = nn.Linear(config.vision_config.hidden_size, config.label_count)
        self.post_init()

    def forward(
        self, pixel_values: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the reader of pictures, and `labels`: classes (batch,), or values per class."""
        found = self.vision_model(pixel_values, **kwargs)
        return class_output(self.classifier(found.last_hidden_state.mean(1)), labels, self.config, found)
