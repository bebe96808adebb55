"""Where a module stands: its dotted path below the call that is running. Knows no module class.

A path is not kept in the module, because one module may be used under two parents. Instead the path
of the running call, `mode.module_path`, knows the paths of the modules below it by identity: a
callee looks itself up there. So whoever keeps that path and sets it again also has all below it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.errors import received
from ..tensor import Tensor

if TYPE_CHECKING:
    from .module import Module


class Path(str):
    """The path of a module's call, and the paths of calls made from it so far."""

    children: weakref.ref[Children]
    root: weakref.ref[Children]  # the submodules of the outermost module
    below: dict[int, Path]  # id of a callee -> its path

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


class Children(dict[str, Any]):
    """The submodules of one module by name; what was derived from them is forgotten on a change."""

    __slots__ = ("__weakref__", "guest", "learned", "names", "watched")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # id of a module below this one -> its path relative to this one
        self.names: dict[int, str] = {}
        self.learned = False  # whether `names` is complete
        self.watched = False  # whether anybody's `names` was read from here
        # Paths of calls by somebody who is no parent, by their text; "" when called from outside.
        self.guest: dict[str, Path] = {}

    def __reduce_ex__(self, protocol: object) -> Any:
        # Identities mean nothing in a copy or in another process.
        return Children, (), None, None, iter(self.items())


def _watch(change: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: Children, *args: Any, **kwargs: Any) -> Any:
        if self.watched:
            _forget()
        return change(self, *args, **kwargs)

    return changed


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(Children, _name, _watch(getattr(dict, _name)))


class _Known:
    """Everything that must be forgotten when a watched tree changes, without keeping it alive."""

    def __init__(self, drop: Callable[[Any], None]) -> None:
        self.drop = drop
        self.refs: list[weakref.ref[Any]] = []

    def add(self, holder: Any) -> None:
        self.refs.append(weakref.ref(holder))
        # Dead references pile up when modules are made inside forward; drop them at each doubling.
        n = len(self.refs)
        if n >= 64 and n & (n - 1) == 0:
            self.refs = [r for r in self.refs if r() is not None]

    def forget(self) -> None:
        refs, self.refs = self.refs, []
        for ref in refs:
            holder = ref()
            if holder is not None:
                self.drop(holder)


def _drop_names(children: Children) -> None:
    children.names, children.learned = {}, False


_learned = _Known(_drop_names)
_callers = _Known(lambda path: path.below.clear())


def _forget() -> None:
    """A watched tree changed: all derived names and paths are built again when next needed."""
    _learned.forget()
    _callers.forget()


def children_of(module: Module) -> Children:
    """The submodules of `module`, as a dictionary that can be watched."""
    children = module.__dict__.get("_modules")
    if children.__class__ is Children:
        return children
    if children is None:
        raise AttributeError(f"'{type(module).__name__}' object: cannot be called before Module.__init__() call")
    # Somebody replaced the dictionary by a plain one.
    watchable = module.__dict__["_modules"] = Children(children)
    return watchable


def _name_of(module: Module, ref: weakref.ref[Children]) -> str | None:
    """The path of a module relative to the owner of these submodules, if it is below it."""
    top = ref()
    if top is None:
        return None
    if not top.learned:
        _learn(top)
    return top.names.get(id(module))


def _learn(top: Children) -> None:
    """Name everything below `top`, nearest first, so that a direct child keeps its own name."""
    _learned.add(top)
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


def _path(text: str, children: Children, root: weakref.ref[Children]) -> Path:
    path = Path(text)
    path.children, path.root, path.below = weakref.ref(children), root, {}
    return path


def locate(module: Module, caller: str) -> Path:
    """The path of a module that is called now and not yet known to the path of its caller."""
    children = children_of(module)
    if not isinstance(caller, Path):
        return _as_guest(children, caller, weakref.ref(children))
    name = _name_of(module, caller.children)
    if name is not None:
        text = f"{caller}.{name}" if caller else name
    else:
        absolute = _name_of(module, caller.root)
        if absolute is None:
            # Registered nowhere below the root: it counts as a part of its caller.
            return _as_guest(children, caller, caller.root)
        text = absolute
    if not caller.below:
        _callers.add(caller)
    path = caller.below[id(module)] = _path(text, children, caller.root)
    return path


def _as_guest(children: Children, text: str, root: weakref.ref[Children]) -> Path:
    path = children.guest.get(text)
    if path is None or path.root is not root:
        path = children.guest[str(text)] = _path(text, children, root)
    return path


def refuse_foreign(error: AttributeError, path: str, module: Module, args: tuple[Any, ...]) -> None:
    """Raise TypeError when a tensor's attribute was asked of an argument that is none."""
    given = any(error.obj is a for a in args)
    if given and error.name and hasattr(Tensor, error.name) and not isinstance(error.obj, Tensor):
        refusal = TypeError(f"{type(module).__name__}: expected a Tensor, got {received(error.obj)}.")
        note(refusal, path, module)
        raise refusal from None


def note(error: Exception, path: str, module: Module) -> None:
    """Add to an error where it happened; the innermost module speaks, once."""
    if not any(n.startswith("in module ") for n in getattr(error, "__notes__", ())):
        kind = type(module).__name__
        # The outermost module has no path: its class is all there is to name it by.
        error.add_note(f"in module {str(path)!r} ({kind})" if path else f"in module {kind}")
