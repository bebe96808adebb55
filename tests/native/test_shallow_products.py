"""Products with sums of a few terms, and convolutions of single pixels in half types, in every layout."""

import itertools

import numpy as np
import pytest

import votive

NEAR = {"float32": 1e-5, "float64": 1e-12, "float16": 3e-3, "bfloat16": 2e-2}


def matrix(dtype: str, rows: int, cols: int, transposed: bool = False) -> votive.Tensor:
    values = np.random.default_rng(rows + 7 * cols).standard_normal((cols, rows) if transposed else (rows, cols))
    made = votive.from_numpy(values).to(getattr(votive, dtype)).clone()
    return made.t() if transposed else made


@pytest.mark.parametrize("dtype", list(NEAR))
@pytest.mark.parametrize("depth", [1, 2, 5, 8, 9])
def test_sums_of_a_few_terms_are_right_in_every_layout(dtype: str, depth: int) -> None:
    near = NEAR[dtype]

    def agree(got: votive.Tensor, want: np.ndarray) -> None:
        np.testing.assert_allclose(got.double().numpy(), want, rtol=near, atol=3 * near * depth)

    for m, n in itertools.product((1, 3, 70, 200), (5, 12, 31, 33, 81, 200)):
        for turned_a, turned_b in itertools.product((False, True), repeat=2):
            a, b = matrix(dtype, m, depth, turned_a), matrix(dtype, depth, n, turned_b)
            want = a.double().numpy() @ b.double().numpy()
            agree(a @ b, want)
            row, column, c = matrix(dtype, 1, n), matrix(dtype, m, 1), matrix(dtype, m, n)
            agree(votive.addmm(row[0], a, b), want + row.double().numpy())
            agree(votive.addmm(column, a, b), want + column.double().numpy())
            agree(votive.addmm(c, a, b, beta=0.5, alpha=2), 0.5 * c.double().numpy() + 2 * want)
            agree(c.clone().addmm_(a, b), c.double().numpy() + want)
            wide = votive.full((m, n + 3), 7, dtype=a.dtype)
            wide[:, 1:-2].addmm_(a, b)
            agree(wide[:, 1:-2], 7 + want)
            assert (wide[:, 0] == 7).all()
            assert (wide[:, -2:] == 7).all()
            out = votive.full((n, m), 7, dtype=a.dtype).t()
            votive.mm(a, b, out=out)
            agree(out, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 5, 3, 4), (2, 40, 1, 1), (4, 17, 6, 5), (1, 3, 20, 33)])
@pytest.mark.parametrize("results", [1, 4, 33])
def test_single_pixels_of_half_types_are_multiplied_in_every_layout(
    dtype: str, shape: tuple[int, ...], results: int
) -> None:
    kind = getattr(votive, dtype)
    rng = np.random.default_rng(5)
    x = votive.from_numpy(rng.standard_normal(shape)).to(kind)
    w = votive.from_numpy(rng.standard_normal((results, shape[1], 1, 1))).to(kind)
    b = votive.from_numpy(rng.standard_normal(results)).to(kind)
    exact = np.einsum("nchw,oc->nohw", x.double().numpy(), w.double().numpy()[:, :, 0, 0])
    near = NEAR[dtype]
    for given in (
        x,
        x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
        x.transpose(2, 3).contiguous().transpose(2, 3),
    ):
        for bias in (None, b):
            want = exact if bias is None else exact + b.double().numpy()[:, None, None]
            got = votive.nn.functional.conv2d(given, w, bias)
            np.testing.assert_allclose(got.double().numpy(), want, rtol=near, atol=near * shape[1] ** 0.5)
            back = votive.nn.functional.conv_transpose2d(given, w.transpose(0, 1), bias)
            np.testing.assert_allclose(back.double().numpy(), want, rtol=near, atol=near * shape[1] ** 0.5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 2, 1), (1, 2, 2), (3, 0, 1)])
def test_small_planes_with_many_channels_are_convolved_by_definition(
    dtype: str, stride: int, padding: int, dilation: int
) -> None:
    rng = np.random.default_rng(8)
    kind = getattr(votive, dtype)
    x = votive.from_numpy(rng.standard_normal((7, 33, 7, 6))).to(kind)
    w = votive.from_numpy(rng.standard_normal((5, 33, 3, 3)) / 17).to(kind)
    b = votive.from_numpy(rng.standard_normal(5)).to(kind)
    wide = np.pad(x.double().numpy(), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    size = [(n - 2 * dilation - 1) // stride + 1 for n in wide.shape[2:]]
    want = np.zeros((7, 5, *size)) + b.double().numpy()[:, None, None]
    for i, j in itertools.product(range(3), repeat=2):
        part = wide[:, :, i * dilation :, j * dilation :][:, :, ::stride, ::stride][:, :, : size[0], : size[1]]
        want += np.einsum("nchw,oc->nohw", part, w.double().numpy()[:, :, i, j])
    for given in (
        x,
        x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
        x.transpose(2, 3).contiguous().transpose(2, 3),
    ):
        got = votive.nn.functional.conv2d(given, w, b, stride, padding, dilation)
        np.testing.assert_allclose(got.double().numpy(), want, rtol=NEAR[dtype], atol=NEAR[dtype] * 3)
    w = w.clone()
    w[0, 0, 0, 0] = float("inf")
    got = votive.nn.functional.conv2d(x, w, b, stride, padding, dilation)
    assert not got[:, 1:].isnan().any()
    assert not got[:, 0].isnan().any()  # padding is left out, not multiplied by infinity


@pytest.mark.parametrize("groups", [2, 6])
def test_single_pixels_of_half_types_in_groups(groups: int) -> None:
    rng = np.random.default_rng(9)
    x = votive.from_numpy(rng.standard_normal((3, 12, 9, 10))).bfloat16()
    w = votive.from_numpy(rng.standard_normal((18, 12 // groups, 1, 1))).bfloat16()
    b = votive.from_numpy(rng.standard_normal(18)).bfloat16()
    parts = zip(np.split(x.double().numpy(), groups, 1), np.split(w.double().numpy()[:, :, 0, 0], groups), strict=True)
    want = np.concatenate([np.einsum("nchw,oc->nohw", p, q) for p, q in parts], 1) + b.double().numpy()[:, None, None]
    for given in (x, x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)):
        got = votive.nn.functional.conv2d(given, w, b, groups=groups)
        np.testing.assert_allclose(got.double().numpy(), want, rtol=2e-2, atol=5e-2)
    back = votive.nn.functional.conv_transpose2d(
        x, w.view(groups, -1, 12 // groups, 1, 1).transpose(1, 2).reshape(12, -1, 1, 1), b, groups=groups
    )
    np.testing.assert_allclose(back.double().numpy(), want, rtol=2e-2, atol=5e-2)
