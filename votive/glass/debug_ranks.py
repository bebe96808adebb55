"""One debugger for all ranks of a model that is cut: what the first rank does, the others do as well.

Each rank runs the model under a debugger of its own. Commands go from the first rank to all, and behind each one it is
checked that all stand at the same address.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from ..distributed.group import ProcessGroup
from ..distributed.objects import all_gather_object, broadcast_object_list
from ..distributed.world import group_of
from ..nn import Module
from .debugger import Debugger

_COMMANDS = frozenset(
    ["step", "over", "out", "run", "finish", "back", "jump", "break_at", "clear", "replace", "skip", "swap"]
)


class RanksDebugger:
    """The debugger of the first rank, whose commands go to all ranks. Reading needs messages, too: `value` is the same
    on all.
    """

    def __init__(self, debugger: Debugger, group: ProcessGroup) -> None:
        self.__dict__.update(_debugger=debugger, _group=group)

    def __getattr__(self, name: str) -> Any:
        if name in _COMMANDS:
            return lambda *args, **kwargs: self._do(name, args, kwargs)
        return getattr(self._debugger, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._do(f"={name}", (value,), {})

    def _do(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            pickle.dumps((args, kwargs))
        except Exception as e:
            raise TypeError(
                f"debug_ranks: {name.lstrip('=')} goes to all ranks by pickle, and an argument cannot be pickled: {e}"
            ) from None
        _tell(self._group, (name, args, kwargs))
        return _obey(self._debugger, self._group, name, args, kwargs)

    def __repr__(self) -> str:
        return f"<{self._group.size()} ranks: {self._debugger!r}>"


def _tell(group: ProcessGroup, what: Any) -> Any:
    box = [what]
    broadcast_object_list(box, group.ranks[0], group)
    return box[0]


def _obey(d: Debugger, group: ProcessGroup, name: str, args: Any, kwargs: Any) -> Any:
    """Do what all ranks do now; an error where they are not at one place behind it."""
    error: Exception | None = None
    result: Any = None
    try:
        if name.startswith("="):
            setattr(d, name[1:], args[0])
        else:
            result = getattr(d, name)(*args, **kwargs)
    except Exception as e:
        error = e
    mine = (d.phase, str(d.address), None if error is None else f"{type(error).__name__}: {error}")
    found: list[Any] = [None] * group.size()
    all_gather_object(found, mine, group)
    if error is not None:
        raise error
    if any(one != found[0] for one in found):
        lines = [f"  rank {group.global_rank(r)}: {p} {a} {e or ''}".rstrip() for r, (p, a, e) in enumerate(found)]
        done = name.lstrip("=")
        raise RuntimeError(f"debug_ranks: ranks stand at different addresses behind {done}:\n" + "\n".join(lines))
    return result


def debug_ranks(
    session: Callable[[Any], Any], model: Module, *args: Any, group: ProcessGroup | None = None, **kwargs: Any
) -> Any:
    """Run a model on all ranks under one debugger: `session(debugger)` runs on the first rank, and all ranks follow it,
    from stop to stop. All call it with the same inputs; all get what the session gives.

    >>> from votive.glass.debug_ranks import debug_ranks
    >>> def look(d):
    ...     d.run(until="1")
    ...     d.value = votive.zeros(1, 2)
    ...     return d.finish().tolist()
    >>> def both():
    ...     model = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    ...     return debug_ranks(look, model, votive.ones(1, 2))
    >>> votive.distributed.simulate(both, 2)
    [[[0.0, 0.0]], [[0.0, 0.0]]]
    """
    among = group_of(group)
    with Debugger(model, *args, **kwargs) as d:
        if among.rank() == 0:
            try:
                result = session(RanksDebugger(d, among))
            except BaseException as e:
                _tell(among, ("", None, f"{type(e).__name__}: {e}"))
                raise
            _tell(among, ("", result, None))
            return result
        while True:
            name, given, rest = _tell(among, None)
            if name:
                _follow(d, among, name, given, rest)
            elif rest is not None:
                raise RuntimeError(f"debug_ranks: the session on the first rank has ended with {rest}")
            else:
                return given


def _follow(d: Debugger, group: ProcessGroup, name: str, args: Any, kwargs: Any) -> None:
    """Do what the first rank does; whether an error ends the session is for that rank to say."""
    try:
        _obey(d, group, name, args, kwargs)
    except Exception as e:
        d.__dict__["_told"] = e
