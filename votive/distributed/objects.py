"""Python objects between ranks, pickled: only between processes of one program, which trust each other. Knows bytes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from .calls import of_members, root_of
from .check import Call, line_of_caller
from .group import ProcessGroup
from .messages import recv, send
from .world import group_of


def _packed(obj: object) -> np.ndarray[Any, Any]:
    return np.frombuffer(pickle.dumps(obj), np.uint8)


def _unpacked(data: np.ndarray[Any, Any]) -> Any:
    return pickle.loads(data.tobytes())


def _all(g: ProcessGroup, mine: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The bytes of all ranks, of any lengths."""
    sizes = np.empty((g.size(), 1), np.int64)
    g.transport.all_gather(sizes, np.array([mine.size], np.int64))
    outs = [np.empty(int(n), np.uint8) for n in sizes[:, 0]]
    g.transport.all_to_all(outs, [mine] * g.size())
    return outs


def _run(g: ProcessGroup, op: str, detail: str, work: Any) -> None:
    g.run(Call(op, detail, detail, line_of_caller()), 0, work, False)


@of_members
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all ranks into a list of as many.

    >>> def names():
    ...     found = [None, None]
    ...     votive.distributed.all_gather_object(found, f"rank {votive.distributed.get_rank()}")
    ...     return found
    >>> votive.distributed.simulate(names, 2)[0]
    ['rank 0', 'rank 1']
    """
    g = group_of(group)
    _check_places("all_gather_object", object_list, g.size())
    mine = _packed(obj)

    def work() -> None:
        object_list[:] = [_unpacked(part) for part in _all(g, mine)]

    _run(g, "all_gather_object", "", work)


def _check_places(op: str, places: Any, count: int) -> None:
    if not isinstance(places, list) or len(places) != count:
        raise ValueError(f"{op}: needs a list of {count} places, one for each rank.")


@of_members
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Write the objects of all ranks into the list of rank `dst`, which alone gives one.

    >>> def to_first():
    ...     found = [None, None] if votive.distributed.get_rank() == 0 else None
    ...     votive.distributed.gather_object({"rank": votive.distributed.get_rank()}, found)
    ...     return found
    >>> votive.distributed.simulate(to_first, 2)
    [[{'rank': 0}, {'rank': 1}], None]
    """
    g = group_of(group)
    root = root_of(g, dst, group_dst, "dst")
    if g.rank() == root:
        _check_places("gather_object", object_gather_list, g.size())
    mine = _packed(obj)

    def work() -> None:
        found = _all(g, mine)
        if g.rank() == root and object_gather_list is not None:
            object_gather_list[:] = [_unpacked(part) for part in found]

    _run(g, "gather_object", f"to {root}", work)


@of_members
def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Write the objects in the list of rank `src` into those of all others.

    >>> def from_first():
    ...     found = [{"lr": 0.1}] if votive.distributed.get_rank() == 0 else [None]
    ...     votive.distributed.broadcast_object_list(found, src=0)
    ...     return found
    >>> votive.distributed.simulate(from_first, 2)[1]
    [{'lr': 0.1}]
    """
    g = group_of(group)
    root = root_of(g, src, group_src, "src")
    mine = _packed(list(object_list)) if g.rank() == root else np.empty(0, np.uint8)

    def work() -> None:
        size = np.array([mine.size], np.int64)
        g.transport.broadcast(size, root)
        data = mine.copy() if g.rank() == root else np.empty(int(size[0]), np.uint8)
        g.transport.broadcast(data, root)
        if g.rank() != root:
            object_list[:] = _unpacked(data)

    _run(g, "broadcast_object_list", f"from {root}, {len(object_list)} objects", work)


@of_members
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Write object i of the list of rank `src` into the first place of rank i's list.

    >>> def share():
    ...     mine = [None]
    ...     given = ["a", "b"] if votive.distributed.get_rank() == 0 else None
    ...     votive.distributed.scatter_object_list(mine, given, src=0)
    ...     return mine[0]
    >>> votive.distributed.simulate(share, 2)
    ['a', 'b']
    """
    g = group_of(group)
    root = root_of(g, src, group_src, "src")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    mine = np.empty(0, np.uint8)
    if g.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != g.size():
            raise ValueError(f"scatter_object_list: needs an object for each of the {g.size()} ranks.")
        mine = _packed(list(scatter_object_input_list))

    def work() -> None:
        size = np.array([mine.size], np.int64)
        g.transport.broadcast(size, root)
        data = mine.copy() if g.rank() == root else np.empty(int(size[0]), np.uint8)
        g.transport.broadcast(data, root)
        scatter_object_output_list[0] = _unpacked(data)[g.rank()]

    _run(g, "scatter_object_list", f"from {root}", work)


@of_members
def send_object_list(
    object_list: Sequence[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send the objects of a list to a rank, which calls `recv_object_list`.

    >>> def pass_on():
    ...     if votive.distributed.get_rank() == 0:
    ...         return votive.distributed.send_object_list(["x", 2], dst=1)
    ...     found = [None, None]
    ...     votive.distributed.recv_object_list(found, src=0)
    ...     return found
    >>> votive.distributed.simulate(pass_on, 2)
    [None, ['x', 2]]
    """
    from .buffers import from_array

    data = _packed(list(object_list)).copy()
    send(from_array(np.array([data.size, len(object_list)], np.int64)), dst, group, group_dst=group_dst)
    send(from_array(data), dst, group, group_dst=group_dst)


@of_members
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive the objects that a rank sends into a list of as many places; gives the rank.

    >>> votive.distributed.recv_object_list.__name__
    'recv_object_list'
    """
    from .buffers import from_array

    sizes = np.zeros(2, np.int64)
    source = recv(from_array(sizes), src, group, group_src=group_src)
    data = np.empty(int(sizes[0]), np.uint8)
    recv(from_array(data), source, group)
    if int(sizes[1]) != len(object_list):
        raise ValueError(f"recv_object_list: rank {source} sent {int(sizes[1])} objects for {len(object_list)} places.")
    object_list[:] = _unpacked(data)
    return source
