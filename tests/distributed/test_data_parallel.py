"""DistributedDataParallel, samplers and batch norms on ranks that are threads and on processes; and what torch says."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from tests.distributed.data_parallel_programs import PROGRAMS
from tests.distributed.processes import mpiexec, needs_mpi
from tests.distributed.training import data, mlp, squares
from votive import nn
from votive.autograd import early
from votive.distributed.algorithms import ddp_comm_hooks
from votive.nn.parallel import DistributedDataParallel
from votive.nn.parallel.buckets import assign

DOCS = docstrings.examples(docstrings.modules_of(ddp_comm_hooks))


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_that_are_threads(name: str, ranks: int) -> None:
    dist.simulate(PROGRAMS[name], ranks, timeout=timedelta(seconds=60))


def test_three_ranks_learn_as_one() -> None:
    dist.simulate(PROGRAMS["a_convolutional_net_learns_as_in_one_process"], 3)


@needs_mpi
def test_ranks_that_are_processes() -> None:
    done = mpiexec(2, "-m", "tests.distributed.data_parallel_programs")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(2):
        assert f"PASSED {r} {len(PROGRAMS)}" in done.stdout


@pytest.fixture
def one_process() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_without_a_group_there_is_none() -> None:
    with pytest.raises(ValueError, match="init_process_group"):
        DistributedDataParallel(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="no process group"):
        votive.utils.data.DistributedSampler(range(3))


def test_what_is_not_supported_says_so(one_process: None) -> None:
    for options, text in (
        ({"mixed_precision": 1}, "votive.autocast"),
        ({"delay_all_reduce_named_params": [1]}, "averaged in backward"),
        ({"skip_all_reduce_unused_params": True}, "find_unused_parameters=True"),
        ({"batched_grad_copy": True}, "gradient_as_bucket_view"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            DistributedDataParallel(nn.Linear(1, 1), **options)
    with pytest.raises(NotImplementedError, match="0 gives sparse gradients"):
        DistributedDataParallel(nn.Sequential(nn.Embedding(3, 2, sparse=True)))
    with pytest.raises(ValueError, match="0 or more, got -1"):
        DistributedDataParallel(nn.Linear(1, 1), bucket_cap_mb=-1)
    model = DistributedDataParallel(nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match=r"create_graph=True.*weight"):
        model(votive.ones(1, 1)).square().sum().backward(create_graph=True)
    words: votive.futures.Future[str] = votive.futures.Future()
    words.set_result("x")
    for answer, text in ((5, "Future of a tensor, got int"), (words, "must give a tensor, got str")):
        model = DistributedDataParallel(nn.Linear(1, 1))
        model.register_comm_hook(None, lambda state, bucket, answer=answer: answer)  # type: ignore[misc]
        with pytest.raises(TypeError, match=text):
            model(votive.ones(1, 1)).sum().backward()
        with pytest.raises(RuntimeError, match="An error has ended the backward pass"):
            model(votive.ones(1, 1))


def test_a_model_that_is_unwrapped_is_as_before(one_process: None) -> None:
    module: Any = mlp()
    model = DistributedDataParallel(module)
    assert list(model.state_dict()) == [f"module.{k}" for k in module.state_dict()]
    assert len(module[0].weight._post_hooks) == 1
    twin = copy.deepcopy(model)
    batch = data("mlp", 1, 4)[0]
    squares(twin, batch).backward()
    squares(model, batch).backward()
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_array_equal(p.grad, q.grad)
    del model, twin, p, q
    gc.collect()
    assert not module[0].weight._post_hooks
    assert not early.asked()


def test_an_error_in_backward_is_told_at_the_next_step(one_process: None) -> None:
    model = DistributedDataParallel(mlp())
    batch = data("mlp", 1, 4)[0]

    def fail(_: Any) -> None:
        raise KeyError("out of luck")

    handle = model.module[0].weight.register_hook(fail)
    with pytest.raises(KeyError):
        squares(model, batch).backward()
    handle.remove()
    with pytest.raises(RuntimeError, match=r"Parameters without a gradient on rank 0: 0\.weight"):
        squares(model, batch)


def test_parts_of_the_package_are_found_by_their_names() -> None:
    code = "import sys, votive\nd = votive.distributed\nassert not [m for m in sys.modules if 'fsdp' in m]\n"
    code += "print(d.fsdp.fully_shard, d.optim, d.checkpoint.save, d.algorithms.ddp_comm_hooks, d.GradBucket)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, stdout=subprocess.DEVNULL)
    with pytest.raises(AttributeError, match="no attribute 'fdsp'"):
        dist.fdsp  # noqa: B018


def test_buckets_hold_one_type_each_and_end_at_their_cap() -> None:
    kinds = [votive.float32, votive.float64, votive.float32, votive.float32, votive.float64]
    weights = [votive.zeros(8, dtype=kind) for kind in kinds]
    assert assign(weights, [1e9]) == [[4, 1], [3, 2, 0]]
    assert assign(weights, [0]) == [[4], [3], [2], [1], [0]]
    assert assign(weights, [64, 60]) == [[4], [3, 2], [1], [0]]


def test_compiled_programs_average_too(one_process: None) -> None:
    model = DistributedDataParallel(mlp())
    batch = data("mlp", 1, 4)[0]
    seen: list[int] = []
    from votive.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    def hook(state: Any, bucket: Any) -> Any:
        seen.append(bucket.index())
        return allreduce_hook(state, bucket)

    model.register_comm_hook(None, hook)
    plain = mlp()
    squares(plain, batch).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = votive.compile(model)
        for step in range(3):
            model.zero_grad()
            (compiled(batch[0]) - batch[1]).square().mean().backward()
            assert len(seen) == step + 1
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=1e-5, atol=1e-7)


# --- against torch, on one process ------------------------------------------------------------


def _outcome(lib: Any, case: Any) -> str:
    try:
        return repr(case(lib, lib.nn.parallel.DistributedDataParallel))
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:75]}"


def _grads(model: Any) -> list[Any]:
    return [None if p.grad is None else p.grad.tolist() for p in model.parameters()]


def _net(lib: Any, parts: int = 2) -> Any:
    layers = [lib.nn.Linear(2, 2) for _ in range(parts)]
    with lib.no_grad():
        for i, layer in enumerate(layers):
            layer.weight.fill_(0.5 + i)
            layer.bias.fill_(0.25)
    return lib.nn.Sequential(*layers)


def _unused(lib: Any, DDP: Any, **options: Any) -> Any:
    net = _net(lib)
    net.forward = net[0].forward
    model = DDP(net, **options)
    for _ in range(3):
        model(lib.ones(1, 2)).sum().backward()
    return _grads(model)


def _without_sync(lib: Any, DDP: Any) -> Any:
    model = DDP(_net(lib))
    with model.no_sync():
        model(lib.ones(1, 2)).sum().backward()
        inside = model.require_backward_grad_sync
    model(lib.ones(1, 2)).sum().backward()
    with model.no_sync():
        loss = model(lib.ones(1, 2)).sum()
    loss.backward()
    return _grads(model), inside, model.require_backward_grad_sync


def _frozen(lib: Any, DDP: Any) -> Any:
    net = _net(lib)
    net[0].requires_grad_(False)
    model = DDP(net)
    model(lib.ones(1, 2)).sum().backward()
    return _grads(model), repr(model), list(model.state_dict())


CASES = {
    "nothing to learn": lambda lib, D: D(_net(lib).requires_grad_(False)),
    "no parameters": lambda lib, D: D(lib.nn.ReLU()),
    "lazy": lambda lib, D: D(lib.nn.LazyLinear(2)),
    "two devices": lambda lib, D: D(_net(lib), device_ids=[0, 1]),
    "a device for the CPU": lambda lib, D: D(_net(lib), device_ids=[0]),
    "group and mesh": lambda lib, D: D(_net(lib), process_group=1, device_mesh=2),
    "unused": _unused,
    "unused and found": lambda lib, D: _unused(lib, D, find_unused_parameters=True),
    "unused and static": lambda lib, D: _unused(lib, D, static_graph=True),
    "without sync": _without_sync,
    "frozen": _frozen,
    "a hook that is none": lambda lib, D: D(_net(lib)).register_comm_hook(None, 3),
}


@pytest.mark.parity
def test_one_process_gets_what_torch_gives(one_process: None) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.distributed")
    if not theirs.is_available() or not theirs.is_gloo_available():
        pytest.skip("this torch has no gloo")
    theirs.init_process_group("gloo", store=theirs.HashStore(), rank=0, world_size=1)
    try:
        for name, case in CASES.items():
            assert _outcome(votive, case) == _outcome(torch, case), name
    finally:
        theirs.destroy_process_group()
