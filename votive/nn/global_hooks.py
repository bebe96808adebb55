"""Hooks for all modules: around every call, and at every registration. Knows no module class."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

from .handle import Hook, RemovableHandle, add

if TYPE_CHECKING:
    from .module import Module


T = TypeVar("T")


class GlobalHook:
    """A hook for the calls of all modules."""

    def __init__(self, kind: str, hook: Hook, with_kwargs: bool, always: bool) -> None:
        self.kind, self.hook = kind, hook
        self.with_kwargs, self.always = with_kwargs, always


# One table for all kinds, so that a call without hooks asks one question.
GLOBAL: OrderedDict[int, GlobalHook] = OrderedDict()
REGISTRATION: dict[str, OrderedDict[int, Hook]] = {kind: OrderedDict() for kind in ("buffer", "module", "parameter")}


def add_global(kind: str, hook: Hook, with_kwargs: bool = False, always: bool = False) -> RemovableHandle:
    """Add a hook of one kind to the table of all.

    >>> from votive.nn.global_hooks import add_global
    >>> add_global("forward", lambda module, args, output: None).remove()
    """
    handle = RemovableHandle(GLOBAL)
    GLOBAL[handle.id] = GlobalHook(kind, hook, with_kwargs, always)
    return handle


def of_kind(kind: str) -> list[Hook]:
    """The global hooks of one kind, in order."""
    return [g.hook for g in GLOBAL.values() if g.kind == kind]


def registered(kind: str, module: Module, name: str, value: T) -> T:
    """What is registered after the registration hooks of this kind have seen it."""
    for hook in tuple(REGISTRATION[kind].values()):
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, args)` runs before the forward of every module.

    >>> from votive.nn.global_hooks import register_module_forward_pre_hook
    >>> with register_module_forward_pre_hook(lambda m, args: print(type(m).__name__)):
    ...     _ = votive.nn.Identity()(1)
    Identity
    """
    return add_global("forward_pre", hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args, result)` runs after the forward of every module.

    >>> from votive.nn.global_hooks import register_module_forward_hook
    >>> with register_module_forward_hook(lambda m, args, out: out + 1):
    ...     votive.nn.Identity()(1)
    2
    """
    return add_global("forward", hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, grad_output)` runs before the backward of every module.

    >>> from votive.nn.global_hooks import register_module_full_backward_pre_hook
    >>> register_module_full_backward_pre_hook(lambda m, g: None).remove()
    """
    return add_global("backward_pre", hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` runs after the backward of every module.

    >>> from votive.nn.global_hooks import register_module_full_backward_hook
    >>> register_module_full_backward_hook(lambda m, gi, go: None).remove()
    """
    _refuse_mixture("partial_backward")
    return add_global("backward", hook)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The older form of the full backward hook, for every module.

    >>> from votive.nn.global_hooks import register_module_backward_hook
    >>> register_module_backward_hook(lambda m, gi, go: None).remove()
    """
    _refuse_mixture("backward")
    return add_global("partial_backward", hook)


def _refuse_mixture(other: str) -> None:
    if of_kind(other):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, buffer)` runs at each registration; its result is registered instead.

    >>> from votive.nn.global_hooks import register_module_buffer_registration_hook
    >>> register_module_buffer_registration_hook(lambda m, name, b: None).remove()
    """
    return add(REGISTRATION["buffer"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, submodule)` runs at each registration; its result is registered instead.

    >>> from votive.nn.global_hooks import register_module_module_registration_hook
    >>> register_module_module_registration_hook(lambda m, name, child: None).remove()
    """
    return add(REGISTRATION["module"], hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, param)` runs at each registration; its result is registered instead.

    >>> from votive.nn.global_hooks import register_module_parameter_registration_hook
    >>> register_module_parameter_registration_hook(lambda m, name, p: None).remove()
    """
    return add(REGISTRATION["parameter"], hook)
