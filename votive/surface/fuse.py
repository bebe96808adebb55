"""`fuse`: a Python function of elementwise operations becomes one formula, hence one kernel.

A reduction may come last: then the formula's values are reduced as they are computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..backends.base import switched_off
from ..backends.trace import Reduced
from ..core.device import device
from ..core.dtype import compute_type, get_default_dtype
from ..core.errors import MissingKernelError, UnsupportedError
from ..core.layout import Layout, Spec
from ..core.mode import mode
from ..core.storage import Storage
from ..dispatch import PointwisePlan, make, prepare, state
from ..formula import Formula, to_text, var
from ..ops.registry import OPS, Op, formula_op

_TRACE = device("trace")

__all__ = ["Fused", "fuse"]


class _Plain:
    """A formula as an operator."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __call__(self, tensors: tuple[Any, ...]) -> Any:
        return Op.apply(self.op, tensors)

    def text(self) -> str:
        return to_text(self.op.formula(()).body)


class _Reduction:
    """A formula under a reduction: one kernel where there is one and no gradient is wanted, else
    one operator after the other.
    """

    def __init__(self, op: Op, data: Reduced) -> None:
        self.op, self.over, self.static = op, OPS[data.op], data.static
        self.plans: dict[Any, Any] = {}

    def __call__(self, tensors: tuple[Any, ...]) -> Any:
        watched = state.observers or mode.autocast or "native" in switched_off
        if not watched and not (mode.grad and any(t._rg for t in tensors)):
            key = tuple([t._spec for t in tensors])
            bound = self.plans.get(key)
            if bound is None:
                bound = self.plans[key] = self._bind(tensors)
            if bound:
                storage, data = bound[0](*[t._data for t in tensors])
                return make(storage, data, bound[1])
        return Op.apply(self.over, (Op.apply(self.op, tensors), *self.static))

    def _bind(self, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        """(kernel, spec of the result), or nothing when there is no such kernel."""
        plan, _ = prepare(self.op, tensors)
        assert isinstance(plan, PointwisePlan)
        values = plan.out
        bind = getattr(plan.backend, "map_reduce", None)
        if bind is None or values is None or values.numel == 0:
            return ()
        assert self.over.infer is not None
        out = self.over.infer(values, *self.static)
        dim = self.static[0]
        if not isinstance(dim, tuple):
            dim = tuple(range(values.ndim)) if dim is None or not values.ndim else (dim,)
        names = [a.name for a in self.op.schema.args]
        kernel = bind(plan.formula, names, plan.roles, list(plan.specs), values, self.over.name, dim, out)
        return () if kernel is None else (kernel, out)

    def text(self) -> str:
        dim, keepdim = self.static[:2]
        return f"{self.over.name}({to_text(self.op.formula(()).body)}, dim={dim}, keepdim={keepdim})"


class Fused:
    """A fused function; `formula(*args)` shows what it became."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.plans: dict[Any, tuple[list[Any], bool]] = {}
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any) -> Any:
        ops, many = self._ops(args)
        tensors = tuple(a for a in args if isinstance(a, state.tensor))
        out = tuple([op(tensors) for op in ops])
        return out if many else out[0]

    def _ops(self, args: tuple[Any, ...]) -> tuple[list[Any], bool]:
        """The operators for these kinds of arguments; numbers are baked in as constants."""
        # Tracing promotes numbers to the default dtype, so a change of it must trace anew.
        key = (get_default_dtype(), *((a.dtype, a.ndim) if isinstance(a, state.tensor) else (type(a), a) for a in args))
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = self._trace(args)
        return found

    def _trace(self, args: tuple[Any, ...]) -> tuple[list[Any], bool]:
        if not any(isinstance(a, state.tensor) for a in args):
            raise TypeError("fuse: at least one argument must be a Tensor.")
        names: list[str] = []
        traced: list[Any] = []
        for a in args:
            if not isinstance(a, state.tensor):
                traced.append(a)
                continue
            names.append(f"x{len(names)}")
            # The number of dimensions matters: to reductions, and 0-d tensors promote differently.
            spec = Spec(Layout((1,) * a.ndim), a.dtype, _TRACE)
            traced.append(make(Storage(None), var(names[-1]), spec))
        grad, mode.grad = mode.grad, False
        try:
            result = self.fn(*traced)
        except MissingKernelError as e:
            op = str(e).split(":")[0]
            raise UnsupportedError(
                f"fuse: {op} is not elementwise; only elementwise operators can be fused, and a "
                "sum, mean, prod, amax or amin at the end. Compute the rest outside."
            ) from None
        finally:
            mode.grad = grad
        many = isinstance(result, (tuple, list))
        ops = [self._op(r, i, names) for i, r in enumerate(result if many else (result,))]
        return ops, many

    def _op(self, result: object, i: int, names: list[str]) -> Any:
        if not isinstance(result, state.tensor) or result.device is not _TRACE:
            raise TypeError(
                f"fuse: the function must return a Tensor made from its arguments, got {type(result).__name__}."
            )
        name = getattr(self.fn, "__name__", "fused").replace("<lambda>", "fused")
        data = result._data
        reduced = isinstance(data, Reduced)
        body, want = (data.body, data.of) if reduced else (data, result.dtype)
        op = formula_op(Formula(name if i == 0 else f"{name}_{i}", tuple(names), body))
        op.dtype_rule = lambda promoted, *_: (compute_type(want) if want.is_inexact else promoted, want)
        return _Reduction(op, data) if reduced else _Plain(op)

    def formula(self, *args: Any) -> str:
        """The formula that these arguments lead to, as text."""
        ops, _ = self._ops(args)
        return "\n".join(op.text() for op in ops)


def fuse(fn: Callable[..., Any]) -> Fused:
    """Trace a function of elementwise operations into one kernel, with its gradient.

    The function may end in a `sum`, `mean`, `prod`, `amax` or `amin`: then no tensor is made of the
    values before it. Where a gradient is recorded they are made, and reduced after.

    >>> step = votive.fuse(lambda x, y: votive.tanh(x) * y + 1)
    >>> step(votive.zeros(2), votive.ones(2))
    tensor([1., 1.])
    >>> step.formula(votive.zeros(2), votive.ones(2))
    'tanh(x0) * x1 + 1'
    >>> votive.fuse(lambda x, y: (x * y).sum())(votive.ones(3), votive.tensor([1.0, 2.0, 3.0]))
    tensor(6.)
    """
    return Fused(fn)
