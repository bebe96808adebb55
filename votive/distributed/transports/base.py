"""What a group of ranks asks of whatever moves bytes between them. Knows arrays, not tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..reduce_op import ReduceOp
from .liveness import Watch

Array = np.ndarray[Any, Any]


class Request(Protocol):
    """A message on its way."""

    def done(self) -> bool:
        """Whether it has arrived, or the memory that was sent may be written again."""

    @property
    def source(self) -> int:
        """Who sent it, once it is there."""


class Transport(Protocol):
    """Ranks 0 to size - 1 and what they do together; arrays are contiguous, and calls return when they are done.

    All ranks make the same calls in the same order; `check.py` has made sure of it.
    """

    rank: int
    size: int
    watch: Watch | None  # looks after the other processes, if they are processes

    def barrier(self) -> None:
        """Return when all ranks are here."""

    def broadcast(self, x: Array, root: int) -> None:
        """Write the root's numbers into `x` of all others."""

    def all_reduce(self, x: Array, op: ReduceOp) -> None:
        """Write the reduction of all ranks' `x` into each."""

    def reduce(self, x: Array, root: int, op: ReduceOp) -> None:
        """Write the reduction of all ranks' `x` into the root's."""

    def all_gather(self, out: Array, x: Array) -> None:
        """Write all ranks' `x` into `out`, (size, numbers)."""

    def reduce_scatter(self, out: Array, x: Array, op: ReduceOp) -> None:
        """Of `x`, (size, numbers), write the reduction of all ranks' row `rank` into `out`."""

    def all_to_all(self, outs: Sequence[Array], parts: Sequence[Array]) -> None:
        """Send `parts[i]` to rank i and write what rank i sends into `outs[i]`."""

    def gather(self, out: Array | None, x: Array, root: int) -> None:
        """Write all ranks' `x` into the root's `out`, (size, numbers)."""

    def scatter(self, out: Array, x: Array | None, root: int) -> None:
        """Write row `rank` of the root's `x`, (size, numbers), into `out`."""

    def send(self, x: Array, to: int, tag: int) -> Request:
        """Begin to send."""

    def receive(self, x: Array, source: int | None, tag: int) -> Request:
        """Begin to receive, from any rank if none is named."""

    def tell(self, to: int, message: bytes) -> None:
        """Send a short message beside the data; returns at once."""

    def heard(self, source: int) -> bytes | None:
        """The next message beside the data from a rank, None if there is none yet."""

    def failure(self) -> str | None:
        """What is known to be wrong with another rank, if anything."""

    def split(self, ranks: Sequence[int], name: str) -> Transport:
        """The transport of some of the ranks, of which this is one; `name` is theirs alone."""

    def close(self) -> None:
        """Give back what it holds."""
