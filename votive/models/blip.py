"""BLIP, which says what is in a picture and answers questions about it. Li et al. 2022, arXiv:2201.12086.

Parameter names are those of Hugging Face checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn

from ..tensor import Tensor
from .attention import AttentionMask, Weights, attend
from .blip_text import BlipTextConfig, BlipTextLMHeadModel, BlipTextModel
from .clip_sides import CLIPMLP
from .config import Config
from .encoder import run_encoder
from .nested import Nested, Side
from .output import BaseModelOutput, EncoderOutput, ModelOutput
from .pretrained import CausalLM, PreTrainedModel
from .stack import Trace
from .vit import check_pictures, stretched


@dataclass(kw_only=True)
class BlipVisionConfig(Config):
    """The numbers of BLIP's reader of pictures.

    >>> votive.models.BlipVisionConfig().image_size
    384
    """

    model_type = "blip_vision_model"

    hidden_size: int = 768
    intermediate_size: int = 3072
    projection_dim: int = 512
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    image_size: int = 384
    patch_size: int = 16
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-5
    attention_dropout: float | None = 0.0
    initializer_range: float = 1e-10

    @classmethod
    def adapt(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The part of a whole BLIP, if that is what came."""
        inner = values.get("vision_config")
        return super().adapt(dict(inner) if isinstance(inner, dict) else values)

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"BlipVisionConfig: hidden_size={self.hidden_size} does not split into "
                f"{self.num_attention_heads} heads."
            )


@dataclass(kw_only=True)
class BlipConfig(Nested, Config):
    """Both sides; texts look at as many features as the reader of pictures gives.

    >>> votive.models.BlipConfig(vision_config={"hidden_size": 96}).text_config.encoder_hidden_size
    96
    """

    model_type = "blip"
    sides: ClassVar[dict[str, Side]] = {"text_config": BlipTextConfig, "vision_config": BlipVisionConfig}

    text_config: Any = None
    vision_config: Any = None
    projection_dim: int = 512
    logit_scale_init_value: float = 2.6592
    image_text_hidden_size: int = 256
    label_smoothing: float = 0.0
    tie_word_embeddings: bool = True
    initializer_factor: float = 1.0
    initializer_range: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        self.text_config.encoder_hidden_size = self.vision_config.hidden_size

    @property
    def vocab_size(self) -> int:
        return self.text_config.vocab_size

    @property
    def hidden_size(self) -> int:
        return self.text_config.hidden_size

    @property
    def num_hidden_layers(self) -> int:
        return self.text_config.num_hidden_layers

    @property
    def is_encoder_decoder(self) -> bool:
        """A picture is read, a text is written."""
        return True


