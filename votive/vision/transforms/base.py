"""What a transform is: it looks at a sample, draws its numbers once, and changes each part alike.

Knows samples, no image. A sample is any nesting of dicts, lists and tuples.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any

from ... import nn
from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor
from .. import tv_tensors
from ..types import Fill, FillByKind
from .functional.kernels import Functional, is_pil, is_pure_tensor, kernel_for
from .functional.sizes import get_dimensions, get_size

# A type, or a function that says whether something is of a kind.
Check = type | Callable[[Any], bool]

# --- samples -------------------------------------------------------------------------------------


def as_sample(inputs: tuple[object, ...]) -> object:
    """What a transform was called with: one input alone, several as a tuple."""
    return inputs if len(inputs) > 1 else inputs[0]


def flatten(sample: object) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves of a sample, and what puts others in their places."""
    leaves: list[Any] = []

    def walk(node: Any) -> Callable[[list[Any]], Any]:
        if isinstance(node, dict):
            parts = {k: walk(v) for k, v in node.items()}
            made = type(node)
            return lambda new: made((k, part(new)) for k, part in parts.items())
        if type(node) in (list, tuple) or hasattr(node, "_fields"):
            items = [walk(v) for v in node]
            kind = type(node)
            if hasattr(node, "_fields"):  # a named tuple takes its fields one by one
                return lambda new: kind(*(item(new) for item in items))
            return lambda new: kind(item(new) for item in items)
        at = len(leaves)
        leaves.append(node)
        return lambda new: new[at]

    rebuild = walk(sample)
    return leaves, rebuild


def check_type(obj: object, types_or_checks: Iterable[Check]) -> bool:
    """Whether one of the types is its type, or one of the functions says yes.

    >>> votive.vision.transforms.check_type(1, (str, lambda x: x == 1))
    True
    """
    return any(isinstance(obj, t) if isinstance(t, type) else t(obj) for t in types_or_checks)


def has_any(flat_inputs: Iterable[object], *types_or_checks: Check) -> bool:
    """Whether one of the inputs is of one of these kinds.

    >>> votive.vision.transforms.has_any([1, "a"], str)
    True
    """
    return any(check_type(inpt, types_or_checks) for inpt in flat_inputs)


def has_all(flat_inputs: Iterable[object], *types_or_checks: Check) -> bool:
    """Whether each of these kinds is among the inputs.

    >>> votive.vision.transforms.has_all([1, "a"], str, float)
    False
    """
    return all(any(check_type(inpt, (t,)) for inpt in flat_inputs) for t in types_or_checks)


PICTURES: tuple[Check, ...] = (is_pure_tensor, tv_tensors.Image, tv_tensors.Video, is_pil)
_SIZED: tuple[Check, ...] = (*PICTURES, tv_tensors.Mask, tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)


def _one(op: str, what: str, found: set[tuple[int, ...]]) -> tuple[int, ...]:
    if not found:
        raise TypeError(f"{op}: there is nothing with {what} in the sample.")
    if len(found) > 1:
        raise ValueError(f"{op}: the parts of the sample differ in {what}: {sorted(found)}.")
    return found.pop()


def query_chw(flat_inputs: Iterable[object]) -> tuple[int, ...]:
    """(channels, height, width) that all images among the inputs have.

    >>> votive.vision.transforms.query_chw([votive.zeros(3, 4, 5), "label"])
    (3, 4, 5)
    """
    pictures = [i for i in flat_inputs if check_type(i, PICTURES)]
    return _one("query_chw", "(C, H, W)", {tuple(get_dimensions(i)) for i in pictures})


def query_size(flat_inputs: Iterable[object]) -> tuple[int, ...]:
    """(height, width) that all images, masks and boxes among the inputs have.

    >>> votive.vision.transforms.query_size([votive.zeros(3, 4, 5)])
    (4, 5)
    """
    sized = [i for i in flat_inputs if check_type(i, _SIZED)]
    return _one("query_size", "(H, W)", {tuple(get_size(i)) for i in sized})


def get_bounding_boxes(flat_inputs: Iterable[object]) -> tv_tensors.BoundingBoxes:
    """The boxes among the inputs.

    >>> votive.vision.transforms.get_bounding_boxes([])
    Traceback (most recent call last):
    ValueError: get_bounding_boxes: there are no BoundingBoxes in the sample.
    """
    for inpt in flat_inputs:
        if isinstance(inpt, tv_tensors.BoundingBoxes):
            return inpt
    raise ValueError("get_bounding_boxes: there are no BoundingBoxes in the sample.")


# --- chance --------------------------------------------------------------------------------------


def uniform(low: float, high: float) -> float:
    """A number between two, from the default generator."""
    return low + (high - low) * F.rand((), dtype=dt.float64).item()


