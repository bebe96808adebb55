"""What ranks give to one another as it is: to all, from all, part by part. Knows groups, not how bytes travel.

Every function is called by all ranks of the group, in the same order. With `async_op=True` it returns a `Work` at once
and runs beside the program; the tensors belong to it until `wait()` returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from ..ops.registry import F
from ..tensor import Tensor
from .buffers import Written, checked, checked_all, finishing, readable
from .calls import check_same, described, of_members, root_of
from .check import Call, line_of_caller
from .errors import DistBackendError
from .group import ProcessGroup
from .nccl import kind_of, on_device
from .reduce_op import ReduceOp
from .work import Work
from .world import group_of


@of_members
def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Write the tensor of rank `src` into those of all others.

    >>> def from_one():
    ...     x = votive.tensor([votive.distributed.get_rank()])
    ...     votive.distributed.broadcast(x, src=1)
    ...     return x.item()
    >>> votive.distributed.simulate(from_one, 3)
    [1, 1, 1]
    """
    t, g = checked("broadcast", tensor), group_of(group)
    root = root_of(g, src, group_src, "src", None)
    call, nbytes = described("broadcast", [t], f"from {root}")
    device = on_device(g, [t])
    if device is not None:
        return device.broadcast(call, nbytes, t, root, async_op)
    written = Written(t, reads=True)

    def work() -> list[Tensor]:
        g.transport.broadcast(written.array, root)
        if g.rank() != root:
            written.finish()
        return [t]

    return g.run(call, nbytes, work, async_op)


@of_members
def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the tensors of all ranks into the tensors of a list.

    >>> def every():
    ...     found = [votive.zeros(1) for _ in range(2)]
    ...     votive.distributed.all_gather(found, votive.full((1,), votive.distributed.get_rank() + 5.0))
    ...     return [x.item() for x in found]
    >>> votive.distributed.simulate(every, 2)
    [[5.0, 6.0], [5.0, 6.0]]
    """
    g = group_of(group)
    t, outs = checked("all_gather", tensor), checked_all("all_gather", tensor_list, g.size())
    check_same("all_gather", outs, t)
    call, nbytes = described("all_gather", [t])
    device = on_device(g, [t, *outs])
    if device is not None:
        return device.all_gather(call, nbytes * g.size(), outs, t, async_op, outs)
    x, written = readable(t), [Written(out) for out in outs]

    def work() -> list[Tensor]:
        found = np.empty((g.size(), x.size), x.dtype)
        g.transport.all_gather(found, x)
        for one, row in zip(written, found, strict=True):
            one.array[...] = row
        return finishing(written, outs)()

    return g.run(call, nbytes * g.size(), work, async_op)


@of_members
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into one, behind or above one another.

    >>> def every():
    ...     out = votive.zeros(4)
    ...     votive.distributed.all_gather_into_tensor(out, votive.full((2,), float(votive.distributed.get_rank())))
    ...     return out.tolist()
    >>> votive.distributed.simulate(every, 2)[1]
    [0.0, 0.0, 1.0, 1.0]
    """
    out, t, g = (
        checked("all_gather_into_tensor", output_tensor),
        checked("all_gather_into_tensor", input_tensor),
        group_of(group),
    )
    if out.dtype != t.dtype:
        raise TypeError(
            f"all_gather_into_tensor: output tensor must have the same type as input, got {out.dtype} and {t.dtype}."
        )
    if out.numel() != t.numel() * g.size():
        raise ValueError(
            f"all_gather_into_tensor: output tensor size must be equal to world_size times input tensor size, got "
            f"{tuple(out.shape)} for {g.size()} times {tuple(t.shape)}."
        )
    call, nbytes = described("all_gather_into_tensor", [t])
    device = on_device(g, [t, out])
    if device is not None:
        return device.all_gather(call, nbytes * g.size(), [out], t, async_op, [out])
    x, written = readable(t), Written(out)
    if written.direct and np.shares_memory(x, written.array):
        x = x.copy()

    def work() -> list[Tensor]:
        g.transport.all_gather(written.array.reshape(g.size(), -1), x)
        written.finish()
        return [out]

    return g.run(call, nbytes * g.size(), work, async_op)


