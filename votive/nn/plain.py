"""Whether a module is called as it was written, and nobody waits for the call: the one question
that all must ask who compute a module's result without calling it.

Knows how modules can be changed; knows no layer and computes nothing. A module may be changed by
hooks, by a `forward` (or another method) of its own, on its class, by a subclass, or in what it
holds; the last is for the caller, who reads weights and numbers as `forward` does: by attribute.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ..core.mode import mode
from ..dispatch.state import state
from .global_hooks import GLOBAL

# The tables of hooks that a call looks at.
HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
_METHODS = (FunctionType, classmethod, staticmethod)


def remember(cls: Any) -> None:
    """Keep the functions a class was written with: who replaces one later changes the class."""
    cls._written = {name: f for name, f in vars(cls).items() if isinstance(f, _METHODS)}
    cls._call = cls.forward, cls.__call__


def _written(cls: type, name: str) -> Any:
    for part in cls.__mro__:
        known = part.__dict__.get("_written")
        if known is not None and name in known:
            return known[name]
    raise AttributeError(f"{cls.__name__} was written without {name!r}")


def hooked(module: Any) -> bool:
    """Whether a module has a hook of its own, before or behind its call or its gradients.

    >>> from votive.nn.plain import hooked
    >>> layer = votive.nn.Linear(2, 2)
    >>> with layer.register_forward_hook(lambda module, args, output: None):
    ...     hooked(layer)
    True
    """
    own = module.__dict__
    return bool(
        own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
    )


def anybody() -> bool:
    """Whether somebody looks at all calls, of modules or of operators.

    >>> from votive.nn.plain import anybody
    >>> anybody()
    False
    """
    return bool(GLOBAL or state.observers or mode.special)


def plain(module: Any, cls: Any, *also: str) -> bool:
    """Whether a call of the module is `cls.forward` as written, and nobody would miss it.

    `also` names further methods that a caller stands in for.

    >>> from votive.nn.plain import plain
    >>> layer = votive.nn.Linear(2, 2)
    >>> plain(layer, votive.nn.Linear)
    True
    >>> layer.forward = lambda x: 2 * x
    >>> plain(layer, votive.nn.Linear)
    False
    """
    kind = module.__class__
    if not isinstance(module, cls) or (kind.forward, kind.__call__) != cls._call:
        return False
    own = module.__dict__
    if "forward" in own or hooked(module) or anybody():
        return False
    return all(name not in own and getattr(kind, name) is _written(cls, name) for name in also)


def as_written(module: Any) -> bool:
    """Whether only votive's code runs in a call of the module, in it and all below it, as it was
    written: then a call that is recorded and replayed without Python leaves nothing out.

    >>> from votive.nn.plain import as_written
    >>> class Loud(votive.nn.Linear):
    ...     def forward(self, x):
    ...         print("here")
    ...         return super().forward(x)
    >>> as_written(votive.nn.Linear(2, 2)), as_written(Loud(2, 2))
    (True, False)
    """
    modules = list(module.modules())
    kinds = {m.__class__ for m in modules}
    return (
        not any(map(hooked, modules))
        and all(_unchanged(c) for c in {c for kind in kinds for c in kind.__mro__})
        and all(map(_own_code, modules))
    )


def _own_code(module: Any) -> bool:
    """Whether a module's attributes hide no method of its class, and none is another's function."""
    return not any(
        hasattr(module.__class__, name) or not _ours(value)
        for name, value in module.__dict__.items()
        if callable(value)
    )


def _ours(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "").partition(".")[0] == "votive"


def _unchanged(cls: type) -> bool:
    if cls is object:
        return True
    known = cls.__dict__.get("_written")
    if known is None:  # not a module: a mixin
        return _ours(cls)
    now = {n: v for n, v in vars(cls).items() if isinstance(v, _METHODS)}
    return _ours(cls) and now == known
