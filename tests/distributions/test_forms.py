"""Shapes, errors, transforms and examples of distributions."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.distributions as D
from tests import docstrings

from .values import t


def test_expand_shares_memory_and_keeps_validation() -> None:
    d = D.Normal(vt.zeros(3), vt.ones(3), validate_args=False)
    wide = d.expand((2, 3))
    assert wide.batch_shape == (2, 3)
    assert wide.loc.data_ptr() == d.loc.data_ptr()
    assert wide._validate_args is False
    gamma = D.Chi2(vt.ones(3)).expand((2, 3))
    assert gamma.df.shape == (2, 3)
    assert gamma.sample((4,)).shape == (4, 2, 3)


def test_a_subclass_with_its_own_init_must_bring_its_own_expand() -> None:
    class Tempered(D.Normal):
        def __init__(self, temperature: float) -> None:
            self.temperature = temperature
            super().__init__(vt.zeros(2), temperature)

    with pytest.raises(NotImplementedError):
        Tempered(2.0).expand((3, 2))

    class Kind(D.Normal):
        def __init__(self, temperature: float) -> None:
            self.temperature = temperature
            super().__init__(vt.zeros(2), temperature)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Kind, _instance)
            new.temperature = self.temperature
            return super().expand(batch_shape, _instance=new)

    assert Kind(2.0).expand((3, 2)).sample().shape == (3, 2)


def test_validation_can_be_switched_off() -> None:
    D.Normal(0.0, -1.0, validate_args=False)
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="set_default"):
        D.Distribution.set_default_validate_args(2)  # type: ignore[arg-type]


def test_wrong_parameters_and_values_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"scale .*GreaterThan\(lower_bound=0.0\)"):
        D.Normal(vt.zeros(2), vt.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Bernoulli(0.5, 0.5)
    with pytest.raises(ValueError, match="numbers or tensors"):
        D.Normal([0.0], 1.0)
    with pytest.raises(ValueError, match="support"):
        D.Exponential(1.0).log_prob(vt.tensor(-1.0))
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="event_shape"):
        D.Dirichlet(vt.ones(3)).log_prob(vt.ones(2) / 2)
    with pytest.raises(ValueError, match="broadcastable"):
        D.Normal(vt.zeros(3), 1.0).log_prob(vt.zeros(2))
    with pytest.raises(ValueError, match="positive"):
        D.Geometric(vt.tensor([0.5, 0.0]))


def test_a_lazy_parameter_is_made_once_and_keeps_its_gradient() -> None:
    logits = vt.zeros(3, requires_grad=True)
    d = D.Bernoulli(logits=logits)
    with vt.no_grad():
        probs = d.probs
    assert probs.requires_grad
    assert d.probs is probs


def test_a_cached_transform_returns_the_very_tensors() -> None:
    transform = D.TanhTransform(cache_size=1)
    x = vt.tensor([30.0])
    y = transform(x)
    assert transform.inv(y) is x
    assert transform(x) is y
    with pytest.raises(ValueError, match="cache_size"):
        D.ExpTransform(cache_size=2)


@pytest.mark.parametrize(
    "transform",
    [
        D.ExpTransform(),
        D.PowerTransform(t(2.0)),
        D.SigmoidTransform(),
        D.SoftplusTransform(),
        D.TanhTransform(),
        D.AffineTransform(t(1.0), t(-3.0)),
        D.CumulativeDistributionTransform(D.Normal(t(0.3), t(1.4))),
        D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.TanhTransform()]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_transform_stretches_by_its_slope_and_is_undone_by_its_inverse(transform: Any) -> None:
    x = vt.linspace(0.1, 1.3, 7, dtype=vt.float64).requires_grad_()
    y = transform(x)
    (slope,) = vt.autograd.grad(y.sum(), x, retain_graph=True)
    got = transform.log_abs_det_jacobian(x, y).detach().numpy()
    np.testing.assert_allclose(got, np.log(np.abs(slope.numpy())), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.inv(y).detach().numpy(), x.detach().numpy(), rtol=1e-9)
    assert transform.inv.inv is transform
    inverse = transform.inv.log_abs_det_jacobian(y, x).detach().numpy()
    np.testing.assert_allclose(inverse, -got, rtol=1e-9, atol=1e-12)


def test_stick_breaking_stretches_by_its_determinant() -> None:
    transform = D.StickBreakingTransform()
    x = vt.tensor([0.3, -0.7, 1.1], dtype=vt.float64)
    jacobian = vt.autograd.functional.jacobian(lambda v: transform(v)[:-1], x)
    want = float(vt.linalg.slogdet(jacobian)[1])
    y = transform(x)
    assert float(transform.log_abs_det_jacobian(x, y)) == pytest.approx(want)
    assert float(y.sum()) == pytest.approx(1)
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9)


def test_every_example_of_the_package_runs_as_printed() -> None:
    found = {n: v for n, v in vars(D).items() if inspect.isclass(v) or inspect.isfunction(v)}
    found["Constraint"] = D.constraints.Constraint
    assert len(found) > 40
    for name, value in found.items():
        docstrings.run(name, value.__doc__, options=docstrings.OPTIONS | doctest.IGNORE_EXCEPTION_DETAIL)
