"""Declares native kernels as rows of the kernel table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...base import Bound, Request, Row, add_row
from ...common.slot import Slot
from .loader import module


class Out:
    """The k-th result."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


OUT = Out(0)
OUT1 = Out(1)
OUT2 = Out(2)
OUT3 = Out(3)
OUT4 = Out(4)


@dataclass(frozen=True, kw_only=True)
class NativeRow(Row):
    """A C++ kernel; `fn` arranges its arguments once per plan."""

    label: str = "native"

    def bind(self, request: Request) -> Bound | None:
        if request.outs is None:
            return None
        args = list(request.args)
        for k, i in enumerate(request.slots):
            args[i] = None if request.values[k] is None else Slot(k, request.values[k])
        arranged = self.fn(*args)
        if arranged is None:
            return None
        launch = module.Launch(self.kernel, tuple(_entry(v) for v in arranged), request.outs)
        return Bound(launch, launch.into)


def _entry(v: Any) -> tuple[str, Any]:
    if isinstance(v, Slot):
        return "slot", v.index
    return ("out", v.index) if isinstance(v, Out) else ("fixed", v)


def native(
    op: str,
    kernel: str,
    *,
    accepts: Callable[..., bool] | None = None,
    priority: int = 10,
    optional: bool = False,
    careful: bool = False,
) -> Callable[[Any], Any]:
    """Register a native kernel for an operator.

    The decorated function is called once per plan with the operator's arguments: runtime ones as
    `Slot` (or None), static ones as they are. It returns what the C++ kernel is called with: slots,
    `OUT`…, numbers, None — or None instead of a tuple to refuse. An optional kernel may be missing
    from a module that was built before it: the reference serves then. A careful one reads first what it
    would overwrite.
    """

    def register(arrange: Any) -> Any:
        if module is not None:
            if not module.has_kernel(kernel):
                if optional:
                    return arrange
                raise ImportError(
                    f"the native module has no kernel {kernel!r}: it is older than these files. "
                    "Install votive again (pip install -e .)."
                )
            row = NativeRow(
                op=op, device="cpu", fn=arrange, priority=priority, takes=accepts, kernel=kernel, careful=careful
            )
            add_row(row)
        return arrange

    return register
