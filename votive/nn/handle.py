"""Tables of hooks, and handles that take a hook out of them again. Knows no module class."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

Hook = Callable[..., Any]
Table = OrderedDict[int, Any]


class RemovableHandle:
    """Removes a hook again, by `remove()` or at the end of a `with` block.

    >>> m = votive.nn.Identity()
    >>> with m.register_forward_hook(lambda m, args, out: out + 1):
    ...     m(votive.zeros(1))
    tensor([1.])
    >>> m(votive.zeros(1))
    tensor([0.])
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Table, *, extra_dict: Table | list[Table] | None = None) -> None:
        extra = extra_dict if isinstance(extra_dict, list) else [extra_dict]
        # Weak, so that a handle which is kept keeps neither the hooks nor the module alive.
        self._tables = [weakref.ref(d) for d in (hooks_dict, *extra) if d is not None]
        self.id = next(RemovableHandle._ids)

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        for ref in self._tables:
            table = ref()
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[list[Table | None], int]:
        return ([ref() for ref in self._tables], self.id)

    def __setstate__(self, state: tuple[list[Table | None], int]) -> None:
        tables, self.id = state
        self._tables = [weakref.ref(d) for d in tables if d is not None]


def add(table: Table, hook: object, prepend: bool = False) -> RemovableHandle:
    """Put a hook at the end or the front of a table."""
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


class BoundHook:
    """A hook that gets its module first, and does not keep the module alive."""

    def __init__(self, hook: Hook, module: object) -> None:
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self) -> tuple[Hook, object]:
        return (self.hook, self.module())

    def __setstate__(self, state: tuple[Hook, object]) -> None:
        self.hook, self.module = state[0], weakref.ref(state[1])