class BlipAttention(nn.Module):
    """Attention of all patches to all, by one product."""

    def __init__(self, config: BlipVisionConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.dropout = config.num_attention_heads, config.attention_dropout or 0.0
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        dropout = self.dropout if self.training else 0.0
        return self.projection(attend(q, k, v, mask, dropout=dropout, weights=weights).transpose(1, 2).flatten(2))


class BlipEncoderLayer(nn.Module):
    """Norm and attention, norm and MLP, each added to what came in."""

    def __init__(self, config: BlipVisionConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.self_attn = BlipAttention(config)
        self.layer_norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.mlp = CLIPMLP(config)
        self.layer_norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        x = x + self.self_attn(self.layer_norm1(x), mask, weights)
        return x + self.mlp(self.layer_norm2(x))


class BlipVisionEmbeddings(nn.Module):
    """Patches behind a class token, each with its position."""

    def __init__(self, config: BlipVisionConfig) -> None:
        super().__init__()
        width, size = config.hidden_size, config.patch_size
        self.config, self.grid = config, config.image_size // size
        self.class_embedding = nn.Parameter(votive.randn(1, 1, width))
        self.patch_embedding = nn.Conv2d(3, width, size, stride=size)
        self.position_embedding = nn.Parameter(votive.randn(1, self.grid**2 + 1, width))

    def forward(self, pictures: Tensor, interpolate: bool) -> Tensor:
        size, patch, positions = tuple(pictures.shape[2:]), self.config.patch_size, self.position_embedding
        if not interpolate and size != (self.config.image_size,) * 2:
            raise ValueError(
                f"BlipVisionModel: pictures are {size[0]} x {size[1]} pixels, the model was made for "
                f"{self.config.image_size} x {self.config.image_size}; resize them, or pass "
                "interpolate_pos_encoding=True."
            )
        new = size[0] // patch, size[1] // patch
        if new != (self.grid, self.grid):
            positions = stretched(positions, 1, (self.grid, self.grid), new)
        x = self.patch_embedding(pictures).flatten(2).transpose(1, 2)
        return votive.cat([self.class_embedding.expand(x.shape[0], 1, -1), x], 1) + positions


class BlipVisionModel(PreTrainedModel):
    """The reader of pictures; `pooler_output` is what it makes of the class token.

    >>> config = votive.models.BlipVisionConfig(image_size=16, patch_size=8, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> votive.models.BlipVisionModel(config)(votive.ones(1, 3, 16, 16)).last_hidden_state.shape
    votive.Size([1, 5, 8])
    """

    config_class: ClassVar[type[Config]] = BlipVisionConfig
    base_model_prefix = "vision_model"

    def __init__(self, config: BlipVisionConfig) -> None:
        super().__init__(config)
        self.embeddings = BlipVisionEmbeddings(config)
        layers = nn.ModuleList(BlipEncoderLayer(config) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layers": layers})
        self.post_layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes vectors of patches."""
        return self.embeddings

    def forward(
        self,
        pixel_values: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        pictures = check_pictures("BlipVisionModel", pixel_values, 3)
        x = self.embeddings(pictures.to(self.dtype), bool(interpolate_pos_encoding))
        found = run_encoder(self.encoder["layers"], x, AttentionMask(), Trace(output_attentions, output_hidden_states))
        found.last_hidden_state = self.post_layernorm(found.last_hidden_state)
        found.pooler_output = self.post_layernorm(found.last_hidden_state[:, 0])
        return found


@dataclass
class BlipTextVisionModelOutput(ModelOutput):
    """What is seen in a picture, and the loss of a text about it.

    >>> list(votive.models.BlipTextVisionModelOutput(image_embeds=votive.ones(1)).keys())
    ['image_embeds']
    """

    loss: Tensor | None = None
    image_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


@dataclass
class BlipForConditionalGenerationModelOutput(ModelOutput):
    """What is seen in a picture, and scores of the words of a text about it.

    >>> list(votive.models.BlipForConditionalGenerationModelOutput(logits=votive.ones(1)).keys())
    ['logits']
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    image_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class _Blip(CausalLM):
    """What both models share: a reader of pictures, and a writer."""

    config_class: ClassVar[type[Config]] = BlipConfig
    base_model_prefix = "blip"
    ignored = (r"position_ids$", r"^(vision_proj|text_proj|itm_head)\.")
    tied = {f"text_decoder.{name}": f"text_decoder.{source}" for name, source in BlipTextLMHeadModel.tied.items()}

    def __init__(self, config: BlipConfig) -> None:
        super().__init__(config)
        self.vision_model = BlipVisionModel(config.vision_config)
        self.text_decoder = BlipTextLMHeadModel(config.text_config)

    def get_output_embeddings(self) -> nn.Module:
        """What makes scores of words."""
        return self.text_decoder.get_output_embeddings()

    def get_decoder(self) -> nn.Module:
        """What writes."""
        return self.text_decoder

    def glass_parts(self) -> dict[str, Any]:
        """The layers that write."""
        return {"layers": self.text_decoder.bert.encoder["layer"]}

    def written(self, states: Tensor, mask: Tensor | None, ids: Tensor | None, settings: dict[str, Any]) -> Any:
        """A text about states, from the tokens `ids` on."""
        from ..generation import generate

        text = self.config.text_config
        settings = {"eos_token_id": text.sep_token_id, "pad_token_id": text.pad_token_id, **settings}
        given: dict[str, Any] = {} if ids is None else {"decoder_input_ids": ids}
        return generate(
            self.text_decoder,
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            **given,
            **settings,
        )


class BlipForConditionalGeneration(_Blip):
    """A model that says what is in a picture.

    >>> sizes = dict(hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> config = votive.models.BlipConfig(vision_config={**sizes, "image_size": 16, "patch_size": 8},
    ...     text_config={**sizes, "vocab_size": 12, "bos_token_id": 9, "sep_token_id": 8})
    >>> model = votive.models.BlipForConditionalGeneration(config).eval()
    >>> model.generate(votive.ones(1, 3, 16, 16), min_new_tokens=3, max_new_tokens=3).shape
    votive.Size([1, 4])
    """

    def __init__(self, config: BlipConfig) -> None:
        super().__init__(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.text_decoder.get_input_embeddings()

    def generate(
        self,
        pixel_values: Tensor,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        **settings: Any,
    ) -> Any:
        """Write about pictures, from a beginning on; `settings` are those of generation.generate.

        `input_ids` are a beginning as a tokenizer gives it: the first token becomes the one that texts begin with, and
        the last is left out.
        """
        with votive.no_grad():
            seen = self.vision_model(pixel_values, interpolate_pos_encoding).last_hidden_state
        if attention_mask is not None and not bool(attention_mask.bool().all()):
            raise ValueError("BlipForConditionalGeneration: beginnings of one batch must have the same length.")
        ids = None
        if input_ids is not None:
            ids = input_ids[:, :-1].clone()
            ids[:, 0] = self.config.text_config.bos_token_id
        return self.written(seen, None, ids, settings)

    def forward(
        self,
        pixel_values: Tensor | None = None,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        logits_to_keep: int = 0,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BlipForConditionalGenerationModelOutput:
        """`labels` are the text itself; each position predicts the next, and -100 is left out."""
        read = self.vision_model(pixel_values, interpolate_pos_encoding, output_attentions, output_hidden_states)
        seen = read.last_hidden_state
        found = self.text_decoder(input_ids, attention_mask, seen, labels=labels, logits_to_keep=logits_to_keep)
        return BlipForConditionalGenerationModelOutput(
            loss=found.loss,
            logits=found.logits,
            image_embeds=seen,
            last_hidden_state=seen,
            hidden_states=read.hidden_states,
            attentions=read.attentions,
        )


class BlipForQuestionAnswering(_Blip):
    """A model that answers questions about pictures.

    >>> sizes = dict(hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    >>> config = votive.models.BlipConfig(vision_config={**sizes, "image_size": 16, "patch_size": 8},
    ...     text_config={**sizes, "vocab_size": 12, "bos_token_id": 9, "sep_token_id": 8})
    >>> model = votive.models.BlipForQuestionAnswering(config).eval()
    >>> ids = votive.tensor([[1, 5, 8]])
    >>> model.generate(ids, votive.ones(1, 3, 16, 16), min_new_tokens=2, max_new_tokens=2).shape
    votive.Size([1, 3])
    """

    def __init__(self, config: BlipConfig) -> None:
        super().__init__(config)
        if config.text_config.hidden_size != config.vision_config.hidden_size:
            raise ValueError(
                f"BlipForQuestionAnswering: text_config.hidden_size={config.text_config.hidden_size} must be "
                f"vision_config.hidden_size={config.vision_config.hidden_size}: the writer looks at questions."
            )
        self.text_encoder = BlipTextModel(config.text_config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings of questions."""
        return self.text_encoder.embeddings["word_embeddings"]

    def asked(self, input_ids: Tensor, mask: Tensor | None, seen: Tensor) -> Tensor:
        """What is read of questions about pictures."""
        states: Tensor = self.text_encoder(input_ids, seen, mask)[0].last_hidden_state
        return states

    def generate(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        attention_mask: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        **settings: Any,
    ) -> Any:
        """Answer questions about pictures; `settings` are those of generation.generate."""
        with votive.no_grad():
            seen = self.vision_model(pixel_values, interpolate_pos_encoding).last_hidden_state
            states = self.asked(input_ids, attention_mask, seen)
        return self.written(states, None, None, settings)

    def forward(
        self,
        input_ids: Tensor | None = None,
        pixel_values: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> BlipTextVisionModelOutput:
        """`labels` are the answer; without them `decoder_input_ids` are needed, and `generate` writes one."""
        if input_ids is None or (labels is None and decoder_input_ids is None):
            raise ValueError(
                "BlipForQuestionAnswering: give input_ids, and labels or decoder_input_ids; generate() writes answers."
            )
        read = self.vision_model(pixel_values, interpolate_pos_encoding, output_attentions, output_hidden_states)
        seen = read.last_hidden_state
        states = self.asked(input_ids, attention_mask, seen)
        ids = labels if decoder_input_ids is None else decoder_input_ids
        # As in transformers, the writer looks at the padding of questions, too.
        found = self.text_decoder(ids, decoder_attention_mask, states, labels=labels)
        return BlipTextVisionModelOutput(
            loss=found.loss,
            image_embeds=seen,
            last_hidden_state=seen,
            hidden_states=read.hidden_states,
            attentions=read.attentions,
        )
