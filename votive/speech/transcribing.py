"""`transcribe`: from a recording to its text, window by window, as OpenAI's program does it.

Where a window's text ends in the middle of speech, the next window begins at its last point in
time. Knows recordings and texts; how a window is decoded is in `decoding.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, Self

from ..core import dtype as dt
from ..core.device import device as Device
from ..models.whisper_languages import language_code
from ..models.whisper_vocabulary import Vocabulary
from ..tensor import Tensor
from .decoding import Decoder, DecodingOptions, DecodingResult
from .features import HOP, SAMPLE_RATE, log_mel_spectrogram
from .init_tokens import init_tokens, language_scores, warn_translated_timestamps
from .segments import PRECISION, Split, split_segments
from .sound import load_audio
from .tiktoken import from_tiktoken
from .timing import alignment_heads
from .token_stream import Token
from .transcript import Segment, Transcript
from .window import Window
from .words import APPENDED, PREPENDED, add_word_timestamps, find_alignment

if TYPE_CHECKING:
    from ..models.whisper import WhisperForConditionalGeneration as Whisper
    from ..text import Tokenizer
    from .features import Sound

SECOND = SAMPLE_RATE // HOP  # frames


class Transcriber:
    """A Whisper with its tokenizer, ready to hear recordings.

    >>> votive.speech.Transcriber.from_pretrained("tales")
    Traceback (most recent call last):
    ValueError: Transcriber: tales is a qwen3, not a Whisper.
    """

    def __init__(self, model: Whisper, tokenizer: Tokenizer) -> None:
        if not hasattr(model, "proj_out") or not hasattr(model.config, "num_mel_bins"):
            raise TypeError(f"Transcriber: give a WhisperForConditionalGeneration, got {type(model).__name__}.")
        self.model, self.tokenizer = model, tokenizer
        self.vocabulary = Vocabulary.of(model)
        self.frames = 2 * model.config.max_source_positions

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        tokenizer: Any = None,
        dtype: dt.dtype | str | None = None,
        device: Device | str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """From a folder of Hugging Face or CTranslate2, OpenAI's .pt file, or a repository id.

        `tokenizer` is one, or where it lies, also as OpenAI's .tiktoken file: a .pt file has none
        with it.
        """
        from ..models.checkpoint import Checkpoint
        from ..models.whisper import WhisperForConditionalGeneration

        found = Checkpoint.find(name, revision=revision, local_files_only=local_files_only)
        kind = found.config.get("model_type")
        if kind != "whisper":
            raise ValueError(f"Transcriber: {found.name} is a {kind}, not a Whisper.")
        if not hasattr(tokenizer, "decode"):
            size = found.config.get("vocab_size", 51865)
            tokenizer = _load_tokenizer(found.name, found.tokenizer if tokenizer is None else tokenizer, size)
        model = WhisperForConditionalGeneration.from_checkpoint(found, dtype=dtype, device=device)
        return cls(model, tokenizer)

    def detect_language(
        self, audio: Sound | str | os.PathLike[str] | IO[bytes], sampling_rate: int | None = None
    ) -> dict[str, float]:
        """How likely each language is, from the first window, likeliest first."""
        mel = self.mels(load_audio(audio, sampling_rate))
        return self._languages(self._window(mel, 0, mel.shape[2]))

    def text_ids(self, tokens: Sequence[int], language: str | None = None, task: str = "transcribe") -> list[int]:
        """A text as its decoder reads it when words are timed: beginning, what is spoken, end.

        `tokens` are those of segments; points in time among them are left out. A multilingual
        model needs the `language`. `votive.glass.alignment` takes the result.
        """
        words = self.vocabulary
        if words.multilingual and language is None:
            raise ValueError("text_ids: name the language, such as that of the transcript.")
        prefix = self._prefix(language, task, timestamps=True)
        return [*prefix, words.first_time - 1, *(t for t in tokens if t < words.end), words.end]

    def _prefix(self, language: str | None, task: str, *, timestamps: bool) -> list[int]:
        """What a text begins with; one for English alone names neither language nor task."""
        words = self.vocabulary
        if not words.multilingual:
            return init_tokens(words, 1, language=None, task=None, timestamps=timestamps)[0]
        return init_tokens(words, 1, language=language, task=task, timestamps=timestamps)[0]

    def __call__(self, audio: Sound | str | os.PathLike[str] | IO[bytes], **options: Any) -> Transcript:
        """The text of a recording; the arguments of `votive.speech.transcribe`."""
        return transcribe(self.model, audio, tokenizer=self.tokenizer, **options)

    def mels(self, sound: Tensor) -> Tensor:
        """What is heard of samples at 16 kHz, (1, bands, frames): log-mels, and a whole window of
        silence behind them."""
        bins = self.model.config.num_mel_bins
        # The last frame of a sound may begin a window.
        mel = log_mel_spectrogram(sound.float(), bins, padding=self.frames * HOP)
        return mel.unsqueeze(0)

    def _window(self, mel: Tensor, seek: int, end: int) -> Window:
        part = mel[:, :, seek : seek + self.frames]
        if end < seek + self.frames and end < mel.shape[2] - self.frames:
            # What lies behind a clip is silent, as what lies behind a recording.
            quiet = part.clone()
            quiet[:, :, end - seek :] = mel.amin()
            part = quiet
        return Window(self.model, part)

    def _languages(self, window: Window) -> dict[str, float]:
        if not self.vocabulary.multilingual or not self.vocabulary.languages:
            return {"en": 1.0}
        odds = language_scores(window, self.vocabulary).softmax(-1)[0].tolist()
        named = dict(zip(self.vocabulary.languages, odds, strict=True))
        return dict(sorted(named.items(), key=lambda item: -item[1]))

    def __repr__(self) -> str:
        kind = "multilingual" if self.vocabulary.multilingual else "English"
        return f"Transcriber({kind}, {self.model.num_parameters():,} parameters)"


def _load_tokenizer(model: str, place: Any, size: int) -> Tokenizer:
    """The tokenizer in a folder or file; `size` is that of the model's vocabulary."""
    from ..text import Tokenizer

    if str(place).endswith(".tiktoken"):
        return from_tiktoken(place, 100 if size > 51865 else 99)
    try:
        return Tokenizer.from_pretrained(place)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{model} has no tokenizer with it ({error}) Give tokenizer=, a folder, tokenizer.json or "
            ".tiktoken file of the same kind of Whisper (multilingual or English)."
        ) from error


