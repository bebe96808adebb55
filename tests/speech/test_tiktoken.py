"""OpenAI's files of ranks give the tokens that merges give."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

import votive
from votive.io import FileFormatError
from votive.speech import Transcriber, Vocabulary, from_tiktoken

from . import small

TEXT = "the cat sat on the mat, and then the other cat sat there; they are cats – Übermut 你好\n"


def ranks(path: Path) -> votive.text.Tokenizer:
    """Write the ranks of a vocabulary that was learned; gives the tokenizer with its merges."""
    tok = votive.text.train_bpe([TEXT * 9], 320, progress=False, special_tokens=())
    lines = [f"{base64.b64encode(tok.token_bytes(i)).decode()} {i}" for i in range(len(tok))]
    path.write_text("\n".join(lines) + "\n")
    return tok


def test_ranks_give_what_merges_give(tmp_path: Path) -> None:
    path = tmp_path / "small.tiktoken"
    expected = ranks(path)
    found = from_tiktoken(path)
    for text in (TEXT, "theca thermos\t catsatmat", "☃ hat"):
        # Both cut texts as GPT-2 does, but for the last of several spaces.
        assert found.encode(text) == expected.encode(text)
        assert found.decode(found.encode(text)) == text


def test_special_tokens_follow_in_whispers_order(tmp_path: Path) -> None:
    path = tmp_path / "small.tiktoken"
    size = len(ranks(path))
    for count, published in ((99, 51865), (100, 51866)):
        found, known = from_tiktoken(path, count), Vocabulary.of_size(published)
        moved = size - known.end
        ids = {t: found.convert_tokens_to_ids(f"<|{t}|>") for t in ("de", "translate", "notimestamps")}
        assert ids == {
            "de": known.languages["de"] + moved,
            "translate": known.tasks["translate"] + moved,
            "notimestamps": (known.no_timestamps or 0) + moved,
        }
    assert found.decode([size, *found.encode("cat")], skip_special_tokens=True) == "cat"


def test_a_recognizer_takes_such_a_file(tmp_path: Path) -> None:
    folder = small.written(tmp_path / "model")
    ranks(tmp_path / "words.tiktoken")
    found = Transcriber.from_pretrained(folder, tokenizer=tmp_path / "words.tiktoken")
    assert found.tokenizer.encode("cat")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("YQ== 0\nYg==", "line 2"),
        ("YQ== zero", "line 1"),
        ("YQ== 0\nYg== 5", "not 0, 1, 2"),
        ("YQ== 0\nYg== 1\nYWJjZA== 2", "no two tokens"),
    ],
)
def test_damaged_files_are_told(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "x.tiktoken").write_text(content)
    with pytest.raises(FileFormatError, match=told):
        from_tiktoken(tmp_path / "x.tiktoken")
    with pytest.raises(ValueError, match="languages"):
        from_tiktoken(tmp_path / "x.tiktoken", 0)
