"""Work on many tensors in one launch: tables of their addresses lie on the device, and a program
takes a chunk of one of them. Knows addresses and sizes, not what is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import runtime as rt
from .data import View, to_device

CHUNK = 8192  # elements that a program takes


class Table:
    """Addresses and sizes on the device; rewritten only when one of them has changed."""

    def __init__(self) -> None:
        self.key: Any = None
        self.block: Any = None
        self.chunks = 0
        self.count = 0

    def write(self, columns: list[list[int]], sizes: list[int]) -> int:
        """The address of a table of int64: `count` addresses per column, the sizes, then for each
        chunk its tensor and its number in that tensor.
        """
        key = (columns, sizes)
        if key == self.key:
            return int(self.block.ptr)
        which: list[int] = []
        number: list[int] = []
        for t, n in enumerate(sizes):
            parts = -(-n // CHUNK)
            which += [t] * parts
            number += range(parts)
        array = np.array([*(a for c in columns for a in c), *sizes, *which, *number], np.int64)
        self._drop()
        # While a graph is captured the table belongs to the graph, and the copy is one of its
        # nodes: its source must stay where it is.
        self.block = rt.allocate(array.nbytes)
        self.array = array
        if rt.here.capturing:
            rt.here.kept.append((array, rt._Held(self.block)))
        to_device(self.block.ptr, array)
        self.key = None if rt.here.capturing else key
        self.chunks, self.count = len(which), len(sizes)
        found = int(self.block.ptr)
        if rt.here.capturing:
            self.block = None
        return found

    def _drop(self) -> None:
        if self.block is not None:
            self.block.pool.give(self.block)
            self.block = None

    def __del__(self) -> None:
        self._drop()


def alike(*lists: Any) -> bool:
    """Whether tensors of several lists lie alike, one by one, without holes."""
    for slots in zip(*lists, strict=True):
        first = slots[0].spec
        if first.dense_like() is not first:
            return False
        if any(s.spec.layout is not first.layout for s in slots[1:]):
            return False
    return True


def addresses(views: list[View]) -> list[int]:
    return [v.ptr for v in views]