@dataclass
class _State:
    """A recording on its way."""

    mel: Tensor
    language: str
    prefix: list[int]
    segments: list[Segment] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)  # all so far, the initial prompt first
    prompt: int = 0  # how many of them are the initial prompt
    carried: int = 0  # from where on the next window is told
    spoken: float = 0.0  # when the last word ended


@dataclass(frozen=True)
class _Words:
    wanted: bool
    prepended: str
    appended: str


def transcribe(
    model: Whisper,
    audio: Sound | str | os.PathLike[str] | IO[bytes],
    *,
    tokenizer: Tokenizer,
    language: str | None = None,
    task: str = "transcribe",
    sampling_rate: int | None = None,
    condition_on_previous_text: bool = True,
    initial_prompt: str | None = None,
    carry_initial_prompt: bool = False,
    word_timestamps: bool = False,
    prepend_punctuations: str = PREPENDED,
    append_punctuations: str = APPENDED,
    clip_timestamps: Sequence[float] = (0.0,),
    progress: Callable[[float, float], None] | None = None,
    on_segment: Callable[[Segment], None] | None = None,
    on_token: Callable[[Token], None] | None = None,
    **options: Any,
) -> Transcript:
    """The text of a recording: a file, or samples (16 kHz unless `sampling_rate` says otherwise).

    Arguments and defaults are those of OpenAI's `transcribe`, as is what is done with them; only
    what lies behind the end is silence, as in training, and not zeros. `language=None` detects it
    in the first window; `task="translate"` writes English. `temperature` may be several, tried one
    after the other while a text repeats itself (`compression_ratio_threshold`) or is unlikely
    (`logprob_threshold`); windows above `no_speech_threshold` are skipped. More `options`:
    `beam_size`, `best_of`, `length_penalty`, `without_timestamps`, `max_initial_timestamp`,
    `suppress_tokens`, `suppress_blank`, `sample_len`, `seed`. `clip_timestamps` are starts and ends
    of what is heard, in seconds. `progress` is told the seconds done and all; `on_segment` each
    segment as it is found, and `on_token` each `votive.speech.Token` as it is chosen.

    >>> votive.speech.transcribe(None, "speech.wav", tokenizer=None, task="sing")
    Traceback (most recent call last):
    ValueError: task must be 'transcribe' or 'translate', got 'sing'.
    """
    if task not in ("transcribe", "translate"):
        raise ValueError(f"task must be 'transcribe' or 'translate', got {task!r}.")
    known = [f.name for f in fields(DecodingOptions)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"transcribe: there is no option {unknown[0]!r}; there are {', '.join(known)}.")
    if word_timestamps and task == "translate":
        warn_translated_timestamps()
    transcriber = Transcriber(model, tokenizer)
    decoder = Decoder(model, tokenizer, transcriber.vocabulary, DecodingOptions(**options), on_token)
    sound = load_audio(audio, sampling_rate)
    if sound.shape[-1] == 0:
        return Transcript("", [], language_code(language) if language else "en", 0.0)
    mel = transcriber.mels(sound)
    total = mel.shape[2] - transcriber.frames
    spoken, first = _language(transcriber, mel, language)
    prefix = transcriber._prefix(spoken, task, timestamps=not decoder.options.without_timestamps)
    state = _State(mel, spoken, prefix)
    if initial_prompt is not None:
        text = " " + initial_prompt.strip()
        state.tokens = tokenizer.encode(text, add_special_tokens=False)
        state.prompt = len(state.tokens)
    words = _Words(word_timestamps, prepend_punctuations, append_punctuations)
    carry = "always" if carry_initial_prompt else condition_on_previous_text
    for start, end in _clips(clip_timestamps, total):
        seek = start
        while seek < end:
            if progress is not None:
                progress(seek / SECOND, total / SECOND)
            window = first.pop(seek, None) if end >= min(seek + transcriber.frames, total) else None
            if window is None:
                window = transcriber._window(mel, seek, end)
            seek = _decode_window(
                state,
                decoder,
                window,
                seek,
                min(transcriber.frames, end - seek),
                carry,
                condition_on_previous_text,
                words,
                on_segment,
            )
    if progress is not None:
        progress(total / SECOND, total / SECOND)
    text = decoder.text(state.tokens[state.prompt :])
    odds = first.get("probability")
    return Transcript(text, state.segments, spoken, sound.shape[-1] / SAMPLE_RATE, odds)


