"""Backward: accumulation, graphs kept and freed, hooks, in-place rules, and cases that broke
others.
"""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import votive as vt


def param(*values: float) -> vt.Tensor:
    return vt.tensor(values, dtype=vt.float64, requires_grad=True)


def test_a_constant_times_a_parameter_gives_the_parameter_its_gradient() -> None:
    p = param(1.0, 2.0)
    (3.0 * p).sum().backward()
    assert p.grad.tolist() == [3.0, 3.0]


def test_a_constant_divided_by_a_parameter_gives_the_parameter_its_gradient() -> None:
    p = param(1.0, 2.0)
    (1.0 / p).sum().backward()
    assert p.grad.tolist() == [-1.0, -0.25]


@pytest.mark.parametrize("flip", [False, True])
def test_where_gives_gradient_to_the_one_branch_that_needs_it(flip: bool) -> None:
    p, c = param(1.0, 2.0), vt.tensor([True, False])
    other = vt.zeros(2, dtype=vt.float64)
    (vt.where(c, other, p) if flip else vt.where(c, p, other)).sum().backward()
    assert p.grad.tolist() == ([0.0, 1.0] if flip else [1.0, 0.0])


def test_where_lets_no_nan_through_from_the_side_not_taken() -> None:
    x = param(-1.0, 4.0)
    vt.where(x > 0, x.sqrt(), vt.zeros_like(x)).sum().backward()
    fused = vt.fuse(lambda t: vt.where(t > 0, t.sqrt(), 0.0))
    y = param(-1.0, 4.0)
    fused(y).sum().backward()
    assert y.grad.tolist() == [0.0, 0.25]


def test_cat_of_tensors_with_and_without_grad_feeds_only_those_with() -> None:
    a, b = param(1.0), vt.ones(2, dtype=vt.float64)
    (vt.cat([b, a, b]) * vt.arange(5, dtype=vt.float64)).sum().backward()
    assert a.grad.tolist() == [2.0]
    assert b.grad is None


def test_broadcast_matmul_gradients_are_reduced_to_the_operands_shapes() -> None:
    a = vt.ones(5, 2, 3, dtype=vt.float64, requires_grad=True)
    b = vt.ones(3, 4, dtype=vt.float64, requires_grad=True)
    (a @ b).sum().backward()
    assert tuple(b.grad.shape) == (3, 4)
    assert b.grad.tolist() == [[10.0] * 4] * 3


@pytest.mark.parametrize("how", ["index", "gather", "index_select"])
def test_duplicate_indices_accumulate_their_gradients(how: str) -> None:
    w, i = param(1.0, 2.0, 3.0), vt.tensor([0, 2, 2, 2])
    picked = {"index": lambda: w[i], "gather": lambda: w.gather(0, i), "index_select": lambda: w.index_select(0, i)}[
        how
    ]()
    picked.sum().backward()
    assert w.grad.tolist() == [1.0, 0.0, 3.0]


def test_results_under_no_grad_do_not_require_grad() -> None:
    p = param(1.0)
    with vt.no_grad():
        y = p * 2
    assert not y.requires_grad
    assert y.grad_fn is None


def test_a_second_backward_needs_retain_graph() -> None:
    p = param(2.0)
    y = p * p
    y.backward(retain_graph=True)
    y.backward()
    assert p.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_nodes_that_keep_nothing_may_run_backward_again() -> None:
    p = param(2.0)
    y = (p + 1).sum()
    y.backward()
    y.backward()
    assert p.grad.tolist() == [2.0]


def test_a_chain_of_ten_thousand_operators_runs_backward_and_is_freed() -> None:
    p = param(1.0)
    y = p
    for _ in range(10_000):
        y = y * 1.0
    y.sum().backward()
    assert p.grad.tolist() == [1.0]
    del y


def test_a_parameter_used_twice_gets_both_gradients() -> None:
    p = param(3.0)
    (p * p + p).backward()
    assert p.grad.tolist() == [7.0]


@pytest.mark.parametrize("name", ["clone", "to", "var", "std", "contiguous"])
def test_common_operators_keep_the_gradient(name: str) -> None:
    p = param(1.0, 2.0, 4.0)
    out = {
        "clone": lambda: p.clone(),
        "to": lambda: p.to(vt.float32),
        "var": lambda: p.var(),
        "std": lambda: p.std(),
        "contiguous": lambda: p.contiguous(),
    }[name]()
    out.sum().backward()
    assert p.grad is not None
    assert p.grad.dtype is vt.float64


