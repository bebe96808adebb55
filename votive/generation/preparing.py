"""From the arguments of `generate` to a task: ids, mask, settings and helpers that fit together.

All that can be wrong with a call is found here, before a model runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import votive
from votive import nn
from votive.core import dtype as dt

from ..tensor import Tensor
from .caching import cache_of, type_of
from .compiled import CompiledStepper, check
from .config import NEW_TOKENS, SAMPLING, UNSUPPORTED, GenerationConfig, check_names
from .drawing import Stream, seed_from, streams
from .graphs import GraphStepper, graphable, pays, recordable
from .prefix import PrefixCache
from .processing import processors_for
from .stepping import DecoderStepper, Model, Seq2SeqStepper, Wanted
from .stopping import Criterion, Ending, Reader, listed
from .warpers import Processor

if TYPE_CHECKING:
    from ..text import Tokenizer


Ids = Tensor | Sequence[Sequence[int]]  # of tokens, a row for each text


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

    def streams(self) -> list[Stream]:
        """Random numbers, a stream for each row."""
        assert self.seed is not None, "only sampling draws"
        return streams(self.seed, self.prompts)


def settings_of(model: Model, given: GenerationConfig | None, settings: dict[str, Any]) -> GenerationConfig:
    """The settings of a call over those given as one, over the model's, over the defaults."""
    check_names(settings)
    if given is not None and not isinstance(given, GenerationConfig):
        raise TypeError(
            "generate: generation_config must be a votive.generation.GenerationConfig, got "
            f"{type(given).__name__}; a dict goes through GenerationConfig.from_dict."
        )
    own = GenerationConfig(**settings)
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
    for name, off in UNSUPPORTED.items():
        if found.extra.get(name) not in off:
            warnings.warn(
                f"generate: {name}={found.extra[name]!r} of the generation configuration is not "
                "supported and has no effect.",
                stacklevel=4,
            )
    idle = [n for n in SAMPLING if settings.get(n) not in (None, off_value(n))]
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
) -> Task:
    """The task that the arguments describe; `read` asks for the rows' text."""
    device = getattr(model, "device", None)
    seq2seq = bool(getattr(model.config, "is_encoder_decoder", False))
    copies = config.beams if config.beams > 1 else config.num_return_sequences or 1
    if seq2seq:
        source = _Source(model, input_ids, attention_mask, encoder_outputs, config, wanted)
        ids, mask = source.start(decoder_input_ids, device), None
    else:
        if decoder_input_ids is not None or encoder_outputs is not None:
            raise ValueError("generate: decoder_input_ids and encoder_outputs need an encoder.")
        ids, mask = prompt_of(input_ids, attention_mask, config, device)
    prompts = [_unpadded(row, mask, r) for r, row in enumerate(ids.tolist())]
    if copies > 1:
        ids = ids.repeat_interleave(copies, 0)
        mask = None if mask is None else mask.repeat_interleave(copies, 0)
        rows = [p for p in prompts for _ in range(copies)]
    else:
        rows = prompts
    limit = getattr(model.config, "max_position_embeddings", None)
    length = longest(config, ids.shape[1], limit)
    if limit is not None and ids.shape[1] > limit:
        warnings.warn(
            f"generate: the prompt has {ids.shape[1]} tokens and the model was made for {limit} "
            "positions; what follows may make no sense.",
            stacklevel=3,
        )
    pad = _padding(config, ids.shape[0], stopping_criteria)
    prefix = None
    if isinstance(past_key_values, PrefixCache):
        prefix, past_key_values = past_key_values, _begun(past_key_values, rows, mask)
    kind = config.cache_implementation or "auto"
    if kind == "quantized" or (kind == "auto" and type_of(config) is not None):
        kind = "dynamic"
    if kind == "auto":
        alone = not seq2seq and config.beams == 1 and pays(ids.shape[0], length, length - ids.shape[1])
        if config.compile and alone and device is not None and device.type == "cuda":
            kind = "static"  # memory that stays is what a device can replay
        else:
            kind = "static" if alone and not config.compile and recordable(model, wanted) else "dynamic"
    cache = cache_of(model, past_key_values, config, kind, length, ids)
    if seq2seq and config.compile:
        raise ValueError("generate: compile=True compiles the steps of decoders; leave it out for an encoder with one.")
    if seq2seq:
        stepper: Any = source.stepper(copies, cache, wanted)
    else:
        made_by: Any = GraphStepper if graphable(model, cache, wanted) else DecoderStepper
        if config.compile:
            check(model, cache, wanted)
            made_by = CompiledStepper
        stepper = made_by(
            model, cache=cache, mask=mask, max_length=length, chunk=config.prefill_chunk_size, wanted=wanted
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
        processors=processors_for(config, prompt_length=ids.shape[1], max_length=length, prompt_mask=mask, own=own),
        ending=Ending(
            eos=config.eos_ids(), max_length=length, max_time=config.max_time, own=stopping_criteria, readers=readers
        ),
        seed=seed_from(config.seed, generator) if config.do_sample else None,
        # Beams of a prompt draw together.
        prompts=prompts if config.beams > 1 else rows,
        prefix=prefix,
        limit=limit,
        encoder=source.encoded if seq2seq else None,
    )


