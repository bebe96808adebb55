"""Where batches come from: any iterable, epoch after epoch, with a position to resume at.

Knows loaders by what they can do, not by class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import votive

from ..data.collate import mapped
from ..data.randomness import kept_random_state


class Feed:
    """Batches of `data`, one epoch after the other.

    Data with `state_dict` and `load_state_dict` (such as a DataLoader) is resumed by them; of any
    other, as many batches as were taken are skipped.

    >>> feed = votive.train.feed.Feed([1, 2, 3])
    >>> feed.take(2), feed.take(2), feed.take(2), feed.take(2)
    ([1, 2], [3], [], [1, 2])
    """

    def __init__(self, data: Iterable[Any]) -> None:
        self.data: Any = data
        self._stateful = hasattr(data, "state_dict") and hasattr(data, "load_state_dict")
        self._batches: Iterator[Any] | None = None
        self.taken = 0

    def take(self, n: int) -> list[Any]:
        """The next `n` batches, fewer before the end of an epoch, and none once at the end."""
        if self._batches is None:
            self._batches = iter(self.data)
            if not self._stateful:
                with kept_random_state():  # whoever resumes has already restored it
                    for _ in islice(self._batches, self.taken):
                        pass
        out = list(islice(self._batches, n))
        self.taken += len(out)
        if not out:
            if not self.taken:
                raise ValueError(
                    "Trainer: train_data gave no batch; an iterator is used up after one epoch, so "
                    "pass something that can be iterated again."
                )
            self._batches, self.taken = None, 0
        return out

    def state_dict(self) -> dict[str, Any]:
        """How far the epoch has come."""
        inner = self.data.state_dict() if self._stateful else None
        return {"taken": self.taken, "data": inner}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._batches, self.taken = None, state_dict["taken"]
        if self._stateful and state_dict["data"] is not None:
            self.data.load_state_dict(state_dict["data"])

    def close(self) -> None:
        """Let go of the iterator, and so of its workers; the next batch is the one after the last
        taken.
        """
        if self._batches is not None and self._stateful:
            self.data.load_state_dict(self.data.state_dict())
        self._batches = None


def first_tensor(batch: object) -> Any:
    """The first tensor in a batch, or None."""
    if hasattr(batch, "_spec"):
        return batch
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for member in batch:
            found = first_tensor(member)
            if found is not None:
                return found
    return None


def size_of(batch: object, unit: str) -> int:
    """How many items (rows) or tokens (elements) of its first tensor a batch holds."""
    t = first_tensor(batch)
    if t is None:
        return 1
    if unit == "tokens":
        return int(t.numel())
    return int(t.shape[0]) if t.ndim else 1


def moved(batch: Any, device: votive.device | str) -> Any:
    """The batch with its tensors on `device`."""
    if hasattr(batch, "_spec"):
        return batch if batch.device == device else batch.to(device)
    if isinstance(batch, tuple) and not hasattr(batch, "_fields"):
        return tuple(moved(x, device) for x in batch)
    return mapped(lambda member: moved(member, device), batch)
