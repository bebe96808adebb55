"""NVIDIA's NCCL through ctypes: its library, and a communicator that is given addresses. Knows no tensors.

The library is that of NVIDIA's package (`nvidia-nccl-cu12`, `nvidia-nccl-cu13`) or the system's.
"""

from __future__ import annotations

import ctypes as c
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import DistBackendError
from ..reduce_op import ReduceOp

ID_BYTES = 128
NAMES = ["libnccl.so.2"]
# Types by their names here.
TYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
    "bfloat16": 9, "bool": 1,
}  # fmt: skip
# Complex numbers are two of these each.
PAIRS = {"complex64": "float32", "complex128": "float64"}
SUM, PRODUCT, LARGEST, SMALLEST, MEAN = range(5)
OPS = {
    ReduceOp.SUM: SUM, ReduceOp.PRODUCT: PRODUCT, ReduceOp.MAX: LARGEST, ReduceOp.MIN: SMALLEST, ReduceOp.AVG: MEAN,
}  # fmt: skip
# A sum of truth values is whether any is true, as elsewhere.
OF_TRUTH = {ReduceOp.SUM: LARGEST, ReduceOp.MAX: LARGEST, ReduceOp.PRODUCT: SMALLEST, ReduceOp.MIN: SMALLEST}
IN_PROGRESS = 7


class UniqueId(c.Structure):
    """What the first rank makes and all ranks of a communicator give."""

    _fields_ = [("internal", c.c_char * ID_BYTES)]