@of_members
def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_gather` of several tensors: `output_tensor_lists[rank][i]` becomes tensor i of that rank.

    >>> def every():
    ...     outs = [[votive.zeros(1), votive.zeros(2)] for _ in range(2)]
    ...     r = float(votive.distributed.get_rank())
    ...     votive.distributed.all_gather_coalesced(outs, [votive.full((1,), r), votive.full((2,), r)])
    ...     return [x.tolist() for x in outs[1]]
    >>> votive.distributed.simulate(every, 2)[0]
    [[1.0], [1.0, 1.0]]
    """
    g = group_of(group)
    tensors = checked_all("all_gather_coalesced", input_tensor_list)
    if len(output_tensor_lists) != g.size():
        raise ValueError(f"all_gather_coalesced: needs a list for each of the {g.size()} ranks.")
    outs = [checked_all("all_gather_coalesced", list(row), len(tensors)) for row in output_tensor_lists]
    for i, t in enumerate(tensors):
        check_same("all_gather_coalesced", [row[i] for row in outs], t)
    arrays = [readable(t) for t in tensors]
    written = [[Written(out) for out in row] for row in outs]
    call, nbytes = described("all_gather_coalesced", tensors)

    def work() -> list[list[Tensor]]:
        for i, x in enumerate(arrays):
            found = np.empty((g.size(), x.size), x.dtype)
            g.transport.all_gather(found, x)
            for row, part in zip(written, found, strict=True):
                row[i].array[...] = part
                row[i].finish()
        return outs

    return g.run(call, nbytes * g.size(), work, async_op)


@of_members
def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensors of all ranks into the list of rank `dst`, which alone gives one.

    >>> def to_first():
    ...     first = votive.distributed.get_rank() == 0
    ...     found = [votive.zeros(1), votive.zeros(1)] if first else None
    ...     votive.distributed.gather(votive.full((1,), votive.distributed.get_rank() + 1.0), found)
    ...     return [x.item() for x in found] if first else None
    >>> votive.distributed.simulate(to_first, 2)
    [[1.0, 2.0], None]
    """
    t, g = checked("gather", tensor), group_of(group)
    root = root_of(g, dst, group_dst, "dst")
    mine = g.rank() == root
    if not mine and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    outs = checked_all("gather", gather_list, g.size()) if mine else []
    check_same("gather", outs, t)
    call, nbytes = described("gather", [t], f"to {root}")
    device = on_device(g, [t, *outs])
    if device is not None:
        return device.exchange(call, nbytes, [(root, t)], list(enumerate(outs)), async_op, outs)
    x, written = readable(t), [Written(out) for out in outs]

    def work() -> list[Tensor]:
        found = np.empty((g.size(), x.size), x.dtype) if mine else None
        g.transport.gather(found, x, root)
        if found is not None:
            for one, row in zip(written, found, strict=True):
                one.array[...] = row
        return finishing(written, outs)()

    return g.run(call, nbytes, work, async_op)


@of_members
def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write tensor i of the list of rank `src`, which alone gives one, into the tensor of rank i.

    >>> def from_first():
    ...     x = votive.zeros(1)
    ...     parts = [votive.ones(1), votive.full((1,), 2.0)] if votive.distributed.get_rank() == 0 else None
    ...     votive.distributed.scatter(x, parts)
    ...     return x.item()
    >>> votive.distributed.simulate(from_first, 2)
    [1.0, 2.0]
    """
    t, g = checked("scatter", tensor), group_of(group)
    root = root_of(g, src, group_src, "src")
    mine = g.rank() == root
    if not mine and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    parts = checked_all("scatter", scatter_list, g.size()) if mine else []
    check_same("scatter", parts, t)
    call, nbytes = described("scatter", [t], f"from {root}")
    device = on_device(g, [t, *parts])
    if device is not None:
        return device.exchange(call, nbytes, list(enumerate(parts)), [(root, t)], async_op, [t])
    x = np.stack([readable(p) for p in parts]) if mine else None
    written = Written(t)

    def work() -> list[Tensor]:
        g.transport.scatter(written.array, x, root)
        written.finish()
        return [t]

    return g.run(call, nbytes, work, async_op)


@of_members
def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Send tensor i of the inputs to rank i, and take what rank i sends into tensor i of the outputs.

    >>> def swap():
    ...     mine = float(votive.distributed.get_rank())
    ...     out = [votive.zeros(1), votive.zeros(1)]
    ...     votive.distributed.all_to_all(out, [votive.full((1,), mine), votive.full((1,), mine + 10)])
    ...     return [x.item() for x in out]
    >>> votive.distributed.simulate(swap, 2)
    [[0.0, 1.0], [10.0, 11.0]]
    """
    g = group_of(group)
    outs = checked_all("all_to_all", output_tensor_list, g.size())
    parts = checked_all("all_to_all", input_tensor_list, g.size())
    if len({t.dtype for t in (*outs, *parts)}) > 1:
        raise ValueError("all_to_all: tensors must have one type.")
    if on_device(g, [*outs, *parts]) is not None:
        return _all_to_all_on_device("all_to_all", g, outs, parts, outs, async_op)
    written, arrays = [Written(out) for out in outs], [readable(p) for p in parts]
    return _all_to_all("all_to_all", g, [w.array for w in written], written, arrays, parts[0], outs, async_op)


def _all_to_all(
    name: str,
    g: ProcessGroup,
    places: Sequence[np.ndarray[Any, Any]],
    written: Sequence[Written],
    parts: Sequence[np.ndarray[Any, Any]],
    like: Tensor,
    result: Any,
    async_op: bool,
) -> Work | None:
    # Parts may have any sizes; that each is as large as its receiver expects is found out with the data.
    kind = str(like.dtype).rpartition(".")[2]
    call = Call(name, kind, f"{kind} parts of {[p.size for p in parts]}", line_of_caller())

    def work() -> Any:
        _agree_on_sizes(g, call, [p.size for p in parts], [place.size for place in places])
        g.transport.all_to_all(list(places), list(parts))
        return finishing(written, result)()

    return g.run(call, sum(p.nbytes for p in parts), work, async_op)


def _all_to_all_on_device(
    name: str, g: ProcessGroup, outs: Sequence[Tensor], parts: Sequence[Tensor], result: Any, async_op: bool
) -> Work | None:
    device = on_device(g, [*outs, *parts])
    assert device is not None, "asked before"
    kind, sizes = kind_of(parts[0]), [p.numel() for p in parts]
    call = Call(name, kind, f"{kind} parts of {sizes}", line_of_caller())
    nbytes = sum(p.nbytes for p in parts)

    def agree() -> None:
        _agree_on_sizes(g, call, sizes, [out.numel() for out in outs])

    return device.exchange(call, nbytes, list(enumerate(parts)), list(enumerate(outs)), async_op, result, agree)


def _agree_on_sizes(g: ProcessGroup, call: Call, sizes: Sequence[int], expected: Sequence[int]) -> None:
    """Raise on all ranks if one sends another than that one expects."""
    given, found = np.array(sizes, np.int64), np.empty(g.size(), np.int64)
    g.transport.all_to_all(list(found.reshape(-1, 1)), list(given.reshape(-1, 1)))
    wrong = [
        f"rank {r} sends {n} numbers and {count} are expected"
        for r, (n, count) in enumerate(zip(found.tolist(), expected, strict=True))
        if n != count
    ]
    # All must know of it before anybody leaves the data exchange out.
    bad = np.array([len(wrong)], np.int64)
    g.transport.all_reduce(bad, ReduceOp.SUM)
    if bad[0]:
        raise DistBackendError(f"{call}: {'; '.join(wrong) or 'another rank expects other sizes'}.")


@of_members
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_to_all` of one tensor, cut along its first dimension: equally, or into the sizes that are given.

    >>> def swap():
    ...     out = votive.zeros(2)
    ...     votive.distributed.all_to_all_single(out, votive.arange(2.0) + 10 * votive.distributed.get_rank())
    ...     return out.tolist()
    >>> votive.distributed.simulate(swap, 2)
    [[0.0, 10.0], [1.0, 11.0]]
    """
    out, t, g = checked("all_to_all_single", output), checked("all_to_all_single", input), group_of(group)
    if out.dtype != t.dtype:
        raise ValueError(f"all_to_all_single: tensors must have one type, got {out.dtype} and {t.dtype}.")
    if on_device(g, [t, out]) is not None and out.is_contiguous():
        places = F.split(out, _sizes("all_to_all_single: output", out, output_split_sizes, g.size()))
        pieces = F.split(t, _sizes("all_to_all_single: input", t, input_split_sizes, g.size()))
        return _all_to_all_on_device("all_to_all_single", g, places, pieces, [out], async_op)
    written = Written(out)
    x = readable(t)
    if written.direct and np.shares_memory(x, written.array):
        x = x.copy()
    arrays = _cut("all_to_all_single: input", t, x, input_split_sizes, g.size())
    targets = _cut("all_to_all_single: output", out, written.array, output_split_sizes, g.size())
    return _all_to_all("all_to_all_single", g, targets, [written], arrays, t, [out], async_op)


def _cut(
    what: str, t: Tensor, array: np.ndarray[Any, Any], sizes: Sequence[int] | None, count: int
) -> list[np.ndarray[Any, Any]]:
    found = _sizes(what, t, sizes, count)
    rows = sum(found)
    width = array.size // rows if rows else 0
    return list(np.split(array, np.cumsum(found)[:-1] * width))


def _sizes(what: str, t: Tensor, sizes: Sequence[int] | None, count: int) -> list[int]:
    """How many rows each rank has of a tensor."""
    rows = t.shape[0] if t.dim() else 1
    if not sizes:
        if rows % count:
            raise ValueError(
                f"{what}: tensor's dim 0 does not divide equally across group size, got {rows} for {count} ranks."
            )
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ValueError(f"{what}: split sizes {list(sizes)} must be {count} numbers that add up to {rows}.")
    return list(sizes)


@of_members
def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Return when all ranks are here; an error says who is not, after the timeout.

    >>> votive.distributed.simulate(votive.distributed.barrier, 2)
    [None, None]
    """
    g = group_of(group)
    call = Call("barrier", where=line_of_caller())
    return g.run(call, 0, g.transport.barrier, async_op, None if timeout is None else timeout.total_seconds())


@of_members
def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """A barrier that names the ranks which do not come within the timeout.

    >>> votive.distributed.simulate(votive.distributed.monitored_barrier, 2)
    [None, None]
    """
    g = group_of(group)
    limit = (g.timeout if timeout is None else timeout).total_seconds()
    with g._order:
        g.checker.meet(Call("monitored_barrier", where=line_of_caller()), limit)
