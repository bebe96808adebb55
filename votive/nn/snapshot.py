"""What a module and all below it hold at a moment, to see later whether anything was changed.

For whoever records a module's work at addresses and replays it without Python. Looking again is
quick, as it is done for each token of a text.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter, is_, itemgetter
from typing import TYPE_CHECKING, Any

from .module import _fresh_tables

if TYPE_CHECKING:
    from .module import Module

_FRESH = frozenset(_fresh_tables())
# Saving and loading have tables too; no call asks them.
_OF_CALLS = [n for n, t in _fresh_tables().items() if isinstance(t, dict) and "state_dict" not in n]


class Snapshot:
    """What a module and all below it hold now; `still` says whether they hold the same things.

    In-place writes to tensors are not changes: whoever recorded their addresses reads the new
    values. The snapshot keeps alive what it has seen, so that addresses stay valid.

    >>> from votive.nn.snapshot import Snapshot
    >>> layer = votive.nn.Linear(2, 2)
    >>> taken = Snapshot(layer)
    >>> _ = layer.weight.data.zero_()
    >>> taken.still()
    True
    >>> layer.bias = None
    >>> taken.still()
    False
    """

    def __init__(self, module: Module) -> None:
        modules = list(module.modules())
        self.kinds = [(m, m.__class__) for m in modules]
        self.own = [m.__dict__ for m in modules]
        # What a fresh module has is found in its tables; the rest is read by name.
        rest = [[name for name in own if name not in _FRESH] for own in self.own]
        self.read = [(itemgetter("training", *names), own) for names, own in zip(rest, self.own, strict=True)]
        tables = [own[name] for own in self.own for name in _OF_CALLS]
        self.empty = [t for t in tables if not t]
        kinds = {c for m in modules for c in m.__class__.__mro__ if c is not object}
        self.filled = [*(t for t in tables if t), *map(vars, kinds)]
        self.tensors = [*module.parameters(), *module.buffers()]
        self.before = self._now()

    def _now(self) -> tuple[list[int], list[Any]]:
        sizes = list(map(len, chain(self.own, self.filled)))
        held = [read(own) for read, own in self.read]
        held += map(attrgetter("_storage", "_spec", "_offset"), self.tensors)
        held += [table.values() for table in self.filled]
        return sizes, list(chain.from_iterable(held))

    def still(self) -> bool:
        """Whether nothing was replaced, added or removed since."""
        if any(self.empty):
            return False
        try:
            (sizes, held), (before, holding) = self._now(), self.before
        except KeyError:
            return False
        if sizes != before or not all(map(is_, held, holding)):
            return False
        return all(m.__class__ is kind for m, kind in self.kinds)
