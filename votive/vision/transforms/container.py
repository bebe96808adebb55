"""Transforms made of transforms, and the ones that do nothing or anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ... import nn
from ...ops.registry import F
from .base import Transform, as_sample, chance

Transforms = Sequence[Callable[..., Any]] | nn.ModuleList


def _listed(name: str, transforms: object) -> Transforms:
    if not isinstance(transforms, (Sequence, nn.ModuleList)):
        raise TypeError(f"{name}: transforms must be a sequence, got {type(transforms).__name__}.")
    if not len(transforms):
        raise ValueError(f"{name}: needs at least one transform.")
    return transforms


def _chained(transforms: Iterable[Callable[..., Any]], inputs: tuple[Any, ...]) -> Any:
    several = len(inputs) > 1
    for transform in transforms:
        outputs = transform(*inputs)
        inputs = outputs if several else (outputs,)
    return inputs if several else inputs[0]


class _Group(Transform):
    def __init__(self, transforms: Transforms) -> None:
        super().__init__()
        self.transforms = _listed(type(self).__name__, transforms)

    def extra_repr(self) -> str:
        return "\n".join(f"    {t}" for t in self.transforms)


class Compose(_Group):
    """One transform after the other.

    >>> T = votive.vision.transforms
    >>> T.Compose([T.Resize((4, 4)), T.CenterCrop(2)])(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 2, 2])
    """

    def forward(self, *inputs: object) -> Any:
        return _chained(self.transforms, inputs)


class RandomApply(_Group):
    """All of the transforms with probability `p`, or none.

    >>> T = votive.vision.transforms
    >>> T.RandomApply([T.CenterCrop(2)], p=0.0)(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 8, 8])
    """

    def __init__(self, transforms: Transforms, p: float = 0.5) -> None:
        super().__init__(transforms)
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"RandomApply: p must be in [0, 1], got {p}.")
        self.p = p

    def forward(self, *inputs: object) -> Any:
        if not chance(self.p):
            return as_sample(inputs)
        return _chained(self.transforms, inputs)


class RandomChoice(_Group):
    """One of the transforms, drawn with weights `p`.

    >>> T = votive.vision.transforms
    >>> T.RandomChoice([T.CenterCrop(2), T.CenterCrop(4)], p=[0, 1])(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 4, 4])
    """

    def __init__(self, transforms: Transforms, p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        weights = [1.0] * len(transforms) if p is None else list(p)
        if len(weights) != len(transforms):
            raise ValueError(f"RandomChoice: {len(weights)} weights for {len(transforms)} transforms.")
        self.p = [w / sum(weights) for w in weights]

    def forward(self, *inputs: object) -> Any:
        return self.transforms[int(F.multinomial(F.tensor(self.p), 1).item())](*inputs)


class RandomOrder(_Group):
    """All of the transforms in a random order.

    >>> T = votive.vision.transforms
    >>> T.RandomOrder([T.CenterCrop(2), T.Identity()])(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 2, 2])
    """

    def forward(self, *inputs: object) -> Any:
        order = F.randperm(len(self.transforms)).tolist()
        return _chained([self.transforms[i] for i in order], inputs)


class Identity(Transform):
    """Nothing changes.

    >>> votive.vision.transforms.Identity()(1)
    1
    """

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """A function of your own for each part of a sample, or for those of these types.

    >>> votive.vision.transforms.Lambda(str.upper, str)(["a", 1])
    ['A', 1]
    """

    _transformed_types: tuple[type, ...] = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or self._transformed_types

    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        return [isinstance(inpt, self.types) for inpt in flat_inputs]

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self.lambd(inpt)

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", type(self.lambd).__name__)
        return f"{name}, types={[t.__name__ for t in self.types]}"
