"""Padding layers: one class per way of filling and number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from .convolution import repeated


class _PadNd(Module):
    """Pads the last `n` dimensions in one mode."""

    n = 1
    mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = repeated(padding, 2 * self.n)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """Pads with one value."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    """Pads with zeros."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPadNd):
    """Pad the last dimension with a constant.

    >>> votive.nn.ConstantPad1d(1, 2.0)(votive.ones(1, 1, 3)).shape
    votive.Size([1, 1, 5])
    """

    n = 1


class ConstantPad2d(_ConstantPadNd):
    """Pad the last two dimensions with a constant.

    >>> votive.nn.ConstantPad2d(1, 2.0)(votive.ones(1, 1, 3, 3)).shape
    votive.Size([1, 1, 5, 5])
    """

    n = 2


class ConstantPad3d(_ConstantPadNd):
    """Pad the last three dimensions with a constant.

    >>> votive.nn.ConstantPad3d(1, 2.0)(votive.ones(1, 1, 3, 3, 3)).shape
    votive.Size([1, 1, 5, 5, 5])
    """

    n = 3


class ReflectionPad1d(_PadNd):
    """Pad the last dimension with a reflection of the input.

    >>> votive.nn.ReflectionPad1d(1)(votive.ones(1, 1, 3)).shape
    votive.Size([1, 1, 5])
    """

    n = 1
    mode = "reflect"


class ReflectionPad2d(_PadNd):
    """Pad the last two dimensions with a reflection of the input.

    >>> votive.nn.ReflectionPad2d(1)(votive.ones(1, 1, 3, 3)).shape
    votive.Size([1, 1, 5, 5])
    """

    n = 2
    mode = "reflect"


class ReflectionPad3d(_PadNd):
    """Pad the last three dimensions with a reflection of the input.

    >>> votive.nn.ReflectionPad3d(1)(votive.ones(1, 1, 3, 3, 3)).shape
    votive.Size([1, 1, 5, 5, 5])
    """

    n = 3
    mode = "reflect"


class ReplicationPad1d(_PadNd):
    """Pad the last dimension with copies of the edge.

    >>> votive.nn.ReplicationPad1d(1)(votive.ones(1, 1, 3)).shape
    votive.Size([1, 1, 5])
    """

    n = 1
    mode = "replicate"


class ReplicationPad2d(_PadNd):
    """Pad the last two dimensions with copies of the edge.

    >>> votive.nn.ReplicationPad2d(1)(votive.ones(1, 1, 3, 3)).shape
    votive.Size([1, 1, 5, 5])
    """

    n = 2
    mode = "replicate"


class ReplicationPad3d(_PadNd):
    """Pad the last three dimensions with copies of the edge.

    >>> votive.nn.ReplicationPad3d(1)(votive.ones(1, 1, 3, 3, 3)).shape
    votive.Size([1, 1, 5, 5, 5])
    """

    n = 3
    mode = "replicate"


class CircularPad1d(_PadNd):
    """Pad the last dimension with the other end.

    >>> votive.nn.CircularPad1d(1)(votive.ones(1, 1, 3)).shape
    votive.Size([1, 1, 5])
    """

    n = 1
    mode = "circular"


class CircularPad2d(_PadNd):
    """Pad the last two dimensions with the other end.

    >>> votive.nn.CircularPad2d(1)(votive.ones(1, 1, 3, 3)).shape
    votive.Size([1, 1, 5, 5])
    """

    n = 2
    mode = "circular"


class CircularPad3d(_PadNd):
    """Pad the last three dimensions with the other end.

    >>> votive.nn.CircularPad3d(1)(votive.ones(1, 1, 3, 3, 3)).shape
    votive.Size([1, 1, 5, 5, 5])
    """

    n = 3
    mode = "circular"


class ZeroPad1d(_ZeroPadNd):
    """Pad the last dimension with zeros.

    >>> votive.nn.ZeroPad1d(1)(votive.ones(1, 1, 3)).shape
    votive.Size([1, 1, 5])
    """

    n = 1


class ZeroPad2d(_ZeroPadNd):
    """Pad the last two dimensions with zeros.

    >>> votive.nn.ZeroPad2d(1)(votive.ones(1, 1, 3, 3)).shape
    votive.Size([1, 1, 5, 5])
    """

    n = 2


class ZeroPad3d(_ZeroPadNd):
    """Pad the last three dimensions with zeros.

    >>> votive.nn.ZeroPad3d(1)(votive.ones(1, 1, 3, 3, 3)).shape
    votive.Size([1, 1, 5, 5, 5])
    """

    n = 3
