"""What callers hand to a tokenizer, checked and brought into one form. Knows no tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor

# Of tokens: a number, rows of them, an array, a tensor or an encoding.
Ids = int | Sequence[int] | Sequence[Sequence[int]] | np.ndarray | Tensor | Mapping[str, Any]
# A text or its words, or a batch of them or of pairs.
Text = str | Sequence[str] | Sequence[Sequence[str]]


def asked_or(asked: bool | None, default: bool) -> bool:
    """What was asked for, or else the default."""
    return default if asked is None else asked


def plain_ids(ids: Any) -> Any:
    """Ids as numbers and lists, from an array, a tensor or an encoding."""
    if isinstance(ids, Mapping):
        ids = ids["input_ids"]
    return ids.tolist() if hasattr(ids, "tolist") else ids


def checked_id(i: int) -> int:
    """A token id; negative numbers are an error."""
    if i < 0:
        raise ValueError(f"tokenizer: {i} is not a token id; remove masked positions (such as -100) before decoding.")
    return int(i)


def batch_of(text: Any, pair: Any, words: bool) -> tuple[list[Any], bool]:
    """The batch as the tokenizers library takes it, and whether it is one text."""
    if words:
        single = not text or isinstance(text[0], str)
    else:
        single = isinstance(text, str)
    if not single and not isinstance(text, (list, tuple)):
        raise TypeError(f"tokenizer: a text, a list of texts or a list of pairs is encoded; got {type(text).__name__}.")
    if pair is None:
        batch = [text] if single else [_checked(t, words) for t in text]
        return batch, single
    if single:
        return [(text, pair)], True
    if isinstance(pair, str) or len(pair) != len(text):
        raise ValueError("tokenizer: text_pair needs one text for each of the batch.")
    return list(zip(text, pair)), False


def _checked(item: Any, words: bool) -> Any:
    if words:
        return list(item)
    if isinstance(item, str):
        return item
    if isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(t, str) for t in item):
        return tuple(item)
    raise TypeError(
        f"tokenizer: each item of a batch is a text or a pair of texts; got {item!r:.80}. Lists of "
        "words need is_split_into_words=True."
    )
