"""Classes that are named when they are asked for: by a model that says whether one text follows from another.

Yin et al. 2019, arXiv:1909.00161. Names of arguments and of results are transformers'.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .base import Pipeline, Row
from .scores import array, softmax


def labels_of(labels: str | list[str] | None, name: str) -> list[str]:
    """Labels as a list, of one text with commas too.

    >>> from votive.pipelines.zero_shot import labels_of
    >>> labels_of("sports, news", "pipe")
    ['sports', 'news']
    """
    found = [part.strip() for part in labels.split(",") if part.strip()] if isinstance(labels, str) else labels
    if not found:
        raise ValueError(f"{name}: give candidate_labels, at least one.")
    return list(found)


class ZeroShotClassificationPipeline(Pipeline):
    """`pipe(text, candidate_labels=["news", "sports"])` gives the labels by their scores.

    With `multi_label` each label's score is its own; otherwise they sum to one.

    >>> votive.pipelines.ZeroShotClassificationPipeline.task
    'zero-shot-classification'
    """

    task, uses = "zero-shot-classification", ("classify",)
    other_name = "sequences"

    def __call__(self, inputs: Any = None, candidate_labels: Any = None, **options: Any) -> Any:
        """Labels of a text, or of each in a list."""
        if candidate_labels is not None:
            options["candidate_labels"] = candidate_labels
        return super().__call__(inputs, **options)

    @property
    def entailment_id(self) -> int:
        """The class that says that one text follows from the other."""
        found = [i for i, name in self.model.config.id2label.items() if name.lower().startswith("entail")]
        if not found:
            raise ValueError(
                f"{type(self).__name__}: none of the classes {list(self.model.config.id2label.values())} begins with "
                "'entail'; name them in the model's config.id2label."
            )
        return int(found[0])

    def prepare(
        self,
        item: str,
        candidate_labels: str | list[str] | None = None,
        hypothesis_template: str = "This example is {}.",
    ) -> Iterable[Row]:
        """A row for each label."""
        name = type(self).__name__
        labels = labels_of(candidate_labels, name)
        if hypothesis_template.format(labels[0]) == hypothesis_template:
            raise ValueError(f"{name}: hypothesis_template={hypothesis_template!r} has no {{}} for the label.")
        limit = self.tokenizer.model_max_length
        cut: dict[str, Any] = {"truncation": "only_first", "max_length": limit} if limit else {}
        for label in labels:
            pair = self.encoded(item, hypothesis_template.format(label), **cut)
            yield Row(pair, {"label": label, "text": item})

    def finish(self, rows: list[Row], multi_label: bool = False) -> Any:
        """Labels, best first."""
        logits = np.concatenate([array(row.found["logits"]) for row in rows])
        entails = self.entailment_id
        if multi_label or len(rows) == 1:
            against = -1 if entails == 0 else 0
            scores = softmax(logits[:, [against, entails]])[:, 1]
        else:
            scores = softmax(logits[:, entails])
        order = list(reversed(scores.argsort()))
        return {
            "sequence": rows[0].told["text"],
            "labels": [rows[i].told["label"] for i in order],
            "scores": [float(scores[i]) for i in order],
        }
