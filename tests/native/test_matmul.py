"""Native matrix products hold against the reference for every type, layout and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.nn import functional as F
from votive.ops.registry import OPS

from .compare import TOLERANCE, agree, layouts, needs_native, reference_only, same, served_by_native

pytestmark = needs_native

FLOATS = [votive.float32, votive.float64, votive.float16, votive.bfloat16]
INTS = [votive.int8, votive.uint8, votive.int16, votive.int32, votive.int64]
# Around vectors, tiles, blocks and the sizes that are handed to threads.
SIZES = [
    (1, 1, 1),
    (1, 7, 3),
    (2, 33, 70),
    (3, 1, 40),
    (4, 40, 4),
    (5, 17, 31),
    (12, 32, 16),
    (13, 33, 17),
    (24, 64, 15),
    (25, 65, 129),
    (64, 64, 64),
    (100, 3, 200),
    (97, 200, 130),
    (1, 300, 257),
    (300, 1, 257),
    (2, 2, 40000),
    (40, 20, 1100),
    (130, 500, 520),
    (8, 600, 96),
    # Slivers: sums of a few terms, results of a few columns, rows that end within a vector.
    (700, 5, 4),
    (300, 2, 1),
    (31, 1, 2),
    (257, 4, 8),
    (9, 370, 6),
    (49, 300, 114),
    (3, 70, 18),
    (16, 130, 20),
]


def draw(*shape: int, dtype: Any) -> Any:
    if dtype.is_floating_point:
        return votive.randn(shape, dtype=votive.float64).to(dtype)
    low = 0 if dtype is votive.uint8 else -100
    return votive.randint(low, 100, shape, dtype=dtype)


def close_to_truth(ours: Any, *factors: Any) -> None:
    """The product is near that of exact factors; integers wrap around."""
    a, b = (f.to(votive.float64).numpy() for f in factors)
    tolerance = TOLERANCE[ours.dtype]
    size = max(1.0, float(np.abs(a).max(initial=0)) * float(np.abs(b).max(initial=0)))
    atol = tolerance * size * max(1, a.shape[-1]) ** 0.5
    got = ours.to(votive.float64).numpy()
    np.testing.assert_allclose(got, np.matmul(a, b), rtol=tolerance, atol=atol)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("m, n, k", SIZES)
def test_products_of_floats_are_true_in_every_layout(m: int, n: int, k: int, dtype: Any) -> None:
    a, b = draw(m, k, dtype=dtype), draw(k, n, dtype=dtype)
    for x in layouts(a):
        for y in layouts(b):
            close_to_truth(x @ y, x, y)


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (3, 40, 7), (33, 65, 100), (70, 1, 600)])
def test_products_of_integers_wrap_around(m: int, n: int, k: int, dtype: Any) -> None:
    a, b = draw(m, k, dtype=dtype), draw(k, n, dtype=dtype)
    for x in layouts(a):
        for y in layouts(b):
            agree(votive.matmul, x, y)


@pytest.mark.parametrize("dtype", [votive.int32, votive.int64], ids=str)
def test_overflow_of_wide_integers_wraps(dtype: Any) -> None:
    top = 2 ** (31 if dtype is votive.int32 else 63) - 1
    a = votive.full((5, 9), top, dtype=dtype)
    agree(votive.matmul, a, a.T)


BATCHES = [
    ((7,), (7,)),
    ((7,), (7, 5)),
    ((5, 7), (7,)),
    ((2, 5, 7), (7,)),
    ((7,), (2, 7, 5)),
    ((3, 5, 7), (7, 6)),
    ((3, 5, 7), (3, 7, 6)),
    ((3, 1, 5, 7), (4, 7, 6)),
    ((5, 7), (3, 7, 6)),
    ((2, 3, 4, 5), (2, 1, 5, 6)),
    ((64, 16, 8), (64, 8, 16)),
    ((1, 5, 7), (4, 7, 6)),
    ((2, 3, 1, 1, 9), (9, 20)),
    ((40, 1, 64), (40, 64, 50)),
    ((3, 130, 200), (3, 200, 90)),
]


@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16, votive.int64], ids=str)
@pytest.mark.parametrize("a, b", BATCHES)
def test_vectors_and_batches_multiply_as_in_the_reference(a: Any, b: Any, dtype: Any) -> None:
    x, y = draw(*a, dtype=dtype), draw(*b, dtype=dtype)
    for p in layouts(x):
        for q in layouts(y):
            agree(votive.matmul, p, q)


def test_expanded_factors_are_read_in_place() -> None:
    row, column = votive.randn(1, 40), votive.randn(40, 1)
    agree(votive.matmul, row.expand(30, 40), column.expand(40, 50))
    agree(votive.matmul, votive.randn(1, 8, 40).expand(6, 8, 40), votive.randn(6, 40, 5))
    agree(votive.matmul, votive.randn(6, 8, 40), votive.randn(1, 40, 5).expand(6, 40, 5))


@pytest.mark.parametrize("dtype", [*FLOATS, votive.int32], ids=str)
@pytest.mark.parametrize(
    "a, b",
    [
        ((0, 3), (3, 4)),
        ((3, 0), (0, 4)),
        ((4, 3), (3, 0)),
        ((0,), (0,)),
        ((2, 0, 3), (2, 3, 5)),
        ((0, 4, 3), (3, 5)),
        ((2, 3, 0), (0,)),
    ],
)
def test_empty_products_are_zeros(a: Any, b: Any, dtype: Any) -> None:
    agree(votive.matmul, votive.zeros(*a, dtype=dtype), votive.zeros(*b, dtype=dtype))


def test_not_a_number_and_infinity_pass_through() -> None:
    for n in (1, 3, 40):
        a, b = votive.randn(n, 50), votive.randn(50, 60)
        a[0, 3] = float("inf")
        b[7, 5] = float("nan")
        a[-1, 9] = float("-inf")
        b[9, 6] = 0.0
        agree(votive.matmul, a, b)
        agree(F.linear, a, b.T.contiguous())


@pytest.mark.parametrize("dtype", [*FLOATS, votive.int64], ids=str)
@pytest.mark.parametrize("shape", [(5,), (1, 70), (2, 3, 70), (40, 70), (2, 9, 70)])
@pytest.mark.parametrize("features", [1, 6, 130])
def test_linear_adds_the_bias_once(shape: Any, features: int, dtype: Any) -> None:
    x = draw(*shape, dtype=dtype)
    weight, bias = draw(features, shape[-1], dtype=dtype), draw(features, dtype=dtype)
    for w in layouts(weight):
        for p in layouts(x):
            agree(F.linear, p, w, bias)
            agree(F.linear, p, w)
    agree(F.linear, x, weight, draw(1, dtype=dtype))
    agree(F.linear, x, weight[0])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_bias_of_deep_products_is_added_once(dtype: Any) -> None:
    x, weight, bias = (draw(30, 2300, dtype=dtype), draw(70, 2300, dtype=dtype), draw(70, dtype=dtype))
    y = F.linear(x, weight, 50 * bias)
    exact = x.double() @ weight.double().T + 50 * bias.double()
    same(y.double(), exact, rtol=TOLERANCE[dtype], atol=60 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS], ids=str)
@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 1), (2, 1), (1, 3), (0.5, 2.5), (-1, 0)])
def test_addmm_scales_and_broadcasts(beta: Any, alpha: Any, dtype: Any) -> None:
    if dtype is votive.uint8 and beta < 0:
        pytest.skip("the reference takes no negative factor of unsigned numbers")
    a, b = draw(9, 40, dtype=dtype), draw(40, 50, dtype=dtype)
    for shape in [(50,), (9, 1), (9, 50), (1,), ()]:
        x = draw(*shape, dtype=dtype)
        for y in layouts(b):
            agree(lambda *t: votive.addmm(*t, beta=beta, alpha=alpha), x, a, y)
    batch = draw(3, 9, 40, dtype=dtype)
    x = draw(9, 50, dtype=dtype)
    agree(lambda *t: votive.baddbmm(*t, beta=beta, alpha=alpha), x, batch, b.expand(3, 40, 50))
    agree(lambda *t: votive.addmv(*t, beta=beta, alpha=alpha), draw(9, dtype=dtype), a, b[:, 0])


def test_an_input_with_factor_zero_is_not_read() -> None:
    x = votive.full((4, 4), float("nan"))
    a = votive.randn(4, 4)
    assert votive.isfinite(votive.addmm(x, a, a, beta=0)).all()


def test_results_go_into_given_memory() -> None:
    a, b = votive.randn(40, 30), votive.randn(30, 50)
    for out in layouts(votive.zeros(40, 50)):
        votive.matmul(a, b, out=out)
        same(out.contiguous(), a @ b)
    x = votive.randn(40, 50)
    expected = votive.addmm(x, a, b)
    x.addmm_(a, b)
    same(x, expected)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 5, 6)])
def test_gradients_of_linear_are_right_to_second_order(shape: Any, bias: bool) -> None:
    x = votive.randn(*shape, dtype=votive.float64, requires_grad=True)
    w = votive.randn(4, 6, dtype=votive.float64, requires_grad=True)
    given = [x, w]
    if bias:
        given.append(votive.randn(4, dtype=votive.float64, requires_grad=True))
    assert votive.autograd.gradcheck(F.linear, given)
    assert votive.autograd.gradgradcheck(F.linear, given)


def test_gradients_agree_with_the_reference() -> None:
    def run(x: Any, w: Any, b: Any) -> list[Any]:
        t = [v.detach().clone().requires_grad_() for v in (x, w, b)]
        (F.linear(*t) * F.linear(*t).detach()).sum().backward()
        return [v.grad for v in t]

    for dtype in FLOATS:
        agree(run, draw(4, 70, 96, dtype=dtype), draw(130, 96, dtype=dtype), draw(130, dtype=dtype))


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    before = votive.get_num_threads()
    cases = [(300, 200, 400), (1, 2000, 700), (2, 2, 100000), (64, 3000, 300)]
    for m, n, k in cases:
        a, b = votive.randn(m, k), votive.randn(k, n)
        results = []
        for threads in (1, 2, 3):
            votive.set_num_threads(threads)
            results.append((a @ b).numpy().copy())
        votive.set_num_threads(before)
        for r in results[1:]:
            np.testing.assert_array_equal(r, results[0])


def test_the_native_rows_serve_products() -> None:
    for dtype in [*FLOATS, *INTS]:
        a = draw(4, 5, dtype=dtype)
        assert served_by_native("matmul", lambda a=a: a @ a.T)
        assert served_by_native("linear", lambda a=a: F.linear(a, a))
        assert served_by_native("_addmm", lambda a=a: votive.addmm(a @ a.T, a, a.T))
    c = votive.ones(3, 3, dtype=votive.complex64)
    assert not served_by_native("matmul", lambda: c @ c)
    with reference_only():
        assert not served_by_native("matmul", lambda: a @ a.T)
    OPS["matmul"].forget()


@pytest.mark.parametrize("k", [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 160, 1000, 1024])
@pytest.mark.parametrize("n", [1, 3, 17, 40])
def test_one_row_of_bfloat16_times_rows_of_any_length(k: int, n: int) -> None:
    """Pairs of elements are multiplied at once; what is left over at the end must count too."""
    votive.manual_seed(k * 100 + n)
    x, w = votive.randn(1, k), votive.randn(n, k)
    exact = votive.nn.functional.linear(x.bfloat16().double(), w.bfloat16().double())
    for given in (x.bfloat16(), x.bfloat16().t().contiguous().t(), x.repeat(3, 1).bfloat16()[1:2]):
        for weight in (w.bfloat16(), votive.cat([w, w], 1).bfloat16()[:, :k]):
            got = votive.nn.functional.linear(given, weight)
            bound = exact.abs() * 2**-8 + (x.abs() @ w.abs().t()).double() * 2**-18
            assert bool(((got.double() - exact).abs() <= bound).all())


def test_one_row_of_bfloat16_keeps_infinities_and_nans() -> None:
    w = votive.ones(8, 200, dtype=votive.bfloat16)
    w[1, 150], w[2, 199], w[3, 0] = float("inf"), float("nan"), float("-inf")
    got = votive.nn.functional.linear(votive.ones(1, 200, dtype=votive.bfloat16), w)[0]
    assert got[0] == 200
    assert got[1] == float("inf")
    assert got[2].isnan()
    assert got[3] == float("-inf")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_slivers_are_scaled_and_added_as_wide_products_are(dtype: Any) -> None:
    for m, n, k in [(40, 5, 3), (5, 40, 3), (13, 33, 7), (2, 70, 9), (50, 3, 17)]:
        a, b = draw(m, k, dtype=dtype), draw(k, n, dtype=dtype)
        for x in (draw(m, n, dtype=dtype), draw(n, dtype=dtype), draw(n, m, dtype=dtype).T, draw(m, 1, dtype=dtype)):
            agree(lambda x=x, a=a, b=b: votive.addmm(x, a, b, beta=0.5, alpha=-2))


def test_a_product_that_ends_at_the_last_byte_of_memory_reads_no_further() -> None:
    for m, n, k in [(7, 5, 3), (30, 1, 2), (3, 17, 5)]:
        whole = votive.full((m + 2, n), 7.0)
        target = whole[1:-1]
        votive.matmul(votive.ones(m, k), votive.ones(k, n), out=target)
        assert (whole[0] == 7).all()
        assert (whole[-1] == 7).all()
        assert (target == k).all()
