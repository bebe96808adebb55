"""Tensors from one rank to another. Knows groups, not how bytes travel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from .buffers import Written, checked, readable
from .calls import of_members, root_of
from .check import Call, line_of_caller
from .group import OBSERVERS, ProcessGroup, Ran
from .nccl import on_device
from .transports.base import Request
from .work import Message, Work
from .world import group_of


def _peer(g: ProcessGroup, given: int | None, in_group: int | None, name: str) -> int:
    found = root_of(g, given, in_group, name, None)
    if found == g.rank():
        raise ValueError(f"Invalid {'destination' if name == 'dst' else 'source'} rank: {name} is the rank itself.")
    return found


def _shown(g: ProcessGroup, call: str, t: Tensor) -> str:
    kind = str(t.dtype).rpartition(".")[2]
    return f"{call} of rank {g.ranks[g.rank()]}, {kind} {tuple(t.shape)} at {line_of_caller()}"


def _message(g: ProcessGroup, call: str, t: Tensor, request: Request, after: Callable[[Request], object]) -> Message:
    kind, where = str(t.dtype).rpartition(".")[2], line_of_caller()
    shown = _shown(g, call, t)
    made = Message(request, g.timeout.total_seconds(), after, g.transport.failure, shown)
    if OBSERVERS:
        start = time.perf_counter()
        begun = Call(call.partition(" ")[0], shown=f"{call.partition(' ')[2]}, {kind} {tuple(t.shape)}", where=where)
        made.then(lambda: _ended(made, Ran(g, begun, t.nbytes, start, start, time.perf_counter(), "messages")))
    return made


def _ended(made: Message, ran: Ran) -> None:
    if made.is_success():
        for observe in tuple(OBSERVERS):
            observe(ran)


@of_members
def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Begin to send a tensor; it must not be written before `wait()` returns.

    >>> def pass_on():
    ...     x = votive.tensor([votive.distributed.get_rank()])
    ...     if x.item() == 0:
    ...         votive.distributed.isend(x, 1).wait()
    ...     else:
    ...         votive.distributed.irecv(x, 0).wait()
    ...     return x.item()
    >>> votive.distributed.simulate(pass_on, 2)
    [0, 0]
    """
    t, g = checked("isend", tensor), group_of(group)
    to = _peer(g, dst, group_dst, "dst")
    device = None if tag else on_device(g, [t])
    if device is not None:
        return device.messages([(to, t)], [], _shown(g, f"send to rank {g.ranks[to]}", t))
    x = readable(t)
    return _message(g, f"send to rank {g.ranks[to]}", t, g.transport.send(x, to, tag), lambda request: [t])


@of_members
def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Begin to receive a tensor, from any rank if `src` is not given; it is there when `wait()` returns.

    >>> votive.distributed.irecv.__name__
    'irecv'
    """
    t, g = checked("irecv", tensor), group_of(group)
    source = None if src is None and group_src is None else _peer(g, src, group_src, "src")
    device = None if tag else on_device(g, [t])
    if device is not None:
        if source is None:
            raise ValueError("irecv: NCCL takes a message from a rank that is named; give src=.")
        return device.messages([], [(source, t)], _shown(g, f"recv from rank {g.ranks[source]}", t))
    written = Written(t)

    def after(request: Request) -> list[Tensor]:
        written.finish()
        return [t]

    call = "recv from any rank" if source is None else f"recv from rank {g.ranks[source]}"
    return _message(g, call, t, g.transport.receive(written.array, source, tag), after)


@of_members
def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor; returns when it may be written again.

    >>> def pass_on():
    ...     x = votive.tensor([float(votive.distributed.get_rank())])
    ...     if x.item() == 0:
    ...         votive.distributed.send(x + 7, 1)
    ...         return None
    ...     return votive.distributed.recv(x), x.item()
    >>> votive.distributed.simulate(pass_on, 2)[1]
    (0, 7.0)
    """
    isend(tensor, dst, group, tag, group_dst).wait()


@of_members
def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor, from any rank if `src` is not given; gives the rank that sent it.

    >>> votive.distributed.recv.__name__
    'recv'
    """
    work = irecv(tensor, src, group, tag, group_src)
    work.wait()
    if not isinstance(work, Message):  # of a rank that was named
        return group_of(group).global_rank(_peer(group_of(group), src, group_src, "src"))
    return group_of(group).global_rank(work._source_rank())


class P2POp:
    """One of the messages of `batch_isend_irecv`: `isend` or `irecv`, a tensor and a rank.

    >>> votive.distributed.P2POp.__name__
    'P2POp'
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise RuntimeError(
                "Invalid ``op``. Expected ``op`` to be of type ``votive.distributed.isend`` or ``irecv``."
            )
        self.op, self.tensor, self.group, self.tag = op, checked("P2POp", tensor), group, tag
        if peer is None and group_peer is None:
            raise ValueError("P2POp: give peer= or group_peer=.")
        self.peer, self.group_peer = peer, group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages.

    >>> def around():
    ...     d, x, y = votive.distributed, votive.tensor([float(votive.distributed.get_rank())]), votive.zeros(1)
    ...     other = 1 - d.get_rank()
    ...     for work in d.batch_isend_irecv([d.P2POp(d.isend, x, other), d.P2POp(d.irecv, y, other)]):
    ...         work.wait()
    ...     return y.item()
    >>> votive.distributed.simulate(around, 2)
    [1.0, 0.0]
    """
    if not isinstance(p2p_op_list, (list, tuple)) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``votive.distributed.P2POp``.")
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: there is no message in the list.")
    g = group_of(p2p_op_list[0].group)
    device = on_device(g, [p.tensor for p in p2p_op_list])
    if device is not None and all(group_of(p.group) is g and not p.tag for p in p2p_op_list):
        # NCCL takes messages one after the other unless it is told of all of them.
        peers = [
            (p.op, _peer(g, p.peer, p.group_peer, "dst" if p.op is isend else "src"), p.tensor) for p in p2p_op_list
        ]
        sends = [(peer, t) for op, peer, t in peers if op is isend]
        takes = [(peer, t) for op, peer, t in peers if op is not isend]
        return [device.messages(sends, takes, f"batch_isend_irecv at {line_of_caller()}")]
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
