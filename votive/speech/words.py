"""Words and when they were said, from the attention of a window's whole text to its sound.

As OpenAI's program finds them: one pass over the text, the way of least cost through its alignment
heads, then words that last too long are cut where a sentence or a segment ends.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..models.whisper_languages import UNSPACED
from .segments import PRECISION, STRIDE
from .timing import alignment_matrix, jumps
from .transcript import Segment, Word

if TYPE_CHECKING:
    from ..models.whisper_vocabulary import Vocabulary
    from ..text import Tokenizer
    from .window import Window

PREPENDED = "\"'“¿([{-"
APPENDED = "\"'.。,，!！?？:：”)]}、"
_SENTENCE_ENDS = ".。!！?？"
_LONGEST = 0.7  # seconds that the median word may last, at most


@dataclass
class WordTiming:
    """A word of a window: its text, its tokens, and seconds from the window's beginning."""

    word: str
    tokens: list[int]
    start: float
    end: float
    probability: float


def characters(tokenizer: Tokenizer, tokens: list[int]) -> list[tuple[str, list[int]]]:
    """Tokens joined until they are whole characters, and what they say."""
    found: list[tuple[str, list[int]]] = []
    raw, held = b"", []
    for token in tokens:
        raw += tokenizer.token_bytes(token)
        held.append(token)
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                continue  # the next token goes on with it
            text = raw.decode(errors="replace")
        found.append((text, held))
        raw, held = b"", []
    if held:
        found.append((raw.decode(errors="replace"), held))
    return found


def split_words(tokenizer: Tokenizer, tokens: list[int], language: str) -> list[tuple[str, list[int]]]:
    """Tokens joined to words: at spaces and punctuation, or each character where none are used."""
    parts = characters(tokenizer, tokens)
    if language in UNSPACED:
        return parts
    words: list[tuple[str, list[int]]] = []
    for text, ids in parts:
        alone = text.startswith(" ") or text.strip() in string.punctuation
        if alone or not words:
            words.append((text, list(ids)))
        else:
            words[-1] = (words[-1][0] + text, words[-1][1] + ids)
    return words


def find_alignment(
    window: Window,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    prefix: list[int],
    tokens: list[int],
    heads: list[list[int]],
    frames: int,
    language: str,
) -> list[WordTiming]:
    """When each word of a window's text was said; `prefix` are start, language and task."""
    if not tokens:
        return []
    ids = [*prefix, vocabulary.first_time - 1, *tokens, vocabulary.end]
    weights, logits = window.attention(ids, heads)
    weights = weights[:, :, : max(frames // STRIDE, 1)]
    weights = weights / weights.sum(-1, keepdim=True)
    matrix = alignment_matrix(weights, window.model.config.median_filter_width)
    # A row says what is heard while the next token is chosen, so the first is that before the text.
    times = jumps(matrix[len(prefix) : -1]) * PRECISION
    odds = logits[len(prefix) : len(prefix) + len(tokens), : vocabulary.end].softmax(-1).numpy()
    likely = odds[np.arange(len(tokens)), tokens]
    words = split_words(tokenizer, tokens, language)
    ends = np.cumsum([len(ids) for _, ids in words])
    found, first = [], 0
    for (text, own), last in zip(words, ends.tolist(), strict=True):
        mean = float(likely[first:last].mean())
        found.append(WordTiming(text, own, float(times[first]), float(times[last]), mean))
        first = last
    return found


def merge_punctuation(words: list[WordTiming], prepended: str, appended: str) -> list[WordTiming]:
    """Words with the marks that belong to them, before or behind.

    >>> from votive.speech.words import WordTiming, merge_punctuation
    >>> words = [WordTiming(" (", [1], 0, 1, 1.0), WordTiming("so", [2], 1, 2, 1.0), WordTiming(",", [3], 2, 3, 1)]
    >>> [w.word for w in merge_punctuation(words, "(", ",")]
    [' (so,']
    """
    forward: list[WordTiming] = []
    for word in reversed(words):
        before = word.word.startswith(" ") and word.word.strip() in prepended
        if before and forward:
            forward[-1].word = word.word + forward[-1].word
            forward[-1].tokens = word.tokens + forward[-1].tokens
        else:
            forward.append(word)
    merged: list[WordTiming] = []
    for word in reversed(forward):
        if merged and word.word in appended and not merged[-1].word.endswith(" "):
            merged[-1].word += word.word
            merged[-1].tokens = merged[-1].tokens + word.tokens
        else:
            merged.append(word)
    return merged


def _usual(words: list[WordTiming]) -> float:
    """How long a word lasts, by the median."""
    lasting = [w.end - w.start for w in words if w.end != w.start]
    return min(_LONGEST, float(np.median(lasting))) if lasting else 0.0


def _cut_at_sentences(words: list[WordTiming], usual: float) -> None:
    """A word beside the end of a sentence lasts for two usual ones at most: the rest is pause."""
    for before, word in pairwise(words):
        if word.end - word.start <= 2 * usual:
            continue
        if word.word in _SENTENCE_ENDS:
            word.end = word.start + 2 * usual
        elif before.word in _SENTENCE_ENDS:
            word.start = word.end - 2 * usual


def add_word_timestamps(
    segments: list[Segment],
    words: list[WordTiming],
    *,
    end_of_text: int,
    offset: float,
    spoken_until: float,
    prepended: str = PREPENDED,
    appended: str = APPENDED,
) -> float:
    """Give each segment of a window its words, and ends that fit them; tells when speech ended."""
    usual = _usual(words)
    if usual:
        _cut_at_sentences(words, usual)
    rest = merge_punctuation(words, prepended, appended)
    for segment in segments:
        wanted, have = sum(t < end_of_text for t in segment.tokens), 0
        mine: list[Word] = []
        while rest and have < wanted:
            one = rest.pop(0)
            have += len(one.tokens)
            start, end = round(offset + one.start, 2), round(offset + one.end, 2)
            mine.append(Word(one.word, start, end, one.probability))
        segment.words = mine
        if mine:
            _after_pause(mine, usual, spoken_until)
            _fit(segment, mine, usual)
            spoken_until = segment.end
    return spoken_until


def _after_pause(words: list[Word], usual: float, spoken_until: float) -> None:
    """The first words after a pause do not last for the pause."""
    first, second = words[0], words[1] if len(words) > 1 else None
    if first.end - spoken_until <= 4 * usual:
        return
    long = first.end - first.start > 2 * usual
    both = second is not None and second.end - first.start > 4 * usual
    if not (long or both):
        return
    if second is not None and second.end - second.start > 2 * usual:
        first.end = second.start = max(second.end / 2, second.end - 2 * usual)
    first.start = max(0.0, first.end - 2 * usual)


def _fit(segment: Segment, words: list[Word], usual: float) -> None:
    """Let a segment begin and end with its words, unless these last too long."""
    first, last = words[0], words[-1]
    if first.start < segment.start - 0.5 and segment.start < first.end:
        first.start = max(0.0, min(first.end - usual, segment.start))
    else:
        segment.start = first.start
    if last.start < segment.end < last.end - 0.5:
        last.end = max(last.start + usual, segment.end)
    else:
        segment.end = last.end
