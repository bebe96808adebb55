"""What was said: words, segments and the whole, and how they are written to files.

Formats are those of OpenAI's program: txt, srt, vtt, tsv and json. Knows no model.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..serialization.atomic import replacing

FORMATS = ("txt", "srt", "vtt", "tsv", "json")


@dataclass
class Word:
    """A word with its seconds and how likely it was; a space before it belongs to it.

    >>> votive.speech.Word(" hello", 0.5, 0.9, 0.98).end
    0.9
    """

    word: str
    start: float
    end: float
    probability: float


@dataclass
class Segment:
    """A stretch of speech between two points in time, in seconds.

    `seek` is the frame at which its window began; the other numbers tell how sure the model was.

    >>> votive.speech.Segment(start=0.0, end=1.5, text=" Hello.").text
    ' Hello.'
    """

    id: int = 0
    seek: int = 0
    start: float = 0.0
    end: float = 0.0
    text: str = ""
    tokens: list[int] = field(default_factory=list)
    temperature: float = 0.0
    avg_logprob: float = 0.0
    compression_ratio: float = 0.0
    no_speech_prob: float = 0.0
    words: list[Word] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All fields; words only where they were asked for."""
        found = asdict(self)
        if self.words is None:
            found.pop("words")
        return found


@dataclass
class Transcript:
    """A whole recording: its text, its segments, its language and its length in seconds.

    >>> one = votive.speech.Segment(start=0.0, end=1.5, text=" Hello.")
    >>> found = votive.speech.Transcript(" Hello.", [one], "en", 1.5)
    >>> print(found.format("vtt"))
    WEBVTT
    <BLANKLINE>
    00:00.000 --> 00:01.500
    Hello.
    <BLANKLINE>
    """

    text: str
    segments: list[Segment]
    language: str
    duration: float = 0.0
    language_probability: float | None = None

    @property
    def words(self) -> list[Word]:
        """The words of all segments; empty unless they were asked for."""
        return [w for s in self.segments for w in s.words or []]

    def to_dict(self) -> dict[str, Any]:
        """As a JSON file holds it."""
        found: dict[str, Any] = {
            "text": self.text,
            "segments": [s.to_dict() for s in self.segments],
            "language": self.language,
            "duration": self.duration,
        }
        if self.language_probability is not None:
            found["language_probability"] = self.language_probability
        return found

    def format(self, format: str = "txt") -> str:
        """The text of a file: "txt" (a line for each segment), "srt", "vtt", "tsv" or "json"."""
        if format not in FORMATS:
            raise ValueError(f"Transcript.format: {format!r} is none of {', '.join(FORMATS)}.")
        return _WRITERS[format](self)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write a file; its ending tells the format unless that is given."""
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower() if format is None else format
        text = self.format(kind)
        with replacing(path) as f:
            f.write(text.encode())

    def __str__(self) -> str:
        return self.text.strip()


def timestamp(seconds: float, *, hours: bool = False, mark: str = ".") -> str:
    """A point in time as subtitles write it.

    >>> from votive.speech.transcript import timestamp
    >>> timestamp(75.5), timestamp(3601.001, mark=","), timestamp(1.0, hours=True)
    ('01:15.500', '01:00:01,001', '00:00:01.000')
    """
    if seconds < 0:
        raise ValueError(f"timestamp: a recording has no time {seconds}.")
    total = round(seconds * 1000)
    minutes, rest = divmod(total, 60_000)
    hour, minutes = divmod(minutes, 60)
    lead = f"{hour:02d}:" if hours or hour else ""
    return f"{lead}{minutes:02d}:{rest // 1000:02d}{mark}{rest % 1000:03d}"


def _spoken(found: Transcript) -> list[Segment]:
    return [s for s in found.segments if s.text.strip()]


def _line(segment: Segment) -> str:
    # The arrow parts times in subtitles, and an empty line ends one.
    return " ".join(segment.text.replace("-->", "->").split())


def _txt(found: Transcript) -> str:
    return "".join(f"{segment.text.strip()}\n" for segment in _spoken(found))


def _srt(found: Transcript) -> str:
    def at(seconds: float) -> str:
        return timestamp(seconds, hours=True, mark=",")

    return "".join(f"{i}\n{at(s.start)} --> {at(s.end)}\n{_line(s)}\n\n" for i, s in enumerate(_spoken(found), 1))


def _vtt(found: Transcript) -> str:
    parts = [f"{timestamp(s.start)} --> {timestamp(s.end)}\n{_line(s)}\n\n" for s in _spoken(found)]
    return "WEBVTT\n\n" + "".join(parts).rstrip("\n") + ("\n" if parts else "")


def _tsv(found: Transcript) -> str:
    rows = [f"{round(1000 * s.start)}\t{round(1000 * s.end)}\t{_line(s)}\n" for s in _spoken(found)]
    return "start\tend\ttext\n" + "".join(rows)


def _json(found: Transcript) -> str:
    return json.dumps(found.to_dict(), ensure_ascii=False) + "\n"


_WRITERS = {"txt": _txt, "srt": _srt, "vtt": _vtt, "tsv": _tsv, "json": _json}
