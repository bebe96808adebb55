"""What every rank of a group checks, on whatever backend the group is: each function runs on all ranks at once.

`python -m tests.distributed.programs` runs them one after the other on MPI, and says by JSON which of them failed.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest

import votive
import votive.distributed as dist
from votive import Tensor
from votive.distributed import ReduceOp

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "bool", "complex64", "complex128",
]  # fmt: skip
SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (0,), (5,), (2, 3), (3, 0, 2), (4, 2, 3))


def of_rank(rank: int, shape: tuple[int, ...], dtype: str = "float32") -> Tensor:
    """Numbers that every rank can tell of every other."""
    count = int(np.prod(shape))
    values = votive.arange(count).reshape(shape) % 4 + rank
    if dtype.startswith("complex"):
        values = values + 1j * rank
    return values.to(getattr(votive, dtype))


def same(found: Tensor, wanted: Tensor) -> None:
    assert found.dtype is wanted.dtype, (found.dtype, wanted.dtype)
    assert found.shape == wanted.shape
    # By way of NumPy: unsigned types wider than a byte have no operators.
    assert np.array_equal(found.numpy(), wanted.numpy()), (found, wanted)


def everyone() -> list[int]:
    return list(range(dist.get_world_size()))


def sums_of_every_type_and_shape() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        for shape in SHAPES:
            x = of_rank(me, shape, dtype)
            dist.all_reduce(x)
            parts = [of_rank(r, shape, dtype).numpy() for r in range(n)]
            np.testing.assert_array_equal(x.numpy(), sum(parts[1:], parts[0]))
            assert (x.dtype, x.shape) == (getattr(votive, dtype), shape)


def every_reduction() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    parts = np.stack([np.array([3, 5, 12]) + r for r in range(n)])
    wanted = {
        ReduceOp.SUM: parts.sum(0),
        ReduceOp.PRODUCT: parts.prod(0),
        ReduceOp.MIN: parts.min(0),
        ReduceOp.MAX: parts.max(0),
        ReduceOp.BAND: np.bitwise_and.reduce(parts),
        ReduceOp.BOR: np.bitwise_or.reduce(parts),
        ReduceOp.BXOR: np.bitwise_xor.reduce(parts),
        ReduceOp.AVG: parts.mean(0).astype(int),
    }
    for op, result in wanted.items():
        x = votive.tensor(parts[me])
        dist.all_reduce(x, op)
        assert x.tolist() == result.tolist(), op
    y = votive.tensor(parts[me].astype("f4"))
    dist.all_reduce(y, ReduceOp.AVG)
    np.testing.assert_allclose(y, parts.mean(0), rtol=1e-6)
    for dtype, op in (
        ("float32", ReduceOp.BAND), ("complex64", ReduceOp.MAX), ("float32", ReduceOp.PREMUL_SUM),
        ("bool", ReduceOp.AVG),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="all_reduce"):
            dist.all_reduce(votive.ones(2, dtype=getattr(votive, dtype)), op)


def half_types_round_once() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    # 256 + 1 is 256 in bfloat16: only sums in a wider type see the ones.
    x = votive.tensor([256.0 if me == 0 else 0.5], dtype=votive.bfloat16)
    dist.all_reduce(x)
    same(x, votive.tensor([256.0 + 0.5 * (n - 1)]).to(votive.bfloat16))


def tensors_that_do_not_lie_side_by_side() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    base = of_rank(me, (4, 6))
    x = base.t()[1:, ::2]
    outside = base[1].clone()
    dist.all_reduce(x)
    same(x, sum((of_rank(r, (4, 6)).t()[1:, ::2] for r in range(n)), votive.zeros(5, 2)))
    same(base[1], outside)
    z = of_rank(me, (3, 2)).t()
    dist.broadcast(z, n - 1)
    same(z, of_rank(n - 1, (3, 2)).t())
    out = votive.zeros(3, 2 * n).t()
    dist.all_gather_into_tensor(out, of_rank(me, (3, 2)).t())
    same(out, votive.cat([of_rank(r, (3, 2)).t() for r in range(n)]))


def results_count_as_changes_of_the_tensor() -> None:
    w = votive.ones(2, requires_grad=True)
    y = w * 2
    loss = (y * y).sum()
    dist.all_reduce(y.detach())
    with pytest.raises(RuntimeError, match=r"modified by an in-?place operation"):
        loss.backward()


def broadcasts_and_reductions_to_one() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    for root in everyone():
        for dtype in DTYPES:
            x = of_rank(me, (2, 3), dtype)
            dist.broadcast(x, src=root)
            same(x, of_rank(root, (2, 3), dtype))
        y = of_rank(me, (4,))
        dist.reduce(y, dst=root)
        same(y, sum((of_rank(r, (4,)) for r in range(n)), votive.zeros(4)) if me == root else of_rank(me, (4,)))


def gathered_by_all_and_by_one() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        for shape in SHAPES:
            outs = [votive.zeros(shape, dtype=getattr(votive, dtype)) for _ in range(n)]
            dist.all_gather(outs, of_rank(me, shape, dtype))
            for r, out in enumerate(outs):
                same(out, of_rank(r, shape, dtype))
    both = votive.zeros(n, 2), votive.zeros(2 * n)
    for out in both:
        dist.all_gather_into_tensor(out, of_rank(me, (2,)))
        same(out.flatten(), votive.cat([of_rank(r, (2,)) for r in range(n)]))
    own = votive.zeros(2 * n)
    own[2 * me : 2 * me + 2] = of_rank(me, (2,))
    dist.all_gather_into_tensor(own, own[2 * me : 2 * me + 2])  # in place, as FSDP does it
    same(own, both[1])
    for root in everyone():
        found = [votive.zeros(3) for _ in range(n)] if me == root else None
        dist.gather(of_rank(me, (3,)), found, dst=root)
        for r, part in enumerate(found or ()):
            same(part, of_rank(r, (3,)))


def scattered_and_reduced_by_parts() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    for root in everyone():
        x = votive.zeros(3)
        dist.scatter(x, [of_rank(10 * r, (3,)) for r in range(n)] if me == root else None, src=root)
        same(x, of_rank(10 * me, (3,)))
    for dtype in ("float32", "bfloat16", "int64"):
        parts = [of_rank(r + me, (2, 2), dtype) for r in range(n)]
        out = votive.zeros(2, 2, dtype=getattr(votive, dtype))
        dist.reduce_scatter(out, parts)
        wanted = [of_rank(me + r, (2, 2), dtype) for r in range(n)]
        same(out, sum(wanted[1:], wanted[0]))
        again = votive.zeros(2, 2, dtype=getattr(votive, dtype))
        dist.reduce_scatter_tensor(again, votive.cat(parts))
        same(again, out)
    avg = votive.zeros(2)
    dist.reduce_scatter_tensor(avg, votive.full((2 * n,), float(me)), ReduceOp.AVG)
    np.testing.assert_allclose(avg, [np.mean(range(n))] * 2, rtol=1e-6)


def all_to_all_of_any_sizes() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    outs = [votive.zeros(r + 1, me + 1) for r in range(n)]
    dist.all_to_all(outs, [votive.full((me + 1, r + 1), 10.0 * me + r) for r in range(n)])
    for r, out in enumerate(outs):
        same(out, votive.full((r + 1, me + 1), 10.0 * r + me))
    x = of_rank(0, (2 * n, 3)) + 100 * me
    y = votive.zeros(2 * n, 3)
    dist.all_to_all_single(y, x)
    same(y, votive.cat([of_rank(0, (2 * n, 3))[2 * me : 2 * me + 2] + 100 * r for r in range(n)]))
    # Rank r sends i rows to rank i: as many as there are in its number, so rank 0 gets none.
    sizes = everyone()
    z = votive.zeros(n * me, 2)
    dist.all_to_all_single(z, votive.full((sum(sizes), 2), float(me)), [me] * n, sizes)
    same(z, votive.cat([votive.full((me, 2), float(r)) for r in range(n)]))


def beside_the_program() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    xs = [votive.full((3,), float(me + i)) for i in range(8)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    y = votive.full((2,), float(me))
    dist.broadcast(y, 0)  # takes its turn behind the others
    for i, (x, work) in enumerate(zip(xs, works, strict=True)):
        assert work is not None
        assert work.wait() is True
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        assert work.result()[0] is x
        assert work.get_future().wait()[0] is x
        same(x, votive.full((3,), float(sum(range(n)) + n * i)))
    same(y, votive.zeros(2))
    chained = dist.all_reduce(votive.ones(1), async_op=True)
    assert chained is not None
    assert chained.get_future().then(lambda f: f.value()[0].item() + 1).wait() == n + 1


def messages_around_the_ring() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    after, before = (me + 1) % n, (me - 1) % n
    for dtype in DTYPES:
        got = votive.zeros(2, 3, dtype=getattr(votive, dtype))
        sent = dist.isend(of_rank(me, (2, 3), dtype), after)
        assert dist.recv(got, before) == before
        sent.wait()
        same(got, of_rank(before, (2, 3), dtype))
    got = votive.zeros(2, 3).t()
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, of_rank(me, (3, 2)), after, tag=7), dist.P2POp(dist.irecv, got, before, tag=7)]
    )
    for work in works:
        work.wait()
        assert work.is_completed()
    same(got, of_rank(before, (3, 2)))
    with pytest.raises(ValueError, match="is the rank itself"):
        dist.send(got, me)
    if me == 0:
        heard = sorted(dist.recv(votive.zeros(1)) for _ in range(n - 1))  # from whoever comes
        assert heard == everyone()[1:]
    else:
        dist.send(votive.ones(1), 0)
    dist.barrier()


def messages_keep_their_tags_apart() -> None:
    me = dist.get_rank()
    if dist.get_world_size() == 1:
        return
    if me == 0:
        dist.send(votive.ones(1), 1, tag=1)
        dist.send(votive.full((1,), 2.0), 1, tag=2)
    elif me == 1:
        second, first = votive.zeros(1), votive.zeros(1)
        dist.recv(second, 0, tag=2)
        dist.recv(first, 0, tag=1)
        assert (first.item(), second.item()) == (1.0, 2.0)
    dist.barrier()


def messages_of_another_size_are_refused() -> None:
    me = dist.get_rank()
    if dist.get_world_size() == 1:
        return
    if me == 0:
        dist.send(votive.ones(2), 1)
    elif me == 1:
        with pytest.raises(RuntimeError, match="rank 0 sent 8 bytes, and the tensor of rank 1 takes 12"):
            dist.recv(votive.zeros(3), 0)
    dist.barrier()


def objects_of_any_size() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    mine = {"rank": me, "text": "x" * 10**me, "tensor": votive.ones(2) * me}
    found: list[object] = [None] * n
    dist.all_gather_object(found, mine)
    for r, one in enumerate(found):
        assert isinstance(one, dict)
        assert (one["rank"], len(one["text"]), one["tensor"].tolist()) == (r, 10**r, [float(r)] * 2)
    root = n - 1
    places: list[object] = [None] * n
    dist.gather_object(me, places if me == root else None, dst=root)
    assert places == (everyone() if me == root else [None] * n)
    shared: list[object] = ["a", 2, None] if me == root else [None, None, None]
    dist.broadcast_object_list(shared, src=root)
    assert shared == ["a", 2, None]
    share: list[object] = [None]
    dist.scatter_object_list(share, [f"for {r}" for r in range(n)] if me == root else None, src=root)
    assert share == [f"for {me}"]
    if n > 1 and me < 2:
        if me == 0:
            dist.send_object_list([{"k": 1}, (2, 3)], dst=1)
        else:
            got: list[object] = [None, None]
            assert dist.recv_object_list(got, src=0) == 0
            assert got == [{"k": 1}, (2, 3)]
    dist.barrier()


def groups_of_some_ranks() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    even = dist.new_group(list(range(0, n, 2)))
    odd = dist.new_group(list(range(1, n, 2))) if n > 1 else dist.GroupMember.NON_GROUP_MEMBER
    mine = even if me % 2 == 0 else odd
    assert dist.get_world_size(mine) == len(range(me % 2, n, 2))
    assert dist.get_rank(mine) == me // 2
    assert dist.get_process_group_ranks(mine) == list(range(me % 2, n, 2))
    assert dist.get_global_rank(mine, 0) == me % 2
    assert dist.get_group_rank(mine, me) == me // 2
    x = votive.tensor([float(me)])
    dist.all_reduce(x, group=mine)
    assert x.item() == sum(range(me % 2, n, 2))
    y = votive.tensor([me])
    dist.broadcast(y, src=me % 2, group=mine)
    assert y.item() == me % 2
    dist.broadcast(y, group=mine, group_src=dist.get_world_size(mine) - 1)
    if me % 2:
        assert dist.get_rank(even) == -1
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            for call in (
                lambda: dist.all_reduce(x, group=even),
                lambda: dist.all_reduce(x, ReduceOp.SUM, even),
                lambda: dist.barrier(even),
            ):
                with pytest.raises(UserWarning, match="does not belong"):
                    call()
        with pytest.raises(ValueError, match="Invalid process group"):
            dist.get_backend(even)
    with pytest.raises(ValueError, match="not one of the group's ranks"):
        dist.broadcast(y, src=(me + 1) % 2 if n > 1 else 5, group=mine)
    one, every = dist.new_subgroups(1)
    assert (one.ranks, len(every)) == ([me], n)
    part, every = dist.new_subgroups(1, group=mine)
    assert (part.ranks, len(every)) == ([me], mine.size())
    local = dist.new_group([me], use_local_synchronization=True)
    assert local.size() == 1
    dist.destroy_process_group(one)
    with pytest.raises(ValueError, match="Invalid process group"):
        dist.destroy_process_group(one)
    for wrong in ([0, 0], [n], [-1], []):
        with pytest.raises(ValueError, match="new_group"):
            dist.new_group(wrong)
    dist.barrier()


def grids_have_groups_along_their_dimensions() -> None:
    me, n = dist.get_rank(), dist.get_world_size()
    flat = dist.init_device_mesh("cpu", (n,))
    assert (flat.size(), flat.ndim, flat.get_coordinate()) == (n, 1, [me])
    assert flat.get_group() is dist.group.WORLD
    rows = 2 if n % 2 == 0 else 1
    mesh = dist.init_device_mesh("cpu", (rows, n // rows), mesh_dim_names=("dp", "tp"))
    assert mesh.mesh.tolist() == np.arange(n).reshape(rows, -1).tolist()
    assert mesh.get_coordinate() == [me // (n // rows), me % (n // rows)]
    assert (mesh.get_local_rank("dp"), mesh["tp"].get_local_rank()) == tuple(mesh.get_coordinate() or ())
    x = votive.tensor([float(me)])
    dist.all_reduce(x, group=mesh.get_group("dp"))
    assert x.item() == sum(range(me % (n // rows), n, n // rows))
    assert mesh["dp", "tp"] is mesh
    assert mesh["dp", "tp"]._flatten("all").get_group().ranks == everyone()
    assert mesh["all"].shape == (n,)
    assert mesh == dist.init_device_mesh("cpu", (rows, n // rows), mesh_dim_names=("dp", "tp"))
    assert mesh != flat
    with pytest.raises(RuntimeError, match="mesh_dim"):
        mesh.get_group()
    with pytest.raises(KeyError, match="pp"):
        mesh["pp"]
    with pytest.raises(RuntimeError, match="places for"):
        dist.init_device_mesh("cpu", (n + 1,))


def barriers() -> None:
    dist.barrier()
    dist.barrier(timeout=timedelta(seconds=30))
    work = dist.barrier(async_op=True)
    assert work is not None
    work.wait()
    dist.monitored_barrier(timeout=timedelta(seconds=30))


def wrong_arguments_are_named_before_anything_is_sent() -> None:
    n = dist.get_world_size()
    x = votive.ones(3)
    for kind, text, call in (
        (TypeError, "expected a votive.Tensor, got list", lambda: dist.all_reduce([1.0])),
        (TypeError, "ReduceOp.SUM, got 'sum'", lambda: dist.all_reduce(x, "sum")),
        (TypeError, "no numbers", lambda: dist.broadcast(votive.ones(2, device="meta"), 0)),
        (ValueError, f"each of the {n} ranks, got {n + 1}", lambda: dist.all_gather([x] * (n + 1), x)),
        (ValueError, "one size", lambda: dist.all_gather([votive.ones(2)] * n, x)),
        (ValueError, "one type", lambda: dist.all_gather([votive.ones(3, dtype=votive.int32)] * n, x)),
        (ValueError, "world_size times", lambda: dist.all_gather_into_tensor(votive.ones(3 * n + 1), x)),
        (ValueError, "output size times", lambda: dist.reduce_scatter_tensor(x, votive.ones(3 * n + 1))),
        (ValueError, "Must specify src or group_src", lambda: dist.broadcast(x)),
        (ValueError, "Can't specify both", lambda: dist.broadcast(x, 0, group_src=0)),
        (ValueError, "group_src=99", lambda: dist.broadcast(x, group_src=99)),
        (ValueError, "split sizes", lambda: dist.all_to_all_single(x, x, None, [4] * n)),
        (RuntimeError, "Expected ``op``", lambda: dist.P2POp(dist.all_reduce, x, 0)),
        (ValueError, "no message", lambda: dist.batch_isend_irecv([])),
        (TypeError, "belongs to its process", lambda: dist.all_gather_object([None] * n, dist.group.WORLD)),
    ):
        with pytest.raises(kind, match=text):
            call()
    dist.barrier()


PROGRAMS: dict[str, Callable[[], None]] = {
    fn.__name__: fn
    for fn in (
        sums_of_every_type_and_shape, every_reduction, half_types_round_once, tensors_that_do_not_lie_side_by_side,
        results_count_as_changes_of_the_tensor, broadcasts_and_reductions_to_one, gathered_by_all_and_by_one,
        scattered_and_reduced_by_parts, all_to_all_of_any_sizes, beside_the_program, messages_around_the_ring,
        messages_keep_their_tags_apart, messages_of_another_size_are_refused, objects_of_any_size,
        groups_of_some_ranks, grids_have_groups_along_their_dimensions, barriers,
        wrong_arguments_are_named_before_anything_is_sent,
    )
}  # fmt: skip


def main() -> None:
    """Run all on MPI; rank 0 prints what failed where."""
    dist.init_process_group("mpi", timeout=timedelta(seconds=20))
    failures: dict[str, str] = {}
    for name, program in PROGRAMS.items():
        try:
            program()
        except BaseException:
            failures[name] = traceback.format_exc()
            break  # the others are somewhere else now
    if failures:
        print("FAILED", dist.get_rank(), json.dumps(failures), flush=True)
        sys.exit(1)
    sys.stdout.write(f"PASSED {dist.get_rank()} {len(PROGRAMS)}\n")  # at once: ranks share the screen
    sys.stdout.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
