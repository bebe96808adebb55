"""Texts of a given form: a regular expression, a JSON schema, a grammar or a choice. Knows no model.

What may come next is found by llguidance, an optional dependency. Each row has a matcher, which follows its tokens and
goes back where a search does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

import votive

from ..tensor import Tensor
from .warpers import LogitsProcessor

if TYPE_CHECKING:
    from ..text import Tokenizer
    from .config import GenerationConfig

KINDS = ("regex", "json_schema", "grammar", "choices")
_VOCABULARIES: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def asked(config: GenerationConfig) -> dict[str, Any]:
    """Which form a text must have, {} for any.

    >>> from votive.generation.grammar import asked
    >>> asked(votive.generation.GenerationConfig(regex="[0-9]+"))
    {'regex': '[0-9]+'}
    """
    found = {kind: getattr(config, kind) for kind in KINDS if getattr(config, kind) is not None}
    if len(found) > 1:
        raise ValueError(f"generate: {' and '.join(found)} both say what the text must look like; give one of them.")
    return found


def ends_of(config: GenerationConfig, tokenizer: Tokenizer | None) -> list[int]:
    """The tokens that end a text; where a form needs one and none is set, those of the tokenizer.

    >>> from votive.generation.grammar import ends_of
    >>> ends_of(votive.generation.GenerationConfig(regex="a", eos_token_id=3), None)
    [3]
    """
    named = config.eos_ids()
    return named if named or tokenizer is None or not asked(config) else tokenizer.eos_token_ids


def _library() -> Any:
    try:
        import llguidance
    except ImportError as error:
        raise ImportError(
            "regex, json_schema, grammar and choices need the package llguidance; install it with "
            "pip install 'votive[constrained]' or pip install llguidance."
        ) from error
    return llguidance


def _described(kind: str, value: Any, library: Any) -> str:
    """A form in the words of the library."""
    if kind == "regex":
        return str(library.LLMatcher.grammar_from_regex(value))
    if kind == "choices":
        return str(library.grammar_from("choice", json.dumps(list(value))))
    if kind == "grammar":
        return str(library.grammar_from("grammar", value))
    schema = value.model_json_schema() if hasattr(value, "model_json_schema") else value
    try:
        schema = json.loads(schema) if isinstance(schema, str) else schema
        return str(library.LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"generate: json_schema is not a JSON schema ({error}).") from None


class _Words:
    """A tokenizer as the library takes one: the bytes of each token, and a way to encode."""

    def __init__(self, tokenizer: Tokenizer, eos: int) -> None:
        special = set(tokenizer.backend_special_ids())
        self.tokens = [self._bytes(tokenizer, i) for i in range(len(tokenizer))]
        self.special_token_ids = sorted(special)
        self.eos_token_id, self.bos_token_id = eos, tokenizer.bos_token_id
        self._tokenizer = tokenizer

    def _bytes(self, tokenizer: Tokenizer, i: int) -> bytes:
        try:
            return tokenizer.token_bytes(i)
        except IndexError:  # ids may have gaps
            return b""

    def __call__(self, text: Any) -> list[int]:
        text = text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
        return list(self._tokenizer.encode(text, add_special_tokens=False))


def _vocabulary(tokenizer: Tokenizer, size: int, eos: tuple[int, ...], library: Any) -> Any:
    """The library's form of a tokenizer; made once, as it takes a while."""
    known = _VOCABULARIES.setdefault(tokenizer, {})
    key = (size, eos, len(tokenizer))
    if key not in known:
        words = library.TokenizerWrapper(_Words(tokenizer, eos[0]))
        known[key] = library.LLTokenizer(words, n_vocab=max(size, len(tokenizer)), eos_token=list(eos))
    return known[key]


class _Row:
    """A matcher and the tokens that it has taken."""

    def __init__(self, matcher: Any) -> None:
        self.matcher = matcher
        self.taken: list[int] = []
        self.dead = False  # whether a token did not fit

    def copy(self) -> _Row:
        twin = _Row(self.matcher.deep_copy())
        twin.taken, twin.dead = list(self.taken), self.dead
        return twin

    def follow(self, tokens: list[int]) -> None:
        """Go to the state after these tokens."""
        same = _common(self.taken, tokens)
        if same < len(self.taken):
            # What did not fit was never taken by the matcher.
            back = len(self.taken) - same - int(self.dead)
            if self.dead or not (back == 0 or self.matcher.rollback(back)):
                self.matcher.reset()
                same = 0
            self.taken, self.dead = tokens[:same], False
        if self.dead:
            return
        for token in tokens[same:]:
            self.taken.append(token)
            if self.matcher.try_consume_tokens([token]) != 1:
                self.dead = True
                return


