"""Calls with GPU tensors by NCCL: given to a stream of the group, and waited for by the stream of the program.

That all ranks mean the same is found out on the host before, as for any other call. Knows tensors, streams and groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.modes import no_grad
from ..futures import Future
from ..ops.registry import F
from ..tensor import Tensor
from .check import Call
from .errors import DistBackendError
from .group import ProcessGroup
from .reduce_op import ReduceOp
from .store import seconds
from .transports.nccl import ID_BYTES, Communicator, library, supports
from .work import Work

if TYPE_CHECKING:
    from ..cuda.streams import Event, Stream

Body = Callable[[Communicator, int], object]


def on_device(group: ProcessGroup, tensors: Sequence[Tensor], op: ReduceOp | None = None) -> OnDevice | None:
    """NCCL's side of a group, if it serves these tensors; None sends them by way of the host.

    >>> def by_host():
    ...     from votive.distributed.nccl import on_device
    ...     return on_device(votive.distributed.group.WORLD, [votive.ones(1)])
    >>> votive.distributed.simulate(by_host, 1)
    [None]
    """
    if not group.uses_nccl or not tensors:
        return None
    first = tensors[0]
    if any(not t.is_cuda or t.dtype is not first.dtype or t.device != first.device for t in tensors):
        return None
    if not supports(kind_of(first), op):
        return None
    found = group.__dict__.get("_on_device")
    if found is None:
        found = group.__dict__["_on_device"] = OnDevice(group)
    assert isinstance(found, OnDevice), "made here"
    return found


def kind_of(t: Tensor) -> str:
    """The name of a type.

    >>> votive.distributed.nccl.kind_of(votive.ones(1))
    'float32'
    """
    return str(t.dtype).rpartition(".")[2]


class DeviceWork(Work):
    """A call that a stream has been given: `wait()` lets the stream of the program wait, not the program itself."""

    def __init__(self, event: Event, comm: Communicator, shown: str, limit: float, result: Any) -> None:
        super().__init__(limit)
        self._event, self._comm, self._shown = event, comm, shown
        self.finish(result)

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        self._raise()
        if timeout:
            end = time.monotonic() + seconds(timeout)
            while not self._event.query():
                self._raise()
                if time.monotonic() > end:
                    raise DistBackendError(f"{self._shown}: not done after {seconds(timeout):.1f} seconds.")
                time.sleep(1e-4)
        self._event.wait()
        return True

    def is_completed(self) -> bool:
        return self.exception() is not None or self._event.query()

    def is_success(self) -> bool:
        return self.exception() is None and self._event.query()

    def exception(self) -> BaseException | None:
        wrong = self._comm.failure()
        return None if wrong is None else DistBackendError(f"{self._shown}: {wrong}")

    def get_future(self) -> Future[Any]:
        self.wait()
        return super().get_future()

    def _source_rank(self) -> int:
        raise DistBackendError(f"{self._shown}: NCCL does not say who has sent.")

    def _raise(self) -> None:
        wrong = self.exception()
        if wrong is not None:
            raise wrong


class OnDevice:
    """A communicator and a stream for each device that a rank uses in a group: one, as a rule."""

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group
        self._ready: dict[int, tuple[Communicator, Stream]] = {}

    def ready(self, index: int) -> tuple[Communicator, Stream]:
        """The communicator on a device; all ranks make theirs at their first call."""
        if index not in self._ready:
            from .. import cuda
            from ..backends.cuda import runtime as rt

            if not library.load():
                raise DistBackendError(f'backend "nccl": {library.reason}.')
            told = np.zeros(ID_BYTES, np.uint8)
            if self.group.rank() == 0:
                told[:] = np.frombuffer(library.unique_id(), np.uint8)
            made: list[Communicator] = []

            def connect() -> None:
                self.group.transport.broadcast(told, 0)
                with rt.runtime.driver.on(index):
                    made.append(Communicator(told.tobytes(), self.group.size(), self.group.rank()))

            self.group.run(Call("ncclCommInitRank"), 0, connect, False)
            self._ready[index] = made[0], cuda.Stream(index)
        return self._ready[index]

    def run(
        self, call: Call, nbytes: int, tensors: Sequence[Tensor], body: Body, async_op: bool, result: Any
    ) -> Work | None:
        """Give something to the group's stream, behind what the program's has."""
        from .. import cuda

        index = tensors[0].device.index or 0
        comm, stream = self.ready(index)
        stream.wait_stream(cuda.current_stream(index))

        def enqueue() -> None:
            with cuda.stream(stream), no_grad():
                body(comm, stream.cuda_stream)

        # Who sends from the host while others send by NCCL would wait for ever.
        marked = Call(call.op, f"{call.agrees} by NCCL", call.shown, call.where)
        self.group.run(marked, nbytes, enqueue, False)
        for t in tensors:
            t.record_stream(stream)
        work = DeviceWork(stream.record_event(), comm, str(call), self.group.timeout.total_seconds(), result)
        if async_op:
            return work
        work.wait()
        return None

    def close(self) -> None:
        """Give the communicators back."""
        broken = self.group._broken not in (None, "it was destroyed")
        for comm, _ in self._ready.values():
            comm.close(abort=broken)
        self._ready.clear()

    # --- collectives --------------------------------------------------------------------------

    def all_reduce(self, call: Call, nbytes: int, tensors: Sequence[Tensor], op: ReduceOp, async_op: bool,
                   result: Any) -> Work | None:  # fmt: skip
        """Reduce tensors of all ranks in place."""

        def body(comm: Communicator, stream: int) -> None:
            for t in tensors:
                x = dense(t)
                comm.all_reduce(x.data_ptr(), x.data_ptr(), x.numel(), kind_of(x), op, stream)
                back(t, x)

        return self.run(call, nbytes, tensors, body, async_op, result)

    def reduce(self, call: Call, nbytes: int, t: Tensor, root: int, op: ReduceOp, async_op: bool) -> Work | None:
        """Reduce tensors of all ranks into that of one."""

        def body(comm: Communicator, stream: int) -> None:
            x = dense(t)
            mine = comm.rank == root
            target = x if mine else F.empty_like(x)
            comm.reduce(x.data_ptr(), target.data_ptr(), x.numel(), kind_of(x), op, root, stream)
            if mine:
                back(t, x)

        return self.run(call, nbytes, [t], body, async_op, [t])

    def broadcast(self, call: Call, nbytes: int, t: Tensor, root: int, async_op: bool) -> Work | None:
        """Write the tensor of one rank into those of all."""

        def body(comm: Communicator, stream: int) -> None:
            x = dense(t)
            comm.broadcast(x.data_ptr(), x.data_ptr(), x.numel(), kind_of(x), root, stream)
            if comm.rank != root:
                back(t, x)

        return self.run(call, nbytes, [t], body, async_op, [t])

    def all_gather(self, call: Call, nbytes: int, outs: Sequence[Tensor], t: Tensor, async_op: bool,
                   result: Any) -> Work | None:  # fmt: skip
        """Write the tensors of all ranks into one, or each into one of a list."""

        def body(comm: Communicator, stream: int) -> None:
            x = dense(t)
            whole = outs[0] if len(outs) == 1 and outs[0].is_contiguous() else x.new_empty(comm.size * x.numel())
            comm.all_gather(x.data_ptr(), whole.data_ptr(), x.numel(), kind_of(x), stream)
            if whole is not outs[0]:
                for out, row in zip(outs, F.tensor_split(whole.view(-1), len(outs)), strict=True):
                    out.copy_(row.view(out.shape))

        return self.run(call, nbytes, [*outs, t], body, async_op, result)

    def reduce_scatter(self, call: Call, nbytes: int, out: Tensor, parts: Sequence[Tensor], op: ReduceOp,
                       async_op: bool) -> Work | None:  # fmt: skip
        """Give each rank its part of a reduction."""

        def body(comm: Communicator, stream: int) -> None:
            x = dense(parts[0]) if len(parts) == 1 else F.cat([p.reshape(-1) for p in parts])
            y = out if out.is_contiguous() else F.empty(out.shape, dtype=out.dtype, device=out.device)
            comm.reduce_scatter(x.data_ptr(), y.data_ptr(), y.numel(), kind_of(x), op, stream)
            back(out, y)

        return self.run(call, nbytes, [out, *parts], body, async_op, [out])

    def exchange(
        self,
        call: Call,
        nbytes: int,
        sends: Sequence[tuple[int, Tensor]],
        takes: Sequence[tuple[int, Tensor]],
        async_op: bool,
        result: Any,
        before: Callable[[], object] | None = None,
    ) -> Work | None:
        """Send tensors to ranks, and take what ranks send into others; `before` is done by all before that."""

        def body(comm: Communicator, stream: int) -> None:
            if before is not None:
                before()
            given = [(to, dense(t)) for to, t in sends]
            found = [(source, t, dense(t)) for source, t in takes]
            kind = kind_of(([t for _, t in given] + [t for _, _, t in found])[0])
            # What a rank sends to itself needs no messages.
            own = [t for to, t in given if to == comm.rank]
            for source, _, x in found:
                if source == comm.rank:
                    x.copy_(own.pop(0).view(x.shape))
            comm.exchange(
                [(to, t.data_ptr(), t.numel()) for to, t in given if to != comm.rank],
                [(source, x.data_ptr(), x.numel()) for source, _, x in found if source != comm.rank],
                kind,
                stream,
            )
            for _, t, x in found:
                back(t, x)

        tensors = [t for _, t in (*sends, *takes)]
        return self.run(call, nbytes, tensors, body, async_op, result)

    def messages(self, sends: Sequence[tuple[int, Tensor]], takes: Sequence[tuple[int, Tensor]], shown: str) -> Work:
        """Messages between some ranks, of which the others know nothing."""
        from .. import cuda

        tensors = [t for _, t in (*sends, *takes)]
        index = tensors[0].device.index or 0
        comm, stream = self.ready(index)
        stream.wait_stream(cuda.current_stream(index))
        with cuda.stream(stream), no_grad():
            given = [(to, dense(t)) for to, t in sends]
            found = [(source, t, dense(t)) for source, t in takes]
            with library.together():
                for to, t in given:
                    comm.send(t.data_ptr(), t.numel(), kind_of(t), to, stream.cuda_stream)
                for source, _, x in found:
                    comm.receive(x.data_ptr(), x.numel(), kind_of(x), source, stream.cuda_stream)
            for _, t, x in found:
                back(t, x)
        for t in tensors:
            t.record_stream(stream)
        limit = self.group.timeout.total_seconds()
        return DeviceWork(stream.record_event(), comm, shown, limit, tensors)


def dense(t: Tensor) -> Tensor:
    """The numbers of a tensor side by side: the tensor itself if they are."""
    x = t.detach()
    return x.contiguous().resolve_conj().resolve_neg()


def back(t: Tensor, x: Tensor) -> None:
    """Bring what was written to where it belongs."""
    if x.data_ptr() == t.data_ptr():
        t._storage.version += 1
    else:
        t.copy_(x.view(t.shape))
