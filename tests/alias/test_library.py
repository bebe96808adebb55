"""Operators that programs define with torch.library, and torch.ops, which calls them."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.torch.custom_ops import REGISTRY, ops
from votive.torch.op_schema import infer_schema, signature_of
from votive.torch.overlays import library

Tensor = votive.Tensor


@pytest.fixture(autouse=True)
def forget() -> Any:
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def scaled(x: Tensor, k: int = 2) -> Tensor:
    return x * k


def test_an_operator_is_called_by_its_name_and_has_the_gradient_that_is_stated() -> None:
    made = library.custom_op("mine::scaled", scaled, mutates_args=())
    x = votive.ones(2, requires_grad=True)
    assert ops.mine.scaled(x, k=3).tolist() == [3.0, 3.0]
    assert ops.mine.scaled.default(x).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        made(x).sum().backward()
    made.register_autograd(
        lambda ctx, g: (g * ctx.k, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1])
    )
    made(x, 5).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5.0, 5.0]


def test_kernels_are_chosen_by_device_and_results_without_values_are_made_by_the_fake() -> None:
    library.custom_op("mine::scaled", scaled, mutates_args=(), device_types="cpu")
    on_meta = votive.ones(2, device="meta")
    with pytest.raises(NotImplementedError, match="no kernel for meta"):
        ops.mine.scaled(on_meta)
    library.register_fake("mine::scaled", lambda x, k=2: votive.empty_like(x))
    assert ops.mine.scaled(on_meta).device.type == "meta"
    library.register_kernel("mine::scaled", "cpu", lambda x, k: x * 10)
    assert ops.mine.scaled(votive.ones(1)).tolist() == [10.0]


def test_what_is_written_to_is_said_and_inputs_are_not_results() -> None:
    @library.custom_op("mine::grow", mutates_args={"x"})
    def grow(x: Tensor) -> None:
        x.add_(1)

    x = votive.ones(2)
    assert grow(x) is None
    assert x.tolist() == [2.0, 2.0]
    same = library.custom_op("mine::same", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(x)


def test_a_library_names_operators_and_gives_their_kernels() -> None:
    mine = library.Library("mine", "DEF")
    assert mine.define("twice(Tensor x, *, float a=2.0) -> Tensor") == "twice"
    mine.impl("twice", lambda x, a=2.0: x * a)
    x = votive.ones(1, requires_grad=True)
    y = ops.mine.twice(x, a=3.0)
    y.backward()
    assert x.grad is not None
    assert (y.item(), x.grad.item()) == (3.0, 3.0)
    with pytest.raises(NotImplementedError, match="dispatch key"):
        mine.impl("twice", lambda x: x, "FuncTorchBatched")
    with pytest.raises(AttributeError, match="nothing"):
        ops.mine.nothing  # noqa: B018
    with pytest.raises(RuntimeError, match="there is no operator other::x"):
        library.register_fake("other::x", scaled)


def test_schemas_are_written_and_read() -> None:
    def fn(x: Tensor, at: list[int], y: Tensor | None = None, *, a: float = 1.5) -> tuple[Tensor, Tensor]: ...

    text = infer_schema(fn, mutates_args={"x"})
    assert text == "(Tensor(a!) x, SymInt[] at, Tensor? y=None, *, float a=1.5) -> (Tensor, Tensor)"
    assert str(signature_of(text)) == "(x, at, y=None, *, a=1.5)"
    with pytest.raises(ValueError, match="type annotation"):
        infer_schema(lambda x: x, mutates_args=())


def test_operators_of_aten_are_those_of_votive() -> None:
    x = votive.ones(2)
    assert ops.aten.add.Tensor(x, x).tolist() == [2.0, 2.0]
    assert ops.aten._to_copy(x, dtype=votive.float64).dtype is votive.float64
    assert ops.aten.relu.default is not None
    with pytest.raises(AttributeError, match="no_such_operator"):
        ops.aten.no_such_operator  # noqa: B018
    with pytest.raises(OSError, match="compiled for torch"):
        ops.load_library("x.so")
