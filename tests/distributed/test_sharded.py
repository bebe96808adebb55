"""Optimizers and parameters that are spread over ranks, which are threads or processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from tests.distributed.processes import mpiexec, needs_mpi
from tests.distributed.sharded_programs import PROGRAMS, sharded
from tests.distributed.training import data, filled, mine, mlp, squares
from votive import nn
from votive.distributed import fsdp, optim
from votive.distributed.fsdp import fully_shard
from votive.distributed.optim import ZeroRedundancyOptimizer
from votive.nn.parallel import DistributedDataParallel

DOCS = docstrings.examples([p for package in (optim, fsdp) for p in (package, *docstrings.modules_of(package))])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_that_are_threads(name: str, ranks: int) -> None:
    dist.simulate(PROGRAMS[name], ranks, timeout=timedelta(seconds=60))


@needs_mpi
def test_ranks_that_are_processes() -> None:
    done = mpiexec(2, "-m", "tests.distributed.sharded_programs")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(2):
        assert f"PASSED {r} {len(PROGRAMS)}" in done.stdout


@pytest.fixture
def one_process() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("spread", [DistributedDataParallel, sharded])
def test_a_rank_that_fails_within_backward_ends_the_others_at_once(spread: Any) -> None:
    def run() -> None:
        net = mlp()
        rank = dist.get_rank()

        def fail(*_: Any) -> None:
            if rank == 1:
                raise KeyError("gone")

        net[2].register_full_backward_hook(fail)
        squares(spread(net), mine(data("mlp", 1, 12)[0])).backward()

    start = time.monotonic()
    with pytest.raises(KeyError, match="gone"):
        dist.simulate(run, 3, timeout=timedelta(seconds=300))
    assert time.monotonic() - start < 120


class First(nn.Module):
    """A layer, of whose results the first is the result."""

    def __init__(self, inner: nn.Module, times: int = 1) -> None:
        super().__init__()
        self.inner, self.times = inner, times

    def forward(self, x: votive.Tensor) -> Any:
        found = self.inner(*[x] * self.times)
        return found[0] if isinstance(found, tuple) else found


class Words(nn.Module):
    """Numbers as words, from two tables."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.bag = nn.Embedding(7, 8, padding_idx=0), nn.EmbeddingBag(7, 8)

    def forward(self, x: votive.Tensor) -> votive.Tensor:
        words = (x[..., 0].abs() * 3).long() % 7
        found: votive.Tensor = self.words(words).sum(1) + self.bag(words)
        return found


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: First(nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)),
    "gru": lambda: First(nn.GRU(8, 6, batch_first=True)),
    "encoder": lambda: First(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)),
    "attention": lambda: First(nn.MultiheadAttention(8, 2, batch_first=True), 3),
    "words": Words,
    "weight norm": lambda: First(nn.utils.parametrizations.weight_norm(nn.Linear(8, 6))),
    "convolutions": lambda: nn.Sequential(nn.Conv1d(5, 7, 3), nn.GroupNorm(1, 7), nn.ConvTranspose1d(7, 3, 2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers_of_every_kind(name: str) -> None:
    x = votive.tensor(np.random.default_rng(1).standard_normal((4, 5, 8)).astype("f4"))
    plain = filled(LAYERS[name](), 5)
    plain(x).square().sum().backward()

    def run(shards: bool) -> dict[str, Any]:
        net: Any = filled(LAYERS[name](), 5)
        model = fully_shard(net, reshard_after_forward=True) if shards else DistributedDataParallel(net)
        model(x).square().sum().backward()
        return {n: p._sharding.gather(p.grad) if shards else p.grad for n, p in net.named_parameters()}

    for shards in (True, False):
        found = dist.simulate(run, 3, shards)[1]
        for key, p in plain.named_parameters():
            scale = float(p.grad.abs().max())
            np.testing.assert_allclose(found[key], p.grad, rtol=1e-4, atol=1e-5 * scale, err_msg=key)


def test_shards_say_what_they_are() -> None:
    def shown() -> str:
        return repr(fully_shard(nn.Linear(1, 3)).bias)

    said = dist.simulate(shown, 2)[1]
    assert said.startswith("Rows 2 to 3 of (3,). Parameter containing:\ntensor(["), said


# --- optimizers in shares ---------------------------------------------------------------------


def _train(model: Any, optimizer: Any, batches: Any, part: Any) -> None:
    for batch in batches:
        optimizer.zero_grad()
        squares(model, part(batch)).backward()
        optimizer.step()


def test_states_go_to_one_process_and_to_another_number_of_ranks() -> None:
    batches = data("mlp", 8, 12)
    plain = mlp()
    reference = votive.optim.Adam(plain.parameters(), lr=0.01)
    _train(plain, reference, batches, lambda b: b)

    def first() -> Any:
        model = DistributedDataParallel(mlp())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), votive.optim.Adam, lr=0.01)
        _train(model, optimizer, batches[:4], mine)
        optimizer.consolidate_state_dict()
        return (model.module.state_dict(), optimizer.state_dict()) if dist.get_rank() == 0 else None

    weights, states = dist.simulate(first, 2)[0]
    assert sorted(states["state"]) == list(range(6))

    def second(make: Any, wrap: Any, part: Any) -> Any:
        model = mlp()
        model.load_state_dict(weights)
        wrapped = wrap(model)
        optimizer = make(wrapped.parameters())
        optimizer.load_state_dict(states)
        _train(wrapped, optimizer, batches[4:], part)
        return [p.detach() for p in model.parameters()]

    results = dist.simulate(
        lambda: second(
            lambda p: ZeroRedundancyOptimizer(p, votive.optim.Adam, lr=1.0), DistributedDataParallel, mine
        ),
        3,
    )  # fmt: skip
    results.append(second(lambda p: votive.optim.Adam(p, lr=1.0), lambda m: m, lambda b: b))
    for found in results:
        for p, q in zip(found, plain.parameters(), strict=True):
            np.testing.assert_allclose(p, q.detach(), rtol=1e-4, atol=1e-6)


