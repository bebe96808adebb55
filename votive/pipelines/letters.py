"""Letters of models that say one for each moment: vocab.json as Wav2Vec2's tokenizer writes it. Knows no model.

Graves et al. 2006: a moment may be blank, and a letter that goes on for several moments is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from ..models.checkpoint import write_json
from ..models.config import StrPath, read_json

Offset = dict[str, Any]


class Letters:
    """Ids of letters, one of which is the blank and one the end of a word.

    >>> from votive.pipelines.letters import Letters
    >>> letters = Letters({"<pad>": 0, "|": 1, "A": 2, "B": 3})
    >>> letters.decode([2, 2, 0, 2, 1, 1, 3, 0])
    'AA B'
    """

    def __init__(
        self,
        vocabulary: dict[str, int],
        pad_token: str = "<pad>",
        word_delimiter_token: str = "|",
        replace_word_delimiter_char: str = " ",
        do_lower_case: bool = False,
    ) -> None:
        self.vocabulary, self.pad_token = dict(vocabulary), pad_token
        self.word_delimiter_token, self.replace_word_delimiter_char = word_delimiter_token, replace_word_delimiter_char
        self.do_lower_case = do_lower_case
        self._tokens = {i: token for token, i in self.vocabulary.items()}
        if pad_token not in self.vocabulary:
            raise ValueError(f"Letters: the blank {pad_token!r} is none of the {len(self.vocabulary)} letters.")

    @property
    def pad_token_id(self) -> int:
        """The id of the blank."""
        return self.vocabulary[self.pad_token]

    @classmethod
    def from_pretrained(cls, folder: StrPath, target_lang: str | None = None) -> Self:
        """From the folder of a model; of one for many languages `target_lang` names one."""
        path = Path(folder)
        if not (path / "vocab.json").is_file():
            raise FileNotFoundError(f"{path} has no vocab.json, the letters of a model for speech; pass tokenizer=.")
        words = read_json(path / "vocab.json")
        config = read_json(path / "tokenizer_config.json") if (path / "tokenizer_config.json").is_file() else {}
        if words and all(isinstance(v, dict) for v in words.values()):
            asked = target_lang or config.get("target_lang")
            if asked not in words:
                raise ValueError(f"{path}: name one of the languages {', '.join(sorted(words))} as target_lang.")
            words = words[asked]
        added = path / "added_tokens.json"
        words |= read_json(added) if added.is_file() else {}
        for number, token in (config.get("added_tokens_decoder") or {}).items():
            words.setdefault(token["content"], int(number))
        names = ("pad_token", "word_delimiter_token", "replace_word_delimiter_char", "do_lower_case")
        return cls(words, **{n: _plain(config[n]) for n in names if config.get(n) is not None})

    def save_pretrained(self, folder: StrPath) -> None:
        """Write vocab.json and tokenizer_config.json."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        (path / "vocab.json").write_text(json.dumps(self.vocabulary, ensure_ascii=False, indent=2), "utf-8")
        kept = {n: getattr(self, n) for n in ("pad_token", "word_delimiter_token", "do_lower_case")}
        kept["replace_word_delimiter_char"] = self.replace_word_delimiter_char
        write_json(path / "tokenizer_config.json", {**kept, "tokenizer_class": "Wav2Vec2CTCTokenizer"})

    def letters(self, ids: Sequence[int]) -> list[Offset]:
        """Letters with the moments that they begin and end at.

        >>> from votive.pipelines.letters import Letters
        >>> Letters({"<pad>": 0, "|": 1, "A": 2}).letters([2, 2, 0])
        [{'char': 'A', 'start_offset': 0, 'end_offset': 2}]
        """
        found, at = [], 0
        for token, several in groupby(self._token(int(i)) for i in ids):
            end = at + len(list(several))
            if token != self.pad_token:
                char = self.replace_word_delimiter_char if token == self.word_delimiter_token else token
                found.append({"char": char, "start_offset": at, "end_offset": end})
            at = end
        return found

    def words(self, ids: Sequence[int]) -> list[Offset]:
        """Words with the moments that they begin and end at."""
        found: list[Offset] = []
        open_ = False
        for letter in self.letters(ids):
            if letter["char"] == self.replace_word_delimiter_char:
                open_ = False
            elif open_:
                found[-1]["word"] += letter["char"]
                found[-1]["end_offset"] = letter["end_offset"]
            else:
                found.append({"word": letter["char"], **{k: letter[k] for k in ("start_offset", "end_offset")}})
                open_ = True
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """The text of letters for moments."""
        text = "".join(letter["char"] for letter in self.letters(ids)).strip()
        return text.lower() if self.do_lower_case else text

    def _token(self, i: int) -> str:
        if i not in self._tokens:
            raise ValueError(f"Letters: there is no letter {i}; there are {len(self.vocabulary)}.")
        return self._tokens[i]

    def __repr__(self) -> str:
        return f"Letters({len(self.vocabulary)})"


def _plain(value: Any) -> Any:
    """A token as files have it: a text, or an object with one."""
    return value["content"] if isinstance(value, dict) else value
