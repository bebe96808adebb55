"""Checkpoints with blocks around their runs, policies of what is kept, and early stops."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive.dispatch.observe import Call, Observer
from votive.utils import selective_checkpoint
from votive.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

DOCS = docstrings.examples([selective_checkpoint])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


class Counter(Observer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def after(self, call: Call) -> None:
        self.names.append(call.op.name)


def work(x: Any, w: Any) -> Any:
    return ((x @ w).sin() @ w).exp().softmax(-1)


def grads(fn: Any) -> tuple[list[Any], Counter]:
    rng = np.random.default_rng(0)
    x, w = (votive.tensor(rng.standard_normal((4, 4)).astype("f4"), requires_grad=True) for _ in range(2))
    out = fn(work, x, w)
    with Counter() as seen:
        (out * out).sum().backward()
    return [out.detach().numpy(), x.grad.numpy(), w.grad.numpy()], seen


POLICIES: dict[str, Any] = {
    "products": ["matmul"],
    "operators": [votive.exp, "sin"],
    "everything": lambda ctx, op, *args: CheckpointPolicy.MUST_SAVE,
    "nothing": lambda ctx, op, *args: CheckpointPolicy.MUST_RECOMPUTE,
    "bool": lambda ctx, op, *args: op.name == "exp",
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("stop", [True, False])
def test_what_is_kept_is_not_computed_again_and_gradients_agree(name: str, stop: bool) -> None:
    wanted, plain = grads(lambda fn, *args: fn(*args))
    context = functools.partial(create_selective_checkpoint_contexts, POLICIES[name])
    found, seen = grads(
        lambda fn, *args: checkpoint(fn, *args, use_reentrant=False, context_fn=context, early_stop=stop)
    )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    whole, seen_whole = grads(lambda fn, *args: checkpoint(fn, *args, use_reentrant=False, early_stop=stop))
    np.testing.assert_allclose(whole[1], wanted[1], rtol=1e-6)
    more = len(seen.names) - len(plain.names), len(seen_whole.names) - len(plain.names)
    assert more[0] <= more[1]


def test_kept_products_do_not_run_twice() -> None:
    runs = []

    class Products(Observer):
        def after(self, call: Call) -> None:
            runs.append((call.op.name, call.seconds == call.seconds))  # NaN: nothing was computed

    context = functools.partial(create_selective_checkpoint_contexts, ["matmul"])
    x = votive.ones(2, 2, requires_grad=True)
    out = checkpoint(lambda t: (t @ t).sin().exp(), x, use_reentrant=False, context_fn=context)
    with Products():
        out.sum().backward()
    again = [computed for name, computed in runs if name == "matmul"]
    assert again.count(False) == 1
    assert again.count(True) == 2  # the gradients of the product


def test_blocks_stand_around_both_runs() -> None:
    seen = []

    @contextlib.contextmanager
    def block(name: str) -> Any:
        seen.append(f"{name} in")
        yield
        seen.append(f"{name} out")

    x = votive.ones(2, requires_grad=True)
    out = checkpoint(
        lambda t: t.exp().sin(),
        x,
        use_reentrant=False,
        context_fn=lambda: (block("first"), block("second")),
        early_stop=False,
    )
    assert seen == ["first in", "first out"]
    out.sum().backward()
    assert seen[2:] == ["second in", "second out"]


def test_the_second_run_ends_early_unless_told_otherwise() -> None:
    def run() -> list[str]:
        ends: list[str] = []
        x = votive.ones(2, requires_grad=True)
        y = checkpoint(lambda t: [t.sin().sum(), ends.append("end")][0], x, use_reentrant=False)
        ends.clear()
        y.backward()
        return ends

    assert run() == []
    with set_checkpoint_early_stop(False):
        assert run() == ["end"]


def test_a_second_run_that_differs_is_noticed() -> None:
    count = [0]

    def fn(t: Any) -> Any:
        count[0] += 1
        return (t if count[0] == 1 else t[:1]).sin()

    x = votive.ones(2, requires_grad=True)
    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(fn, x, use_reentrant=False).sum().backward()

    def fewer(t: Any) -> Any:
        count[0] += 1
        return t.sin().cos() if count[0] == 3 else t.sin()

    with pytest.raises(CheckpointError, match="the second 1"):
        checkpoint(fewer, x, use_reentrant=False).sum().backward()
    with pytest.raises(ValueError, match="use_reentrant=False"):
        checkpoint(fn, x, use_reentrant=True, context_fn=lambda: (None, None))
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)


@pytest.mark.parity
def test_torchs_names_are_there() -> None:
    theirs = pytest.importorskip("torch.utils.checkpoint")
    devices = {"get_device_states", "set_device_states", "DefaultDeviceType", "CheckpointFunction", "SAC_IGNORED_OPS"}
    inside = {"GraphExecGroup"}
    missing = [n for n in theirs.__all__ if not hasattr(votive.utils.checkpoint, n)]
    assert set(missing) <= devices | inside
