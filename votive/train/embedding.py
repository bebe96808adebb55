"""Contrastive learning of vectors: pairs of texts, whose partners in a batch are each other's negatives.

Knows the recipe and sentence encoders.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import votive
from votive.nn import functional as F

from ..data import DataLoader
from ..tensor import Tensor
from .examples import Example
from .finetuning import Job, Start
from .packing import Shares
from .tuning import EmbedRecipe


def ranking_loss(
    anchors: Tensor,
    candidates: Tensor,
    *,
    temperature: float = 0.05,
    symmetric: bool = False,
    excluded: Tensor | None = None,
) -> Tensor:
    """How badly anchors (n, features) find their positives, the first n of the candidates, among all candidates.

    The mean of -log softmax(cos / temperature) at each anchor's own; with `symmetric`, the mean of that and of how
    positives find their anchors. `excluded` (n, candidates) is True where a candidate is no negative.

    >>> votive.train.ranking_loss(votive.eye(2), votive.eye(2), temperature=1.0)
    tensor(0.3133)
    """
    n = anchors.shape[0]
    scores = F.normalize(anchors.float(), dim=-1) @ F.normalize(candidates.float(), dim=-1).t() / temperature
    if excluded is not None:
        scores = scores.masked_fill(excluded, float("-inf"))
    own = votive.arange(n, device=scores.device)
    loss: Tensor = F.cross_entropy(scores, own)
    return (loss + F.cross_entropy(scores[:, :n].t(), own)) / 2 if symmetric else loss


@dataclass(frozen=True)
class Pair:
    """Texts that belong together, texts that do not, and the tokens of all: anchor, positive, negatives."""

    texts: list[str]
    ids: list[list[int]]


def job(start: Start) -> Job:
    """The job of an `EmbedRecipe`."""
    recipe: EmbedRecipe = start.recipe
    encoder = encoder_of(start)
    start.prepared(encoder.model, "FEATURE_EXTRACTION")
    if start.adapted:
        encoder.dense.requires_grad_(False)  # an adapter's file has no place for them
    method = Method(recipe, encoder)
    train = method.pairs(start.train)
    held_out = method.pairs(start.held_out) if start.held_out else []
    if len(held_out) == 1 and len(held_out[0].ids) < 3:
        warnings.warn(
            "the one pair that is held out has nothing to be told apart from, so nothing is measured; hold out more.",
            stacklevel=2,
        )
        held_out = []
    if len(train) < 2 and all(len(pair.ids) < 3 for pair in train):
        raise ValueError("one pair without negatives has nothing to be told apart from; give more examples.")

    def save(out: Path) -> None:
        if any(not bool(p.isfinite().all()) for p in encoder.parameters() if p.requires_grad):
            raise FloatingPointError("the weights hold infinities or NaN; lower the learning rate.")
        written = encoder
        if recipe.save_dtype is not None:
            # A copy: whoever goes on training keeps full precision.
            written = copy.deepcopy(encoder)
            written.model.to(dtype=getattr(votive, recipe.save_dtype))
        written.save_pretrained(out)

    return Job(
        encoder,
        encoder.tokenizer,
        Shares(method.loader(train, shuffle=True), recipe.accumulate, lambda batch: batch["anchor_ids"].shape[0]),
        method.loader(held_out) if held_out else None,
        method.step,
        method.measure,
        save=save,
        unit="pairs",
    )


def encoder_of(start: Start) -> Any:
    """The sentence encoder that is trained: one that was given, one around a model, or that of a folder."""
    from ..models.sentence import SentenceEncoder

    recipe: EmbedRecipe = start.recipe
    if isinstance(start.source, SentenceEncoder):
        encoder: Any = start.source
    elif isinstance(start.source, votive.nn.Module):
        encoder = SentenceEncoder(start.source, start.own_tokenizer)
    else:
        encoder = SentenceEncoder.from_pretrained(recipe.model, dtype="float32", device=start.device)
        if start.own_tokenizer is not None:
            encoder.tokenizer = start.own_tokenizer
    if recipe.pooling is not None:
        encoder.pool_by(recipe.pooling)
    return encoder


@dataclass
class Method:
    """What is computed of pairs."""

    recipe: EmbedRecipe
    encoder: Any

    def pairs(self, examples: Sequence[Example]) -> list[Pair]:
        """Pairs with their tokens; with truncation="drop", those with a longer text are left out."""
        found = [self._pair(example) for example in examples]
        kept = [pair for pair in found if pair is not None]
        if len(kept) < len(found):
            warnings.warn(
                f"{len(found) - len(kept)} of {len(found)} examples are left out (the first: "
                f"{examples[found.index(None)].where}): a text is longer than {self.limit} tokens.",
                stacklevel=2,
            )
        if not kept:
            raise ValueError(f"no example fits into context={self.limit}.")
        return kept

    @property
    def limit(self) -> int:
        """How many tokens a text may have."""
        own = self.encoder.max_length
        return self.recipe.context if own is None else min(own, self.recipe.context)

    @property
    def before(self) -> str:
        """What is put before each text."""
        found: str = self.encoder.prompts.get(self.encoder.default_prompt, "")
        return found

    def _pair(self, example: Example) -> Pair | None:
        if "anchor" not in example or "positive" not in example:
            names = ", ".join(map(repr, example.values)) or "nothing"
            example.wrong(f'needs "anchor" and "positive"; it has {names}.')
        texts = [example.text("anchor"), example.text("positive"), *_negatives(example)]
        written = [self.before + text for text in texts]
        if self.encoder.lower_case:
            written = [text.lower() for text in written]
        limit, rule = self.limit, self.recipe.truncation
        if rule != "keep_start":
            lengths = list(map(len, self.encoder.tokenizer(written)["input_ids"]))
            if max(lengths) > limit and rule == "error":
                example.wrong(f"has a text of {max(lengths)} tokens, more than {limit}.")
            if max(lengths) > limit:
                return None
        return Pair(texts, self.encoder.tokenizer(written, truncation=True, max_length=limit)["input_ids"])

    def loader(self, pairs: list[Pair], *, shuffle: bool = False) -> DataLoader:
        """Batches of pairs. A last one of a single pair, which has no negatives, is left out."""
        size = min(self.recipe.batch_size, len(pairs))
        alone = len(pairs) > size and len(pairs) % size == 1
        return DataLoader(pairs, size, shuffle=shuffle, collate_fn=self.collate, drop_last=alone)

    def collate(self, pairs: Sequence[Pair]) -> dict[str, Tensor]:
        """Tokens of anchors and of candidates: positives in the anchors' order, then negatives."""
        texts = [pair.texts[1] for pair in pairs] + [text for pair in pairs for text in pair.texts[2:]]
        ids = [pair.ids[1] for pair in pairs] + [row for pair in pairs for row in pair.ids[2:]]
        # What is the same as an anchor's positive, or as the anchor, is no negative of it.
        same = [
            [j != i and text in (pair.texts[0], pair.texts[1]) for j, text in enumerate(texts)]
            for i, pair in enumerate(pairs)
        ]
        anchor_ids, anchor_mask = self._padded([pair.ids[0] for pair in pairs])
        candidate_ids, mask = self._padded(ids)
        return {
            "anchor_ids": anchor_ids,
            "anchor_mask": anchor_mask,
            "ids": candidate_ids,
            "mask": mask,
            "excluded": votive.tensor(same),
        }

    def _padded(self, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
        length = max(1, *map(len, rows))
        pad = getattr(self.encoder.tokenizer, "pad_token_id", None) or 0
        ids = [row + [pad] * (length - len(row)) for row in rows]
        mask = [[1] * len(row) + [0] * (length - len(row)) for row in rows]
        return votive.tensor(ids), votive.tensor(mask)

    def step(self, model: Any, batch: Mapping[str, Any]) -> Tensor:
        """The loss of a batch, times its share."""
        loss: Tensor = self._loss(*self._vectors(model, batch), batch["excluded"]) * batch["share"]
        return loss

    def measure(self, model: Any, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The loss of a batch, and how many anchors have their positive nearest among its candidates."""
        anchors, candidates = self._vectors(model, batch)
        scores = F.normalize(anchors, dim=-1) @ F.normalize(candidates, dim=-1).t()
        nearest = scores.masked_fill(batch["excluded"], float("-inf")).argmax(-1)
        right = nearest == votive.arange(len(nearest), device=nearest.device)
        loss = self._loss(anchors, candidates, batch["excluded"])
        return {"loss": loss, "accuracy": right.float().mean(), "weight": len(nearest)}

    def _vectors(self, model: Any, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        prompt = self.encoder.left_out(self.before, self.limit)
        return model(batch["anchor_ids"], batch["anchor_mask"], prompt), model(batch["ids"], batch["mask"], prompt)

    def _loss(self, anchors: Tensor, candidates: Tensor, excluded: Tensor) -> Tensor:
        recipe = self.recipe
        return ranking_loss(
            anchors, candidates, temperature=recipe.temperature, symmetric=recipe.symmetric, excluded=excluded
        )


def _negatives(example: Example) -> list[str]:
    value = example.values.get("negative")
    if value is None:
        return []
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in several):
        example.wrong('"negative" must be a text or a list of texts.')
    return several