def _common(a: list[int], b: list[int]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


class GrammarLogitsProcessor(LogitsProcessor):
    """Only tokens with which the text can still get the form that was asked for: one of `KINDS`.

    What counts is what follows the first `prompt_length` ids. A text that is complete may end, with one of
    `eos_token_id`, and one that cannot go on must. It serves one call of `generate`; a search may go back.

    >>> tok = votive.text.train_bpe(["yes no"], vocab_size=260, special_tokens=["<end>"], progress=False)
    >>> answer = votive.generation.GrammarLogitsProcessor(tok, choices=["yes", "no"], eos_token_id=0)
    >>> scores = answer(votive.zeros(1, 0, dtype=votive.int64), votive.zeros(1, len(tok)))
    >>> sorted(tok.decode([i]) for i, s in enumerate(scores[0].tolist()) if s == 0)
    ['n', 'y']
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        eos_token_id: int | Iterable[int],
        prompt_length: int = 0,
        vocab_size: int | None = None,
        regex: str | None = None,
        json_schema: Any = None,
        grammar: str | None = None,
        choices: list[str] | None = None,
    ) -> None:
        given = {"regex": regex, "json_schema": json_schema, "grammar": grammar, "choices": choices}
        given = {kind: value for kind, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                f"GrammarLogitsProcessor: give one of {', '.join(KINDS)}, got {', '.join(given) or 'none'}."
            )
        (kind, value), library = next(iter(given.items())), _library()
        eos = (eos_token_id,) if isinstance(eos_token_id, int) else tuple(int(i) for i in eos_token_id)
        if not eos:
            raise ValueError(f"generate: {kind} needs an eos_token_id, with which a text that is complete ends.")
        self.eos, self.start, self.kind = set(eos), prompt_length, kind
        size = len(tokenizer) if vocab_size is None else vocab_size
        matcher = library.LLMatcher(
            _vocabulary(tokenizer, size, eos, library), _described(kind, value, library), log_level=0
        )
        if matcher.is_error():
            raise ValueError(f"generate: {kind} cannot be used: {matcher.get_error().strip()}")
        self._root = _Row(matcher)
        self._rows: list[_Row] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        texts = input_ids[:, self.start :].tolist()
        self._rows = self._placed(texts)
        size = scores.shape[-1]
        allowed = np.ones(tuple(scores.shape), bool)
        for i, (row, text) in enumerate(zip(self._rows, texts, strict=True)):
            if not self.eos.isdisjoint(text):
                continue  # it has ended, and what follows is padding
            row.follow(text)
            allowed[i] = False if row.dead else self._next(row, size)
        return scores.masked_fill(~votive.tensor(allowed, device=scores.device), -math.inf)

    def _next(self, row: _Row, size: int) -> Any:
        bits = np.frombuffer(row.matcher.compute_bitmask(), np.uint8)
        if row.matcher.is_error():
            raise ValueError(f"generate: {self.kind} went too far: {row.matcher.get_error().strip()}")
        found = np.unpackbits(bits, bitorder="little")[:size].astype(bool)
        return found if len(found) == size else np.pad(found, (0, size - len(found)))

    def _placed(self, texts: list[list[int]]) -> list[_Row]:
        """A matcher for each row: its own, or where beams changed places a copy of the one that is nearest."""
        rows: list[_Row] = []
        for i, text in enumerate(texts):
            own = self._rows[i] if len(self._rows) == len(texts) else None
            if own is not None and (len(texts) == 1 or own.taken == text[: len(own.taken)]):
                rows.append(own)
                continue
            nearest = max([self._root, *self._rows], key=lambda r: _common(r.taken, text) - len(r.taken) * 1e-6)
            rows.append(nearest.copy())
        return rows