def test_shares_refuse_what_they_cannot_do(one_process: None) -> None:
    params = list(mlp().parameters())
    for name in ("parameters_as_bucket_view", "overlap_with_ddp"):
        options: dict[str, Any] = {name: True, "lr": 0.1}
        with pytest.raises(NotImplementedError, match=name):
            ZeroRedundancyOptimizer(params, votive.optim.SGD, **options)
    with pytest.raises(NotImplementedError, match="LBFGS"):
        ZeroRedundancyOptimizer(params, votive.optim.LBFGS)
    optimizer = ZeroRedundancyOptimizer(params, votive.optim.SGD, lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0], "lr": 1.0}]})


@pytest.mark.parity
def test_one_process_shares_as_torch_does(one_process: None) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.distributed")
    if not theirs.is_available() or not theirs.is_gloo_available():
        pytest.skip("this torch has no gloo")
    theirs_optim = pytest.importorskip("torch.distributed.optim")

    def outcomes(lib: Any, Z: Any) -> list[Any]:
        found: list[Any] = []
        for params in ([], [3], lib.ones(2)):
            try:
                found.append(Z(params, lib.optim.Adam, lr=1e-3))
            except (TypeError, ValueError) as e:
                found.append(f"{type(e).__name__}: {e}")
        layer = lib.nn.Linear(2, 2)
        optimizer = Z(layer.parameters(), lib.optim.SGD, lr=0.1, momentum=0.5)
        try:
            optimizer.state_dict()
        except RuntimeError as e:
            found.append(str(e))
        with lib.no_grad():
            for p in layer.parameters():
                p.fill_(1.0)
        layer(lib.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.consolidate_state_dict()
        saved = optimizer.state_dict()
        found.append({k: v["momentum_buffer"].tolist() for k, v in saved["state"].items()})
        found.append([g["params"] for g in saved["param_groups"]])
        return found

    theirs.init_process_group("gloo", store=theirs.HashStore(), rank=0, world_size=1)
    try:
        mine_now, theirs_now = (
            outcomes(votive, ZeroRedundancyOptimizer), outcomes(torch, theirs_optim.ZeroRedundancyOptimizer)
        )  # fmt: skip
    finally:
        theirs.destroy_process_group()
    assert [str(o).replace("votive", "torch") for o in mine_now] == [str(o) for o in theirs_now]
