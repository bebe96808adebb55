"""How the compiler goes through modules: a call of one is a call of its `forward`, while it has no hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler.api import WRAPPERS, Compiled, Options, compile
from ..compiler.units import SPLITS, Units
from ..compiler.watch import ANSWERS, CALLS, Watch
from ..core.mode import Ever, mode
from . import traced_methods  # noqa: F401 - says how methods are gone through
from .address import Path, locate, note
from .fast_path import HOOKS, can_bypass
from .global_hooks import GLOBAL
from .hooks import Call
from .layers.rope import in_graph
from .module import Module
from .traced_hooks import HookedCall, can_trace_hooks, guard_hooks


def traced_call(watch: Watch, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module(*args, **kwargs)` while a program is traced: as `Module.__call__`, with the watch in `forward`."""
    own = module.__dict__
    if HOOKS[0] not in own:
        watch.stop("a module was not initialised")
        return module(*args, **kwargs)
    hooked = bool(GLOBAL) or any(own[t] for t in HOOKS)
    if hooked and not can_trace_hooks(module):
        watch.stop(f"hooks are registered on a {type(module).__name__} that cannot be part of a graph")
        return module(*args, **kwargs)
    guard_hooks(watch, module)
    if hooked:
        return _inside(module, lambda: HookedCall(watch, module, args, kwargs).run())
    return _inside(module, lambda: watch.call(watch.line, watch.attr(module, "forward"), *args, **kwargs))


def split_call(module: Module, units: Units) -> Callable[..., Any]:
    """A module whose call is not one graph: its call as always, with a compiled `forward`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        forward = units.unit(module.forward)
        own = module.__dict__
        if GLOBAL or any(own.get(t) for t in HOOKS):
            return _inside(module, lambda: Call(module, args, kwargs, forward).run())
        return _inside(module, lambda: forward(*args, **kwargs))

    return run


def _inside(module: Module, run: Callable[[], Any]) -> Any:
    """What stands around a call of a module: its path, and errors that name it."""
    before = mode.module_path
    path = (before.below.get(id(module)) if before.__class__ is Path else None) or locate(module, before)
    mode.module_path = path
    if path and not before:
        mode.noted = Ever.noted = True
    try:
        return run()
    except Exception as e:
        note(e, path, module)
        raise
    finally:
        mode.module_path = before
        if path and not before:
            mode.renew()


class CompiledModule(Module):
    """What `votive.compile(module)` gives: calls go to the compiled module, everything else to the module itself."""

    def __init__(self, module: Module, options: Options) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module, options)
        self.training = module.training

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if any(own[t] for t in HOOKS):
            return super().__call__(*args, **kwargs)
        return own["_compiled"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: object) -> None:
        inner = self.__dict__.get("_modules", {}).get("_orig_mod")
        if inner is None or name in ("_orig_mod", "training"):
            super().__setattr__(name, value)
            if inner is not None and name == "training":
                inner.training = value
        else:
            setattr(inner, name, value)

    def __getitem__(self, key: Any) -> Any:
        inner: Any = self._orig_mod
        return inner[key]

    def __iter__(self) -> Any:
        inner: Any = self._orig_mod
        return iter(inner)

    def __len__(self) -> int:
        inner: Any = self._orig_mod
        return len(inner)

    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __contains__(self, key: object) -> bool:
        inner: Any = self._orig_mod
        return key in inner

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        import copy

        return CompiledModule(copy.deepcopy(self._orig_mod, memo), self.__dict__["_compiled"].options)

    def __reduce__(self) -> Any:
        return CompiledModule, (self._orig_mod, self.__dict__["_compiled"].options)

    def __repr__(self) -> str:
        return f"CompiledModule(\n  (_orig_mod): {self._orig_mod!r}\n)"


__all__ = ["CompiledModule", "compile", "traced_call"]

CALLS[Module.__call__] = traced_call
ANSWERS[in_graph] = True
ANSWERS[can_bypass] = False  # modules are called as they are; rules of the compiler join what can be joined
CALLS[CompiledModule.__call__] = lambda watch, m, args, kwargs: traced_call(watch, m._orig_mod, args, kwargs)
SPLITS[Module.__call__] = split_call
WRAPPERS[Module.__call__] = CompiledModule
