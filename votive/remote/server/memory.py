"""What a session holds: storages by number, counted against its limit, and views of them that never reach outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.base import BACKENDS
from ...backends.remote.wire import ProtocolError
from ...core.errors import OutOfMemoryError, size_text
from ...core.layout import Spec, extent
from ...core.storage import Storage

MANY = 1 << 20  # storages of one session


class Held:
    """One storage: its memory, or that of the only result it was made for."""

    __slots__ = ("data", "filled", "nbytes", "spec", "storage", "views")

    def __init__(self, storage: Any, data: Any, spec: Spec | None, nbytes: int) -> None:
        self.storage, self.data, self.spec, self.nbytes = storage, data, spec, nbytes
        self.views: dict[tuple[int, Spec], Any] | None = None
        self.filled: Any = None  # what checks the bytes that are arriving


class Lost:
    """A storage whose value was never computed, and why."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


class Unusable(RuntimeError):
    """A call reads what another failed to compute: its own results are lost for the same reason."""


class Memory:
    """The storages of a session."""

    def __init__(self, kind: str, limit: int | None) -> None:
        self.backend, self.limit = BACKENDS[kind], limit
        self.table: dict[int, Held | Lost] = {}
        self.used = 0

    def reserve(self, nbytes: int, count: int = 1) -> None:
        """Refuse what would go beyond the limit."""
        if self.limit is not None and self.used + nbytes > self.limit:
            raise OutOfMemoryError(
                f"remote: out of memory: {size_text(nbytes)} more than the {size_text(self.used)} in use would go "
                f"beyond this client's limit of {size_text(self.limit)}; free tensors, or ask for a larger limit."
            )
        if len(self.table) + count > MANY:
            raise OutOfMemoryError(f"remote: a client has at most {MANY:,} storages; free tensors.")

    def hold(self, number: int, storage: Any, data: Any, spec: Spec | None, nbytes: int) -> None:
        """Enter new memory under a number that was not used before."""
        if number in self.table:
            raise ProtocolError("a storage has the number of another.")
        self.table[number] = Held(storage, data, spec, nbytes)
        self.used += nbytes

    def lose(self, number: int, why: str) -> None:
        """Enter that a storage has no value."""
        self.free(number)
        self.table[number] = Lost(why)

    def free(self, number: int) -> None:
        found = self.table.pop(number, None)
        if found.__class__ is Held:
            self.used -= found.nbytes

    def held(self, number: int) -> Held:
        """A storage that has a value."""
        found = self.table.get(number)
        if found.__class__ is Held:
            return found
        if isinstance(found, Lost):
            raise Unusable(found.why)
        raise Unusable("remote: the tensor was lost when the connection broke, before the server had computed it.")

    def view(self, number: int, offset: int, spec: Spec) -> Any:
        """Part of a storage through a spec; the whole part lies inside, or this is refused."""
        held = self.held(number)
        if offset == 0 and held.spec is spec:
            return held.data
        key = (offset, spec)
        if held.views is None:
            held.views = {}
        found = held.views.get(key)
        if found is None:
            if not spec.numel:
                offset = 0  # it reaches nothing
            reach = offset + extent(spec.shape, spec.strides)
            if offset < 0 or reach * spec.dtype.itemsize > held.nbytes:
                raise ProtocolError("a view reaches outside of its storage.")
            if held.storage is None:
                held.storage = wrapped(held.data)
            if len(held.views) > 4096:
                held.views.clear()
            found = held.views[key] = self.backend.view(held.storage, spec, offset)
        return found


def wrapped(data: np.ndarray[Any, Any]) -> Storage:
    """The storage of an array that is the whole of its memory, in whatever order its dimensions lie."""
    order = sorted(range(data.ndim), key=lambda d: -data.strides[d])
    memory = data if data.flags.c_contiguous else data.transpose(order)
    if not memory.flags.c_contiguous:
        memory = np.ascontiguousarray(memory)  # pragma: no cover - results are dense
    return Storage(memory)
