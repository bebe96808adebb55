"""The prompts of a call of `generate` as ids and a mask, and how long what follows them may get. Runs no model."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import votive
from votive.core import dtype as dt

from ..tensor import Tensor
from .config import NEW_TOKENS, GenerationConfig

Ids = Tensor | Sequence[Sequence[int]]  # of tokens, a row for each text


def prompt_of(
    given: Ids | None, given_mask: Ids | None, config: GenerationConfig, device: votive.device | None
) -> tuple[Tensor, Tensor | None]:
    """Ids (batch, positions) and their mask, None where nothing is padding.

    Lists of different lengths are padded on the left.
    """
    if given is None:
        if config.bos_token_id is None:
            raise ValueError("generate: give input_ids, or a bos_token_id to begin with.")
        given = [[config.bos_token_id]]
    ids, mask = as_tensors(given, given_mask, config)
    ids = ids.to(device) if device is not None else ids
    if ids.dim() != 2 or 0 in ids.shape:
        raise ValueError(
            f"generate: input_ids must be (batch, positions) with at least one of each, got "
            f"{tuple(ids.shape)}; one text is input_ids.unsqueeze(0)."
        )
    if ids.is_floating_point() or ids.dtype is dt.bool_:
        raise TypeError(f"generate: input_ids must be integers, got {ids.dtype}.")
    if mask is None:
        pad, eos = config.pad_token_id, config.eos_ids()
        # A token that also ends texts may stand for itself.
        mask = None if pad is None or pad in eos else ids.ne(pad).long()
    elif tuple(mask.shape) != tuple(ids.shape):
        raise ValueError(
            f"generate: attention_mask must have the shape of input_ids, {tuple(ids.shape)}, got {tuple(mask.shape)}."
        )
    if mask is None or bool(mask.bool().all()):
        return ids, None
    mask = mask.to(ids.device).bool().long()
    if not bool(mask.any(1).all()):
        raise ValueError("generate: a row of the batch is all padding; each needs a token.")
    if not bool(mask[:, -1].bool().all()):
        raise ValueError(
            "generate: the prompts are padded on the right, so their ends are not where the next "
            "token goes; pad on the left (padding_side='left')."
        )
    return ids, mask


def mask_of(given: Ids | None) -> Tensor | None:
    """A mask as a tensor."""
    return given if given is None or isinstance(given, votive.Tensor) else votive.tensor(given)


def as_tensors(given: Ids, mask: Ids | None, config: GenerationConfig) -> tuple[Tensor, Tensor | None]:
    """Ids and their mask, whatever they came as; lists of different lengths are padded on the left."""
    seen = mask_of(mask)
    if isinstance(given, votive.Tensor):
        return given, seen
    try:
        rows = [[index(i) for i in row] for row in given]
    except TypeError as error:
        raise TypeError(
            "generate: input_ids must be a tensor or a list of lists of token ids, one per text, "
            f"got {_short(given)}; a text goes through a tokenizer first."
        ) from error
    if not rows or not all(rows):
        raise ValueError("generate: the prompt is empty; give at least one token per row.")
    width = max(map(len, rows))
    if all(len(row) == width for row in rows):
        return votive.tensor(rows), seen
    if seen is not None:
        raise ValueError("generate: rows of different lengths get their mask from their lengths.")
    pad = config.pad_token_id or 0
    ids = [[pad] * (width - len(row)) + row for row in rows]
    real = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return votive.tensor(ids), votive.tensor(real)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def longest(config: GenerationConfig, prompt: int, limit: int | None, ahead: int = 0) -> int:
    """How many ids a text may have, the prompt included; `ahead` are positions before them that have none."""
    if config.max_new_tokens is not None:
        return prompt + config.max_new_tokens
    if config.max_length is None:
        length = prompt + NEW_TOKENS
        return length if limit is None else max(min(length, limit - ahead), prompt + 1)
    if config.max_length <= prompt + ahead:
        raise ValueError(
            f"generate: the prompt has {prompt + ahead} tokens and max_length={config.max_length}, so "
            "nothing could follow; set max_new_tokens."
        )
    return config.max_length - ahead


def unpadded(row: list[int], mask: Tensor | None, at: int) -> list[int]:
    """A row of ids without its padding."""
    if mask is None:
        return row
    return [i for i, m in zip(row, mask[at].tolist(), strict=True) if m]
