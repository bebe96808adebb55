"""Declares native kernels as rows of the kernel table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.layout import Spec
from ...base import Row, add_row
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


def native(
    op: str, kernel: str, *, accepts: Callable[..., bool] | None = None, priority: int = 10, optional: bool = False
) -> Callable[[Any], Any]:
    """Register a native kernel for an operator.

    The decorated function is called once per plan with the operator's arguments: runtime ones as
    `Slot` (or None), static ones as they are. It returns what the C++ kernel is called with: slots,
    `OUT`…, numbers, None — or None instead of a tuple to refuse. An optional kernel may be missing
    from a module that was built before it: the reference serves then.
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
            add_row(Row(op, "cpu", arrange, priority, accepts, False, True, "native", kernel))
        return arrange

    return register


def launch(row: Row, template: list[Any], slots: list[int], specs: Sequence[Any], outs: tuple[Spec, ...]) -> Any:
    """The bound kernel, or None when the row refuses these arguments."""
    args = list(template)
    for k, i in enumerate(slots):
        args[i] = None if specs[k] is None else Slot(k, specs[k])
    arranged = row.fn(*args)
    if arranged is None:
        return None
    entries = []
    for v in arranged:
        if isinstance(v, Slot):
            entries.append(("slot", v.index))
        elif isinstance(v, Out):
            entries.append(("out", v.index))
        else:
            entries.append(("fixed", v))
    return module.Launch(row.kernel, tuple(entries), outs)
