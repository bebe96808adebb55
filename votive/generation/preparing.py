"""From the arguments of `generate` to a task: ids, mask, settings and helpers that fit together.

All that can be wrong with a call is found here, before a model runs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from ..tensor import Tensor
from .allowed import Allowed
from .caching import cache_of, kind_of
from .compiled import CompiledStepper, check
from .config import SAMPLING, UNSUPPORTED, GenerationConfig, checked
from .dola import Contrast, contrast_of
from .drawing import Stream, seed_from, streams
from .grammar import ends_of
from .graphs import GraphStepper, graphable
from .healing import healed
from .prefix import PrefixCache
from .processing import Read, processors_for
from .prompts import Ids, longest, prompt_of, unpadded
from .sources import Source
from .stepping import DecoderStepper, Model, Wanted
from .stopping import Criterion, Ending, Reader, listed
from .warpers import Processor

if TYPE_CHECKING:
    from ..text import Tokenizer


@dataclass
class Task:
    """Everything a search needs."""

    config: GenerationConfig
    stepper: Any
    ids: Any  # (rows, prompt), left padded
    mask: Any  # the same, or None where nothing is padding
    max_length: int
    processors: Any
    ending: Ending
    pad: int | None
    seed: int | None
    prompts: list[list[int]]  # without padding, one for each row
    own: list[Any]  # the caller's processors
    prefix: PrefixCache | None = None
    encoder: Any = None  # what the encoder gave
    limit: int | None = None  # how many positions the model was made for
    contrast: Contrast | None = None  # what is searched instead of the logits

    def streams(self) -> list[Stream]:
        """Random numbers, a stream for each row."""
        assert self.seed is not None, "only sampling draws"
        return streams(self.seed, self.prompts)


def settings_of(model: Model, given: GenerationConfig | None, settings: dict[str, Any]) -> GenerationConfig:
    """The settings of a call over those given as one, over the model's, over the defaults."""
    own = GenerationConfig(**checked(settings))
    if given is not None and not isinstance(given, GenerationConfig):
        raise TypeError(
            "generate: generation_config must be a votive.generation.GenerationConfig, got "
            f"{type(given).__name__}; a dict goes through GenerationConfig.from_dict."
        )
    asked = own if given is None else own.over(given)
    stored = getattr(model, "generation_config", None) or {}
    if not isinstance(stored, GenerationConfig):
        stored = GenerationConfig.from_dict(stored)
    found = asked.over(stored)
    config = getattr(model, "config", None)
    _check_tokens(asked, getattr(config, "vocab_size", None))
    names = ("eos_token_id", "pad_token_id", "bos_token_id", "decoder_start_token_id")
    inherited: dict[str, Any] = {n: getattr(config, n, None) for n in names}
    found = found.over(GenerationConfig(**inherited)).resolved()
    for name, (off, instead) in UNSUPPORTED.items():
        if found.extra.get(name) not in off:
            raise ValueError(
                f"generate: {name}={found.extra[name]!r} of the generation configuration is not supported; {instead}. "
                f"To go on without it: del model.generation_config.extra[{name!r}]"
            )
    idle = [n for n in SAMPLING if settings.get(n) not in (None, off_value(n))]
    if found.penalty_alpha and "top_k" in idle:
        idle.remove("top_k")  # of contrastive search, the candidates
    if idle and not found.do_sample:
        warnings.warn(f"generate: {', '.join(idle)} has no effect without do_sample=True.", stacklevel=4)
    return found


def _check_tokens(asked: GenerationConfig, size: int | None) -> None:
    """Raise for tokens that were asked for and that the vocabulary does not have."""
    for name in (
        "suppress_tokens",
        "begin_suppress_tokens",
        "eos_token_id",
        "forced_bos_token_id",
        "forced_eos_token_id",
    ):
        value = getattr(asked, name)
        ids = value if isinstance(value, list | tuple) else [value]
        outside = sorted({t for t in ids if isinstance(t, int) and isinstance(size, int) and t >= size})
        if outside:
            raise ValueError(
                f"generate: {name} has {outside}, but the vocabulary has {size} tokens, which are "
                f"numbered from 0 to {(size or 0) - 1}."
            )


def off_value(name: str) -> Any:
    """The value with which a sampling setting does nothing."""
    return {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "typical_p": 1.0}.get(name, 0)


