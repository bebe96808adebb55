"""autograd.graph and autograd.functional as torch has them: edges, hooks on several gradients, saved values."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.autograd import functional, graph


def leaf(*values: float) -> votive.Tensor:
    return votive.tensor(values, requires_grad=True)


def test_edges_stand_for_tensors() -> None:
    a = leaf(1.0, 2.0)
    b = a * a
    edge = graph.get_gradient_edge(b)
    assert edge.node is b.grad_fn
    assert isinstance(edge.node, graph.Node)
    assert graph.get_gradient_edge(a).node is b.grad_fn.next_functions[0][0]
    by_b, by_a = votive.autograd.grad((b * 3).sum(), [edge, graph.get_gradient_edge(a)])
    assert by_b.tolist() == [3, 3]
    assert by_a.tolist() == [6, 12]
    (g,) = votive.autograd.grad([graph.get_gradient_edge(a * 5)], [a], [votive.ones(2)])
    assert g.tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(votive.ones(1))


def test_hooks_of_the_node_that_stands_for_a_leaf_run() -> None:
    a = leaf(1.0)
    node: Any = graph.get_gradient_edge(a).node
    seen: list[Any] = []
    node.register_hook(lambda ins, outs: seen.append((ins, outs[0].item())))
    node.register_prehook(lambda grads: (grads[0] * 2,))
    (a * 3).backward()
    assert seen == [((), 6.0)]


def test_a_hook_waits_for_all_gradients_that_will_come() -> None:
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen: list[Any] = []
    handle = graph.register_multi_grad_hook((a, b, c), lambda grads: seen.append(grads))
    x, y = a * b, b * c
    (x + y).backward(retain_graph=True)
    assert [g.item() for g in seen[0]] == [2, 4, 2]
    x.backward(retain_graph=True)
    assert seen[1][2] is None
    votive.autograd.grad(y, c, retain_graph=True)
    assert seen[2][0] is None
    assert seen[2][1] is None
    handle.remove()
    (x + y).backward()
    assert len(seen) == 3


def test_a_hook_runs_at_the_first_gradient() -> None:
    a, b = leaf(1.0), leaf(2.0)
    seen: list[Any] = []
    with graph.register_multi_grad_hook((a, b), seen.append, mode="any"):
        (a * b).backward(retain_graph=True)
    assert len(seen) == 1
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook((a,), seen.append, mode="some")


def test_saved_values_may_be_refused_or_overwritten() -> None:
    with graph.disable_saved_tensors_hooks("no hooks here"), pytest.raises(RuntimeError, match="no hooks here"):
        graph.save_on_cpu().__enter__()
    with graph.allow_mutation_on_saved_tensors():
        a = leaf(1.0, 2.0)
        b = a.clone()
        (g,) = votive.autograd.grad((b**3).sum(), a, create_graph=True)
        b.zero_()
        (h,) = votive.autograd.grad(g.sum(), a)
    assert g.tolist() == [3, 12]
    assert h.tolist() == [6, 12]
    x = leaf(2.0)
    y = x.exp()
    z = y * y
    graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_jacobians_agree_whichever_way_they_are_made() -> None:
    def f(x: Any, y: Any) -> Any:
        return x.exp() * y.sum(), (x * x).sum()

    args = (votive.tensor([1.0, 2.0]), votive.tensor([0.5, 1.5, 2.0]))
    want = functional.jacobian(f, args)
    for options in ({"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        got = functional.jacobian(f, args, **options)  # type: ignore[arg-type]
        for row, other in zip(got, want, strict=True):
            for p, q in zip(row, other, strict=True):
                assert votive.allclose(p, q)
    cube = lambda x: (x**3).sum()
    for options in ({}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}):
        assert functional.hessian(cube, args[0], **options).tolist() == [[6, 0], [0, 12]]  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        functional.jacobian(f, args, strategy="forward-mode")
    with pytest.raises(AssertionError, match="Expected strategy"):
        functional.jacobian(f, args, strategy="odd")
