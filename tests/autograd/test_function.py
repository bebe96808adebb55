"""Custom functions, checkpointing, saved-value hooks, functional derivatives, gradcheck."""

from __future__ import annotations

import pytest

import votive as vt
from votive.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from votive.utils.checkpoint import checkpoint


def param(*values: float) -> vt.Tensor:
    return vt.tensor(values, dtype=vt.float64, requires_grad=True)


class Product(vt.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.save_for_backward(a, b)
        ctx.scale = scale
        return a * b * scale

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b * ctx.scale, g * a * ctx.scale, None


def test_a_custom_function_uses_its_own_backward() -> None:
    a, b = param(2.0), param(5.0)
    Product.apply(a, b, 3.0).backward()
    assert a.grad.item() == 15.0
    assert b.grad.item() == 6.0


def test_a_custom_function_can_be_differentiated_twice() -> None:
    a, b = param(2.0), param(5.0)
    (g,) = vt.autograd.grad(Product.apply(a, b, 3.0), a, create_graph=True)
    (gg,) = vt.autograd.grad(g, b)
    assert gg.item() == 3.0


def test_a_custom_function_with_setup_context_and_two_outputs() -> None:
    class Split(vt.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2, x * 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.seen = len(output)

        @staticmethod
        def backward(ctx, g, h):
            assert ctx.seen == 2
            return g * 2 + h * 3

    x = param(1.0)
    a, b = Split.apply(x)
    (a * 10 + b).backward()
    assert x.grad.item() == 23.0
    x.grad = None
    a, b = Split.apply(x)
    b.backward()  # the unused output's gradient arrives as zeros
    assert x.grad.item() == 3.0


def test_mark_dirty_tracks_an_in_place_function() -> None:
    class Double(vt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    p = param(3.0)
    x = p * 1
    y = Double.apply(x)
    assert y is x
    y.backward()
    assert p.grad.item() == 2.0


def test_a_wrong_number_of_gradients_is_an_error() -> None:
    class Wrong(vt.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="number of gradients"):
        Wrong.apply(param(1.0), param(1.0)).backward()


def test_a_function_class_cannot_be_instantiated() -> None:
    with pytest.raises(RuntimeError, match="apply"):
        Product()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_gives_the_same_gradient_and_runs_the_function_again(reentrant: bool) -> None:
    calls = []

    def f(x, y):
        calls.append(1)
        return (x * y).tanh() * x

    a, b = param(0.3, 0.5), param(0.7, 0.2)
    checkpoint(f, a, b, use_reentrant=reentrant).sum().backward()
    got = (a.grad.tolist(), b.grad.tolist())
    assert len(calls) == 2
    a.grad = b.grad = None
    f(a, b).sum().backward()
    assert got == (a.grad.tolist(), b.grad.tolist())


def test_checkpoint_repeats_random_numbers() -> None:
    x = vt.ones(8, dtype=vt.float64, requires_grad=True)
    noise = []

    def f(t):
        r = vt.rand(8, dtype=vt.float64)
        noise.append(r.tolist())
        return t * r

    checkpoint(f, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == noise[0]


def test_saved_tensor_hooks_see_and_restore_values() -> None:
    packed = []

    def pack(t):
        packed.append(t)
        return t.tolist()

    x = param(2.0)
    with vt.autograd.graph.saved_tensors_hooks(pack, lambda v: vt.tensor(v, dtype=vt.float64)):
        y = x * x
    y.backward()
    assert len(packed) == 2
    assert x.grad.item() == 4.0


def cubic(x: vt.Tensor) -> vt.Tensor:
    return (x * x * x).sum()


def test_vjp_and_jvp_agree_with_the_jacobian() -> None:
    f = lambda x: vt.stack([x[0] * x[1], x[1].sin()])
    x = vt.tensor([0.3, 0.7], dtype=vt.float64)
    v = vt.tensor([0.5, -1.0], dtype=vt.float64)
    j = jacobian(f, x)
    assert vt.allclose(vjp(f, x, v)[1], v @ j)
    assert vt.allclose(jvp(f, x, v)[1], j @ v)


def test_hessian_products_agree_with_the_hessian() -> None:
    x = vt.tensor([1.0, 2.0], dtype=vt.float64)
    v = vt.tensor([1.0, -1.0], dtype=vt.float64)
    h = hessian(cubic, x)
    assert h.tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert vt.allclose(hvp(cubic, x, v)[1], h @ v)
    assert vt.allclose(vhp(cubic, x, v)[1], v @ h)


def test_gradcheck_accepts_a_right_gradient_and_refuses_a_wrong_one() -> None:
    class Wrong(vt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2.01

    x = param(0.3, 0.4)
    assert vt.autograd.gradcheck(lambda t: t.sin(), (x,))
    assert vt.autograd.gradgradcheck(lambda t: t.sin() * t, (x,))
    with pytest.raises(RuntimeError, match="mismatch"):
        vt.autograd.gradcheck(Wrong.apply, (x,))
    assert not vt.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)


def test_without_materialised_gradients_the_missing_ones_arrive_as_none() -> None:
    seen = []

    class Pair(vt.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g is None, h is None))
            return g * 2, None

    a, b = param(1.0), param(2.0)
    Pair.apply(a, b)[0].sum().backward()
    assert seen == [(False, True)]
    assert a.grad.tolist() == [2.0]
    assert b.grad is None


def test_a_gradient_of_another_shape_than_its_input_is_refused() -> None:
    class Wrong(vt.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return vt.ones(7)

    with pytest.raises(RuntimeError, match=r"Wrong returned a gradient of shape \(7,\)"):
        Wrong.apply(param(1.0, 2.0)).sum().backward()
