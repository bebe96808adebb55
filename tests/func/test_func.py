"""votive.func: structures, dimensions, chunks, randomness, errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import votive
from votive.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

x = votive.arange(6.0).reshape(3, 2)


def test_dimensions_and_structures_go_in_and_out() -> None:
    out = vmap(lambda d, k: (d["a"] * k, [d["a"].sum(), 7]), in_dims=({"a": 1}, None), out_dims=(-1, [0, None]))
    left, (right, seven) = out({"a": x}, 2)
    assert left.shape == (3, 2)
    assert right.tolist() == [6, 9]
    assert seven == 7
    assert vmap(lambda v: votive.ones(2))(x).shape == (3, 2)
    assert vmap(lambda v: (votive.ones(2), v), out_dims=(None, 1))(x)[1].shape == (2, 3)
    assert vmap(lambda a, b: a + b, in_dims=(-1, 0))(x, votive.tensor([1.0, 2.0])).tolist() == [[1, 3, 5], [3, 5, 7]]
    assert votive.vmap is vmap


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_chunks_give_the_same(size: int) -> None:
    f = lambda v: (v.sin(), v.sum())
    for got, want in zip(vmap(f, out_dims=(1, 0), chunk_size=size)(x), vmap(f, out_dims=(1, 0))(x), strict=True):
        assert votive.equal(got, want)
    assert votive.equal(jacrev(votive.sin, chunk_size=size)(x), jacfwd(votive.sin, chunk_size=size)(x))


def test_randomness_is_an_error_the_same_or_different() -> None:
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda v: v + votive.rand(2))(x)
    for draw in (
        lambda v: votive.randn(5),
        lambda v: votive.nn.functional.dropout(v * 0 + 1),
        lambda v: votive.randperm(8),
    ):
        same = vmap(draw, randomness="same")(votive.ones(3, 40))
        different = vmap(draw, randomness="different")(votive.ones(3, 40))
        assert votive.equal(same[0], same[1])
        assert not votive.equal(different[0], different[1])
        assert not votive.equal(different[1], different[2])
    votive.manual_seed(0)
    a = vmap(vmap(lambda v: votive.rand(()), randomness="different"), randomness="different")(x)
    assert len(set(a.flatten().tolist())) == 6
    with pytest.raises(RuntimeError, match="inplace"):
        vmap(lambda v: votive.empty(2).uniform_(), randomness="different")(x)
    noise = vmap(lambda v: v.clone().normal_(), randomness="different")(votive.zeros(3, 4))
    assert len(set(noise.flatten().tolist())) == 12


def test_in_place_writes_reach_the_batch_and_its_views() -> None:
    def f(v: Any) -> Any:
        y = v.clone()
        y[0] += 10
        y.t_() if y.ndim == 2 else y.mul_(2)
        return y

    assert vmap(f)(x).tolist() == [[20, 2], [24, 6], [28, 10]]
    y = x.clone()
    vmap(lambda v: v.add_(1))(y)
    assert votive.equal(y, x + 1)
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(lambda v: votive.ones(2).add_(v))(x)


def test_types_follow_one_example_not_the_batch() -> None:
    wide, narrow = votive.ones(3, dtype=votive.float64), votive.ones(3, 2)
    assert vmap(lambda a, b: a * b)(wide, narrow).dtype is votive.float32
    assert vmap(lambda a: a * votive.tensor(2.0, dtype=votive.float64))(votive.ones(3)).dtype is votive.float64


ERRORS = [
    (lambda: vmap(lambda v: v, in_dims=5)(x), ValueError, "that input is a Tensor of dimensionality 2 so expected"),
    (lambda: vmap(lambda v: v, in_dims=(0, 0))(x), ValueError, "in_dims is not compatible with the structure of"),
    (lambda: vmap(lambda v: v, in_dims=None)(x), ValueError, "expected `in_dims` to be int or a (potentially nested)"),
    (lambda: vmap(lambda: 1)(), ValueError, "got no inputs"),
    (lambda: vmap(lambda v: v)(3), ValueError, "We cannot vmap over non-Tensor arguments"),
    (lambda: vmap(lambda v, w: v)(x, x[:2]), ValueError, "got sizes [3, 2] for the mapped dimension"),
    (lambda: vmap(lambda v: 3)(x), ValueError, "must only return Tensors, got type <class 'int'>"),
    (lambda: vmap(lambda v: v, out_dims=(0, 0))(x), ValueError, "out_dims is not compatible with the structure"),
    (lambda: vmap(lambda v: v, out_dims=7)(x), IndexError, "Dimension out of range"),
    (lambda: vmap(lambda v: v, out_dims=None)(x), ValueError, "can not return a BatchedTensor when out_dim is None"),
    (lambda: vmap(lambda v: v, randomness="odd"), RuntimeError, "Only allowed values for randomness"),
    (lambda: vmap(lambda v: v, chunk_size=0), ValueError, "chunk_size should be None or greater than 0. (got 0)"),
    (lambda: vmap(lambda v: v.sum().item())(x), RuntimeError, "calling .item() on a Tensor"),
    (lambda: vmap(lambda v: v if v.sum() > 0 else -v)(x), RuntimeError, "data-dependent control flow"),
    (lambda: vmap(votive.nonzero)(x), RuntimeError, "output dynamic shape"),
    (lambda: grad(lambda v: v)(x), RuntimeError, "to return a scalar Tensor, got tensor with 2 dims"),
    (lambda: grad(lambda v: 3)(x), RuntimeError, "Expected f(*args) to return a Tensor, got <class 'int'>"),
    (lambda: grad(lambda v: v.sum(), argnums=2)(x), RuntimeError, "Got argnum=2, but only 1 positional inputs"),
    (lambda: grad(lambda v: v.sum())(3), ValueError, "Thing passed to transform API must be Tensor"),
    (lambda: grad(lambda v: v.sum(), has_aux=True)(x), RuntimeError, "should be a tuple: (output, aux)"),
    (lambda: jvp(lambda v: v, x, x), RuntimeError, "Expected primals to be a tuple"),
    (lambda: jvp(lambda v: v, (x,), (x, x)), RuntimeError, "to have the same python structure"),
    (lambda: jvp(lambda v: v, (x,), (x[0],)), RuntimeError, "Trying to set a forward gradient that has a different"),
    (lambda: jvp(lambda v: votive.ones(2), (x,), (x,), strict=True), RuntimeError, "independent of the inputs"),
    (lambda: vjp(lambda v: v, x)[1](x[0]), RuntimeError, "Mismatch in shape: grad_output[0]"),
    (lambda: vjp(lambda v: v, x)[1]((x,)), RuntimeError, "Expected pytree structure of cotangents"),
    (lambda: jacrev(lambda v: v, argnums="a")(x), RuntimeError, "argnums must be int or Tuple[int, ...]"),
    (lambda: linearize(votive.sin, x)[1](x[0]), RuntimeError, "doesn't match the shape"),
    (lambda: functional_call(votive.nn.Linear(2, 2), ({"weight": x}, {"weight": x}), x), ValueError, "ambiguous"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[t for _, _, t in ERRORS])
def test_errors_are_torchs(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_values_aux_and_argnums() -> None:
    g, (value, aux) = grad_and_value(lambda a, b: ((a * b).sum(), {"a": a}), argnums=(0, 1), has_aux=True)(x, x)
    assert votive.equal(g[0], x)
    assert value.item() == 55
    assert votive.equal(aux["a"], x)
    assert not aux["a"].requires_grad
    assert votive.equal(grad(lambda a, b: a.sum(), argnums=-1)(x, x), votive.zeros(3, 2))
    jac, aux = jacrev(lambda v: ({"s": v.sum(), "v": v}, v), has_aux=True)(x[0])
    assert jac["v"].tolist() == [[1, 0], [0, 1]]
    assert jac["s"].tolist() == [1, 1]
    (by_a, _by_b), aux = jacfwd(lambda a, b: (a * b, a), argnums=(0, 1), has_aux=True)(x[0], x[1])
    assert by_a.tolist() == [[2, 0], [0, 3]]
    assert votive.equal(aux, x[0])
    assert hessian(lambda a, b: (a * b).sum(), argnums=(0, 1))(x[0], x[1])[0][1].tolist() == [[1, 0], [0, 1]]


def test_gradients_ignore_no_grad_outside_and_respect_it_inside() -> None:
    with votive.no_grad():
        assert grad(votive.sum)(x).tolist() == votive.ones(3, 2).tolist()

    def half(v: Any) -> Any:
        with votive.no_grad():
            c = v * 2
        return (v * c).sum()

    assert votive.equal(grad(half)(x), 2 * x)


def test_linearize_runs_the_function_once() -> None:
    calls = []
    out, move = linearize(lambda v: calls.append(1) or (v * v).sum(0), x)
    for t in (x, votive.ones(3, 2)):
        np.testing.assert_allclose(move(t).numpy(), (2 * x * t).sum(0).numpy())
    assert calls == [1]
    assert votive.equal(out, (x * x).sum(0))
