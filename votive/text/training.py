"""Byte-level BPE vocabularies learned from text. Knows texts and files; knows no model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .pretokenizers import byte_level_split
from .tokenizer import Tokenizer

# Enough for long words and runs at the cut to count for nothing.
_CHUNK = 1 << 20


def train_bpe(
    data: Path | Iterable[str | Path],
    vocab_size: int,
    *,
    special_tokens: Sequence[str] = ("<|endoftext|>",),
    bos_token: str | None = None,
    eos_token: str | None = None,
    pad_token: str | None = None,
    min_frequency: int = 2,
    split: str = "qwen2",
    progress: bool = True,
    chat_template: str | None = None,
    model_max_length: int | None = None,
) -> Tokenizer:
    """A byte-level BPE tokenizer learned from texts (strings) or files (`Path`s).

    All 256 bytes are in the vocabulary, so that every text comes back from its ids as it was. The
    special tokens come first, in order; the first of them is the end and the padding token unless
    others are named. `split` is the rule that cuts text into words first, one of
    `votive.text.PRE_TOKENIZERS` ("gpt-2", "qwen2" with single digits, "llama-bpe", …). The same
    data give the same vocabulary.

    >>> tok = votive.text.train_bpe(["low lower lowest"] * 2, vocab_size=262, progress=False)
    >>> tok.tokenize("lower")
    ['low', 'e', 'r']
    """
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    specials = list(dict.fromkeys(special_tokens))
    for token in (bos_token, eos_token, pad_token):
        if token is not None and token not in specials:
            specials.append(token)
    if vocab_size < 256 + len(specials):
        raise ValueError(
            f"train_bpe: vocab_size={vocab_size} is too small; 256 bytes and {len(specials)} "
            f"special tokens need {256 + len(specials)}."
        )
    backend: Any = Backend(models.BPE())
    backend.pre_tokenizer = byte_level_split(split)
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=progress,
    )
    backend.train_from_iterator(_texts(data), trainer)
    first = specials[0] if specials else None
    named = {"bos_token": bos_token, "eos_token": eos_token or first, "pad_token": pad_token or first}
    return Tokenizer(
        backend,
        special_tokens={k: v for k, v in named.items() if v is not None},
        extra_special_tokens=[t for t in specials if t not in named.values()],
        chat_template=chat_template,
        model_max_length=model_max_length,
    )


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        raise TypeError(
            "train_bpe: a lone string could be a text or the name of a file; pass [text] or pathlib.Path(name)."
        )
    for item in [data] if isinstance(data, Path) else data:
        if isinstance(item, Path):
            yield from _chunks(item)
        elif isinstance(item, str):
            yield item
        else:
            raise TypeError(f"train_bpe: texts and Paths are read; got {type(item).__name__}.")


def _chunks(path: Path) -> Iterator[str]:
    """A file in parts that end where a line does."""
    with path.open(encoding="utf-8", newline="") as f:
        while part := f.read(_CHUNK):
            yield part + f.readline()
