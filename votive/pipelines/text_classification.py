"""Classes of texts, and of pairs of them. Names of arguments and of results are transformers'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .base import Pipeline, Row
from .scores import applied, array, best, function_of, named

_ONE: Any = object()


class TextClassificationPipeline(Pipeline):
    """`pipe(text)` gives `[{"label": …, "score": …}]`; a pair is `{"text": …, "text_pair": …}`.

    With `top_k` come so many classes of a text, or all with None. Other options go to the tokenizer.

    >>> votive.pipelines.TextClassificationPipeline.uses
    ('classify',)
    """

    task, uses = "text-classification", ("classify",)

    def __call__(self, inputs: Any = None, **options: Any) -> Any:
        """Classes of a text, or of each in a list."""
        found = super().__call__(inputs, **options)
        # As everywhere, one text without a number of classes gives a list.
        return [found] if isinstance(inputs, str) and "top_k" not in options else found

    def prepare(self, item: Any, **tokenizer_options: Any) -> Iterable[Row]:
        """One row."""
        if isinstance(item, Mapping):
            given = dict(item)
            text, pair = given.pop("text", None), given.pop("text_pair", None)
            return [Row(self.encoded(text, pair, **given, **tokenizer_options))]
        if isinstance(item, list | tuple) and len(item) == 1 and isinstance(item[0], list) and len(item[0]) == 2:
            return [Row(self.encoded(*item[0], **tokenizer_options))]
        if not isinstance(item, str):
            raise ValueError(
                f"{type(self).__name__}: give a text, or a pair as {{'text': …, 'text_pair': …}}; got "
                f"{type(item).__name__}."
            )
        return [Row(self.encoded(item, **tokenizer_options))]

    def finish(self, rows: list[Row], function_to_apply: str | None = None, top_k: Any = _ONE) -> Any:
        """Classes by their scores."""
        config, logits = self.model.config, array(rows[0].found["logits"])[0]
        scores = applied(logits, function_of(config, function_to_apply, type(self).__name__))
        found = named(scores, config.id2label)
        # Of equal scores the first, as argmax has it.
        return found[int(scores.argmax())] if top_k is _ONE else best(found, top_k)
