"""A program's own operators: gradients, kernels per device, what they refuse; compared with torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive import library

DOCS = docstrings.examples([library])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def scaled(lib: Any, space: str) -> Any:
    def fn(x, k=2.0):  # type: ignore[no-untyped-def]
        return lib.from_numpy(x.detach().numpy() * k)

    fn.__annotations__ = {"x": lib.Tensor, "k": float, "return": lib.Tensor}
    op = lib.library.custom_op(f"{space}::scaled", fn, mutates_args=())

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]

    op.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=keep)
    return op


@pytest.mark.parity
def test_gradients_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib in (votive, torch):
        op = scaled(lib, "tests_surface")
        x = lib.tensor(np.arange(3, dtype="f4"), requires_grad=True)
        y = op(x, k=3.0) + op(x)
        y.square().sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy()))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b)


def test_an_operator_that_writes_marks_what_it_wrote() -> None:
    @library.custom_op("tests::fill", mutates_args=("x",))
    def fill(x: votive.Tensor, value: float) -> None:
        x.fill_(value)

    x = votive.zeros(2)
    fill(x, 3.0)
    assert x.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="can have no gradient"):
        fill.register_autograd(lambda ctx, g: None)


def test_what_is_missing_is_said() -> None:
    op = library.custom_op("tests::plain", lambda x: x * 2, mutates_args=())
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        op(votive.ones(1, requires_grad=True)).backward()
    with pytest.raises(NotImplementedError, match="register_fake"):
        op(votive.empty(1, device="meta"))
    only = library.custom_op("tests::there", lambda x: x, mutates_args=(), device_types="cuda")
    with pytest.raises(NotImplementedError, match="computes on cuda, got tensors on cpu"):
        only(votive.ones(1))
    with pytest.raises(ValueError, match="namespace::operator"):
        library.custom_op("plain", lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="no argument y"):
        library.custom_op("tests::wrong", lambda x: x, mutates_args=("y",))
    with pytest.raises(RuntimeError, match="was not made by"):
        library.register_fake("tests::nobody", lambda x: x)
