"""Classes of texts: labels by name or number, batches, the loss of a model with a head. Knows the recipe."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import votive

from ..data import DataLoader
from ..tensor import Tensor
from .examples import Example
from .finetuning import Job, Start
from .labels import Labels
from .packing import Shares
from .tuning import ClassifyRecipe


def job(start: Start) -> Job:
    """The job of a `ClassifyRecipe`."""
    from ..models import AutoModelForSequenceClassification

    recipe: ClassifyRecipe = start.recipe
    labels = Labels.of([*start.train, *start.held_out], recipe.labels, recipe.problem)
    tokenizer = start.tokenizer()
    model, fresh = model_of(start, AutoModelForSequenceClassification, labels)
    if getattr(model.config, "pad_token_id", None) is None:
        model.config.pad_token_id = getattr(tokenizer, "pad_token_id", None)  # before it decoders find a text's end
    start.prepared(model, "SEQ_CLS", fresh)
    method = Method(recipe, tokenizer, labels, model.config.pad_token_id)
    train, held_out = method.rows(start.train), method.rows(start.held_out) if start.held_out else []
    return Job(
        model,
        tokenizer,
        Shares(method.loader(train, shuffle=True), recipe.accumulate, lambda batch: len(batch["labels"])),
        method.loader(held_out) if held_out else None,
        step,
        method.measure,
        unit="items",
    )


def labels_of(examples: Sequence[Example], given: Sequence[str] | None = None) -> list[str]:
    """The names of classes, in their order: those given, or those of the data, sorted; of numbers, up to the largest.

    >>> from votive.train.examples import read_examples
    >>> data = [{"text": "a", "label": "good"}, {"text": "b", "label": "bad"}]
    >>> votive.train.classification.labels_of(read_examples(data))
    ['bad', 'good']
    >>> votive.train.classification.labels_of(read_examples([{"text": "a", "label": 1}]))
    ['LABEL_0', 'LABEL_1']
    """
    return list(Labels.of(examples, given).names)


def model_of(start: Start, auto: Any, labels: Labels) -> tuple[Any, list[str]]:
    """The model with a head for so many classes, each with its name, and which parts begin with random numbers.

    A head that fits goes on learning.
    """
    fresh: list[str] = []
    names = labels.names
    if isinstance(start.source, votive.nn.Module):
        model = start.source
        if model.config.num_labels != len(names):
            raise ValueError(
                f"classify: the model has a head for {model.config.num_labels} classes, and there are {len(names)}: "
                f"{', '.join(names)}."
            )
    else:
        _check_head(start.recipe.model)
        changes = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            options = {"ignore_mismatched_sizes": True, "output_loading_info": True}
            model, info = start.model(auto, **options, **changes)
        started = sorted({*info["missing_keys"], *(row[0] for row in info["mismatched_keys"])})
        fresh = sorted({_module(model, key) for key in started})
        if any("." in path for path in fresh):
            # A new head begins with random numbers, which is what training is for; anything else is worth telling.
            for warning in told:
                warnings.warn(warning.message, stacklevel=2)
    model.config.problem_type = labels.problem
    return model, fresh


def _check_head(name: str) -> None:
    from ..models import auto
    from ..models.adapter_files import base_of, is_adapter

    path = Path(name)
    below = base_of(path) if is_adapter(path) else name
    kind = auto.AutoConfig.from_pretrained(below or name).model_type
    if "classify" not in auto._family(kind)[1]:
        raise ValueError(
            f"classify: {name} is a {kind}, which has no head for classes of texts; begin with a decoder or an "
            "encoder, such as a Qwen3 or a BERT."
        )


def _module(model: Any, key: str) -> str:
    """What a weight that is not in the file belongs to: a head as a whole, or a layer of the body."""
    first = key.partition(".")[0]
    return key.rpartition(".")[0] if first == getattr(model, "base_model_prefix", "") else first


@dataclass(frozen=True)
class Row:
    """The tokens of a text, or of a pair, and its class, its classes or its number."""

    inputs: dict[str, list[int]]
    label: int | float | list[float]


@dataclass
class Method:
    """How examples become batches."""

    recipe: ClassifyRecipe
    tokenizer: Any
    labels: Labels
    pad: int | None = None

    def rows(self, examples: Sequence[Example]) -> list[Row]:
        """Texts as tokens; with truncation="drop", longer ones are left out."""
        found = [self._row(example) for example in examples]
        kept = [row for row in found if row is not None]
        if len(kept) < len(found):
            warnings.warn(
                f"{len(found) - len(kept)} of {len(found)} examples are left out (the first: "
                f"{examples[found.index(None)].where}): they are longer than context={self.recipe.context}.",
                stacklevel=2,
            )
        if not kept:
            raise ValueError(f"no example fits into context={self.recipe.context}.")
        return kept

    def _row(self, example: Example) -> Row | None:
        text = example.text("text")
        pair = example.text("text_pair") if "text_pair" in example else None
        limit, rule = self.recipe.context, self.recipe.truncation
        whole = self.tokenizer(text, pair)
        length = len(whole["input_ids"])
        if not length:
            example.wrong('"text" is empty.')
        if length > limit:
            if rule == "error":
                example.wrong(f"has {length} tokens, more than context={limit}.")
            if rule == "drop":
                return None
            whole = self.tokenizer(text, pair, truncation=True, max_length=limit)
        return Row({name: list(whole[name]) for name in whole}, self.labels.target(example))

    def loader(self, rows: list[Row], *, shuffle: bool = False) -> DataLoader:
        """Batches of rows."""
        return DataLoader(rows, min(self.recipe.batch_size, len(rows)), shuffle=shuffle, collate_fn=self.collate)

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Rows padded on the right."""
        length = max(len(row.inputs["input_ids"]) for row in rows)
        pad = getattr(self.tokenizer, "pad_token_id", None) if self.pad is None else self.pad
        padding = {"input_ids": int(pad or 0)}
        names = list(dict.fromkeys([*rows[0].inputs, "attention_mask"]))
        columns = {
            name: [
                values + [padding.get(name, 0)] * (length - len(values))
                for row in rows
                for values in [row.inputs.get(name) or [1] * len(row.inputs["input_ids"])]
            ]
            for name in names
        }
        batch = {name: votive.tensor(column) for name, column in columns.items()}
        return {**batch, "labels": self.labels.tensor([row.label for row in rows])}

    def measure(self, model: Any, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The mean loss of texts, and how many of them get their own class, or how far off numbers are."""
        found = model(**batch)
        told = self.labels.measured(found.logits, batch["labels"])
        return {"loss": found.loss, **told, "weight": len(batch["labels"])}


def step(model: Any, batch: Mapping[str, Any]) -> Tensor:
    """The mean loss of a batch's texts, times the batch's share."""
    loss: Tensor = model(**{name: value for name, value in batch.items() if name != "share"}).loss
    return loss * batch["share"]
