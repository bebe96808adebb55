"""Glass on decoders that are cut over ranks: the same addresses show, and edit, the same values as in one process."""

from __future__ import annotations

from typing import Any

import pytest

import votive
import votive.distributed as dist
import votive.glass as glass
from votive.glass.debug_ranks import debug_ranks
from votive.models.tensor_parallel import tensor_parallel

from .test_tensor_parallel import built

IDS = [[1, 2, 3, 4, 5]]


def model(family: str, ranks: int) -> Any:
    net = built(family).eval()
    return net if ranks == 1 else tensor_parallel(net, dist.init_device_mesh("cpu", (ranks,)))


def captured(family: str, ranks: int, addresses: list[str]) -> dict[str, Any]:
    net = model(family, ranks)
    with glass.capture(net, addresses) as seen, votive.no_grad():
        logits = net(votive.tensor(IDS)).logits
    return {"logits": logits, **{a: seen[a] for a in seen}}


ADDRESSES = {
    "shared keys": [
        "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj", "model.layers.0.self_attn.o_proj:in",
        "model.layers.0.self_attn", "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj:in",
        "layers.0.attn.q", "layers.0.attn.rot_k", "layers.0.attn.v", "layers.0.attn.pattern", "layers.0.attn.z",
        "layers.0.mlp.post", "layers.0.resid_mid", "model.embed_tokens", "lm_head",
    ],
    "one key head": ["model.layers.0.self_attn.v_proj", "layers.0.attn.k", "layers.0.attn.z", "layers.0.attn.scores"],
    "one product": ["transformer.h.0.attn.c_attn", "layers.0.attn.v", "transformer.h.0.mlp.c_proj:in"],
    "fused net": ["model.layers.0.mlp.gate_up_proj", "model.layers.0.self_attn.qkv_proj", "layers.0.mlp.pre"],
    "normed heads": ["model.layers.0.self_attn.q_norm", "model.layers.0.self_attn.k_norm:in", "layers.0.attn.rot_q"],
    "normed queries": ["model.layers.0.self_attn.q_norm", "layers.0.attn.rot_q"],
    "latent": ["model.layers.0.self_attn.kv_b_proj", "layers.0.attn.k", "layers.0.attn.z"],
}  # fmt: skip


@pytest.mark.parametrize("family", ADDRESSES)
def test_the_same_addresses_show_the_same_values(family: str) -> None:
    wanted = captured(family, 1, ADDRESSES[family])
    assert len(wanted) == len(ADDRESSES[family]) + 1
    for ranks in (2, 4) if family in ("shared keys", "one key head") else (2,):
        for found in dist.simulate(captured, ranks, family, ranks, ADDRESSES[family]):
            assert found.keys() == wanted.keys()
            for address, value in found.items():
                assert votive.allclose(value, wanted[address], atol=1e-5), address


def edited(family: str, ranks: int, at: str, what: Any) -> tuple[Any, Any]:
    net = model(family, ranks)
    with glass.patch(net, {at: what}) as edits:
        logits = net(votive.tensor(IDS)).logits
    return logits.detach(), edits


def swapped_heads(x: Any) -> Any:
    return x.flip(2)


EDITS = {
    "layers.0.attn.z": swapped_heads,
    "model.layers.0.self_attn.v_proj": lambda x: x * 2,
    "layers.0.mlp.post": lambda x: x.flip(-1),
    "model.layers.0.mlp.down_proj:in": lambda x: x.roll(1, -1),
    "layers.0.attn.pattern": lambda x: x.roll(1, 1),
}


@pytest.mark.parametrize("at", EDITS)
def test_the_same_edits_have_the_same_effect(at: str) -> None:
    plain = captured("shared keys", 1, ["lm_head"])["logits"]
    wanted, _ = edited("shared keys", 1, at, EDITS[at])
    assert not votive.allclose(wanted, plain, atol=1e-4)
    for ranks in (2, 4):
        for found, _ in dist.simulate(edited, ranks, "shared keys", ranks, at, EDITS[at]):
            assert votive.allclose(found, wanted, atol=1e-5), ranks


def gradients(ranks: int) -> Any:
    net = model("shared keys", ranks).train()
    with glass.patch(net, {"layers.0.attn.z": swapped_heads}):
        net(votive.tensor(IDS), labels=votive.tensor(IDS)).loss.backward()
    found = [net.model.layers[0].self_attn.q_proj.weight.grad, net.model.embed_tokens.weight.grad]
    return [g.full_tensor() if ranks > 1 else g for g in found]


def test_gradients_pass_through_edits_that_mix_heads_of_ranks() -> None:
    for wanted, found in zip(gradients(1), dist.simulate(gradients, 2, 2)[1], strict=True):
        assert votive.allclose(found, wanted, atol=1e-6)


def refused() -> None:
    net = model("shared keys", 2)
    with pytest.raises(NotImplementedError, match="not shown"), glass.capture(net, "layers.0.attn.result"):
        net(votive.tensor(IDS))


def test_what_several_ranks_cannot_show_is_refused() -> None:
    dist.simulate(refused, 2)


def look(d: Any) -> Any:
    d.break_at("layers.0.attn.z")
    d.run()
    heads = d.value
    d.value = heads.detach().flip(2)
    d.run(until="model.layers.0.mlp.down_proj")
    stood = str(d.address)
    neurons = d.inputs[0].clone()
    with pytest.raises(TypeError, match="pickle"):
        d.break_at("lm_head", when=lambda frame: True)
    logits = d.finish().logits
    return heads.detach(), stood, neurons.detach(), logits.detach()


def debugged(ranks: int) -> Any:
    return debug_ranks(look, model("shared keys", ranks), votive.tensor(IDS), sites="layers.0.attn.z")


def test_one_debugger_stops_all_ranks_at_one_address() -> None:
    wanted = dist.simulate(debugged, 1, 1)[0]
    assert wanted[1] == "model.layers.0.mlp.down_proj"
    for found in dist.simulate(debugged, 2, 2):
        assert found[1] == wanted[1]
        for a, b in zip(found[:1] + found[2:], wanted[:1] + wanted[2:], strict=True):
            assert votive.allclose(a, b, atol=1e-5)


def apart(d: Any) -> None:
    d.run(until="1")


def differing() -> Any:
    parts = [votive.nn.Identity(), votive.nn.Identity()]
    net = votive.nn.Sequential(*parts) if dist.get_rank() == 0 else votive.nn.Sequential(parts[0])
    with pytest.raises(RuntimeError, match=r"different addresses|has ended with|matches no"):
        debug_ranks(apart, net, votive.ones(1))


def test_ranks_that_stand_apart_are_an_error() -> None:
    dist.simulate(differing, 2)