def _language(transcriber: Transcriber, mel: Tensor, language: str | None) -> tuple[str, dict[Any, Any]]:
    """The language, and what was computed to find it: the first window, and how sure it is."""
    if not transcriber.vocabulary.multilingual:
        if language is not None and language_code(language) != "en":
            raise ValueError(f"language {language!r}: the model is English-only.")
        return "en", {}
    if language is not None:
        code = language_code(language)
        transcriber.vocabulary.language(code)
        return code, {}
    window = transcriber._window(mel, 0, mel.shape[2])
    best, odds = next(iter(transcriber._languages(window).items()))
    return best, {0: window, "probability": odds}


def _clips(points: Sequence[float], total: int) -> list[tuple[int, int]]:
    """Frames from which and to which is heard."""
    frames = [round(float(p) * SECOND) for p in points] or [0]
    if any(b < a for a, b in pairwise(frames)) or frames[0] < 0:
        raise ValueError(f"transcribe: clip_timestamps must rise from 0 on, got {list(points)}.")
    if len(frames) % 2:
        frames.append(total)
    return [(min(a, total), min(b, total)) for a, b in zip(frames[::2], frames[1::2], strict=True)]


def _decode_window(
    state: _State,
    decoder: Decoder,
    window: Window,
    seek: int,
    frames: int,
    carry: str | bool,
    conditioned: bool,
    words: _Words,
    on_segment: Callable[[Segment], None] | None,
) -> int:
    """Decode a window, add its segments to the state, and tell where the next one begins."""
    before = state.tokens[state.carried :]
    if carry == "always":
        # The initial prompt goes before what was said last, in what room there is.
        first = state.tokens[: state.prompt]
        room = decoder.length // 2 - 1 - len(first)
        rest = state.tokens[max(state.prompt, state.carried) :]
        before = [*first, *(rest[-room:] if room > 0 else [])]
    found = decoder.decode(window, before, state.prefix, seek / SECOND)
    if decoder.silent(found):
        return seek + frames
    offset = seek / SECOND
    parts = split_segments(found.tokens, decoder.vocabulary.first_time, frames)
    segments = [
        _segment(decoder, found, found.tokens[a:b], seek, offset + start * PRECISION, offset + end * PRECISION)
        for a, b, start, end in parts.parts
    ]
    after = seek + parts.advance
    if words.wanted:
        after = _timed(state, decoder, window, segments, seek, frames, parts, words)
    for segment in segments:
        if segment.start == segment.end or not segment.text.strip():
            segment.text, segment.tokens = "", []
            segment.words = [] if words.wanted else None
        segment.id = len(state.segments)
        state.segments.append(segment)
        state.tokens += segment.tokens
        if on_segment is not None and segment.text:
            on_segment(segment)
    if not conditioned or found.temperature > 0.5:
        state.carried = len(state.tokens)
    return max(after, seek + 1)


def _segment(
    decoder: Decoder, found: DecodingResult, tokens: list[int], seek: int, start: float, end: float
) -> Segment:
    return Segment(
        seek=seek,
        start=round(start, 3),
        end=round(end, 3),
        text=decoder.text(tokens),
        tokens=tokens,
        temperature=found.temperature,
        avg_logprob=found.avg_logprob,
        compression_ratio=found.compression_ratio,
        no_speech_prob=found.no_speech_prob,
    )


def _timed(
    state: _State,
    decoder: Decoder,
    window: Window,
    segments: list[Segment],
    seek: int,
    frames: int,
    parts: Split,
    words: _Words,
) -> int:
    """Give segments their words; tells where the next window begins, which is where they end."""
    tokens = decoder.vocabulary
    said = [t for s in segments for t in s.tokens if t < tokens.end]
    prefix = [t for t in state.prefix if t != tokens.no_timestamps]
    found = find_alignment(
        window, decoder.tokenizer, tokens, prefix, said, alignment_heads(decoder.model), frames, state.language
    )
    state.spoken = add_word_timestamps(
        segments,
        found,
        end_of_text=tokens.end,
        offset=seek / SECOND,
        spoken_until=state.spoken,
        prepended=words.prepended,
        appended=words.appended,
    )
    last = [w.end for s in segments for w in s.words or []] or [s.end for s in segments]
    if not parts.whole and last and last[-1] > seek / SECOND:
        return round(last[-1] * SECOND)
    return seek + parts.advance
