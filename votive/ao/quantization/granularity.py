"""Over how many neighbours a scale reaches, with torchao's names. Knows shapes only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Granularity:
    """The base of all of them."""


@dataclass(frozen=True)
class PerBlock(Granularity):
    """A scale for each block of a shape."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """One scale."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """A scale for each place along a dimension."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """A scale for so many neighbours along the last dimension."""

    group_size: int


class PerRow(Granularity):
    """A scale for each row."""


class PerToken(Granularity):
    """A scale for each token: a row of all dimensions but the last."""


def get_block_size(input_shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    """The shape of what shares a scale.

    >>> from votive.ao.quantization import PerAxis, PerGroup, get_block_size
    >>> get_block_size((8, 64), PerAxis(0)), get_block_size((8, 64), PerGroup(32))
    ((1, 64), (1, 32))
    """
    shape = tuple(input_shape)
    if isinstance(granularity, PerTensor):
        return shape
    if isinstance(granularity, PerBlock):
        return granularity.block_size
    if isinstance(granularity, PerAxis):
        return tuple(1 if d == granularity.axis % len(shape) else n for d, n in enumerate(shape))
    rows = (1,) * (len(shape) - 1)
    if isinstance(granularity, (PerRow, PerToken)):
        return (*rows, shape[-1])
    if isinstance(granularity, PerGroup):
        if len(shape) != 2:
            raise AssertionError(
                f"Expecting input shape dim to be 2 for per group quantization, gotinput shape: {shape}"
            )
        return (1, granularity.group_size)
    raise ValueError(f"Unsupported Granularity: {granularity}")
