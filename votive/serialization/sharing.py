"""Which tensors of a set look at the same memory, and how to save that. Knows layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor


class Shelf:
    """Collects tensors under unique names and decides which of them are stored.

    Each call of `put` returns a description that is complete only after `settle`: tensors that are
    the same window on the same memory are stored once, and those that lie inside another are saved
    as views of it. Windows that overlap without one containing the other are stored twice.
    """

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {}
        self.copies: list[str] = []
        self._taken: set[str] = set()
        self._groups: dict[int, list[tuple[Any, dict[str, Any], str]]] = {}

    def put(self, tensor: Tensor, path: str) -> dict[str, Any]:
        """A place for `tensor`, named after where it was found."""
        place: dict[str, Any] = {}
        group = self._groups.setdefault(id(tensor.untyped_storage()), [])
        group.append((tensor, place, self._name(path or "tensor")))
        return place

    def _name(self, path: str) -> str:
        # Two paths can read alike: {"a.b": x, "a": {"b": y}}. And one name is reserved.
        name, n = path, 1
        while name in self._taken or name == "__metadata__":
            n += 1
            name = f"{path}#{n}"
        self._taken.add(name)
        return name

    def settle(self) -> None:
        """Fill in all descriptions."""
        for group in self._groups.values():
            self._settle(group)

    def _settle(self, group: list[tuple[Any, dict[str, Any], str]]) -> None:
        first: dict[Any, str] = {}
        windows = []
        for tensor, place, name in group:
            key = (tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype.name)
            if key not in first:
                first[key] = name
                windows.append((tensor, place, name))
            place["name"] = first[key]
        # The largest first: only it can contain the others, and only if it has no gaps.
        windows.sort(key=lambda w: (-w[0].numel(), not w[0].is_contiguous()))
        base, base_name = windows[0][0], windows[0][2]
        self.stored[base_name] = base
        for tensor, _, name in windows[1:]:
            view = _inside(tensor, base)
            if view is None:
                self.stored[name] = tensor
                if _overlap(tensor, base):
                    self.copies.append(name)
                continue
            for other, place, _ in group:
                if place["name"] == name and other is not base:
                    place.update(name=base_name, view=view)


def _inside(tensor: Tensor, base: Tensor) -> list[Any] | None:
    """Offset, shape and strides of `tensor` within a contiguous `base`, or None."""
    if tensor.dtype is not base.dtype or not base.is_contiguous() or tensor.numel() == 0:
        return None
    start = tensor.storage_offset() - base.storage_offset()
    if start < 0 or start + span(tensor.shape, tensor.stride()) > base.numel():
        return None
    return [start, list(tensor.shape), list(tensor.stride())]


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """The number of elements from the first to the last one that a window touches."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def _overlap(a: Any, b: Any) -> bool:
    if a.numel() == 0 or b.numel() == 0:
        return False
    low = [t.storage_offset() * t.dtype.itemsize for t in (a, b)]
    high = [begin + span(t.shape, t.stride()) * t.dtype.itemsize for begin, t in zip(low, (a, b))]
    return low[0] < high[1] and low[1] < high[0]
