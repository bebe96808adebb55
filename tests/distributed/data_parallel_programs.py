"""What every rank does with DistributedDataParallel and its kin, on threads and on processes.

`python -m tests.distributed.data_parallel_programs` runs them one after the other on MPI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests.distributed.data_parallel_hooks import (
    hooks_average_in_their_own_way,
    matrices_travel_as_factors_of_low_rank,
    ranks_may_have_unequal_numbers_of_batches,
)
from tests.distributed.training import (
    alone,
    cnn,
    data,
    mine,
    mlp,
    optimizer_of,
    run_on_mpi,
    same_on_all_ranks,
    same_state,
    squares,
    together,
)  # fmt: skip
from votive import Tensor, nn
from votive.nn.parallel import DistributedDataParallel

STEPS = 10
SIZE = 12  # divides among 1 to 4 ranks


def _steps_of_one_process(kind: str, **options: Any) -> None:
    batches = data(kind, STEPS, SIZE)
    wanted, plain = alone(kind, batches)

    def wrap(model: nn.Module) -> nn.Module:
        if dist.get_rank():  # what rank 0 holds counts
            with votive.no_grad():
                for p in model.parameters():
                    p.add_(1.0)
        return DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model), **options)

    losses, model = together(kind, batches, wrap)
    np.testing.assert_allclose(losses, wanted, rtol=2e-5)
    same_state({k.removeprefix("module."): v for k, v in model.state_dict().items()}, plain.state_dict(), 1e-4)
    same_on_all_ranks(model.parameters())


def an_mlp_learns_as_in_one_process() -> None:
    _steps_of_one_process("mlp")


def a_convolutional_net_learns_as_in_one_process() -> None:
    _steps_of_one_process("cnn", bucket_cap_mb=0.0005)


def a_gpt_learns_as_in_one_process() -> None:
    _steps_of_one_process("gpt", bucket_cap_mb=0.002, gradient_as_bucket_view=True)


def every_option_gives_the_same_bits() -> None:
    results = []
    for options in (
        {}, {"bucket_cap_mb": 0}, {"bucket_cap_mb_list": [0.0001, 0.001]}, {"gradient_as_bucket_view": True},
        {"static_graph": True}, {"find_unused_parameters": True},
        {"find_unused_parameters": True, "gradient_as_bucket_view": True},
    ):  # fmt: skip
        _, model = together("mlp", data("mlp", 3, SIZE), lambda m, o=options: DistributedDataParallel(m, **o))  # type: ignore[misc]
        results.append([p.detach().numpy().copy() for p in model.parameters()])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def last_batches_may_be_uneven() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    x, y = data("mlp", 1, 4 * count)[0]
    sizes = [1 + r for r in range(count)]
    start = sum(sizes[:rank])
    part = (x[start : start + sizes[rank]], y[start : start + sizes[rank]])
    model = DistributedDataParallel(mlp())
    squares(model, part).backward()
    # The mean over ranks of each rank's mean, as in torch.
    plain = mlp()
    for r, n in enumerate(sizes):
        at = sum(sizes[:r])
        (squares(plain, (x[at : at + n], y[at : at + n])) / count).backward()
    for a, b in zip(model.module.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=1e-4, atol=1e-6)


def steps_without_sync_add_up_to_a_large_batch() -> None:
    batches = data("mlp", 3, SIZE)
    for name in ("", "gradient_as_bucket_view", "find_unused_parameters", "static_graph"):
        options: dict[str, Any] = {name: True} if name else {}
        model = DistributedDataParallel(mlp(), **options)
        for _ in range(2):
            model.zero_grad()
            with model.no_sync():
                for batch in batches[:-1]:
                    squares(model, mine(batch)).backward()
            squares(model, mine(batches[-1])).backward()
            plain = mlp()
            for batch in batches:
                squares(plain, batch).backward()
            for a, b in zip(model.module.parameters(), plain.parameters(), strict=True):
                np.testing.assert_allclose(a.grad, b.grad, rtol=1e-4, atol=1e-6)


def gradients_that_are_parts_of_buckets_may_be_kept_and_changed() -> None:
    batches = data("mlp", 3, SIZE)
    plain, model = mlp(), DistributedDataParallel(mlp(), gradient_as_bucket_view=True)
    optimizers = [optimizer_of(m.parameters()) for m in (plain, model)]
    kept: list[Any] = []
    for batch in batches:
        for net, optimizer, part in ((plain, optimizers[0], batch), (model, optimizers[1], mine(batch))):
            optimizer.zero_grad(set_to_none=False)
            squares(net, part).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
        kept.append([p.grad for p in model.parameters()])
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            np.testing.assert_allclose(p.grad, q.grad, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(p.detach(), q.detach(), rtol=1e-4, atol=1e-6)
    assert all(a is b for a, b in zip(kept[0], kept[2], strict=True))


class Branches(nn.Module):
    """Every rank may take another way; one layer is on nobody's."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.idle = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: Tensor, way: int) -> Tensor:
        return self.a(x) if way == 0 else self.b(x)


