"""Programs for several processes run on the alias as they are, and a process that is alone is told so."""

from __future__ import annotations

import pytest

import votive

from .process import run

mpi = pytest.mark.skipif(not votive.distributed.is_mpi_available(), reason="needs mpi4py and an MPI library")

ALONE = """
import os
for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
    os.environ.pop(name, None)
import torch
import torch.distributed as dist
assert not dist.is_available() and not dist.is_initialized()
assert dist.get_debug_level() is dist.DebugLevel.OFF and not dist.is_ucc_available()
"""

PROGRAM = """
import os
os.environ.update(RANK="0", WORLD_SIZE="1")
os.environ.pop("MASTER_PORT", None)
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

assert dist.is_available()
dist.init_process_group("gloo")
assert dist.is_initialized() and (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
x = torch.arange(3.0)
dist.all_reduce(x, op=dist.ReduceOp.SUM)
assert x.tolist() == [0, 1, 2]
rows = torch.zeros(3)
dist.all_gather_single(rows, x)
dist.reduce_scatter_single(x, rows * 2)
assert x.tolist() == [0, 2, 4] and dist.get_backend_config() == "cpu:gloo,cuda:gloo"
assert isinstance(dist.GradBucket, type)
torch.manual_seed(0)
plain, model = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
model.load_state_dict(plain.state_dict())
model = DDP(model)
data = TensorDataset(torch.randn(8, 3), torch.randn(8, 2))
sampler = DistributedSampler(data, shuffle=False)
assert list(sampler) == list(range(8))
for net in (plain, model):
    step = torch.optim.SGD(net.parameters(), lr=0.1)
    for a, b in DataLoader(data, batch_size=4, sampler=sampler):
        step.zero_grad()
        torch.nn.functional.mse_loss(net(a), b).backward()
        step.step()
assert torch.equal(plain.weight, model.module.weight)
assert sorted(model.state_dict()) == ["module.bias", "module.weight"]
dist.destroy_process_group()
assert not dist.is_initialized()
"""


def test_a_process_that_is_alone_hears_so() -> None:
    run(ALONE)


@mpi
def test_a_program_of_data_parallel_training_runs_as_it_is() -> None:
    run(PROGRAM)


def test_shares_shards_and_their_checkpoints_have_torchs_paths() -> None:
    out = run(
        """
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
        from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
        from torch.distributed.optim import ZeroRedundancyOptimizer
        import torch.distributed.checkpoint as dcp
        print(fully_shard.__module__, ZeroRedundancyOptimizer.__module__, dcp.save.__module__)
        """
    )
    assert out.split() == [
        "votive.distributed.fsdp.fully_shard", "votive.distributed.optim.zero_redundancy_optimizer",
        "votive.distributed.checkpoint.files",
    ]  # fmt: skip
