"""What decoders that read pictures share: pictures in the place of tokens, `generate`. Knows no family.

A prompt is merged once: embeddings of its tokens, with what a tower made of the pictures where tokens stand for them,
and what the decoder has to know of their places. `generate` then runs the decoder as for texts.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import votive
from votive import nn
from votive.core import dtype as dt

from ..io.source import WeightSource
from ..tensor import Tensor
from .attention import AttentionMask, _causal
from .auto import AutoModelForCausalLM
from .config import Config
from .decoder import Decoder, DecoderForCausalLM
from .output import CausalLMOutput
from .pretrained import CausalLM, PreTrainedModel


@dataclass
class PictureTextOutput(CausalLMOutput):
    """Of a decoder that reads pictures: as CausalLMOutput, and what the tower made of the pictures.

    >>> votive.models.PictureTextOutput(logits=votive.ones(1, 2, 3))[0].shape
    votive.Size([1, 2, 3])
    """

    image_hidden_states: Any = None


@dataclass(frozen=True)
class Merged:
    """A prompt as the decoder reads it."""

    embeds: Tensor  # (batch, positions, width)
    features: Any = None  # what stands in the place of tokens
    groups: Tensor | None = None  # (batch, positions): positions of one group see each other, -1 for none
    places: Tensor | None = None  # (axes, batch, positions), where positions have several numbers
    shift: Tensor | None = None  # (batch, 1): what later positions are moved by


class Together(Decoder):
    """A decoder among whose positions those of a picture see each other.

    >>> from votive.models.multimodal import Together
    >>> issubclass(Together, votive.models.decoder.Decoder)
    True
    """

    groups: Tensor | None = None

    def biased(self, mask: AttentionMask, queries: int, keys: int, *more: Any) -> AttentionMask:
        mask = super().biased(mask, queries, keys, *more)
        if self.groups is None:
            return mask
        assert queries == keys, "pictures come with the beginning of a text"
        own = self.groups  # (B, T)
        same = (own[:, :, None] == own[:, None]) & (own >= 0)[:, None]
        if mask.padding is not None:
            same = same & mask.padding[:, None]
        same = same[:, None]  # (B, 1, T, T)
        seen = _causal(same) if mask.is_causal else mask.attn_mask
        if seen is None:
            return mask
        if seen.dtype != dt.bool_:
            return mask._replace(attn_mask=votive.where(same, seen.clamp(min=0.0), seen))
        return mask._replace(attn_mask=seen | same, is_causal=False)


def put_in(embeds: Tensor, where: Tensor, features: Tensor, name: str) -> Tensor:
    """Embeddings (batch, positions, width) with features (count, width) at the places that are True, in their order.

    >>> from votive.models.multimodal import put_in
    >>> put_in(votive.zeros(1, 3, 1), votive.tensor([[False, True, True]]), votive.ones(2, 1), "M")[0, :, 0]
    tensor([0., 1., 1.])
    """
    features = features.flatten(0, -2).to(embeds.dtype)
    wanted = int(where.sum())
    if wanted != features.shape[0]:
        raise ValueError(
            f"{name}: the texts have {wanted} tokens that stand for pictures, and the pictures give "
            f"{features.shape[0]} vectors; prepare texts and pictures together, with the model's processor."
        )
    return embeds.masked_scatter(where.unsqueeze(-1).expand(embeds.shape), features)


class PictureTextLM(CausalLM):
    """A decoder that reads pictures between its tokens.

    >>> issubclass(votive.models.LlavaForConditionalGeneration, votive.models.multimodal.PictureTextLM)
    True
    """

    # What forward is given besides what every decoder is: it goes to `merged`.
    seen: ClassVar[tuple[str, ...]] = ("pixel_values",)

    @property
    def decoder(self) -> DecoderForCausalLM:
        """The decoder of texts with its head."""
        raise NotImplementedError

    def merged(
        self, input_ids: Tensor | None, inputs_embeds: Tensor | None, mask: Tensor | None, **given: Any
    ) -> Merged:
        """Embeddings with pictures in their places; `given` is what `seen` names."""
        raise NotImplementedError

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        return self.decoder.get_input_embeddings()

    def text_embeds(self, input_ids: Tensor | None, inputs_embeds: Tensor | None, missing: int | None) -> Tensor:
        """Embeddings of tokens; `missing` is one that the table may be too short for."""
        lm = self.decoder
        base: Any = getattr(lm, lm.base_model_prefix)
        if input_ids is not None and missing is not None and missing >= lm.design.vocabulary:
            input_ids = input_ids.masked_fill(input_ids == missing, 0)
        return base.embedded(input_ids, inputs_embeds)

    def stand_for(self, input_ids: Tensor | None, inputs_embeds: Tensor | None, token: int) -> Tensor:
        """Where a token stands, (batch, positions): by its id, or by its embedding."""
        if input_ids is not None:
            return input_ids == token
        assert inputs_embeds is not None, "one of both is there"
        own = self.text_embeds(votive.tensor([[token]], device=inputs_embeds.device), None, None)
        return (inputs_embeds == own).all(-1)

    def run(
        self, merged: Merged, mask: Tensor | None, position_ids: Tensor | None, cache: Any, **options: Any
    ) -> CausalLMOutput:
        """The decoder over a merged prompt."""
        lm = self.decoder
        base: Any = getattr(lm, lm.base_model_prefix)
        if merged.groups is not None and cache is not None and cache.get_seq_length():
            raise ValueError(f"{type(self).__name__}: pictures whose tokens see each other must come at once.")
        if position_ids is None:
            position_ids = merged.places
        before = getattr(base, "groups", None)
        if merged.groups is not None:
            base.groups = merged.groups
        try:
            return self.read(None, mask, position_ids, cache, inputs_embeds=merged.embeds, **options)
        finally:
            if merged.groups is not None:
                base.groups = before

    def read(self, *args: Any, **options: Any) -> CausalLMOutput:
        """The decoder as it is called with embeddings."""
        return self.decoder(*args, **options)

    def answered(
        self,
        given: dict[str, Any],
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        position_ids: Tensor | None,
        past_key_values: nn.KVCache | None,
        inputs_embeds: Tensor | None,
        **options: Any,
    ) -> PictureTextOutput:
        """What `forward` returns; `given` goes to `merged`, `options` to the decoder."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError(f"{type(self).__name__}: give either input_ids or inputs_embeds, not both.")
        merged = self.merged(input_ids, inputs_embeds, attention_mask, **given)
        shift = getattr(past_key_values, "shift", None)
        if merged.places is None and position_ids is None and shift is not None:
            # The cache knows by how much the pictures before moved what follows.
            assert past_key_values is not None, "it was asked"
            past, count = past_key_values.get_seq_length(), merged.embeds.shape[1]
            if attention_mask is None:
                position_ids = votive.arange(past, past + count, device=merged.embeds.device) + shift
            else:
                position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, -count:] + shift
        found = self.run(merged, attention_mask, position_ids, past_key_values, **options)
        if merged.shift is not None and found.past_key_values is not None:
            found.past_key_values.__dict__["shift"] = merged.shift
        return PictureTextOutput(**dict(found.items()), image_hidden_states=merged.features)

    def generate(self, input_ids: Any = None, **kwargs: Any) -> Any:
        """Continue texts with pictures, which come as in `forward`; else as votive.generation.generate."""
        from ..generation import PrefixCache, generate

        given = {name: kwargs.pop(name) for name in self.seen if kwargs.get(name) is not None}
        for name in self.seen:
            kwargs.pop(name, None)
        if not given:
            return generate(Reading(self, None, {}), input_ids, **kwargs)
        if input_ids is None:
            raise ValueError(f"{type(self).__name__}: generate with pictures needs input_ids, where they stand.")
        if isinstance(kwargs.get("past_key_values"), PrefixCache):
            raise ValueError(f"{type(self).__name__}: a PrefixCache knows texts by their ids, and not their pictures.")
        mask = kwargs.get("attention_mask")
        ids = _tensor(input_ids).to(self.device)
        merged_mask = None if mask is None else _tensor(mask).to(self.device)
        with votive.no_grad():
            merged = self.merged(ids, None, merged_mask, **given)
        return generate(Reading(self, ids, {"merged": merged}), ids, **kwargs)

    def fused_decoder(self) -> Any:
        return None


