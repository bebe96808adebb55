"""The table of rules for sparse tensors, and how a rule gets into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ...core.errors import UnsupportedError
from ..tensor import NAMES, CooTensor, SparseTensor

if TYPE_CHECKING:
    from ...tensor import Tensor

RULES = SparseTensor._rules
Rule = Callable[..., Any]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Let a function run the operators of these names when an argument is sparse."""

    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return enter


def refuse(name: str, x: object, why: str = "") -> NoReturn:
    """Raise for what is not there for a layout."""
    layout = NAMES[x._layout] if isinstance(x, SparseTensor) else "dense"
    raise UnsupportedError(f"{name}: not implemented for {layout} tensors{why}; use .to_dense().")


def is_coo(x: object) -> bool:
    """Whether a value is a tensor in coordinate format."""
    return isinstance(x, CooTensor)


def into(name: str, x: Tensor, made: Any) -> Any:
    """Write a result over `x`: what in-place forms do."""
    if isinstance(x, SparseTensor):
        if not isinstance(made, SparseTensor) or made._layout is not x._layout:
            raise RuntimeError(f"{name}: the result is not {NAMES[x._layout]}, so it cannot be written in place.")
        if made.dtype is not x.dtype:
            from ...core.promotion import can_cast

            if not can_cast(made.dtype, x.dtype):
                raise RuntimeError(
                    f"{name}: result type {made.dtype} can't be cast to the desired output type {x.dtype}"
                )
            made = made.to(x.dtype)
        if tuple(made.shape) != tuple(x.shape):
            raise RuntimeError(f"{name}: the result has shape {tuple(made.shape)}, the tensor {tuple(x.shape)}.")
        return x._become(made)
    from ..convert import dense

    return x.copy_(dense(made) if isinstance(made, SparseTensor) else made)
