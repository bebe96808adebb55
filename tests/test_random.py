"""Random tensors: the documented draw reaches the tensor, once per call, whatever its memory."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.backends.common import sampling
from votive.core import rng
from votive.ops.registry import OPS

SEED = 1234
FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform": lambda x, g: x.uniform_(-1, 2, generator=g),
    "normal": lambda x, g: x.normal_(1, 2, generator=g),
    "log_normal": lambda x, g: x.log_normal_(0, 0.5, generator=g),
    "exponential": lambda x, g: x.exponential_(2, generator=g),
    "cauchy": lambda x, g: x.cauchy_(1, 2, generator=g),
    "geometric": lambda x, g: x.geometric_(0.3, generator=g),
    "bernoulli": lambda x, g: x.bernoulli_(0.4, generator=g),
    "random": lambda x, g: x.random_(2, 50, generator=g),
}
PARAMETERS = {
    "uniform": (-1, 2),
    "normal": (1, 2),
    "log_normal": (0, 0.5),
    "exponential": (2,),
    "cauchy": (1, 2),
    "geometric": (0.3,),
    "bernoulli": (0.4,),
    "random": (2, 50),
}
MAKES: dict[str, Callable[..., Any]] = {
    "rand": lambda g: vt.rand(5, 3, generator=g),
    "randn": lambda g: vt.randn(5, 3, generator=g),
    "randint": lambda g: vt.randint(1000, (5, 3), generator=g),
    "randperm": lambda g: vt.randperm(15, generator=g),
    "rand_like": lambda g: vt.rand_like(vt.zeros(5, 3), generator=g),
    "randn_like": lambda g: vt.randn_like(vt.zeros(5, 3), generator=g),
    "randint_like": lambda g: vt.randint_like(vt.zeros(5, 3), 1000, generator=g),
    "bernoulli": lambda g: vt.bernoulli(vt.full((5, 3), 0.5), generator=g),
    "multinomial": lambda g: vt.multinomial(vt.ones(3, 9), 5, generator=g),
    "normal": lambda g: vt.normal(0.0, 1.0, (5, 3), generator=g),
    "poisson": lambda g: vt.poisson(vt.full((5, 3), 9.0), generator=g),
    "binomial": lambda g: vt.binomial(vt.full((15,), 40.0), vt.full((15,), 0.4), generator=g),
}


def seeded(seed: int = SEED) -> vt.Generator:
    return vt.Generator().manual_seed(seed)


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a.detach().numpy(), b.detach().numpy()))


fills = pytest.mark.parametrize("name", sorted(FILLS))
makes = pytest.mark.parametrize("name", sorted(MAKES))


@fills
def test_a_fill_is_the_sampler_of_that_name(name: str) -> None:
    got = FILLS[name](vt.zeros(4, 5), seeded()).numpy()
    want = getattr(sampling, name)(SEED, 0, (4, 5), *PARAMETERS[name])
    # Words and unit numbers are the same bit for bit; logarithms and sines may end differently.
    exact = name in ("uniform", "bernoulli", "random")
    np.testing.assert_allclose(got, want.astype(np.float32), rtol=0 if exact else 2e-6)


@fills
@pytest.mark.parametrize("dtype", [vt.float16, vt.bfloat16, vt.float32, vt.float64])
def test_the_draw_does_not_depend_on_the_strides(name: str, dtype: vt.dtype) -> None:
    plain = FILLS[name](vt.zeros(4, 6, dtype=dtype), seeded())
    transposed = FILLS[name](vt.zeros(6, 4, dtype=dtype).t(), seeded())
    window = FILLS[name](vt.zeros(4, 13, dtype=dtype)[:, 1::2], seeded())
    assert transposed.stride() == (1, 4)
    assert window.stride() == (13, 2)
    assert same(transposed, plain)
    assert same(window, plain)


def test_a_fill_of_a_window_leaves_the_rest_alone() -> None:
    x = vt.zeros(4, 13)
    x[:, 1::2].normal_()
    assert not x.numpy()[:, 0::2].any()
    assert x.numpy()[:, 1::2].all()


@makes
def test_equal_seeds_give_equal_numbers_and_the_next_call_gives_others(name: str) -> None:
    g = seeded()
    first, second = MAKES[name](g), MAKES[name](g)
    assert same(first, MAKES[name](seeded()))
    assert not same(first, second)


@makes
def test_without_a_generator_the_default_one_is_used(name: str) -> None:
    vt.manual_seed(SEED)
    assert same(MAKES[name](None), MAKES[name](seeded()))


@fills
def test_a_plan_is_made_once_and_draws_anew(name: str) -> None:
    x = vt.zeros(7, 2, dtype=vt.float64)
    before = FILLS[name](x, None).clone()
    plans = len(OPS[f"_{name}"].plans)
    assert not same(FILLS[name](x, None), before)
    assert not same(FILLS[name](x, seeded(99)), before)
    assert len(OPS[f"_{name}"].plans) == plans


@makes
def test_draws_take_counters_that_do_not_overlap(name: str) -> None:
    g = seeded()
    MAKES[name](g)
    taken = g.get_offset()
    assert taken > 0
    MAKES[name](g)
    assert g.get_offset() == 2 * taken


def test_empty_draws_take_no_counters() -> None:
    g = seeded()
    vt.rand(0, generator=g)
    vt.randperm(0, generator=g)
    assert g.get_offset() == 0


def test_draws_of_whole_counters_continue_each_other() -> None:
    g = seeded()
    parts = [vt.rand(4, generator=g), vt.rand(4, generator=g)]
    assert same(vt.cat(parts), vt.rand(8, generator=seeded()))  # four words are one counter


@fills
@pytest.mark.parametrize("dtype", [vt.float32, vt.float64])
def test_fills_count_as_writes_and_give_a_zero_gradient(name: str, dtype: vt.dtype) -> None:
    leaf = vt.ones(3, dtype=dtype, requires_grad=True)
    x = leaf.clone()
    version = x._version
    assert FILLS[name](x, None) is x
    assert x._version > version
    assert x.requires_grad
    (x * 2).sum().backward()
    assert leaf.grad.tolist() == [0.0, 0.0, 0.0]


@fills
def test_leaves_and_expanded_tensors_are_not_filled(name: str) -> None:
    with pytest.raises(RuntimeError, match="leaf"):
        FILLS[name](vt.ones(3, requires_grad=True), None)
    with pytest.raises(RuntimeError, match="memory location"):
        FILLS[name](vt.ones(1).expand(3), None)
    with vt.no_grad():
        FILLS[name](vt.ones(3, requires_grad=True), None)


@pytest.mark.parametrize(
    "draw",
    [
        vt.bernoulli,
        vt.poisson,
        lambda x: vt.normal(x, x),
        lambda x: vt.normal(x, 1.0),
        lambda x: vt.normal(0.0, x),
        lambda x: vt.zeros(3).bernoulli_(x),
    ],
)
def test_parameters_that_are_tensors_get_a_zero_gradient(draw: Any) -> None:
    x = vt.full((3,), 0.5, requires_grad=True)
    draw(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_binomial_has_no_gradient() -> None:
    x = vt.full((3,), 0.5, requires_grad=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        vt.binomial(vt.full((3,), 5.0), x).sum().backward()


def test_factories_honour_requires_grad_dtype_and_out() -> None:
    assert vt.rand(2, requires_grad=True).is_leaf
    assert vt.rand(2, requires_grad=True).requires_grad
    assert vt.randn(2, dtype=vt.float64).dtype is vt.float64
    out = vt.zeros(3, dtype=vt.float64)
    assert vt.rand(2, 2, out=out, generator=seeded()) is out
    assert same(out, vt.rand(2, 2, dtype=vt.float64, generator=seeded()))
    with pytest.raises(RuntimeError, match="out"):
        vt.rand(2, out=out, dtype=vt.float32)
    picked = vt.zeros(0, dtype=vt.int64)
    assert vt.multinomial(vt.tensor([0.0, 1.0]), 1, out=picked) is picked
    assert picked.tolist() == [1]
    with pytest.raises(RuntimeError, match="int64"):
        vt.multinomial(vt.ones(3), 1, out=vt.zeros(1))


def test_like_factories_keep_the_order_of_dimensions() -> None:
    x = vt.zeros(3, 2).t()
    assert vt.rand_like(x).stride() == x.stride()
    assert vt.rand_like(x, memory_format=vt.contiguous_format).is_contiguous()
    assert same(vt.rand_like(x, generator=seeded()), vt.rand(2, 3, generator=seeded()))


def test_from_can_be_given_by_name() -> None:
    x = vt.zeros(50).uniform_(**{"from": 3.0, "to": 4.0})
    assert 3 <= float(x.min()) <= float(x.max()) < 4
    y = vt.zeros(50).random_(**{"from": 7, "to": 9})
    assert set(y.tolist()) == {7.0, 8.0}


def test_normal_uses_each_mean_and_each_std() -> None:
    mean, std = vt.tensor([[0.0], [100.0]]), vt.tensor([0.0, 1e-3, 1.0])
    x = vt.normal(mean, std, generator=seeded()).numpy()
    z = vt.randn(2, 3, generator=seeded()).numpy()
    np.testing.assert_allclose(x, mean.numpy() + std.numpy() * z, rtol=1e-6)
    c = vt.normal(vt.tensor([1 + 2j, 3 + 4j]), 0.0)
    assert c.tolist() == [1 + 2j, 3 + 4j]


def test_bernoulli_uses_each_probability() -> None:
    p = vt.tensor([0.0, 0.25, 1.0])
    x = vt.zeros(4000, 3).bernoulli_(p, generator=seeded()).numpy().mean(0)
    assert x[0] == 0
    assert x[2] == 1
    assert abs(x[1] - 0.25) < 0.03


def test_the_generator_must_be_one_and_on_the_right_device() -> None:
    with pytest.raises(TypeError, match="Generator"):
        vt.rand(2, generator=7)
    with pytest.raises(RuntimeError, match="cuda"):
        vt.rand(2, generator=rng.Generator("cuda"))


# --- seeds and states -----------------------------------------------------------------------------


def test_states_are_byte_tensors_that_bring_the_numbers_back() -> None:
    vt.manual_seed(SEED)
    vt.rand(3)
    state = vt.get_rng_state()
    assert state.dtype is vt.uint8
    first = vt.rand(5)
    vt.set_rng_state(state)
    assert same(vt.rand(5), first)
    g = seeded()
    g.set_state(state)
    assert same(vt.rand(5, generator=g), first)


def test_wrong_states_are_refused() -> None:
    with pytest.raises(TypeError):
        vt.set_rng_state(5)
    with pytest.raises(TypeError):
        vt.set_rng_state(vt.zeros(16))
    with pytest.raises(RuntimeError):
        vt.set_rng_state(vt.zeros(3, dtype=vt.uint8))


def test_manual_seed_returns_the_default_generator() -> None:
    assert vt.manual_seed(5) is vt.default_generator
    assert vt.initial_seed() == 5 == vt.random.initial_seed()
    assert vt.seed() == vt.default_generator.initial_seed()
    assert isinstance(vt.default_generator, vt.Generator)
    assert isinstance(vt.default_generator.get_state(), vt.Tensor)


def test_clones_copies_and_pickles_of_a_generator_go_on_alike() -> None:
    g = seeded()
    vt.rand(3, generator=g)
    twins = [g.clone_state(), copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g))]
    want = vt.rand(4, generator=g)
    for twin in twins:
        assert isinstance(twin, vt.Generator)
        assert same(vt.rand(4, generator=twin), want)


def test_fork_rng_leaves_no_trace() -> None:
    vt.manual_seed(SEED)
    want = vt.rand(3)
    vt.manual_seed(SEED)
    with vt.random.fork_rng():
        vt.manual_seed(99)
        vt.rand(10)
    assert same(vt.rand(3), want)
