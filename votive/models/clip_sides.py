"""CLIP's reader of texts and its reader of pictures, which have the same layers.

Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn.fused_linear import feed_forward

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, causal_mask, self_attention
from .clip_config import CLIPConfig, CLIPTextConfig, CLIPVisionConfig
from .config import Config
from .encoder import run_encoder
from .output import EncoderOutput
from .pretrained import PreTrainedModel
from .stack import Trace
from .vit import check_pictures, stretched


class CLIPAttention(nn.Module):
    """Attention as the mask says: to all, or to what came before."""

    def __init__(self, config: CLIPTextConfig | CLIPVisionConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.dropout = config.num_attention_heads, config.attention_dropout or 0.0
        self.k_proj, self.v_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.q_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        projections = self.q_proj, self.k_proj, self.v_proj
        dropout = self.dropout if self.training else 0.0
        return self.out_proj(self_attention(x, projections, self.heads, mask, dropout, weights))


class CLIPMLP(nn.ModuleDict):
    """`fc2(act(fc1(x)))`."""

    def __init__(self, config: Any, width: int | None = None, hidden: int | None = None) -> None:
        width = config.hidden_size if width is None else width
        hidden = config.intermediate_size if hidden is None else hidden
        super().__init__({"fc1": nn.Linear(width, hidden), "fc2": nn.Linear(hidden, width)})
        self.act_fn = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return feed_forward(self["fc1"], self.act_fn, self["fc2"], x)


class CLIPEncoderLayer(nn.Module):
    """Norm and attention, norm and MLP, each added to what came in."""

    def __init__(self, config: CLIPTextConfig | CLIPVisionConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.self_attn = CLIPAttention(config)
        self.layer_norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.mlp = CLIPMLP(config)
        self.layer_norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        x = x + self.self_attn(self.layer_norm1(x), mask, weights)
        return x + self.mlp(self.layer_norm2(x))


class _CLIP(PreTrainedModel):
    """What all CLIP classes share."""

    config_class: ClassVar[type[Config]] = CLIPConfig
    base_model_prefix = "clip"

    def init_weights(self, module: nn.Module) -> None:
        """Start values after widths and depth, as in the paper's code."""
        factor = getattr(self.config, "initializer_factor", 1.0)
        if isinstance(module, CLIPAttention):
            width, depth = module.q_proj.in_features, module.__dict__.get("depth", 1)
            inner = width**-0.5 * (2 * depth) ** -0.5 * factor
            for part in (module.q_proj, module.k_proj, module.v_proj):
                nn.init.normal_(part.weight, std=inner)
            nn.init.normal_(module.out_proj.weight, std=width**-0.5 * factor)
        elif isinstance(module, CLIPEncoderLayer):
            width, depth = module.mlp["fc1"].in_features, module.__dict__.get("depth", 1)
            nn.init.normal_(module.mlp["fc1"].weight, std=(2 * width) ** -0.5 * factor)
            nn.init.normal_(module.mlp["fc2"].weight, std=width**-0.5 * (2 * depth) ** -0.5 * factor)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02 * factor)
        elif isinstance(module, CLIPVisionEmbeddings):
            nn.init.normal_(module.class_embedding, std=module.width**-0.5 * factor)
            nn.init.normal_(module.patch_embedding.weight, std=0.02 * factor)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


