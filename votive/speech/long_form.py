"""Long-form generation, window by window: what each is conditioned on, what it says, when to try again.

Knows rules and windows; builds neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import votive
from votive.nn import functional as F

from ..generation import GenerationConfig, LogitsProcessorList
from ..models.whisper_vocabulary import Vocabulary
from ..tensor import Tensor
from .decoding import byte_compression
from .processors import logits_processors, no_speech_probability
from .segments import PRECISION, STRIDE, split_segments
from .timing import token_times
from .window import Hypothesis, Window, hypotheses

if TYPE_CHECKING:
    from ..models.whisper import WhisperForConditionalGeneration as Whisper
    from .window import Encoded

NEVER = 1 << 62  # a token that none is


@dataclass
class Row:
    """One recording on its way: where its next window begins, and what was written."""

    prefix: list[int]
    frames: int
    heard: int  # frames that are no padding
    seek: int = 0
    segments: list[dict[str, Any]] = field(default_factory=list)
    carries: bool = False  # whether the next window is conditioned on what was written


@dataclass(frozen=True)
class Rules:
    """All that stays the same over windows."""

    tokens: Vocabulary
    settings: GenerationConfig
    search: dict[str, Any]  # more arguments of `votive.generation.generate`
    timestamps: bool
    temperatures: tuple[float | None, ...]
    compression: float | None
    logprob: float | None
    no_speech: float | None
    carry: bool
    prompt: list[int] | None
    prompt_always: bool
    pad: int
    words: bool
    processors: list[Any]
    length: int  # positions of the decoder
    frames: int  # of a window

    @property
    def first_time(self) -> int:
        return self.tokens.first_time if self.timestamps else NEVER


def window_part(features: Tensor, seek: int, frames: int) -> Tensor:
    """A window of mels, with zeros behind where they end."""
    part = features[:, :, seek : seek + frames]
    return F.pad(part, (0, frames - part.shape[2])) if part.shape[2] < frames else part


class FirstWindow:
    """The window that every recording begins with, encoded when it is first needed."""

    def __init__(self, model: Whisper, features: Tensor | None, encoded: Encoded | None, frames: int) -> None:
        self.model, self.features, self.encoded, self.frames = model, features, encoded, frames
        self._window: Window | None = None

    @property
    def window(self) -> Window:
        if self._window is None:
            part = None if self.features is None else window_part(self.features, 0, self.frames)
            self._window = Window(self.model, part, self.encoded)
        return self._window

    def drop(self) -> None:
        """It is over; its memory is free."""
        self._window = None


def prompt_of(rules: Rules, row: Row, conditioned: bool) -> list[int]:
    """What a window's text begins with: the prompt or what was written, then the beginning."""
    if not conditioned:
        return [*(rules.prompt or []), *row.prefix]
    start = rules.prompt if rules.prompt is not None and rules.prompt_always else None
    if start is None:
        start = [] if rules.tokens.previous is None else [rules.tokens.previous]
    before: list[int] = []
    for segment in row.segments if row.carries else []:
        ids = segment["tokens"]
        doubled = len(ids) > 2 and ids[-2] >= rules.first_time
        before += ids[:-1] if doubled else ids
    return [*start, *before[-(rules.length // 2 - 1) :], *row.prefix]


def advance(rules: Rules, model: Whisper, features: Tensor | None, first: FirstWindow, rows: list[Row]) -> None:
    """One more window of every recording that has one; `first` holds the one all begin with."""
    todo = [i for i, row in enumerate(rows) if row.seek < row.frames]
    if len(todo) == len(rows) and all(row.seek == 0 for row in rows):
        window = first.window
    else:
        assert features is not None  # encoder_outputs are those of one window, which is the first
        first.drop()
        parts = [window_part(features[i : i + 1, :, : rows[i].frames], rows[i].seek, rules.frames) for i in todo]
        window = Window(model, votive.cat(parts))
    conditioned = any(rows[i].carries for i in todo) and bool(rows[0].segments)
    prompts = [prompt_of(rules, rows[i], conditioned) for i in todo]
    # Texts of one length are searched side by side.
    for length in dict.fromkeys(map(len, prompts)):
        some = [k for k, p in enumerate(prompts) if len(p) == length]
        _search(rules, window, some, [rows[todo[k]] for k in some], [prompts[k] for k in some])


def processors_for(rules: Rules, begin: int) -> LogitsProcessorList:
    """What changes scores, the caller's processors last."""
    settings = rules.settings
    found = logits_processors(
        settings,
        begin,
        begin_suppress=settings.begin_suppress_tokens,
        suppress=settings.suppress_tokens,
        timestamps=rules.timestamps,
    )
    return LogitsProcessorList([*found, *rules.processors])


def limits(rules: Rules, begin: int) -> dict[str, int]:
    """How long a text may become; no more than the model has positions."""
    wanted = rules.settings.max_new_tokens
    if wanted is not None:
        if begin + wanted > rules.length:
            raise ValueError(
                f"generate: a beginning of {begin} tokens and max_new_tokens={wanted} are more "
                f"than the model's {rules.length} positions; ask for fewer, or shorten the prompt."
            )
        return {"max_new_tokens": wanted}
    most = rules.settings.max_length
    return {"max_length": rules.length if most is None else min(most + begin, rules.length)}


def _search(rules: Rules, window: Window, at: list[int], rows: list[Row], prompts: list[list[int]]) -> None:
    """Write the text of a window for some of its rows, warmer and warmer while it is bad."""
    silent = _silence(rules, window, at, rows, prompts)
    todo = list(range(len(rows)))
    for turn, temperature in enumerate(rules.temperatures):
        texts = _texts(rules, window, [at[i] for i in todo], [prompts[i] for i in todo], temperature)
        worse = []
        for i, text in zip(todo, texts, strict=True):
            bad, skip = _needs_fallback(rules, text, silent[i], window.model.config.vocab_size)
            if bad and turn + 1 < len(rules.temperatures):
                worse.append(i)
                continue
            rows[i].carries = rules.carry and (temperature is None or temperature < 0.5)
            _keep(rules, window, at[i], rows[i], prompts[i], text, skip)
        todo = worse
        if not todo:
            return


def _silence(rules: Rules, window: Window, at: list[int], rows: list[Row], prompts: list[list[int]]) -> list[float]:
    """How likely it is for each row that nothing is said."""
    if rules.no_speech is None:
        return [0.0] * len(rows)
    start = len(prompts[0]) - len(rows[0].prefix) + 1
    # All rows of the window run; those that are not asked for may say anything.
    whole = [prompts[0][:start]] * len(window)
    for k, prompt in zip(at, prompts, strict=True):
        whole[k] = prompt[:start]
    odds = no_speech_probability(window.logits(whole), rules.tokens.no_speech)
    return [odds[k] for k in at]


def _texts(
    rules: Rules, window: Window, at: list[int], prompts: list[list[int]], temperature: float | None
) -> list[Hypothesis]:
    begin = len(prompts[0])
    drawn: dict[str, Any] = {"do_sample": bool(temperature)} if temperature is not None else {}
    if temperature:
        drawn |= {"temperature": float(temperature), "num_beams": 1}
    found = window.search(
        prompts,
        None if at == list(range(len(window))) else at,
        logits_processor=processors_for(rules, begin),
        output_scores=rules.logprob is not None,
        **limits(rules, begin),
        **rules.search,
        **drawn,
    )
    return hypotheses(found, begin, rules.tokens.end, rules.pad, temperature or 0.0)


def _needs_fallback(rules: Rules, text: Hypothesis, silent: float, vocabulary: int) -> tuple[bool, bool]:
    """Whether a warmer search may do better, and whether the text is dropped because nothing was said."""
    repeats = rules.compression is not None and token_compression(text.tokens, vocabulary) > rules.compression
    unlikely = rules.logprob is not None and text.mean < rules.logprob
    if unlikely and rules.no_speech is not None and silent > rules.no_speech:
        return False, True
    return repeats or unlikely, False


def token_compression(tokens: list[int], vocabulary: int) -> float:
    """How many times smaller zlib makes the tokens: what repeats itself is high.

    >>> from votive.speech.long_form import token_compression
    >>> token_compression([1, 2] * 50, 50000) > 5 > token_compression(list(range(100)), 50000)
    True
    """
    size = (vocabulary.bit_length() - 1) // 8 + 1
    raw = b"".join(t.to_bytes(size, "little") for t in tokens)
    return byte_compression(raw)


def _keep(rules: Rules, window: Window, at: int, row: Row, prompt: list[int], text: Hypothesis, skip: bool) -> None:
    """Add the parts of a window's text to its recording, and move on."""
    frames = min(row.frames - row.seek, rules.frames)
    if skip:
        row.seek += frames
        return
    tokens = text.tokens[:-1] if text.tokens[-1:] == [rules.tokens.end] else text.tokens
    found = split_segments(tokens, rules.first_time, frames)
    offset = row.seek * PRECISION / STRIDE
    times: list[float] = []
    if rules.words:
        heads = rules.settings.extra["alignment_heads"]
        heard = max(min(row.heard - row.seek, rules.frames), STRIDE)
        times = token_times(window, at, prompt, text.tokens, heads, heard)
    for i, (a, b, start, end) in enumerate(found.parts):
        if i == len(found.parts) - 1 and found.paired and not found.whole:
            b += 1  # the second of the last two times tells that the window ended in the middle
        segment: dict[str, Any] = {
            "start": offset + start * PRECISION,
            "end": offset + end * PRECISION,
            "tokens": tokens[a:b],
            "idxs": (len(prompt) + a, len(prompt) + b),
        }
        if rules.words:
            segment["token_timestamps"] = [offset + t for t in times[a:b]]
        row.segments.append(segment)
    row.seek += found.advance
