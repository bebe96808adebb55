"""Which processors a configuration asks for, in transformers' order. Knows no model."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import processors as p
from . import warpers as w
from .config import GenerationConfig


def processors_for(
    config: GenerationConfig, *, prompt_length: int, max_length: int, prompt_mask: Tensor | None = None, own: Any = None
) -> w.LogitsProcessorList:
    """All that changes scores: penalties and bans, then the caller's own, then sampling's."""
    found = w.LogitsProcessorList()
    eos = config.eos_ids()
    add = found.append
    if config.sequence_bias is not None:
        add(p.SequenceBiasLogitsProcessor(config.sequence_bias))
    if config.repetition_penalty not in (None, 1.0):
        add(p.RepetitionPenaltyLogitsProcessor(config.repetition_penalty, prompt_mask=prompt_mask))
    if config.presence_penalty:
        add(p.PresencePenaltyLogitsProcessor(config.presence_penalty, prompt_length))
    if config.frequency_penalty:
        add(p.FrequencyPenaltyLogitsProcessor(config.frequency_penalty, prompt_length))
    if config.no_repeat_ngram_size:
        add(p.NoRepeatNGramLogitsProcessor(config.no_repeat_ngram_size, prompt_mask))
    if config.bad_words_ids is not None:
        add(p.NoBadWordsLogitsProcessor(config.bad_words_ids, eos))
    if eos and config.min_length and config.min_new_tokens is None:
        add(p.MinLengthLogitsProcessor(config.min_length, eos))
    if eos and config.min_new_tokens:
        add(p.MinNewTokensLengthLogitsProcessor(prompt_length, config.min_new_tokens, eos))
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
    if config.do_sample:
        found.extend(_warpers(config))
    if config.renormalize_logits:
        add(p.LogitNormalization())
    return found


def _warpers(config: GenerationConfig) -> list[Any]:
    found: list[Any] = []
    # Beams need one way on besides all that end the text.
    keep = max(len(config.eos_ids()) + 1, 2) if config.beams > 1 else 1
    if config.temperature not in (None, 1.0):
        found.append(w.TemperatureLogitsWarper(config.temperature))
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
