"""A reader of samples, alone and with heads: letters for moments, a class for a recording, classes for moments.

Knows configurations, not families. `attention_mask` (batch, samples) has 0 at padding, which stands on the right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ..losses import shown
from ..output import CausalLMOutput, ModelOutput, PredictionOutput
from ..pretrained import PreTrainedModel
from ..stack import Trace
from .config import WaveConfig
from .layers import Adapter, FeatureExtractor, FeatureProjection, NormedConv1d, WaveEncoder
from .masking import hidden_spans


@dataclass
class WaveOutput(ModelOutput):
    """States of a recording, and the features that they were made of.

    >>> list(votive.models.wave.model.WaveOutput(last_hidden_state=votive.ones(1)).keys())
    ['last_hidden_state']
    """

    last_hidden_state: Tensor | None = None
    extract_features: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class WaveBase(PreTrainedModel):
    """What all classes share."""

    config_class: ClassVar[type[Any]] = WaveConfig
    # Newer files have the two parts of a normed weight by other names.
    renames: ClassVar[dict[str, str]] = {
        r"parametrizations\.weight\.original0$": "weight_g",
        r"parametrizations\.weight\.original1$": "weight_v",
    }
    ignored: ClassVar[tuple[str, ...]] = (r"^(quantizer|project_q|project_hid)\.",)

    @property
    def bare(self) -> WaveModel:
        """The model without its head."""
        found = getattr(self, self.base_model_prefix, self)
        assert isinstance(found, WaveModel), "made so"
        return found

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        kinds = {"weight_g": "parametrizations.weight.original0", "weight_v": "parametrizations.weight.original1"}
        names = {name: name.rpartition(".") for name in weights}
        return {f"{a}.{kinds[b]}" if b in kinds else name: weights[name] for name, (a, _, b) in names.items()}

    def init_weights(self, module: nn.Module) -> None:
        super().init_weights(module)
        if isinstance(module, FeatureProjection):
            most = math.sqrt(1 / module.projection.in_features)
            for p in module.projection.parameters():
                nn.init.uniform_(p, -most, most)
        elif isinstance(module, nn.Conv1d):
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, NormedConv1d):
            kernel, width = module.weight_v.shape[2], module.weight_v.shape[0]
            nn.init.normal_(module.weight_v, std=2 * math.sqrt(1 / (kernel * width)))
            with votive.no_grad():
                module.weight_g.copy_(votive.linalg.vector_norm(module.weight_v, dim=(0, 1), keepdim=True))
        elif isinstance(module, WaveModel) and "masked_spec_embed" in module._parameters:
            nn.init.uniform_(module.masked_spec_embed)

    def freeze_feature_encoder(self) -> None:
        """Let training leave the convolutions as they are."""
        for p in self.bare.feature_extractor.parameters():
            p.requires_grad_(False)

    def real_states(self, attention_mask: Tensor, count: int, shortened: bool = False) -> Tensor:
        """Which of `count` states (batch, count) are of samples that are no padding."""
        lengths = self.config.lengths(attention_mask.long().sum(1))
        if shortened and self.config.adapts:
            for _ in range(self.config.num_adapter_layers):
                lengths = (lengths - 1) // self.config.adapter_stride + 1
        return votive.arange(count, device=lengths.device) < lengths.unsqueeze(1)


class WaveModel(WaveBase):
    """States of samples (batch, samples).

    >>> config = votive.models.Wav2Vec2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    ...     intermediate_size=16, conv_dim=[8, 8], conv_kernel=[10, 3], conv_stride=[5, 2])
    >>> votive.models.Wav2Vec2Model(config)(votive.ones(1, 100)).last_hidden_state.shape
    votive.Size([1, 9, 16])
    """

    gives_features: ClassVar[bool] = True

    def __init__(self, config: WaveConfig) -> None:
        super().__init__(config)
        self.feature_extractor = FeatureExtractor(config)
        self.feature_projection = FeatureProjection(config)
        if config.mask_time_prob > 0 or config.mask_feature_prob > 0:
            self.masked_spec_embed = nn.Parameter(votive.zeros(config.hidden_size))
        self.encoder = WaveEncoder(config)
        if config.adapts:
            out = config.output_hidden_size
            sizes = (config.num_adapter_layers, config.adapter_kernel_size, config.adapter_stride)
            self.adapter = Adapter(config.hidden_size, out, *sizes, config.layerdrop)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What makes features of samples."""
        return self.feature_extractor

    def forward(
        self,
        input_values: Tensor,
        attention_mask: Tensor | None = None,
        mask_time_indices: Tensor | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> WaveOutput:
        """`mask_time_indices` (batch, states) is True where states are hidden, as training hides some."""
        name = type(self).__name__
        if input_values.dim() != 2:
            raise ValueError(f"{name}: input_values must be (batch, samples), got shape {tuple(input_values.shape)}.")
        if self.config.lengths(input_values.shape[1]) < 1:
            raise ValueError(f"{name}: {input_values.shape[1]} samples are too few for its convolutions.")
        features = self.feature_extractor(input_values.to(self.dtype)).transpose(1, 2)
        real = None if attention_mask is None else self.real_states(attention_mask, features.shape[1])
        x, features = self.feature_projection(features)
        x = self.hidden(x, mask_time_indices, real)
        trace = Trace(output_attentions, output_hidden_states)
        x = self.encoder(x, real, trace)
        if "adapter" in self._modules:
            x = self.adapter(x)
        return WaveOutput(
            last_hidden_state=x,
            extract_features=features if self.gives_features else None,
            hidden_states=trace.hidden_states,
            attentions=trace.attentions,
        )

    def hidden(self, x: Tensor, places: Tensor | None, real: Tensor | None) -> Tensor:
        """States of which some are hidden: those at `places`, or in training some by chance."""
        config = self.config
        if not config.apply_spec_augment:
            return x
        B, T, C = x.shape
        if places is None and self.training and config.mask_time_prob > 0:
            ends = None if real is None else real.long().sum(1).tolist()
            spans = (config.mask_time_prob, config.mask_time_length, config.mask_time_min_masks)
            places = hidden_spans(B, T, *spans, ends)
        if places is not None:
            if "masked_spec_embed" not in self._parameters:
                raise ValueError(
                    f"{type(self).__name__}: mask_time_prob=0 in its configuration; nothing can be hidden."
                )
            hidden = places.to(x.device) > 0
            x = votive.where(hidden.unsqueeze(-1), self.masked_spec_embed.to(x.dtype), x)
        if self.training and config.mask_feature_prob > 0:
            spans = (config.mask_feature_prob, config.mask_feature_length, config.mask_feature_min_masks)
            x = x.masked_fill(hidden_spans(B, C, *spans).unsqueeze(1).to(x.device), 0.0)
        return x


class WaveHead(WaveBase):
    """A model and what stands on it."""

    model_class: ClassVar[type[WaveModel]] = WaveModel
    may_adapt: ClassVar[bool] = False

    def __init__(self, config: WaveConfig) -> None:
        super().__init__(config)
        if config.adapts and not self.may_adapt:
            raise ValueError(f"{type(self).__name__}: heads for classes are for encoders with add_adapter=False.")
        setattr(self, self.base_model_prefix, self.model_class(config))
        self.add()
        self.post_init()

    def add(self) -> None:
        """Make the head's own modules."""
        raise NotImplementedError

    def get_input_embeddings(self) -> nn.Module:
        """What makes features of samples."""
        return self.bare.feature_extractor

    def states(self, input_values: Tensor, attention_mask: Tensor | None, kwargs: dict[str, Any]) -> tuple[Any, Tensor]:
        """The model's answer, and the states that a head reads: the last, or a mean of all by learned weights."""
        if not self.config.use_weighted_layer_sum or "layer_weights" not in self._parameters:
            found = self.bare(input_values, attention_mask, **kwargs)
            return found, found.last_hidden_state
        asked = kwargs.pop("output_hidden_states", False)
        found = self.bare(input_values, attention_mask, output_hidden_states=True, **kwargs)
        share = F.softmax(self.layer_weights, -1)
        x = (votive.stack(found.hidden_states, 1) * share.view(-1, 1, 1)).sum(1)
        if not asked:
            found.hidden_states = None
        return found, x

    def add_weights(self) -> None:
        """Weights of all layers, where the configuration asks for their mean."""
        if self.config.use_weighted_layer_sum:
            count = self.config.num_hidden_layers + 1
            self.layer_weights = nn.Parameter(votive.full((count,), 1 / count))


class WaveForCTC(WaveHead):
    """A model that gives each moment a letter or none, of which a text is made.

    >>> config = votive.models.Wav2Vec2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    ...     intermediate_size=16, conv_dim=[8, 8], conv_kernel=[10, 3], conv_stride=[5, 2], vocab_size=30)
    >>> votive.models.Wav2Vec2ForCTC(config)(votive.ones(1, 100)).logits.shape
    votive.Size([1, 9, 30])
    """

    may_adapt = True

    def add(self) -> None:
        config = self.config
        if config.vocab_size is None:
            raise ValueError(f"{type(self).__name__}: give vocab_size, the number of letters, in the configuration.")
        self.dropout = nn.Dropout(config.final_dropout)
        width = config.output_hidden_size if config.adapts else config.hidden_size
        self.lm_head = nn.Linear(width, config.vocab_size)

    def forward(
        self, input_values: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> CausalLMOutput:
        """As the model, and `labels`: letters (batch, letters), -100 where a text has ended."""
        found = self.bare(input_values, attention_mask, **kwargs)
        logits = self.lm_head(self.dropout(found.last_hidden_state))
        loss = None if labels is None else self.loss(logits, attention_mask, labels)
        return CausalLMOutput(loss=loss, logits=logits, **shown(found))

    def loss(self, logits: Tensor, attention_mask: Tensor | None, labels: Tensor) -> Tensor:
        """How unlikely the letters are, over all ways in which moments may say them. Graves et al. 2006."""
        config, blank = self.config, self.config.pad_token_id
        if blank is None:
            raise ValueError(f"{type(self).__name__}: pad_token_id is the letter for none, which the loss needs.")
        if int(labels.max()) >= config.vocab_size:
            raise ValueError(
                f"{type(self).__name__}: labels must be below vocab_size={config.vocab_size}, got {int(labels.max())}."
            )
        count = logits.shape[1]
        if attention_mask is None:
            frames = votive.full((labels.shape[0],), count, dtype=votive.int64)
        else:
            frames = self.real_states(attention_mask, count, shortened=True).long().sum(1)
        letters = (labels != -100) & (labels != blank)
        scores = F.log_softmax(logits.float(), -1).transpose(0, 1)
        return F.ctc_loss(
            scores,
            labels[letters],
            frames,
            letters.long().sum(1),
            blank=blank,
            reduction=config.ctc_loss_reduction,
            zero_infinity=config.ctc_zero_infinity,
        )


class WaveForSequenceClassification(WaveHead):
    """A model that gives a recording a class.

    >>> config = votive.models.Wav2Vec2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    ...     intermediate_size=16, conv_dim=[8, 8], conv_kernel=[10, 3], conv_stride=[5, 2], num_labels=3)
    >>> votive.models.Wav2Vec2ForSequenceClassification(config)(votive.ones(1, 100)).logits.shape
    votive.Size([1, 3])
    """

    def add(self) -> None:
        config = self.config
        self.add_weights()
        self.projector = nn.Linear(config.hidden_size, config.classifier_proj_size)
        self.classifier = nn.Linear(config.classifier_proj_size, config.label_count)

    def forward(
        self, input_values: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the model, and `labels`: classes (batch,)."""
        found, x = self.states(input_values, attention_mask, kwargs)
        x = self.projector(x)
        if attention_mask is None:
            x = x.mean(1)
        else:
            real = self.real_states(attention_mask, x.shape[1]).unsqueeze(-1).to(x.dtype)
            x = (x * real).sum(1) / real.sum(1)
        logits = self.classifier(x)
        loss = None if labels is None else F.cross_entropy(logits.float(), labels.flatten())
        return PredictionOutput(loss=loss, logits=logits, **shown(found))


class WaveForAudioFrameClassification(WaveHead):
    """A model that gives each moment of a recording a class.

    >>> config = votive.models.Wav2Vec2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    ...     intermediate_size=16, conv_dim=[8, 8], conv_kernel=[10, 3], conv_stride=[5, 2], num_labels=3)
    >>> votive.models.Wav2Vec2ForAudioFrameClassification(config)(votive.ones(1, 100)).logits.shape
    votive.Size([1, 9, 3])
    """

    def add(self) -> None:
        self.add_weights()
        self.classifier = nn.Linear(self.config.hidden_size, self.config.label_count)

    def forward(
        self, input_values: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **kwargs: Any
    ) -> PredictionOutput:
        """As the model, and `labels`: (batch, moments, classes), of which the largest counts."""
        found, x = self.states(input_values, attention_mask, kwargs)
        logits = self.classifier(x)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1).argmax(-1))
        return PredictionOutput(loss=loss, logits=logits, **shown(found))
