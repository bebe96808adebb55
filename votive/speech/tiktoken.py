"""The vocabularies that OpenAI's Whisper comes with: `multilingual.tiktoken` and `gpt2.tiktoken`.

A line is a token in base64 and its rank; pieces are joined by the least rank, so ranks say all that
merges say. Special tokens are not in the file: their number tells the language model's kind.
"""

from __future__ import annotations

import base64
import binascii
import os
from itertools import pairwise
from pathlib import Path

from ..models.whisper_languages import LANGUAGES
from ..serialization.container import FileFormatError
from ..text import Tokenizer, from_gguf
from ..text.pieces import byte_level_spelling

_NORMAL, _CONTROL = 1, 3
_LARGEST = 16 << 20
_SIGNS = ("startoflm", "startofprev", "nospeech", "notimestamps")


def from_tiktoken(path: str | os.PathLike[str], languages: int = 99) -> Tokenizer:
    """A tokenizer of Whisper from the ranks of OpenAI's package; large-v3 knows 100 `languages`.

    >>> import base64, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "small.tiktoken")
    >>> pieces = [*(bytes([i]) for i in range(256)), b"he", b"ll", b"llo"]
    >>> lines = [f"{base64.b64encode(p).decode()} {i}" for i, p in enumerate(pieces)]
    >>> _ = file.write_text("\\n".join(lines))
    >>> tok = votive.speech.from_tiktoken(file)
    >>> tok.encode("hello"), tok.convert_tokens_to_ids("<|startoftranscript|>")
    ([256, 258], 260)
    """
    path = Path(path)
    if not 0 < languages <= len(LANGUAGES):
        raise ValueError(f"from_tiktoken: languages must be 1 to {len(LANGUAGES)}.")
    ranks = _ranks(path)
    ordered = sorted(ranks, key=ranks.__getitem__)
    if [ranks[piece] for piece in ordered] != list(range(len(ordered))):
        raise FileFormatError(f"{path.name}: the ranks are not 0, 1, 2, …; it is damaged.")
    pieces = [byte_level_spelling(piece) for piece in ordered]
    special = ["endoftext", "startoftranscript", *list(LANGUAGES)[:languages]]
    special += ["translate", "transcribe", *_SIGNS]
    tokens = [*pieces, *(f"<|{name}|>" for name in special)]
    pairs = (_halves(piece, ranks) for piece in ordered if len(piece) > 1)
    merges = [f"{byte_level_spelling(a)} {byte_level_spelling(b)}" for a, b in pairs]
    types = [_NORMAL] * len(pieces) + [_CONTROL] * len(special)
    return from_gguf(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.eos_token_id": len(pieces),
        }
    )


def _ranks(path: Path) -> dict[bytes, int]:
    if path.stat().st_size > _LARGEST:
        raise FileFormatError(f"{path.name}: {path.stat().st_size:,} bytes are too many for a vocabulary.")
    found: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            piece, rank = line.split()
            found[base64.b64decode(piece)] = int(rank)
        except (ValueError, binascii.Error):
            raise FileFormatError(f"{path.name}: line {number} is not a token in base64 and its rank.") from None
    if not found:
        raise FileFormatError(f"{path.name}: it holds no tokens.")
    return found


def _halves(piece: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two parts that a piece is joined from: what lesser ranks make of it."""
    own = ranks[piece]
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 2:
        joined = [ranks.get(a + b, own) for a, b in pairwise(parts)]
        least = min(joined)
        if least >= own:
            break
        at = joined.index(least)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    if len(parts) != 2:
        raise FileFormatError(f"no two tokens make {piece!r:.40}; the vocabulary is damaged.")
    return parts[0], parts[1]
