"""What a tokenizer returns: named columns of ids, padded and turned into arrays on request.

Knows lists, NumPy arrays and tensors; knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..surface.interchange import from_numpy

if TYPE_CHECKING:
    from ..core.device import device as Device

TENSORS = ("vt", "np")


class CharSpan(NamedTuple):
    """Characters of a text from `start` to before `end`."""

    start: int
    end: int


class TokenSpan(NamedTuple):
    """Tokens of a row from `start` to before `end`."""

    start: int
    end: int


def _span(kind: Any, found: tuple[int, int] | None) -> Any:
    return None if found is None else kind(*found)


class BatchEncoding(dict[str, Any]):
    """The columns of an encoded text or batch: a dict whose entries are attributes as well.

    >>> tok = votive.text.train_bpe(["a small text"], vocab_size=300, progress=False)
    >>> enc = tok("text", return_tensors="vt")
    >>> enc.input_ids.shape == enc["input_ids"].shape
    True
    """

    def __init__(self, columns: Mapping[str, Any], encodings: Sequence[Any] = (), single: bool = False) -> None:
        super().__init__(columns)
        # The rows as the tokenizers library made them: what a character or word belongs to.
        self.encodings = list(encodings)
        self._single = single

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"BatchEncoding has no column {name!r}; it has {', '.join(self)}.")

    def _row(self, i: int) -> Any:
        if not self.encodings:
            raise ValueError(
                "BatchEncoding: only what a tokenizer call returned knows where its tokens come "
                "from; this one was made from ids alone."
            )
        return self.encodings[i]

    @property
    def is_fast(self) -> bool:
        """Whether it is known where tokens come from.

        >>> votive.text.BatchEncoding({"input_ids": [[1]]}).is_fast
        False
        """
        return bool(self.encodings)

    @property
    def n_sequences(self) -> int | None:
        """How many texts each row was made of: 2 of pairs; None where that is not known."""
        return self.encodings[0].n_sequences if self.encodings else None

    def tokens(self, batch_index: int = 0) -> list[str]:
        """The tokens of a row, as written in the vocabulary."""
        return self._row(batch_index).tokens

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """For each token of a row, the word it belongs to; None for special tokens and padding.

        >>> tok = votive.text.train_bpe(["one two"], vocab_size=300, progress=False)
        >>> tok(["a", "bc", "d"], is_split_into_words=True).word_ids()
        [0, 1, 1, 2]
        """
        return self._row(batch_index).word_ids

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """For each token of a row, which text of the pair it comes from; None for special ones."""
        return self._row(batch_index).sequence_ids

    def _at(self, batch_or_index: int, index: int | None) -> tuple[Any, int]:
        """A row and a place in it, of `(place)` for one text or `(row, place)` for a batch; negative ones count from
        the end.
        """
        row, at = (0, batch_or_index) if index is None else (batch_or_index, index)
        return self._row(row), at

    def _token(self, batch_or_token: int, token: int | None) -> tuple[Any, int]:
        row, at = self._at(batch_or_token, token)
        return row, at + len(row.ids) if at < 0 else at

    def token_to_sequence(self, batch_or_token_index: int, token_index: int | None = None) -> int | None:
        """Which text of the pair a token comes from: `(token)` for one text, `(row, token)` for a batch."""
        row, at = self._token(batch_or_token_index, token_index)
        return row.token_to_sequence(at)

    def token_to_word(self, batch_or_token_index: int, token_index: int | None = None) -> int | None:
        """The word of a token: `(token)` for one text, `(row, token)` for a batch."""
        row, at = self._token(batch_or_token_index, token_index)
        return row.token_to_word(at)

    def token_to_chars(self, batch_or_token_index: int, token_index: int | None = None) -> CharSpan | None:
        """The span of characters of a token: `(token)` for one text, `(row, token)` for a batch."""
        row, at = self._token(batch_or_token_index, token_index)
        return _span(CharSpan, row.token_to_chars(at))

    def word_to_tokens(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> TokenSpan | None:
        """The tokens of a word: `(word)` for one text, `(row, word)` for a batch."""
        row, at = self._at(batch_or_word_index, word_index)
        return _span(TokenSpan, row.word_to_tokens(at, sequence_index))

    def word_to_chars(
        self, batch_or_word_index: int, word_index: int | None = None, sequence_index: int = 0
    ) -> CharSpan | None:
        """The span of characters of a word: `(word)` for one text, `(row, word)` for a batch."""
        row, at = self._at(batch_or_word_index, word_index)
        return _span(CharSpan, row.word_to_chars(at, sequence_index))

    def char_to_token(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """The token that holds a character: `(char)` for one text, `(row, char)` for a batch."""
        row, at = self._at(batch_or_char_index, char_index)
        return row.char_to_token(at, sequence_index)

    def char_to_word(
        self, batch_or_char_index: int, char_index: int | None = None, sequence_index: int = 0
    ) -> int | None:
        """The word that holds a character: `(char)` for one text, `(row, char)` for a batch."""
        row, at = self._at(batch_or_char_index, char_index)
        return row.char_to_word(at, sequence_index)

    def to(self, device: Device | str) -> BatchEncoding:
        """The same columns with every tensor on another device."""
        moved = {k: v.to(device) if hasattr(v, "to") else v for k, v in self.items()}
        return BatchEncoding(moved, self.encodings, self._single)


def pad_rows(rows: list[list[Any]], length: int, side: str, value: object) -> list[list[Any]]:
    """Rows brought to one length; longer rows stay as they are."""
    if side == "left":
        return [[value] * (length - len(r)) + list(r) for r in rows]
    return [list(r) + [value] * (length - len(r)) for r in rows]


def check_tensors(return_tensors: str | None) -> None:
    """Raise where `return_tensors` names no known kind."""
    if return_tensors is not None and return_tensors not in TENSORS:
        raise ValueError(
            f"return_tensors={return_tensors!r} is not known; use 'vt' (votive tensors), 'np' "
            "(NumPy arrays) or None (lists)."
        )


def as_arrays(columns: Mapping[str, list[Any]], kind: str) -> dict[str, Any]:
    """Lists of rows as int64 arrays or tensors, which needs rows of one length."""
    made: dict[str, Any] = {}
    for name, rows in columns.items():
        if rows and isinstance(rows[0], list) and len({len(r) for r in rows}) > 1:
            raise ValueError(
                f"return_tensors={kind!r}: the rows of {name} have lengths "
                f"{sorted({len(r) for r in rows})}; pass padding=True (and truncation=True with "
                "max_length where texts are too long)."
            )
        array = np.asarray(rows, dtype=np.int64)
        if not array.size and rows:
            array = array.reshape(len(rows), 0)
        made[name] = from_numpy(array) if kind == "vt" else array
    return made
