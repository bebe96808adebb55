"""Autocast: which dtype an operator runs in, nesting, and the cache of cast weights."""

from __future__ import annotations

import threading
from typing import Any, get_args

import numpy as np
import pytest

import votive
from votive.dispatch import Observer
from votive.dispatch import state as dispatch_state
from votive.ops.autocast_policy import DEVICES, Policy
from votive.ops.registry import COMPOSITES, OPS

F = votive.nn.functional
HALF = [votive.bfloat16, votive.float16]


class Names(Observer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, call: Any) -> None:
        self.names.append(call.op.name)


def weight(*shape: int) -> Any:
    values = np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)
    return votive.tensor(values, requires_grad=True)


# --- policies -------------------------------------------------------------------------------------

# name -> (arguments as shapes, dtype under autocast of the CPU); None is the autocast dtype.
RESULTS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "matmul": (((3, 4), (4, 2)), None),
    "mm": (((3, 4), (4, 2)), None),
    "bmm": (((2, 3, 4), (2, 4, 2)), None),
    "addmm": (((2,), (3, 4), (4, 2)), None),
    "baddbmm": (((2, 3, 2), (2, 3, 4), (2, 4, 2)), None),
    "nn.functional.linear": (((3, 4), (2, 4), (2,)), None),
    "nn.functional.conv1d": (((1, 2, 5), (3, 2, 3), (3,)), None),
    "nn.functional.conv2d": (((1, 2, 5, 5), (3, 2, 3, 3)), None),
    "nn.functional.conv_transpose2d": (((1, 2, 5, 5), (2, 3, 3, 3)), None),
    "nn.functional.scaled_dot_product_attention": (((1, 2, 3), (1, 2, 3), (1, 2, 3)), None),
    "nn.functional.mse_loss": (((3,), (3,)), votive.float32),
    "nn.functional.smooth_l1_loss": (((3,), (3,)), votive.float32),
    "nn.functional.binary_cross_entropy_with_logits": (((3,), (3,)), votive.float32),
    "prod": (((3,),), votive.float32),
    "trace": (((3, 3),), votive.float32),
    "linalg.inv": (((3, 3),), votive.float32),
    "cdist": (((3, 2), (4, 2)), votive.float32),
    "add": (((3,), (3,)), votive.float32),
    "exp": (((3,),), votive.float32),
    "sum": (((3,),), votive.float32),
    "mv": (((3, 3), (3,)), votive.float32),
}


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", RESULTS)
def test_float32_arguments_give_the_dtype_of_the_policy(name: str, dtype: Any) -> None:
    shapes, wanted = RESULTS[name]
    fn = votive
    for part in name.split("."):
        fn = getattr(fn, part)
    args = [weight(*s) for s in shapes]
    plain = fn(*args)
    with votive.autocast("cpu", dtype=dtype):
        y = fn(*args)
    assert plain.dtype is votive.float32
    assert y.dtype is (dtype if wanted is None else wanted)
    assert y.shape == plain.shape
    assert np.allclose(y.detach().float().numpy(), plain.detach().numpy(), rtol=0.05, atol=0.15)
    y.float().sum().backward()
    assert all(a.grad.dtype is votive.float32 for a in args)


@pytest.mark.parametrize(
    ("name", "shapes"), [("nn.functional.mse_loss", [(3,), (3,)]), ("prod", [(3,)]), ("linalg.inv", [(2, 2)])]
)
def test_narrow_arguments_are_widened_where_the_policy_says(name: str, shapes: Any) -> None:
    fn = votive
    for part in name.split("."):
        fn = getattr(fn, part)
    args = [weight(*s).bfloat16() for s in shapes]
    with votive.autocast("cpu"):
        assert fn(*args).dtype is votive.float32


def test_mixed_lists_get_the_widest_dtype() -> None:
    a, b = votive.ones(2), votive.ones(2, dtype=votive.bfloat16)
    with votive.autocast("cpu"):
        assert votive.cat([a, b]).dtype is votive.float32
        assert votive.stack([b, b]).dtype is votive.bfloat16
        assert votive.zeros(3).index_copy(0, votive.tensor([0, 1]), b).dtype is votive.float32


def test_float64_integers_and_bools_are_left_alone() -> None:
    a = votive.ones(2, 2, dtype=votive.float64)
    with votive.autocast("cpu"):
        assert (a @ a).dtype is votive.float64
        assert (votive.ones(2, 2, dtype=votive.int64) @ votive.eye(2).long()).dtype is votive.int64


def test_writing_into_a_given_tensor_is_not_cast() -> None:
    a, out = votive.randn(4, 4), votive.empty(4, 4)
    exact = a @ a
    with votive.autocast("cpu"):
        votive.matmul(a, a, out=out)
        assert out.tolist() == exact.tolist()
        votive.mm(a, a, out=out)
        assert out.tolist() == exact.tolist()


