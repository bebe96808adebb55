"""The kernel table and what a device must offer. Knows operator names, not operators.

A row says: this function serves this operator on this device, when `accepts` agrees, ahead of rows
with lower priority. Rows can be added at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..core.device import present, unknown
from ..core.errors import CudaError, MissingKernelError
from ..core.layout import Spec
from ..core.storage import Storage


@dataclass(frozen=True)
class Row:
    """One kernel. `widen`: half types arrive as float32. `into`: writes into arrays given as
    `out=`. A row with label "native" arranges the arguments of `kernel` once per plan instead.
    """

    op: str
    device: str
    fn: Callable[..., Any]
    priority: int = 0
    accepts: Callable[..., bool] | None = None
    widen: bool = True
    into: bool = False
    label: str = "reference"
    kernel: str = ""  # of a native row: the name of its C++ function


TABLE: dict[tuple[str, str], list[Row]] = {}
# Positions of the arguments that an operator writes into, for those that do; told by `ops`.
MUTATES: dict[str, Callable[[], frozenset[int]]] = {}
# Called when rows change, so that plans which chose a kernel are made anew.
listeners: list[Callable[[str], None]] = []


def kernel(op: str, device: str = "cpu", **options: Any) -> Callable[[Any], Any]:
    """Register the decorated function as a kernel row."""

    def register(fn: Any) -> Any:
        add_row(Row(op, device, fn, **options))
        return fn

    return register


def add_row(row: Row) -> None:
    """Put a row into the table, behind those of higher or equal priority."""
    rows = TABLE.setdefault((row.op, row.device), [])
    rows.append(row)
    rows.sort(key=lambda r: -r.priority)
    for tell in listeners:
        tell(row.op)


def remove_row(row: Row) -> None:
    """Take a row out again."""
    TABLE[row.op, row.device].remove(row)
    for tell in listeners:
        tell(row.op)


# Labels of rows that are kernels for one kind of hardware.
OWN = frozenset(["native", "cuda"])
# Labels of rows that are passed over.
switched_off: set[str] = set()


def switch(label: str, on: bool) -> bool:
    """Use rows with this label or pass them over; says whether they were used before."""
    was = label not in switched_off
    if on:
        switched_off.discard(label)
    else:
        switched_off.add(label)
    if was != on:
        for tell in listeners:
            tell("")
    return was


def has_own(op: str, device: str) -> bool:
    """Whether a device has a kernel made for an operator, not just a way to compute it: joining
    several operators into this one pays.
    """
    return any(row.label in OWN and row.label not in switched_off for row in TABLE.get((op, device), ()))


def candidates(op: str, device: str, specs: list[Spec]) -> Iterator[Row]:
    """The rows that accept these inputs, best first; an error when none is left."""
    rows = TABLE.get((op, device), ())
    for row in rows:
        if row.label not in switched_off and (row.accepts is None or row.accepts(*specs)):
            yield row
    have = sorted({d for (name, d) in TABLE if name == op})
    why = f"its kernels refuse {specs}" if rows else f"kernels exist for: {have or 'no device'}"
    raise MissingKernelError(f"{op.lstrip('_')}: no kernel for device '{device}'; {why}.")


class Backend(Protocol):
    """What dispatch asks of a device. `data` is whatever the device's kernels take."""

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        """New memory with arbitrary content, seen through `spec`."""

    def view(self, storage: Storage, spec: Spec, offset: int) -> Any:
        """`storage` seen through `spec` from element `offset` on."""

    def adopt(self, data: Any, spec: Spec | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """(storage, data, spec) for what a kernel returned."""

    def pointwise(
        self, formula: Any, names: list[str], roles: list[Any], inputs: list[Any], out: Spec, empty: Any
    ) -> tuple[Any, Any]:
        """Two functions: compute(*values) -> (storage, data), and into(values, out data).

        A storage of None means: the data is the whole of its memory, wrap it when needed.
        """

    def bind(
        self,
        backend: Any,
        row: Row,
        template: list[Any],
        slots: list[int],
        values: tuple[Any, ...],
        specs: list[Spec],
        outs: tuple[Spec, ...] | None,
        single: bool,
    ) -> tuple[Any, Any] | None:
        """The same for a structured kernel: compute gives ((storage, data, spec), ...).

        `values` are the specs of the runtime arguments in order, `specs` those of their tensors.
        None when the row refuses these arguments.
        """

    def copy(self, out: Any, data: Any) -> None:
        """Write `data` over `out`, converting the dtype."""

    def to_numpy(self, data: Any) -> Any:
        """The values as a NumPy array."""

    def item(self, data: Any) -> Any:
        """The only value as a Python number."""

    def window(self, spec: Spec) -> Any:
        """What views of this spec are made from without Python, or None."""

    def clone_storage(self, storage: Storage) -> Storage:
        """Another storage with the same bytes."""


class _Backends(dict[str, Any]):
    """The devices in use; a GPU is started when something is first placed there."""

    def __missing__(self, kind: str) -> Any:
        if kind == "cuda":
            from .cuda import CudaBackend

            made = self[kind] = CudaBackend()
            return made
        unknown(kind)


BACKENDS: dict[str, Any] = _Backends()


def _present() -> list[str]:
    """The devices of this machine by name, GPUs with their numbers."""
    from .cuda.runtime import runtime

    try:
        return ["cpu", *(f"cuda:{i}" for i in range(runtime.start().count))]
    except CudaError:
        return ["cpu"]


present.names = _present
