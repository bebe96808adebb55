"""Experts whose weights a file stacks in one tensor, seen as one tensor per expert, and stacked again for files.

Knows the names of stacked tensors; knows no architecture.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import votive

from ..io import WeightSource
from ..io.source import TableSource
from ..surface.block_tensor import BlockTensor, like

_NAME = re.compile(r"(.*\.experts)\.(gate_up_proj|gate_proj|up_proj|down_proj)(?:\.weight)?")


@dataclass(frozen=True, kw_only=True)
class Stacked:
    """How files have the weights of all experts in one tensor: their names, and the order of what is in them.

    >>> votive.models.stacked.Stacked().down
    'experts.down_proj'
    """

    gate_up: str = "experts.gate_up_proj"
    down: str = "experts.down_proj"
    transposed: bool = False  # (experts, inputs, outputs)
    alternating: bool = False  # gate, neuron, gate, neuron, rather than first all gates
    # What products of one expert are called, under the modules beside which the tensors lie.
    single: tuple[str, str, str] = ("experts.{}.gate_proj", "experts.{}.up_proj", "experts.{}.down_proj")

    def halves(self, rows: int) -> tuple[slice, slice]:
        """Which rows of a product's weight are gates, and which are neurons."""
        if self.alternating:
            return slice(0, rows, 2), slice(1, rows, 2)
        return slice(0, rows // 2), slice(rows // 2, rows)


@dataclass(frozen=True)
class _Row:
    """One expert's part of a tensor, or the whole tensor where `expert` is None."""

    name: str
    expert: int | None = None
    rows: slice | None = None
    turned: bool = False


class Unstacked(TableSource[_Row]):
    """A source with `experts.3.gate_proj.weight` in place of row 3 of `experts.gate_up_proj`.

    >>> from votive.models.stacked import Unstacked
    >>> both = votive.io.MemorySource({"mlp.experts.gate_up_proj": votive.ones(2, 6, 4)})
    >>> Unstacked(both).names()[:2], Unstacked(both).info("mlp.experts.1.up_proj.weight").shape
    (['mlp.experts.0.gate_proj.weight', 'mlp.experts.0.up_proj.weight'], (3, 4))
    """

    def __init__(self, source: WeightSource, layout: Stacked | None = None) -> None:
        self.source, self.metadata = source, source.metadata
        self.entries: dict[str, _Row] = {}
        for name in source.names():
            if not (layout is not None and self._add_known(name, layout)) and not self._add(name):
                self.entries[name] = _Row(name)
        self._open: tuple[str, Any] = ("", None)

    def _add(self, name: str) -> bool:
        """A tensor as transformers stacks experts, whatever files of the family have."""
        found = _NAME.fullmatch(name)
        if found is None or len(self.source.info(name).shape) != 3:
            return False
        count, rows, _ = self.source.info(name).shape
        for i in range(count):
            for new, part in _split(found[2], rows):
                self.entries[f"{found[1]}.{i}.{new}.weight"] = _Row(name, i, part)
        return True

    def _add_known(self, name: str, layout: Stacked) -> bool:
        found = re.fullmatch(rf"(.*?\.)?({re.escape(layout.gate_up)}|{re.escape(layout.down)})(_bias)?", name)
        if found is None:
            return False
        shape = self.source.info(name).shape
        bias = found[3] is not None
        if len(shape) != (2 if bias else 3):
            return False
        start, end = found[1] or "", "bias" if bias else "weight"
        turned = layout.transposed and not bias
        gate, up, down = layout.single
        for i in range(shape[0]):
            if found[2] == layout.down:
                self.entries[f"{start}{down.format(i)}.{end}"] = _Row(name, i, None, turned)
                continue
            for one, part in zip((gate, up), layout.halves(shape[2 if turned else 1]), strict=True):
                self.entries[f"{start}{one.format(i)}.{end}"] = _Row(name, i, part, turned)
        return True

    def info(self, name: str) -> Any:
        row = self._entry(name)
        info = self.source.info(row.name)
        if row.expert is None:
            return info
        whole = info.shape[1:]
        shape = whole[::-1] if row.turned else whole
        if row.rows is not None:
            shape = (len(range(*row.rows.indices(shape[0]))), *shape[1:])
        return replace(info, name=name, shape=shape, nbytes=info.nbytes * _size(shape) // _size(info.shape))

    def _read(self, name: str) -> Any:
        row = self._entry(name)
        if row.expert is None:
            return self.source._read(row.name)
        if self._open[0] != row.name:
            # Experts of one tensor are asked for one after the other: it is read once.
            self._open = (row.name, self.source._read(row.name))
        one = self._open[1][row.expert]
        if row.turned:
            one = one.T
        one = one if row.rows is None else one[row.rows]
        return one.contiguous() if row.turned or (row.rows is not None and row.rows.step) else one

    def blocks(self, name: str) -> BlockTensor | None:
        row = self._entry(name)
        found = self.source.blocks(row.name)
        if found is None or row.expert is None:
            return found
        if row.turned:
            return None
        one = found.blocks[row.expert]
        return like(found, one if row.rows is None else one[row.rows])

    def close(self) -> None:
        self.source.close()


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _split(kind: str, rows: int) -> list[tuple[str, slice | None]]:
    if kind != "gate_up_proj":
        return [(kind, None)]
    half = rows // 2
    return [("gate_proj", slice(0, half)), ("up_proj", slice(half, rows))]


def stacked(weights: dict[str, Any], layout: Stacked) -> dict[str, Any]:
    """Weights by name, with those of single experts in one tensor as files have them; in float, not in blocks.

    >>> from votive.models.stacked import Stacked, stacked
    >>> single = {f"experts.{i}.{n}_proj.weight": votive.ones(2, 2) for i in range(3) for n in ("gate", "up", "down")}
    >>> {name: tuple(t.shape) for name, t in stacked(single, Stacked()).items()}
    {'experts.gate_up_proj': (3, 4, 2), 'experts.down_proj': (3, 2, 2)}
    """
    numbered = [re.escape(one).replace(r"\{\}", r"(\d+)") for one in layout.single]
    patterns = [re.compile(rf"(.*?){one}\.(weight|bias)") for one in numbered]
    found: dict[tuple[str, str, int], dict[int, Any]] = {}
    out: dict[str, Any] = {}
    for name, value in weights.items():
        for which, pattern in enumerate(patterns):
            match = pattern.fullmatch(name)
            if match is not None:
                found.setdefault((match[1], match[3], which), {})[int(match[2])] = value
                break
        else:
            out[name] = value
    for (start, end, which), parts in found.items():
        if which == 1:
            continue
        suffix = "_bias" if end == "bias" else ""
        if which == 2:
            made = [parts[i] for i in range(len(parts))]
        else:
            ups = found[start, end, 1]
            made = [_joined(parts[i], ups[i], layout) for i in range(len(parts))]
        if layout.transposed and end == "weight":
            made = [one.T for one in made]
        out[f"{start}{layout.down if which == 2 else layout.gate_up}{suffix}"] = votive.stack(made)
    return out


def restacked(source: WeightSource, layout: Stacked) -> WeightSource:
    """A source with the experts of each layer in one tensor, as files of a family have them; read when asked for.

    >>> from votive.models.stacked import Stacked, restacked
    >>> single = {f"experts.{i}.{n}_proj.weight": votive.ones(2, 4) for i in range(3) for n in ("gate", "up", "down")}
    >>> made = restacked(votive.io.MemorySource(single), Stacked())
    >>> {name: tuple(made.info(name).shape) for name in made.names()}
    {'experts.gate_up_proj': (3, 4, 4), 'experts.down_proj': (3, 2, 4)}
    """
    from .refitted import Part, Refitted

    numbered = [re.escape(one).replace(r"\{\}", r"(\d+)") for one in layout.single]
    patterns = [re.compile(rf"(.*?){one}\.(weight|bias)") for one in numbered]
    parts: dict[str, Part] = {}
    groups: dict[tuple[str, str, bool], dict[tuple[int, int], str]] = {}
    for name in source.names():
        which, match = next(((i, m) for i, p in enumerate(patterns) if (m := p.fullmatch(name)) is not None), (0, None))
        if match is None:
            parts[name] = Part((name,))
            continue
        start, end, down = match[1], match[3], which == 2
        file = f"{start}{layout.down if down else layout.gate_up}{'_bias' if end == 'bias' else ''}"
        parts.setdefault(file, Part(()))  # its place in the order
        groups.setdefault((file, end, down), {})[which, int(match[2])] = name
    for (file, end, down), names in groups.items():
        ordered = tuple(names[key] for key in sorted(names))
        turned = layout.transposed and end == "weight"
        parts[file] = Part(ordered, change=partial(_one, layout=layout, down=down, turned=turned))
    return Refitted(source, parts)


def _one(*singles: Any, layout: Stacked, down: bool, turned: bool) -> Any:
    half = len(singles) // 2
    made = list(singles) if down else [_joined(singles[i], singles[half + i], layout) for i in range(half)]
    return votive.stack([one.T for one in made] if turned else made)


def _joined(gate: Any, up: Any, layout: Stacked) -> Any:
    if layout.alternating:
        return votive.stack([gate, up], 1).flatten(0, 1)
    return votive.cat([gate, up])
