"""From a text file to a tokenizer and two token files: what is trained on, what is held out.

Knows texts and files; knows no model.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.tokens import TokenFile
from ..serialization.atomic import replacing

if TYPE_CHECKING:
    from ..text import Tokenizer

END = "<|endoftext|>"
_NOTE = "corpus.json"
# Texts are read and encoded in parts of this many characters that end with a line.
_PART = 1 << 18


@dataclass(frozen=True)
class Corpus:
    """A tokenizer and the tokens of both parts of a text."""

    tokenizer: Any
    train: TokenFile
    held_out: TokenFile


def prepare(
    text: Path,
    folder: Path,
    *,
    vocab_size: int,
    held_out: float = 0.0,
    separator: str | None = None,
    tokenizer: Tokenizer | None = None,
    unchanged: bool = False,
) -> Corpus:
    """Learn a tokenizer on a text file unless one is given, and write its tokens into `folder`.

    What lies there already and was made from the same text in the same way is used again; with
    `unchanged` anything else is an error. The vocabulary is learned without the part held out.

    >>> import tempfile, pathlib
    >>> text = pathlib.Path(tempfile.mkdtemp(), "text.txt")
    >>> _ = text.write_text("one two three\\n" * 50)
    >>> corpus = votive.train.corpus.prepare(text, text.parent, vocab_size=270, held_out=0.1)
    >>> corpus.tokenizer.decode(corpus.train[:3])
    'one two three'
    """
    note = {
        "sha256": _fingerprint(text),
        "vocab_size": vocab_size,
        "held_out": held_out,
        "separator": separator,
        "tokenizer": None if tokenizer is None else _identity(tokenizer),
    }
    files = folder / "train.tokens", folder / "held_out.tokens"
    if _noted(folder) == note and all(p.is_file() for p in files):
        if tokenizer is None:
            from ..text import Tokenizer

            tokenizer = Tokenizer.from_pretrained(folder)
        return Corpus(tokenizer, *map(TokenFile, files))
    if unchanged:
        raise ValueError(f"{text} or its tokenizer is not what {folder} was made from.")
    train, rest = _documents(text, held_out, separator)
    if tokenizer is None:
        from ..text import train_bpe

        parts = itertools.chain.from_iterable(map(_parts, train))
        tokenizer = train_bpe(parts, vocab_size, special_tokens=(END,), eos_token=END, progress=False)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    wide = np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32
    written = [
        TokenFile.write(path, _encoded(documents, tokenizer), dtype=wide)
        for path, documents in zip(files, (train, rest))
    ]
    with replacing(folder / _NOTE) as f:
        f.write(json.dumps(note).encode())
    return Corpus(tokenizer, *written)


def _documents(path: Path, held_out: float, separator: str | None) -> tuple[list[str], list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise ValueError(f"{path} is not UTF-8 text: {e}.") from None
    if not text.strip():
        raise ValueError(f"{path} holds no text.")
    cut = round(len(text) * (1 - held_out))
    if held_out:
        # The next line begins the part that is held out, so that no word is in both.
        at = text.find("\n", cut)
        cut = at + 1 if at >= 0 else cut
    return _split(text[:cut], separator), _split(text[cut:], separator)


def _split(text: str, separator: str | None) -> list[str]:
    documents = text.split(separator) if separator else [text]
    return [d for d in documents if d.strip()]


def _parts(text: str) -> Iterator[str]:
    """A text in pieces of moderate size that end where a line does."""
    start = 0
    while start < len(text):
        at = text.find("\n", start + _PART)
        end = len(text) if at < 0 else at + 1
        yield text[start:end]
        start = end


def _encoded(documents: list[str], tokenizer: Tokenizer) -> Iterator[Any]:
    """The ids of each document, with the end token behind it."""
    for document in documents:
        for part in _parts(document):
            yield np.array(tokenizer.encode(part, add_special_tokens=False), np.int64)
        if tokenizer.eos_token_id is not None:
            yield np.array([tokenizer.eos_token_id], np.int64)


def _fingerprint(path: Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _identity(tokenizer: Tokenizer) -> str:
    words = sorted(tokenizer.get_vocab().items())
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def _noted(folder: Path) -> Any:
    try:
        return json.loads((folder / _NOTE).read_bytes())
    except (OSError, ValueError):
        return None
