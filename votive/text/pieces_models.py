"""Tokenizers built from lists of pieces with scores, as SentencePiece, GGUF and llama2.c keep them.

Knows the `tokenizers` library; knows no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..serialization.container import FileFormatError
from .pieces import SPACE
from .special import as_added

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def merges_by_score(tokens: Sequence[str], scores: Sequence[float]) -> list[tuple[str, str]]:
    """The merges that pieces imply: each piece from any two others, the best scores first.

    SentencePiece merges the pair whose piece has the highest score; a list of merges in the order
    of scores does the same.
    """
    known = set(tokens)
    found: list[tuple[float, int, int, str, str]] = []
    for i, (token, score) in enumerate(zip(tokens, scores)):
        for k in range(1, len(token)):
            if token[:k] in known and token[k:] in known:
                found.append((-score, i, k, token[:k], token[k:]))
    return [(left, right) for *_, left, right in sorted(found)]


def _space_decoder(add_space_prefix: bool) -> Any:
    from tokenizers import decoders

    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] * add_space_prefix)])


def _normalizer(charsmap: bytes | None, remove_extra: bool, add_space_prefix: bool) -> Any:
    from tokenizers import Regex, normalizers

    steps: list[Any] = []
    if charsmap:
        try:
            steps.append(normalizers.Precompiled(charsmap))
        except Exception as e:  # the library raises bare exceptions
            raise FileFormatError(f"the vocabulary's table of characters is damaged ({e}).") from None
    if remove_extra:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    if add_space_prefix:
        steps.append(normalizers.Prepend(SPACE))
    return normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])


def spm_bpe(
    tokens: Sequence[str],
    scores: Sequence[float],
    types: Sequence[int],
    *,
    unknown: str | None,
    add_space_prefix: bool = True,
    remove_extra_whitespaces: bool = False,
    charsmap: bytes | None = None,
    merges: list[tuple[str, str]] | None = None,
) -> Any:
    """SentencePiece BPE: spaces as ▁, merges by score, bytes for what no piece has."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import models

    if merges is None:
        # Only ordinary pieces take part in merging.
        pieces = [i for i, t in enumerate(types) if t in (NORMAL, UNUSED)]
        merges = merges_by_score([tokens[i] for i in pieces], [scores[i] for i in pieces])
    vocab = first_ids(tokens)
    fallback = BYTE in types or "<0x00>" in vocab
    backend: Any = Backend(models.BPE(vocab, merges, unk_token=unknown, fuse_unk=True, byte_fallback=fallback))
    backend.normalizer = _normalizer(charsmap, remove_extra_whitespaces, add_space_prefix)
    backend.decoder = _space_decoder(add_space_prefix)
    mark_tokens(backend, tokens, types)
    return backend


def spm_unigram(
    tokens: Sequence[str],
    scores: Sequence[float],
    types: Sequence[int],
    *,
    unknown_id: int | None,
    add_space_prefix: bool = True,
    remove_extra_whitespaces: bool = True,
    charsmap: bytes | None = None,
) -> Any:
    """SentencePiece unigram: the split of a text that has the best sum of scores."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import models

    scored = [(t, float(s)) for t, s in zip(tokens, scores)]
    backend: Any = Backend(models.Unigram(scored, unknown_id, byte_fallback=BYTE in types))
    backend.normalizer = _normalizer(charsmap, remove_extra_whitespaces, add_space_prefix)
    backend.decoder = _space_decoder(add_space_prefix)
    mark_tokens(backend, tokens, types)
    return backend


def first_ids(tokens: Sequence[str]) -> dict[str, int]:
    """Ids by token; the first counts where a vocabulary has a token twice."""
    vocab: dict[str, int] = {}
    for i, token in enumerate(tokens):
        vocab.setdefault(token, i)
    return vocab


def mark_tokens(backend: Backend, tokens: Sequence[str], types: Sequence[int]) -> None:
    """Tell the tokenizer which tokens are special and which are taken from the text as a whole."""
    from tokenizers import AddedToken

    special = [as_added(t, True) for t, k in zip(tokens, types) if k in (CONTROL, UNKNOWN) and t]
    whole = [AddedToken(t, normalized=False, special=False) for t, k in zip(tokens, types) if k == USER_DEFINED and t]
    if special:
        backend.add_special_tokens(special)
    if whole:
        backend.add_tokens(whole)
