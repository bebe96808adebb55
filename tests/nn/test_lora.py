"""Low-rank adaptation: what it adds, where it goes, and merging it."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import votive
from tests.nn.arrays import close, normal
from votive import nn


def adapted(**options: Any) -> nn.LoRALinear:
    layer = nn.LoRALinear(nn.Linear(6, 4).double(), r=2, alpha=3.0, **options)
    with votive.no_grad():
        layer.lora_B.copy_(normal(4, 2))
    return layer


def test_lora_adds_the_scaled_product() -> None:
    layer = adapted()
    x = normal(3, 6)
    want = layer.base(x) + 1.5 * (x @ layer.lora_A.T @ layer.lora_B.T)
    close(layer(x), want)
    close(x @ layer.weight.T + layer.bias, want)
    close(layer.to_linear()(x), want)
    assert adapted(rslora=True).scaling == pytest.approx(3 / math.sqrt(2))
    assert list(layer.state_dict()) == ["lora_A", "lora_B", "base.weight", "base.bias"]


def test_merging_changes_nothing_and_unmerging_is_exact() -> None:
    layer = adapted()
    x = normal(3, 6)
    before, weight = layer(x), layer.base.weight.detach().clone()
    close(layer.merge()(x), before)
    assert layer.merged
    assert "merged" in repr(layer)
    assert not votive.equal(layer.base.weight, weight)
    layer.merge()
    close(layer(x), before)
    with pytest.raises(RuntimeError, match="unmerge"):
        layer.state_dict()
    layer.unmerge().unmerge()
    assert votive.equal(layer.base.weight, weight)
    assert votive.equal(layer(x), before)


def test_dropout_acts_on_the_adaptation_only() -> None:
    layer = adapted(dropout=1.0)
    x = normal(3, 6)
    close(layer(x), layer.base(x))
    assert not np.allclose(layer.eval()(x).detach().numpy(), layer.base(x).detach().numpy())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.GroupedQueryAttention(8, 2) for _ in range(2)])
        self.head = nn.Linear(8, 3)
        self.tied = self.head

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x) + self.tied(x)


def test_lora_goes_where_the_patterns_say_and_trains_alone() -> None:
    votive.manual_seed(0)
    net = Net().double()
    x = normal(2, 3, 8)
    want = net(x)
    names = nn.apply_lora(net, ["layers.*.q_proj", "v_proj", "head"], r=2)
    assert names == ["layers.0.q_proj", "layers.0.v_proj", "layers.1.q_proj", "layers.1.v_proj", "head"]
    assert net.head is net.tied
    assert isinstance(net.layers[0].k_proj, nn.Linear)
    close(net(x), want)
    net(x).square().sum().backward()
    trained = {k for k, p in net.named_parameters() if p.grad is not None}
    assert trained == {f"{n}.lora_{c}" for n in names for c in "AB"}
    with votive.no_grad():
        for k, p in net.named_parameters():
            if p.requires_grad:
                p.add_(normal(*p.shape, seed=len(k)), alpha=0.1)
    adapted, alone = net(x), nn.lora_state_dict(net)
    assert set(alone) >= trained
    fresh = Net().double()
    fresh.load_state_dict({k.replace(".base", ""): v for k, v in net.state_dict().items() if "lora" not in k})
    nn.apply_lora(fresh, ["q_proj", "v_proj", "head"], r=2)
    assert not fresh.load_state_dict(alone, strict=False).unexpected_keys
    close(fresh(x), adapted)
    assert nn.merge_lora(net) == names
    assert net.head is net.tied
    assert not any(isinstance(m, nn.LoRALinear) for m in net.modules())
    close(net(x), adapted)


def test_lora_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"match none of the Linear layers head"):
        nn.apply_lora(nn.ModuleDict({"head": nn.Linear(2, 2)}), "q_proj")
    with pytest.raises(TypeError, match="Conv1d"):
        nn.LoRALinear(nn.Conv1d(1, 1, 1))
    with pytest.raises(ValueError, match="r must be positive"):
        nn.LoRALinear(nn.Linear(2, 2), r=0)


def test_a_second_adaptation_leaves_the_first_alone() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    nn.apply_lora(net, "0")
    assert nn.apply_lora(net, "*") == ["1"]
    twin = copy.deepcopy(net)
    assert votive.equal(twin(votive.ones(1, 4)), net(votive.ones(1, 4)))
