"""Supervised fine-tuning: from chats, completions and texts to batches and their loss. Knows the recipe and rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..data import DataLoader
from ..tensor import Tensor
from .conversations import Encoded, encode, fitted
from .examples import Example
from .finetuning import Job, Start
from .packing import Collate, Row, Shares, check_packing, rows_of
from .tuning import SFTRecipe


def job(start: Start) -> Job:
    """The job of an `SFTRecipe`."""
    from ..models import AutoModelForCausalLM

    recipe: SFTRecipe = start.recipe
    tokenizer = start.tokenizer()
    model = start.prepared(start.model(AutoModelForCausalLM), "CAUSAL_LM")
    train = rows_of(encoded(start.train, tokenizer, recipe), recipe.context, recipe.packing)
    held_out = rows_of(encoded(start.held_out, tokenizer, recipe), recipe.context, recipe.packing)
    if recipe.packing:
        check_packing(model, train)
    return Job(
        model,
        tokenizer,
        loader(train, recipe, padding_of(tokenizer), shuffle=True, accumulate=recipe.accumulate),
        loader(held_out, recipe, padding_of(tokenizer)) if held_out else None,
        step,
        measure,
        unit="tokens",
    )


def encoded(examples: list[Example], tokenizer: Any, recipe: SFTRecipe) -> list[Encoded]:
    """Tokens of examples; those with nothing to learn within the context are left out, and it is said how many."""
    found = [fitted(e, encode(e, tokenizer, recipe.loss_on), recipe.context, recipe.truncation) for e in examples]
    kept = [e for e in found if e is not None]
    if len(kept) < len(found):
        first = examples[found.index(None)].where
        warnings.warn(
            f"{len(found) - len(kept)} of {len(found)} examples are left out (the first: {first}): within "
            f"context={recipe.context} they have nothing to learn.",
            stacklevel=2,
        )
    if found and not kept:
        raise ValueError(f"no example has anything to learn within context={recipe.context}.")
    return kept


def padding_of(tokenizer: Any) -> int:
    """What stands at padding: any token, since nothing looks at it."""
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0)


def loader(rows: list[Row], recipe: SFTRecipe, pad: int, *, shuffle: bool = False, accumulate: int = 1) -> Shares:
    """Batches of rows."""
    batch = min(recipe.batch_size, len(rows))
    collate = Collate(pad, packed=recipe.packing)
    return Shares(DataLoader(rows, batch, shuffle=shuffle, collate_fn=collate), accumulate)


def step(model: Any, batch: Mapping[str, Any]) -> Tensor:
    """The mean loss of a batch's targets, in nats, times the batch's share."""
    inputs = {name: value for name, value in batch.items() if name != "share"}
    loss: Tensor = model(**inputs, use_cache=False).loss
    return loss * batch["share"]


def measure(model: Any, batch: Mapping[str, Any]) -> dict[str, Any]:
    """The mean loss of targets, and how many of them the model would have said."""
    inputs = {name: value for name, value in batch.items() if name != "share"}
    found = model(**inputs, use_cache=False)
    labels = batch["labels"][:, 1:]
    wanted = labels != -100
    right = (found.logits[:, :-1].argmax(-1) == labels) & wanted
    count = int(wanted.sum())
    return {"loss": found.loss, "accuracy": int(right.sum()) / max(count, 1), "weight": count}
