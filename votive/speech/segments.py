"""Where a window's text is split at its timestamps, and where the next window begins.

Pure functions over lists of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STRIDE = 2  # frames of the mels for one position of the encoder
PRECISION = 0.02  # seconds of one position


@dataclass(frozen=True)
class Split:
    """Parts of a window's tokens, each (first, behind the last, start, end), times in positions.

    `advance` is by how many frames the next window begins later; `whole` tells that the last part
    ended with a single point in time, so that nothing is said after it; `paired` that pairs of
    points in time parted the text.
    """

    parts: Sequence[tuple[int, int, float, float]]
    advance: int
    whole: bool
    paired: bool


def split_segments(tokens: list[int], first_time: int, frames: int) -> Split:
    """Split the tokens of a window of `frames`; `first_time` is the token of 0.0 seconds.

    >>> from votive.speech.segments import split_segments
    >>> split_segments([100, 7, 150, 150, 8, 199], 100, 3000).parts
    [(0, 3, 0, 50), (3, 6, 50, 99)]
    """
    marks = [t >= first_time for t in tokens]
    whole = marks[-2:] == [False, True]
    pairs = [i + 1 for i in range(len(marks) - 1) if marks[i] and marks[i + 1]]
    if pairs:
        ends = [*pairs, len(tokens)] if whole else pairs
        starts = [0, *ends[:-1]]
        parts = [(a, b, tokens[a] - first_time, tokens[b - 1] - first_time) for a, b in zip(starts, ends, strict=True)]
        # What follows the last pair was cut by the window's end, and is heard again.
        advance = frames if whole else (tokens[ends[-1] - 1] - first_time) * STRIDE
        return Split(parts, advance, whole, True)
    times = [t for t in tokens if t >= first_time]
    length = frames / STRIDE
    if times and times[-1] != first_time:
        length = times[-1] - first_time
    return Split([(0, len(tokens), 0, length)], frames, whole, False)
