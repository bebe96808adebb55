"""Operators and kernels added at run time, by users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.base import FUNCTION_ROWS, Row, add_row, remove_row
from ..ops.operator import Op
from ..ops.registry import OPS, pointwise, structured


class KernelHandle:
    """Takes a kernel out of the table again, by `remove()` or at the end of a `with` block."""

    def __init__(self, row: Row) -> None:
        self.row = row

    def remove(self) -> None:
        remove_row(self.row)

    def __enter__(self) -> KernelHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_kernel(
    op: str,
    fn: Callable[..., Any],
    device: str = "cpu",
    *,
    priority: int = 100,
    accepts: Callable[..., bool] | None = None,
    widen: bool = True,
) -> KernelHandle:
    """Let `fn` serve a structured operator on a device, ahead of rows with lower priority.

    `fn` gets arrays and parameters in schema order; `accepts(*specs)` says which inputs it takes.

    >>> def loud_cumsum(x, dim, dtype):
    ...     print("mine")
    ...     return np.cumsum(x, axis=dim, dtype=dtype.np)
    >>> with votive.register_kernel("cumsum", loud_cumsum):
    ...     votive.tensor([1, 2]).cumsum(0)
    mine
    tensor([1, 3])
    """
    if op not in OPS:
        raise KeyError(f"register_kernel: no operator is called {op!r}.")
    if OPS[op].kind != "structured":
        raise TypeError(f"register_kernel: {op} is a {OPS[op].kind} operator and needs no kernel row.")
    label = getattr(fn, "__name__", "custom")
    if not widen and device != "cpu":
        raise TypeError(f"register_kernel: widen=False is for kernels of the CPU; on {device} nothing is widened.")
    options = {} if widen else {"widen": False}
    row = FUNCTION_ROWS[device](op=op, device=device, fn=fn, priority=priority, takes=accepts, label=label, **options)
    add_row(row)
    return KernelHandle(row)


def custom_op(
    schema: str,
    formula: Callable[..., Any] | None = None,
    *,
    infer: Callable[..., Any] | None = None,
    kernels: dict[str, Callable[..., Any]] | None = None,
    doc: str = "A custom operator.",
    **options: Any,
) -> Op:
    """Declare an operator at run time: by a formula, or by a shape rule and kernels per device.

    >>> from votive.formula import apply
    >>> swish2 = votive.custom_op("swish2(Tensor input)", lambda x: x * apply("sigmoid", 2 * x))
    >>> swish2(votive.tensor([0.0]))
    tensor([0.])
    """
    if (formula is None) == (infer is None):
        raise TypeError("custom_op: give either a formula, or infer= and kernels=.")
    if formula is not None:
        op = pointwise(schema, formula, doc=doc, **options)
    else:
        assert infer is not None
        if not kernels:
            raise TypeError("custom_op: a structured operator needs kernels={'cpu': fn}.")
        op = structured(schema, infer=infer, doc=doc, **options)
        for device, fn in kernels.items():
            add_row(FUNCTION_ROWS[device](op=op.name, device=device, fn=fn, label=getattr(fn, "__name__", "custom")))
    return op
