"""Processors that prepare pictures and texts together: those of TrOCR and CLIP. Knows no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from .config import StrPath, read_json
from .image_processing import AutoImageProcessor, BatchFeature, read_processor


class Processor:
    """An image processor and a tokenizer that belong together.

    >>> votive.models.TrOCRProcessor(votive.models.ViTImageProcessor(), None)
    TrOCRProcessor(ViTImageProcessor, no tokenizer)
    """

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        self.image_processor, self.tokenizer = image_processor, tokenizer

    @classmethod
    def from_pretrained(cls, name: StrPath, **changes: Any) -> Self:
        """From a folder or a repository id; `changes` replace fields of the image processor."""
        from ..text import Tokenizer

        return cls(AutoImageProcessor.from_pretrained(name, **changes), Tokenizer.from_pretrained(name))

    def save_pretrained(self, folder: StrPath) -> None:
        """Write both into a folder."""
        self.image_processor.extra["processor_class"] = type(self).__name__
        self.image_processor.save_pretrained(folder)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(folder)

    def _needed(self) -> Any:
        if self.tokenizer is None:
            raise ValueError(f"{type(self).__name__}: there is no tokenizer for texts.")
        return self.tokenizer

    def batch_decode(self, *args: Any, **kwargs: Any) -> list[str]:
        """Texts of rows of ids, by the tokenizer."""
        return self._needed().batch_decode(*args, **kwargs)

    def decode(self, *args: Any, **kwargs: Any) -> str:
        """The text of ids, by the tokenizer."""
        return self._needed().decode(*args, **kwargs)

    def __repr__(self) -> str:
        named = "no tokenizer" if self.tokenizer is None else type(self.tokenizer).__name__
        return f"{type(self).__name__}({type(self.image_processor).__name__}, {named})"


class TrOCRProcessor(Processor):
    """Pictures of lines as `pixel_values`, their texts as `labels`.

    >>> processor = votive.models.TrOCRProcessor(votive.models.ViTImageProcessor(size=32), None)
    >>> processor(np.zeros((20, 90, 3), np.uint8), return_tensors="vt").pixel_values.shape
    votive.Size([1, 3, 32, 32])
    """

    def __call__(self, images: Any = None, text: Any = None, return_tensors: str | None = None, **options: Any) -> Any:
        """`options` are the tokenizer's, such as padding."""
        if images is None and text is None:
            raise ValueError("TrOCRProcessor: give images, text, or both.")
        read = None
        if text is not None:
            read = self._needed()(text, return_tensors=return_tensors, **options)
        elif options:
            raise TypeError(f"TrOCRProcessor: {sorted(options)[0]!r} is for texts; none came.")
        if images is None:
            return read
        found = self.image_processor(images, return_tensors=return_tensors)
        if read is not None:
            found["labels"] = read["input_ids"]
        return found


class CLIPProcessor(Processor):
    """Texts as `input_ids` and `attention_mask`, pictures as `pixel_values`.

    >>> processor = votive.models.CLIPProcessor(votive.models.CLIPImageProcessor(), None)
    >>> processor(images=np.zeros((20, 90, 3), np.uint8), return_tensors="vt").pixel_values.shape
    votive.Size([1, 3, 224, 224])
    """

    def __call__(
        self, text: Any = None, images: object = None, return_tensors: str | None = None, **options: Any
    ) -> BatchFeature:
        """`options` are the tokenizer's, such as padding."""
        if images is None and text is None:
            raise ValueError("CLIPProcessor: give text, images, or both.")
        found = BatchFeature()
        if text is not None:
            found.update(self._needed()(text, return_tensors=return_tensors, **options))
        elif options:
            raise TypeError(f"CLIPProcessor: {sorted(options)[0]!r} is for texts; none came.")
        if images is not None:
            found.update(self.image_processor(images, return_tensors=return_tensors))
        return found


class BlipProcessor(CLIPProcessor):
    """Pictures as `pixel_values`; beginnings of captions, or questions, as `input_ids` and `attention_mask`.

    >>> processor = votive.models.BlipProcessor(votive.models.BlipImageProcessor(size=32), None)
    >>> processor(np.zeros((20, 90, 3), np.uint8), return_tensors="vt").pixel_values.shape
    votive.Size([1, 3, 32, 32])
    """

    def __call__(  # type: ignore[override]
        self, images: object = None, text: Any = None, return_tensors: str | None = None, **options: Any
    ) -> BatchFeature:
        """`options` are the tokenizer's, such as padding."""
        found = super().__call__(text, images, return_tensors, **options)
        found.pop("token_type_ids", None)
        return found


class AutoProcessor:
    """The processor that fits a folder: that of TrOCR or CLIP, or an image processor alone.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> votive.models.ViTImageProcessor().save_pretrained(folder)
    >>> type(votive.models.AutoProcessor.from_pretrained(folder)).__name__
    'ViTImageProcessor'
    """

    kinds: ClassVar[dict[str, Any]] = {kind.__name__: kind for kind in (TrOCRProcessor, CLIPProcessor, BlipProcessor)}
    # Where files do not say which, the family of the model does.
    families: ClassVar[dict[str, str]] = {
        "vision-encoder-decoder": "TrOCRProcessor",
        "blip": "BlipProcessor",
        "clip": "CLIPProcessor",
        "sam": "SamProcessor",
    }

    @classmethod
    def from_pretrained(cls, name: StrPath, **changes: Any) -> Any:
        """From a folder or a repository id; `changes` replace fields of the image processor."""
        kind, path = read_processor(name).get("processor_class"), Path(name)
        known = {*cls.kinds, "SamProcessor"}
        if kind not in known and path.is_dir():
            for file in ("processor_config.json", "tokenizer_config.json"):
                if kind not in known and (path / file).is_file():
                    kind = read_json(path / file).get("processor_class")
            if kind not in known and (path / "config.json").is_file():
                kind = cls.families.get(read_json(path / "config.json").get("model_type", ""))
        if kind == "SamProcessor":
            from .sam_processor import SamProcessor

            return SamProcessor.from_pretrained(name, **changes)
        if kind in cls.kinds:
            return cls.kinds[kind].from_pretrained(name, **changes)
        return AutoImageProcessor.from_pretrained(name, **changes)
