"""Data-parallel training and parameters in shards on the GPU, with one rank: where tensors are, and that they learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests.distributed.training import alone, data, mlp, optimizer_of, squares
from votive import nn
from votive.distributed.fsdp import CPUOffloadPolicy, ShardedParameter, fully_shard
from votive.nn.parallel import DistributedDataParallel

BATCHES = data("mlp", 2, 4)


@pytest.fixture(autouse=True)
def one_process() -> Iterator[None]:
    dist.init_process_group("mpi", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def learns(model: Any, where: str) -> None:
    _, plain = alone("mlp", BATCHES)
    optimizer = optimizer_of(model.parameters())
    for x, y in BATCHES:
        optimizer.zero_grad()
        squares(model, (x, y.cuda())).backward()  # inputs are moved
        optimizer.step()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        assert p.device.type == where
        whole = p.full_tensor() if isinstance(p, ShardedParameter) else p
        np.testing.assert_allclose(whole.detach().cpu(), q.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("as_view", [False, True])
def test_copies_learn_on_the_gpu(as_view: bool) -> None:
    learns(DistributedDataParallel(mlp().cuda(), device_ids=[0], gradient_as_bucket_view=as_view), "cuda")


@pytest.mark.parametrize("where", ["cuda", "cpu"])
def test_shards_learn_on_the_gpu_wherever_they_are_kept(where: str) -> None:
    mesh = dist.init_device_mesh("cuda", (1,))
    options: dict[str, Any] = {"offload_policy": CPUOffloadPolicy()} if where == "cpu" else {}
    model = mlp()
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh, **options)
    learns(fully_shard(model, mesh=mesh, **options), where)


def test_batch_norms_of_all_ranks_on_the_gpu() -> None:
    x = votive.linspace(-1, 2, 24).view(4, 3, 2)
    found = nn.SyncBatchNorm(3).cuda()(x.cuda())
    np.testing.assert_allclose(found.detach().cpu(), nn.BatchNorm1d(3)(x).detach(), rtol=1e-4, atol=1e-5)
