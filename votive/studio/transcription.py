"""What a model has heard in a sound: its text by windows, and which sound each token looks at.

Knows the glass engine's results; knows no page.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import glass
from ..speech import Segment, Token, Word
from ..speech.words import characters
from .speech_models import Sound, SpeechModel

# Windows whose attention is kept.
KEPT = 4


@dataclass
class Window:
    """A window and its text; `tokens` are those that are spoken, `odds` how likely each was."""

    seek: int
    frames: int
    tokens: list[int]
    odds: list[float | None]
    words: list[Word]

    def to_json(self, tokenizer: Any) -> dict[str, Any]:
        """What a page wants to know of it."""
        texts: list[str] = []
        for text, ids in characters(tokenizer, self.tokens):
            texts += [""] * (len(ids) - 1) + [text]  # a character belongs to its last token
        spans = token_spans([w.word for w in self.words], texts)
        return {
            "start": self.seek / 100,
            "end": (self.seek + self.frames) / 100,
            "tokens": [{"id": i, "text": t, "p": p} for i, t, p in zip(self.tokens, texts, self.odds, strict=True)],
            "words": [
                {"text": w.word, "start": w.start, "end": w.end, "p": w.probability, "first": a, "last": b}
                for w, (a, b) in zip(self.words, spans, strict=True)
            ],
        }


def token_spans(words: list[str], texts: list[str]) -> list[tuple[int, int]]:
    """Of which tokens each word is made, from a first to before a last.

    >>> from votive.studio.transcription import token_spans
    >>> token_spans([" candle", " light,"], [" can", "dle", " light", ","])
    [(0, 2), (2, 4)]
    """
    found, at, have, want = [], 0, 0, 0
    for word in words:
        first, want = at, want + len(word)
        while at < len(texts) and have < want:
            have += len(texts[at])
            at += 1
        found.append((first, at))
    return found


@dataclass
class Transcription:
    """A sound in front of a model, and what was made of it so far."""

    loaded: SpeechModel
    sound: Sound
    language: str | None = None
    sure: float | None = None
    task: str = "transcribe"
    stopped: bool = False
    windows: list[Window] | None = None
    _chosen: dict[int, list[Token]] = field(default_factory=dict)
    _segments: list[Segment] = field(default_factory=list)
    _aligned: OrderedDict[int, Any] = field(default_factory=OrderedDict)

    def begin(self, task: str) -> None:
        """Forget what was heard."""
        self.language, self.sure, self.task, self.stopped, self.windows = (None, None, task, False, None)
        for kept in (self._chosen, self._segments, self._aligned):
            kept.clear()

    def chosen(self, token: Token) -> None:
        """Take a token that was just chosen."""
        mine = self._chosen.setdefault(round(token.start * 100), [])
        del mine[token.index :]  # a text that was bad is made again
        mine.append(token)

    def segment(self, segment: Segment) -> None:
        """Take a segment that is whole."""
        self._segments.append(segment)

    def end(self, language: str | None, sure: float | None, *, stopped: bool = False) -> None:
        """Sort what was heard into windows."""
        self.language, self.sure, self.stopped = language, sure, stopped
        by_seek: dict[int, list[Segment]] = {}
        for segment in self._segments:
            by_seek.setdefault(segment.seek, []).append(segment)
        self.windows = [self._window(seek, mine) for seek, mine in by_seek.items()]

    def _window(self, seek: int, segments: list[Segment]) -> Window:
        end = self.loaded.transcriber.vocabulary.end
        tokens = [t for s in segments for t in s.tokens if t < end]
        # All of them were chosen in this order, and some between them were left out.
        chosen, odds = iter(self._chosen.get(seek, ())), []
        for token in tokens:
            found = next((c for c in chosen if c.id == token), None)
            odds.append(None if found is None else found.probability)
        frames = min(self.loaded.transcriber.frames, self.sound.frames - seek)
        return Window(seek, frames, tokens, odds, [w for s in segments for w in s.words or []])

    def window(self, index: int) -> Window:
        """A window by its number."""
        if self.windows is None:
            raise ValueError("nothing was transcribed yet; begin with speech.transcribe.")
        if index >= len(self.windows):
            raise IndexError(f"there is no window {index} of {len(self.windows)}.")
        return self.windows[index]

    def alignment(self, index: int) -> glass.Alignment:
        """The attention of a window's text to its sound."""
        window = self.window(index)
        if index not in self._aligned:
            transcriber = self.loaded.transcriber
            if self.language is None:  # it was stopped before that was told
                self.language = next(iter(transcriber.detect_language(self.sound.samples)))
            ids = transcriber.text_ids(window.tokens, self.language, self.task)
            mels = self.sound.mels[:, :, window.seek : window.seek + transcriber.frames]
            like = transcriber.model.proj_out.weight
            self._aligned[index] = glass.alignment(
                transcriber.model,
                mels.to(device=like.device, dtype=like.dtype),
                ids,
                heads=self.loaded.heads,
                tokenizer=self.loaded.tokenizer,
                start=len(ids) - len(window.tokens) - 1,
                duration=window.frames / 100,
            )
            while len(self._aligned) > KEPT:
                self._aligned.popitem(last=False)
        self._aligned.move_to_end(index)
        return self._aligned[index]

    def shares(self, index: int, first: int, last: int, start: float, end: float) -> np.ndarray:
        """How much of what each head looks at for some tokens lies in a span of seconds:
        (layers, heads)."""
        found = self.alignment(index)
        rows = [found.start - 1 + i for i in range(first, last)]
        a, b = int(start / found.seconds + 1e-6), int(np.ceil(end / found.seconds - 1e-6))
        out = []
        for layer in found.maps:
            weights = layer.weights(None, rows, found.sample)[0, :, :, : found.keys]
            inside = weights[:, :, a : max(b, a + 1)].sum(-1)
            out.append((inside / weights.sum(-1)).mean(-1).float().numpy())
        made: np.ndarray = np.stack(out).astype(np.float32)
        return made

    def to_json(self) -> dict[str, Any]:
        """The whole of it, but for pictures."""
        made = self.windows
        return {
            "sound": self.sound.to_json(),
            "done": made is not None,
            "language": self.language,
            "sure": self.sure,
            "task": self.task,
            "stopped": self.stopped,
            "windows": [w.to_json(self.loaded.tokenizer) for w in made or ()],
        }
