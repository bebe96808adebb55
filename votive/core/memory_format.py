"""Memory formats: how dimensions are ordered in memory. Pure names; no tensors."""

from __future__ import annotations

from . import spelled


class _Named:
    """A constant that is known by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{spelled.package}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(_Named):
    """An order of dimensions in memory, such as `votive.channels_last`.

    >>> votive.zeros(1, 2, 3, 3).contiguous(memory_format=votive.channels_last).stride()
    (18, 1, 6, 2)
    """

    __slots__ = ()


class layout(_Named):
    """How a tensor is stored: `votive.strided`, or one of the sparse ways.

    >>> votive.zeros(2).layout
    votive.strided
    """

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
