"""Examples from files of JSON lines, JSON or tables; what is wrong is told with file and line. Knows no tokenizer."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .example_files import objects_of

Data = str | os.PathLike[str] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Example:
    """One example, and where it stands.

    >>> example = votive.train.examples.Example("data.jsonl:3", {"text": "one", "label": 2})
    >>> example.text("text")
    'one'
    """

    where: str
    values: Mapping[str, Any]

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def wrong(self, what: str) -> NoReturn:
        """Refuse the example."""
        raise ValueError(f"{self.where}: {what}")

    def text(self, name: str) -> str:
        """A field that is a text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            self.wrong(f'"{name}" must be a text, got {_shown(value)}.')
        return value

    def messages(self, name: str) -> list[dict[str, Any]]:
        """A field that is a list of messages."""
        value = self.values.get(name)
        if not isinstance(value, list) or not value:
            self.wrong(f'"{name}" must be a list of messages, got {_shown(value)}.')
        for i, message in enumerate(value):
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                self.wrong(f'"{name}"[{i}] must be an object with "role" and "content", got {_shown(message)}.')
            if message.get("content") is None and not message.get("tool_calls"):
                self.wrong(f'"{name}"[{i}] has no "content".')
        return [dict(message) for message in value]


def _shown(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_examples(data: Data) -> list[Example]:
    """Examples of a file, or of a list of dicts.

    The file's name says what it is: a table with the names of its columns in the first line (`.csv`, `.tsv`), one list
    of objects (`.json`), else JSON lines.

    >>> votive.train.examples.read_examples([{"text": "one"}])
    [Example(where='example 0', values={'text': 'one'})]
    """
    if isinstance(data, (str, os.PathLike)):
        path = Path(data).expanduser()
        found = [Example(where, values) for where, values in objects_of(path)]
        if not found:
            raise ValueError(f"{path} holds no example.")
        return found
    found = []
    for i, values in enumerate(data):
        if not isinstance(values, Mapping):
            raise TypeError(f"examples are dicts, such as {{'text': ...}}; got {type(values).__name__} at {i}.")
        found.append(Example(f"example {i}", values))
    if not found:
        raise ValueError("there is no example to train on.")
    return found


def fingerprint(*parts: Sequence[Example]) -> str:
    """A number that tells whether examples are the same.

    >>> from votive.train.examples import fingerprint, read_examples
    >>> one = read_examples([{"text": "one"}])
    >>> fingerprint(one) == fingerprint(one), fingerprint(one) == fingerprint(one, one)
    (True, False)
    """
    made = hashlib.sha256()
    for part in parts:
        for example in part:
            made.update(json.dumps(dict(example.values), sort_keys=True, default=str).encode() + b"\n")
        made.update(b"\0")
    return made.hexdigest()


def apart(examples: Sequence[Example], held_out: float, seed: int = 0) -> tuple[list[Example], list[Example]]:
    """What is trained on, and the part, drawn by `seed`, that is only measured on; both in their order.

    >>> from votive.train.examples import apart, read_examples
    >>> [len(part) for part in apart(read_examples([{"text": "one"}] * 10), 0.2)]
    [8, 2]
    """
    count = min(round(len(examples) * held_out), len(examples) - 1)
    # Not the last ones: files are often sorted, such as by label.
    drawn = set(random.Random(seed).sample(range(len(examples)), count))
    train = [example for i, example in enumerate(examples) if i not in drawn]
    return train, [examples[i] for i in sorted(drawn)]
