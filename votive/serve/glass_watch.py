"""What is looked at and changed inside of one text while it is read and written, and what was found.

Knows positions, rows and values; neither the model nor where the values come from.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from ..tensor import Tensor

if TYPE_CHECKING:
    from .glass_request import Capture, Edit, Glass

Array = np.ndarray[Any, np.dtype[Any]]


class Watch:
    """Follows one text of a request.

    `changes` are pairs of the first position at which an edit holds, and what it does; `first_needed` is the first
    position of the prompt whose values are asked for, so that it must be read even if it is known.
    """

    def __init__(self, glass: Glass, prompt: int) -> None:
        self.glass = glass
        self.edits = [(e, e.span.resolved(prompt)) for e in glass.edits]
        self.captures = [Found(c, c.span.resolved(prompt), glass.base64) for c in glass.captures]
        self.made = [0] * len(self.edits)
        self.error: Exception | None = None
        self.changes = [(positions[0], e.key()) for e, positions in self.edits]
        self.first_needed = min((f.positions[0] for f in self.captures if f.positions), default=None)

    def copied(self) -> Watch:
        """Another that has found the same so far, for another text with the same prompt."""
        twin = object.__new__(Watch)
        twin.__dict__.update(self.__dict__)
        twin.made = list(self.made)
        twin.captures = [f.copied() for f in self.captures]
        return twin

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Keep an error for the text that it is of: the other rows of a batch go on."""
        try:
            yield
        except Exception as error:
            self.error = self.error or error

    def made_before(self, stop: int) -> None:
        """Know that the first positions need not be read: the same edits were made when they were."""
        for i, (_, positions) in enumerate(self.edits):
            self.made[i] += len(_within(positions, 0, stop))

    def restart(self) -> None:
        """Know that the whole text is read again."""
        self.made = [0] * len(self.edits)
        for found in self.captures:
            found.at, found.parts = [], []

    def live(self, start: int, stop: int) -> dict[str, list[Any]]:
        """What is to be done while these positions are read: by address, edits with their places and captures."""
        found: dict[str, list[Any]] = {}
        for i, (edit, positions) in enumerate(self.edits):
            places = _within(positions, start, stop)
            if places:
                self.made[i] += len(places)
                found.setdefault(edit.site.address, []).append((edit, places))
                if edit.do == "skip":
                    found.setdefault(edit.site.address.replace("resid_post", "resid_pre"), [])
        for capture in self.captures:
            places = _within(capture.positions, start, stop)
            if places:
                found.setdefault(capture.capture.site.address, []).append((capture, places))
        return found

    def result(self) -> dict[str, Any]:
        """What was found and what was done."""
        found: dict[str, Any] = {}
        if self.captures:
            found["captures"] = [f.to_json() for f in self.captures]
        if self.edits:
            found["edits"] = [
                {"at": e.site.address, "do": e.do, "positions": n}
                for (e, _), n in zip(self.edits, self.made, strict=True)
            ]
        return found


