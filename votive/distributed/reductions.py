"""Tensors of all ranks made into one: sums, extrema, and what each rank gets of them. Knows no wires.

Every function is called by all ranks of the group, in the same order. With `async_op=True` it returns a `Work` at once
and runs beside the program; the tensors belong to it until `wait()` returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tensor import Tensor
from .buffers import Written, checked, checked_all, readable
from .calls import check_same, described, of_members, root_of
from .group import ProcessGroup
from .nccl import on_device
from .reduce_op import ReduceOp, check_reducible
from .work import Work
from .world import group_of


@of_members
def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the reduction of all ranks' tensors into each.

    >>> def total():
    ...     x = votive.full((2,), votive.distributed.get_rank() + 1.0)
    ...     votive.distributed.all_reduce(x)
    ...     return x.tolist()
    >>> votive.distributed.simulate(total, 2)
    [[3.0, 3.0], [3.0, 3.0]]
    """
    t, g = checked("all_reduce", tensor), group_of(group)
    device = on_device(g, [t], op) if isinstance(op, ReduceOp) else None
    if device is not None:
        call, nbytes = described("all_reduce", [t], op.name)
        return device.all_reduce(call, nbytes, [t], op, async_op, [t])
    written = Written(t, reads=True)
    check_reducible("all_reduce", written.array.dtype, op)
    call, nbytes = described("all_reduce", [t], op.name)

    def work() -> list[Tensor]:
        g.transport.all_reduce(written.array, op)
        written.finish()
        return [t]

    return g.run(call, nbytes, work, async_op)


@of_members
def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors of one type at once.

    >>> def total():
    ...     x, y = votive.ones(1), votive.ones(2)
    ...     votive.distributed.all_reduce_coalesced([x, y])
    ...     return x.tolist() + y.tolist()
    >>> votive.distributed.simulate(total, 2)[0]
    [2.0, 2.0, 2.0]
    """
    found, g = checked_all("all_reduce_coalesced", tensors), group_of(group)
    if len({t.dtype for t in found}) > 1:
        raise ValueError("all_reduce_coalesced: tensors must have one type.")
    device = on_device(g, found, op) if isinstance(op, ReduceOp) else None
    if device is not None:
        call, nbytes = described("all_reduce_coalesced", found, op.name)
        return device.all_reduce(call, nbytes, found, op, async_op, found)
    written = [Written(t, reads=True) for t in found]
    for one in written:
        check_reducible("all_reduce_coalesced", one.array.dtype, op)
    call, nbytes = described("all_reduce_coalesced", found, op.name)

    def work() -> list[Tensor]:
        if written:
            joined = np.concatenate([one.array for one in written])
            g.transport.all_reduce(joined, op)
            at = 0
            for one in written:
                one.array[...] = joined[at : at + one.array.size]
                at += one.array.size
                one.finish()
        return found

    return g.run(call, nbytes, work, async_op)


@of_members
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the reduction of all ranks' tensors into that of rank `dst`; the others keep theirs.

    >>> def total():
    ...     x = votive.ones(1)
    ...     votive.distributed.reduce(x, dst=0)
    ...     return x.item()
    >>> votive.distributed.simulate(total, 3)
    [3.0, 1.0, 1.0]
    """
    t, g = checked("reduce", tensor), group_of(group)
    root = root_of(g, dst, group_dst, "dst", None)
    device = on_device(g, [t], op) if isinstance(op, ReduceOp) else None
    if device is not None:
        call, nbytes = described("reduce", [t], op.name, f"to {root}")
        return device.reduce(call, nbytes, t, root, op, async_op)
    array = readable(t)
    check_reducible("reduce", array.dtype, op)
    call, nbytes = described("reduce", [t], op.name, f"to {root}")
    written = Written(t, reads=True) if g.rank() == root else None

    def work() -> list[Tensor]:
        g.transport.reduce(array.copy() if written is None else written.array, root, op)
        if written is not None:
            written.finish()
        return [t]

    return g.run(call, nbytes, work, async_op)


@of_members
def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Of each rank's list, reduce the tensors at each place, and give rank i what is at place i.

    >>> def mine():
    ...     out = votive.zeros(1)
    ...     votive.distributed.reduce_scatter(out, [votive.ones(1), votive.full((1,), 2.0)])
    ...     return out.item()
    >>> votive.distributed.simulate(mine, 2)
    [2.0, 4.0]
    """
    g = group_of(group)
    out, parts = checked("reduce_scatter", output), checked_all("reduce_scatter", input_list, g.size())
    check_same("reduce_scatter", parts, out)
    return _reduce_scatter("reduce_scatter", g, out, parts, op, async_op)


@of_members
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`reduce_scatter` of one tensor, whose equal parts are for the ranks in their order.

    >>> def mine():
    ...     out = votive.zeros(2)
    ...     votive.distributed.reduce_scatter_tensor(out, votive.arange(4.0))
    ...     return out.tolist()
    >>> votive.distributed.simulate(mine, 2)
    [[0.0, 2.0], [4.0, 6.0]]
    """
    out, t, g = checked("reduce_scatter_tensor", output), checked("reduce_scatter_tensor", input), group_of(group)
    if out.dtype != t.dtype:
        raise TypeError(
            f"reduce_scatter_tensor: input tensor must be the same type as output, got {t.dtype} and {out.dtype}."
        )
    if t.numel() != out.numel() * g.size():
        raise ValueError(
            "reduce_scatter_tensor: input tensor must be the same size as output size times world size, got "
            f"{tuple(t.shape)} for {g.size()} times {tuple(out.shape)}."
        )
    return _reduce_scatter("reduce_scatter_tensor", g, out, [t], op, async_op)


def _reduce_scatter(
    name: str, g: ProcessGroup, out: Tensor, parts: Sequence[Tensor], op: ReduceOp, async_op: bool
) -> Work | None:
    device = on_device(g, [out, *parts], op) if isinstance(op, ReduceOp) else None
    if device is not None:
        call, nbytes = described(name, parts, op.name)
        return device.reduce_scatter(call, nbytes, out, parts, op, async_op)
    x = readable(parts[0]).reshape(g.size(), -1) if len(parts) == 1 else np.stack([readable(p) for p in parts])
    check_reducible(name, x.dtype, op)
    written = Written(out)
    if written.direct and np.shares_memory(x, written.array):
        x = x.copy()
    call, nbytes = described(name, parts, op.name)

    def work() -> list[Tensor]:
        g.transport.reduce_scatter(written.array, x, op)
        written.finish()
        return [out]

    return g.run(call, nbytes, work, async_op)
