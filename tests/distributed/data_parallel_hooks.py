"""What hooks, unequal numbers of batches and compression do to DistributedDataParallel, on threads and on processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests.distributed.training import data, mine, mlp, optimizer_of, same_on_all_ranks, squares  # fmt: skip
from votive import Tensor, nn
from votive.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from votive.nn.parallel import DistributedDataParallel

STEPS = 10
SIZE = 12  # divides among 1 to 4 ranks


def hooks_average_in_their_own_way() -> None:
    from votive.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks

    batch = data("mlp", 1, SIZE)[0]
    plain = mlp()
    squares(plain, batch).backward()
    for hook, tolerance in (
        (hooks.allreduce_hook, 1e-5), (hooks.fp16_compress_hook, 5e-3), (hooks.bf16_compress_hook, 4e-2),
        (hooks.fp16_compress_wrapper(hooks.allreduce_hook), 5e-3),
        (hooks.bf16_compress_wrapper(hooks.allreduce_hook), 4e-2),
    ):  # fmt: skip
        for as_view in (False, True):
            model = DistributedDataParallel(mlp(), bucket_cap_mb=0.0005, gradient_as_bucket_view=as_view)
            model.register_comm_hook(None, hook)
            for _ in range(2):
                model.zero_grad()
                squares(model, mine(batch)).backward()
            for a, b in zip(model.module.parameters(), plain.parameters(), strict=True):
                np.testing.assert_allclose(a.grad, b.grad, rtol=tolerance, atol=tolerance / 20)
            same_on_all_ranks(p.grad for p in model.parameters())
    seen: list[tuple[int, bool, int]] = []

    def watch(state: Any, bucket: Any) -> Any:
        assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        seen.append((bucket.index(), bucket.is_last(), bucket.buffer().numel()))
        return hooks.allreduce_hook(state, bucket)

    model = DistributedDataParallel(mlp(), bucket_cap_mb=0)
    model.register_comm_hook(dist.group.WORLD, watch)
    squares(model, mine(batch)).backward()
    assert seen == [(0, False, 3), (1, False, 36), (2, False, 12), (3, False, 144), (4, False, 12), (5, True, 72)]


def ranks_may_have_unequal_numbers_of_batches() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()
    steps = [1 + (r * 2) % 5 for r in range(count)]
    every = [data("mlp", steps[r], 4 + r) for r in range(count)]

    def as_one(by_all: bool) -> list[Tensor]:
        plain = mlp()
        optimizer = optimizer_of(plain.parameters())
        for i in range(max(steps)):
            parts = [every[r][i] for r in range(count) if i < steps[r]]
            optimizer.zero_grad()
            for part in parts:
                (squares(plain, part) / (count if by_all else len(parts))).backward()
            optimizer.step()
        return [p.detach() for p in plain.parameters()]

    for by_all in (True, False):
        for options in ({}, {"find_unused_parameters": True}, {"gradient_as_bucket_view": True}):
            model = DistributedDataParallel(mlp(), bucket_cap_mb=0.0005, **options)  # type: ignore[arg-type]
            optimizer = optimizer_of(model.parameters())
            with model.join(divide_by_initial_world_size=by_all):
                for batch in every[rank]:
                    optimizer.zero_grad()
                    with model.no_sync():
                        squares(model, (batch[0] * 0, batch[1] * 0)).backward()
                    model.zero_grad()
                    squares(model, batch).backward()
                    optimizer.step()
            for p, q in zip(model.parameters(), as_one(by_all), strict=True):
                np.testing.assert_allclose(p.detach(), q, rtol=1e-4, atol=1e-5)
            same_on_all_ranks(model.parameters())
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(50), nn.Linear(50, 3)))
    with model.join():
        for batch in data("cnn", steps[rank], SIZE):
            squares(model, batch).backward()
    same_on_all_ranks(model.module.buffers())
    assert model.module[1].num_batches_tracked.item() == max(steps)
    if count > 1:
        model = DistributedDataParallel(mlp())

        def ends_at_the_first_end() -> None:
            with model.join(throw_on_early_termination=True):
                for _ in range(1 + rank):
                    squares(model, every[0][0]).backward()

        with pytest.raises(RuntimeError, match="at least one rank that exhausted inputs"):
            ends_at_the_first_end()
        with model.join(enable=False):
            squares(model, every[0][0]).backward()
    with pytest.raises(NotImplementedError, match="static_graph"):
        DistributedDataParallel(mlp(), static_graph=True).join()
    with pytest.raises(ValueError, match="SyncBatchNorm needs all ranks"):
        DistributedDataParallel(nn.Sequential(nn.SyncBatchNorm(2))).join()


def matrices_travel_as_factors_of_low_rank() -> None:
    batch = data("mlp", 1, SIZE)[0]
    plain: Any = mlp()
    squares(plain, batch).backward()

    def gradients(steps: int, **options: Any) -> tuple[list[list[Tensor]], Any]:
        model = DistributedDataParallel(mlp(), bucket_cap_mb=0.0005)
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, **options)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        found = []
        for _ in range(steps + 2):
            model.zero_grad()
            squares(model, mine(batch)).backward()
            found.append([p.grad.clone() for p in model.parameters()])
        same_on_all_ranks(found[-1])
        return found[2:], state

    # Factors of the full rank lose nothing, and what was lost comes with later steps.
    exact, _ = gradients(2, matrix_approximation_rank=12, min_compression_rate=0)
    for a, b in zip(exact[-1], plain.parameters(), strict=True):
        np.testing.assert_allclose(a, b.grad, rtol=1e-3, atol=1e-5)
    sent, state = gradients(30, matrix_approximation_rank=1, min_compression_rate=1)
    assert state.factors
    weight = plain[2].weight.grad
    first, mean = sent[0][2], sum(s[2] for s in sent) / len(sent)
    assert votive.linalg.matrix_rank(first, rtol=1e-4).item() == 1
    assert (mean - weight).norm() < 0.2 * weight.norm()
    forgetful, _ = gradients(30, matrix_approximation_rank=1, min_compression_rate=1, use_error_feedback=False)
    lost = sum(s[2] for s in forgetful) / len(forgetful)
    assert (mean - weight).norm() < 0.5 * (lost - weight).norm()
    np.testing.assert_allclose(sent[0][1], plain[0].bias.grad, rtol=1e-4, atol=1e-6)
    for options, text in (
        ({"matrix_approximation_rank": 0}, "1 or more"),
        ({"start_powerSGD_iter": 1}, "after the first two iterations"),
    ):
        with pytest.raises(ValueError, match=text):
            powerSGD_hook.PowerSGDState(None, **options)  # type: ignore[arg-type]
