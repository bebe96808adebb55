"""Cut models on a mesh of two dimensions: with data parallel copies and with shards, and their checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
import votive.distributed as dist
import votive.models as models
from votive import nn
from votive.distributed import checkpoint
from votive.distributed.fsdp import fully_shard
from votive.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from votive.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from votive.models.tensor_parallel import tensor_parallel
from votive.nn.parallel import DistributedDataParallel


def mlp() -> nn.Module:
    votive.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 6), nn.LayerNorm(6), nn.Linear(6, 3))


def gpt() -> nn.Module:
    votive.manual_seed(0)
    config = models.LlamaConfig(
        vocab_size=15, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=True,
    )  # fmt: skip
    return models.LlamaForCausalLM(config)


def mixture() -> nn.Module:
    votive.manual_seed(0)
    config = models.MixtralConfig(
        vocab_size=15, hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=4,
    )  # fmt: skip
    return models.MixtralForCausalLM(config)


MODELS = {"mlp": mlp, "gpt": gpt, "mixture": mixture}


def loss_of(kind: str, model: Any, g: votive.Generator, part: slice) -> Any:
    if kind == "mlp":
        x, y = votive.randn(4, 6, generator=g), votive.randn(4, 3, generator=g)
        return (model(x[part]) - y[part]).square().mean()
    ids = votive.randint(0, 15, (4, 5), generator=g)[part]
    return model(ids, labels=ids).loss


def cut(kind: str, model: nn.Module, mesh: Any) -> None:
    if kind == "mlp":
        plan: Any = {"0": ColwiseParallel(), "2": RowwiseParallel(), "4": ColwiseParallel(output_layouts=Replicate())}
        parallelize_module(model, mesh, plan)
    else:
        tensor_parallel(model, mesh)


def parallel(kind: str, how: str) -> tuple[Any, Any]:
    """A model on two by two ranks."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = MODELS[kind]()
    cut(kind, model, mesh["tp"])
    if how == "ddp":
        return DistributedDataParallel(model, device_mesh=mesh["dp"]), mesh
    if kind == "gpt":
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"]), mesh


def train(kind: str, how: str, steps: int = 3) -> list[float]:
    model, rows = (MODELS[kind](), slice(None)) if how == "alone" else (None, None)
    if model is None:
        model, mesh = parallel(kind, how)
        at = mesh["dp"].get_local_rank()
        rows = slice(2 * at, 2 * at + 2)
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.02)
    g, found = votive.Generator().manual_seed(3), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(kind, model, g, rows)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        mean = loss.detach()
        if how != "alone":
            dist.all_reduce(mean, dist.ReduceOp.AVG, mesh["dp"].get_group())
        found += [mean.item(), float(norm)]
    return found


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("how", ["ddp", "shards"])
def test_cut_models_with_copies_or_in_shards_train_as_in_one_process(kind: str, how: str) -> None:
    wanted = dist.simulate(train, 1, kind, "alone")[0]
    for found in dist.simulate(train, 4, kind, how):
        assert found == pytest.approx(wanted, rel=1e-4)


def save_and_go_on(how: str, folder: str) -> list[float]:
    model, _ = parallel("gpt", how)
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.02)
    g = votive.Generator().manual_seed(3)

    def one() -> float:
        optimizer.zero_grad()
        loss = loss_of("gpt", model, g, slice(None))
        loss.backward()
        optimizer.step()
        return loss.item()

    one()
    weights, states = checkpoint.get_state_dict(model, optimizer)
    checkpoint.save({"model": weights, "optim": states}, checkpoint_id=folder)
    return [one(), one()]


def load_and_go_on(how: str, folder: str) -> list[float]:
    if how == "alone":
        model: Any = gpt()
    elif how == "tp":
        model = tensor_parallel(gpt(), dist.init_device_mesh("cpu", (2,)))
    else:
        model, _ = parallel("gpt", how)
    with votive.no_grad():
        for p in model.parameters():
            p.zero_()
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.02)
    # States exist once there was a step.
    for p in model.parameters():
        p.grad = votive.zeros_like(p)
    optimizer.step()
    weights, states = checkpoint.get_state_dict(model, optimizer)
    state = {"model": weights, "optim": states}
    checkpoint.load(state, checkpoint_id=folder)
    checkpoint.set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    g = votive.Generator().manual_seed(3)
    votive.randint(0, 15, (4, 5), generator=g)
    found = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = loss_of("gpt", model, g, slice(None))
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("how", ["ddp", "shards"])
def test_a_checkpoint_of_a_cut_model_goes_on_however_the_next_one_is_cut(how: str, tmp_path: Path) -> None:
    wanted = dist.simulate(save_and_go_on, 4, how, f"{tmp_path}/state")[0]
    for other, ranks in (("alone", 1), ("tp", 2), ("ddp", 4), ("shards", 4)):
        for found in dist.simulate(load_and_go_on, ranks, other, f"{tmp_path}/state"):
            assert found == pytest.approx(wanted, rel=1e-4), other