def _tensor(given: Any) -> Tensor:
    return given if isinstance(given, votive.Tensor) else votive.tensor(given)


class Reading:
    """A model and the merged prompt of a call, as `generate` runs it: ids go in, pictures are where they belong."""

    def __init__(self, model: PictureTextLM, ids: Tensor | None, given: dict[str, Any]) -> None:
        self.model, self.ids = model, ids
        self.prompt: Merged | None = given.get("merged")
        self.generation_config, self.device = model.generation_config, model.device
        self.config = text_settings(model.config)
        self.missing: int | None = getattr(model.config, "image_token_id", None)

    def modules(self) -> Any:
        """Those of the decoder."""
        return self.model.decoder.modules()

    def __call__(
        self,
        input_ids: Tensor,
        *,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        **options: Any,
    ) -> CausalLMOutput:
        start = 0 if past_key_values is None else int(past_key_values.get_seq_length())
        merged = Merged(self.model.text_embeds(input_ids, None, self.missing))
        if self.prompt is not None:
            merged = self._with_prompt(merged.embeds, input_ids, start)
        if merged.places is not None:
            position_ids = None
        elif self.prompt is not None and self.prompt.shift is not None:
            position_ids = self._shifted(position_ids, start, input_ids)
        return self.model.run(merged, attention_mask, position_ids, past_key_values, **options)

    def _with_prompt(self, embeds: Tensor, ids: Tensor, start: int) -> Merged:
        """Embeddings of positions from `start` on, those of the prompt as they were merged."""
        assert self.ids is not None, "there is a prompt"
        assert self.prompt is not None, "there is a prompt"
        length, copies = self.ids.shape[1], ids.shape[0] // self.ids.shape[0]
        if start >= length:
            return Merged(embeds)

        def part(x: Tensor, dim: int) -> Tensor:
            x = x.repeat_interleave(copies, dim) if copies > 1 else x
            return x.narrow(dim + 1, start, min(start + ids.shape[1], length) - start)

        own = part(self.ids, 0)
        if not bool((own == ids[:, : own.shape[1]]).all()):
            raise ValueError(f"{type(self.model).__name__}: the prompt was changed after its pictures were put in.")
        prompt, rest = self.prompt, ids.shape[1] - own.shape[1]
        x = votive.cat([part(prompt.embeds, 0), embeds[:, own.shape[1] :]], 1)
        groups = places = None
        if prompt.groups is not None:
            groups = part(prompt.groups, 0)
            if start or own.shape[1] < length:
                raise ValueError(
                    f"{type(self.model).__name__}: tokens of a picture see each other; leave out prefill_chunk_size."
                )
            groups = nn.functional.pad(groups, (0, rest), value=-1)
        if prompt.places is not None:
            places = part(prompt.places, 1)
            if rest:
                later = votive.arange(length, length + rest, device=ids.device) + self._shift(copies)
                places = votive.cat([places, later.expand(places.shape[0], -1, -1)], 2)
        return Merged(x, groups=groups, places=places)

    def _shift(self, copies: int) -> Tensor:
        shift = None if self.prompt is None else self.prompt.shift
        assert shift is not None, "asked where there is one"
        return shift.repeat_interleave(copies, 0) if copies > 1 else shift

    def _shifted(self, position_ids: Tensor | None, start: int, ids: Tensor) -> Tensor:
        """Positions behind the prompt, (batch, positions)."""
        assert self.ids is not None, "there is a prompt"
        if position_ids is None:
            position_ids = votive.arange(start, start + ids.shape[1], device=ids.device).unsqueeze(0)
        return position_ids + self._shift(ids.shape[0] // self.ids.shape[0])


def text_settings(config: Any) -> Config:
    """What `generate` asks for: the decoder's configuration, with the tokens that the whole one names."""
    found = copy.copy(config.text_config)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        own = getattr(config, name, None)
        if own is not None:
            setattr(found, name, own)
    return found


class TowerLM(PictureTextLM):
    """A tower that reads pictures, a projector and a decoder, which files call `language_model`.

    >>> issubclass(votive.models.LlavaForConditionalGeneration, votive.models.multimodal.TowerLM)
    True
    """

    tied = {"language_model.lm_head.weight": "language_model.model.embed_tokens.weight"}
    ignored = (*PreTrainedModel.ignored, r"\.vision_model\.embeddings\.position_ids$")

    def add_parts(self, tower: nn.Module, projector: nn.Module, decoder: type[PreTrainedModel] | None = None) -> None:
        """The three parts, the decoder from its configuration."""
        config = copy.copy(self.config.text_config)
        config.tie_word_embeddings = self.config.tie_word_embeddings
        kind = AutoModelForCausalLM._class_for(config.model_type) if decoder is None else decoder
        self.vision_tower, self.multi_modal_projector = tower, projector
        self.language_model = kind(config)
        inner = self.language_model.base_model_prefix
        # From the names that transformers 5 has in memory, and those of files with one module more, to those in files.
        self.__dict__["renames"] = {
            r"^model\.language_model\.": f"language_model.{inner}.",
            r"^lm_head\.": "language_model.lm_head.",
            r"^model\.(?=(vision_tower|multi_modal_projector|image_newline))": "",
            r"^vision_tower\.vision_model\.": "vision_tower.",
            **{
                rf"^language_model\.{a.removeprefix('^')}": f"language_model.{b}"
                for a, b in kind.renames.items()
                if a[0] == "^"
            },
        }

    def adapted(self, source: WeightSource) -> WeightSource:
        return self.language_model.adapted(source)

    @property
    def decoder(self) -> DecoderForCausalLM:
        return cast("DecoderForCausalLM", self.language_model)

    base_model_prefix = "multimodal"  # no file has such a name