def parameters_may_stay_unused() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    x = votive.ones(1, 2)
    for as_view in (False, True):
        model = DistributedDataParallel(Branches(), find_unused_parameters=True, gradient_as_bucket_view=as_view)
        for step in range(3):
            model.zero_grad()
            model(x, (rank + step) % 2).sum().backward()
            on_a = sum((r + step) % 2 == 0 for r in range(count))
            net = model.module
            for layer, n in ((net.a, on_a), (net.b, count - on_a)):
                if n:
                    np.testing.assert_allclose(layer.bias.grad, np.full(2, n / count), rtol=1e-6)
                else:
                    assert layer.bias.grad is None
            assert net.idle.weight.grad is None
    model = DistributedDataParallel(Branches(), static_graph=True)
    for _ in range(3):
        model.zero_grad()
        model(x, 0).sum().backward()
        np.testing.assert_allclose(model.module.a.bias.grad, np.ones(2))
        assert model.module.b.bias.grad is None


def a_parameter_without_gradient_is_named() -> None:
    model = DistributedDataParallel(Branches())
    model(votive.ones(1, 2), 0).sum().backward()
    with pytest.raises(RuntimeError, match=r"Expected to have finished reduction.*rank \d: b.weight, b.bias, idle"):
        model(votive.ones(1, 2), 0)


