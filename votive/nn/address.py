"""Where a module stands: its dotted path below the call that is running. Knows no module class.

A path is not kept in the module, because one module may be used under two parents. The module whose
call runs knows the names of everything below it; a callee looks itself up there by identity.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..core.mode import mode


class Children(dict[str, Any]):
    """The submodules of one module by name; names derived from them are forgotten on a change."""

    __slots__ = ("__weakref__", "learned", "names", "watched")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # id of a module below this one -> its path relative to this one
        self.names: dict[int, str] = {}
        self.learned = False  # whether `names` is complete
        self.watched = False  # whether anybody's `names` was read from here

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Identities mean nothing in a copy or in another process.
        return Children, (), None, None, iter(self.items())


def _watch(change: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: Children, *args: Any, **kwargs: Any) -> Any:
        if self.watched:
            _forget()
        return change(self, *args, **kwargs)

    return changed


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault",
              "update"):  # fmt: skip
    setattr(Children, _name, _watch(getattr(dict, _name)))

_learned: list[weakref.ref[Children]] = []


def _forget() -> None:
    """A watched tree changed: all derived names are built again when next needed."""
    for ref in _learned:
        children = ref()
        if children is not None:
            children.names, children.learned = {}, False
    _learned.clear()


def children_of(module: Any) -> Children:
    """The submodules of `module`, as a dictionary that can be watched."""
    children = module.__dict__.get("_modules")
    if children.__class__ is Children:
        return children  # type: ignore[no-any-return]
    if children is None:
        raise AttributeError(
            f"'{type(module).__name__}' object: cannot be called before Module.__init__() call"
        )
    # Somebody replaced the dictionary by a plain one.
    watchable = module.__dict__["_modules"] = Children(children)
    return watchable


def _learn(top: Children) -> None:
    """Name everything below `top`, nearest first, so that a direct child keeps its own name."""
    _learned.append(weakref.ref(top))
    names = top.names
    layer: list[tuple[str, Children]] = [("", top)]
    while layer:
        below: list[tuple[str, Children]] = []
        for prefix, children in layer:
            children.watched = True
            for name, module in children.items():
                if module is not None and id(module) not in names:
                    names[id(module)] = prefix + name
                    below.append((f"{prefix}{name}.", children_of(module)))
        layer = below
    top.learned = True


class Here(threading.local):
    """The submodules of the module whose call runs in this thread, and of the outermost one."""

    children: Children | None = None
    root: Children | None = None


here = Here()


def locate(module: Any) -> str:
    """The path of a module called now, when the caller does not know its name yet."""
    caller, root = here.children, here.root
    if caller is None or root is None:
        return ""
    if not caller.learned:
        _learn(caller)
    name = caller.names.get(id(module))
    if name is not None:
        return f"{mode.module_path}.{name}" if mode.module_path else name
    if not root.learned:
        _learn(root)
    # A module that is registered nowhere below the root counts as part of its caller.
    return root.names.get(id(module), mode.module_path)


def note(error: Exception, path: str, module: Any) -> None:
    """Add to an error where it happened; the innermost module speaks, once."""
    if not any(n.startswith("in module ") for n in getattr(error, "__notes__", ())):
        error.add_note(f"in module {path!r} ({type(module).__name__})")
