"""Weights of which files hold several in one tensor, seen apart and under other names. Knows rules, not families."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...io.source import TableSource, TensorInfo, WeightSource
from ...tensor import Tensor


@dataclass(frozen=True)
class _Part:
    name: str
    part: int = 0
    of: int = 1


class Split(TableSource[_Part]):
    """A source whose tensors have the names that `renames` makes of theirs, and are cut where `cuts` says so.

    >>> from votive.models.text_encoder.split import Split
    >>> source = votive.io.MemorySource({"norm1.weight": votive.ones(2), "attn.Wqkv.weight": votive.ones(6, 2)})
    >>> Split(source, {"norm1": "norm"}, {"attn.Wqkv": ("q", "k", "v")}).names()
    ['norm.weight', 'q.weight', 'k.weight', 'v.weight']
    """

    def __init__(self, source: WeightSource, renames: Mapping[str, str], cuts: Mapping[str, Sequence[str]]) -> None:
        self.source, self.metadata = source, source.metadata
        self.entries: dict[str, _Part] = {}
        for name in source.names():
            new = name
            for old, better in renames.items():
                new = re.sub(old, better, new)
            cut = next((old for old in cuts if old in new), None)
            if cut is None:
                self.entries[new] = _Part(name)
                continue
            parts = cuts[cut]
            for i, target in enumerate(parts):
                self.entries[new.replace(cut, target)] = _Part(name, i, len(parts))

    def info(self, name: str) -> TensorInfo:
        entry = self._entry(name)
        info = self.source.info(entry.name)
        shape = (info.shape[0] // entry.of, *info.shape[1:]) if entry.of > 1 else info.shape
        return replace(info, name=name, shape=shape, nbytes=info.nbytes // entry.of)

    def _read(self, name: str) -> Tensor:
        entry = self._entry(name)
        whole = self.source._read(entry.name)
        return whole if entry.of == 1 else whole.chunk(entry.of, 0)[entry.part].clone()

    def close(self) -> None:
        self.source.close()
