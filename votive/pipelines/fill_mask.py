"""What fits into the gap of a text. Names of arguments and of results are transformers'."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import votive

from .base import Pipeline, Row


class FillMaskPipeline(Pipeline):
    """`pipe("a [MASK] text")` gives the five likeliest tokens; several gaps are filled each by itself.

    `targets` are words to choose among. `tokenizer_kwargs` go to the tokenizer.

    >>> votive.pipelines.FillMaskPipeline.task
    'fill-mask'
    """

    task, uses = "fill-mask", ("masked",)

    def ready(self) -> None:
        """A tokenizer without a mask cannot say where the gap is."""
        if self.tokenizer.mask_token_id is None:
            raise ValueError("FillMaskPipeline: the tokenizer has no mask_token.")

    def __call__(self, inputs: Any = None, **options: Any) -> Any:
        """Fillings of a text; of a list with one text those of that text."""
        found = super().__call__(inputs, **options)
        return found[0] if isinstance(inputs, list) and len(inputs) == 1 else found

    def prepare(self, item: str, tokenizer_kwargs: Mapping[str, Any] | None = None) -> Iterable[Row]:
        """One row, which has a gap."""
        found = self.encoded(item, **(tokenizer_kwargs or {}))
        if not bool((found["input_ids"] == self.tokenizer.mask_token_id).any()):
            raise ValueError(f"FillMaskPipeline: there is no {self.tokenizer.mask_token} in {item!r}.")
        return [Row(found)]

    def finish(self, rows: list[Row], top_k: int | None = None, targets: str | list[str] | None = None) -> Any:
        """For each gap the likeliest tokens, and the text with them."""
        tok, row = self.tokenizer, rows[0]
        ids = row.tensors["input_ids"][0].tolist()
        gaps = [i for i, t in enumerate(ids) if t == tok.mask_token_id]
        odds = row.trimmed("logits", tok.padding_side)[0][votive.tensor(gaps)].float().softmax(-1)
        chosen = None if targets is None else self._targets(targets)
        if chosen is not None:
            odds = odds[:, votive.tensor(chosen)]
        count = 5 if top_k is None else top_k
        values, places = odds.topk(min(count, odds.shape[-1]), -1)
        found = []
        for gap, scores, at in zip(gaps, values.tolist(), places.tolist(), strict=True):
            fillings = []
            for score, place in zip(scores, at, strict=True):
                token = place if chosen is None else chosen[place]
                filled = [token if i == gap else t for i, t in enumerate(ids)]
                text = tok.decode([t for t in filled if t != tok.pad_token_id], skip_special_tokens=len(gaps) == 1)
                fillings.append({"score": score, "token": token, "token_str": tok.decode([token]), "sequence": text})
            found.append(fillings)
        return found[0] if len(gaps) == 1 else found

    def _targets(self, targets: str | list[str]) -> list[int]:
        """Ids of words; of one that is no token, its first token."""
        tok, known, found = self.tokenizer, self.tokenizer.get_vocab(), []
        for target in [targets] if isinstance(targets, str) else targets:
            if target in known:
                found.append(known[target])
                continue
            ids = tok(target, add_special_tokens=False).input_ids[:1]
            what = f"{tok.convert_ids_to_tokens(ids[0])!r} is taken" if ids else "it is left out"
            warnings.warn(f"FillMaskPipeline: the target {target!r} is no token; {what}.", stacklevel=4)
            found += ids
        if not found:
            raise ValueError("FillMaskPipeline: none of the targets is a token.")
        return sorted(set(found))