def test_hooks_on_leaves_fire_and_may_replace_the_gradient() -> None:
    p = param(1.0)
    seen = []
    handle = p.register_hook(lambda g: seen.append(g.item()) or g * 10)
    (p * 2).backward()
    handle.remove()
    (p * 2).backward()
    assert seen == [2.0]
    assert p.grad.tolist() == [22.0]


def test_hooks_on_inner_tensors_fire_and_may_replace_the_gradient() -> None:
    p = param(1.0)
    y = p * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    (y * 3).backward()
    assert y.grad.tolist() == [30.0]
    assert p.grad.tolist() == [60.0]


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_ties_of_maximum_and_minimum_split_evenly(name: str) -> None:
    a, b = param(1.0, 2.0), param(1.0, 5.0)
    getattr(vt, name)(a, b).sum().backward()
    assert a.grad[0].item() == b.grad[0].item() == 0.5


def test_ties_of_a_full_max_split_evenly() -> None:
    a = param(2.0, 1.0, 2.0)
    a.max().backward()
    assert a.grad.tolist() == [0.5, 0.0, 0.5]


def test_integer_data_stays_integer() -> None:
    x = vt.tensor([1, 2, 3])
    assert (x + 1).dtype is vt.int64
    assert (x * 2).sum().dtype is vt.int64
    assert (x / 2).dtype is vt.float32
    assert x.float().mean().item() == 2.0


def test_max_along_a_dimension_returns_values_and_indices() -> None:
    values, indices = vt.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    assert values.tolist() == [5.0, 7.0]
    assert indices.tolist() == [1, 0]


def test_a_saved_value_changed_in_place_is_an_error_that_names_the_operator() -> None:
    p = param(1.0)
    h = p * 1
    y = h * h
    h.add_(1)
    with pytest.raises(RuntimeError, match=r"mul.*inplace"):
        y.backward()


def test_operators_that_keep_only_their_output_survive_a_change_of_their_input() -> None:
    p = param(0.5)
    h = p * 1
    y = h.tanh()
    h.add_(1)
    y.backward()
    assert p.grad.item() == pytest.approx(1 - np.tanh(0.5) ** 2)


def test_in_place_on_a_leaf_that_requires_grad_is_refused() -> None:
    p = param(1.0)
    with pytest.raises(RuntimeError, match="leaf"):
        p.add_(1)
    with pytest.raises(RuntimeError, match="leaf"):
        p[0:1].add_(1)
    with vt.no_grad():
        p.add_(1)
    assert p.item() == 2.0


def test_writing_through_a_view_is_tracked_in_the_base() -> None:
    p = param(2.0, 3.0)
    base = vt.zeros(2, 2, dtype=vt.float64)
    base[0].add_(p)
    base[:, 1].mul_(p)
    base.sum().backward()
    # base = [[p0, p1 * p0], [0, 0 * p1]]
    assert p.grad.tolist() == [1.0 + 3.0, 2.0]


def test_a_view_taken_before_the_base_was_written_sees_the_new_history() -> None:
    p = param(2.0, 3.0)
    base = vt.ones(2, dtype=vt.float64)
    view = base[1:]
    base.mul_(p)
    assert view.requires_grad
    view.sum().backward()
    assert p.grad.tolist() == [0.0, 1.0]


def test_create_graph_gives_derivatives_of_any_order() -> None:
    x = param(2.0)
    y = x**4
    for want in (32.0, 48.0, 48.0, 24.0):
        (y,) = vt.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(want)


def test_grad_leaves_dot_grad_alone_and_reports_unused_inputs() -> None:
    a, b = param(1.0), param(2.0)
    with pytest.raises(RuntimeError, match="unused"):
        vt.autograd.grad(a * 2, [a, b])
    got = vt.autograd.grad(a * 2, [a, b], allow_unused=True)
    assert got[0].item() == 2.0
    assert got[1] is None
    assert a.grad is None


def test_backward_of_a_tensor_that_is_no_scalar_needs_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="scalar"):
        (param(1.0, 2.0) * 2).backward()


def test_two_leaves_that_got_the_same_gradient_do_not_share_its_memory() -> None:
    a, b = param(1.0), param(1.0)
    (a + b).backward()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1.0]


def test_the_gradient_passed_in_is_not_aliased_by_the_leaf() -> None:
    p, g = param(1.0), vt.ones(1, dtype=vt.float64)
    p.backward(g)
    p.grad.mul_(5)
    assert g.tolist() == [1.0]


