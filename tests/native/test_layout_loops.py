"""Loops for layouts: every second element, operands across their memory, rows of windows, broadcast rows."""

import ml_dtypes
import numpy as np
import pytest

import votive

DTYPES = ["float32", "float64", "float16", "bfloat16"]
SIZES = [1, 2, 15, 16, 17, 31, 33, 64, 65, 129, 257, 1030]


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    values = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def same(got: votive.Tensor, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got.double().numpy(), np.asarray(want).astype(np.float64))


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("given", DTYPES)
def test_every_second_element_is_converted_as_dense_ones_are(given: str, to: str) -> None:
    for n in SIZES:
        a = numbers(2 * n, dtype=given)[: 2 * n - 1]
        x = votive.from_numpy(a)[::2]
        assert x.stride() == ((2,) if n > 1 else x.stride())
        same(x.to(getattr(votive, to)), a[::2].astype(ml_dtypes.bfloat16 if to == "bfloat16" else to))
        same(x * 2, a[::2] * a.dtype.type(2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(8, 8), (33, 40), (70, 19), (17, 130), (352, 67), (3, 90), (90, 3)])
def test_an_operand_across_its_memory_is_read_by_its_places(dtype: str, shape: tuple[int, int]) -> None:
    a, b = numbers(*shape, dtype=dtype), numbers(*shape[::-1], dtype=dtype)
    x, y = votive.from_numpy(a), votive.from_numpy(b).transpose(0, 1)
    want = a.astype(np.float64) - b.T.astype(np.float64)
    same(x - y, want.astype(a.dtype))
    same(y - x, (-want).astype(a.dtype))
    same(x.double() - y, want)
    same(votive.maximum(x, y.float()), np.maximum(a.astype(np.float64), b.T.astype(np.float64)))
    into = votive.from_numpy(np.zeros((shape[0], shape[1] + 5), a.dtype))[:, 2:-3]
    into.copy_(x).sub_(y)
    same(into, want.astype(a.dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(7, 5, 200), (301, 75), (4, 3, 2, 150), (2, 1500)])
def test_windows_and_broadcast_rows_are_walked_row_by_row(dtype: str, shape: tuple[int, ...]) -> None:
    a = numbers(*shape[:-1], shape[-1] + 3, dtype=dtype)
    b, row = numbers(*shape, dtype=dtype), numbers(shape[-1], dtype=dtype)
    x, y, r = votive.from_numpy(a)[..., 1:-2], votive.from_numpy(b), votive.from_numpy(row)
    wide = [v.astype(np.float64) for v in (a[..., 1:-2], b, row)]
    same(x - y, (wide[0] - wide[1]).astype(a.dtype))
    same(y - r, (wide[1] - wide[2]).astype(a.dtype))
    same(r - x, (wide[2] - wide[0]).astype(a.dtype))
    same(x.clone().sub_(r), (wide[0] - wide[2]).astype(a.dtype))


def test_a_row_of_a_tensor_may_be_taken_from_the_tensor_itself() -> None:
    a = numbers(40, 75, dtype="float64")
    x = votive.from_numpy(a.copy())
    same(x - x[0], a - a[0])
    same(x - x[:, :1], a - a[:, :1])


@pytest.mark.parametrize("n", [1, 2, 7, 9, 13, 16, 17])
@pytest.mark.parametrize("dtype", DTYPES)
def test_short_rows_are_normalised_and_summed_up_in_every_layout(dtype: str, n: int) -> None:
    near = {"float64": 1e-10, "float32": 1e-5}.get(dtype, 2e-2)
    wide = numbers(300, n + 3, dtype=dtype)
    flat = votive.from_numpy(wide)[:, 1:-2]
    a = wide[:, 1:-2].astype(np.float64)
    for x in (flat, flat.contiguous(), flat.t().contiguous().t()):
        centred = a - a.mean(1, keepdims=True)
        want = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        got = votive.nn.functional.layer_norm(x, (n,))
        np.testing.assert_allclose(got.double().numpy(), want, rtol=near, atol=near)
        root = a / np.sqrt((a**2).mean(1, keepdims=True) + 1e-5)
        got = votive.nn.functional.rms_norm(x, (n,), eps=1e-5)
        np.testing.assert_allclose(got.double().numpy(), root, rtol=near, atol=near)
        np.testing.assert_allclose(x.var().item(), a.var(ddof=1), rtol=near)
        np.testing.assert_allclose(x.var(0).double().numpy(), a.var(0, ddof=1), rtol=near)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 5, 2, 2), (33, 3, 1, 6), (7, 2, 3, 2), (50, 9, 2, 3), (6, 4, 20)])
def test_few_channels_of_small_planes_are_normalised_in_every_layout(dtype: str, shape: tuple[int, ...]) -> None:
    near = {"float64": 1e-9, "float32": 1e-4}.get(dtype, 3e-2)
    given = numbers(*shape, dtype=dtype)
    a = given.astype(np.float64)
    axes = (0, *range(2, len(shape)))
    centred = a - a.mean(axes, keepdims=True)
    want = centred / np.sqrt(a.var(axes, keepdims=True) + 1e-5)
    x = votive.from_numpy(given)
    for y in (x, x.transpose(-1, -2).contiguous().transpose(-1, -2), x.transpose(0, 1).contiguous().transpose(0, 1)):
        got = votive.nn.functional.batch_norm(y, None, None, training=True)
        np.testing.assert_allclose(got.double().numpy(), want, rtol=near, atol=near)
        by_group = votive.nn.functional.group_norm(y, 1)
        rest = tuple(range(1, len(shape)))
        alone = (a - a.mean(rest, keepdims=True)) / np.sqrt(a.var(rest, keepdims=True) + 1e-5)
        np.testing.assert_allclose(by_group.double().numpy(), alone, rtol=near, atol=near)