class CLIPEncoder(nn.Module):
    """Layers, one after the other."""

    def __init__(self, config: CLIPTextConfig | CLIPVisionConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(CLIPEncoderLayer(config) for _ in range(config.num_hidden_layers))
        for layer in self.layers:  # start values of a layer ask how many there are
            layer.__dict__["depth"] = layer.self_attn.__dict__["depth"] = config.num_hidden_layers

    def forward(self, x: Tensor, mask: AttentionMask, attentions: bool, hidden: bool) -> EncoderOutput:
        return run_encoder(self.layers, x, mask, Trace(attentions, hidden))


class CLIPTextModel(_CLIP):
    """The reader of texts; `pooler_output` is what it makes of the token that ends one.

    >>> config = votive.models.CLIPTextConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=9)
    >>> votive.models.CLIPTextModel(config)(votive.tensor([[1, 2, 9]])).pooler_output.shape
    votive.Size([1, 8])
    """

    config_class = CLIPTextConfig
    base_model_prefix = "text_model"

    def __init__(self, config: CLIPTextConfig | CLIPVisionConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.ModuleDict(
            {
                "token_embedding": nn.Embedding(config.vocab_size, config.hidden_size),
                "position_embedding": nn.Embedding(config.max_position_embeddings, config.hidden_size),
            }
        )
        self.encoder = CLIPEncoder(config)
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.embeddings["token_embedding"]

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        x = self.embedded(input_ids, None)
        T = x.shape[1]
        if self.config.max_position_embeddings < T:
            raise ValueError(
                f"CLIPTextModel: the text has {T} tokens, the model was made for "
                f"max_position_embeddings={self.config.max_position_embeddings}; cut it."
            )
        if position_ids is None:
            position_ids = votive.arange(T, device=x.device).unsqueeze(0)
        x = x + self.embeddings["position_embedding"](position_ids)
        mask = causal_mask(attention_mask, T, T, device=x.device)
        found = self.encoder(x, mask, output_attentions, output_hidden_states)
        x = found.last_hidden_state = self.final_layer_norm(found.last_hidden_state)
        found.pooler_output = x[votive.arange(x.shape[0], device=x.device), self.ends(input_ids)]
        return found

    def ends(self, input_ids: Tensor | None) -> Tensor:
        """Where each text ends: at its first `eos_token_id`."""
        assert input_ids is not None, "they were embedded before"
        eos = self.config.eos_token_id
        if eos == 2:
            # The first files name a wrong token; the right one has the largest number of all.
            return input_ids.argmax(-1)
        return (input_ids == eos).int().argmax(-1)


class CLIPVisionEmbeddings(nn.Module):
    """Patches behind a class token, each with its position."""

    def __init__(self, config: CLIPTextConfig | CLIPVisionConfig) -> None:
        super().__init__()
        self.config, self.width = config, config.hidden_size
        self.class_embedding = nn.Parameter(votive.randn(self.width))
        self.patch_embedding = nn.Conv2d(
            config.num_channels, self.width, config.patch_size, stride=config.patch_size, bias=False
        )
        self.grid = config.image_size // config.patch_size
        self.position_embedding = nn.Embedding(self.grid**2 + 1, self.width)

    def forward(self, pixel_values: Tensor, interpolate: bool) -> Tensor:
        size, config = tuple(pixel_values.shape[2:]), self.config
        places = votive.arange(self.position_embedding.num_embeddings, device=pixel_values.device)
        positions = self.position_embedding(places).unsqueeze(0)
        if not interpolate and size != (config.image_size, config.image_size):
            raise ValueError(
                f"CLIPVisionModel: pictures are {size[0]} x {size[1]} pixels, the model was made "
                f"for {config.image_size} x {config.image_size}; resize them, or pass "
                "interpolate_pos_encoding=True."
            )
        new = size[0] // config.patch_size, size[1] // config.patch_size
        if new != (self.grid, self.grid):
            positions = stretched(positions, 1, (self.grid, self.grid), new)
        x = self.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        return votive.cat([self.class_embedding.expand(x.shape[0], 1, -1), x], 1) + positions


class CLIPVisionModel(_CLIP):
    """The reader of pictures; `pooler_output` is what it makes of the class token.

    >>> config = votive.models.CLIPVisionConfig(image_size=16, patch_size=8, hidden_size=8,
    ...     intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.CLIPVisionModel(config)(votive.ones(1, 3, 16, 16)).last_hidden_state.shape
    votive.Size([1, 5, 8])
    """

    config_class = CLIPVisionConfig
    base_model_prefix = "vision_model"

    def __init__(self, config: CLIPTextConfig | CLIPVisionConfig) -> None:
        super().__init__(config)
        width, eps = config.hidden_size, config.layer_norm_eps
        self.embeddings = CLIPVisionEmbeddings(config)
        self.pre_layrnorm = nn.LayerNorm(width, eps=eps)  # so it is called in all files
        self.encoder = CLIPEncoder(config)
        self.post_layernorm = nn.LayerNorm(width, eps=eps)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.embeddings.patch_embedding

    def forward(
        self,
        pixel_values: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        pictures = check_pictures("CLIPVisionModel", pixel_values, self.config.num_channels)
        x = self.embeddings(pictures.to(self.dtype), bool(interpolate_pos_encoding))
        x = self.pre_layrnorm(x)
        found = self.encoder(x, AttentionMask(), output_attentions, output_hidden_states)
        found.pooler_output = self.post_layernorm(found.last_hidden_state[:, 0])
        return found
