"""Experts whose weights a file stacks in one tensor, seen as one tensor per expert.

Knows the names of stacked tensors; knows no architecture.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ..io import WeightSource
from ..io.source import TableSource
from ..surface.block_tensor import BlockTensor, like

_NAME = re.compile(r"(.*\.experts)\.(gate_up_proj|gate_proj|up_proj|down_proj)(?:\.weight)?")


class Unstacked(TableSource[tuple[str, int | None, slice | None]]):
    """A source with `experts.3.gate_proj.weight` in place of row 3 of `experts.gate_up_proj`.

    >>> from votive.models.stacked import Unstacked
    >>> both = votive.io.MemorySource({"mlp.experts.gate_up_proj": votive.ones(2, 6, 4)})
    >>> Unstacked(both).names()[:2], Unstacked(both).info("mlp.experts.1.up_proj.weight").shape
    (['mlp.experts.0.gate_proj.weight', 'mlp.experts.0.up_proj.weight'], (3, 4))
    """

    def __init__(self, source: WeightSource) -> None:
        self.source, self.metadata = source, source.metadata
        # New name: (name, expert or None for the whole tensor, rows or None for all).
        self.entries: dict[str, tuple[str, int | None, slice | None]] = {}
        for name in source.names():
            found = _NAME.fullmatch(name)
            if found is None or len(source.info(name).shape) != 3:
                self.entries[name] = (name, None, None)
                continue
            count, rows, _ = source.info(name).shape
            for i in range(count):
                for new, part in _split(found[2], rows):
                    self.entries[f"{found[1]}.{i}.{new}.weight"] = (name, i, part)
        self._open: tuple[str, Any] = ("", None)

    def info(self, name: str) -> Any:
        old, expert, rows = self._entry(name)
        info = self.source.info(old)
        if expert is None:
            return info
        shape = info.shape[1:] if rows is None else (rows.stop - rows.start, *info.shape[2:])
        return replace(info, name=name, shape=shape, nbytes=info.nbytes * shape[0] // (info.shape[0] * info.shape[1]))

    def _read(self, name: str) -> Any:
        old, expert, rows = self._entry(name)
        if expert is None:
            return self.source._read(old)
        if self._open[0] != old:
            # Experts of one tensor are asked for one after the other: it is read once.
            self._open = (old, self.source._read(old))
        one = self._open[1][expert]
        return one if rows is None else one[rows]

    def blocks(self, name: str) -> BlockTensor | None:
        old, expert, rows = self._entry(name)
        found = self.source.blocks(old)
        if found is None or expert is None:
            return found
        one = found.blocks[expert]
        return like(found, one if rows is None else one[rows])

    def close(self) -> None:
        self.source.close()


def _split(kind: str, rows: int) -> list[tuple[str, slice | None]]:
    if kind != "gate_up_proj":
        return [(kind, None)]
    half = rows // 2
    return [("gate_proj", slice(0, half)), ("up_proj", slice(half, rows))]
