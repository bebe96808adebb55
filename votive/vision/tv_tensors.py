"""Tensors that say what they are: an image, a video, a mask, boxes, points.

They are ordinary tensors in every other way: an operator on one gives a plain tensor; `clone`,
`to`, `detach`, `requires_grad_` and copies keep the class. Knows no transform.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from ..core import dtype as dt
from ..core.device import DeviceLike
from ..dispatch import disabled
from ..surface.interchange import as_tensor
from ..tensor import Tensor

__all__ = ["BoundingBoxFormat", "BoundingBoxes", "Image", "KeyPoints", "Mask", "TVTensor", "Video", "wrap"]
Kind = TypeVar("Kind", bound="TVTensor")


class TVTensor(Tensor):
    """Base of the tensors that transforms tell apart; subclass it to teach them a new kind.

    >>> issubclass(votive.vision.tv_tensors.Image, votive.vision.tv_tensors.TVTensor)
    True
    """

    __torch_function__ = disabled  # operators give plain tensors

    def __new__(
        cls, data: Any, *, dtype: dt.dtype | None = None, device: DeviceLike = None, requires_grad: bool | None = None
    ) -> Any:
        return cls._adopt(cls._shaped(_tensor(data, dtype, device, requires_grad)))

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        """The tensor in the shape that the class has, or an error."""
        return tensor

    @classmethod
    def _adopt(cls: type[Kind], tensor: Tensor, **attributes: Any) -> Kind:
        """`tensor` as this class, sharing memory and history."""
        if tensor.requires_grad and tensor.is_leaf:
            tensor = tensor.view(tuple(tensor.shape))  # gradients go to the one that was given
        out: Any = object.__new__(cls)
        out._storage = tensor._storage
        out._take_fields(tensor)
        out.__dict__.update(attributes)
        return out

    def _attributes(self) -> dict[str, Any]:
        return {}

    def as_tensor(self) -> Tensor:
        """The same memory and history as a plain tensor."""
        out: Any = object.__new__(Tensor)
        out._storage = self._storage
        out._data, out._spec, out._rg = self._data, self._spec, self._rg
        out.__dict__.update({k: v for k, v in self.__dict__.items() if k.startswith("_")})
        return out

    def _again(self: Kind, tensor: Tensor) -> Kind:
        return type(self)._adopt(tensor, **self._attributes())

    def clone(self: Kind, **options: Any) -> Kind:
        return self._again(super().clone(**options))

    def to(self: Kind, *args: Any, **options: Any) -> Kind:
        return self._again(super().to(*args, **options))

    def detach(self: Kind) -> Kind:
        return self._again(super().detach())

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]  # as in Tensor
        name = type(self).__name__
        first, *rest = super().__repr__().removeprefix("tensor(").split("\n")
        shift = len(name) - len("tensor")
        rest = [" " * shift + line if shift >= 0 else line[-shift:] for line in rest]
        more = "".join(f", {k}={v}" for k, v in self._attributes().items())
        return f"{name}(" + "\n".join([first, *rest])[:-1] + f"{more})"


def _tensor(data: Any, dtype: dt.dtype | None, device: DeviceLike, requires_grad: bool | None) -> Tensor:
    if _is_pil(data):
        from .transforms.functional import pil_to_tensor

        data = pil_to_tensor(data)
    made = as_tensor(data, dtype=dtype, device=device)
    if requires_grad is not None and requires_grad != made.requires_grad:
        made = made.detach().requires_grad_(requires_grad)
    return made


def _is_pil(data: object) -> bool:
    return (type(data).__module__ or "").startswith("PIL.")


class Image(TVTensor):
    """An image (..., C, H, W); from a PIL image, an array or a tensor. (H, W) gets a channel.

    >>> votive.vision.tv_tensors.Image([[0.0, 1.0]])
    Image([[[0., 1.]]])
    """

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        if tensor.ndim < 2:
            raise ValueError(f"Image: needs at least (H, W), got shape {tuple(tensor.shape)}.")
        return tensor.unsqueeze(0) if tensor.ndim == 2 else tensor


class Video(TVTensor):
    """Frames (..., T, C, H, W); transformed all alike.

    >>> votive.vision.tv_tensors.Video(votive.zeros(8, 3, 4, 4)).shape
    votive.Size([8, 3, 4, 4])
    """

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        if tensor.ndim < 4:
            raise ValueError(f"Video: needs (T, C, H, W), got shape {tuple(tensor.shape)}.")
        return tensor


class Mask(TVTensor):
    """Masks or a map of labels, (..., H, W); moved like an image, never mixed or recoloured.

    >>> votive.vision.tv_tensors.Mask([[0, 1], [1, 0]])
    Mask([[0, 1],
          [1, 0]])
    """


class BoundingBoxFormat(Enum):
    """What the four numbers of a box are: corners, corner and size, or centre and size.

    >>> votive.vision.tv_tensors.BoundingBoxFormat["XYWH"].value
    'XYWH'
    """

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"


_ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")


def box_format(given: BoundingBoxFormat | str) -> BoundingBoxFormat:
    """The format of this name; rotated ones are refused."""
    if isinstance(given, BoundingBoxFormat):
        return given
    name = str(given).upper()
    if name in _ROTATED:
        raise NotImplementedError(f"BoundingBoxes: rotated boxes ({name}) are not implemented.")
    if name not in BoundingBoxFormat.__members__:
        raise ValueError(f"BoundingBoxes: unknown format {given!r}; use {list(BoundingBoxFormat.__members__)}.")
    return BoundingBoxFormat[name]


class BoundingBoxes(TVTensor):
    """Boxes (N, 4) of one image of size `canvas_size` (height, width).

    `clamping_mode`: "soft" and "hard" cut boxes at the borders after a transform, None does not.

    >>> boxes = votive.vision.tv_tensors.BoundingBoxes(
    ...     [0, 1, 2, 3], format="XYWH", canvas_size=(8, 9)
    ... )
    >>> boxes.shape, boxes.format.name, boxes.canvas_size
    (votive.Size([1, 4]), 'XYWH', (8, 9))
    """

    format: BoundingBoxFormat
    canvas_size: tuple[int, int]
    clamping_mode: str | None

    def __new__(
        cls,
        data: Any,
        *,
        format: BoundingBoxFormat | str,
        canvas_size: tuple[int, int],
        clamping_mode: str | None = "soft",
        dtype: dt.dtype | None = None,
        device: DeviceLike = None,
        requires_grad: bool | None = None,
    ) -> Any:
        tensor = _tensor(data, dtype, device, requires_grad)
        if tensor.ndim == 1 and tensor.shape[0]:
            tensor = tensor.unsqueeze(0)
        if tensor.ndim == 1:
            tensor = tensor.reshape(0, 4)
        if tensor.ndim != 2 or tensor.shape[1] != 4:
            raise ValueError(f"BoundingBoxes: needs shape (N, 4), got {tuple(tensor.shape)}.")
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"BoundingBoxes: clamping_mode must be None, 'soft' or 'hard', got {clamping_mode!r}.")
        height, width = canvas_size
        return cls._adopt(tensor, format=box_format(format), canvas_size=(height, width), clamping_mode=clamping_mode)

    def _attributes(self) -> dict[str, Any]:
        return {"format": self.format, "canvas_size": self.canvas_size, "clamping_mode": self.clamping_mode}


class KeyPoints(TVTensor):
    """Points (..., 2) as (x, y) in pixels of one image of size `canvas_size` (height, width).

    >>> points = votive.vision.tv_tensors.KeyPoints([[1.0, 2.0]], canvas_size=(8, 9))
    >>> votive.vision.transforms.functional.horizontal_flip(points).tolist()
    [[7.0, 2.0]]
    """

    canvas_size: tuple[int, int]

    def __new__(
        cls,
        data: Any,
        *,
        canvas_size: tuple[int, int],
        dtype: dt.dtype | None = None,
        device: DeviceLike = None,
        requires_grad: bool | None = None,
    ) -> Any:
        tensor = _tensor(data, dtype, device, requires_grad)
        tensor = tensor.unsqueeze(0) if tensor.ndim == 1 else tensor
        if tensor.ndim < 2 or tensor.shape[-1] != 2:
            raise ValueError(f"KeyPoints: needs shape (..., 2), got {tuple(tensor.shape)}.")
        height, width = canvas_size
        return cls._adopt(tensor, canvas_size=(height, width))

    def _attributes(self) -> dict[str, Any]:
        return {"canvas_size": self.canvas_size}


def wrap(wrappee: Tensor, *, like: object, **kwargs: Any) -> Any:
    """`wrappee` as what `like` is; of boxes and points, keywords replace format, canvas_size, ….

    >>> tv = votive.vision.tv_tensors
    >>> type(tv.wrap(votive.zeros(2, 2), like=tv.Mask([[1]]))).__name__
    'Mask'
    """
    if not isinstance(like, TVTensor):
        return wrappee
    known = like._attributes()
    wrong = sorted(set(kwargs) - set(known))
    if wrong:
        raise TypeError(f"wrap: {type(like).__name__} has no {wrong}; it has {sorted(known)}.")
    if "format" in kwargs:
        kwargs["format"] = box_format(kwargs["format"])
    return type(like)._adopt(wrappee, **{**known, **kwargs})
