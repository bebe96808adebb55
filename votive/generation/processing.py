"""Which processors a configuration asks for, in transformers' order. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..tensor import Tensor
from . import grammar
from . import processors as p
from . import source_processors as s
from . import warpers as w
from .allowed import Allowed, PrefixConstrainedLogitsProcessor
from .config import GenerationConfig
from .diversity import HammingDiversityLogitsProcessor
from .guidance import UnbatchedClassifierFreeGuidanceLogitsProcessor
from .stepping import Model
from .watermark import WatermarkingConfig, WatermarkLogitsProcessor

if TYPE_CHECKING:
    from ..text import Tokenizer


@dataclass(frozen=True)
class Read:
    """What was read before the text begins: ids, a row for each text, and their mask."""

    ids: Tensor
    mask: Tensor | None


def processors_for(
    config: GenerationConfig,
    *,
    prompt_length: int,
    max_length: int,
    prompt_mask: Tensor | None = None,
    own: Any = None,
    model: Model | None = None,
    tokenizer: Tokenizer | None = None,
    allowed: Allowed | None = None,
    read: Read | None = None,
    negative: tuple[Tensor | None, Tensor | None] = (None, None),
) -> w.LogitsProcessorList:
    """All that changes scores: penalties and bans, then the caller's own, then sampling's."""
    found = w.LogitsProcessorList()
    eos = config.eos_ids()
    add = found.append
    guide = _guidance(config, model, negative, max_length, prompt_length)
    if guide is not None:
        add(guide)
    if config.sequence_bias is not None:
        add(p.SequenceBiasLogitsProcessor(config.sequence_bias))
    if config.groups > 1:
        add(HammingDiversityLogitsProcessor(config.diversity_penalty or 0.0, config.beams, config.groups))
    found.extend(_of_source(config, read, penalty=True))
    if config.repetition_penalty not in (None, 1.0):
        add(p.RepetitionPenaltyLogitsProcessor(config.repetition_penalty, prompt_mask=prompt_mask))
    if config.presence_penalty:
        add(p.PresencePenaltyLogitsProcessor(config.presence_penalty, prompt_length))
    if config.frequency_penalty:
        add(p.FrequencyPenaltyLogitsProcessor(config.frequency_penalty, prompt_length))
    if config.no_repeat_ngram_size:
        add(p.NoRepeatNGramLogitsProcessor(config.no_repeat_ngram_size, prompt_mask))
    found.extend(_of_source(config, read, penalty=False))
    if config.bad_words_ids is not None:
        add(p.NoBadWordsLogitsProcessor(config.bad_words_ids, eos))
    if eos and config.min_length and config.min_new_tokens is None:
        add(p.MinLengthLogitsProcessor(config.min_length, eos))
    if eos and config.min_new_tokens:
        add(p.MinNewTokensLengthLogitsProcessor(prompt_length, config.min_new_tokens, eos))
    if allowed is not None:
        add(PrefixConstrainedLogitsProcessor(allowed, config.beams if config.beams > 1 else _copies(config)))
    if config.forced_bos_token_id is not None:
        add(p.ForcedBOSTokenLogitsProcessor(config.forced_bos_token_id))
    if config.forced_eos_token_id is not None:
        add(p.ForcedEOSTokenLogitsProcessor(max_length, config.forced_eos_token_id))
    if config.remove_invalid_values:
        add(p.InfNanRemoveLogitsProcessor())
    if config.exponential_decay_length_penalty is not None:
        decay = config.exponential_decay_length_penalty
        add(p.ExponentialDecayLengthPenalty(decay, eos, prompt_length))
    if config.suppress_tokens is not None:
        add(p.SuppressTokensLogitsProcessor(config.suppress_tokens))
    if config.begin_suppress_tokens is not None:
        # A forced first token comes before the one that is meant.
        shifted = prompt_length == 1 and config.forced_bos_token_id is not None
        begin = prompt_length + int(shifted)
        add(p.SuppressTokensAtBeginLogitsProcessor(config.begin_suppress_tokens, begin))
    found.extend(own or [])
    found.extend(_of_form(config, tokenizer, model, prompt_length))
    if config.do_sample:
        found.extend(_warpers(config))
    if config.watermarking_config is not None:
        mark = WatermarkingConfig.of(config.watermarking_config)
        size = getattr(getattr(model, "config", None), "vocab_size", None)
        if size is None:
            raise ValueError("generate: a watermark needs a model whose configuration has a vocab_size.")
        add(WatermarkLogitsProcessor(size, **mark.to_dict()))
    if config.renormalize_logits:
        add(p.LogitNormalization())
    return found


def _copies(config: GenerationConfig) -> int:
    return config.num_return_sequences or 1


def _guidance(
    config: GenerationConfig,
    model: Model | None,
    negative: tuple[Tensor | None, Tensor | None],
    max_length: int,
    prompt_length: int,
) -> Any:
    """The processor that runs the model on another prompt, or None."""
    ids, mask = negative
    if config.guidance_scale is None or config.guidance_scale == 1 or model is None:
        if ids is not None or mask is not None:
            raise ValueError("generate: negative_prompt_ids are for guidance; set guidance_scale too.")
        return None
    if config.beams > 1 or getattr(model.config, "is_encoder_decoder", False):
        raise ValueError("generate: guidance_scale is for decoders without beams; leave out one of them.")
    if ids is None and not prompt_length:
        raise ValueError(
            "generate: guidance_scale moves away from the last token of a prompt, which inputs_embeds have not; give "
            "negative_prompt_ids."
        )
    return UnbatchedClassifierFreeGuidanceLogitsProcessor(
        config.guidance_scale, model, ids, mask, bool(config.use_cache), max_length=max_length
    )


def _of_source(config: GenerationConfig, read: Read | None, *, penalty: bool) -> list[Any]:
    """What depends on the text that was read: a penalty, or a ban of its sequences."""
    factor, size = config.encoder_repetition_penalty, config.encoder_no_repeat_ngram_size
    name = "encoder_repetition_penalty" if penalty else "encoder_no_repeat_ngram_size"
    if factor in (None, 1.0) if penalty else not size:
        return []
    if read is None or not read.ids.shape[1]:
        raise ValueError(f"generate: {name} needs the ids that were read; give input_ids.")
    if penalty:
        assert factor is not None
        return [s.EncoderRepetitionPenaltyLogitsProcessor(factor, read.ids, read.mask)]
    assert size is not None
    return [s.EncoderNoRepeatNGramLogitsProcessor(size, read.ids, read.mask)]


def _of_form(
    config: GenerationConfig, tokenizer: Tokenizer | None, model: Model | None, prompt_length: int
) -> list[Any]:
    """The processor of texts that must have a form."""
    form = grammar.asked(config)
    if not form:
        return []
    if tokenizer is None:
        raise ValueError(f"generate: {next(iter(form))} needs the tokenizer; pass tokenizer=.")
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    ends = grammar.ends_of(config, tokenizer)
    return [
        grammar.GrammarLogitsProcessor(
            tokenizer, eos_token_id=ends, prompt_length=prompt_length, vocab_size=size, **form
        )
    ]


def _warpers(config: GenerationConfig) -> list[Any]:
    found: list[Any] = []
    # Beams need one way on besides all that end the text.
    keep = max(len(config.eos_ids()) + 1, 2) if config.beams > 1 else 1
    if config.temperature not in (None, 1.0):
        found.append(w.TemperatureLogitsWarper(config.temperature))
    if config.top_h is not None:
        found.append(w.TopHLogitsWarper(config.top_h))
    if config.top_k:
        found.append(w.TopKLogitsWarper(config.top_k, min_tokens_to_keep=keep))
    if config.top_p is not None and config.top_p < 1.0:
        found.append(w.TopPLogitsWarper(config.top_p, min_tokens_to_keep=keep))
    if config.min_p is not None:
        found.append(w.MinPLogitsWarper(config.min_p, min_tokens_to_keep=keep))
    if config.typical_p is not None and config.typical_p < 1.0:
        found.append(w.TypicalLogitsWarper(config.typical_p, min_tokens_to_keep=keep))
    if config.epsilon_cutoff:
        found.append(w.EpsilonLogitsWarper(config.epsilon_cutoff, min_tokens_to_keep=keep))
    if config.eta_cutoff:
        found.append(w.EtaLogitsWarper(config.eta_cutoff, min_tokens_to_keep=keep))
    return found
