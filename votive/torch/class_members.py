"""Small members that classes have in torch and not in votive, lent while the alias is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from ..autograd.function import Function, FunctionCtx
from ..core import dtype as dt
from ..core.rng import Generator
from ..distributions import Distribution
from ..nn.module import Module
from ..optim.optimizer import Optimizer

_SHORT = {dt.BOOL: "b", dt.INT: "i", dt.FLOAT: "f", dt.COMPLEX: "c"}


def _abbreviation(self: dt.dtype) -> str:
    if self is dt.bfloat16:
        return "bf16"
    bits = 8 * self.itemsize
    if self.category == dt.INT and not self.is_signed:
        return f"u{bits}"
    return f"{_SHORT[self.category]}{bits}" + self.name.removeprefix("float8").replace("_", "") * (
        self.name.startswith("float8")
    )


def _no_device(kind: str) -> Callable[..., NoReturn]:
    def refuse(self: Module, device: Any = None) -> NoReturn:
        raise RuntimeError(f"votive has no {kind} devices; use .cuda() or .to('cpu').")

    return refuse


def _saved_variables(self: Any) -> Any:
    """The older name of `saved_tensors`."""
    warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
    return self.saved_tensors


LENT: dict[type, dict[str, Any]] = {
    dt.dtype: {"abbr": property(_abbreviation)},
    Generator: {
        "graphsafe_get_state": lambda self: self.clone_state(),
        "graphsafe_set_state": lambda self, state: self.set_state(state.get_state()),
    },
    Module: {"T_destination": dict, "ipu": _no_device("IPU"), "mtia": _no_device("MTIA"), "xpu": _no_device("XPU")},
    Distribution: {"sample_n": lambda self, n: self.sample((n,))},
    Optimizer: {
        "OptimizerPreHook": Callable,
        "OptimizerPostHook": Callable,
        "profile_hook_step": staticmethod(lambda func: func),
    },
}
# In torch a context is an instance of its Function's class.
LENT[Function] = {
    name: vars(FunctionCtx)[name]
    for name in ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable", "saved_tensors")
}
LENT[Function] |= {
    "set_materialize_grads": FunctionCtx.set_materialize_grads,
    "needs_input_grad": (),
    "to_save": (),
    "non_differentiable": (),
    "dirty_tensors": (),
    "saved_for_forward": (),
    "materialize_grads": True,
    "requires_grad": False,
    "next_functions": (),
    "metadata": property(lambda self: self.__dict__.setdefault("_metadata", {})),
    "saved_variables": property(_saved_variables),
    "clear_saved_tensors_on_access": False,
    "boxed_grads_call": False,
}
LENT[FunctionCtx] = {
    "dirty_tensors": property(lambda self: self.dirty),
    "saved_for_forward": property(lambda self: self.for_forward),
    "metadata": property(lambda self: self.__dict__.setdefault("_metadata", {})),
    "saved_variables": property(_saved_variables),
}


def _grouped(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Lists that belong together, split by the device and dtype of what stands in the first of them."""
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for i, items in enumerate(zip(*[row or [None] * len(tensorlistlist[0]) for row in tensorlistlist], strict=True)):
        first = items[0]
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for column, item in zip(lists, items, strict=True):
            column.append(item)
        indices.append(i)
    return groups


LENT[Optimizer] = {
    "_group_tensors_by_device_and_dtype": staticmethod(_grouped),
    "_cuda_graph_capture_health_check": lambda self: None,
    **LENT.get(Optimizer, {}),
}
_lent: list[tuple[type, str]] = []


def enter() -> None:
    """Lend what is not there by now."""
    for kind, members in LENT.items():
        for name, value in members.items():
            if not hasattr(kind, name):
                setattr(kind, name, value)
                _lent.append((kind, name))


def leave() -> None:
    """Take it back."""
    for kind, name in _lent:
        delattr(kind, name)
    _lent.clear()
