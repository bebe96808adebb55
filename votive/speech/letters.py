"""Letters of recordings: ids of moments as texts, and texts as the ids that a model is to say. Knows no model.

Files and results are those of transformers' Wav2Vec2CTCTokenizer. Of moments that say the same letter one after the
other one counts, and the letter for nothing keeps two equal letters apart: Graves et al. 2006.
"""

from __future__ import annotations

import json
import os
import re
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..text import BatchEncoding
from ..text.encoding import as_arrays, check_tensors, pad_rows
from ..text.ends import token_text
from ..text.inputs import Ids, plain_ids

VOCABULARY, SETTINGS = "vocab.json", "tokenizer_config.json"
_ADDED = "added_tokens.json"
_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token", "word_delimiter_token")


class Span(NamedTuple):
    """A letter or a word, and the moments it was said in: from `start` to before `end`.

    >>> votive.speech.Span("A", 1, 3).end
    3
    """

    text: str
    start: int
    end: int


class Wav2Vec2CTCTokenizer:
    """The letters of a vocabulary; `pad_token` is the one for nothing, `word_delimiter_token` stands between words.

    >>> letters = votive.speech.Wav2Vec2CTCTokenizer({"<pad>": 0, "<unk>": 1, "|": 2, "A": 3, "B": 4})
    >>> letters("AB A").input_ids, letters.decode([3, 3, 0, 3, 4, 2, 2, 3])
    ([3, 4, 2, 3], 'AAB A')
    """

    def __init__(
        self,
        vocab: dict[str, Any],
        bos_token: str = "<s>",
        eos_token: str = "</s>",
        unk_token: str = "<unk>",
        pad_token: str = "<pad>",
        word_delimiter_token: str = "|",
        replace_word_delimiter_char: str = " ",
        do_lower_case: bool = False,
        target_lang: str | None = None,
    ) -> None:
        self.bos_token, self.eos_token, self.unk_token, self.pad_token = bos_token, eos_token, unk_token, pad_token
        self.word_delimiter_token, self.replace_word_delimiter_char = word_delimiter_token, replace_word_delimiter_char
        self.do_lower_case, self.vocab = do_lower_case, vocab
        self.set_target_lang(target_lang)

    def set_target_lang(self, target_lang: str | None) -> None:
        """Take the letters of another language, of a vocabulary that has several."""
        nested = any(isinstance(value, dict) for value in self.vocab.values())
        if nested and target_lang not in self.vocab:
            known = ", ".join(self.vocab)
            raise ValueError(f"Wav2Vec2CTCTokenizer: target_lang must be one of {known}; got {target_lang!r}.")
        if not nested and target_lang is not None:
            raise ValueError("Wav2Vec2CTCTokenizer: target_lang is for vocabularies of several languages.")
        chosen = self.vocab[target_lang] if nested and target_lang is not None else self.vocab
        self.target_lang = target_lang
        self.ids = {str(letter): int(i) for letter, i in chosen.items()}
        self.letters = {i: letter for letter, i in self.ids.items()}
        if self.pad_token not in self.ids:
            raise ValueError(f"Wav2Vec2CTCTokenizer: the vocabulary has no {self.pad_token!r}, the letter for nothing.")
        # Tokens of several characters are found first; spaces around them are theirs.
        long = sorted((re.escape(letter) for letter in self.ids if len(letter) > 1), key=len, reverse=True)
        self._long = re.compile(rf"\s*({'|'.join(long)})\s*") if long else None

    @property
    def pad_token_id(self) -> int:
        """The id of the letter for nothing."""
        return self.ids[self.pad_token]

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], target_lang: str | None = None) -> Self:
        """From vocab.json and tokenizer_config.json in a model's folder."""
        from ..models.config import read_json

        path = Path(folder)
        if not (path / VOCABULARY).is_file():
            raise FileNotFoundError(f"{path} has no {VOCABULARY}, the letters of a model for speech.")
        told = read_json(path / SETTINGS) if (path / SETTINGS).is_file() else {}
        named: dict[str, Any] = {name: token_text(told[name]) for name in _NAMES if told.get(name) is not None}
        rest: dict[str, Any] = {
            k: told[k] for k in ("replace_word_delimiter_char", "do_lower_case") if told.get(k) is not None
        }
        lang = told.get("target_lang") if target_lang is None else target_lang
        made = cls(read_json(path / VOCABULARY), **named, **rest, target_lang=lang)
        # Letters that were added later stand in files of their own.
        added = read_json(path / _ADDED) if (path / _ADDED).is_file() else {}
        for number, token in (told.get("added_tokens_decoder") or {}).items():
            added.setdefault(str(token_text(token)), int(number))
        for letter, i in added.items():
            if letter not in made.ids:
                made.ids[letter], made.letters[int(i)] = int(i), letter
        return made

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write vocab.json and tokenizer_config.json into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        settings = {name: getattr(self, name) for name in (*_NAMES, "replace_word_delimiter_char", "do_lower_case")}
        settings |= {"tokenizer_class": type(self).__name__, "target_lang": self.target_lang}
        for name, values in ((VOCABULARY, self.vocab), (SETTINGS, settings)):
            text = json.dumps(values, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
            (path / name).write_text(text, encoding="utf-8")

    def tokenize(self, text: str) -> list[str]:
        """The letters of a text, as they are written in the vocabulary."""
        parts = [text] if self._long is None else self._long.split(text)
        out: list[str] = []
        for i, part in enumerate(parts):
            if i % 2:  # a token of several characters
                out.append(part)
            else:
                part = part.upper() if self.do_lower_case else part
                out += part.replace(" ", self.word_delimiter_token)
        return out

    def __call__(
        self, text: str | list[str], padding: bool = False, return_tensors: str | None = None
    ) -> BatchEncoding:
        """`input_ids` of a text or of several, and where they are real; labels are -100 where `attention_mask` is 0."""
        check_tensors(return_tensors)
        texts = [text] if isinstance(text, str) else list(text)
        rows = [[self._id(letter) for letter in self.tokenize(one)] for one in texts]
        columns = {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}
        if padding:
            length = max(map(len, rows), default=0)
            values = {"input_ids": self.pad_token_id, "attention_mask": 0}
            columns = {name: pad_rows(each, length, "right", values[name]) for name, each in columns.items()}
        if return_tensors is not None:
            return BatchEncoding(as_arrays(columns, return_tensors))
        return BatchEncoding({k: v[0] for k, v in columns.items()} if isinstance(text, str) else columns)

    def _id(self, letter: str) -> int:
        found = self.ids.get(letter, self.ids.get(self.unk_token))
        if found is None:
            raise ValueError(f"Wav2Vec2CTCTokenizer: {letter!r} is not in the vocabulary, which has no unk_token.")
        return found

    def spans(self, ids: Ids, skip_special_tokens: bool = False, group_tokens: bool = True) -> list[Span]:
        """The letters of moments and where they were said; words are apart at letters that are a space."""
        special = {self.bos_token, self.eos_token, self.unk_token} if skip_special_tokens else set()
        said = [self.letters.get(int(i), self.unk_token) for i in plain_ids(ids)]
        runs = [(letter, len(list(run))) for letter, run in groupby(said)] if group_tokens else [(s, 1) for s in said]
        found, at = [], 0
        for letter, count in runs:
            if letter != self.pad_token and letter not in special:
                space = letter == self.word_delimiter_token
                found.append(Span(self.replace_word_delimiter_char if space else letter, at, at + count))
            at += count
        return found

    def words(self, ids: Ids, **options: Any) -> list[Span]:
        """The words of moments and where they were said: multiply by the model's `inputs_to_logits_ratio` for samples.

        >>> letters = votive.speech.Wav2Vec2CTCTokenizer({"<pad>": 0, "<unk>": 1, "|": 2, "A": 3, "B": 4})
        >>> letters.words([0, 3, 4, 0, 2, 2, 4])
        [Span(text='AB', start=1, end=3), Span(text='B', start=6, end=7)]
        """
        found: list[Span] = []
        for space, run in groupby(
            self.spans(ids, **options), lambda span: span.text == self.replace_word_delimiter_char
        ):
            if not space:
                letters = list(run)
                found.append(Span("".join(span.text for span in letters), letters[0].start, letters[-1].end))
        return found

    def decode(self, token_ids: Ids, skip_special_tokens: bool = False, group_tokens: bool = True) -> str:
        """The text that moments say."""
        text = "".join(span.text for span in self.spans(token_ids, skip_special_tokens, group_tokens)).strip()
        return text.lower() if self.do_lower_case else text

    def batch_decode(self, sequences: Ids, **options: Any) -> list[str]:
        """The text of each row of ids; takes the arguments of `decode`."""
        return [self.decode(row, **options) for row in plain_ids(sequences)]

    def __repr__(self) -> str:
        return f"Wav2Vec2CTCTokenizer({len(self)} letters)"
