"""Named special tokens: beginning, end, padding, unknown and so on, as text and as ids.

A part of `Tokenizer`; knows only its backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def _text(name: str) -> Any:
    def get(self: SpecialTokens) -> str | None:
        return self._named.get(name)

    def put(self: SpecialTokens, value: object) -> None:
        if value is None:
            self._named.pop(name, None)
        else:
            self._named[name] = self._register(value)

    return property(get, put, doc=f"The {name.replace('_', ' ')}, or None.")


def _number(name: str) -> Any:
    def get(self: SpecialTokens) -> int | None:
        token = self._named.get(name)
        return None if token is None else self.backend.token_to_id(token)

    def put(self: SpecialTokens, value: int | None) -> None:
        token = None if value is None else self.backend.id_to_token(int(value))
        if value is not None and token is None:
            raise ValueError(f"{name}_id={value}: the tokenizer has no such token.")
        setattr(self, name, token)

    return property(get, put, doc=f"The id of the {name.replace('_', ' ')}, or None.")


class SpecialTokens:
    """What `Tokenizer` knows about its special tokens."""

    backend: Any
    extra_end_ids: list[int]

    bos_token, bos_token_id = _text("bos_token"), _number("bos_token")
    eos_token, eos_token_id = _text("eos_token"), _number("eos_token")
    unk_token, unk_token_id = _text("unk_token"), _number("unk_token")
    sep_token, sep_token_id = _text("sep_token"), _number("sep_token")
    pad_token, pad_token_id = _text("pad_token"), _number("pad_token")
    cls_token, cls_token_id = _text("cls_token"), _number("cls_token")
    mask_token, mask_token_id = _text("mask_token"), _number("mask_token")

    def _init_special(self, named: Mapping[str, Any], extra: Iterable[Any]) -> None:
        self._named: dict[str, str] = {}
        self._special_ids: frozenset[int] | None = None
        self._extra: list[str] = []
        for name, token in named.items():
            if name not in NAMED:
                raise ValueError(f"special token {name!r} is not known; there are {NAMED}.")
            setattr(self, name, token)
        for token in extra:
            self._extra.append(self._register(token))

    def _register(self, token: object) -> str:
        """Make sure that the backend treats a token as special, and return its text."""
        added = as_added(token, special=True)
        # What a file already says about a token (such as which spaces it takes) stays.
        known = self.backend.get_added_tokens_decoder()
        if not any(t.content == added.content and t.special for t in known.values()):
            self.backend.add_special_tokens([added])
            self._special_ids = None
        return added.content

    def add_tokens(self, new_tokens: str | Sequence[Any] | Any, special_tokens: bool = False) -> int:
        """Add tokens that are never split; returns how many are new.

        >>> tok = votive.text.train_bpe(["aa"], vocab_size=257, progress=False)
        >>> tok.add_tokens(["<tool>"]), tok.tokenize("a<tool>")
        (1, ['a', '<tool>'])
        """
        if not isinstance(new_tokens, (list, tuple)):
            new_tokens = [new_tokens]
        added = [as_added(t, special_tokens) for t in new_tokens]
        before = self.backend.get_vocab_size(with_added_tokens=True)
        self._special_ids = None
        if special_tokens:
            self.backend.add_special_tokens(added)
        else:
            self.backend.add_tokens(added)
        return self.backend.get_vocab_size(with_added_tokens=True) - before

    def add_special_tokens(self, special_tokens: Mapping[str, Any]) -> int:
        """Set named special tokens, such as `{"pad_token": "<pad>"}`; returns how many are new."""
        before = self.backend.get_vocab_size(with_added_tokens=True)
        for name, token in special_tokens.items():
            if name in ("additional_special_tokens", "extra_special_tokens"):
                new = [self._register(t) for t in token]
                self._extra += [t for t in new if t not in self._extra]
            elif name in NAMED:
                setattr(self, name, token)
            else:
                raise ValueError(f"special token {name!r} is not known; there are {NAMED}.")
        return self.backend.get_vocab_size(with_added_tokens=True) - before

    @property
    def special_tokens_map(self) -> dict[str, Any]:
        """The named special tokens that are set."""
        named: dict[str, Any] = {n: self._named[n] for n in NAMED if n in self._named}
        return named | ({"additional_special_tokens": list(self._extra)} if self._extra else {})

    @property
    def additional_special_tokens(self) -> list[str]:
        """Special tokens without a name of their own."""
        return list(self._extra)

    @property
    def all_special_tokens(self) -> list[str]:
        """Named and additional special tokens, each once."""
        named = [self._named[n] for n in NAMED if n in self._named]
        return list(dict.fromkeys([*named, *self._extra]))

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of `all_special_tokens`."""
        return [self.backend.token_to_id(t) for t in self.all_special_tokens]

    @property
    def eos_token_ids(self) -> list[int]:
        """Every id that ends what a model says: that of `eos_token` and others its files list."""
        first = [] if self.eos_token_id is None else [self.eos_token_id]
        return list(dict.fromkeys([*first, *self.extra_end_ids]))

    @property
    def added_tokens_decoder(self) -> dict[int, Any]:
        """Every token added to the model's vocabulary, by id."""
        return self.backend.get_added_tokens_decoder()

    def backend_special_ids(self) -> frozenset[int]:
        """The ids that `skip_special_tokens` leaves out: all that are marked special."""
        if self._special_ids is None:
            added = self.backend.get_added_tokens_decoder()
            self._special_ids = frozenset(i for i, t in added.items() if t.special)
        return self._special_ids


def as_added(token: object, special: bool) -> Any:
    """A token as the tokenizers library takes it: from text, a dict of a config file, or itself."""
    from tokenizers import AddedToken

    if isinstance(token, str):
        return AddedToken(token, special=special, normalized=not special)
    if isinstance(token, Mapping):
        keys = ("single_word", "lstrip", "rstrip", "normalized")
        flags = {k: bool(token[k]) for k in keys if k in token}
        return AddedToken(token["content"], special=special or bool(token.get("special")), **flags)
    if isinstance(token, AddedToken):
        return token
    raise TypeError(f"a token is text; got {type(token).__name__}.")
