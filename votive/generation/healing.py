"""Prompts that end in the midst of a word: the last token is replaced by one that begins with its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import votive

from ..tensor import Tensor
from .prompts import Ids, as_tensors, unpadded

if TYPE_CHECKING:
    from ..text import Tokenizer
    from .stepping import Model

# How much likelier a token becomes that begins with the last one's text, and that one itself.
EXTENSION, ITSELF = 10.0, 11.0


def healed(
    model: Model, given: Ids | None, mask: Ids | None, tokenizer: Tokenizer | None, embeds: Tensor | None
) -> tuple[Any, None]:
    """The prompts with their last tokens chosen anew; spaces around a text are left out, as transformers does."""
    from .config import GenerationConfig

    if tokenizer is None:
        raise ValueError("generate: token_healing needs the tokenizer; pass tokenizer=.")
    if given is None or embeds is not None:
        raise ValueError("generate: token_healing mends the text of a prompt; give input_ids, and no inputs_embeds.")
    ids, seen = as_tensors(given, mask, GenerationConfig(pad_token_id=tokenizer.pad_token_id))
    if seen is None and tokenizer.pad_token_id is not None and tokenizer.pad_token_id != tokenizer.eos_token_id:
        seen = ids.ne(tokenizer.pad_token_id).long()
    rows = [unpadded(row, seen, r) for r, row in enumerate(ids.tolist())]
    texts = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    return [_mended(model, tokenizer, text, row) for text, row in zip(texts, rows, strict=True)], None


def _mended(model: Model, tokenizer: Tokenizer, text: str, before: list[int]) -> list[int]:
    row = list(tokenizer.encode(text))
    if not row:
        return before
    last = tokenizer.token_bytes(row[-1])
    special = tokenizer.backend_special_ids()
    size = len(tokenizer)
    longer = [
        i
        for i in range(size)
        if i not in special
        and tokenizer.backend.id_to_token(i) is not None
        and tokenizer.token_bytes(i).startswith(last)
    ]
    context = row[:-1] or ([] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id])
    if len(longer) < 2 or not context:
        return row
    device = getattr(model, "device", None)
    with votive.no_grad():
        scores = model(votive.tensor([context], device=device), logits_to_keep=1).logits[0, -1].float()
    longer = [i for i in longer if i < scores.shape[0]]
    scores[votive.tensor(longer, device=scores.device)] += EXTENSION
    scores[row[-1]] += ITSELF - EXTENSION
    return [*row[:-1], int(scores.argmax().item())]
