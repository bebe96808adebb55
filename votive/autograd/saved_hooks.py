"""Hooks that see every value autograd keeps: to compress it, move it, or count it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from ..ops.registry import F

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:
    """`pack(tensor)` when a value is saved, `unpack(packed)` when backward needs it.

    >>> kept = []
    >>> with votive.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
    ...     y = votive.ones(2, requires_grad=True).exp()
    >>> len(kept)
    1
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self._pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        if mode.hooks_refused is not None:
            raise RuntimeError(mode.hooks_refused)
        mode.saved_hooks = (*mode.saved_hooks, self._pair)
        mode.renew()

    def __exit__(self, *exc: object) -> None:
        mode.saved_hooks = mode.saved_hooks[:-1]
        mode.renew()


class save_on_cpu(saved_tensors_hooks):
    """Keep saved values in CPU memory until backward needs them; with `pin_memory` in page-locked
    memory, from which they return without the host waiting. Without a GPU that makes no difference.

    >>> with votive.autograd.graph.save_on_cpu():
    ...     y = votive.ones(2, requires_grad=True).exp()
    >>> y.sum().backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Tensor) -> tuple[Any, Any]:
            if not pin_memory or t.device.type != device_type:
                return t.device, t.cpu()
            kept = t.new_empty(t.shape, device="cpu", pin_memory=True)
            return t.device, kept.copy_(t.detach())

        def unpack(packed: tuple[Any, Any]) -> Any:
            return packed[1].to(packed[0], non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """A block in which hooks on saved values are an error, with this text.

    >>> with votive.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     y = votive.ones(2, requires_grad=True).exp()
    """

    def __init__(self, error_message: str) -> None:
        self._text = error_message

    def __enter__(self) -> None:
        if mode.saved_hooks:
            raise RuntimeError(self._text)
        self._before, mode.hooks_refused = mode.hooks_refused, self._text

    def __exit__(self, *exc: object) -> None:
        mode.hooks_refused = self._before


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """A block in which values that backward needs may be overwritten: the graph keeps copies of them.

    >>> with votive.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = votive.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     z = (y * y).sum()
    ...     y = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        def pack(t: Tensor) -> Any:
            saved, mode.grad = mode.grad, True
            hooks, mode.saved_hooks = mode.saved_hooks, ()
            mode.renew()
            try:
                return F.clone(t)
            finally:
                mode.grad, mode.saved_hooks = saved, hooks
                mode.renew()

        super().__init__(pack, lambda t: t)

    def __enter__(self) -> Any:
        super().__enter__()
        return self
