"""States of eight bits: near the codes' numbers, exact through checkpoints, and steps near those of 32 bits."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import votive
from votive.core.errors import UnsupportedError
from votive.optim.dynamic_map import BLOCK, decode, dynamic_map, encode_, zeros

RULES: dict[str, dict[str, Any]] = {
    "Adam": {"lr": 1e-2},
    "AdamW": {"lr": 1e-2},
    "Lion": {"lr": 3e-3},
    "SGD": {"lr": 0.5, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3},
}


def path(name: str, dtype: Any = votive.float32, steps: int = 20, opt: Any = None, **kw: Any) -> tuple[Any, Any, Any]:
    """Weights before and after so many steps on a matrix problem, and the optimizer."""
    g = votive.Generator().manual_seed(0)
    first = votive.randn(64, 96, generator=g).to(dtype)
    a, target = votive.randn(32, 64, generator=g), votive.randn(32, 96, generator=g)
    w = first.clone().requires_grad_()
    opt = getattr(votive.optim, name)([w], **kw)
    for _ in range(steps):
        opt.zero_grad()
        ((a @ w.float() / 8 - target) ** 2).mean().backward()
        opt.step()
    return first.float(), w.detach().float(), opt


@pytest.mark.parametrize("signed", [True, False])
def test_a_number_becomes_the_nearest_of_its_blocks_map(signed: bool) -> None:
    source = np.random.default_rng(0)
    x = source.standard_normal(3 * BLOCK + 40).astype(np.float32) * 10.0 ** source.integers(-6, 3, 3 * BLOCK + 40)
    x = x if signed else np.abs(x)
    x[:BLOCK] = 0
    t = votive.from_numpy(x.astype(np.float32))
    codes, absmax = zeros(t, signed)
    assert decode(codes, absmax, signed).equal(votive.zeros_like(t))
    encode_(codes, absmax, t, signed)
    got, known = decode(codes, absmax, signed).numpy(), np.array(dynamic_map(signed), np.float32)
    for i in range(0, len(x), BLOCK):
        part = x[i : i + BLOCK].astype(np.float32)
        largest = np.abs(part).max()
        assert absmax[i // BLOCK].item() == largest
        wanted = np.abs(known[None] * largest - part[:, None]).min(axis=1)
        np.testing.assert_allclose(np.abs(got[i : i + BLOCK] - part), wanted, rtol=1e-3, atol=1e-6 * largest)


def test_the_map_is_dynamic_tree_quantization() -> None:
    signed, unsigned = np.array(dynamic_map(True)), np.array(dynamic_map(False))
    assert len(set(signed.tolist())) == len(set(unsigned.tolist())) == 256
    # One code for the smallest power of ten and a sign, twice as many for each next one.
    for power in range(7):
        low, high = 10.0 ** (power - 7), 10.0 ** (power - 6)
        assert ((signed > low) & (signed < high) & (signed < 1)).sum() == 2**power
        assert ((unsigned > low) & (unsigned < high)).sum() == 2 ** (power + 1)
    np.testing.assert_allclose(signed[:127], -signed[-2:127:-1], rtol=1e-12)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16])
def test_twenty_steps_stay_near_those_of_32_bits(name: str, dtype: Any) -> None:
    start, wanted, _ = path(name, dtype, **RULES[name])
    _, got, opt = path(f"{name}8bit", dtype, **RULES[name])
    far = float((got - wanted).norm() / (wanted - start).norm())
    assert 0 < far < (0.05 if dtype is votive.float32 else 0.1)
    (state,) = opt.state.values()
    kept = sum(v.nbytes for v in state.values())
    states = 2 if name.startswith("Adam") else 1
    assert kept <= states * 64 * 96 * (1 + 4 / BLOCK) + 4


@pytest.mark.parametrize("name", RULES)
def test_few_numbers_keep_float32_and_step_as_the_plain_rule(name: str) -> None:
    _, wanted, _ = path(name, **RULES[name])
    _, got, opt = path(f"{name}8bit", min_8bit_size=64 * 96 + 1, **RULES[name])
    assert got.equal(wanted)
    (state,) = opt.state.values()
    assert state["state1"].dtype is votive.float32


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16])
def test_a_checkpoint_goes_on_bit_by_bit(name: str, dtype: Any, tmp_path: Any) -> None:
    made = []
    for stop in (False, True):
        g = votive.Generator().manual_seed(3)
        w = votive.randn(70, 70, generator=g).to(dtype).requires_grad_()
        opt = getattr(votive.optim, f"{name}8bit")([w], **RULES[name])
        for i in range(6):
            if stop and i == 3:
                votive.save({"w": w.detach(), "opt": opt.state_dict()}, tmp_path / "c.safetensors")
                found = votive.load(tmp_path / "c.safetensors")
                w = found["w"].clone().requires_grad_()
                opt = getattr(votive.optim, f"{name}8bit")([w], **RULES[name])
                opt.load_state_dict(found["opt"])
                (state,) = opt.state.values()
                assert state["state1"].dtype is votive.uint8
                assert state["absmax1"].dtype is votive.float32
            w.grad = votive.randn(70, 70, generator=g).to(dtype)
            opt.step()
        made.append((w.detach().clone(), copy.deepcopy(next(iter(opt.state.values())))))
    assert made[0][0].equal(made[1][0])
    for key, value in made[0][1].items():
        assert value.equal(made[1][1][key]), key


def test_what_is_not_offered_is_refused_by_name() -> None:
    w = votive.ones(4, 4, requires_grad=True)
    adam = votive.optim.Adam8bit
    with pytest.raises(ValueError, match="does not support amsgrad=True"):
        adam([w], amsgrad=True)
    with pytest.raises(ValueError, match="only supports optim_bits=32"):
        adam([w], optim_bits=8)
    with pytest.raises(UnsupportedError, match="percentile_clipping is not offered"):
        adam([w], percentile_clipping=5)
    with pytest.raises(UnsupportedError, match="block_wise=True"):
        votive.optim.Lion8bit([w], block_wise=False)
    with pytest.raises(UnsupportedError, match="args= is not read"):
        adam([w], args=object())
    with pytest.raises(NotImplementedError, match="without momentum is not supported"):
        votive.optim.SGD8bit([w], lr=0.1)
    assert adam([w], is_paged=True).defaults["min_8bit_size"] == 4096  # the host's memory is where states are
    away = votive.ones(4, device="meta", requires_grad=True)
    with pytest.raises(UnsupportedError, match="a parameter is on meta"):
        adam([away], is_paged=True)
    wide = votive.ones(4, dtype=votive.float64, requires_grad=True)
    wide.grad = votive.ones_like(wide)
    with pytest.raises(TypeError, match=r"got votive\.float64"):
        adam([wide]).step()


def test_groups_have_their_own_smallest_size_and_empty_parameters_step() -> None:
    a, b, c = (votive.ones(n, requires_grad=True) for n in (300, 300, 0))
    opt = votive.optim.AdamW8bit([{"params": [a], "min_8bit_size": 256}, {"params": [b, c]}], lr=0.1)
    for p in (a, b, c):
        p.grad = votive.ones_like(p)
    opt.step()
    assert opt.state[a]["state1"].dtype is votive.uint8
    assert opt.state[b]["state1"].dtype is votive.float32
    assert float((a - b).abs().max()) < 1e-3


def test_a_gradient_that_is_no_number_shows() -> None:
    w = votive.ones(64, 64, requires_grad=True)
    opt = votive.optim.Adam8bit([w])
    w.grad = votive.ones(64, 64)
    w.grad[0, 0] = float("nan")
    opt.step()
    w.grad = votive.ones(64, 64)
    opt.step()
    assert bool(w[0, 0].isnan())
    assert not bool(w[63].isnan().any())
