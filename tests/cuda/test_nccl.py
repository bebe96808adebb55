"""Collectives and messages of GPU tensors by NCCL: one rank with the library, several with a stand-in for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests.distributed.training import alone, data, mine, mlp, optimizer_of, squares
from votive.distributed.fsdp import ShardedParameter, fully_shard
from votive.distributed.transports import nccl
from votive.nn.parallel import DistributedDataParallel

from .device import EMULATED
from .fake_nccl import FakeNccl

RANKS = 3 if EMULATED else 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in, or None where the library itself is used."""
    if not EMULATED:
        if not nccl.library.load():
            pytest.skip(nccl.library.reason)
        yield None
        return
    found = FakeNccl()
    monkeypatch.setattr(nccl.library, "lib", found)
    yield found


def on_ranks(run: Callable[..., Any], count: int = RANKS) -> list[Any]:
    """On threads, in a group whose GPU tensors go by NCCL."""

    def play() -> Any:
        return run(dist.new_group(backend="nccl"))

    return dist.simulate(play, count)


def drawn(rank: int, kind: Any, shape: tuple[int, ...] = (4, 3)) -> Any:
    values = np.random.default_rng(rank).integers(1, 5, shape)
    return votive.tensor(values).to(kind)


BOOL: Any = votive.tensor(True).dtype
KINDS = [votive.float32, votive.float64, votive.float16, votive.bfloat16, votive.int64, votive.int32, votive.uint8,
         BOOL, votive.complex64]  # fmt: skip
OPS = [dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT]


def same(found: Any, wanted: Any) -> None:
    # Complex numbers are divided as two real ones, or as one.
    rounding = 3e-7 if wanted.is_complex() else 0
    np.testing.assert_allclose(found.cpu().numpy(), wanted.numpy(), rtol=rounding)


def valid(kind: Any, op: Any) -> bool:
    return (kind is not BOOL or op is not dist.ReduceOp.AVG) and (
        kind is not votive.complex64 or op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG)
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_collectives_give_what_the_host_gives(fake: Any, kind: Any) -> None:
    def run(group: Any) -> None:
        rank, count = dist.get_rank(), dist.get_world_size()
        for op in [op for op in OPS if valid(kind, op)]:
            for name in ("all_reduce", "reduce"):
                pair = []
                for where, g in (("cuda", group), ("cpu", None)):
                    x = drawn(rank, kind).to(where)
                    getattr(dist, name)(x, **({"dst": 0} if name == "reduce" else {}), op=op, group=g)
                    pair.append(x)
                same(*pair)
            pair = []
            for where, g in (("cuda", group), ("cpu", None)):
                out = votive.zeros(2, 3, dtype=kind, device=where)
                dist.reduce_scatter_tensor(out, drawn(rank, kind, (2 * count, 3)).to(where), op, g)
                listed = votive.zeros(3, dtype=kind, device=where)
                dist.reduce_scatter(listed, list(drawn(rank, kind, (count, 3)).to(where)), op, g)
                pair += [out, listed]
            same(pair[0], pair[2])
            same(pair[1], pair[3])
        moved = []
        for where, g in (("cuda", group), ("cpu", None)):
            x = drawn(rank, kind).to(where)
            dist.broadcast(x, count - 1, g)
            whole = votive.zeros(4 * count, 3, dtype=kind, device=where)
            dist.all_gather_into_tensor(whole, drawn(rank, kind).to(where), g)
            rows = [votive.zeros(4, 3, dtype=kind, device=where) for _ in range(count)]
            dist.all_gather(rows, drawn(rank, kind).to(where), g)
            got = [votive.zeros(4, 3, dtype=kind, device=where) for _ in range(count)]
            dist.gather(drawn(rank, kind).to(where), got if rank == 0 else None, 0, g)
            part = votive.zeros(4, 3, dtype=kind, device=where)
            dist.scatter(part, [drawn(i, kind).to(where) for i in range(count)] if rank == 0 else None, 0, g)
            outs = [votive.zeros(rank + i + 1, dtype=kind, device=where) for i in range(count)]
            dist.all_to_all(outs, [drawn(rank, kind, (rank + i + 1,)).to(where) for i in range(count)], g)
            single = votive.zeros(2 * count, 3, dtype=kind, device=where)
            dist.all_to_all_single(single, drawn(rank, kind, (2 * count, 3)).to(where), group=g)
            moved.append([x, whole, *rows, *got, part, *outs, single])
        for a, b in zip(*moved, strict=True):
            same(a, b)

    on_ranks(run)
    if fake is not None:
        assert {"all_reduce", "reduce", "reduce_scatter", "broadcast", "all_gather", "send", "recv"} <= set(fake.calls)


