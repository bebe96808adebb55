"""Running hooks on gradients, and checking what they return. Knows tensors, not the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.errors import received
from ..dispatch import state

if TYPE_CHECKING:
    from ..tensor import Tensor

Hook = Callable[..., Any]
Grads = tuple[Any, ...]


def run_hooks(table: dict[int, Hook], grad: Tensor) -> Tensor | None:
    """Hooks in order; each may replace the gradient."""
    for fn in tuple(table.values()):
        replaced = fn(grad)
        if replaced is not None:
            grad = checked(fn, grad, replaced)
    return grad


def run_node_hooks(table: dict[int, Any], grads: tuple[Any, ...], *rest: Any) -> tuple[Any, ...]:
    """Hooks of a node in order; each may replace all gradients, one by one or as a tuple."""
    for fn in tuple(table.values()):
        replaced = fn(grads, *rest)
        if replaced is None:
            continue
        new = replaced if isinstance(replaced, tuple) else (replaced,)
        if len(new) != len(grads):
            raise RuntimeError(
                f"hook '{hook_name(fn)}' has returned an incorrect number of values (got {len(new)}, "
                f"but expected {len(grads)})."
            )
        grads = tuple(checked(fn, old, g) for old, g in zip(grads, new, strict=True))
    return grads


def hook_name(hook: Hook) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def checked(hook: Hook, old: Tensor | None, new: Any) -> Any:
    """What a hook made of a gradient, or None for nothing: it must stay what it was."""
    if new is None or new is old:
        return new
    if not isinstance(new, state.tensor):
        raise TypeError(f"hook '{hook_name(hook)}' must return a Tensor or None, got {received(new)}.")
    if old is None:
        raise RuntimeError(f"hook '{hook_name(hook)}': can't replace a None gradient with a non-None value.")
    was, now = old._spec, new._spec
    before: object
    after: object
    if was.shape != now.shape:
        what, before, after = "size", was.shape, now.shape
    elif was.dtype is not now.dtype:
        what, before, after = "type", was.dtype, now.dtype
    elif was.device != now.device:
        what, before, after = "device", was.device, now.device
    else:
        return new
    raise RuntimeError(
        f"hook '{hook_name(hook)}' has changed the {what} of value (was {before}, got {after}); a "
        "gradient has the shape, dtype and device of its tensor."
    )
