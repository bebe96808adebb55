"""Hooks around the steps of optimizers: of one, or of all. Knows no parameters."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..autograd.graph import Handle

Hooks = OrderedDict[int, Callable[..., Any]]

_hook_ids = itertools.count()
_global_pre_hooks: Hooks = OrderedDict()
_global_post_hooks: Hooks = OrderedDict()


def add_hook(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> Handle:
    """Put a hook behind the others, or before them; the handle removes it."""
    key = next(_hook_ids)
    hooks[key] = hook
    if prepend:
        hooks.move_to_end(key, last=False)
    return Handle(hooks, key)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Let `hook(optimizer, args, kwargs)` run before every step of every optimizer.

    >>> handle = votive.optim.register_optimizer_step_pre_hook(lambda opt, args, kwargs: None)
    >>> handle.remove()
    """
    return add_hook(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Handle:
    """Let `hook(optimizer, args, kwargs)` run after every step of every optimizer.

    >>> handle = votive.optim.register_optimizer_step_post_hook(lambda opt, args, kwargs: None)
    >>> handle.remove()
    """
    return add_hook(_global_post_hooks, hook)


def with_step_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that runs the hooks around itself, once even if it calls `super().step()`."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A wrapper around another optimizer need not have called `__init__`; it has no hooks of its own then.
        if self._stepping or "_hooks" not in self.__dict__:
            return step(self, *args, **kwargs)
        # Schedulers warn when they are stepped before the optimizer was.
        self._opt_called = True
        given: tuple[Any, ...] = (self, *args)
        for hook in [*_global_pre_hooks.values(), *self._hooks["step_pre"].values()]:
            changed = hook(self, given, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
            given, kwargs = changed
        self._stepping = True
        try:
            out = step(*given, **kwargs)
        finally:
            self._stepping = False
        for hook in [*self._hooks["step_post"].values(), *_global_post_hooks.values()]:
            hook(self, given, kwargs)
        return out

    return run


def no_hooks() -> dict[str, Hooks]:
    """Empty tables for one optimizer."""
    kinds = ("step_pre", "step_post", "save_pre", "save_post", "load_pre", "load_post")
    return {kind: OrderedDict() for kind in kinds}