def test_any_layout_and_what_nccl_does_not_have(fake: Any) -> None:
    def run(group: Any) -> None:
        rank, count = dist.get_rank(), dist.get_world_size()
        x = votive.arange(12.0).view(3, 4).cuda() * (rank + 1)
        dist.all_reduce(x.t(), group=group)  # a view that is written through
        same(x, votive.arange(12.0).view(3, 4) * sum(range(1, count + 1)))
        rows = votive.zeros(2 * count, 4).cuda()
        dist.all_gather_into_tensor(rows.t(), votive.full((4, 2), rank + 1.0).cuda().t().contiguous().t(), group)
        assert rows.cpu().sum().item() == 8 * sum(range(1, count + 1))
        bits = votive.tensor([1 << rank]).cuda()
        dist.all_reduce(bits, dist.ReduceOp.BOR, group)  # by way of the host
        assert bits.item() == (1 << count) - 1
        short = votive.tensor([rank], dtype=votive.int16).cuda()
        dist.all_reduce(short, group=group)
        assert short.item() == sum(range(count))
        empty = votive.zeros(0).cuda()
        dist.all_reduce(empty, group=group)
        several = [votive.ones(2).cuda(), votive.ones(3).cuda()]
        dist.all_reduce_coalesced(several, group=group)
        assert several[1].cpu().tolist() == [count] * 3

    on_ranks(run)


def test_works_are_waited_for_by_streams(fake: Any) -> None:
    def run(group: Any) -> None:
        count = dist.get_world_size()
        x = votive.ones(1000).cuda()
        work = dist.all_reduce(x, group=group, async_op=True)
        assert work is not None
        assert work.wait()
        y = x + 1
        assert work.wait(5.0)
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        assert work.get_future().wait()[0] is x
        assert y.cpu()[0].item() == count + 1

    on_ranks(run)


@pytest.mark.skipif(not EMULATED, reason="one GPU is one rank")
def test_messages(fake: Any) -> None:
    def run(group: Any) -> list[float]:
        me, count = dist.get_rank(), dist.get_world_size()
        mine, found = votive.full((4,), float(me)).cuda(), votive.empty(4).cuda()
        right, left = (me + 1) % count, (me - 1) % count
        ops = [dist.P2POp(dist.isend, mine, right, group), dist.P2POp(dist.irecv, found, left, group)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        if me == 0:
            dist.send(mine + 7, 1, group)
            dist.send(mine + 8, 1, group, tag=3)  # by way of the host
        if me == 1:
            assert dist.recv(mine, 0, group) == 0
            assert mine.cpu().tolist() == [7.0] * 4
            assert dist.recv(mine, 0, group, tag=3) == 0
            assert mine.cpu().tolist() == [8.0] * 4
            with pytest.raises(ValueError, match="that is named"):
                dist.recv(mine, group=group)
        return found.cpu().tolist()

    assert [row[0] for row in on_ranks(run)] == [2.0, 0.0, 1.0]


@pytest.mark.skipif(not EMULATED, reason="one GPU is one rank")
def test_training_on_several_ranks(fake: Any) -> None:
    batches = data("mlp", 2, 6)
    _, plain = alone("mlp", batches)

    def run(group: Any, sharded: bool) -> None:
        mesh = dist.DeviceMesh.from_group(group, "cuda")
        model: Any = mlp().cuda()
        model = fully_shard(model, mesh=mesh) if sharded else DistributedDataParallel(model, process_group=group)
        optimizer = optimizer_of(model.parameters())
        for batch in batches:
            x, y = mine(batch)
            optimizer.zero_grad()
            squares(model, (x.cuda(), y.cuda())).backward()
            optimizer.step()
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            whole = p.full_tensor() if isinstance(p, ShardedParameter) else p
            np.testing.assert_allclose(whole.detach().cpu(), q.detach(), rtol=1e-4, atol=1e-5)

    for sharded in (False, True):
        on_ranks(lambda group, s=sharded: run(group, s))
        assert "reduce_scatter" in fake.calls if sharded else "all_reduce" in fake.calls


@pytest.mark.skipif(not EMULATED, reason="one GPU is one rank")
def test_errors_say_what_nccl_says(fake: Any) -> None:
    def differs(group: Any) -> None:
        x = votive.ones(2)
        dist.all_reduce(x.cuda() if dist.get_rank() else x, group=group)

    with pytest.raises(dist.DistBackendError, match="do not call the same"):
        on_ranks(differs)

    def fails(group: Any) -> None:
        dist.all_reduce(votive.ones(2).cuda(), group=group)
        fake.broken = 5
        dist.all_reduce(votive.ones(2).cuda(), group=group)

    with pytest.raises(
        dist.DistBackendError, match=r"ncclAllReduce: NCCL says 'invalid usage': a word more \(error 5\)"
    ):
        on_ranks(fails, 1)
    assert fake.ended[-1] == "abort"

    def later(group: Any) -> None:
        work = dist.all_reduce(votive.ones(2).cuda(), group=group, async_op=True)
        assert work is not None
        fake.later = 6
        assert not work.is_success()
        work.wait()

    with pytest.raises(dist.DistBackendError, match=r"all_reduce float32.*unhandled system error"):
        on_ranks(later, 1)


def test_a_world_of_one(fake: Any) -> None:
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert dist.get_backend() == "nccl"
        x = votive.ones(3).cuda()
        dist.all_reduce(x)
        dist.barrier()
        assert x.cpu().tolist() == [1.0] * 3
        host = votive.ones(2)
        dist.all_reduce(host)
    finally:
        dist.destroy_process_group()
    if fake is not None:
        assert fake.ended == ["destroy"]


def test_versions(fake: Any) -> None:
    major, minor, _ = nccl.library.version()
    assert (major, minor) >= (2, 10)