def test_a_composite_with_a_policy_is_cast_once_at_its_door() -> None:
    x, w = votive.ones(1, 2, 5, 5), weight(3, 2, 3, 3)
    with votive.autocast("cpu"), Names() as seen:
        F.conv2d(x, w)
    assert seen.names.count("_copy_as") == 2
    loss_of = weight(4, 3)
    with votive.autocast("cpu"), Names() as seen:
        y = F.cross_entropy(loss_of @ votive.eye(3), votive.tensor([0, 1, 2, 0]))
    assert y.dtype is votive.float32


def test_every_declared_policy_is_known_and_for_a_known_device() -> None:
    declared = {name: item.autocast for name, item in [*OPS.items(), *COMPOSITES.items()] if item.autocast}
    assert len(declared) > 150
    for name, policies in declared.items():
        assert set(policies) <= set(DEVICES), name
        assert set(policies.values()) <= set(get_args(Policy)), name


def test_explain_shows_the_policy() -> None:
    assert "under autocast: lower on cpu, lower on cuda" in votive.explanation("matmul")
    assert "under autocast: float32 on cuda" in votive.explanation("softmax")
    assert "under autocast" not in votive.explanation("relu")


def test_a_declaration_can_give_its_own_policy() -> None:
    from votive.ops.registry import composite

    @composite(name="_halved_for_test", namespaces=(), method=False, autocast={"cpu": "lower"})
    def halved(x: Any) -> Any:
        return x * 0.5

    try:
        x = votive.ones(2)
        assert halved(x).dtype is votive.float32
        with votive.autocast("cpu"):
            assert halved(x).dtype is votive.bfloat16
    finally:
        del COMPOSITES["_halved_for_test"]


def test_an_operator_can_be_refused() -> None:
    from votive.dispatch.autocast import cast

    with votive.autocast("cpu"), pytest.raises(RuntimeError, match="unsafe in 16 bits"):
        cast({"cpu": "refused"}, (votive.ones(2),))


# --- the switch -----------------------------------------------------------------------------------


def product_dtype() -> Any:
    a = votive.ones(2, 2)
    return (a @ a).dtype


def test_blocks_nest_and_can_be_switched_off_inside() -> None:
    assert product_dtype() is votive.float32
    with votive.autocast("cpu"):
        assert product_dtype() is votive.bfloat16
        with votive.autocast("cpu", enabled=False):
            assert product_dtype() is votive.float32
            with votive.autocast("cpu", dtype=votive.float16):
                assert product_dtype() is votive.float16
            assert product_dtype() is votive.float32
        assert product_dtype() is votive.bfloat16
    assert product_dtype() is votive.float32
    assert not dispatch_state.unusual


def test_an_error_inside_leaves_nothing_behind() -> None:
    with pytest.raises(ValueError, match="stop"), votive.autocast("cpu", dtype=votive.float16):
        raise ValueError("stop")
    assert not votive.is_autocast_enabled("cpu")
    assert votive.get_autocast_dtype("cpu") is votive.bfloat16
    assert dispatch_state.autocast == 0


def test_it_decorates_functions_that_may_call_themselves() -> None:
    @votive.autocast("cpu", dtype=votive.float16)
    def run(depth: int) -> Any:
        return run(depth - 1) if depth else product_dtype()

    assert run(3) is votive.float16
    assert run.__name__ == "run"
    assert product_dtype() is votive.float32
    with pytest.raises(TypeError, match="requires a callable"):
        votive.autocast("cpu")(3)  # type: ignore[arg-type]


def test_it_acts_on_its_own_thread_only() -> None:
    found = []
    with votive.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(product_dtype()))
        thread.start()
        thread.join()
        assert product_dtype() is votive.bfloat16
    assert found == [votive.float32]


def test_settings_can_be_read_and_written() -> None:
    assert not votive.is_autocast_enabled("cpu")
    assert not votive.is_autocast_enabled()
    votive.set_autocast_dtype("cpu", votive.float16)
    votive.set_autocast_enabled("cpu", True)
    try:
        assert votive.is_autocast_enabled("cpu")
        assert product_dtype() is votive.float16
    finally:
        votive.set_autocast_enabled("cpu", False)
        votive.set_autocast_dtype("cpu", votive.bfloat16)
    assert product_dtype() is votive.float32
    assert votive.get_autocast_dtype("cuda") is votive.float16
    assert votive.amp.is_autocast_available("cpu")


def test_unknown_devices_and_dtypes_are_refused_or_disabled() -> None:
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'abacus'"):
        votive.autocast("abacus")
    with pytest.raises(ValueError, match="device_type"):
        votive.autocast(votive.device("cpu"))  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        off = votive.autocast("cpu", dtype=votive.float64)
    with off:
        assert product_dtype() is votive.float32
    if "cuda" not in votive.backends.base.BACKENDS:
        with pytest.warns(UserWarning, match="CUDA is not available"):
            votive.autocast("cuda")