def several_passes_may_share_a_round_or_each_have_one() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    mean = sum(range(1, count + 1)) / count

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.a(x), self.b(x)

    x = votive.full((1, 1), rank + 1.0)
    for find in (False, True):
        model = DistributedDataParallel(Two(), find_unused_parameters=find)
        first, second = model(x)
        first.sum().backward()
        second.sum().backward()
        for layer in (model.module.a, model.module.b):
            assert layer.weight.grad.item() == pytest.approx(mean)
    model = DistributedDataParallel(nn.Linear(1, 1))
    y = model(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward(inputs=list(model.parameters()))
    assert model.module.weight.grad.item() == pytest.approx(2 * mean)
    one, other = model(x), model(x)
    one.sum().backward()
    other.sum().backward()
    assert model.module.weight.grad.item() == pytest.approx(4 * mean)
    (model(x) + model(x)).sum().backward()
    assert model.module.weight.grad.item() == pytest.approx(6 * mean)


def checkpointed_regions_are_reached() -> None:
    class Checkpointed(nn.Module):
        def __init__(self, reentrant: bool) -> None:
            super().__init__()
            self.net, self.reentrant = mlp(), reentrant

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = votive.utils.checkpoint.checkpoint(self.net, x, use_reentrant=self.reentrant)
            return found

    batch = data("mlp", 1, SIZE)[0]
    plain = mlp()
    squares(plain, batch).backward()
    for reentrant in (False, True):
        model = DistributedDataParallel(Checkpointed(reentrant))
        x, y = mine(batch)
        (model(x.requires_grad_()) - y).square().mean().backward()
        for a, b in zip(model.parameters(), plain.parameters(), strict=True):
            np.testing.assert_allclose(a.grad, b.grad, rtol=1e-4, atol=1e-6)


def early_buckets_leave_while_backward_goes_on() -> None:
    model = DistributedDataParallel(mlp(), bucket_cap_mb=0)
    sent: list[int] = []
    first = model.module[0].weight
    first.register_hook(lambda g: sent.append(len(model.reducer.futures)))
    squares(model, mine(data("mlp", 1, SIZE)[0])).backward()
    assert len(model.reducer.buckets) == 6
    assert sent == [4] or sent == [5]  # all but those of the first layer, whose two gradients come together


def buffers_follow_rank_0() -> None:
    rank = dist.get_rank()
    batch = data("cnn", 1, SIZE)[0]
    for given, follows in ((True, True), (False, False)):
        model = DistributedDataParallel(cnn(), broadcast_buffers=given)
        for _ in range(2):
            model(mine(batch)[0] + rank)
        buffer = model.module[1].running_mean
        found = [votive.zeros_like(buffer) for _ in range(dist.get_world_size())]
        model.eval()
        with votive.no_grad():
            model(mine(batch)[0])
        dist.all_gather(found, buffer)
        assert all(np.array_equal(found[0], f) for f in found) == (follows or len(found) == 1)


def normalisation_sees_all_ranks() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(3)
    sizes = [(2 + r) % 4 for r in range(count)]  # one rank of 4 may see nothing
    every = votive.tensor(rng.standard_normal((sum(sizes), 3, 4)).astype("f4") + 5)
    factors = votive.tensor(rng.standard_normal((sum(sizes), 3, 4)).astype("f4"))
    at = slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))
    for options in ({}, {"affine": False}, {"momentum": None}, {"bias": False}, {"track_running_stats": False}):
        plain: nn.Module = nn.BatchNorm1d(3, **options)
        sync: nn.Module = nn.SyncBatchNorm(3, **options)
        for _ in range(2):
            x, mine_x = every.clone().requires_grad_(), every[at].clone().requires_grad_()
            plain.zero_grad()
            sync.zero_grad()
            wanted, found = plain(x), sync(mine_x)
            (wanted * factors).sum().backward()
            (found * factors[at]).sum().backward()
            np.testing.assert_allclose(found.detach(), wanted[at].detach(), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(mine_x.grad, x.grad[at], rtol=1e-3, atol=1e-5)
        for p, q in zip(sync.parameters(), plain.parameters(), strict=True):
            total = p.grad.clone()
            dist.all_reduce(total)
            np.testing.assert_allclose(total, q.grad, rtol=1e-3, atol=1e-4)
        same_state(sync.state_dict(), plain.state_dict(), 1e-5)
        plain.eval(), sync.eval()
        np.testing.assert_allclose(sync(every).detach(), plain(every).detach(), rtol=1e-4, atol=1e-5)
    half = nn.SyncBatchNorm(3)(every[at].to(votive.bfloat16))
    assert half.dtype is votive.bfloat16
    alone_group = dist.new_group([rank], use_local_synchronization=True)
    own = nn.SyncBatchNorm(3, process_group=alone_group)
    some = votive.ones(2, 3) * rank
    np.testing.assert_array_equal(own(some).detach(), nn.BatchNorm1d(3)(some).detach())


def samplers_know_their_rank() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    sampler = votive.utils.data.DistributedSampler(range(10))
    assert (sampler.num_replicas, sampler.rank) == (count, rank)
    mine_now = votive.tensor(list(sampler))
    every = [votive.zeros_like(mine_now) for _ in range(count)]
    dist.all_gather(every, mine_now)
    assert {int(i) for part in every for i in part} == set(range(10))


def ranks_with_other_models_are_told() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    if count == 1:
        return
    layers = [nn.Linear(2, 2) for _ in range(1 + rank)]
    with pytest.raises(RuntimeError, match=r"DDP expects same model across all ranks.*rank 1 has inconsistent 4"):
        DistributedDataParallel(nn.Sequential(*layers))
    with pytest.raises(RuntimeError, match=r"parameter 0 is weight \(2, 2\).* on rank 0 and weight \(2, 3\)"):
        DistributedDataParallel(nn.Linear(2 + rank, 2))


PROGRAMS: dict[str, Callable[[], None]] = {
    fn.__name__: fn
    for fn in (
        an_mlp_learns_as_in_one_process, a_convolutional_net_learns_as_in_one_process, a_gpt_learns_as_in_one_process,
        every_option_gives_the_same_bits, last_batches_may_be_uneven, steps_without_sync_add_up_to_a_large_batch,
        parameters_may_stay_unused, a_parameter_without_gradient_is_named,
        several_passes_may_share_a_round_or_each_have_one, checkpointed_regions_are_reached,
        early_buckets_leave_while_backward_goes_on, buffers_follow_rank_0, normalisation_sees_all_ranks,
        samplers_know_their_rank, ranks_with_other_models_are_told, hooks_average_in_their_own_way,
        gradients_that_are_parts_of_buckets_may_be_kept_and_changed,
        ranks_may_have_unequal_numbers_of_batches, matrices_travel_as_factors_of_low_rank,
    )
}  # fmt: skip


if __name__ == "__main__":
    run_on_mpi(PROGRAMS)