def integer(low: int, high: int) -> int:
    """An integer from `low` on and below `high`."""
    return int(F.randint(low, high, ()).item())


def chance(p: float) -> bool:
    """True with probability `p`."""
    return bool(F.rand((), dtype=dt.float64).item() < p)


# --- arguments -----------------------------------------------------------------------------------


def pair(name: str, what: str, size: object) -> tuple[int, int]:
    """Two integers from one or two."""
    if isinstance(size, int):
        return size, size
    if isinstance(size, (list, tuple)) and len(size) in (1, 2):
        return int(size[0]), int(size[-1])
    raise ValueError(f"{name}: {what} must be an int or one or two of them, got {size!r}.")


def numbers(name: str, what: str, value: object, counts: tuple[int, ...] = (2,)) -> list[float]:
    """As many numbers as allowed, or an error."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name}: {what} must be a sequence, got {value!r}.")
    if len(value) not in counts:
        raise ValueError(f"{name}: {what} must have {counts} elements, got {value!r}.")
    return [float(v) for v in value]


def angles(name: str, what: str, value: object, counts: tuple[int, ...] = (2,)) -> list[float]:
    """A range of angles: a number means from its negative to itself."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"{name}: {what} as one number must not be negative, got {value}.")
        return [-float(value), float(value)]
    return numbers(name, what, value, counts)


class FillOf:
    """What fills the border, by kind of input: one for all, or a dict with types and "others"."""

    def __init__(self, name: str, fill: FillByKind) -> None:
        for value in fill.values() if isinstance(fill, dict) else (fill,):
            if value is not None and not isinstance(value, (int, float, list, tuple)):
                raise TypeError(f"{name}: fill must be a number, a sequence or a dict of them, got {value!r}.")
        self.by_kind: dict[type | str, Fill] = fill if isinstance(fill, dict) else {"others": fill}

    def __call__(self, inpt: object) -> Fill:
        value = self.by_kind.get(type(inpt), self.by_kind.get("others"))
        return list(value) if isinstance(value, tuple) else value


# --- transforms ----------------------------------------------------------------------------------


class Transform(nn.Module):
    """Base of all: write `transform(inpt, params)`, and `make_params` if it needs chance.

    Images (also PIL images), videos, masks and boxes of a sample are transformed, everything else
    passes. Of plain tensors only the first counts as an image, and only if nothing else does.

    >>> class Double(votive.vision.transforms.Transform):
    ...     def transform(self, inpt, params):
    ...         return inpt * 2
    >>> Double()({"image": votive.ones(1), "label": 3})
    {'image': tensor([2.]), 'label': 3}
    """

    _transformed_types: tuple[Check, ...] = (Tensor, is_pil)
    _fill: FillOf

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Raise for samples that the transform does not take."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """What is drawn once for the whole sample."""
        return {}

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        """One part of the sample, changed."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass has to define transform.")

    def _set_fill(self, fill: FillByKind) -> None:
        self.fill, self._fill = fill, FillOf(type(self).__name__, fill)

    def _call_kernel(self, functional: Functional[..., Any], inpt: object, *args: Any, **options: Any) -> Any:
        """A functional on an input; what it has no kernel for passes."""
        kernel = kernel_for(functional, inpt)
        return inpt if kernel is None else kernel(inpt, *args, **options)

    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        plain_counts = not has_any(flat_inputs, tv_tensors.Image, tv_tensors.Video, is_pil)
        needs = []
        for inpt in flat_inputs:
            need = check_type(inpt, self._transformed_types)
            if need and is_pure_tensor(inpt):
                need, plain_counts = plain_counts, False
            needs.append(need)
        return needs

    def _run(self, leaves: list[Any]) -> list[Any]:
        needs = self._needs_transform_list(leaves)
        params = self.make_params([leaf for leaf, n in zip(leaves, needs, strict=True) if n])
        return [self.transform(leaf, params) if n else leaf for leaf, n in zip(leaves, needs, strict=True)]

    def forward(self, *inputs: object) -> Any:
        leaves, rebuild = flatten(as_sample(inputs))
        self.check_inputs(leaves)
        return rebuild(self._run(leaves))

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, enum.Enum)
        return ", ".join(
            f"{k}={v}"
            for k, v in self.__dict__.items()
            if not k.startswith("_") and k != "training" and isinstance(v, shown)
        )


class RandomApplyTransform(Transform):
    """A transform that happens with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"{type(self).__name__}: p must be in [0, 1], got {p}.")
        self.p = p

    def _run(self, leaves: list[Any]) -> list[Any]:
        return super()._run(leaves) if chance(self.p) else leaves
