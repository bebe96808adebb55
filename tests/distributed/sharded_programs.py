"""What every rank does with states and parameters that are spread over ranks, on threads and on processes.

`python -m tests.distributed.sharded_programs` runs them one after the other on MPI.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests.distributed.training import (
    alone,
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
from votive.core.errors import UnsupportedError
from votive.distributed import checkpoint
from votive.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    ShardedParameter,
    fully_shard,
    saved,
)
from votive.distributed.optim import ZeroRedundancyOptimizer
from votive.nn.parallel import DistributedDataParallel

STEPS = 10
SIZE = 12  # divides among 1 to 4 ranks


def shares_of_an_optimizer_step_as_one() -> None:
    batches = data("mlp", STEPS, SIZE)
    for kind, options in ((votive.optim.AdamW, {"lr": 0.01}), (votive.optim.SGD, {"lr": 0.1, "momentum": 0.9})):
        wanted, plain = alone("mlp", batches, lambda p, k=kind, o=options: k(p, **o))  # type: ignore[misc]
        losses, model = together(
            "mlp", batches, DistributedDataParallel,
            lambda p, k=kind, o=options: ZeroRedundancyOptimizer(p, k, **o),  # type: ignore[misc]
        )  # fmt: skip
        np.testing.assert_allclose(losses, wanted, rtol=2e-5)
        same_state({k.removeprefix("module."): v for k, v in model.state_dict().items()}, plain.state_dict())
        same_on_all_ranks(model.parameters())


def shares_hold_each_state_once() -> None:
    model = DistributedDataParallel(mlp())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), votive.optim.Adam, lr=0.01)
    squares(model, mine(data("mlp", 1, SIZE)[0])).backward()
    optimizer.step()
    held = votive.tensor([len(optimizer.state), sum(s["exp_avg"].numel() for s in optimizer.state.values())])
    most = held.clone()
    dist.all_reduce(held)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    sizes = [p.numel() for p in model.parameters()]
    assert held.tolist() == [len(sizes), sum(sizes)]
    assert most[1].item() <= max(max(sizes), sum(sizes) // dist.get_world_size() + max(sizes))
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        optimizer.state_dict()


def groups_and_schedules_reach_all_shares() -> None:
    batches = data("mlp", 6, SIZE)

    def groups(model: nn.Module) -> list[dict[str, Any]]:
        named = list(model.named_parameters())
        return [
            {"params": [p for n, p in named if n.endswith("weight")], "lr": 0.02, "weight_decay": 0.1},
            {"params": [p for n, p in named if n.endswith("bias")]},
        ]

    def train(model: nn.Module, make: Callable[[Any], Any], part: Callable[[Any], Any]) -> nn.Module:
        optimizer = make(groups(model)[:1])
        optimizer.add_param_group(groups(model)[1])
        schedule = votive.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        for batch in batches:
            optimizer.zero_grad()
            squares(model, part(batch)).backward()
            optimizer.step()
            schedule.step()
        assert [g["lr"] for g in optimizer.param_groups] == [0.02 / 8, 0.01 / 8]
        return model

    plain = train(mlp(), lambda g: votive.optim.AdamW(g, lr=0.01), lambda b: b)
    found = train(
        DistributedDataParallel(mlp()), lambda g: ZeroRedundancyOptimizer(g, votive.optim.AdamW, lr=0.01), mine
    )
    same_state({k.removeprefix("module."): v for k, v in found.state_dict().items()}, plain.state_dict())


# --- parameters in shards ---------------------------------------------------------------------


def sharded(model: Any, **options: Any) -> Any:
    """Each layer by itself, then what is left."""
    layers = model.transformer.h if hasattr(model, "transformer") else list(model)
    for layer in layers:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, **options)
    return fully_shard(model, **options)


def whole(model: nn.Module) -> dict[str, Any]:
    return {n: p.full_tensor() if isinstance(p, ShardedParameter) else p for n, p in model.named_parameters()}


def _trains_as_one(kind: str, **options: Any) -> None:
    batches = data(kind, STEPS, SIZE)
    wanted, plain = alone(kind, batches)
    losses, model = together(
        kind, batches, lambda m: sharded(nn.SyncBatchNorm.convert_sync_batchnorm(m), **options)
    )  # fmt: skip
    np.testing.assert_allclose(losses, wanted, rtol=2e-5)
    same_state(whole(model), {n: p.detach() for n, p in plain.named_parameters()}, 1e-4)
    held, full = (sum(p.numel() for p in m.parameters()) for m in (model, plain))
    spare = sum(p.numel() // max(p.shape[0], 1) for p in plain.parameters())
    mesh = options.get("mesh")
    assert held <= full / (mesh.shape[-1] if mesh is not None else dist.get_world_size()) + spare


def a_sharded_mlp_learns_as_in_one_process() -> None:
    for reshards in (None, True, False):
        _trains_as_one("mlp", reshard_after_forward=reshards)


def a_sharded_convolutional_net_learns_as_in_one_process() -> None:
    _trains_as_one("cnn")


def a_sharded_gpt_learns_as_in_one_process() -> None:
    _trains_as_one("gpt", reshard_after_forward=True)


def shards_of_replicas_learn_as_in_one_process() -> None:
    count = dist.get_world_size()
    if count % 2 == 0:
        mesh = dist.init_device_mesh("cpu", (2, count // 2), mesh_dim_names=("replicate", "shard"))
        _trains_as_one("mlp", mesh=mesh)
    _trains_as_one("mlp", mesh=dist.init_device_mesh("cpu", (count,)))
    _trains_as_one("mlp", offload_policy=CPUOffloadPolicy())


def graphs_hold_no_gathered_parameters() -> None:
    model = sharded(mlp(), reshard_after_forward=True)
    loss = squares(model, mine(data("mlp", 1, SIZE)[0]))
    units = [m._fsdp_unit for m in model.modules() if isinstance(m, FSDPModule)]
    assert len(units) == 4
    assert not any(u.fulls or u.again or u.begun for u in units)
    assert not any(u in units for u, _ in saved.LIVE.values())
    loss.backward()
    assert not any(u.fulls or u.again or u.begun for u in units)
    assert model[0].weight.grad.shape == model[0].weight.shape


def large_gradients_are_clipped_as_in_one_process() -> None:
    batch = data("mlp", 1, SIZE)[0]
    plain, model = mlp(), sharded(mlp())
    for order in (2.0, 1.0, float("inf"), 3.0):
        plain.zero_grad()
        model.zero_grad()
        squares(plain, batch).backward()
        squares(model, mine(batch)).backward()
        wanted = nn.utils.clip_grad_norm_(plain.parameters(), 0.1, order)
        found = nn.utils.clip_grad_norm_(model.parameters(), 0.1, order)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            np.testing.assert_allclose(p.grad, q.grad[p._sharding.place()], rtol=1e-4, atol=1e-7)


def sharded_gradients_may_add_up_before_they_are_sent() -> None:
    batches = data("mlp", 3, SIZE)
    plain, model = mlp(), sharded(mlp())
    for batch in batches:
        squares(plain, batch).backward()
        model.set_requires_gradient_sync(batch is batches[-1])
        squares(model, mine(batch)).backward()
        if batch is not batches[-1]:
            assert all(p.grad is None for p in model.parameters())
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad[p._sharding.place()], rtol=1e-4, atol=1e-6)


def sharded_parameters_may_stay_unused_or_frozen() -> None:
    rank, count = dist.get_rank(), dist.get_world_size()

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.idle, self.frozen = (nn.Linear(2, 2) for _ in range(4))
            self.frozen.requires_grad_(False)

        def forward(self, x: Tensor, way: int) -> Tensor:
            x = self.frozen(x)
            return self.a(x) if way == 0 else self.b(x)

    for reshards in (True, False):
        model: Any = fully_shard(Branches(), reshard_after_forward=reshards)
        model(votive.ones(1, 2), rank % 2).sum().backward()
        for layer, n in ((model.a, (count + 1) // 2), (model.b, count // 2)):
            if n:
                np.testing.assert_allclose(layer.bias.grad, np.full(layer.bias.shape, n / count), rtol=1e-6)
            else:
                assert layer.bias.grad is None
        assert model.idle.weight.grad is None
        assert model.frozen.weight.grad is None


def sharded_parameters_compute_in_a_half_type() -> None:
    batch = data("mlp", 1, SIZE)[0]
    plain = mlp()
    squares(plain, batch).backward()
    seen: list[Any] = []
    for policy, kind in (
        (MixedPrecisionPolicy(votive.bfloat16, votive.float32, votive.float32), votive.float32),
        (MixedPrecisionPolicy(votive.bfloat16), votive.bfloat16),
    ):
        net = mlp()
        net[0].register_forward_hook(lambda m, args, y: seen.append((m.weight.dtype, args[0].dtype, y.dtype)))
        model = sharded(net, mp_policy=policy)
        x, y = mine(batch)
        found = model(x)
        assert found.dtype is kind
        (found.float() - y).square().mean().backward()
        assert seen.pop() == (votive.bfloat16,) * 3
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            assert (p.dtype, p.grad.dtype) == (votive.float32, votive.float32)
            np.testing.assert_allclose(p.grad, q.grad[p._sharding.place()], rtol=0.1, atol=0.02)


def passes_without_backward_do_no_harm() -> None:
    batches = data("mlp", 4, SIZE)
    plain, model = mlp(), sharded(mlp())
    optimizers = [optimizer_of(plain.parameters()), optimizer_of(model.parameters())]
    for batch in batches:
        with votive.no_grad():
            model(batch[0])
        squares(model, mine(batch))  # nobody asks for its gradients
        for net, optimizer, part in ((plain, optimizers[0], batch), (model, optimizers[1], mine(batch))):
            optimizer.zero_grad()
            squares(net, part).backward()
            optimizer.step()
        np.testing.assert_allclose(model(batch[0]).detach(), plain(batch[0]).detach(), rtol=1e-4, atol=1e-5)
    loss = squares(sharded(net := mlp(), reshard_after_forward=True), mine(batches[0]))
    with votive.no_grad():
        for p in net.parameters():
            p.mul_(1.0)
    with pytest.raises(RuntimeError, match="in-place operation since forward"):
        loss.backward()


def parameters_sent_for_too_early_are_sent_for_again() -> None:
    batch = data("mlp", 1, SIZE)[0]
    plain, model = mlp(), sharded(mlp())
    for m in model.modules():
        if isinstance(m, FSDPModule):
            m._fsdp_unit.begin()
    with votive.no_grad():
        for p in (*model.parameters(), *plain.parameters()):
            p.mul_(0.5)
    with votive.inference_mode():
        np.testing.assert_allclose(model(batch[0]), plain(batch[0]), rtol=1e-5, atol=1e-6)
    squares(plain, batch).backward()
    squares(model, mine(batch)).backward()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad[p._sharding.place()], rtol=1e-4, atol=1e-6)


def checkpoints_of_all_ranks_are_read_by_all() -> None:
    folder: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, 0)
    model, other = sharded(mlp()), fully_shard(mlp())
    with votive.no_grad():
        for p in other.parameters():
            p.zero_()
    checkpoint.save({"model": model.state_dict(), "step": 3}, checkpoint_id=f"{folder[0]}/state")
    checkpoint.load({"model": other.state_dict(), "step": 0}, checkpoint_id=f"{folder[0]}/state")
    for a, b in zip(whole(model).values(), whole(other).values(), strict=True):
        np.testing.assert_array_equal(a.detach(), b.detach())
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])


def models_on_the_meta_device_get_memory_for_their_shards_alone() -> None:
    batch = data("mlp", 1, SIZE)[0]
    plain = mlp()
    sizes = ((6, 12), (12, 12), (12, 3))
    first, second, third = (nn.Linear(n, m, device="meta") for n, m in sizes)
    model: Any = nn.Sequential(first, nn.Tanh(), second, nn.GELU(), third)
    model = sharded(model)
    assert all(p.is_meta for p in model.parameters())
    with pytest.raises(RuntimeError, match="weight is on the meta device"):
        model(batch[0])
    model.to_empty(device="cpu")
    state = plain.state_dict() if dist.get_rank() == 0 else {}
    options = checkpoint.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    checkpoint.set_model_state_dict(model, state, options=options)
    squares(plain, batch).backward()
    squares(model, mine(batch)).backward()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad[p._sharding.place()], rtol=1e-4, atol=1e-6)


def sharded_regions_may_be_computed_again() -> None:
    batch = data("mlp", 1, SIZE)[0]
    plain = mlp()
    squares(plain, batch).backward()
    for reentrant in (False, True):
        net = mlp()
        for layer in net:
            if any(True for _ in layer.parameters()):
                fully_shard(layer)
        x, y = mine(batch)
        for _ in range(2):
            net.zero_grad()
            found = votive.utils.checkpoint.checkpoint(net, x.requires_grad_(), use_reentrant=reentrant)
            (found - y).square().mean().backward()
        for p, q in zip(net.parameters(), plain.parameters(), strict=True):
            np.testing.assert_allclose(p.grad, q.grad[p._sharding.place()], rtol=1e-4, atol=1e-6)


def whole_parameters_may_be_asked_for() -> None:
    plain, model = mlp(), sharded(mlp())
    layers = [m for m in model.modules() if isinstance(m, FSDPModule)]
    handle = layers[1].unshard(async_op=True)
    assert handle is not None
    handle.wait()
    np.testing.assert_array_equal(model[0].weight.detach(), plain[0].weight.detach())
    batch = data("mlp", 1, SIZE)[0]
    squares(model, mine(batch)).backward()
    layers[1].reshard()
    squares(plain, batch).backward()
    layers[0].set_modules_to_forward_prefetch([layers[1], layers[2]])
    layers[2].set_modules_to_backward_prefetch([layers[1]])
    model.set_reshard_after_forward(True)
    model.set_reshard_after_backward(True)
    squares(model, mine(batch)).backward()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, 2 * q.grad[p._sharding.place()], rtol=1e-4, atol=1e-6)
    model.zero_grad()
    model.set_reshard_after_forward(False)
    for layer in layers:
        layer.set_gradient_divide_factor(1.0)
    squares(model, mine(batch)).backward()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(
            p.grad, dist.get_world_size() * q.grad[p._sharding.place()], rtol=1e-4, atol=1e-6
        )  # fmt: skip


def what_one_rank_finds_all_ranks_skip() -> None:
    model = sharded(mlp())
    optimizer = optimizer_of(model.parameters())
    scaler = votive.amp.GradScaler("cpu", init_scale=8.0)
    before = whole(model)
    scaler.scale(squares(model, mine(data("mlp", 1, SIZE)[0]))).backward()
    if dist.get_rank() == dist.get_world_size() - 1:
        model[0].weight.grad[0, 0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0
    for a, b in zip(whole(model).values(), before.values(), strict=True):
        np.testing.assert_array_equal(a.detach(), b.detach())


def what_cannot_be_sharded_is_refused() -> None:
    two: Any = 2
    model = sharded(mlp())
    for kind, text, call in (
        (ValueError, "already been applied", lambda: fully_shard(model)),
        (TypeError, "one module", lambda: fully_shard([nn.Linear(1, 1)])),  # type: ignore[type-var]
        (TypeError, "cannot be copied", lambda: copy.deepcopy(model)),
        (NotImplementedError, "not a number", lambda: fully_shard(nn.Linear(1, 1), reshard_after_forward=two)),
        (NotImplementedError, "by rows", lambda: fully_shard(nn.Linear(1, 1), shard_placement_fn=print)),
        (ValueError, "scalar parameters", lambda: fully_shard(nn.ParameterList([votive.ones(())]))),
        (UnsupportedError, "Muon.*whole parameters", lambda: votive.optim.Muon([model[0].weight])),
        (UnsupportedError, "Adafactor", lambda: votive.optim.Adafactor(model.parameters())),
        (UnsupportedError, "LBFGS", lambda: votive.optim.LBFGS(model.parameters())),
    ):
        with pytest.raises(kind, match=text):
            call()
    batch = mine(data("mlp", 1, SIZE)[0])
    with pytest.raises(NotImplementedError, match="create_graph"):
        squares(model, batch).backward(create_graph=True)
    model = sharded(mlp())
    with pytest.raises(NotImplementedError, match=r"kept by loss.backward\(\)"):
        votive.autograd.grad(squares(model, batch), list(model.parameters()))
    model = sharded(mlp())
    model[0]._parameters["weight"] = nn.Parameter(votive.ones(12, 6))
    with pytest.raises(RuntimeError, match="weight was replaced"):
        squares(model, batch)


PROGRAMS: dict[str, Callable[[], None]] = {
    fn.__name__: fn
    for fn in (
        shares_of_an_optimizer_step_as_one, shares_hold_each_state_once, groups_and_schedules_reach_all_shares,
        a_sharded_mlp_learns_as_in_one_process, a_sharded_convolutional_net_learns_as_in_one_process,
        a_sharded_gpt_learns_as_in_one_process, shards_of_replicas_learn_as_in_one_process,
        graphs_hold_no_gathered_parameters, large_gradients_are_clipped_as_in_one_process,
        sharded_gradients_may_add_up_before_they_are_sent, sharded_parameters_may_stay_unused_or_frozen,
        sharded_parameters_compute_in_a_half_type, passes_without_backward_do_no_harm,
        sharded_regions_may_be_computed_again, whole_parameters_may_be_asked_for, what_one_rank_finds_all_ranks_skip,
        what_cannot_be_sharded_is_refused, parameters_sent_for_too_early_are_sent_for_again,
        checkpoints_of_all_ranks_are_read_by_all, models_on_the_meta_device_get_memory_for_their_shards_alone,
    )
}  # fmt: skip


if __name__ == "__main__":
    run_on_mpi(PROGRAMS)