def prepare(
    model: Model,
    input_ids: Ids | None = None,
    *,
    attention_mask: Ids | None = None,
    config: GenerationConfig,
    logits_processor: Processor | list[Processor] | None = None,
    stopping_criteria: Criterion | list[Criterion] | None = None,
    tokenizer: Tokenizer | None = None,
    past_key_values: nn.KVCache | PrefixCache | None = None,
    generator: votive.Generator | None = None,
    wanted: Wanted | None = None,
    read: bool = False,
    decoder_input_ids: Tensor | None = None,
    encoder_outputs: Any = None,
    prefix_allowed_tokens_fn: Allowed | None = None,
    negative_prompt_ids: Tensor | None = None,
    negative_prompt_attention_mask: Tensor | None = None,
    inputs_embeds: Tensor | None = None,
    inputs: dict[str, Any] | None = None,
) -> Task:
    """The task that arguments describe; `read` asks for the rows' text, `inputs` go to the model with the prompt."""
    device = getattr(model, "device", None)
    seq2seq = bool(getattr(model.config, "is_encoder_decoder", False))
    copies = config.beams if config.beams > 1 else config.num_return_sequences or 1
    _check_together(config, seq2seq)
    if not config.eos_ids():
        config = config.updated(eos_token_id=ends_of(config, tokenizer) or None)  # a text of a form has an end
    if seq2seq:
        if inputs_embeds is not None:
            raise ValueError(
                "generate: inputs_embeds are a decoder's; for an encoder's run it and give encoder_outputs."
            )
        source = Source(model, input_ids, attention_mask, encoder_outputs, config, wanted)
        ids, mask = source.start(decoder_input_ids, device), None
    else:
        if decoder_input_ids is not None or encoder_outputs is not None:
            raise ValueError("generate: decoder_input_ids and encoder_outputs need an encoder.")
        if config.token_healing:
            input_ids, attention_mask = healed(model, input_ids, attention_mask, tokenizer, inputs_embeds)
        ids, mask = _begin(input_ids, attention_mask, inputs_embeds, config, device)
    # How many positions the model sees before those of the ids.
    ahead = 0 if inputs_embeds is None else int(inputs_embeds.shape[1]) - int(ids.shape[1])
    # A mask of embeddings may be longer than the ids.
    prompts = [unpadded(row, None if ahead else mask, r) for r, row in enumerate(ids.tolist())]
    rows = prompts
    if copies > 1:
        ids = ids.repeat_interleave(copies, 0)
        mask = None if mask is None else mask.repeat_interleave(copies, 0)
        rows = [p for p in prompts for _ in range(copies)]
        if inputs_embeds is not None:
            inputs_embeds = inputs_embeds.repeat_interleave(copies, 0)
        inputs = {name: _repeated(name, value, copies, len(prompts)) for name, value in (inputs or {}).items()}
    limit = getattr(model.config, "max_position_embeddings", None)
    length = longest(config, ids.shape[1], limit, ahead)
    if limit is not None and ids.shape[1] + ahead > limit:
        warnings.warn(
            f"generate: the prompt has {ids.shape[1] + ahead} tokens and the model was made for {limit} "
            "positions; what follows may make no sense.",
            stacklevel=3,
        )
    pad = _padding(config, ids.shape[0], stopping_criteria)
    prefix = None
    if isinstance(past_key_values, PrefixCache):
        if inputs_embeds is not None:
            raise ValueError("generate: a PrefixCache knows texts by their ids; leave it out with inputs_embeds.")
        prefix, past_key_values = past_key_values, _begun(past_key_values, rows, mask)
    contrast = contrast_of(model, config, seq2seq)
    if contrast is not None or config.penalty_alpha:
        wanted = Wanted(wanted is not None and wanted.attentions, True)
    kind = kind_of(model, config, device, ids.shape[0], length, length - ids.shape[1], seq2seq, wanted)
    room = max(length + ahead, config.max_cache_len or 0)
    cache = cache_of(model, past_key_values, config, kind, room, ids.shape[1] + ahead)
    if seq2seq and config.compile:
        raise ValueError("generate: compile=True compiles the steps of decoders; leave it out for an encoder with one.")
    if seq2seq:
        if inputs:
            raise ValueError(f"generate: {', '.join(inputs)} go to the encoder; run it and give encoder_outputs.")
        stepper: Any = source.stepper(copies, cache, wanted)
    else:
        recorded = not config.disable_compile and graphable(model, cache, wanted)
        made_by: Any = GraphStepper if recorded else DecoderStepper
        if config.compile:
            check(model, cache, wanted)
            made_by = CompiledStepper
        stepper = made_by(
            model,
            cache=cache,
            mask=mask,
            max_length=length + ahead,
            chunk=config.prefill_chunk_size,
            wanted=wanted,
            embeds=inputs_embeds,
            prompt=ids.shape[1],
            inputs=inputs,
        )
    readers = _readers(tokenizer, config, len(rows), read)
    own = listed(logits_processor, "logits_processor")
    return Task(
        own=own,
        config=config,
        stepper=stepper,
        ids=ids,
        mask=mask,
        max_length=length,
        pad=pad,
        processors=processors_for(
            config,
            prompt_length=ids.shape[1],
            max_length=length,
            prompt_mask=mask if ahead == 0 else None,
            own=own,
            model=model,
            tokenizer=tokenizer,
            allowed=prefix_allowed_tokens_fn,
            read=source.read(copies) if seq2seq else Read(ids, mask if ahead == 0 else None),
            negative=(negative_prompt_ids, negative_prompt_attention_mask),
        ),
        ending=Ending(
            eos=config.eos_ids(), max_length=length, max_time=config.max_time, own=stopping_criteria, readers=readers
        ),
        seed=seed_from(config.seed, generator) if config.do_sample else None,
        # Beams of a prompt draw together.
        prompts=prompts if config.beams > 1 else rows,
        prefix=prefix,
        limit=limit,
        encoder=source.encoded if seq2seq else None,
        contrast=contrast,
    )


