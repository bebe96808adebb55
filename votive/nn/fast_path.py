"""Whether a fast path may compute a module's result without calling the module.

Knows how modules can be changed; knows no layer and computes nothing. A module may be changed by
hooks, by a `forward` (or another method) of its own, on its class, by a subclass, or in what it
holds; the last is for the caller, who reads weights and numbers as `forward` does: by attribute.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from ..dispatch.state import state
from .global_hooks import GLOBAL

if TYPE_CHECKING:
    from .module import Module

# The tables of hooks that a call looks at.
HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
_METHODS = (FunctionType, classmethod, staticmethod)


def record_methods(cls: type[Module]) -> None:
    """Keep the functions a class was written with, so that one replaced later is noticed."""
    cls._original_methods = {name: f for name, f in vars(cls).items() if isinstance(f, _METHODS)}
    cls._original_call = cls.forward, cls.__call__


def _original_method(cls: type, name: str) -> Any:
    for part in cls.__mro__:
        known = part.__dict__.get("_original_methods")
        if known is not None and name in known:
            return known[name]
    raise AttributeError(f"{cls.__name__} was written without {name!r}")


def has_hooks(module: Module) -> bool:
    """Whether a module has a hook of its own, before or behind its call or its gradients.

    >>> from votive.nn.fast_path import has_hooks
    >>> layer = votive.nn.Linear(2, 2)
    >>> with layer.register_forward_hook(lambda module, args, output: None):
    ...     has_hooks(layer)
    True
    """
    own = module.__dict__
    return bool(
        own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
    )


def calls_observed() -> bool:
    """Whether global hooks or observers see every call, of modules or of operators.

    >>> from votive.nn.fast_path import calls_observed
    >>> calls_observed()
    False
    """
    return bool(GLOBAL or state.observers or mode.special)


def can_bypass(module: object, cls: type[Module], *also: str) -> bool:
    """Whether a call of the module is `cls.forward` as written, with no hook or observer to run.

    `also` names further methods that the fast path replaces.

    >>> from votive.nn.fast_path import can_bypass
    >>> layer = votive.nn.Linear(2, 2)
    >>> can_bypass(layer, votive.nn.Linear)
    True
    >>> layer.forward = lambda x: 2 * x
    >>> can_bypass(layer, votive.nn.Linear)
    False
    """
    if not isinstance(module, cls):
        return False
    kind = module.__class__
    if (kind.forward, kind.__call__) != cls._original_call:
        return False
    own = module.__dict__
    if "forward" in own or has_hooks(module) or calls_observed():
        return False
    return all(name not in own and getattr(kind, name) is _original_method(cls, name) for name in also)


def replayable(module: Module) -> bool:
    """Whether only votive's code runs in a call of the module, in it and all below it, as it was
    written: then a call that is recorded and replayed without Python leaves nothing out.

    >>> from votive.nn.fast_path import replayable
    >>> class Loud(votive.nn.Linear):
    ...     def forward(self, x):
    ...         print("here")
    ...         return super().forward(x)
    >>> replayable(votive.nn.Linear(2, 2)), replayable(Loud(2, 2))
    (True, False)
    """
    modules = list(module.modules())
    kinds = {m.__class__ for m in modules}
    return (
        not any(map(has_hooks, modules))
        and all(_unchanged(c) for c in {c for kind in kinds for c in kind.__mro__})
        and all(map(_own_code, modules))
    )


def _own_code(module: Module) -> bool:
    """Whether a module's attributes hide no method of its class, and none is another's function."""
    return not any(
        hasattr(module.__class__, name) or not _ours(value)
        for name, value in module.__dict__.items()
        if callable(value)
    )


def _ours(thing: object) -> bool:
    return (getattr(thing, "__module__", None) or "").partition(".")[0] == "votive"


def _unchanged(cls: type) -> bool:
    if cls is object:
        return True
    known = cls.__dict__.get("_original_methods")
    if known is None:  # not a module: a mixin
        return _ours(cls)
    now = {n: v for n, v in vars(cls).items() if isinstance(v, _METHODS)}
    return _ours(cls) and now == known
