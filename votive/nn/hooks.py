"""Hooks around a module's call and its backward, and the call that runs them.

Knows a module by its hook tables and `forward` only.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from .backward_hooks import BackwardHook, register_partial
from .global_hooks import GLOBAL, add_global, of_kind
from .handle import Hook, RemovableHandle, add

if TYPE_CHECKING:
    from .module import Module


# fn(module, args, kwargs, proceed) -> result
AroundFn = Callable[[Any, tuple[Any, ...], dict[str, Any], Callable[..., Any]], Any]


class Around:
    """A hook that stands around a call: `fn(module, args, kwargs, proceed)` gives its result.

    The forward pre-hooks have run by then, so it is given what forward will get; and what
    `proceed(args, kwargs)` gives has passed all forward hooks, so its result is what the caller
    gets. Whoever does not call `proceed` skips the module and its forward hooks. It lies among the
    forward hooks, so that calls without hooks ask nothing more.

    >>> from votive.nn.hooks import Around
    >>> Around(lambda module, args, kwargs, proceed: None).fn(None, (), {}, None)
    """

    __slots__ = ("fn",)

    def __init__(self, fn: AroundFn) -> None:
        self.fn = fn


def register_around(module: Module | None, fn: AroundFn) -> RemovableHandle:
    """Let `fn` stand around the calls of one module; None means those of all modules.

    The same function stands around a call once, however often it was registered.

    >>> from votive.nn.hooks import register_around
    >>> layer = votive.nn.Identity()
    >>> with register_around(layer, lambda m, args, kwargs, proceed: proceed(args, kwargs) + 1):
    ...     print(layer(1))
    2
    """
    if module is None:
        return add_global("around", fn)
    return add(module._forward_hooks, Around(fn))


class Call:
    """One call of a module that has hooks, or while global hooks are set."""

    def __init__(
        self,
        module: Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        forward: Callable[..., Any] | None = None,  # in place of the module's own
    ) -> None:
        self.module, self.args, self.kwargs, self.forward = module, args, kwargs, forward
        self.result: Any = None
        self.ran: set[int] = set()

    def run(self) -> Any:
        around = of_kind("around")
        around += [h.fn for h in self.module._forward_hooks.values() if isinstance(h, Around)]
        # A function that was registered several times stands around the call once.
        around = list(dict.fromkeys(around))
        try:
            # First, so that who stands around the call sees and changes what forward gets.
            self._run_pre_hooks()
            return self._run_inside(around) if around else self._run()
        except Exception:
            self._run_missed()
            raise

    def _run_inside(self, around: list[Hook]) -> Any:
        """The call within what stands around it, the first outermost."""
        fn, *inner = around

        def proceed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self.args, self.kwargs = args, kwargs
            return self._run_inside(inner) if inner else self._run()

        return fn(self.module, self.args, self.kwargs, proceed)

    def _run(self) -> Any:
        module = self.module
        full = of_kind("backward")
        partial = of_kind("partial_backward")
        (full if module._is_full_backward_hook else partial).extend(module._backward_hooks.values())
        before = [*of_kind("backward_pre"), *module._backward_pre_hooks.values()]
        around = BackwardHook(module, full, before) if full or before else None
        if around:
            self.args = around.enter(self.args)
        self.result = (self.forward or module.forward)(*self.args, **self.kwargs)
        for key, hook, with_kwargs, _ in self._forward_hooks():
            self.ran.add(key)
            self._run_forward_hook(hook, with_kwargs)
        if around:
            self.result = around.leave(self.result)
        if partial and mode.grad:
            register_partial(module, partial, self.args, self.result)
        return self.result

    def _call(self, hook: Hook, *args: Any) -> Any:
        return hook(*args)

    def _run_pre_hooks(self) -> None:
        module = self.module
        hooks = [(h, False) for h in of_kind("forward_pre")]
        hooks += [(h, key in module._forward_pre_hooks_with_kwargs) for key, h in module._forward_pre_hooks.items()]
        for hook, with_kwargs in hooks:
            if not with_kwargs:
                replaced = self._call(hook, module, self.args)
                if replaced is not None:
                    self.args = replaced if isinstance(replaced, tuple) else (replaced,)
                continue
            replaced = self._call(hook, module, self.args, self.kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                )
            self.args, self.kwargs = replaced

    def _forward_hooks(self) -> list[tuple[int, Hook, bool, bool]]:
        """(key, hook, with kwargs, always called), the global ones first."""
        hooks = [(key, g.hook, g.with_kwargs, g.always) for key, g in GLOBAL.items() if g.kind == "forward"]
        module = self.module
        for key, hook in module._forward_hooks.items():
            if isinstance(hook, Around):
                continue
            with_kwargs = key in module._forward_hooks_with_kwargs
            hooks.append((key, hook, with_kwargs, key in module._forward_hooks_always_called))
        return hooks

    def _run_forward_hook(self, hook: Hook, with_kwargs: bool) -> None:
        if with_kwargs:
            replaced = self._call(hook, self.module, self.args, self.kwargs, self.result)
        else:
            replaced = self._call(hook, self.module, self.args, self.result)
        if replaced is not None:
            self.result = replaced

    def _run_missed(self) -> None:
        """After an error: the hooks that asked to be called in any case."""
        for key, hook, with_kwargs, always in self._forward_hooks():
            if not always or key in self.ran:
                continue
            try:
                self._run_forward_hook(hook, with_kwargs)
            except Exception as e:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {e}",
                    stacklevel=3,
                )


class Hooked:
    """The part of Module that registers hooks around its calls."""

    _forward_hooks: OrderedDict[int, Hook | Around]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: OrderedDict[int, Hook]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _is_full_backward_hook: bool | None

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args)` runs before forward; its result replaces the arguments.

        >>> m = votive.nn.Identity()
        >>> _ = m.register_forward_pre_hook(lambda m, args: args[0] * 2)
        >>> m(votive.ones(1))
        tensor([2.])
        """
        handle = add(self._forward_pre_hooks, hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        handle._tables.append(weakref.ref(self._forward_pre_hooks_with_kwargs))
        return handle

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, args, result)` runs after forward; what it returns replaces the result.

        >>> m = votive.nn.Identity()
        >>> _ = m.register_forward_hook(lambda m, args, out: print(type(m).__name__, out.shape))
        >>> _ = m(votive.ones(3))
        Identity votive.Size([3])
        """
        handle = add(self._forward_hooks, hook, prepend)
        for wanted, table in (
            (with_kwargs, self._forward_hooks_with_kwargs),
            (always_call, self._forward_hooks_always_called),
        ):
            if wanted:
                table[handle.id] = True
            handle._tables.append(weakref.ref(table))
        return handle

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` runs before the module's backward; its result replaces it.

        >>> m, x = votive.nn.Identity(), votive.ones(1, requires_grad=True)
        >>> _ = m.register_full_backward_pre_hook(lambda m, g: (g[0] * 5,))
        >>> m(x).backward()
        >>> x.grad
        tensor([5.])
        """
        return add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` runs when the gradients by the inputs are known.

        >>> m, x = votive.nn.Identity(), votive.ones(1, requires_grad=True)
        >>> _ = m.register_full_backward_hook(lambda m, gi, go: print(gi, go))
        >>> m(x).backward()
        (tensor([1.]),) (tensor([1.]),)
        """
        self._use_backward_hooks(full=True)
        return add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """The older form, which sees the gradients of the last operation only; prefer the full one.

        >>> m, x = votive.nn.Identity(), votive.ones(1, requires_grad=True)
        >>> m.register_backward_hook(lambda m, gi, go: None).remove()
        """
        self._use_backward_hooks(full=False)
        return add(self._backward_hooks, hook)

    def _use_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full
