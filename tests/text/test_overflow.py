"""What is cut off becomes rows of its own, and tokens, words and characters find each other, as in transformers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from .vocabularies import byte_level, unigram, wordpiece

KINDS = {"byte-level": byte_level, "unigram": unigram, "wordpiece": wordpiece}
PAIR = ("the fox jumps over the lazy dog, again and again.", "who is the dog? the lazy one, not the fox")
ASKED: list[dict[str, Any]] = [
    {"truncation": True, "max_length": 8, "stride": 2},
    {"truncation": True, "max_length": 7, "padding": True},
    {"truncation": True, "max_length": 9, "stride": 3, "padding": "max_length", "padding_side": "left"},
    {"truncation": "only_second", "max_length": 64, "stride": 4, "padding": True, "pad_to_multiple_of": 8},
    {"truncation": "only_first", "max_length": 62, "stride": 1},
]


def pair_of(kind: str, folder: Path) -> tuple[Any, Any]:
    transformers = pytest.importorskip("transformers")
    ours = KINDS[kind]()
    ours.save_pretrained(folder)
    return transformers.PreTrainedTokenizerFast.from_pretrained(folder), ours


@pytest.mark.parity
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_overflow_are_those_of_transformers(kind: str, asked: dict[str, Any], tmp_path: Path) -> None:
    theirs, ours = pair_of(kind, tmp_path)
    first, second = PAIR
    texts = ([first, "dog"], [second, second]) if str(asked["truncation"]).startswith("only") else ([first, "dog"],)
    wanted = {
        "return_overflowing_tokens": True,
        "return_offsets_mapping": True,
        "return_special_tokens_mask": True,
        "return_token_type_ids": True,
        **asked,
    }
    expected, got = theirs(*texts, **wanted), ours(*texts, **wanted)
    assert dict(got) == dict(expected)
    assert max(got["overflow_to_sample_mapping"]) == 1
    for i in range(len(expected["input_ids"])):
        assert got.word_ids(i) == expected.word_ids(i)
        assert got.sequence_ids(i) == expected.sequence_ids(i)
        assert got.tokens(i) == expected.tokens(i)


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_words_and_characters_find_each_other(kind: str, tmp_path: Path) -> None:
    theirs, ours = pair_of(kind, tmp_path)
    asked: dict[str, Any] = {"padding": True, "padding_side": "left"}
    expected, got = (
        theirs(*([text, text[::-1]] for text in PAIR), **asked),
        ours(*([text, text[::-1]] for text in PAIR), **asked),
    )
    assert (got.is_fast, got.n_sequences) == (True, expected.n_sequences)
    for row in range(2):
        for token in range(len(got.input_ids[row])):
            for name in ("token_to_sequence", "token_to_word", "token_to_chars"):
                found = getattr(got, name)(row, token)
                assert found == getattr(expected, name)(row, token), (name, token)
                assert found == getattr(got, name)(row, token - len(got.input_ids[row]))
        for text in range(2):
            for at in range(0, 30, 3):
                for name in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars"):
                    found = getattr(got, name)(row, at, sequence_index=text)
                    try:
                        wanted = getattr(expected, name)(row, at, sequence_index=text)
                    except TypeError:  # its way of saying that there is none
                        wanted = None
                    assert found == wanted, (name, at)


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_become_a_text_as_in_transformers(kind: str, tmp_path: Path) -> None:
    theirs, ours = pair_of(kind, tmp_path)
    tokens = ours.tokenize(PAIR[0])
    assert ours.convert_tokens_to_string(tokens) == theirs.convert_tokens_to_string(tokens)


def test_each_row_begins_with_the_end_of_the_one_before() -> None:
    tok = byte_level()
    found = tok(PAIR[0], truncation=True, max_length=6, stride=2, return_overflowing_tokens=True)
    whole, rows = tok.encode(PAIR[0]), [row.ids for row in found.encodings]
    assert found.overflow_to_sample_mapping == [0] * len(rows)
    assert [token for i, row in enumerate(rows) for token in row[2 if i else 0 :]] == whole
    assert all(a[-2:] == b[:2] for a, b in pairwise(rows))


def test_one_text_may_be_several_rows() -> None:
    tok = byte_level()
    found = tok("the fox", return_overflowing_tokens=True)
    assert found["input_ids"] == [tok.encode("the fox")]
    assert found["overflow_to_sample_mapping"] == [0]


@pytest.mark.parametrize("stride", [-1, 3, 9])
def test_a_stride_that_never_ends_is_refused(stride: int) -> None:
    with pytest.raises(ValueError, match=rf"stride={stride} of max_length=5 would never come to the end.*use 0..2"):
        wordpiece()(PAIR[0], truncation=True, max_length=5, stride=stride, return_overflowing_tokens=True)


def test_padding_belongs_to_no_word() -> None:
    found = wordpiece()(["do", "the lazy dog"], padding=True)
    assert found.word_ids(0)[3:] == [None] * (len(found.input_ids[0]) - 3)
    assert found.token_to_chars(0, -1) in (None, (0, 0))
