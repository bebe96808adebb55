"""Layers of language models: examples, gated nets, adaptive softmax."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

import votive
import votive.nn.functional as F
from tests.nn.arrays import close, normal
from votive import nn

EXAMPLES = [
    nn.apply_lora,
    nn.merge_lora,
    nn.lora_state_dict,
    nn.LoRALinear.to_linear,
    nn.AdaptiveLogSoftmaxWithLoss.log_prob,
    nn.AdaptiveLogSoftmaxWithLoss.predict,
    nn.Transformer.generate_square_subsequent_mask,
]


@pytest.mark.parametrize("function", EXAMPLES, ids=lambda f: f.__name__)
def test_the_example_of_a_function_runs_as_printed(function: Any) -> None:
    doc = inspect.cleandoc(function.__doc__)
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive}, "doc", None, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


# --- gated nets -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made, function",
    [
        (lambda: nn.SwiGLU(4, 6), F.silu),
        (lambda: nn.GeGLU(4, 6), F.gelu),
        (lambda: nn.GeGLU(4, 6, approximate="tanh"), lambda x: F.gelu(x, approximate="tanh")),
        (lambda: nn.GatedMLP(4, 6, "relu", bias=True), F.relu),
        (lambda: nn.GatedMLP(4, 6, nn.Tanh()), votive.tanh),
    ],
)
def test_a_gated_net_multiplies_the_gate_with_the_values(made: Any, function: Any) -> None:
    net = made().double()
    x = normal(3, 4)
    close(net(x), net.down_proj(function(net.gate_proj(x)) * net.up_proj(x)))
    weights = [k for k in net.state_dict() if k.endswith("weight")]
    assert weights == ["gate_proj.weight", "up_proj.weight", "down_proj.weight"]


def test_an_unknown_activation_is_named() -> None:
    with pytest.raises(ValueError, match="swoosh"):
        nn.GatedMLP(4, 6, "swoosh")
    assert nn.GatedMLP(6).gate_proj.out_features == 16


# --- adaptive softmax -------------------------------------------------------------------------


@pytest.mark.parity
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("target", [[0, 4, 5, 9, 19, 2], [1, 2, 3, 0, 4, 1], [15, 16, 17, 19, 18, 18]])
def test_adaptive_softmax_agrees_with_torch(target: list[int], bias: bool) -> None:
    torch = pytest.importorskip("torch")
    made = (8, 20, [5, 10]), {"div_value": 2.0, "head_bias": bias}
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*made[0], **made[1]).double()
    ours = nn.AdaptiveLogSoftmaxWithLoss(*made[0], **made[1]).double()
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: votive.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = normal(6, 8).requires_grad_()
    y = torch.from_numpy(x.detach().numpy().copy()).requires_grad_()
    got, want = ours(x, votive.tensor(target)), theirs(y, torch.tensor(target))
    assert got._fields == want._fields
    close(got.output, want.output.detach().numpy())
    close(got.loss, want.loss.detach().numpy())
    got.loss.backward()
    want.loss.backward()
    close(x.grad, y.grad.numpy())
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if q.grad is not None:
            close(p.grad, q.grad.numpy())
    close(ours.log_prob(x), theirs.log_prob(y).detach().numpy())
    assert ours.predict(x * 5).tolist() == theirs.predict(y * 5).tolist()
    single = ours(x[0], votive.tensor(target[0])), theirs(y[0], torch.tensor(target[0]))
    close(single[0].output, single[1].output.detach().numpy())


@pytest.mark.parity
@pytest.mark.parametrize(
    "run",
    [
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, []),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [5, 3]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 3]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [9]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [0.5, 3]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor([1, 9])),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor([1])),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor([[1]])),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor(1)),
    ],
)
def test_adaptive_softmax_refuses_in_torchs_words(run: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises((ValueError, RuntimeError)) as theirs:
        run(torch, torch.nn)
    with pytest.raises(theirs.type) as ours:
        run(votive, nn)
    assert str(theirs.value).replace("torch.", "votive.") in str(ours.value)
