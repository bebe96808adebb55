"""The dispatcher: plans, observers, kernels added at run time, custom operators, fuse, explain."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import votive as vt
from votive.core.layout import Spec
from votive.dispatch import Observer, build
from votive.formula import apply
from votive.ops.registry import OPS


class Watch(Observer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, call) -> None:
        self.names.append(call.op.name)


def test_an_observer_sees_every_call_and_nothing_after_it_left() -> None:
    x = vt.ones(3)
    x + x
    with Watch() as w:
        (x + x).tanh().sum()
        x.add_(1)
    x + x
    assert w.names == ["add", "tanh", "sum", "add"]


def test_an_observer_may_replace_a_result() -> None:
    class Zero(Observer):
        def after(self, call):
            return vt.zeros(2) if call.op.name == "tanh" else None

    with Zero():
        assert vt.ones(2).tanh().tolist() == [0.0, 0.0]


class Double(Observer):
    """Doubles the first argument of tanh, whatever its form."""

    def before(self, call):
        if call.op.name == "tanh":
            call.args = (call.args[0] * 2, *call.args[1:])


class Nines(Observer):
    def after(self, call):
        return vt.full((2,), 9.0) if call.op.name == "tanh" else None


@pytest.mark.parametrize("form", ["function", "in place", "out"])
def test_an_observer_may_replace_arguments_and_results_in_every_form(form: str) -> None:
    def run(x):
        if form == "function":
            return x.tanh()
        if form == "in place":
            x.tanh_()  # its result is not used
            return x
        out = vt.empty(2)
        vt.tanh(x, out=out)
        return out

    x = vt.tensor([0.5, 1.0])
    doubled = (x * 2).tanh()
    with Double():
        assert vt.equal(run(x.clone()), doubled)
    with Nines():
        assert run(x.clone()).tolist() == [9.0, 9.0]
    y = x.clone().requires_grad_()
    if form != "out":
        with Double():
            run(y * 1).sum().backward()
        assert vt.allclose(y.grad, 2 * (1 - doubled**2))


def test_an_observer_is_told_when_numbers_go_to_python() -> None:
    class Reads(Observer):
        count = 0

        def read(self, tensor):
            self.count += 1

    x = vt.ones(1)
    ways = [
        x.item,
        x.tolist,
        x.numpy,
        x.__array__,
        lambda: bool(x),
        lambda: float(x),
        x.__dlpack__,
        lambda: int(x.long()),
        lambda: range(3)[vt.tensor(1)],
    ]
    with Reads() as seen:
        for number, way in enumerate(ways, 1):
            way()
            assert seen.count == number


def test_an_observer_leaves_also_after_an_error() -> None:
    with pytest.raises(ValueError, match="stop"), Watch():
        raise ValueError("stop")
    assert vt.dispatch.state.observers == ()


def test_a_plan_is_built_once_per_layout() -> None:
    op = OPS["add"]
    a = vt.ones(7, 3)
    op.forget()
    for _ in range(5):
        a.clone() + a.clone()
    built = len(op.plans)
    for _ in range(5):
        a.clone() + a.clone()
    assert len(op.plans) == built


def test_what_a_call_accepts_does_not_depend_on_earlier_calls() -> None:
    x = vt.ones(2, 3)
    vt.cat((x[0], x[1]))
    with pytest.raises(TypeError, match="tuple of Tensors"):
        vt.cat(x)
    x.sum(1)
    with pytest.raises(TypeError):
        x.sum(1.0)
    with pytest.raises(TypeError):
        x.sum(True)


def test_rows_of_a_matrix_share_one_plan() -> None:
    op = OPS["mul"]
    x = vt.ones(50, 4)
    op.forget()
    for i in range(50):
        x[i] * x[i]
    assert len(op.plans) == 1


def test_plans_are_bounded_for_programs_with_ever_new_shapes() -> None:
    op, limit = OPS["neg"], vt.dispatch.build.PLAN_LIMIT
    gc.collect()
    before = len(Spec._table)
    base = vt.zeros(limit + 200)
    for n in range(1, limit + 200):
        vt.neg(base[:n])
    assert len(op.plans) <= limit + 1
    assert all(len(known) <= limit for known in build._memories)
    vt.dispatch.drop_plans()
    gc.collect()
    # Interned specs go with the plans and tensors that had them.
    assert len(Spec._table) < before + 100


def test_a_kernel_added_at_run_time_takes_over_and_leaves() -> None:
    def mine(x, dim, dtype):
        return np.full(x.shape, 42)

    x = vt.tensor([1, 2, 3])
    with vt.register_kernel("cumsum", mine):
        assert x.cumsum(0).tolist() == [42, 42, 42]
    assert x.cumsum(0).tolist() == [1, 3, 6]


def test_a_kernel_row_can_accept_some_inputs_only() -> None:
    def mine(x, dim, dtype):
        return np.zeros(x.shape, dtype.np)

    with vt.register_kernel("cumsum", mine, accepts=lambda s: s.numel > 2):
        assert vt.tensor([1, 2, 3]).cumsum(0).tolist() == [0, 0, 0]
        assert vt.tensor([1, 2]).cumsum(0).tolist() == [1, 3]


def test_a_missing_kernel_names_operator_and_device() -> None:
    from votive.backends.base import Request, bind

    with pytest.raises(NotImplementedError, match=r"sum.*'nowhere'"):
        bind("nowhere", Request("sum", (), (), (), (), None, True, None))


def test_a_custom_elementwise_operator_has_a_gradient_and_in_place_and_out_forms() -> None:
    cube = vt.custom_op("test_cube(Tensor input)", lambda x: x * x * x, doc="The cube.")
    x = vt.tensor([1.0, 2.0], requires_grad=True)
    cube(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]
    out = vt.empty(0)
    assert cube(x.detach(), out=out) is out
    assert out.tolist() == [1.0, 8.0]
    assert "input^2" in vt.explanation("test_cube")


def test_a_custom_structured_operator_runs_its_kernel_and_gradient() -> None:
    reverse = vt.custom_op(
        "test_reverse(Tensor input)",
        infer=lambda x: x.like(x.shape),
        kernels={"cpu": lambda x: x[::-1]},
        grad={"input": lambda c, g: g.flip(0)},
    )
    x = vt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = reverse(x)
    assert y.tolist() == [3.0, 2.0, 1.0]
    (y * vt.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 10.0, 1.0]


def test_a_custom_operator_needs_a_formula_or_kernels() -> None:
    with pytest.raises(TypeError, match="formula"):
        vt.custom_op("nothing(Tensor input)")


def test_fuse_makes_one_call_of_many_with_the_same_value_and_gradient() -> None:
    def f(x, y):
        return vt.nn.functional.gelu(x * y + 1) * vt.sigmoid(x) - y / 3

    fused = vt.fuse(f)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 1)), rng.normal(size=(4, 5))
    results = []
    for fn in (f, fused):
        x, y = (vt.from_numpy(v.copy()).requires_grad_() for v in (a, b))
        with Watch() as w:
            z = fn(x, y)
        z.sum().backward()
        (gx,) = vt.autograd.grad((fn(x, y) ** 2).sum(), x, create_graph=True)
        (gxx,) = vt.autograd.grad(gx.sum(), x)
        results.append((z, x.grad, y.grad, gx, gxx))
        if fn is fused:
            assert len(w.names) == 1
    for u, v in zip(*results, strict=True):
        np.testing.assert_allclose(u.detach().numpy(), v.detach().numpy(), rtol=1e-12)


def test_fuse_keeps_hand_given_gradients() -> None:
    x = vt.tensor([0.0, -1.0, 2.0], requires_grad=True)
    vt.fuse(lambda t: vt.relu(t) * 3)(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 3.0]


def test_fuse_traces_anew_for_other_dtypes_and_promotes_as_the_function_would() -> None:
    half = vt.fuse(lambda x: x / 2)
    assert half(vt.tensor([1, 2])).dtype is vt.float32
    assert half(vt.tensor([1.0, 2.0], dtype=vt.float64)).dtype is vt.float64
    vt.set_default_dtype(vt.float64)
    try:
        assert half(vt.tensor([1, 2])).dtype is vt.float64
    finally:
        vt.set_default_dtype(vt.float32)
    test = vt.fuse(lambda x: x > 0)
    assert test(vt.tensor([1, -2])).tolist() == [True, False]


def test_fuse_refuses_what_is_not_elementwise() -> None:
    with pytest.raises(NotImplementedError, match="cumsum is not elementwise"):
        vt.fuse(lambda x: x.cumsum(0))(vt.ones(2))
    with pytest.raises(NotImplementedError, match="a reduction must be the last step"):
        vt.fuse(lambda x: x.sum() * 2)(vt.ones(2))
    with pytest.raises(NotImplementedError, match="a reduction must be the last step"):
        vt.fuse(lambda x: x.sum(0).sum())(vt.ones(2))
    with pytest.raises(NotImplementedError, match="value was asked"):
        vt.fuse(lambda x: x * float(x))(vt.ones(1))


def test_fuse_returns_several_results() -> None:
    a, b = vt.fuse(lambda x: (x + 1, x * 2))(vt.tensor([3.0]))
    assert (a.item(), b.item()) == (4.0, 6.0)


@pytest.mark.parametrize("name", ["gelu", "sum", "reshape", "nn.functional.softmax", "transpose", "add_"])
def test_explain_describes_operators_of_every_kind(name: str) -> None:
    text = vt.explanation(name)
    assert "defined in votive/ops/" in text
    assert ">>>" in text


def test_explain_shows_formula_gradient_and_kernels() -> None:
    text = vt.explanation("tanh")
    for part in ("y = tanh(input)", "g * (1 - y^2)", "keeps y", "vt::tanh", "m.f_tanh"):
        assert part in text


def test_explain_suggests_names_for_a_wrong_one() -> None:
    with pytest.raises(KeyError, match=r"Did you mean 'gelu'\?"):
        vt.explain("gelluu")


def test_formula_primitives_can_be_used_in_custom_operators() -> None:
    op = vt.custom_op("test_softsign2(Tensor input)", lambda x: x / (1 + apply("abs", x)))
    assert op(vt.tensor([1.0, -3.0])).tolist() == [0.5, -0.75]


def test_what_is_no_tensor_is_named_with_the_function_it_was_given_to() -> None:
    x = vt.ones(2, 2)
    for name, call in {
        "nanmean": lambda: vt.nanmean([1.0]),
        "std": lambda: vt.std(None),
        "fft": lambda: vt.fft.fft("a"),
        "cross_entropy": lambda: vt.nn.functional.cross_entropy(x, None),
    }.items():
        with pytest.raises(TypeError, match=f"^{name}: expected a Tensor"):
            call()
    with pytest.raises(AttributeError, match="no_such"):
        x.no_such  # noqa: B018 - reading it is the test
