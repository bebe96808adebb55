"""The kernel table and what a device must offer. Knows operator names, not operators.

A row serves an operator on a device when it accepts the request, ahead of rows with lower priority. Rows can be added
at run time; one for the operator "*" serves all that have no row of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from ..core.device import device, present, unknown
from ..core.errors import CudaError, MissingKernelError
from ..core.layout import Spec
from ..core.storage import Storage

Fn = TypeVar("Fn", bound=Callable[..., Any])


@dataclass(frozen=True)
class Request:
    """What a kernel is asked for: an operator on given layouts."""

    op: str
    args: tuple[Any, ...]  # in schema order: static arguments as they are, None where runtime ones go
    slots: tuple[int, ...]  # positions of the runtime arguments
    values: tuple[Any, ...]  # their specs; types of numbers, tuples of specs, None
    specs: tuple[Spec, ...]  # of all tensors among them
    outs: tuple[Spec, ...] | None  # of the results; None when they depend on the data
    single: bool  # one result, not a tuple
    backend: Any
    given: tuple[Any, ...] = ()  # the arguments as they were before the operator's rule rewrote them
    schema: Any = None  # of the operator


class Bound(NamedTuple):
    """A kernel bound to a request: compute(*values) -> ((storage, data, spec), ...), and into(values, out data) if it
    can write over existing memory.
    """

    compute: Callable[..., tuple[Any, ...]]
    into: Callable[[Any, Any], None] | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One kernel of the table. Backends derive their kinds of rows from it."""

    op: str
    device: str
    fn: Callable[..., Any]
    priority: int = 0
    label: str = "reference"
    takes: Callable[..., bool] | None = None  # of the specs of its tensors: whether it serves them
    kernel: str = ""  # the name of its C++ function, if that is what it leads to
    careful: bool = False  # reads first what it would overwrite

    def accepts(self, request: Request) -> bool:
        """Whether it serves these inputs."""
        return self.takes is None or self.takes(*request.specs)

    def bind(self, request: Request) -> Bound | None:
        """The kernel for these arguments, or None to refuse them."""
        raise NotImplementedError


TABLE: dict[tuple[str, str], list[Row]] = {}
# Positions of the arguments that an operator writes into, for those that do; told by `ops`.
MUTATES: dict[str, Callable[[], frozenset[int]]] = {}
# Called when rows change, so that plans which chose a kernel are made anew.
listeners: list[Callable[[str], None]] = []


class _FunctionRows(dict[str, Callable[..., Row]]):
    """How a plain function of a device's data becomes a row, by device: (op=, device=, fn=, ...) -> row."""

    def __missing__(self, kind: str) -> Callable[..., Row]:
        if kind == "cuda":
            from .cuda import rows

            return self.setdefault(kind, rows.FunctionRow)
        if kind == "webgpu":
            from .webgpu import rows as webgpu_rows

            return self.setdefault(kind, webgpu_rows.FunctionRow)
        unknown(kind)


FUNCTION_ROWS = _FunctionRows()


def kernel(
    op: str, device: str = "cpu", *, accepts: Callable[..., bool] | None = None, **options: Any
) -> Callable[[Fn], Fn]:
    """Register the decorated function as a kernel row."""

    def register(fn: Fn) -> Fn:
        add_row(FUNCTION_ROWS[device](op=op, device=device, fn=fn, takes=accepts, **options))
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
OWN = frozenset(["native", "cuda", "webgpu", "remote"])
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


def bind(device: str, request: Request) -> tuple[Row, Bound]:
    """The best row that serves a request, and its kernel; an error when there is none."""
    rows = TABLE.get((request.op, device)) or TABLE.get(("*", device), [])
    for row in rows:
        if row.label not in switched_off and row.accepts(request):
            bound = row.bind(request)
            if bound is not None:
                return row, bound
    have = sorted({d for (name, d) in TABLE if name == request.op})
    why = f"its kernels refuse {list(request.specs)}" if rows else f"kernels exist for: {have or 'no device'}"
    raise MissingKernelError(f"{request.op.lstrip('_')}: no kernel for device '{device}'; {why}.")


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
    ) -> Bound:
        """compute(*values) -> (storage, data), and into(values, out data).

        A storage of None means: the data is the whole of its memory, wrap it when needed.
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
        if kind == "meta":
            from .meta import MetaBackend

            return self.setdefault(kind, MetaBackend())
        if kind == "cuda":
            from .cuda import CudaBackend

            made = self[kind] = CudaBackend()
            return made
        if kind == "webgpu":
            from .webgpu import WebGpuBackend

            return self.setdefault(kind, WebGpuBackend())
        if kind == "remote":
            from .remote import RemoteBackend

            return self.setdefault(kind, RemoteBackend())
        unknown(kind)


BACKENDS: dict[str, Any] = _Backends()


def _present() -> list[str]:
    """The devices in reach by name, with their numbers."""
    from .cuda.runtime import runtime

    try:
        found = ["cpu", *(f"cuda:{i}" for i in range(runtime.start().count))]
    except CudaError:
        found = ["cpu"]
    if "remote" in BACKENDS:
        from .remote import connections

        found += connections.names()
    return found


def _at(url: str) -> device:
    """The device at an address."""
    from .remote import connections

    return connections.at(url)


def _current(kind: str) -> int:
    """The index that a kind of device means when none is given."""
    if kind == "remote":
        from .remote import connections

        return connections.current()
    return 0


present.names = _present
present.address, present.current = _at, _current
