"""Kernels whose lines are shorter than a vector walk them without losing their place."""

import numpy as np
import pytest

import votive

SHAPES = [
    ((5, 7, 2), 2),
    ((3, 40, 3), 1),
    ((2, 3, 4, 5), 3),
    ((6, 1, 9), 0),
    ((4, 2, 3, 7), 1),
    ((300, 11), 1),
    ((9,), 0),
]


def layouts(a: np.ndarray) -> list[votive.Tensor]:
    x = votive.from_numpy(a.copy())
    wide = votive.from_numpy(np.concatenate([a, a, a[..., :1]], -1))[..., : a.shape[-1]]
    dims = tuple(range(a.ndim))[::-1]
    turned = votive.from_numpy(np.ascontiguousarray(a.transpose(dims))).permute(*dims)
    return [x, wide, turned]


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_gather_and_scatter_reach_every_line(shape: tuple[int, ...], dim: int, n: int) -> None:
    rng = np.random.default_rng(3)
    a = rng.standard_normal(shape)
    chosen = (*shape[:dim], n, *shape[dim + 1 :])
    index = rng.integers(0, shape[dim], chosen)
    source = rng.standard_normal(chosen)
    added = a.copy()
    for at in np.ndindex(*chosen):
        added[(*at[:dim], index[at], *at[dim + 1 :])] += source[at]
    for x in layouts(a):
        i = votive.from_numpy(index)
        np.testing.assert_array_equal(votive.gather(x, dim, i).numpy(), np.take_along_axis(a, index, dim))
        np.testing.assert_allclose(x.scatter_add(dim, i, votive.from_numpy(source)).numpy(), added, rtol=1e-12)
        one = index.reshape(-1)[:n]
        np.testing.assert_array_equal(votive.index_select(x, dim, votive.from_numpy(one)).numpy(), a.take(one, dim))
        want = a.copy()
        for k, place in enumerate(one):
            want[(slice(None),) * dim + (place,)] += source[(slice(None),) * dim + (k,)]
        got = x.index_add(
            dim, votive.from_numpy(one), votive.from_numpy(source[(slice(None),) * dim + (slice(len(one)),)])
        )
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(2, 3), (30, 2), (2, 30), (3, 5, 4), (2, 3, 7, 70), (1, 300), (300, 1), (2, 90, 300)]
)
@pytest.mark.parametrize("diagonal", [-400, -2, -1, 0, 1, 3, 400])
def test_triangles_keep_and_drop_whole_rows(dtype: str, shape: tuple[int, ...], diagonal: int) -> None:
    a = np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)
    for x in layouts(a):
        np.testing.assert_array_equal(votive.tril(x, diagonal).numpy(), np.tril(a, diagonal))
        np.testing.assert_array_equal(votive.triu(x, diagonal).numpy(), np.triu(a, diagonal))
        np.testing.assert_array_equal(x.clone().tril_(diagonal).numpy(), np.tril(a, diagonal))
        np.testing.assert_array_equal(x.clone().triu_(diagonal).numpy(), np.triu(a, diagonal))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 40])
def test_cofactors_are_right_for_regular_and_singular_matrices(n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((4, n, n))
    a[1, 0] = a[1, -1] if n > 1 else 0  # singular
    a[2] = 0
    x = votive.from_numpy(a.copy()).requires_grad_()
    (grad,) = votive.autograd.grad(votive.linalg.det(x).sum(), [x])
    want = np.empty_like(a)
    for b, i, j in np.ndindex(4, min(n, 3), n):
        minor = np.delete(np.delete(a[b], i, 0), j, 1)
        want[b, i, j] = (-1) ** (i + j) * (np.linalg.det(minor) if n > 1 else 1.0)
    scale = max(1.0, float(np.abs(want[:, : min(n, 3)]).max()))
    np.testing.assert_allclose(grad.numpy()[:, : min(n, 3)], want[:, : min(n, 3)], rtol=1e-8, atol=1e-9 * scale)
    a[3, 0, 0] = np.nan
    x = votive.from_numpy(a.copy()).requires_grad_()
    (grad,) = votive.autograd.grad(votive.linalg.det(x).sum(), [x])
    assert np.isnan(grad.numpy()[3]).any()
    assert np.isfinite(grad.numpy()[:3]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 30, 3000])
def test_values_added_to_one_place_of_a_half_type_are_rounded_once(dtype: str, n: int) -> None:
    kind = getattr(votive, dtype)
    rng = np.random.default_rng(n)
    x = votive.from_numpy(rng.standard_normal((90, 70))).to(kind)
    rows, cols = rng.integers(-4, 4, n), rng.integers(0, 3, n)
    values = votive.from_numpy(rng.standard_normal(n)).to(kind)
    want = x.double().numpy().copy()
    np.add.at(want, (rows, cols), values.double().numpy())
    at = (votive.from_numpy(rows), votive.from_numpy(cols))
    for given in (x, x.t().contiguous().t()):
        got = given.index_put(at, values, accumulate=True)
        near = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
        np.testing.assert_allclose(got.double().numpy(), want, rtol=near, atol=1e-4)
        one = given.index_put(at, votive.ones((), dtype=kind), accumulate=True)
        plain = x.double().numpy().copy()
        np.add.at(plain, (rows, cols), 1.0)
        np.testing.assert_allclose(one.double().numpy(), plain, rtol=near, atol=1e-4)
