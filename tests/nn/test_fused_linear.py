"""A linear layer and its activation run as one kernel, and nobody can tell by what they see."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.dispatch import Call, Observer
from votive.nn import functional as F
from votive.nn.fused_linear import feed_forward, gelu_tanh, linear_activation


class Names(Observer):
    """Which operators were called."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before(self, call: Call) -> Any:
        self.seen.append(call.op.name)


def plans() -> int:
    from votive.ops.registry import OPS

    return len(OPS["_linear_activated"].plans)


def fresh() -> None:
    from votive.ops.registry import OPS

    OPS["_linear_activated"].forget()


FUNCTIONS = [F.relu, F.gelu, F.silu, gelu_tanh]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [votive.float32, votive.float64, votive.bfloat16], ids=str)
def test_one_kernel_gives_what_layer_and_activation_give(fn: Any, dtype: Any) -> None:
    for bias in (True, False):
        layer = nn.Linear(70, 33, bias=bias).to(dtype)
        x = votive.randn(2, 9, 70).to(dtype)
        with votive.no_grad():
            fresh()
            assert votive.equal(linear_activation(layer, fn, x), fn(layer(x)))
            assert plans() == 1


def test_it_is_used_without_no_grad_when_nothing_asks_for_a_gradient() -> None:
    layer = nn.Linear(4, 3).requires_grad_(False)
    fresh()
    linear_activation(layer, F.relu, votive.randn(2, 4))
    assert plans() == 1


def apart(layer: Any, x: Any) -> None:
    """Both run on their own, and the values are those of both."""
    fresh()
    y = linear_activation(layer, F.gelu, x)
    assert plans() == 0
    assert votive.equal(y, F.gelu(layer(x)))


def test_gradients_are_recorded_apart() -> None:
    layer, x = nn.Linear(4, 3), votive.randn(2, 4)
    apart(layer, x)
    linear_activation(layer, F.relu, x).sum().backward()
    assert layer.weight.grad is not None
    apart(nn.Linear(4, 3).requires_grad_(False), votive.randn(2, 4, requires_grad=True))


@votive.no_grad()
def test_whoever_hooks_the_layer_sees_its_result() -> None:
    layer, x, seen = nn.Linear(4, 3), votive.randn(2, 4), []
    with layer.register_forward_hook(lambda m, args, y: seen.append(y)):
        apart(layer, x)
    assert votive.equal(seen[0], layer(x))
    with layer.register_forward_pre_hook(lambda m, args: None):
        apart(layer, x)
    with nn.modules.module.register_module_forward_hook(lambda m, args, y: None):
        apart(layer, x)
    fresh()
    linear_activation(layer, F.gelu, x)
    assert plans() == 1


@votive.no_grad()
def test_observers_see_both_operators() -> None:
    layer, x = nn.Linear(4, 3), votive.randn(2, 4)
    with Names() as names:
        linear_activation(layer, F.gelu, x)
    assert names.seen == ["linear", "gelu"]


@votive.no_grad()
def test_other_classes_and_other_activations_run_apart() -> None:
    class Louder(nn.Linear):
        def forward(self, input: Any) -> Any:
            return 2 * super().forward(input)

    x = votive.randn(2, 4)
    apart(Louder(4, 3), x)
    replaced = nn.Linear(4, 3)
    replaced.forward = lambda input: votive.ones(2, 3)
    apart(replaced, x)
    layer = nn.Linear(4, 3)
    assert votive.equal(linear_activation(layer, F.mish, x), F.mish(layer(x)))


@votive.no_grad()
def test_autocast_casts_as_for_the_layer() -> None:
    layer, x = nn.Linear(4, 3), votive.randn(2, 4)
    with votive.autocast("cpu"):
        fresh()
        y = linear_activation(layer, F.gelu, x)
        assert plans() == 1
        assert y.dtype is votive.bfloat16
        assert votive.equal(y, F.gelu(layer(x)))


@votive.no_grad()
def test_errors_name_the_layer() -> None:
    block = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16).eval()
    block.linear1 = nn.Linear(5, 16)
    with pytest.raises(RuntimeError, match="linear1"):
        block(votive.ones(3, 1, 8))


@votive.no_grad()
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.SwiGLU(8, 16),
        lambda: nn.GeGLU(8, 16),
        lambda: nn.GeGLU(8, 16, approximate="tanh"),
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True),
    ],
)
def test_feed_forward_nets_use_it_and_give_the_same(make: Any) -> None:
    net, x = make().eval(), votive.randn(2, 5, 8)
    fresh()
    y = net(x)
    assert plans() == 1
    with Names():
        assert votive.equal(net(x), y)


@pytest.mark.parametrize("fn", [*FUNCTIONS, F.mish], ids=lambda f: f.__name__)
def test_a_pair_of_layers_is_one_after_the_other(fn: Any) -> None:
    up, down = nn.Linear(6, 9), nn.Linear(9, 4)
    x = votive.randn(2, 3, 6, requires_grad=True)
    leaves = [x, *up.parameters(), *down.parameters()]
    got, want = feed_forward(up, fn, down, x), down(fn(up(x)))
    assert votive.equal(got, want)
    for a, b in zip(*(votive.autograd.grad(y.sum(), leaves) for y in (got, want)), strict=True):
        assert votive.equal(a, b)
    with votive.no_grad():
        assert votive.equal(feed_forward(up, fn, down, x), want)


def test_a_pair_of_layers_names_the_one_that_fails() -> None:
    block = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.0)
    block.linear2 = nn.Linear(15, 8)
    with pytest.raises(RuntimeError, match="linear2"):
        block(votive.randn(3, 1, 8))


def test_a_hooked_dropout_between_two_layers_is_called() -> None:
    block, seen = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.0), []
    block.dropout.register_forward_hook(lambda m, args, y: seen.append(y))
    block(votive.randn(3, 1, 8))
    assert len(seen) == 1
