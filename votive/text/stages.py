"""Decoders of the tokenizers library as state machines that take one token at a time.

Each class does what the decoder of the same name does to a whole list, and holds back only what
a later token could still change. Knows strings; knows no tokenizer.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Protocol

from .pieces import byte_level_bytes, fallback_byte


class Stage(Protocol):
    """Turns pieces into pieces; after a stage with `joins`, everything is one growing piece."""

    joins: bool

    def push(self, piece: str) -> list[str]: ...
    def end(self) -> list[str]: ...


class Each:
    """A decoder that looks at one piece at a time; `fn` gets the piece and whether it is first."""

    joins = False

    def __init__(self, fn: Callable[[str, bool], str]) -> None:
        self.fn = fn
        self.first = True

    def push(self, piece: str) -> list[str]:
        first, self.first = self.first, False
        return [self.fn(piece, first)]

    def end(self) -> list[str]:
        return []


class ByteLevel:
    """Bytes of all tokens in a row, as UTF-8; an incomplete character waits for its rest."""

    joins = True

    def __init__(self) -> None:
        self.utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, piece: str) -> list[str]:
        return [self.utf8.decode(byte_level_bytes(piece))]

    def end(self) -> list[str]:
        return [self.utf8.decode(b"", True)]


class ByteFallback:
    """Runs of `<0xXX>` tokens: their text if they are UTF-8, else one U+FFFD for each.

    A run is judged as a whole, so it waits for its end.
    """

    joins = False

    def __init__(self) -> None:
        self.run = bytearray()

    def push(self, piece: str) -> list[str]:
        byte = fallback_byte(piece) if piece.startswith("<0x") else None
        if byte is not None:
            self.run.append(byte)
            return []
        return [*self.end(), piece]

    def end(self) -> list[str]:
        if not self.run:
            return []
        run, self.run = bytes(self.run), bytearray()
        try:
            return [run.decode()]
        except UnicodeDecodeError:
            return ["\ufffd"] * len(run)


class Fuse:
    """All pieces as one."""

    joins = True

    def push(self, piece: str) -> list[str]:
        return [piece]

    def end(self) -> list[str]:
        return []


class Strip:
    """Up to `start` and `stop` characters `content` taken off the ends of one growing piece."""

    joins = True

    def __init__(self, content: str, start: int, stop: int) -> None:
        self.content, self.left, self.stop = content, start, stop
        self.held = ""

    def push(self, piece: str) -> list[str]:
        while self.left and piece:
            if piece[0] != self.content:
                self.left = 0
            else:
                piece = piece[1:]
                self.left -= 1
        text = self.held + piece
        tail = len(text) - len(text.rstrip(self.content))
        cut = len(text) - min(tail, self.stop)
        self.held = text[cut:]
        return [text[:cut]]

    def end(self) -> list[str]:
        return []  # what is held is what is stripped


class BPESuffix:
    """The end-of-word mark becomes a space, except on the last token."""

    joins = False

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix
        self.held: str | None = None

    def push(self, piece: str) -> list[str]:
        held, self.held = self.held, piece
        return [] if held is None else [held.replace(self.suffix, " ")]

    def end(self) -> list[str]:
        return [] if self.held is None else [self.held.replace(self.suffix, "")]


class CTC:
    """Repeated tokens once, blanks dropped, the word mark as a space."""

    joins = False

    def __init__(self, pad: str, delimiter: str, cleanup: bool) -> None:
        self.pad, self.delimiter, self.cleanup = pad, delimiter, cleanup
        self.last: str | None = None

    def push(self, piece: str) -> list[str]:
        last, self.last = self.last, piece
        if piece == last:
            return []
        text = piece.replace(self.pad, "")
        if self.cleanup:
            text = wordpiece_cleanup(text).replace(self.delimiter, " ")
        return [text] if text else []

    def end(self) -> list[str]:
        return []


class Words:
    """Without a decoder tokens are joined by spaces."""

    joins = False

    def __init__(self) -> None:
        self.first = True

    def push(self, piece: str) -> list[str]:
        first, self.first = self.first, False
        return [piece if first else " " + piece]

    def end(self) -> list[str]:
        return []


class Held:
    """For a decoder that has no form of its own here: all tokens, decoded at the end."""

    joins = True

    def __init__(self, decode: Callable[[list[str]], str]) -> None:
        self.decode = decode
        self.pieces: list[str] = []

    def push(self, piece: str) -> list[str]:
        self.pieces.append(piece)
        return []

    def end(self) -> list[str]:
        return [self.decode(self.pieces)]


# The tokenizers library joins these when a WordPiece or CTC decoder has `cleanup` set; text
# clean-up after decoding knows all but the eighth.
CLEANUP = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
]
TEXT_CLEANUP = [pair for pair in CLEANUP if pair[0] != " do not"]


def wordpiece_cleanup(text: str) -> str:
    """Text without the blanks that pieces leave before punctuation."""
    for old, new in CLEANUP:
        text = text.replace(old, new)
    return text


def clean_up_text(text: str) -> str:
    """Spaces that tokenizing put before punctuation and contractions, removed."""
    for old, new in TEXT_CLEANUP:
        text = text.replace(old, new)
    return text


class CleanUp:
    """`clean_up_text` on one growing piece."""

    joins = True

    def __init__(self) -> None:
        self.held = ""

    def push(self, piece: str) -> list[str]:
        text = self.held + piece
        for cut in range(len(text), 0, -1):
            if self._safe(text, cut):
                self.held = text[cut:]
                return [clean_up_text(text[:cut])]
        self.held = text
        return []

    @staticmethod
    def _safe(text: str, cut: int) -> bool:
        # What clean-up joins begins with a space, is at most four characters long and loses only
        # spaces: nothing reaches over three others, nor over a character that no rule has.
        left = text[max(0, cut - 3) : cut]
        if left[-1] not in " .?!,'ntmsver" or (len(left) == 3 and " " not in left):
            return True
        # Only " ' " has a space inside. (Rows of lone apostrophes do wait for their end: which
        # of their spaces go depends on where the row began.)
        if left[-1] not in " '" and text[cut : cut + 1] == " ":
            return True
        # A run of spaces loses at most two at its end (" ' s": first by "'", then by "'s").
        return left[-1] == " " and text[cut : cut + 3] == "   "

    def end(self) -> list[str]:
        held, self.held = self.held, ""
        return [clean_up_text(held)]


def _metaspace(spec: dict[str, Any]) -> Stage:
    mark, never = spec["replacement"], spec.get("prepend_scheme", "always") == "never"
    return Each(lambda piece, first: piece.replace(mark, "" if first and not never else " "))


def _wordpiece(spec: dict[str, Any]) -> Stage:
    prefix, cleanup = spec["prefix"], spec["cleanup"]

    def fn(piece: str, first: bool) -> str:
        if not first:
            piece = piece.removeprefix(prefix) if piece.startswith(prefix) else " " + piece
        return wordpiece_cleanup(piece) if cleanup else piece

    return Each(fn)


def _replace(spec: dict[str, Any]) -> Stage | None:
    literal = spec["pattern"].get("String")
    if literal:
        return Each(lambda piece, first: piece.replace(literal, spec["content"]))
    return None


def _strip(spec: dict[str, Any], joined: bool) -> Stage:
    content, start, stop = spec["content"], spec["start"], spec["stop"]
    if joined:
        return Strip(content, start, stop)

    def fn(piece: str, first: bool) -> str:
        stage = Strip(content, start, stop)
        return stage.push(piece)[0]

    return Each(fn)


def _single(spec: dict[str, Any], joined: bool) -> Stage | None:
    kind = spec["type"]
    if kind == "Fuse":
        return Fuse()
    if kind == "Strip":
        return _strip(spec, joined)
    if kind == "Replace":
        # In joined text only a mark of one character cannot be cut in two.
        whole = not joined or len(spec["pattern"].get("String", "")) == 1
        return _replace(spec) if whole else None
    if joined:
        return None
    if kind == "ByteLevel":
        return ByteLevel()
    if kind == "ByteFallback":
        return ByteFallback()
    if kind == "Metaspace":
        return _metaspace(spec)
    if kind == "WordPiece":
        return _wordpiece(spec)
    if kind == "BPEDecoder":
        return BPESuffix(spec["suffix"])
    if kind == "CTC":
        return CTC(spec["pad_token"], spec["word_delimiter_token"], spec["cleanup"])
    return None


def build(spec: dict[str, Any] | None, decode: Callable[[list[str]], str]) -> list[Stage]:
    """The stages of a decoder given as in tokenizer.json; `decode` is the decoder itself."""
    if spec is None:
        return [Words()]
    specs = spec["decoders"] if spec["type"] == "Sequence" else [spec]
    stages: list[Stage] = []
    joined = False
    for one in specs:
        stage = _single(one, joined)
        if stage is None:
            return [Held(decode)]
        stages.append(stage)
        joined = joined or stage.joins
    return stages
