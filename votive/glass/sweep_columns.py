"""Which parts of a site's value a sweep patches together: positions, heads, neurons, and all pairs of these.

Knows the dimensions of values, and texts by their tokens; runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import votive

from ..tensor import Tensor
from .axes import Axes
from .labels import TokenNames, token_labels

AXES = ("position", "head", "neuron")
# Where something stands: a position from either end, a token's text, or a function of a text's ids.
Where: TypeAlias = int | str | Callable[[list[int]], int]
Positions: TypeAlias = int | Iterable[int] | Mapping[str, Where] | None


@dataclass(frozen=True)
class Column:
    """A part of a site's value that is patched together, and what it is called on each axis."""

    number: int
    index: tuple[Any, ...]
    labels: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """What is swept over, and which of it; positions by name are told per sample."""

    by: tuple[str, ...]
    positions: Any = None  # numbers, or a dict of a label and a position for each sample
    heads: tuple[int, ...] | None = None
    neurons: tuple[int, ...] | None = None


def chosen(
    by: str | Sequence[str],
    positions: Positions,
    heads: object,
    neurons: Iterable[int] | None,
    ids: Tensor | None,
    tokenizer: TokenNames | None,
) -> Chosen:
    """What a sweep is asked for, with names of positions looked up in the texts.

    >>> from votive.glass.sweep_columns import chosen
    >>> chosen("position", {"b": "b", "end": -1}, None, None, votive.tensor([[0, 1, 2]]), "abc").positions
    {'b': [1], 'end': [2]}
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    unknown = [b for b in by if b not in AXES]
    if unknown or not by or len(set(by)) != len(by):
        raise ValueError(f"sweep: by= takes different ones of {', '.join(AXES)}; got {by!r}.")
    if neurons is not None and "neuron" not in by:
        raise ValueError("sweep: neurons= chooses those of an axis; give by=... with 'neuron'.")
    if isinstance(positions, Mapping):
        if ids is None:
            raise ValueError("sweep: positions by name need the texts' ids among the inputs.")
        rows = ids.tolist()
        found: Any = {name: [position_of(w, r, name, tokenizer) for r in rows] for name, w in positions.items()}
    elif positions is None or isinstance(positions, int):
        found = positions if positions is None else [positions]
    else:
        found = [int(p) for p in positions]
    some = None
    if heads is not None and not isinstance(heads, int):
        some = tuple(int(h) for h in heads)  # type: ignore[attr-defined]
    return Chosen(by, found, some, None if neurons is None else tuple(int(n) for n in neurons))


def position_of(where: Where, row: list[int], name: str, tokenizer: TokenNames | None) -> int:
    """The position that is meant in a text of these ids, counted from its beginning.

    >>> from votive.glass.sweep_columns import position_of
    >>> position_of("c", [0, 1, 2], "it", "abc"), position_of(lambda ids: ids.index(1), [0, 1, 2], "it", None)
    (2, 1)
    """
    if isinstance(where, str):
        texts = token_labels(row, tokenizer)
        wanted = token_labels([0], [where])[0]
        hits = [i for i, t in enumerate(texts) if t == wanted] or [
            i for i, t in enumerate(texts) if t.strip("·") == wanted.strip("·")
        ]
        if len(hits) != 1:
            raise LookupError(
                f"sweep: {name!r} is to be the token {where!r}, which stands {len(hits)} times in {texts}."
            )
        return hits[0]
    at = where if isinstance(where, int) else int(where(row))
    if not -len(row) <= at < len(row):
        raise IndexError(f"sweep: {name!r} is to be at {at} in a text of {len(row)} positions.")
    return at % len(row)


def columns_of(name: str, value: Tensor, axes: Axes, asked: Chosen) -> list[Column]:
    """The parts of a site's value, for every combination of what is swept over."""
    places: dict[str, list[tuple[Any, Any, int]]] = {}
    for axis in AXES:
        dim = {"position": axes.positions, "head": axes.heads, "neuron": axes.features}[axis]
        if axis not in asked.by and not (axis == "position" and asked.positions is not None):
            if axis == "head" and asked.heads is not None:
                raise ValueError("sweep: heads= chooses those of an axis; give by=... with 'head'.")
            continue
        if dim is None or axes.shape != tuple(value.shape):
            raise ValueError(
                f"sweep: {name} is {tuple(value.shape)}, in which no dimension is known to be that of {axis}s; heads "
                "have one at 'layers.*.attn.z' and its like."
            )
        places[axis] = _on_axis(name, axis, axes, dim, value.shape[dim], asked)
    # What is chosen and not swept over is patched together.
    together = [] if "position" in asked.by or "position" not in places else places.pop("position")
    found = []
    for number, combination in enumerate(product(*(places[a] for a in asked.by))):
        index: list[Any] = [slice(None)] * value.dim()
        for _, at, dim in combination:
            index[dim] = at.to(value.device) if isinstance(at, Tensor) else at
        if any(isinstance(at, Tensor) for _, at, _ in combination):
            index[0] = votive.arange(value.shape[0], device=value.device)
        if together:
            if any(isinstance(at, Tensor) for _, at, _ in together):
                raise ValueError("sweep: positions by name are swept over; give by=... with 'position'.")
            index[together[0][2]] = [at for _, at, _ in together]
        found.append(Column(number, tuple(index), tuple(label for label, _, _ in combination)))
    return found


def _on_axis(name: str, axis: str, axes: Axes, dim: int, size: int, asked: Chosen) -> list[tuple[Any, Any, int]]:
    """Label, index and dimension of each place on an axis."""
    if axis == "position" and isinstance(asked.positions, dict):
        found: list[tuple[Any, Any, int]] = []
        for label, rows in asked.positions.items():
            at = [r - axes.start for r in rows]
            found.append((label, at[0] if len(set(at)) == 1 else votive.tensor(at), dim))
        return found
    given = {"position": asked.positions, "head": asked.heads, "neuron": asked.neurons}[axis]
    start = axes.start if axis == "position" else 0
    labels = list(range(start, start + size)) if given is None else list(given)
    out = [p for p in labels if not (start <= p < start + size or -size - start <= p < 0)]
    if out:
        raise IndexError(f"sweep: {axis}s {out[:8]} at {name} are outside {start}..{start + size - 1}.")
    return [(p, (p if p >= 0 else p + start + size) - start, dim) for p in labels]
