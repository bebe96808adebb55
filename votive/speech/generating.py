"""`generate` of Whisper: tokens from mels of any length, as transformers' method of that name.

All that can be wrong with a call is found here; `long_form.py` goes through the windows, and texts
and words are made by `transcribing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import votive

from ..generation.preparing import settings_of
from ..generation.stopping import listed
from ..models.whisper_vocabulary import Vocabulary
from ..tensor import Tensor
from .init_tokens import init_tokens, language_scores, warn_translated_timestamps
from .long_form import FirstWindow, Row, Rules, advance, limits, processors_for
from .segments import STRIDE
from .window import Window

if TYPE_CHECKING:
    from ..core.rng import Generator
    from ..generation import GenerationConfig
    from ..models.whisper import WhisperForConditionalGeneration as Whisper
    from .window import Encoded


def generate(
    model: Whisper,
    input_features: Tensor | None = None,
    *,
    generation_config: GenerationConfig | None = None,
    logits_processor: Any = None,
    stopping_criteria: Any = None,
    return_timestamps: bool | None = None,
    task: str | None = None,
    language: str | Sequence[str] | None = None,
    is_multilingual: bool | None = None,
    prompt_ids: Tensor | Sequence[int] | None = None,
    prompt_condition_type: str = "first-segment",
    condition_on_prev_tokens: bool | None = None,
    temperature: float | Sequence[float] | None = None,
    compression_ratio_threshold: float | None = None,
    logprob_threshold: float | None = None,
    no_speech_threshold: float | None = None,
    attention_mask: Tensor | None = None,
    return_token_timestamps: bool = False,
    return_segments: bool = False,
    return_dict_in_generate: bool = False,
    encoder_outputs: Encoded | None = None,
    monitor_progress: Callable[[Any], None] | None = None,
    generator: Generator | None = None,
    **settings: Any,
) -> Any:
    """The tokens of what is said in mels (batch, mels, frames): (batch, tokens), padded.

    Neither the beginning (start, language, task) nor the end is among them. Longer than a window
    needs times, and for several recordings an `attention_mask`. A list of temperatures is tried one
    after the other where a threshold is not met. With `return_segments` or
    `return_token_timestamps` a dict comes; with `return_dict_in_generate`, for one window without
    times, the whole record of `votive.generation.generate`, beginning and end included.
    `settings` are those of `votive.generation.GenerationConfig`.

    >>> config = votive.models.WhisperConfig(vocab_size=60, d_model=8, encoder_layers=1,
    ...     decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
    ...     max_source_positions=4, pad_token_id=50, eos_token_id=50, decoder_start_token_id=51)
    >>> _ = votive.manual_seed(0)
    >>> model = votive.models.WhisperForConditionalGeneration(config)
    >>> model.generate(votive.zeros(1, 80, 8), max_new_tokens=3, eos_token_id=59).shape
    votive.Size([1, 3])
    """
    given = {
        "return_timestamps": return_timestamps,
        "task": task,
        "language": language,
        "compression_ratio_threshold": compression_ratio_threshold,
        "logprob_threshold": logprob_threshold,
        "no_speech_threshold": no_speech_threshold,
        "condition_on_prev_tokens": condition_on_prev_tokens,
    }
    found = settings_of(model, generation_config, settings)
    asked = {k: found.extra.get(k) if v is None else v for k, v in given.items()}
    if is_multilingual is not None:
        found.extra = {**found.extra, "is_multilingual": is_multilingual}
    count, total = _extent(model, input_features, encoder_outputs)
    frames = STRIDE * model.config.max_source_positions
    long = total > frames
    if long and asked["return_timestamps"] is False:
        raise ValueError(
            f"generate: {total} frames are more than a window of {frames}; only timestamps "
            "tell where the next window begins, so set return_timestamps=True."
        )
    if long and encoder_outputs is not None:
        raise ValueError("generate: encoder_outputs are those of one window.")
    if long and count > 1 and attention_mask is None:
        raise ValueError(
            "generate: recordings of several lengths need an attention_mask; "
            "WhisperFeatureExtractor(..., return_attention_mask=True) gives it."
        )
    rules = _rules(
        model,
        found,
        asked,
        long,
        logits_processor,
        stopping_criteria,
        prompt_ids,
        prompt_condition_type,
        temperature,
        settings,
        return_token_timestamps,
        frames,
        generator,
    )
    first = FirstWindow(model, input_features, encoder_outputs, frames)
    rows = _rows(rules, first, asked, count, total, attention_mask, long, found)
    if return_dict_in_generate and not rules.timestamps:
        return _record(rules, first.window, rows)
    while any(row.seek < row.frames for row in rows):
        if monitor_progress is not None:
            monitor_progress(votive.tensor([[row.seek, row.frames] for row in rows]))
        advance(rules, model, input_features, first, rows)
    return _returned(rules, rows, return_segments)


def _extent(model: Whisper, features: Tensor | None, encoded: Encoded | None) -> tuple[int, int]:
    """How many recordings there are, and the frames of the longest."""
    if (features is None) == (encoded is None):
        raise ValueError("generate: give either input_features or encoder_outputs.")
    if encoded is not None:
        return encoded[0].shape[0], encoded[0].shape[1] * STRIDE
    assert features is not None
    if features.dim() != 3:
        raise ValueError(
            "generate: input_features must be (batch, mels, frames), got "
            f"{tuple(features.shape)}; one recording is input_features.unsqueeze(0)."
        )
    return features.shape[0], features.shape[2]


def _rules(
    model: Whisper,
    found: GenerationConfig,
    asked: dict[str, Any],
    long: bool,
    own: Any,
    criteria: Any,
    prompt: Tensor | Sequence[int] | None,
    prompt_type: str,
    temperature: float | Sequence[float] | None,
    settings: dict[str, Any],
    words: bool,
    frames: int,
    generator: Generator | None,
) -> Rules:
    tokens = Vocabulary.of(model, found)
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        if getattr(found, name) is None:  # older folders say it in config.json
            setattr(found, name, getattr(model.config, name))
    timestamps = bool(asked["return_timestamps"]) or long
    if timestamps:
        _ = tokens.first_time  # raises where it is not known
        found.extra = {**found.extra, "no_timestamps_token_id": tokens.no_timestamps}
    if prompt_type not in ("first-segment", "all-segments"):
        raise ValueError(
            f"generate: prompt_condition_type must be 'first-segment' or 'all-segments', got {prompt_type!r}."
        )
    if prompt_type == "all-segments" and not asked["condition_on_prev_tokens"]:
        raise ValueError("generate: prompt_condition_type='all-segments' needs condition_on_prev_tokens=True.")
    if (asked["no_speech_threshold"] is not None) > (asked["logprob_threshold"] is not None):
        raise ValueError("generate: no_speech_threshold needs a logprob_threshold beside it.")
    if words and asked["task"] == "translate":
        warn_translated_timestamps()
    if words and not found.extra.get("alignment_heads"):
        raise ValueError(
            "generate: return_token_timestamps needs alignment_heads in the model's "
            "generation_config, a list of [layer, head]."
        )
    temperatures = tuple(temperature) if isinstance(temperature, Sequence) else (temperature,)
    ids = None if prompt is None else [int(i) for i in votive.as_tensor(prompt).tolist()]
    pad = found.pad_token_id
    return Rules(
        tokens=tokens,
        settings=found,
        timestamps=timestamps,
        temperatures=temperatures,
        compression=asked["compression_ratio_threshold"],
        logprob=asked["logprob_threshold"],
        no_speech=asked["no_speech_threshold"],
        carry=bool(asked["condition_on_prev_tokens"]),
        prompt=ids,
        prompt_always=prompt_type == "all-segments",
        pad=tokens.end if pad is None else pad,
        words=words,
        search={"generation_config": _searching(found), "generator": generator, "stopping_criteria": criteria},
        processors=listed(own, "logits_processor"),
        length=model.config.max_target_positions,
        frames=frames,
    )


def _searching(found: GenerationConfig) -> GenerationConfig:
    """Settings of the search itself; which tokens never come is said by processors of speech."""
    config = found.updated(suppress_tokens=[], begin_suppress_tokens=[])
    config.extra = {}
    return config


def _rows(
    rules: Rules,
    first: FirstWindow,
    asked: dict[str, Any],
    count: int,
    total: int,
    mask: Tensor | None,
    long: bool,
    found: GenerationConfig,
) -> list[Row]:
    def detected() -> list[int]:
        best = language_scores(first.window, rules.tokens).argmax(-1).tolist()
        return [list(rules.tokens.languages.values())[i] for i in best]

    forced = found.extra.get("forced_decoder_ids")
    if forced is None:
        forced = first.model.config.extra.get("forced_decoder_ids")
    prefix = init_tokens(
        rules.tokens,
        count,
        language=asked["language"],
        task=asked["task"],
        timestamps=rules.timestamps,
        forced=forced,
        detected=detected,
    )
    lengths = heard = [total] * count
    if mask is not None:
        heard = [int(n) for n in votive.as_tensor(mask).sum(-1).tolist()]
        lengths = heard if long and count > 1 else lengths
    copies = rules.settings.num_return_sequences or 1
    if copies > 1:
        raise ValueError("generate: num_return_sequences must be 1 for speech; call it again.")
    rows = [Row(b, n, h, carries=rules.carry) for b, n, h in zip(prefix, lengths, heard, strict=True)]
    if rules.prompt is not None and not rules.prompt_always:
        previous = rules.tokens.previous
        ids = rules.prompt[1:] if rules.prompt[:1] == [previous] else rules.prompt
        for row in rows:
            row.segments.append({"tokens": ids})
    return rows


def _record(rules: Rules, window: Window, rows: list[Row]) -> Any:
    """The whole record of one search over one window."""
    prompts = [[*(rules.prompt or []), *row.prefix] for row in rows]
    begin = len(prompts[0])
    how = {**limits(rules, begin), **rules.search}
    return window.search(prompts, None, logits_processor=processors_for(rules, begin), **how)


def _returned(rules: Rules, rows: list[Row], segments: bool) -> Any:
    """Tokens as one padded tensor, with their times and parts where they were asked for."""
    hidden = rules.prompt is not None and not rules.prompt_always
    found = [row.segments[1:] if hidden else row.segments for row in rows]
    ids = [[t for s in parts for t in s["tokens"]] for parts in found]
    width = max(map(len, ids))
    sequences = votive.tensor([row + [rules.pad] * (width - len(row)) for row in ids])
    sequences = sequences.long().reshape(len(rows), width)
    if not segments and not rules.words:
        return sequences
    out: dict[str, Any] = {"sequences": sequences}
    if rules.words:
        times = [[t for s in parts for t in s["token_timestamps"]] for parts in found]
        # As the tokens: what pads them lies where the last one ended.
        filled = [row + [row[-1] if row else 0.0] * (width - len(row)) for row in times]
        out["token_timestamps"] = votive.tensor(filled).reshape(len(rows), width)
    if segments:
        out["segments"] = found
    return out
