"""Optimizer steps, gradient norms and scaling on native kernels, held against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import optim
from votive.core import dtype as dt
from votive.ops.registry import OPS, F

from .compare import needs_native, reference_only, same, served_by_native

pytestmark = needs_native

CASES: list[tuple[Any, str, dict[str, Any]]] = [
    (optim.SGD, "_sgd_step", {"lr": 0.1}),
    (optim.SGD, "_sgd_step", {"lr": 1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    (optim.SGD, "_sgd_step", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (optim.Adam, "_adam_step", {"weight_decay": 0.1, "maximize": True}),
    (optim.AdamW, "_adam_step", {"lr": 0.01, "betas": (0.4, 0.99)}),
    (optim.AdamW, "_adam_step", {"amsgrad": True, "weight_decay": 0}),
    (optim.RMSprop, "_rmsprop_step", {"weight_decay": 0.1}),
    (optim.RMSprop, "_rmsprop_step", {"momentum": 0.9}),
    (optim.RMSprop, "_rmsprop_step", {"centered": True, "maximize": True}),
    (optim.RMSprop, "_rmsprop_step", {"centered": True, "momentum": 0.5}),
    (optim.Adagrad, "_adagrad_step", {"lr_decay": 0.1, "weight_decay": 0.1}),
    (optim.Adadelta, "_adadelta_step", {"weight_decay": 0.1}),
    (optim.Adamax, "_adamax_step", {"weight_decay": 0.1}),
    (optim.NAdam, "_nadam_step", {"weight_decay": 0.1}),
    (optim.NAdam, "_nadam_step", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RAdam, "_radam_step", {"weight_decay": 0.1}),
    (optim.RAdam, "_radam_step", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.Lion, "_lion_step", {"weight_decay": 0.1}),
    (optim.Rprop, "_rprop_step", {"lr": 0.01}),
    (optim.ASGD, "_asgd_step", {"t0": 2, "weight_decay": 0.1}),
]
NAMES = [f"{c[0].__name__}-{'-'.join(map(str, c[2]))}" for c in CASES]
SHAPES = [(), (1,), (0, 3), (7,), (16,), (33, 5), (3, 4, 5), (1030,), (150, 121)]


def _values(shape: tuple[int, ...], dtype: dt.dtype, seed: int) -> Any:
    array = np.random.default_rng(seed).normal(size=shape)
    return votive.tensor(array, dtype=dtype)


def _laid_out(x: Any, how: int) -> Any:
    if how == 1 and x.ndim >= 2:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if how == 2 and x.ndim >= 1 and x.numel():
        wide = votive.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype)
        wide[..., 1::2].copy_(x)
        return wide[..., 1::2]
    return x


def _trained(cls: Any, options: dict[str, Any], dtype: dt.dtype, layouts: tuple[int, int]) -> list[Any]:
    """Parameters and states after some steps."""
    params = [votive.nn.Parameter(_laid_out(_values(s, dtype, i), layouts[0])) for i, s in enumerate(SHAPES)]
    opt = cls(params, **options)
    for step in range(8):
        for i, p in enumerate(params):
            p.grad = _laid_out(_values(SHAPES[i], dtype, 100 * step + i), layouts[1])
        opt.step()
    return [p.detach() for p in params] + [
        v for p in params for v in opt.state[p].values() if isinstance(v, votive.Tensor)
    ]


@pytest.mark.parametrize("dtype", [dt.float64, dt.float32, dt.bfloat16, dt.float16])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_steps_follow_the_reference(case: Any, dtype: dt.dtype) -> None:
    cls, _, options = case
    ours = _trained(cls, options, dtype, (0, 0))
    with reference_only():
        theirs = _trained(cls, options, dtype, (0, 0))
    # One rounding more or less is carried along by the states.
    half = dtype in dt.HALF
    same(ours, theirs, rtol=3e-2 if half else None, atol=3e-2 if half else None)


@pytest.mark.parametrize("layouts", [(1, 1), (1, 0), (0, 1), (2, 2), (2, 0)])
@pytest.mark.parametrize("dtype", [dt.float64, dt.bfloat16])
@pytest.mark.parametrize("case", [CASES[1], CASES[5]], ids=["sgd", "adamw"])
def test_steps_work_on_every_layout(case: Any, dtype: dt.dtype, layouts: tuple[int, int]) -> None:
    cls, _, options = case
    ours = _trained(cls, options, dtype, layouts)
    with reference_only():
        theirs = _trained(cls, options, dtype, layouts)
    half = dtype in dt.HALF
    same(ours, theirs, rtol=3e-2 if half else None, atol=3e-2 if half else None)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_steps_are_native(case: Any) -> None:
    cls, op, options = case
    assert served_by_native(op, lambda: _trained(cls, options, dt.float32, (0, 0)))


def test_numbers_may_be_integers_or_floats() -> None:
    for lr, momentum in [(1, 0), (1.0, 0.5), (1, 0.5), (0.5, 1)]:
        p, g, b = (_values((5,), dt.float64, k) for k in range(3))
        want_b = b.numpy() * momentum + g.numpy()
        want = p.numpy() - lr * (want_b if momentum else g.numpy())
        F._sgd_step([p], [g], [b], (False,), lr, momentum, 0, 0, False, False)
        np.testing.assert_allclose(p.numpy(), want)


def test_a_plan_made_without_momentum_refuses_it() -> None:
    p, g = (_values((5,), dt.float64, k) for k in range(2))
    F._sgd_step([p], [g], [], (False,), 0.1, 0.0, 0.0, 0.0, False, False)
    with pytest.raises(ValueError):
        F._sgd_step([p], [g], [], (False,), 0.1, 0.9, 0.0, 0.0, False, False)


def test_a_tensor_listed_twice_is_stepped_twice() -> None:
    p = votive.nn.Parameter(_values((70000,), dt.float64, 0))
    start = p.detach().clone()
    with pytest.warns(UserWarning, match="duplicate"):
        opt = optim.SGD([p, p], lr=0.5)
    p.grad = votive.ones_like(p)
    opt.step()
    same(p.detach(), start - 1.0)


@pytest.mark.parametrize("dtype", [dt.float64, dt.float32, dt.bfloat16, dt.float16])
@pytest.mark.parametrize("ord", [1.0, 2.0, float("inf"), 3.0])
def test_total_norms_agree(ord: float, dtype: dt.dtype) -> None:
    shapes = [s for s in SHAPES if 0 not in s] + [(40000,)]
    for how in range(3):
        grads = [_laid_out(_values(s, dtype, i), how) for i, s in enumerate(shapes)]
        ours = F._total_norm(grads, ord)
        with reference_only():
            theirs = F._total_norm(grads, ord)
        same(ours, theirs)


def test_total_norms_carry_nan_and_infinity() -> None:
    for ord in (1.0, 2.0, float("inf")):
        for bad in (float("nan"), float("inf"), -float("inf")):
            x = _values((1000,), dt.float32, 0)
            x[437] = bad
            got = F._total_norm([votive.ones(3), x], ord).item()
            assert got != got if bad != bad else got == float("inf")


def test_norms_of_several_types_meet_in_the_widest() -> None:
    grads = [_values((5,), d, i) for i, d in enumerate([dt.float16, dt.float64, dt.float32])]
    assert F._total_norm(grads, 2.0).dtype is dt.float64


@pytest.mark.parametrize("dtype", [dt.float64, dt.float32, dt.bfloat16])
def test_scaling_and_unscaling_agree(dtype: dt.dtype) -> None:
    for how in range(3):
        for bad in (None, float("nan"), float("inf")):
            made = []
            for native in (True, False):
                grads = [_laid_out(_values(s, dtype, i), how) for i, s in enumerate(SHAPES)]
                if bad is not None:
                    grads[-1][3, 4] = bad
                factor, found = votive.tensor(0.37), votive.zeros(())
                unscale_ = F._amp_foreach_non_finite_check_and_unscale_
                if native:
                    unscale_(grads, found, factor)
                    F._scale_(grads, factor)
                else:
                    with reference_only():
                        unscale_(grads, found, factor)
                        F._scale_(grads, factor)
                assert found.item() == float(bad is not None)
                made.append(grads)
            same(*made)


def test_scaling_refuses_elements_that_share_memory() -> None:
    with pytest.raises(RuntimeError, match="single memory location"):
        F._scale_([votive.ones(1).expand(4)], votive.tensor(0.5))


def test_writes_are_counted() -> None:
    p = _values((5,), dt.float32, 0)
    before = p._version
    F._scale_([p], votive.tensor(0.5))
    assert p._version == before + 1
    assert next(iter(OPS["_scale_"].plans.values())).row.label == "native"