def prompt_of(
    given: Ids | None, given_mask: Ids | None, config: GenerationConfig, device: votive.device | None
) -> tuple[Tensor, Tensor | None]:
    """Ids (batch, positions) and their mask, None where nothing is padding.

    Lists of different lengths are padded on the left.
    """
    if given is None:
        if config.bos_token_id is None:
            raise ValueError("generate: give input_ids, or a bos_token_id to begin with.")
        given = [[config.bos_token_id]]
    ids, mask = _as_tensors(given, given_mask, config)
    ids = ids.to(device) if device is not None else ids
    if ids.dim() != 2 or 0 in ids.shape:
        raise ValueError(
            f"generate: input_ids must be (batch, positions) with at least one of each, got "
            f"{tuple(ids.shape)}; one text is input_ids.unsqueeze(0)."
        )
    if ids.is_floating_point() or ids.dtype is dt.bool_:
        raise TypeError(f"generate: input_ids must be integers, got {ids.dtype}.")
    if mask is None:
        pad, eos = config.pad_token_id, config.eos_ids()
        # A token that also ends texts may stand for itself.
        mask = None if pad is None or pad in eos else ids.ne(pad).long()
    elif tuple(mask.shape) != tuple(ids.shape):
        raise ValueError(
            f"generate: attention_mask must have the shape of input_ids, {tuple(ids.shape)}, got {tuple(mask.shape)}."
        )
    if mask is None or bool(mask.bool().all()):
        return ids, None
    mask = mask.to(ids.device).bool().long()
    if not bool(mask.any(1).all()):
        raise ValueError("generate: a row of the batch is all padding; each needs a token.")
    if not bool(mask[:, -1].bool().all()):
        raise ValueError(
            "generate: the prompts are padded on the right, so their ends are not where the next "
            "token goes; pad on the left (padding_side='left')."
        )
    return ids, mask


def _mask(given: Ids | None) -> Tensor | None:
    return given if given is None or isinstance(given, votive.Tensor) else votive.tensor(given)


def _as_tensors(given: Ids, mask: Ids | None, config: GenerationConfig) -> tuple[Tensor, Tensor | None]:
    """Ids and their mask, whatever they came as; lists of different lengths are padded on the left."""
    seen = _mask(mask)
    if isinstance(given, votive.Tensor):
        return given, seen
    try:
        rows = [[index(i) for i in row] for row in given]
    except TypeError as error:
        raise TypeError(
            "generate: input_ids must be a tensor or a list of lists of token ids, one per text, "
            f"got {_short(given)}; a text goes through a tokenizer first."
        ) from error
    if not rows or not all(rows):
        raise ValueError("generate: the prompt is empty; give at least one token per row.")
    width = max(map(len, rows))
    if all(len(row) == width for row in rows):
        return votive.tensor(rows), seen
    if seen is not None:
        raise ValueError("generate: rows of different lengths get their mask from their lengths.")
    pad = config.pad_token_id or 0
    ids = [[pad] * (width - len(row)) + row for row in rows]
    real = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return votive.tensor(ids), votive.tensor(real)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def longest(config: GenerationConfig, prompt: int, limit: int | None) -> int:
    """How long a text may become, the prompt included."""
    if config.max_new_tokens is not None:
        return prompt + config.max_new_tokens
    if config.max_length is None:
        length = prompt + NEW_TOKENS
        return length if limit is None else max(min(length, limit), prompt + 1)
    if config.max_length <= prompt:
        raise ValueError(
            f"generate: the prompt has {prompt} tokens and max_length={config.max_length}, so "
            "nothing could follow; set max_new_tokens."
        )
    return config.max_length


def _unpadded(row: list[int], mask: Tensor | None, at: int) -> list[int]:
    if mask is None:
        return row
    return [i for i, m in zip(row, mask[at].tolist(), strict=True) if m]


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


class _Source:
    """What an encoder reads, and where its decoder begins."""

    def __init__(
        self,
        model: Any,
        input_ids: Ids | None,
        mask: Ids | None,
        encoded: Any,
        config: GenerationConfig,
        wanted: Wanted | None,
    ) -> None:
        self.model, self.config = model, config
        if encoded is None:
            if input_ids is None:
                raise ValueError("generate: give input_ids for the encoder, or encoder_outputs.")
            ids, mask = _as_tensors(input_ids, mask, config)
            if mask is None and config.pad_token_id is not None:
                mask = ids.ne(config.pad_token_id).long()
            asked = wanted or Wanted()
            with votive.no_grad():
                encoded = model.get_encoder()(
                    ids,
                    attention_mask=mask,
                    output_attentions=asked.attentions,
                    output_hidden_states=asked.hidden_states,
                )
        self.encoded = encoded
        self.mask = _mask(mask)

    def start(self, given: Tensor | None, device: votive.device | None) -> Tensor:
        """The ids the decoder begins with."""
        rows = self.encoded[0].shape[0]
        if given is not None:
            return given
        first = self.config.decoder_start_token_id
        first = self.config.bos_token_id if first is None else first
        if first is None:
            raise ValueError("generate: the decoder needs a token to begin with; set decoder_start_token_id.")
        return votive.full((rows, 1), first, dtype=votive.int64, device=device)

    def stepper(self, copies: int, cache: nn.KVCache | None, wanted: Wanted | None) -> Seq2SeqStepper:
        """A stepper over as many rows as are searched."""
        encoded, mask = self.encoded, self.mask
        if copies > 1:
            encoded = type(encoded)(last_hidden_state=encoded.last_hidden_state.repeat_interleave(copies, 0))
            mask = None if mask is None else mask.repeat_interleave(copies, 0)
        return Seq2SeqStepper(self.model, encoder_outputs=encoded, encoder_mask=mask, cache=cache, wanted=wanted)