def whole_states(how: str) -> None:
    model, _ = parallel("gpt", how)
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.02)
    loss_of("gpt", model, votive.Generator().manual_seed(3), slice(None)).backward()
    optimizer.step()
    options = checkpoint.StateDictOptions(full_state_dict=True)
    weights, states = checkpoint.get_state_dict(model, optimizer, options=options)
    plain = gpt()
    assert {n: tuple(v.shape) for n, v in weights.items()} == {n: tuple(v.shape) for n, v in plain.state_dict().items()}
    assert not any(isinstance(v, DTensor) for v in weights.values())
    other, _ = parallel("gpt", "shards" if how == "ddp" else "ddp")
    again = votive.optim.AdamW(other.parameters(), lr=0.02)
    checkpoint.set_state_dict(other, again, model_state_dict=weights, optim_state_dict=states, options=options)
    back, moments = checkpoint.get_state_dict(other, again, options=options)
    assert all(votive.equal(back[n], weights[n]) for n in weights)
    for n, one in states["state"].items():
        assert votive.equal(moments["state"][n]["exp_avg"], one["exp_avg"]), n


def test_whole_states_fit_however_a_model_is_cut() -> None:
    for how in ("ddp", "shards"):
        dist.simulate(whole_states, 4, how)


def stored(folder: str) -> None:
    mesh = dist.init_device_mesh("cpu", (2, 2))
    whole = votive.arange(35.0).view(5, 7)
    for i, lies in enumerate(
        ([Shard(0), Shard(1)], [Shard(1), Shard(1)], [Replicate(), Shard(0)], [Shard(0), Shard(0)])
    ):
        x = distribute_tensor(whole, mesh, lies)
        checkpoint.save({"x": x, "n": distribute_tensor(votive.tensor(3.0), mesh)}, checkpoint_id=f"{folder}/{i}")
        back = {"x": votive.zeros_like(x), "n": distribute_tensor(votive.tensor(0.0), mesh)}
        other = distribute_tensor(votive.zeros(5, 7), mesh, lies[::-1])
        checkpoint.load(back, checkpoint_id=f"{folder}/{i}")
        checkpoint.load({"x": other, "n": back["n"]}, checkpoint_id=f"{folder}/{i}")
        assert votive.equal(back["x"].full_tensor(), whole)
        assert votive.equal(other.full_tensor(), whole)
        assert back["n"].item() == 3.0
        with pytest.raises(ValueError, match="leave out no_dist"):
            checkpoint.save({"x": x}, checkpoint_id=f"{folder}/alone", no_dist=True)
        with pytest.raises(ValueError, match="has the shape"):
            checkpoint.load({"x": distribute_tensor(votive.zeros(2), mesh)}, checkpoint_id=f"{folder}/{i}")


def test_distributed_tensors_are_stored_and_read_as_they_lie(tmp_path: Path) -> None:
    dist.simulate(stored, 4, str(tmp_path))


def norms() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    g = votive.Generator().manual_seed(1)
    grads = [votive.randn(s, generator=g) for s in ((5, 3), (4,), (1, 2))]
    lies: list[Any] = [Shard(0), Partial(), Replicate()]
    spread = []
    for t, p in zip(grads, lies, strict=True):
        x = distribute_tensor(t, mesh, [Replicate() if p.is_partial() else p])
        spread.append(DTensor.from_local(x.to_local() / 2, mesh, [p]) if p.is_partial() else x)
    for order in (1.0, 2.0, 3.0, float("inf")):
        found = nn.utils.get_total_norm(spread, order)
        assert isinstance(found, DTensor)
        assert found.item() == pytest.approx(nn.utils.get_total_norm(grads, order).item(), rel=1e-5)
    mixed = nn.utils.get_total_norm([spread[0], grads[1]])
    assert mixed.item() == pytest.approx(nn.utils.get_total_norm(grads[:2]).item(), rel=1e-5)
    p = distribute_tensor(votive.ones(5), mesh, [Shard(0)]).requires_grad_()
    for kind in (votive.optim.SGD, votive.optim.Adam, votive.optim.RMSprop, votive.optim.Lion, votive.optim.Adagrad):
        alone = votive.ones(5, requires_grad=True)
        p = distribute_tensor(votive.ones(5), mesh, [Shard(0)]).requires_grad_()
        for foreach in (None, False):
            one, two = (kind([t], lr=0.1, foreach=foreach) for t in (alone, p))
            alone.grad, p.grad = votive.arange(5.0), distribute_tensor(votive.arange(5.0), mesh, [Shard(0)])
            one.step()
            two.step()
        assert votive.allclose(p.full_tensor(), alone), kind


def test_norms_and_optimizers_see_the_whole() -> None:
    dist.simulate(norms, 2)
