"""Mixtures whose experts are on several ranks train as in one process that sees all batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
import votive.distributed as dist
import votive.models as models
from votive import nn
from votive.distributed import checkpoint
from votive.models.expert_parallel import Elsewhere, expert_parallel, expert_parameters
from votive.models.tensor_parallel import tensor_parallel
from votive.nn.parallel import DistributedDataParallel

FAMILIES: dict[str, dict[str, Any]] = {
    "Mixtral": {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 12},
    "Qwen2Moe": {
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12, "intermediate_size": 12,
        "shared_expert_intermediate_size": 12,
    },
}  # fmt: skip


def model(family: str) -> Any:
    votive.manual_seed(0)
    config = getattr(models, family + "Config")(
        vocab_size=13, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        **FAMILIES[family],
    )  # fmt: skip
    return getattr(models, family + "ForCausalLM")(config)


def train(family: str, how: str) -> list[float]:
    net: Any = model(family)
    rows = slice(None)
    if how == "experts":
        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        net = DistributedDataParallel(expert_parallel(net, mesh))
        each = 4 // mesh.size()
        rows = slice(each * mesh.get_rank(), each * (mesh.get_rank() + 1))
        group = mesh.get_group()
    elif how == "experts and heads":
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("ep", "tp"))
        net = expert_parallel(tensor_parallel(net, mesh["tp"]), mesh["ep"])
        with pytest.raises(RuntimeError, match="first"):
            tensor_parallel(net, mesh["tp"])
        net = DistributedDataParallel(net, device_mesh=mesh["ep"])
        at = mesh["ep"].get_local_rank()
        rows, group = slice(2 * at, 2 * at + 2), mesh["ep"].get_group()
    optimizer = votive.optim.AdamW(net.parameters(), lr=0.01)
    g, found = votive.Generator().manual_seed(2), []
    for _ in range(3):
        ids = votive.randint(0, 13, (4, 6), generator=g)[rows]
        optimizer.zero_grad()
        loss = net(ids, labels=ids).loss
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()
        mean = loss.detach()
        if how != "alone":
            dist.all_reduce(mean, dist.ReduceOp.AVG, group)
        found += [mean.item(), float(norm)]
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_experts_on_several_ranks_train_as_on_one(family: str, ranks: int) -> None:
    wanted = dist.simulate(train, 1, family, "alone")[0]
    for found in dist.simulate(train, ranks, family, "experts"):
        assert found == pytest.approx(wanted, rel=1e-4)


def test_experts_may_be_cut_themselves() -> None:
    wanted = dist.simulate(train, 1, "Mixtral", "alone")[0]
    for found in dist.simulate(train, 4, "Mixtral", "experts and heads"):
        assert found == pytest.approx(wanted, rel=1e-4)


def parts(folder: str) -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    whole = model("Mixtral").eval()
    net = expert_parallel(model("Mixtral"), mesh).eval()
    ids = votive.tensor([[1, 2, 3, 4]])
    assert votive.allclose(net(ids).logits, whole(ids).logits, atol=1e-6)
    tokens = net.generate(ids, max_new_tokens=4, do_sample=False, eos_token_id=None)
    assert votive.equal(tokens, whole.generate(ids, max_new_tokens=4, do_sample=False, eos_token_id=None))
    assert len(expert_parameters(net)) == 2 * 3 * (2 + mesh.get_rank())
    checkpoint.save({"model": net.state_dict()}, checkpoint_id=folder)
    again = model("Mixtral")
    with votive.no_grad():
        for p in again.parameters():
            p.zero_()
    checkpoint.load({"model": again.state_dict()}, checkpoint_id=folder)
    assert all(votive.equal(a, b) for a, b in zip(again.parameters(), whole.parameters(), strict=True))
    net = expert_parallel(model("Mixtral"), mesh)
    optimizer = votive.optim.AdamW(net.parameters(), lr=0.1)
    many = votive.arange(13).repeat(4, 1)
    net(many, labels=many).loss.backward()
    optimizer.step()
    weights, states = checkpoint.get_state_dict(net, optimizer)
    checkpoint.save({"model": weights, "optim": states}, checkpoint_id=f"{folder}-2")
    kept = [optimizer.state[p]["exp_avg"].clone() for p in expert_parameters(net)]
    for p in expert_parameters(net):
        optimizer.state[p]["exp_avg"].zero_()
    checkpoint.load({"model": weights, "optim": states}, checkpoint_id=f"{folder}-2")
    checkpoint.set_state_dict(net, optimizer, model_state_dict=weights, optim_state_dict=states)
    found = [optimizer.state[p]["exp_avg"] for p in expert_parameters(net)]
    assert all(votive.equal(a, b) for a, b in zip(kept, found, strict=True))
    with pytest.raises(NotImplementedError, match="no rank has all experts"):
        checkpoint.get_model_state_dict(net, options=checkpoint.StateDictOptions(full_state_dict=True))
    elsewhere = next(m for m in net.modules() if isinstance(m, Elsewhere))
    with pytest.raises(RuntimeError, match="on rank"):
        elsewhere(votive.ones(1, 16))
    with pytest.raises(RuntimeError, match="already"):
        expert_parallel(net, mesh)
    with pytest.raises(ValueError, match="no mixture"):
        expert_parallel(nn.Linear(1, 1), mesh)


def test_a_model_whose_experts_are_spread_computes_writes_and_is_stored(tmp_path: Path) -> None:
    dist.simulate(parts, 2, f"{tmp_path}/state")
