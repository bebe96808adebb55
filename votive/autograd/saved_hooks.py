"""Hooks that see every value autograd keeps: to compress it, move it, or count it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.mode import mode

if TYPE_CHECKING:
    from ..tensor import Tensor


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
