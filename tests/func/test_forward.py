"""Forward mode by hand, custom functions in transformations, batches of gradients."""

from __future__ import annotations

from typing import Any

import pytest

import votive
import votive.autograd.forward_ad as fwAD
from votive.autograd.function import once_differentiable
from votive.func import grad, jacrev, jvp, vmap

x = votive.tensor([1.0, 2.0])
w = votive.tensor([2.0, 3.0])


def test_tangents_live_as_long_as_their_level() -> None:
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(x, x)
    with fwAD.dual_level():
        d = fwAD.make_dual(x, w)
        assert fwAD.unpack_dual((d * d).sum()).tangent.item() == 16
        assert fwAD.unpack_dual(x).tangent is None
        with pytest.raises(RuntimeError, match="Nested forward mode"):
            fwAD.enter_dual_level()
        with pytest.raises(RuntimeError, match="different size"):
            fwAD.make_dual(x, votive.ones(3))
    assert fwAD.unpack_dual(d).tangent is None
    assert votive.equal(fwAD.unpack_dual(d).primal, x)


def test_tangents_are_differentiable_and_follow_writes_through_views() -> None:
    p = votive.tensor([1.0, 2.0], requires_grad=True)
    with fwAD.dual_level():
        moved = fwAD.unpack_dual((fwAD.make_dual(p, w) ** 3).sum()).tangent
    moved.backward()
    assert p.grad.tolist() == [12, 36]

    def f(v: Any) -> Any:
        y = v * 1
        part = y[0]
        part.mul_(v[1])
        y[1] = 5
        return y

    value, tangent = jvp(f, (x,), (w,))
    assert value.tolist() == [2, 5]
    assert tangent.tolist() == [7, 0]


class Scaled(votive.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a: Any, b: Any) -> Any:
        return a * b * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * 2 * b, g * 2 * a

    @staticmethod
    def jvp(ctx: Any, ta: Any, tb: Any) -> Any:
        a, b = ctx.saved_tensors
        return 2 * (ta * b + a * tb)


class Ruled(Scaled):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: Any, a: Any, b: Any) -> Any:
        assert info.batch_size == 3
        assert in_dims == (0, None)
        return Ruled.apply(a, b), 0


@pytest.mark.parametrize("cls", [Scaled, Ruled])
def test_custom_functions_have_rules_for_batches_and_tangents(cls: Any) -> None:
    batch = votive.arange(6.0).reshape(3, 2)
    assert votive.equal(vmap(lambda a: cls.apply(a, w))(batch), batch * w * 2)
    assert votive.equal(vmap(grad(lambda a: cls.apply(a, w).sum()))(batch), (2 * w).expand(3, 2))
    assert jvp(lambda a: cls.apply(a, w), (x,), (w,))[1].tolist() == [8, 18]
    assert grad(lambda b: vmap(lambda a: cls.apply(a, b))(batch).sum())(w).tolist() == [12, 18]
    if cls is Scaled:
        assert jacrev(lambda a: cls.apply(a, w))(x).tolist() == [[4, 0], [0, 6]]


def test_custom_functions_without_rules_say_so() -> None:
    class Bare(votive.autograd.Function):
        @staticmethod
        def forward(a: Any) -> Any:
            return a * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Bare.apply)(x)
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        jvp(Bare.apply, (x,), (x,))
    a, v = x.clone().requires_grad_(), w.clone().requires_grad_()
    (g,) = votive.autograd.grad(Bare.apply(a), a, v, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.sum().backward()


def test_batches_of_gradients_take_one_pass() -> None:
    a = votive.tensor([1.0, 2.0], requires_grad=True)
    unused = votive.ones(1, requires_grad=True)
    rows, none = votive.autograd.grad(a * a, (a, unused), votive.eye(2), is_grads_batched=True, allow_unused=True)
    assert rows.tolist() == [[2, 0], [0, 4]]
    assert none is None


def test_autograd_grad_works_on_tensors_inside_transformations() -> None:
    def f(v: Any) -> Any:
        v = v.clone().requires_grad_()
        return votive.autograd.grad((v * v).sum(), v)[0]

    assert vmap(f)(votive.ones(3, 2)).tolist() == [[2, 2]] * 3
