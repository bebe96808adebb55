"""Classes of pictures, of those that a model learned and of those that are named when it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import votive

from ..models.image_processing import BatchFeature
from ..tensor import Tensor
from .base import Pipeline, Row
from .pictures import pixels
from .scores import applied, array, best, function_of, named
from .zero_shot import labels_of


class ImageClassificationPipeline(Pipeline):
    """`pipe(picture)` gives the five likeliest classes; a picture is a path, pillow's, an array or a tensor.

    >>> votive.pipelines.ImageClassificationPipeline.needs
    ('image_processor',)
    """

    task, uses, needs = "image-classification", ("image",), ("image_processor",)
    other_name = "images"

    def prepare(self, item: Any) -> Iterable[Row]:
        """One row."""
        return [Row(pixels(self.image_processor, item))]

    def finish(
        self, rows: list[Row], function_to_apply: str | None = None, top_k: int | None = 5
    ) -> list[dict[str, Any]]:
        """Classes, best first."""
        config, logits = self.model.config, array(rows[0].found["logits"])[0]
        scores = applied(logits, function_of(config, function_to_apply, type(self).__name__))
        return best(named(scores, config.id2label), top_k)


class ZeroShotImageClassificationPipeline(Pipeline):
    """`pipe(picture, candidate_labels=["a cat", "a dog"])` gives the labels by their scores.

    >>> votive.pipelines.ZeroShotImageClassificationPipeline.uses
    ('zero_shot_image',)
    """

    task, uses = "zero-shot-image-classification", ("zero_shot_image",)
    needs = ("image_processor", "tokenizer")
    other_name = "images"

    def __call__(self, inputs: Any = None, candidate_labels: Any = None, **options: Any) -> Any:
        """Labels of a picture, or of each in a list."""
        if candidate_labels is not None:
            options["candidate_labels"] = candidate_labels
        return super().__call__(inputs, **options)

    def prepare(self, item: Any) -> Iterable[Row]:
        """One row."""
        return [Row(pixels(self.image_processor, item))]

    @property
    def _each_alone(self) -> bool:
        """Whether a label's score says nothing of the others, as SigLIP's."""
        return "siglip" in self.model.config.model_type

    def run(
        self,
        tensors: dict[str, Tensor],
        candidate_labels: list[str] | None = None,
        hypothesis_template: str = "This is a photo of {}.",
        tokenizer_kwargs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """How near each picture is to each label."""
        labels = labels_of(candidate_labels, type(self).__name__)
        options: dict[str, Any] = {"padding": True}
        if self._each_alone:
            options = {"padding": "max_length", "max_length": 64, "truncation": True}
        texts = self.encoded([hypothesis_template.format(x) for x in labels], **{**options, **(tokenizer_kwargs or {})})
        moved = {k: v.to(self.device) for k, v in texts.items()}
        logits = self.model(**self.accepted({**moved, **tensors})).logits_per_image
        return {"odds": logits.sigmoid() if self._each_alone else logits.softmax(-1)}

    def finish(self, rows: list[Row], candidate_labels: list[str] | None = None) -> list[dict[str, Any]]:
        """Labels, best first."""
        odds = rows[0].found["odds"][0].float().tolist()
        labels = labels_of(candidate_labels, type(self).__name__)
        pairs = sorted(zip(odds, labels, strict=True), key=lambda one: -one[0])
        return [{"score": score, "label": label} for score, label in pairs]


class ImageToTextPipeline(Pipeline):
    """`pipe(picture)` gives `[{"generated_text": …}]`: what a picture says, by a TrOCR or its like.

    `max_new_tokens` and `generate_kwargs` are settings of `generate`.

    >>> votive.pipelines.ImageToTextPipeline.uses
    ('vision2seq',)
    """

    task, uses = "image-to-text", ("vision2seq",)
    needs = ("image_processor", "tokenizer")
    other_name = "images"

    def prepare(self, item: Any) -> Iterable[Row]:
        """One row."""
        return [Row(pixels(self.image_processor, item))]

    def run(
        self,
        tensors: dict[str, Tensor],
        max_new_tokens: int | None = None,
        generate_kwargs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Texts (batch, texts, tokens)."""
        settings = dict(generate_kwargs or {})
        if max_new_tokens is not None:
            if "max_new_tokens" in settings:
                raise ValueError(f"{type(self).__name__}: max_new_tokens came twice, also in generate_kwargs.")
            settings["max_new_tokens"] = max_new_tokens
        x = tensors["pixel_values"]
        found = self.model.generate(x, **settings)
        found = found if isinstance(found, Tensor) else found.sequences
        return {"sequences": found.reshape(x.shape[0], -1, found.shape[-1])}

    def finish(self, rows: list[Row]) -> list[dict[str, Any]]:
        """A record for each text that was made."""
        texts = rows[0].found["sequences"][0].tolist()
        return [{"generated_text": self.tokenizer.decode(t, skip_special_tokens=True)} for t in texts]


