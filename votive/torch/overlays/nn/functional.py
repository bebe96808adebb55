"""`torch.nn.functional`: poolings that give indices by name, and names that torch's own code keeps there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....nn import functional as F
from ....overrides import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)
from ....tensor import Tensor
from ...aten_layers import native_channel_shuffle

TYPE_CHECKING = False
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


class _BroadcastingList:
    """`BroadcastingList2[int]` in an annotation: one number, or one per dimension."""

    def __getitem__(self, types: Any) -> None: ...


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = _BroadcastingList()
BroadcastingList3 = _BroadcastingList()


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Check that a value is a number or a pair of them."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that is one of two, as one of its arguments says."""

    def choose(*args: Any, **options: Any) -> Any:
        said = options.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if said else if_false)(*args, **options)

    choose.__name__, choose.__module__ = func_name, module_name
    return choose


def _with_indices(name: str) -> Callable[..., tuple[Tensor, Tensor]]:
    pool: Callable[..., tuple[Tensor, Tensor]] = getattr(F, name)

    def run(*args: Any, return_indices: bool = True, **options: Any) -> tuple[Tensor, Tensor]:
        return pool(*args, return_indices=return_indices, **options)

    run.__name__ = run.__qualname__ = f"{name}_with_indices"
    run.__doc__ = f"`{name}` with the places of the largest values."
    return run


_POOLS = [f"{kind}max_pool{n}d" for kind in ("", "adaptive_") for n in (1, 2, 3)]
_POOLS += ["fractional_max_pool2d", "fractional_max_pool3d"]
_NAMED = {f"{name}_with_indices": _with_indices(name) for name in _POOLS}
globals().update(_NAMED)

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "TYPE_CHECKING",
    "Tensor",
    "assert_int_or_pair",
    "boolean_dispatch",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "native_channel_shuffle",
]
__all__ += list(_NAMED)
