"""SentencePiece model files, read without the library that writes them.

The layout is sentencepiece_model.proto (https://github.com/google/sentencepiece), of which only
the pieces and the settings that change the result are read. Knows files and bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..serialization.container import FileFormatError
from .pieces_models import spm_bpe, spm_unigram

# Numbers of fields in sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_UNIGRAM, _BPE = 1, 2


@dataclass
class Model:
    """What a model file holds."""

    tokens: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    kind: int = _UNIGRAM
    ids: dict[str, int] = field(default_factory=dict)
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True


def read(path: Path) -> tuple[Any, dict[str, str]]:
    """The tokenizer of a model file and its named special tokens."""
    data = path.read_bytes()
    if re.match(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n", data):
        raise FileFormatError(
            f"{path}: this is a tiktoken vocabulary (tokens in base64 and their ranks), which says "
            "neither how text is split nor which tokens are special; use the tokenizer.json of the "
            "same model."
        )
    try:
        model = parse(data)
    except (ValueError, IndexError, struct.error) as e:
        raise FileFormatError(f"{path}: this is no SentencePiece model ({e}).") from None
    if not model.tokens:
        raise FileFormatError(f"{path}: this is no SentencePiece model (it has no pieces).")
    ids = {k: i for k, i in model.ids.items() if 0 <= i < len(model.tokens)}
    named = {f"{k}_token": model.tokens[i] for k, i in ids.items()}
    shared: dict[str, Any] = {
        "add_space_prefix": model.add_dummy_prefix,
        "remove_extra_whitespaces": model.remove_extra_whitespaces,
        "charsmap": model.charsmap or None,
    }
    lists = (model.tokens, model.scores, model.types)
    if model.kind == _BPE:
        return spm_bpe(*lists, unknown=named.get("unk_token"), **shared), named
    if model.kind == _UNIGRAM:
        return spm_unigram(*lists, unknown_id=ids.get("unk"), **shared), named
    raise FileFormatError(
        f"{path}: SentencePiece models of words or characters are not supported, only unigram and BPE."
    )


def parse(data: bytes) -> Model:
    """The parts of a serialized model."""
    # The defaults of the trainer, for files that do not name them.
    model = Model(ids={"unk": 0, "bos": 1, "eos": 2, "pad": -1})
    for number, value in _fields(data):
        if number == _PIECES:
            piece = {1: b"", 2: b"\0\0\0\0", 3: 1} | dict(_fields(_bytes(value)))
            model.tokens.append(_bytes(piece[1]).decode())
            model.scores.append(struct.unpack("<f", _bytes(piece[2]))[0])
            model.types.append(_number(piece[3]))
        elif number == _TRAINER:
            for n, v in _fields(_bytes(value)):
                if n == 3:
                    model.kind = _number(v)
                elif n in (40, 41, 42, 43):
                    name = ("unk", "bos", "eos", "pad")[n - 40]
                    # A negative number is stored as its two's complement in 64 bits.
                    model.ids[name] = _number(v) - (1 << 64) * (_number(v) >> 63)
        elif number == _NORMALIZER:
            for n, v in _fields(_bytes(value)):
                if n == 2:
                    model.charsmap = _bytes(v)
                elif n == 3:
                    model.add_dummy_prefix = bool(v)
                elif n == 4:
                    model.remove_extra_whitespaces = bool(v)
    return model


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a field has the wrong type")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise ValueError("a field has the wrong type")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer message: numbers, or bytes for everything else."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown wire type {wire}")
        if at + size > len(data):
            raise ValueError("it is cut off")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for k in range(10):
        if at >= len(data):
            raise ValueError("it is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value, at
    raise ValueError("a number has more than ten bytes")
