"""The vectors that a model without a head makes of texts, or of pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import votive

from .base import Pipeline, Row
from .pictures import pixels


class FeatureExtractionPipeline(Pipeline):
    """`pipe(text)` gives lists (1, tokens, features); with `return_tensors=True` a tensor.

    `truncation` and `tokenize_kwargs` go to the tokenizer. Padding of a batch is left out.

    >>> votive.pipelines.FeatureExtractionPipeline.uses
    ('base',)
    """

    task, uses = "feature-extraction", ("base",)

    def prepare(
        self, item: str, truncation: bool | str | None = None, tokenize_kwargs: Mapping[str, Any] | None = None
    ) -> Iterable[Row]:
        """One row."""
        options = dict(tokenize_kwargs or {})
        if truncation is not None:
            if "truncation" in options:
                raise ValueError("FeatureExtractionPipeline: truncation came twice, also in tokenize_kwargs.")
            options["truncation"] = truncation
        return [Row(self.encoded(item, **options))]

    def finish(self, rows: list[Row], return_tensors: bool = False) -> Any:
        """Vectors of the tokens."""
        row = rows[0]
        found = row.trimmed(next(iter(row.found)), self.tokenizer.padding_side)
        return found if return_tensors else found.tolist()


class ImageFeatureExtractionPipeline(Pipeline):
    """`pipe(picture)` gives lists (1, places, features), or with `pool=True` the vector for the picture.

    >>> votive.pipelines.ImageFeatureExtractionPipeline.needs
    ('image_processor',)
    """

    task, uses, needs = "image-feature-extraction", ("base",), ("image_processor",)

    def prepare(self, item: Any, image_processor_kwargs: Mapping[str, Any] | None = None) -> Iterable[Row]:
        """One row."""
        return [Row(pixels(self.image_processor, item, **(image_processor_kwargs or {})))]

    def finish(self, rows: list[Row], return_tensors: bool = False, pool: bool = False) -> Any:
        """Vectors."""
        found = rows[0].found
        if pool and not isinstance(found.get("pooler_output"), votive.Tensor):
            raise ValueError(
                f"{type(self).__name__}: a {type(self.model).__name__} has no vector for the whole picture; use "
                "pool=False."
            )
        value = found["pooler_output"] if pool else next(iter(found.values()))
        return value if return_tensors else value.tolist()
