"""`fuse`: a Python function of elementwise operations becomes one formula, hence one kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .backends import trace as _trace  # noqa: F401 - registers the device
from .core.device import device
from .core.dtype import compute_type, get_default_dtype
from .core.errors import MissingKernelError, UnsupportedError
from .core.layout import Layout, Spec
from .core.mode import mode
from .core.storage import Storage
from .dispatch import make, state
from .formula import Formula, to_text, var
from .ops.registry import Op, formula_op

_TRACE = device("trace")

__all__ = ["Fused", "fuse"]


class Fused:
    """A fused function; `formula(*args)` shows what it became."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.plans: dict[Any, tuple[list[Op], bool]] = {}
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any) -> Any:
        ops, many = self._ops(args)
        tensors = tuple(a for a in args if isinstance(a, state.tensor))
        out = tuple(Op.call(op, tensors) for op in ops)
        return out if many else out[0]

    def _ops(self, args: tuple[Any, ...]) -> tuple[list[Op], bool]:
        """The operators for these kinds of arguments; numbers are baked in as constants."""
        # Tracing promotes numbers to the default dtype, so a change of it must trace anew.
        key = (get_default_dtype(), *(
            (a.dtype, a.ndim > 0) if isinstance(a, state.tensor) else (type(a), a) for a in args
        ))  # fmt: skip
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = self._trace(args)
        return found

    def _trace(self, args: tuple[Any, ...]) -> tuple[list[Op], bool]:
        if not any(isinstance(a, state.tensor) for a in args):
            raise TypeError("fuse: at least one argument must be a Tensor.")
        names: list[str] = []
        traced: list[Any] = []
        for a in args:
            if not isinstance(a, state.tensor):
                traced.append(a)
                continue
            names.append(f"x{len(names)}")
            # 0-d tensors promote differently from the others, so the stand-in keeps that.
            spec = Spec(Layout((1,) if a.ndim else ()), a.dtype, _TRACE)
            traced.append(make(Storage(None), var(names[-1]), spec))
        grad, mode.grad = mode.grad, False
        try:
            result = self.fn(*traced)
        except MissingKernelError as e:
            op = str(e).split(":")[0]
            raise UnsupportedError(
                f"fuse: {op} is not elementwise; only elementwise operators can be fused. "
                "Compute the rest outside."
            ) from None
        finally:
            mode.grad = grad
        many = isinstance(result, (tuple, list))
        ops = [self._op(r, i, names) for i, r in enumerate(result if many else (result,))]
        return ops, many

    def _op(self, result: Any, i: int, names: list[str]) -> Op:
        if not isinstance(result, state.tensor) or result.device is not _TRACE:
            raise TypeError(
                f"fuse: the function must return a Tensor made from its arguments, "
                f"got {type(result).__name__}."
            )
        name = getattr(self.fn, "__name__", "fused").replace("<lambda>", "fused")
        formula = Formula(name if i == 0 else f"{name}_{i}", tuple(names), result._data)
        op = formula_op(formula)
        want = result.dtype
        op.dtype_rule = lambda promoted, *_: (
            compute_type(want) if want.is_inexact else promoted,
            want,
        )
        return op

    def formula(self, *args: Any) -> str:
        """The formula that these arguments lead to, as text."""
        ops, _ = self._ops(args)
        return "\n".join(to_text(op.formula(()).body) for op in ops)


def fuse(fn: Callable[..., Any]) -> Fused:
    """Trace a function of elementwise operations into one kernel, with its gradient.

    >>> step = votive.fuse(lambda x, y: votive.tanh(x) * y + 1)
    >>> step(votive.zeros(2), votive.ones(2))
    tensor([1., 1.])
    >>> step.formula(votive.zeros(2), votive.ones(2))
    'tanh(x0) * x1 + 1'
    """
    return Fused(fn)
