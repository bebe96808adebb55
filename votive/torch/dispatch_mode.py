"""Modes that see each operator as it runs, below autograd: `torch.utils._python_dispatch.TorchDispatchMode`.

A mode stands in front of the operators that programs come down to, also those of a backward pass. What it gives instead
of calling `func` is the operator's result; gradients stay those of the operator. Operators bear ATen's names where ATen
has them; where torch makes several steps of what is one operator here, a mode sees the one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from ..core.device import device as Device
from ..core.dtype import dtype as Dtype
from ..core.mode import mode as modes
from ..dispatch import refresh, state
from ..dispatch.build import find
from ..dispatch.execute import any_grad
from ..dispatch.overrides import overloaded
from ..func import interpret as transformations
from ..ops.operator import Op
from ..ops.schema import REQUIRED
from ..tensor import Tensor
from .aten_namespace import Overload, Packet, packet

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "_disable_current_modes",
    "_get_current_dispatch_mode",
    "_get_current_dispatch_mode_stack",
    "_pop_mode_temporarily",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
]

# Operators whose name, and overload, is another one in ATen.
_NAMES = {
    "_addmm": "addmm.default",
    "_arange": "arange.start_step",
    "_batch_norm": "native_batch_norm.default",
    "_clamp": "clamp.default",
    "_copy_as": "_to_copy.default",
    "_convolution": "convolution.default",
    "_dropout": "native_dropout.default",
    "_embedding": "embedding.default",
    "_expand": "expand.default",
    "_full": "full.default",
    "_index": "index.Tensor",
    "_layer_norm": "native_layer_norm.default",
    "_masked_fill": "masked_fill.Scalar",
    "_max_dim": "max.dim",
    "_min_dim": "min.dim",
    "_new_normal": "randn.default",
    "_new_uniform": "rand.default",
    "_permute": "permute.default",
    "_pow_number": "pow.Tensor_Scalar",
    "_slice": "slice.Tensor",
    "_sort": "sort.default",
    "_std": "std.correction",
    "_var": "var.correction",
    "_vector_norm": "linalg_vector_norm.default",
    "_view": "view.default",
    "_where": "where.self",
    "_window": "as_strided.default",
    "amax": "amax.default",
    "bmm": "bmm.default",
    "pow": "pow.Tensor_Tensor",
    "select": "select.int",
    "transpose": "transpose.int",
}
_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "floor_divide", "true_divide"})
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "bitwise_and", "bitwise_or"})


class _Stack(threading.local):
    modes: tuple[Any, ...] = ()


_stack = _Stack()


class TorchDispatchMode:
    """A block in which each operator goes to `__torch_dispatch__` of this object.

    Inside the method the mode is off, so `func` and other functions can be called.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: there are no keys of torch's dispatcher here; pass none.")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        state.interpret = _interpret
        _stack.modes = (*_stack.modes, self)
        refresh(levels=1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        refresh(levels=-1)
        _stack.modes = _stack.modes[:-1]

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The mode itself; `with` is what turns it on."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every operator run."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    return _stack.modes[-1] if _stack.modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """All modes, outermost first."""
    return list(_stack.modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on; without those of torch's own machinery, which say so by `is_infra_mode`."""
    return any(include_infra_modes or not _is_infra(m) for m in _stack.modes)


def _is_infra(of: Any) -> bool:
    asked = getattr(type(of), "is_infra_mode", None)
    return bool(asked is not None and of.is_infra_mode())


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is one of a class that takes itself apart and puts itself together again."""
    return (
        isinstance(t, Tensor)
        and type(t) is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    """Without the innermost mode, which is given."""
    before = _stack.modes
    if not before:
        raise RuntimeError("_pop_mode_temporarily: no TorchDispatchMode is on.")
    _stack.modes = before[:-1]
    try:
        yield before[-1]
    finally:
        _stack.modes = before


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Without any mode."""
    before = _stack.modes
    _stack.modes = ()
    try:
        yield list(before)
    finally:
        _stack.modes = before


def _interpret(op: Op, args: tuple[Any, ...], into: Any = None) -> Any:
    """The result of an operator while modes are on."""
    stack = _stack.modes
    if not stack:
        return transformations.interpret(op, args, into)
    func = _Running(op, into is not None, _aten_name(op, args))
    given, named = _as_called(op, args)
    types = tuple(type(v) for v in overloaded(args))
    _stack.modes = stack[:-1]
    grad, recorded = modes.grad, False
    try:
        if into is None and not op.mutates:
            modes.grad = False
            recorded = grad
        made = stack[-1].__torch_dispatch__(func, types, given, named)
    finally:
        _stack.modes, modes.grad = stack, grad
    if made is NotImplemented:
        raise TypeError(f"{type(stack[-1]).__name__}.__torch_dispatch__ returned NotImplemented for {func}.")
    if into is not None:
        return into
    if recorded and op.differentiable and isinstance(made, (Tensor, tuple, list)):
        plan, bound = find(op, args)
        values = op.values(bound)
        if any_grad(values):
            if isinstance(made, Tensor) and (made._edge is not None or any(made is v for v in values)):
                made = made.detach()
            state.graph.record(plan, values, made)
    return made


def _as_called(op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as they would be written: without those that are as by default at the end."""
    given, named = [], {}
    for arg, value in zip(op.schema.args, args, strict=False):
        if arg.keyword_only:
            if arg.default is REQUIRED or not _is_default(value, arg.default):
                named[arg.name] = value
        else:
            given.append((arg, value))
    while given and given[-1][0].default is not REQUIRED and _is_default(given[-1][1], given[-1][0].default):
        given.pop()
    return tuple(list(v) if arg.is_list and isinstance(v, tuple) else v for arg, v in given), named


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not isinstance(value, Tensor) and value == default)


def _aten_name(op: Op, args: tuple[Any, ...]) -> str:
    """The name that ATen has for a call."""
    name = op.name
    other = args[1] if len(args) > 1 else None
    if name == "matmul":
        dims = args[0].ndim, args[1].ndim
        return {(2, 2): "mm", (3, 3): "bmm", (2, 1): "mv", (1, 1): "dot"}.get(dims, "matmul") + ".default"
    if name == "_copy_as" and _same_type(args):
        return "clone.default"
    if name in _NAMES:
        return _NAMES[name]
    if name in _ARITHMETIC:
        return f"{name}.Tensor" if name != "floor_divide" else "floor_divide.default"
    if name in _COMPARISONS:
        return f"{name}.Tensor" if isinstance(other, Tensor) else f"{name}.Scalar"
    if name in ("sum", "mean", "prod", "any", "all") and other is not None:
        return f"{name}." + {"sum": "dim_IntList", "prod": "dim_int"}.get(name, "dim")
    if name in ("_fill", "lerp"):
        return f"{name.lstrip('_')}." + ("Tensor" if isinstance(args[-1], Tensor) else "Scalar")
    return f"{name}.default"


def _same_type(args: tuple[Any, ...]) -> bool:
    x = args[0]
    types = [a for a in args[1:] if isinstance(a, Dtype)]
    places = [a for a in args[1:] if isinstance(a, Device)]
    return all(t is x.dtype for t in types) and all(p == x.device for p in places)


class _Running(Overload):
    """The operator of one call, under ATen's name: calling it runs the operator."""

    def __init__(self, op: Op, in_place: bool, name: str) -> None:
        self._op, self._in_place = op, in_place
        short, _, form = name.partition(".")
        short += "_" if in_place else ""
        super().__init__(packet(short) or Packet(short, self._run), form)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._op.bind(args, kwargs)
        lists = (a.is_list and not a.is_tensor for a in self._op.schema.args)
        bound = tuple(tuple(v) if fixed and isinstance(v, list) else v for fixed, v in zip(lists, bound, strict=True))
        return Op.write(self._op, bound) if self._in_place else Op.run(self._op, bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)