def test_grad_modes_belong_to_their_thread() -> None:
    seen = []
    with vt.no_grad():
        t = threading.Thread(target=lambda: seen.append(vt.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_modes_work_as_decorators_on_functions_and_generators() -> None:
    @vt.no_grad()
    def plain() -> bool:
        return vt.is_grad_enabled()

    @vt.no_grad()
    def gen():
        yield vt.is_grad_enabled()
        yield vt.is_grad_enabled()

    assert plain() is False
    it = gen()
    assert next(it) is False
    assert vt.is_grad_enabled()
    assert next(it) is False


def test_inference_tensors_cannot_enter_a_graph_in_place() -> None:
    with vt.inference_mode():
        x = vt.ones(2) * 2
    assert x.is_inference()
    assert not (vt.ones(2) * 2).is_inference()
    p = vt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="inference"):
        x.mul_(p)


def test_a_view_made_under_no_grad_cannot_be_written_with_grad() -> None:
    base = param(1.0, 2.0) * 1
    with vt.no_grad():
        view = base[:1]
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(2)
    with vt.no_grad():
        view.mul_(2)


def test_a_graph_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        p = param(1.0)
        y = (p * 2).tanh().exp()
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_backward_frees_saved_values() -> None:
    p = param(1.0)
    h = p * 2
    y = (h * h).sum()
    storage = weakref.ref(h._storage)
    del h
    assert storage() is not None
    y.backward()
    assert storage() is None


def test_anomaly_mode_names_the_line_that_made_the_nan() -> None:
    x = param(0.0)
    with vt.autograd.detect_anomaly():
        y = x.sqrt() * 0  # the line to be named
        with pytest.raises(RuntimeError, match="the line to be named"):
            y.backward()


def test_a_missing_gradient_is_an_error() -> None:
    mystery = vt.custom_op("test_mystery(Tensor input)", infer=lambda x: x, kernels={"cpu": lambda x: x + 1})
    y = mystery(param(1.0))
    assert y.item() == 2.0
    with pytest.raises(NotImplementedError, match=r"test_mystery.*'input'"):
        y.backward()


def test_complex_gradients_follow_the_conjugate_convention() -> None:
    z = vt.tensor([1 + 2j], dtype=vt.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [2 + 4j]


def test_gradients_of_real_inputs_in_complex_formulas_are_real() -> None:
    x = param(2.0)
    z = vt.tensor([1 + 1j], dtype=vt.complex128)
    (x * z).real.sum().backward()
    assert x.grad.dtype is vt.float64
    assert x.grad.tolist() == [1.0]


def test_a_gradient_handed_to_two_edges_is_not_added_to_in_place() -> None:
    p = vt.ones(2, 2, dtype=vt.float64, requires_grad=True)
    base = (p * 1).clone()
    view = base.transpose(0, 0)
    scaled = base * 0.5
    base.add_(view.clone())
    (base + 2 * view + 3 * scaled).sum().backward()
    assert p.grad.tolist() == [[7.5, 7.5], [7.5, 7.5]]


def test_operators_without_slope_give_zeros_not_none() -> None:
    p = param(1.5)
    p.floor().sum().backward()
    assert p.grad.tolist() == [0.0]


def test_a_view_made_a_leaf_refuses_writing_as_any_leaf_does() -> None:
    x = vt.arange(6.0).reshape(2, 3).requires_grad_()
    for write in (lambda: x.add_(1), lambda: x[0].mul_(2), lambda: x.view(-1).zero_()):
        with pytest.raises(RuntimeError, match="leaf"):
            write()
    with vt.no_grad():
        x.add_(1)
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_retain_grad_follows_the_tensor_through_writing_in_place() -> None:
    p = param(1.0, 2.0)
    y = p * 2
    y.retain_grad()
    y.mul_(5)
    assert y.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    assert p.grad.tolist() == [30.0, 30.0]


def test_data_of_a_tensor_that_requires_grad_must_stay_differentiable() -> None:
    p = param(1.0, 2.0)
    with pytest.raises(RuntimeError, match="floating"):
        p.data = vt.tensor([1, 2])


def test_nothing_is_recorded_in_inference_mode_even_where_recording_is_switched_on() -> None:
    x = vt.ones(2, requires_grad=True)
    with vt.inference_mode():
        with vt.enable_grad():
            y = x * 2
        with vt.set_grad_enabled(True):
            z = x * 3
    assert (y.requires_grad, y.is_inference()) == (False, True)
    assert (z.requires_grad, z.is_inference()) == (False, True)
    with vt.inference_mode(), vt.inference_mode(False):
        assert (x * 2).requires_grad


def test_inference_tensors_cannot_be_saved_for_backward() -> None:
    with vt.inference_mode():
        x = vt.ones(2, dtype=vt.float64) * 2
    with pytest.raises(RuntimeError, match="inference tensor"):
        param(1.0, 2.0) * x
    (param(1.0, 2.0) + x).sum().backward()  # a sum saves nothing
