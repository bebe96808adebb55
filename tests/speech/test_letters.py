"""Moments become letters, and letters ids, as in transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.speech import Wav2Vec2CTCTokenizer

VOCAB = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "|": 4, "A": 5, "B": 6, "L": 7, "O": 8, "'": 9, "CH": 10, "E": 11}
TEXTS = ["HELLO BOB", "ABLE", " ALL  OBOE ", "", "CHALLE <unk> A<s>B", "A'B", "x LOOCH E"]


def both(folder: Path, **settings: Any) -> tuple[Any, Wav2Vec2CTCTokenizer]:
    transformers = pytest.importorskip("transformers")
    (folder / "vocab.json").write_text(json.dumps(VOCAB))
    theirs = transformers.Wav2Vec2CTCTokenizer(str(folder / "vocab.json"), **settings)
    return theirs, Wav2Vec2CTCTokenizer(VOCAB, **settings)


@pytest.mark.parity
@pytest.mark.parametrize("settings", [{}, {"do_lower_case": True}, {"replace_word_delimiter_char": "_"}])
def test_texts_and_moments_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    theirs, ours = both(tmp_path, **settings)
    for text in TEXTS:
        assert ours(text).input_ids == theirs(text).input_ids, text
    batch = ours(TEXTS, padding=True, return_tensors="np")
    expected = theirs(TEXTS, padding=True, return_tensors="np")
    assert np.array_equal(batch.input_ids, expected.input_ids)
    assert np.array_equal(batch.attention_mask, expected.attention_mask)
    moments = np.random.default_rng(0).choice(len(VOCAB), (20, 30), p=[0.4, *[0.6 / 11] * 11])
    assert ours.batch_decode(votive.tensor(moments)) == theirs.batch_decode(moments)
    assert ours.batch_decode(moments, group_tokens=False) == theirs.batch_decode(moments, group_tokens=False)
    for row in moments:
        told = theirs.decode(row, output_word_offsets=True, output_char_offsets=True)
        words = [(w["word"], w["start_offset"], w["end_offset"]) for w in told.word_offsets]
        assert [tuple(span) for span in ours.words(row) if span.text] == [w for w in words if w[0]]
        letters = [(c["char"], c["start_offset"], c["end_offset"]) for c in told.char_offsets]
        assert [tuple(span) for span in ours.spans(row)] == letters


@pytest.mark.parity
def test_folders_go_both_ways(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = Wav2Vec2CTCTokenizer(VOCAB, pad_token="<pad>", replace_word_delimiter_char="-")
    ours.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert type(theirs).__name__ == "Wav2Vec2CTCTokenizer"
    assert theirs.decode([5, 5, 0, 4, 5]) == ours.decode([5, 5, 0, 4, 5]) == "A-A"
    theirs.save_pretrained(tmp_path / "again")
    again = Wav2Vec2CTCTokenizer.from_pretrained(tmp_path / "again")
    assert again.ids == ours.ids
    assert again.replace_word_delimiter_char == "-"


def test_the_letter_for_nothing_keeps_equal_letters_apart_whatever_is_skipped() -> None:
    letters = Wav2Vec2CTCTokenizer(VOCAB)
    assert letters.decode([7, 7, 0, 7, 1], skip_special_tokens=True) == "LL"
    assert letters.decode([7, 7, 0, 7, 1]) == "LL<s>"


def test_languages_have_letters_of_their_own(tmp_path: Path) -> None:
    vocab = {"eng": {"<pad>": 0, "a": 1}, "deu": {"<pad>": 0, "ä": 1}}
    letters = Wav2Vec2CTCTokenizer(vocab, target_lang="deu")
    assert letters.decode([1]) == "ä"
    letters.save_pretrained(tmp_path)
    assert Wav2Vec2CTCTokenizer.from_pretrained(tmp_path).decode([1]) == "ä"
    assert Wav2Vec2CTCTokenizer.from_pretrained(tmp_path, target_lang="eng").decode([1]) == "a"
    with pytest.raises(ValueError, match="must be one of eng, deu"):
        letters.set_target_lang("fra")
    with pytest.raises(ValueError, match="is not in the vocabulary"):
        letters("b")
    with pytest.raises(ValueError, match="vocabularies of several languages"):
        Wav2Vec2CTCTokenizer(VOCAB, target_lang="eng")
    with pytest.raises(ValueError, match="the letter for nothing"):
        Wav2Vec2CTCTokenizer({"a": 0})
