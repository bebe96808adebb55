"""Giving memory back before Python would: `Tensor.dispose` and `tidy`. Knows tensors, no device."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import fail
from ..dispatch.observe import Call, Observer
from ..dispatch.state import state

if TYPE_CHECKING:
    from ..tensor import Tensor


class DisposedError(RuntimeError):
    """A tensor was used after it was disposed of.

    >>> issubclass(votive.DisposedError, RuntimeError)
    True
    """


def dispose(tensor: Any) -> None:
    """Let a tensor go of its memory, its history and its gradient; whoever uses it afterwards gets an error."""
    if isinstance(tensor, _disposed()):
        return
    vars(tensor).clear()
    for name in ("_data", "_spec"):
        delattr(tensor, name)
    tensor.__class__ = _disposed()


_classes: dict[str, Any] = {}


def _disposed() -> Any:
    """The class of tensors without memory. Made late: the class of tensors is above this file."""
    found = _classes.get("disposed")
    if found is None:

        def missing(self: Any, name: str) -> NoReturn:
            fail(DisposedError, "dispose", "this tensor was disposed of: its memory was given back; compute it again.")

        def shown(self: Any) -> str:
            return "tensor(disposed)"

        body = {"__slots__": (), "__getattr__": missing, "__repr__": shown, "__str__": shown, "__module__": __name__}
        found = _classes["disposed"] = type("DisposedTensor", (state.tensor,), body)
    return found


class tidy(Observer):
    """`with votive.tidy() as keep:` disposes, at its end, of the tensors that were made inside and that only variables
    name. What was given to `keep`, put into a container or an object (a list, an optimizer's state, a cache, a
    gradient), or was there before, stays. Calls inside take the general way, which is a little slower.

    >>> with votive.tidy() as keep:
    ...     a = votive.ones(1000)
    ...     b = keep((a * 2).sum())
    >>> b.item()
    2000.0
    >>> a
    tensor(disposed)
    """

    follows_copies = True
    opens_fused = False

    def __init__(self) -> None:
        self._made: list[weakref.ref[Any]] = []
        self._kept: set[int] = set()

    def __enter__(self) -> Any:
        super().__enter__()
        return self.keep

    def keep(self, value: Any) -> Any:
        """Let a tensor, or those in lists, tuples and dictionaries, outlive the block; gives it back."""
        for t in _tensors(value):
            self._kept.add(id(t))
        return value

    def made(self, tensor: Tensor) -> None:
        self._made.append(weakref.ref(tensor))

    def after(self, call: Call) -> None:
        if call.into is None:
            before = {id(t) for t in _tensors(call.args)}
            self._made += [weakref.ref(t) for t in _tensors(call.result) if id(t) not in before]

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        live = {id(t): t for r in self._made if (t := r()) is not None and id(t) not in self._kept}
        self._made = []
        # What a history keeps is free to go once the result that has it went.
        while live:
            held = _held(live)
            free = [t for key, t in live.items() if key not in held]
            live = {key: t for key, t in live.items() if key in held}
            if not free:
                return
            for t in free:
                if type(t) is state.tensor:
                    dispose(t)


def _held(live: dict[int, Any]) -> set[int]:
    """Those that something else than variables and each other holds."""
    # A view names what it is a view of; that is no reason to keep it.
    own = {id(live), *live, *(id(vars(t)) for t in live.values())}
    held: set[int] = set()
    for holder in gc.get_referrers(*live.values()):
        if id(holder) not in own and not _names(holder):
            held.update(id(x) for x in gc.get_referents(holder) if id(x) in live)
    return held


def _names(holder: Any) -> bool:
    """Whether an object only holds variables: a running function, or a module's names."""
    if isinstance(holder, types.FrameType):
        return True
    return isinstance(holder, dict) and "__builtins__" in holder


def _tensors(value: Any) -> Iterable[Any]:
    if isinstance(value, state.tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)