class Library:
    """The loaded library; `reason` says why there is none."""

    def __init__(self) -> None:
        self.lib: Any = None
        self.reason = ""
        self._lock = threading.Lock()

    def load(self) -> bool:
        """Whether there is a library."""
        with self._lock:
            if self.lib is None and not self.reason:
                from ...backends.cuda.libraries.cublas import opened

                found = opened(NAMES)
                if found is None:
                    self.reason = "libnccl.so.2 is not installed; pip install nvidia-nccl-cu12 (or -cu13)"
                    return False
                self.lib = _declared(found)
            return self.lib is not None

    def version(self) -> tuple[int, int, int]:
        """Such as (2, 27, 3)."""
        number = c.c_int()
        self.check(self.lib.ncclGetVersion(c.byref(number)), "ncclGetVersion")
        n = number.value
        return (n // 1000, n % 1000 // 100, n % 100) if n < 10000 else (n // 10000, n % 10000 // 100, n % 100)

    def check(self, code: int, what: str, comm: Any = None) -> None:
        """Raise what the library says of a code."""
        if code in (0, IN_PROGRESS):
            return
        text = (self.lib.ncclGetErrorString(code) or b"").decode(errors="replace")
        last = getattr(self.lib, "ncclGetLastError", None)
        more = (last(comm) or b"").decode(errors="replace").strip() if last is not None else ""
        raise DistBackendError(f"{what}: NCCL says {text!r}{more and ': '}{more} (error {code}).")

    def unique_id(self) -> bytes:
        """A new one, for the first rank to tell the others."""
        made = UniqueId()
        self.check(self.lib.ncclGetUniqueId(c.byref(made)), "ncclGetUniqueId")
        return bytes(c.string_at(c.addressof(made), ID_BYTES))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let the calls of the block be one: of messages to and from the same ranks none waits for another."""
        self.check(self.lib.ncclGroupStart(), "ncclGroupStart")
        try:
            yield
        finally:
            code = self.lib.ncclGroupEnd()
        self.check(code, "ncclGroupEnd")


def _declared(lib: Any) -> Any:
    p, size, number = c.c_void_p, c.c_size_t, c.c_int
    for name, arguments in {
        "ncclGetVersion": [p],
        "ncclGetUniqueId": [p],
        "ncclCommInitRank": [p, number, UniqueId, number],
        "ncclCommDestroy": [p],
        "ncclCommAbort": [p],
        "ncclCommGetAsyncError": [p, p],
        "ncclAllReduce": [p, p, size, number, number, p, p],
        "ncclReduce": [p, p, size, number, number, number, p, p],
        "ncclBroadcast": [p, p, size, number, number, p, p],
        "ncclAllGather": [p, p, size, number, p, p],
        "ncclReduceScatter": [p, p, size, number, number, p, p],
        "ncclSend": [p, size, number, number, p, p],
        "ncclRecv": [p, size, number, number, p, p],
        "ncclGroupStart": [],
        "ncclGroupEnd": [],
    }.items():
        function = getattr(lib, name)
        function.argtypes, function.restype = arguments, number
    lib.ncclGetErrorString.argtypes, lib.ncclGetErrorString.restype = [number], c.c_char_p
    if hasattr(lib, "ncclGetLastError"):
        lib.ncclGetLastError.argtypes, lib.ncclGetLastError.restype = [p], c.c_char_p
    return lib


library = Library()


def nccl_available() -> bool:
    """Whether NCCL can be loaded; that there is a GPU is another question.

    >>> votive.distributed.transports.nccl.nccl_available() in (True, False)
    True
    """
    return library.load()


def supports(kind: str, op: ReduceOp | None = None) -> bool:
    """Whether NCCL moves numbers of a type, and reduces them so; what it does not goes by way of the host.

    >>> from votive.distributed.transports.nccl import supports
    >>> supports("bfloat16", votive.distributed.ReduceOp.AVG), supports("int32", votive.distributed.ReduceOp.BXOR)
    (True, False)
    """
    if op is None:
        return kind in TYPES or kind in PAIRS
    if kind in PAIRS:
        return op in (ReduceOp.SUM, ReduceOp.AVG)
    return kind in TYPES and op in (OF_TRUTH if kind == "bool" else OPS)


def _counted(kind: str, count: int) -> tuple[int, int]:
    """(numbers, type) as NCCL counts them."""
    return (2 * count, TYPES[PAIRS[kind]]) if kind in PAIRS else (count, TYPES[kind])


class Communicator:
    """One rank's end. Calls are given to a stream and return; memory is named by its address, a type and a count."""

    def __init__(self, unique_id: bytes, size: int, rank: int) -> None:
        self.size, self.rank = size, rank
        self.lib = library.lib
        given = UniqueId()
        c.memmove(c.addressof(given), unique_id, ID_BYTES)
        handle = c.c_void_p()
        library.check(self.lib.ncclCommInitRank(c.byref(handle), size, given, rank), "ncclCommInitRank")
        self.handle: int | None = handle.value

    def _do(self, name: str, *arguments: Any) -> None:
        if self.handle is None:
            raise DistBackendError(f"{name}: the communicator was destroyed.")
        library.check(getattr(self.lib, name)(*arguments), name, self.handle)

    def all_reduce(self, source: int, target: int, count: int, kind: str, op: ReduceOp, stream: int) -> None:
        """The reduction of all ranks' numbers."""
        self._do("ncclAllReduce", source, target, *_counted(kind, count), _op(kind, op), self.handle, stream)

    def reduce(self, source: int, target: int, count: int, kind: str, op: ReduceOp, root: int, stream: int) -> None:
        """The reduction of all ranks' numbers, for one of them."""
        self._do("ncclReduce", source, target, *_counted(kind, count), _op(kind, op), root, self.handle, stream)

    def broadcast(self, source: int, target: int, count: int, kind: str, root: int, stream: int) -> None:
        """The numbers of one rank, for all."""
        self._do("ncclBroadcast", source, target, *_counted(kind, count), root, self.handle, stream)

    def all_gather(self, source: int, target: int, count: int, kind: str, stream: int) -> None:
        """The numbers of all ranks, one behind the other; `count` is that of one."""
        self._do("ncclAllGather", source, target, *_counted(kind, count), self.handle, stream)

    def reduce_scatter(self, source: int, target: int, count: int, kind: str, op: ReduceOp, stream: int) -> None:
        """Of the reduction each rank's part, of `count` numbers."""
        self._do("ncclReduceScatter", source, target, *_counted(kind, count), _op(kind, op), self.handle, stream)

    def send(self, source: int, count: int, kind: str, to: int, stream: int) -> None:
        """A message to a rank."""
        self._do("ncclSend", source, *_counted(kind, count), to, self.handle, stream)

    def receive(self, target: int, count: int, kind: str, source: int, stream: int) -> None:
        """A message from a rank."""
        self._do("ncclRecv", target, *_counted(kind, count), source, self.handle, stream)

    def exchange(
        self, sends: Sequence[tuple[int, int, int]], takes: Sequence[tuple[int, int, int]], kind: str, stream: int
    ) -> None:
        """Messages (rank, address, count) to and from several ranks at once."""
        with library.together():
            for to, address, count in sends:
                self.send(address, count, kind, to, stream)
            for source, address, count in takes:
                self.receive(address, count, kind, source, stream)

    def failure(self) -> str | None:
        """What has gone wrong since, on the device or between machines."""
        if self.handle is None:
            return "the communicator was destroyed"
        code = c.c_int()
        library.check(self.lib.ncclCommGetAsyncError(self.handle, c.byref(code)), "ncclCommGetAsyncError", self.handle)
        try:
            library.check(code.value, "NCCL", self.handle)
        except DistBackendError as e:
            return str(e)
        return None

    def close(self, abort: bool = False) -> None:
        """Give it back; `abort` does not wait for what is under way."""
        handle, self.handle = self.handle, None
        if handle is not None:
            (self.lib.ncclCommAbort if abort else self.lib.ncclCommDestroy)(handle)


def _op(kind: str, op: ReduceOp) -> int:
    return OF_TRUTH[op] if kind == "bool" else OPS[op]


Enqueue = Callable[[Communicator, int], None]
