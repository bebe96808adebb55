"""Models that see, for the studio: how they are loaded, and a picture that was looked at.

A folder of a ViT, DeiT, BEiT, CLIP or TrOCR, or a file of weights whose name is that of a network.
Knows the glass engine's results; knows no page.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from .. import glass
from ..glass.parts import Parts, find_parts
from ..glass.residual_stream import logits_of
from .models import Loaded

if TYPE_CHECKING:
    from ..glass import FeatureMaps, GradCam, PatchAttention
    from ..models.checkpoint import Checkpoint
    from ..nn import Module
    from ..tensor import Tensor


# Pixels of a picture that is taken from a page, classes that are told, tokens that are read.
LARGEST, CLASSES, TOKENS = 16 << 20, 10, 64


def is_net_file(place: str) -> bool:
    """Whether a file is the weights of a network that its name names."""
    path = Path(place)
    return (
        path.is_file()
        and path.suffix in (".pth", ".pt", ".safetensors")
        and not (path.parent / "config.json").is_file()
    )


def is_vision_model(config: dict[str, Any]) -> bool:
    """Whether a configuration is that of a model that reads pictures."""
    from ..models import auto

    kind = config.get("model_type")
    if kind not in auto.families():
        return False
    uses = auto._family(kind)[1]
    return bool({"image", "vision2seq"} & set(uses)) or kind == "clip_vision_model"


class VisionModel(Loaded):
    """A model that sees: how pictures are prepared for it, and what its classes are called."""

    def __init__(
        self,
        name: str,
        model: Module,
        prepare: Callable[[Any], Tensor],
        labels: Mapping[Any, str] | None = None,
        tokenizer: Any = None,
    ) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.prepare, self.labels = prepare, labels or {}
        try:
            self.parts = find_parts(model)
        except (LookupError, ValueError, TypeError):
            self.parts = Parts(model, (), ())
        self._texts: dict[int, str] = {}
        self._info: dict[str, Any] | None = None

    @property
    def dtype(self) -> Any:
        return next(p.dtype for p in self.model.parameters() if p.is_floating_point())

    def label(self, i: int) -> str:
        """The name of a class."""
        return str(self.labels.get(str(i)) or self.labels.get(i) or f"class {i}")

    def lines(self) -> list[str]:
        if not hasattr(self.model, "from_pretrained"):
            kind = self.name.partition("-")[0].partition(".")[0]
            return [f"model = votive.vision.models.get_model({kind!r}, weights={self.name!r})"]
        made = type(self.model).__name__
        return [
            f"model = votive.models.{made}.from_pretrained({self.name!r})",
            f"processor = votive.models.AutoProcessor.from_pretrained({self.name!r})",
        ]

    def info(self) -> dict[str, Any]:
        if self._info is None:
            model, config = self.model, getattr(self.model, "config", None)
            fields = {} if config is None else config.to_dict()
            inner = fields.get("encoder") or fields.get("vision_config") or fields
            self._info = {
                "name": self.name,
                "family": fields.get("model_type", type(model).__name__),
                "class": type(model).__name__,
                "layers": len(self.parts.layers),
                "heads": int(inner.get("num_attention_heads") or 0),
                "hidden": int(inner.get("hidden_size") or 0),
                "vocab": 0,
                "context": 0,
                "dtype": str(self.dtype).removeprefix("votive."),
                "device": str(next(model.parameters()).device),
                "parameters": sum(p.numel() for p in model.parameters()),
                "parts": {"layers": [], "norm": None, "head": None, "embedding": None},
                "tree": [{"address": n, "class": type(m).__name__} for n, m in model.named_modules()],
                "settings": {},
                "vision": True,
            }
        return self._info


def load_vision_model(name: str, place: str, found: Checkpoint | None = None) -> VisionModel:
    """A model that sees, from a file of weights or from what Checkpoint.find found."""
    from .. import models as model_classes

    models: Any = model_classes  # classes are loaded when they are first asked for

    if found is None:
        return _net(name, Path(place))
    kind = found.config.get("model_type")
    processor = models.AutoImageProcessor.from_pretrained(found.path)

    def prepare(picture: Any) -> Any:
        return processor(picture, return_tensors="vt").pixel_values

    if kind == "vision-encoder-decoder":
        from ..text import Tokenizer

        tokenizer = Tokenizer.from_pretrained(found.tokenizer)
        reads = models.VisionEncoderDecoderModel.from_checkpoint(found)
        return VisionModel(name, reads, prepare, tokenizer=tokenizer)
    architectures = found.config.get("architectures") or []
    if any("ForImageClassification" in a for a in architectures):
        model = models.AutoModelForImageClassification._class_for(kind, architectures).from_checkpoint(found)
        return VisionModel(name, model, prepare, model.config.id2label)
    if kind in ("clip", "clip_vision_model"):
        return VisionModel(name, models.CLIPVisionModel.from_checkpoint(found), prepare)
    return VisionModel(name, models.AutoModel._class_for(kind, architectures).from_checkpoint(found), prepare)


def _net(name: str, path: Path) -> VisionModel:
    from ..vision import models

    kind, model = models.model_from_file(path)
    preset = models.preset(kind)
    classes = models.imagenet_classes()
    named = model(votive.zeros(1, 3, 64, 64)).shape[-1] == len(classes)
    labels = dict(enumerate(classes)) if named else {}
    return VisionModel(name, model, lambda picture: preset(picture).unsqueeze(0), labels)


class PictureAnalysis:
    """A picture in front of a model; what the glass engine says of it is computed when asked."""

    def __init__(self, loaded: VisionModel, picture: Any) -> None:
        self.loaded = loaded
        x = loaded.prepare(picture)
        self.pixels = x.to(next(loaded.model.parameters()).device, loaded.dtype)
        self.given: dict[str, Any] = {}
        self.tokens: list[str] = []
        if loaded.tokenizer is not None:
            ids = loaded.model.generate(self.pixels, max_new_tokens=self._most())
            self.given["decoder_input_ids"] = ids[:, :-1]
            # What a position looks at belongs to the token that it writes.
            self.tokens = [loaded.tokenizer.decode([int(t)]) for t in ids[0, 1:]]

    def _most(self) -> int:
        return min(TOKENS, self.loaded.model.config.max_position_embeddings - 1)

    @cached_property
    def picture(self) -> np.ndarray:
        """What the model saw, as bytes (height, width, 3)."""
        from ..glass.pixels import as_picture

        return as_picture(self.pixels[0])

    def classes(self) -> list[dict[str, Any]]:
        """The likeliest classes; none for a model without a head of classes."""
        if self.tokens or self.given:
            return []
        out = self.loaded.model(self.pixels)
        if not isinstance(out, votive.Tensor) and "logits" not in out:
            return []
        p = logits_of(out).float().softmax(-1)[0]
        best = p.topk(min(CLASSES, p.shape[0]))
        return [
            {"id": int(i), "label": self.loaded.label(int(i)), "p": float(v)}
            for i, v in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    @cached_property
    def attention(self) -> PatchAttention | None:
        """Attention over patches; None for a network that has none."""
        try:
            return glass.patch_attention(self.loaded.model, self.pixels, **self.given)
        except LookupError:
            return None

    @cached_property
    def maps(self) -> FeatureMaps:
        """Maps of features of all convolutions."""
        return glass.feature_maps(self.loaded.model, self.pixels, **self.given)

    def cam(self, target: int | None) -> GradCam:
        """Where a class is seen."""
        return glass.grad_cam(self.loaded.model, self.pixels, target=target)


def picture_from(text: str | None) -> Any:
    """A pillow image from base64, or a drawing where nothing came."""
    from PIL import Image, ImageOps

    if text is None:
        return Image.fromarray(drawing())
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("vision.look: the picture must be base64.") from None
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "GIF", "BMP")) as file:
            if file.width * file.height > LARGEST:
                raise ValueError(f"vision.look: {file.width} x {file.height} pixels are too many.")
            return ImageOps.exif_transpose(file).convert("RGB")
    except (OSError, SyntaxError) as e:
        raise ValueError(f"vision.look: this is not an image that pillow can read ({e}).") from None


def drawing(size: int = 224) -> np.ndarray:
    """A ball on a plain ground, to begin with: bytes (size, size, 3)."""
    y, x = np.mgrid[0:size, 0:size] / size
    ball = np.clip((0.33 - np.hypot(y - 0.5, x - 0.5)) * 50, 0, 1)[..., None]
    light = (0.35 + 0.65 * np.clip(1 - np.hypot(y - 0.36, x - 0.36) / 0.55, 0, 1))[..., None]
    colour = np.array([1.0, 0.55, 0.1]) * light * ball + 0.92 * (1 - ball)
    return np.rint(colour * 255).astype(np.uint8)
