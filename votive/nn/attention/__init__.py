"""Attention beyond `nn.functional.scaled_dot_product_attention`. The names are torch's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...core.attention_kernels import allowed
from . import varlen as varlen

if TYPE_CHECKING:
    from ...backends.cuda.public import SDPAParams as SDPAParams
    from . import bias as bias
    from . import flex_attention as flex_attention

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

# Nothing warns: whatever arguments attention gets, the kernel that is allowed takes them.
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """The ways of computing attention that `sdpa_kernel` chooses among.

    MATH is attention from single operators. FLASH_ATTENTION, EFFICIENT_ATTENTION and CUDNN_ATTENTION are all votive's
    own fused kernel, which keeps no matrix of scores.

    >>> votive.nn.attention.SDPBackend.MATH
    <SDPBackend.MATH: 0>
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[Any, Any]]:
    """Allow only these ways of computing `scaled_dot_product_attention` inside the block.

    With MATH alone, attention runs as single operators, which observers and gradients of gradients see one by one; with
    any other, as one kernel. An empty list allows none, and attention then raises. `set_priority` keeps the order of
    the list; the fused kernels are the same one here, so the order decides nothing.

    >>> from votive.nn.attention import SDPBackend, sdpa_kernel
    >>> q = votive.eye(2)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     votive.nn.functional.scaled_dot_product_attention(q, q, q, scale=2.0)
    tensor([[0.8808, 0.1192],
            [0.1192, 0.8808]])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    chosen = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    for one in chosen:
        if not isinstance(one, SDPBackend):
            raise TypeError(f"sdpa_kernel: expected SDPBackend, got {one!r}.")
    before, order = allowed.on, allowed.priority
    allowed.choose(frozenset(int(one) for one in chosen if one >= 0))
    if set_priority:
        rest = [n for n in order if n not in chosen]
        allowed.priority = (*(int(one) for one in chosen), *rest)
    try:
        yield {}
    finally:
        allowed.choose(before)
        allowed.priority = order


_implementations: dict[str, Callable[..., Any]] = {}
_active: list[tuple[str, Any]] = []


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Name an implementation of attention; `register_fn` runs when it is activated, and may add kernels by
    `votive.register_kernel`. What it returns may have `remove()`, which `restore_flash_attention_impl` calls.

    >>> votive.nn.attention.register_flash_attention_impl("mine", register_fn=lambda: None)
    """
    _implementations[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Run what was registered under a name.

    >>> votive.nn.attention.activate_flash_attention_impl("FA9")
    Traceback (most recent call last):
    ...
    ValueError: Unknown flash attention impl 'FA9'. Available implementations: [...]
    """
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
        )
    restore_flash_attention_impl()
    _active.append((impl, _implementations[impl]()))


def list_flash_attention_impls() -> list[str]:
    """The names that were registered.

    >>> isinstance(votive.nn.attention.list_flash_attention_impls(), list)
    True
    """
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The name that is active; None is votive's own kernel.

    >>> votive.nn.attention.current_flash_attention_impl() is None
    True
    """
    return _active[-1][0] if _active else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Go back to votive's own kernel.

    >>> votive.nn.attention.restore_flash_attention_impl()
    """
    while _active:
        handle = _active.pop()[1]
        if handle is not None and hasattr(handle, "remove"):
            handle.remove()


def __getattr__(name: str) -> Any:
    if name in ("bias", "flex_attention"):
        return import_module(f"{__name__}.{name}")
    if name == "SDPAParams":
        return import_module("votive.backends.cuda.public").SDPAParams
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