def _check_together(config: GenerationConfig, seq2seq: bool) -> None:
    """Raise for searches that do not go together."""
    if config.penalty_alpha:
        if seq2seq or config.do_sample or config.beams > 1 or config.dola_layers is not None:
            raise ValueError(
                "generate: penalty_alpha is contrastive search, greedy and by a decoder; leave out do_sample, "
                "num_beams and dola_layers."
            )
        if (config.top_k or 0) < 2 or not config.use_cache:
            raise ValueError("generate: penalty_alpha needs top_k of at least 2, and a cache.")
    elif config.low_memory:
        raise ValueError("generate: low_memory is for contrastive search; set penalty_alpha too.")
    if config.groups > 1 and (config.do_sample or config.beams < 2):
        raise ValueError("generate: num_beam_groups are groups of num_beams, and not drawn; leave out do_sample.")
    if config.diversity_penalty and config.groups < 2:
        raise ValueError("generate: diversity_penalty keeps groups of beams apart; set num_beam_groups too.")
    if config.dola_layers is not None and (seq2seq or config.beams > 1):
        raise ValueError("generate: dola_layers are for one text of a decoder at a time: leave out num_beams.")
    if config.token_healing and seq2seq:
        raise ValueError("generate: token_healing mends the end of a decoder's prompt; leave it out for an encoder.")
    if config.compile and (config.penalty_alpha or config.dola_layers is not None):
        raise ValueError("generate: compile=True does not go with penalty_alpha and dola_layers, which look inside.")


def _begin(
    given: Ids | None, mask: Ids | None, embeds: Tensor | None, config: GenerationConfig, device: votive.device | None
) -> tuple[Tensor, Tensor | None]:
    """The ids that stand in front of what is written, and the mask of what the model reads first."""
    if embeds is None:
        return prompt_of(given, mask, config, device)
    if embeds.dim() != 3 or 0 in embeds.shape:
        raise ValueError(
            f"generate: inputs_embeds must be (batch, positions, features), got shape {tuple(embeds.shape)}."
        )
    rows = embeds.shape[0]
    ids = votive.zeros((rows, 0), dtype=votive.int64, device=device)
    if given is not None:
        ids = prompt_of(given, None, GenerationConfig(), device)[0]
        if ids.shape[0] != rows or ids.shape[1] > embeds.shape[1]:
            raise ValueError(
                f"generate: input_ids of shape {tuple(ids.shape)} are not the text of inputs_embeds of shape "
                f"{tuple(embeds.shape)}."
            )
    if mask is None:
        return ids, None
    # Of a mask for embeddings the same is asked as of one for ids.
    stand_in = votive.ones((rows, embeds.shape[1]), dtype=votive.int64, device=device)
    return ids, prompt_of(stand_in, mask, GenerationConfig(), device)[1]


def _repeated(name: str, value: Any, copies: int, rows: int) -> Any:
    """Another input of the model for each copy of a prompt."""
    if not isinstance(value, votive.Tensor):
        return value
    if value.shape[0] != rows:
        raise ValueError(
            f"generate: {name} has {value.shape[0]} rows and there are {rows} prompts, so it is not clear what belongs "
            "to which; with beams and several texts give one of it per prompt."
        )
    return value.repeat_interleave(copies, 0)


def _padding(config: GenerationConfig, rows: int, criteria: Criterion | list[Criterion] | None) -> int | None:
    """The token for rows that have ended."""
    if config.pad_token_id is not None:
        return config.pad_token_id
    eos = config.eos_ids()
    if eos:
        return eos[0]
    if rows > 1 and (config.stop_strings or criteria):
        raise ValueError("generate: rows may end at different lengths; set pad_token_id to fill them with.")
    return None


def _begun(prefix: PrefixCache, rows: list[list[int]], mask: Tensor | None) -> Any:
    if len(rows) != 1:
        raise ValueError(f"generate: a PrefixCache serves one text at a time, got {len(rows)}.")
    if mask is not None:
        raise ValueError("generate: a PrefixCache needs a prompt without padding.")
    return prefix.begin(rows[0])


def _readers(tokenizer: Tokenizer | None, config: GenerationConfig, rows: int, read: bool) -> Any:
    if not (read or config.stop_strings):
        return None
    if tokenizer is None:
        raise ValueError("generate: stop_strings need the tokenizer; pass tokenizer=.")
    if config.beams > 1:
        raise ValueError("generate: stop_strings do not go with beams.")
    eos = set(config.eos_ids())
    return [Reader(tokenizer, config.stop_strings, eos) for _ in range(rows)]
