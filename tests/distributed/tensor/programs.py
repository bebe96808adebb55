"""What tests of threads check, on processes: `python -m tests.distributed.tensor.programs` runs it on MPI."""

from __future__ import annotations

import pytest

import votive
import votive.distributed as dist
from votive import nn
from votive.distributed.tensor import Shard, ones, rand

from . import test_context_parallel, test_expert_parallel, test_meshes, test_tensor_parallel
from .cases import CASES
from .test_operators import compare
from .test_placements import any_to_any


def main() -> None:
    """Raise on any rank where something differs."""
    dist.init_process_group()
    n = dist.get_world_size()
    any_to_any((n,))
    assert compare((n,), CASES[::7], 7) == []
    # Generators that differ: what counts is the first rank's.
    votive.manual_seed(dist.get_rank())
    mesh = dist.init_device_mesh("cpu", (n,))
    drawn = rand(5, 3, device_mesh=mesh, placements=[Shard(0)]).full_tensor()
    dropped = nn.functional.dropout(ones(9, 3, device_mesh=mesh, placements=[Shard(1)]), 0.5).full_tensor()
    votive.manual_seed(0)
    assert votive.equal(drawn, votive.rand(5, 3))
    assert votive.equal(dropped, nn.functional.dropout(votive.ones(9, 3), 0.5))
    numbers, tokens = test_tensor_parallel.trained("mixture", 1)
    found, written = test_tensor_parallel.trained("mixture", n)
    assert found == pytest.approx(numbers, rel=1e-4)
    assert written == tokens
    test_context_parallel.ring(True, True, 2, votive.float64)
    assert test_context_parallel.train(True) == pytest.approx(test_context_parallel.train(False), rel=1e-5)
    alone = test_expert_parallel.train("Mixtral", "alone")
    assert test_expert_parallel.train("Mixtral", "experts") == pytest.approx(alone, rel=1e-4)
    if n == 4:
        for how in ("ddp", "shards"):
            assert test_meshes.train("gpt", how) == pytest.approx(test_meshes.train("gpt", "alone"), rel=1e-4)
    print(f"PASSED {dist.get_rank()}", flush=True)


if __name__ == "__main__":
    main()
