"""The other forms of operators: in place, `out=` of composites, and Python's `+` with anything on its other side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DtypeError, ShapeError, fail, foreign, received
from ..core.mode import mode
from ..core.promotion import can_cast
from ..ops.operator import Composite, Form, Op, Operator
from ..ops.registry import F
from .execute import run
from .keys import configure_form
from .write import check_writable, private_copy, refuse_grad, write, write_out

if TYPE_CHECKING:
    from ..tensor import Tensor

_NUMBERS = (int, float, complex, np.number, np.bool_)


def is_operand(v: object) -> bool:
    """Whether Python's operators take a value: a tensor or a number."""
    return hasattr(v, "_spec") or isinstance(v, _NUMBERS)


def run_form(form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The general way of a form."""
    of = form.of
    if not form.configured:
        configure_form(form)
        form.configured = True
    if form.kind == "in place":
        return write(of, of.bind(args, kwargs)) if isinstance(of, Op) else _composite_inplace(of, args, kwargs)
    a, b = args[::-1] if form.kind == "reflected" else args
    if not (is_operand(a) and is_operand(b)):
        return with_foreign(
            of.name, lambda a, b: run_form(form, (b, a) if form.kind == "reflected" else (a, b), {}), a, b
        )
    if form.kind == "operator in place":
        return write(of, (a, b, *of.defaults(2))) if isinstance(of, Op) else getattr(a, of.name + "_")(b)
    return run(of, (a, b, *of.defaults(2))) if isinstance(of, Op) else of(a, b)


def with_foreign(op: str, again: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """What a Python operator makes of an operand that is neither tensor nor number.

    NumPy's arrays become tensors, as in torch. Tensors of other libraries are refused here, because
    Python would say "unsupported: Tensor and Tensor", or that the two are not equal. Anything else
    may know itself what to do.
    """
    x, other = (a, b) if hasattr(a, "_spec") else (b, a)
    if isinstance(other, np.ndarray):
        made = F._from_data(other, None, x._spec.device)
        return again(a, made) if other is b else again(made, b)
    if foreign(other):
        raise TypeError(f"{op}: expected a Tensor or a number, got {received(other)}.")
    return NotImplemented


def _composite_out(c: Composite, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """`out=` of a composite: compute without a graph, then write."""
    refuse_grad(c, (*args, *kwargs.values()), out)
    saved, mode.grad = mode.grad, False
    cast, mode.autocast = mode.autocast, {}  # who names the result's dtype wants no other
    try:
        result = c.fn(*args, **kwargs)
    finally:
        mode.grad, mode.autocast = saved, cast
    return write_out(c, result, out)


def _composite_inplace(c: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """In-place form of a composite: compute from x, then write over it."""
    assert isinstance(c, Composite)
    bound = c.signature.bind(*args, **kwargs)
    first = next(iter(c.signature.parameters))
    x = bound.arguments[first]
    name = c.name + "_"
    tracked = mode.grad and x._rg
    check_writable(name, x, tracked)
    cast, mode.autocast = mode.autocast, {}
    try:
        # Backward may need the old value of x, so the graph holds a copy instead.
        bound.arguments[first] = private_copy(x) if tracked else x
        result = c.fn(*bound.args, **bound.kwargs)
    finally:
        mode.autocast = cast
    if not can_cast(result._spec.dtype, x._spec.dtype):
        fail(DtypeError, name, f"result type {result._spec.dtype} can't be cast to {x._spec.dtype}.")
    if result._spec.shape != x._spec.shape:
        fail(ShapeError, name, f"the tensor's shape {x._spec.shape} doesn't match the result's {result._spec.shape}.")
    written: Tensor = F.copy_(x, result)
    return written


Form.run = staticmethod(run_form)
Form.write = staticmethod(write)
Composite.run_out = staticmethod(_composite_out)
