"""CLIP's older vocabulary files: vocab.json and merges.txt whose words end in a mark, as Stable Diffusion's folders."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

import votive
from votive.serialization.container import FileFormatError

MERGES = ["c a", "ca t</w>", "d o", "do g</w>", "' s</w>", "a n", "an d</w>", "1 2</w>"]
TEXTS = [
    "A cat and a DOG",
    "the cat's  12 dogs\n\tand  more!!",
    "",
    "naïve café 日本",
    "it's 3.14, isn't it?",
    "<|endoftext|> in the middle",
    "x" * 30,
]


def vocabulary(folder: pathlib.Path, **config: Any) -> pathlib.Path:
    """A folder with a small vocabulary of bytes and some merges."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    tokens = [*letters, *(f"{c}</w>" for c in letters), *("".join(m.split()) for m in MERGES)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", "utf-8")
    named = {"tokenizer_class": "CLIPTokenizer", "model_max_length": 16, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(named), "utf-8")
    return folder


@pytest.mark.parametrize("config", [{}, {"pad_token": "!"}])
@pytest.mark.parity
def test_ids_and_texts_are_those_of_transformers(config: dict[str, Any], tmp_path: pathlib.Path) -> None:
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    ours = votive.text.Tokenizer.from_pretrained(vocabulary(tmp_path, **config))
    theirs = transformers.CLIPTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        a, b = ours(text).input_ids, theirs(text).input_ids
        assert a == b, text
        assert ours.decode(a, skip_special_tokens=True) == theirs.decode(b, skip_special_tokens=True)
    options = {"padding": "max_length", "max_length": 16, "truncation": True}
    a, b = ours(TEXTS, **options), theirs(TEXTS, **options)
    assert a.input_ids == b.input_ids
    assert a.attention_mask == b.attention_mask


def test_words_end_in_a_mark_and_texts_in_tokens(tmp_path: pathlib.Path) -> None:
    tok = votive.text.Tokenizer.from_pretrained(vocabulary(tmp_path))
    ids = tok("Cat DOG's").input_ids
    expected = ["<|startoftext|>", "cat</w>", "dog</w>", "'s</w>", "<|endoftext|>"]
    assert tok.convert_ids_to_tokens(ids) == expected
    assert tok.decode(ids, skip_special_tokens=True) == "cat dog 's"


def test_a_vocabulary_without_its_ends_is_refused(tmp_path: pathlib.Path) -> None:
    vocabulary(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0}), "utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    with pytest.raises(FileFormatError, match=r"CLIP needs <\|startoftext\|>"):
        votive.text.Tokenizer.from_pretrained(tmp_path)