class ImageSegmentationPipeline(Pipeline):
    """`pipe(picture)` gives for each class that is seen `{"score": None, "label": …, "mask": …}`, masks as pillow's.

    >>> votive.pipelines.ImageSegmentationPipeline.uses
    ('segment',)
    """

    task, uses, needs = "image-segmentation", ("segment",), ("image_processor",)
    other_name = "images"

    def ready(self) -> None:
        """The processor makes maps of scores."""
        if not hasattr(self.image_processor, "post_process_semantic_segmentation"):
            raise ValueError(
                f"{type(self).__name__}: a {type(self.image_processor).__name__} makes no maps of classes; one such as "
                "SegformerImageProcessor does."
            )

    def prepare(self, item: Any) -> Iterable[Row]:
        """One row."""
        from .pictures import size

        return [Row(pixels(self.image_processor, item), {"size": size(item)})]

    def finish(self, rows: list[Row], subtask: str | None = None) -> list[dict[str, Any]]:
        """Classes with the pixels that have them."""
        if subtask not in (None, "semantic"):
            raise ValueError(f"{type(self).__name__}: subtask={subtask!r} is not here; there is 'semantic'.")
        from PIL import Image

        scores = votive.models.output.PredictionOutput(logits=rows[0].found["logits"])
        sizes = [rows[0].told["size"]]
        found = self.image_processor.post_process_semantic_segmentation(scores, target_sizes=sizes)[0].numpy()
        labels = self.model.config.id2label
        return [
            {"score": None, "label": labels[int(c)], "mask": Image.fromarray(((found == c) * 255).astype("uint8"))}
            for c in sorted(set(found.ravel().tolist()))
        ]


class ObjectDetectionPipeline(Pipeline):
    """`pipe(picture)` gives the things in it: `score`, `label` and `box`, corners in pixels; `threshold` is 0.5.

    >>> votive.pipelines.ObjectDetectionPipeline.uses
    ('detect',)
    """

    task, uses, needs, apart = "object-detection", ("detect",), ("image_processor",), True
    other_name = "images"

    def prepare(self, item: Any) -> Iterable[Row]:
        """One row."""
        from .pictures import size

        return [Row(pixels(self.image_processor, item), {"size": size(item)})]

    def run(self, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """What the model's queries found."""
        found = self.model(**self.accepted(tensors))
        return {"logits": found.logits, "pred_boxes": found.pred_boxes}

    def finish(self, rows: list[Row], threshold: float = 0.5) -> list[dict[str, Any]]:
        """Things that are surer than `threshold`."""
        row = rows[0]
        outputs = BatchFeature(row.found)
        found = self.image_processor.post_process_object_detection(outputs, threshold, [row.told["size"]])[0]
        labels, corners = self.model.config.id2label, ("xmin", "ymin", "xmax", "ymax")
        things = zip(found["scores"].tolist(), found["labels"].tolist(), found["boxes"].tolist(), strict=True)
        return [
            {"score": score, "label": labels[kind], "box": {c: int(v) for c, v in zip(corners, box, strict=True)}}
            for score, kind, box in things
        ]
