"""What the catalog's small samples cannot show of reductions and scans: digits, ties, warnings."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import votive as vt


def draws(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.0, 1.0, shape).astype(np.float32)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("transposed", [False, True])
def test_long_float32_sums_keep_their_digits_along_any_dimension(dim: int | None, transposed: bool) -> None:
    a = draws(100_000, 3)
    if transposed:
        a = a.T
    got = vt.from_numpy(a).sum(dim).numpy()
    want = a.astype(np.float64).sum(dim)
    np.testing.assert_allclose(got, want, rtol=3e-7)


def test_long_running_sums_keep_their_digits() -> None:
    a = draws(200_000)
    got = vt.from_numpy(a).cumsum(0).numpy()
    np.testing.assert_allclose(got, a.astype(np.float64).cumsum(), rtol=2e-7)


def test_half_precision_is_added_up_in_a_wider_type() -> None:
    x = vt.ones(100_000, dtype=vt.float16)
    assert x.mean().item() == 1.0  # the sum itself does not fit into float16
    assert x.sum().item() == float("inf")
    assert vt.ones(4096, dtype=vt.bfloat16).sum().item() == 4096


def test_the_variance_of_large_numbers_does_not_cancel() -> None:
    a = draws(1000) + np.float32(1e4)
    got = vt.from_numpy(a).var().item()
    assert got == pytest.approx(np.var(a.astype(np.float64), ddof=1), rel=1e-5)


def test_a_single_sample_has_no_variance_and_says_so() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert np.isnan(vt.ones(1).std().item())
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert np.isnan(vt.ones(1, 3).var(0).numpy()).all()


def test_equal_extremes_share_a_gradient_but_with_a_dim_the_first_has_it_all() -> None:
    def grad(f: object) -> list[float]:
        x = vt.tensor([1.0, 3.0, 3.0], requires_grad=True)
        f(x).backward()  # type: ignore[operator]
        return x.grad.tolist()

    assert grad(lambda x: x.max()) == [0.0, 0.5, 0.5]
    assert grad(lambda x: x.amax(0)) == [0.0, 0.5, 0.5]
    assert grad(lambda x: x.median()) == [0.0, 0.5, 0.5]
    assert grad(lambda x: x.max(0).values) == [0.0, 1.0, 0.0]


def test_a_nan_extreme_sends_its_gradient_to_the_nan() -> None:
    x = vt.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    x.max().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_an_unknown_element_takes_no_gradient_from_the_nanmedian() -> None:
    x = vt.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    x.nanmedian().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_recurrence_joined_in_rounds_equals_the_one_walked_through(n: int, reverse: bool) -> None:
    rng = np.random.default_rng(n)
    gain, x = rng.uniform(-1, 1, (2, n, 3)), rng.uniform(-1, 1, (2, n, 3))
    want = np.zeros_like(x)
    carry = np.zeros((2, 3))
    for k in reversed(range(n)) if reverse else range(n):
        carry = want[:, k] = gain[:, k] * carry + x[:, k]
    op = vt.ops.registry.OPS["_recurrence"]
    got = op(vt.from_numpy(gain), vt.from_numpy(x), 1, reverse).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_the_third_derivative_of_a_product_with_zeros_is_right() -> None:
    # x0 x1 x2 x3 at (0, 0, 5, 0): only the one by x0, x1 and x3 is not zero; it is x2.
    x = vt.tensor([0.0, 0.0, 5.0, 0.0], dtype=vt.float64, requires_grad=True)
    for y in (x.prod(), x.cumprod(0)[-1]):
        (g,) = vt.autograd.grad(y, x, create_graph=True)
        (g,) = vt.autograd.grad(g[0], x, create_graph=True)
        (g,) = vt.autograd.grad(g[1], x)
        assert g.tolist() == [0.0, 0.0, 0.0, 5.0]


def test_running_logsumexp_neither_overflows_nor_loses_its_gradient() -> None:
    x = vt.tensor([-1e4, 0.0, 1e4], dtype=vt.float64, requires_grad=True)
    y = x.logcumsumexp(0)
    assert y.tolist() == [-1e4, 0.0, 1e4]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_the_norm_of_nothing_but_zeros_has_gradient_zero_to_order_two() -> None:
    for p in (2, 3, 1.5, 1, float("inf")):
        x = vt.zeros(3, dtype=vt.float64, requires_grad=True)
        (g,) = vt.autograd.grad(vt.linalg.vector_norm(x, p), x, create_graph=True)
        assert g.tolist() == [0.0, 0.0, 0.0]
    x = vt.zeros(3, dtype=vt.float64, requires_grad=True)
    (g,) = vt.autograd.grad(x.norm(), x, create_graph=True)
    (h,) = vt.autograd.grad(g.sum(), x, allow_unused=True)
    assert h is None or not np.isnan(h.numpy()).any()


def test_results_can_be_read_by_name_unpacked_printed_and_pickled() -> None:
    found = vt.tensor([[1, 5], [7, 2]]).max(1)
    values, indices = found
    assert found.values is values is found[0]
    assert found.indices is indices
    assert repr(found) == ("votive.return_types.max(\nvalues=tensor([5, 7]),\nindices=tensor([1, 0]))")
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is type(found)
    assert again.values.tolist() == [5, 7]


def test_overloads_that_contradict_each_other_are_refused() -> None:
    x = vt.ones(2, 2)
    for call in (
        lambda: x.max(0, other=x),
        lambda: vt.max(x, keepdim=True),
        lambda: x.var(True, False),
        lambda: x.var(0, True, correction=1),
        lambda: x.aminmax(dim=(0, 1)),
    ):
        with pytest.raises(TypeError):
            call()