class Found:
    """The values of one capture."""

    def __init__(self, capture: Capture, positions: Sequence[int], encoded: bool) -> None:
        self.capture, self.positions, self.encoded = capture, positions, encoded
        self.at: list[int] = []
        self.parts: list[Array] = []  # (positions, …) each; one of all where they are reduced

    def copied(self) -> Found:
        """Another with the same values."""
        twin = Found(self.capture, self.positions, self.encoded)
        twin.at, twin.parts = list(self.at), list(self.parts)
        return twin

    def take(self, row: Tensor, start: int, places: Sequence[int]) -> None:
        """Take the values of some positions, of a row that begins at position `start`."""
        offsets = [p - start for p in places]
        heads = self.capture.heads
        if self.capture.site.layout == "bhqk":
            self._take_pattern(row, start, places)
            return
        x = row[offsets[0] : offsets[-1] + 1] if _dense(offsets) else row[votive.tensor(offsets, device=row.device)]
        if heads is not None:
            x = x[:, votive.tensor(list(heads), device=x.device)]
        x = x.float()
        if self.capture.reduce == "norm":
            x = x.norm(dim=-1)
        values: Array = np.array(x.detach().cpu().numpy(), copy=True)
        if self.capture.reduce == "mean":
            self._join(values.astype(np.float64).sum(0), np.add)
        elif self.capture.reduce == "max":
            self._join(values.max(0), np.maximum)
        else:
            self.parts.append(values)
        self.at += places

    def _take_pattern(self, row: Tensor, start: int, places: Sequence[int]) -> None:
        """Of attention (heads, queries, keys): the last keys are the text's, whatever stands before them."""
        stop = start + int(row.shape[1])
        first = int(row.shape[2]) - stop
        for p in places:
            x = row[:, p - start, max(first, 0) : max(first, 0) + p + 1]
            if self.capture.heads is not None:
                x = x[votive.tensor(list(self.capture.heads), device=x.device)]
            self.parts.append(np.array(x.float().detach().cpu().numpy(), copy=True)[None])
        self.at += places

    def _join(self, new: Array, how: np.ufunc) -> None:
        self.parts = [new if not self.parts else how(self.parts[0], new)]

    def values(self) -> Array:
        """All that was found."""
        if not self.parts:
            return np.zeros((0,), np.float32)
        if self.capture.reduce in ("mean", "max"):
            whole = self.parts[0] / len(self.at) if self.capture.reduce == "mean" else self.parts[0]
            return np.asarray(whole, np.float32)
        if self.capture.site.layout == "bhqk":
            longest = max(p.shape[-1] for p in self.parts)  # nothing is given to what comes later
            self.parts = [np.pad(p, ((0, 0), (0, 0), (0, longest - p.shape[-1]))) for p in self.parts]
        return np.asarray(np.concatenate(self.parts), np.float32)

    def to_json(self) -> dict[str, Any]:
        """As answers have it."""
        values = self.values()
        found: dict[str, Any] = {"at": self.capture.site.address, "positions": self.at, "shape": list(values.shape)}
        if self.capture.reduce != "none":
            found["reduce"] = self.capture.reduce
        if self.capture.heads is not None:
            found["heads"] = list(self.capture.heads)
        if self.encoded:
            found |= {"dtype": "float32", "data": base64.b64encode(values.astype("<f4").tobytes()).decode()}
        else:
            found["data"] = _finite(values.tolist())
        return found


def _within(positions: Sequence[int], start: int, stop: int) -> Sequence[int]:
    if isinstance(positions, range):
        return range(max(positions.start, start), min(positions.stop, stop))
    return [p for p in positions if start <= p < stop]


def _dense(offsets: Sequence[int]) -> bool:
    return offsets[-1] - offsets[0] + 1 == len(offsets)


def _finite(value: Any) -> Any:
    """Numbers as JSON has them: null for those that are none."""
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return value if math.isfinite(value) else None


def changed(x: Tensor, row: int, start: int, edit: Edit, places: Sequence[int]) -> None:
    """Change a row of a value in its own memory, (rows, positions, features) or with heads before the features."""
    offsets = [p - start for p in places]
    if edit.heads is None and edit.features is None and _dense(offsets):
        part: Any = (row, slice(offsets[0], offsets[-1] + 1))
        x[part] = _new(edit, x[part], x)
        return
    lists = [offsets]
    if edit.site.layout == "bthc":
        lists.append(list(range(edit.site.heads) if edit.heads is None else edit.heads))
    lists.append(list(range(edit.site.features) if edit.features is None else edit.features))
    index = tuple(
        votive.tensor(some, device=x.device).reshape((-1,) + (1,) * (len(lists) - 1 - d))
        for d, some in enumerate(lists)
    )
    part = x[row]
    part[index] = _new(edit, part[index], x)


def _new(edit: Edit, part: Tensor, x: Tensor) -> Tensor:
    value = edit.value
    if edit.do == "zero":
        return votive.zeros_like(part)
    if isinstance(value, Tensor):
        value = value.to(device=x.device, dtype=x.dtype)
    if edit.do == "replace":
        return value.expand(part.shape) if isinstance(value, Tensor) else votive.full_like(part, value or 0.0)
    assert value is not None, "what adds and scales has a value"
    return part + value if edit.do == "add" else part * value
