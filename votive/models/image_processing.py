"""From pictures to `pixel_values`, as a model's preprocessor_config.json says. Knows no model.

Steps and rounding are those of transformers' processors with pillow: resize on 8 bits, crop, scale
in double precision, normalise in float32.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

import votive

from .checkpoint import download, is_repo_id, write_json
from .config import StrPath, read_json
from .pixels import center_cropped, channels_first, per_channel, pictures_of, resized, size_of, target_size

NAME = "preprocessor_config.json"
_STANDARD, _CLIP_MEAN = [0.5, 0.5, 0.5], [0.48145466, 0.4578275, 0.40821073]
_CLIP_STD = [0.26862954, 0.26130258, 0.27577711]


class BatchFeature(dict[str, Any]):
    """What a processor returns: a dict whose entries are attributes as well.

    >>> votive.models.BatchFeature(pixel_values=votive.ones(1)).pixel_values
    tensor([1.])
    """

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"BatchFeature has no entry {name!r}; it has {', '.join(self)}.")

    def to(self, *args: Any, **kwargs: Any) -> BatchFeature:
        """The same entries, every tensor moved or converted; whole numbers keep their type."""
        moved = {}
        for name, value in self.items():
            if isinstance(value, votive.Tensor):
                whole = not value.is_floating_point()
                value = value.to(value.to(*args, **kwargs).device) if whole else value.to(*args, **kwargs)
            moved[name] = value
        return BatchFeature(moved)


class ImageProcessor:
    """Resize, crop, scale and normalise; the fields are those of preprocessor_config.json.

    >>> processor = votive.models.ViTImageProcessor(size=8)
    >>> processor(np.zeros((10, 12, 3), np.uint8), return_tensors="vt").pixel_values.shape
    votive.Size([1, 3, 8, 8])
    """

    # Resampling filters by pillow's numbers: 0 nearest, 1 lanczos, 2 bilinear, 3 bicubic, …
    defaults: ClassVar[dict[str, Any]] = {
        "do_resize": True,
        "size": {"height": 224, "width": 224},
        "resample": 2,
        "do_center_crop": False,
        "crop_size": {"height": 224, "width": 224},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": _STANDARD,
        "image_std": _STANDARD,
        "do_convert_rgb": None,
    }
    # Whether a single number for the size means a square, or the shorter side.
    square: ClassVar[bool] = True

    do_resize: bool
    size: Any  # a number, or a dict as `size_of` makes it
    resample: int
    do_center_crop: bool
    crop_size: Any
    do_rescale: bool
    rescale_factor: float
    do_normalize: bool
    image_mean: Any
    image_std: Any
    do_convert_rgb: bool | None

    def __init__(self, **fields: Any) -> None:
        # What the file holds besides is kept, and written again.
        self.extra = {k: v for k, v in fields.items() if k not in self.defaults}
        for name, default in self.defaults.items():
            setattr(self, name, fields.get(name, default))
        self.size = size_of(self.size, self.square)
        self.crop_size = size_of(self.crop_size, True)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From the content of preprocessor_config.json."""
        names = ("image_processor_type", "feature_extractor_type", "processor_class")
        return cls(**{k: v for k, v in values.items() if k not in names})

    @classmethod
    def from_pretrained(cls, name: StrPath, **changes: Any) -> Self:
        """From a folder, the file itself, or a repository id; `changes` replace fields."""
        return cls.from_dict({**read_processor(name), **changes})

    def to_dict(self) -> dict[str, Any]:
        """What preprocessor_config.json holds."""
        own = {name: getattr(self, name) for name in self.defaults}
        return {**self.extra, **own, "image_processor_type": type(self).__name__}

    def save_pretrained(self, folder: StrPath) -> None:
        """Write preprocessor_config.json into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / NAME, self.to_dict())

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={getattr(self, k)!r}" for k in ("size", "resample"))
        return f"{type(self).__name__}({fields})"

    def __call__(self, images: object, return_tensors: str | None = None, **changes: Any) -> Any:
        return self.preprocess(images, return_tensors=return_tensors, **changes)

    def preprocess(self, images: object, return_tensors: str | None = None, **changes: Any) -> BatchFeature:
        """`pixel_values` (batch, channels, height, width) of a picture or a list of them.

        A picture is a path, a pillow image, or an array or tensor with channels first or last.
        `return_tensors` is "vt" for a tensor, "np" for an array, None for a list of arrays;
        `changes` replace fields for this call.
        """
        asked = self.asked(return_tensors, changes)
        made = [asked.one(picture) for picture in pictures_of(images)]
        return BatchFeature(pixel_values=asked.batch(made, return_tensors))

    def asked(self, return_tensors: str | None, changes: dict[str, Any]) -> Self:
        """The processor with fields replaced for one call, of which nothing unknown is asked."""
        if return_tensors not in (None, "vt", "np"):
            raise ValueError(
                f"return_tensors={return_tensors!r} is not known; use 'vt' (votive tensors), 'np' "
                "(NumPy arrays) or None (a list of arrays)."
            )
        unknown = sorted(set(changes) - set(self.defaults))
        if unknown:
            raise TypeError(
                f"{type(self).__name__}: there is no option {unknown[0]!r}; known: {', '.join(self.defaults)}."
            )
        return self if not changes else type(self).from_dict({**self.to_dict(), **changes})

    def batch(self, made: list[np.ndarray], return_tensors: str | None) -> Any:
        """Arrays as one array or tensor, or as they are."""
        if return_tensors is None:
            return made
        if len({a.shape for a in made}) > 1:
            raise ValueError(
                f"{type(self).__name__}: pictures come out in sizes {[a.shape for a in made]} and "
                "make no batch; resize them to one, or take return_tensors=None."
            )
        batch = np.stack(made) if made else np.zeros((0, 3, 0, 0), np.float32)
        return votive.from_numpy(batch) if return_tensors == "vt" else batch

    def sized(self, x: np.ndarray) -> np.ndarray:
        """A picture (channels, height, width) in the size that is asked."""
        return resized(x, target_size(x.shape[1:], self.size), self.resample)

    def one(self, picture: object) -> np.ndarray:
        """The values (channels, height, width) of one picture."""
        x = channels_first(picture, self.do_convert_rgb)
        if self.do_rescale and x.dtype.kind == "f" and x.size and 0 <= x.min() <= x.max() <= 1:
            warnings.warn(
                f"{type(self).__name__}: the pixels lie between 0 and 1 already; pass "
                "do_rescale=False if they are not to be scaled again.",
                stacklevel=4,
            )
        if self.do_resize:
            x = self.sized(x)
        if self.do_center_crop:
            x = center_cropped(x, (self.crop_size["height"], self.crop_size["width"]))
        if self.do_rescale:
            x = (x.astype(np.float64) * self.rescale_factor).astype(np.float32)
        if self.do_normalize:
            x = x if x.dtype.kind == "f" else x.astype(np.float32)
            mean = per_channel(self.image_mean, x, "image_mean")
            x = (x - mean) / per_channel(self.image_std, x, "image_std")
        return np.ascontiguousarray(x)


class ViTImageProcessor(ImageProcessor):
    """Of ViT: a square by bilinear filtering, values from -1 to 1.

    >>> votive.models.ViTImageProcessor().size
    {'height': 224, 'width': 224}
    """


class DeiTImageProcessor(ImageProcessor):
    """Of DeiT: a square of 256 pixels by bicubic filtering, and of it the middle.

    >>> votive.models.DeiTImageProcessor().do_center_crop
    True
    """

    defaults = {**ImageProcessor.defaults, "size": {"height": 256, "width": 256}, "resample": 3, "do_center_crop": True}


class BeitImageProcessor(ImageProcessor):
    """Of BEiT: a square by bicubic filtering.

    >>> votive.models.BeitImageProcessor().resample
    3
    """

    defaults = {**ImageProcessor.defaults, "resample": 3}


class CLIPImageProcessor(ImageProcessor):
    """Of CLIP: the shorter side to a length by bicubic filtering, and of that the middle.

    >>> votive.models.CLIPImageProcessor().size
    {'shortest_edge': 224}
    """

    defaults = {
        **ImageProcessor.defaults,
        "size": {"shortest_edge": 224},
        "resample": 3,
        "do_center_crop": True,
        "image_mean": _CLIP_MEAN,
        "image_std": _CLIP_STD,
        "do_convert_rgb": True,
    }
    square = False


# By the name's beginning: the file, and the class in it.
_KINDS = {
    "vit": ("image_processing", "ViTImageProcessor"),
    "deit": ("image_processing", "DeiTImageProcessor"),
    "detr": ("detr_processor", "DetrImageProcessor"),
    "beit": ("image_processing", "BeitImageProcessor"),
    "blip": ("image_processors", "BlipImageProcessor"),
    "clip": ("image_processing", "CLIPImageProcessor"),
    "convnext": ("image_processors", "ConvNextImageProcessor"),
    "sam": ("sam_processor", "SamImageProcessor"),
    "segformer": ("image_processors", "SegformerImageProcessor"),
    "trocr": ("image_processing", "ViTImageProcessor"),
}


class AutoImageProcessor:
    """The processor that a folder's preprocessor_config.json names.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> votive.models.DeiTImageProcessor().save_pretrained(folder)
    >>> type(votive.models.AutoImageProcessor.from_pretrained(folder)).__name__
    'DeiTImageProcessor'
    """

    @staticmethod
    def from_pretrained(name: StrPath, **changes: Any) -> Any:
        """From a folder, the file itself, or a repository id; `changes` replace fields."""
        values = read_processor(name)
        named = values.get("image_processor_type") or values.get("feature_extractor_type") or ""
        # The classes of several releases differ only by these endings.
        kind = named
        for ending in ("Fast", "Pil", "ImageProcessor", "FeatureExtractor"):
            kind = kind.removesuffix(ending)
        found = _KINDS.get(kind.lower())
        if found is None:
            known = ", ".join(sorted({name for _, name in _KINDS.values()}))
            raise ValueError(
                f"AutoImageProcessor: {name} wants {named or 'no processor that it names'}; known: "
                f"{known}. Use one of them by its own from_pretrained."
            )
        file, made = found
        return getattr(import_module(f".{file}", __package__), made).from_dict({**values, **changes})


def read_processor(name: StrPath) -> dict[str, Any]:
    """The content of a preprocessor_config.json: in a folder, or the file, or of a repository."""
    path = Path(name).expanduser()
    if not path.exists() and is_repo_id(str(name)):
        path = download(str(name))
    if path.is_dir():
        path = path / NAME
    return read_json(path)