def test_nothing_is_paid_when_it_is_off() -> None:
    a = votive.ones(2, 2)
    with votive.autocast("cpu"):
        assert dispatch_state.unusual
        a @ a
    with Names() as seen:
        a @ a
    assert seen.names == ["matmul"]
    assert not dispatch_state.unusual


# --- the cache of weights -------------------------------------------------------------------------


def test_a_weight_is_cast_once_and_its_gradient_flows() -> None:
    w, x = weight(3, 3), votive.ones(3, 3, dtype=votive.bfloat16)
    with votive.autocast("cpu"), Names() as seen:
        y = (x @ w) @ w
    assert seen.names.count("_copy_as") == 1
    y.float().sum().backward()
    v = w.detach().bfloat16().float().requires_grad_()
    ((x.float() @ v) @ v).sum().backward()
    assert w.grad.dtype is votive.float32
    assert np.allclose(w.grad.numpy(), v.grad.numpy(), rtol=0.03, atol=0.1)


def test_the_cache_ends_with_the_outermost_block() -> None:
    w = weight(2, 2)
    with votive.autocast("cpu"):
        with votive.autocast("cpu"), Names() as seen:
            w @ w
        with Names() as again:
            w @ w
        assert (seen.names.count("_copy_as"), again.names.count("_copy_as")) == (1, 0)
    with votive.autocast("cpu"), Names() as seen:
        w @ w
    assert seen.names.count("_copy_as") == 1


def test_the_cache_can_be_switched_off() -> None:
    w = weight(2, 2)
    with votive.autocast("cpu", cache_enabled=False), Names() as seen:
        w @ w
    assert seen.names.count("_copy_as") == 2
    assert votive.is_autocast_cache_enabled()


def test_a_cast_made_without_gradients_is_not_used_where_they_are_needed() -> None:
    w = weight(2, 2)
    with votive.autocast("cpu"):
        with votive.no_grad():
            w @ w
        y = w @ w
    assert y.requires_grad
    y.float().sum().backward()
    assert w.grad is not None


def test_a_weight_that_changes_inside_is_cast_anew() -> None:
    w = weight(2, 2)
    with votive.autocast("cpu"), votive.no_grad():
        before = w @ votive.eye(2)
        w.mul_(2)
        after = w @ votive.eye(2)
    assert after.tolist() == (before * 2).tolist()


def test_two_losses_share_a_cast_weight() -> None:
    w = weight(2, 2)
    with votive.autocast("cpu"):
        a = (votive.ones(1, 2) @ w).float().sum()
        b = (votive.ones(1, 2) @ w).float().sum()
    a.backward()
    b.backward()
    assert w.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_function_runs_again_as_it_ran_first(reentrant: bool) -> None:
    from votive.utils.checkpoint import checkpoint

    x, w = weight(3, 3), weight(3, 3)
    seen = []

    def layer(x: Any) -> Any:
        h = x @ w
        seen.append(h.dtype)  # the second run stops when it has what backward needs, which is before the end
        return h.relu() @ w

    with votive.autocast("cpu"):
        y = checkpoint(layer, x, use_reentrant=reentrant)
    y.float().sum().backward()
    grads = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    with votive.autocast("cpu"):
        y = layer(x)
    y.float().sum().backward()
    assert seen == [votive.bfloat16] * 3
    assert grads[0].tolist() == x.grad.tolist()
    assert grads[1].tolist() == w.grad.tolist()
    assert not dispatch_state.unusual


# --- custom functions -----------------------------------------------------------------------------


def test_a_custom_function_can_ask_for_its_dtype() -> None:
    seen: list[Any] = []

    class Product(votive.autograd.Function):
        @staticmethod
        @votive.amp.custom_fwd(device_type="cpu", cast_inputs=votive.float32)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a.dtype, votive.is_autocast_enabled("cpu")))
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @votive.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            seen.append(votive.is_autocast_enabled("cpu"))
            return g @ b.t(), a.t() @ g

    a = weight(2, 2)
    with votive.autocast("cpu"):
        y = Product.apply(a.bfloat16(), a)
        assert y.dtype is votive.float32
        y.sum().backward()
    assert seen == [(votive.float32, False), False]
    assert Product.apply(a.bfloat16(), a.bfloat16()).dtype is votive.bfloat16


def test_backward_of_a_custom_function_sees_the_autocast_of_forward() -> None:
    seen: list[Any] = []

    class Product(votive.autograd.Function):
        @staticmethod
        @votive.amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        @votive.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            (a,) = ctx.saved_tensors
            made = g @ a
            seen.append(made.dtype)
            return made.float()

    a = weight(2, 2)
    with votive.autocast("cpu", dtype=votive.float16):
        y = Product.apply(a)
    assert y.dtype is votive.float16
    y.float().sum().backward()
    assert seen == [votive.float16]
