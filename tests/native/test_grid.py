"""Sampling at positions and grids of positions: native kernels agree with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.native.compare import agree, layouts, needs_native, served_by_native
from votive.nn import functional as NF

pytestmark = needs_native

# More places than are sampled together, and a rest.
FLAT, DEEP = ((2, 3, 9, 11), (2, 13, 17, 2)), ((2, 3, 4, 5, 6), (2, 3, 7, 11, 3))
CASES = [
    (shapes, mode, padding, align)
    for shapes in (FLAT, DEEP)
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for align in (True, False)
    if not (mode == "bicubic" and shapes is DEEP)
]


def tensors(shapes: Any, dtype: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    x, grid = rng.standard_normal(shapes[0]), rng.uniform(-1.7, 1.7, shapes[1])
    return votive.tensor(x).to(dtype), votive.tensor(grid).to(dtype)


def trained(x: Any, grid: Any, *how: Any) -> tuple[Any, ...]:
    """The samples and both gradients, weighed so that no two places count the same."""
    x, grid = x.detach().requires_grad_(), grid.detach().requires_grad_()
    y = NF.grid_sample(x, grid, *how)
    weight = votive.linspace(-1, 1, y.numel(), dtype=votive.float64).reshape(y.shape).to(y.dtype)
    return y.detach(), *votive.autograd.grad((y * weight).sum(), (x, grid))


@pytest.mark.parametrize(("shapes", "mode", "padding", "align"), CASES)
def test_samples_and_gradients_agree(shapes: Any, mode: str, padding: str, align: bool) -> None:
    agree(trained, *tensors(shapes, votive.float64), mode, padding, align)
    # A position in float32 may be rounded across an element's edge by one of the two.
    agree(trained, *tensors(shapes, votive.float32), mode, padding, align, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [votive.float16, votive.bfloat16], ids=str)
def test_halves_are_sampled_in_float32(dtype: Any) -> None:
    x, grid = tensors(FLAT, dtype)
    y = NF.grid_sample(x, grid, "bicubic", "border", False)
    wide = NF.grid_sample(x.float(), grid.float(), "bicubic", "border", False)
    assert votive.equal(y, wide.to(dtype))
    agree(trained, x, grid, "bilinear", "zeros", False)


def test_any_layout_is_sampled() -> None:
    x, grid = tensors(FLAT, votive.float32)
    expected = NF.grid_sample(x, grid, "bilinear", "zeros", False)
    for a in (*layouts(x), x.contiguous(memory_format=votive.channels_last)):
        for b in layouts(grid):
            assert votive.equal(NF.grid_sample(a, b, "bilinear", "zeros", False), expected)
    one = grid[:1].expand(2, -1, -1, -1)
    y = NF.grid_sample(x, one, "bilinear", "zeros", False)
    assert votive.equal(y[:1], expected[:1])
    agree(trained, x, one, "bilinear", "zeros", False, rtol=1e-4, atol=1e-4)


def test_positions_that_are_no_numbers_are_sampled_as_the_reference_does() -> None:
    odd = [float("nan"), float("inf"), -float("inf"), 1.0, -1.0]
    x = votive.randn(1, 2, 3, 4)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            # Where so far a position is mirrored to has no answer in float32.
            far = [] if padding == "reflection" else [1e30, -1e30]
            grid = votive.tensor([[[[a, b] for a in odd + far] for b in odd + far]])
            agree(NF.grid_sample, x, grid, mode, padding, False, atol=1e-5)


@pytest.mark.parametrize("size", [(2, 3, 5, 300), (3, 1, 1, 1), (2, 1, 4, 1, 6)])
@pytest.mark.parametrize("align", [True, False])
def test_grids_and_their_gradients_agree(size: tuple[int, ...], align: bool) -> None:
    n = len(size) - 2

    def run(theta: Any) -> tuple[Any, ...]:
        theta = theta.detach().requires_grad_()
        grid = NF.affine_grid(theta, size, align)
        back = votive.linspace(-1, 1, grid.numel(), dtype=votive.float64).reshape(grid.shape)
        return grid.detach(), *votive.autograd.grad(grid, theta, back.to(theta.dtype))

    for dtype in (votive.float64, votive.float32, votive.bfloat16):
        agree(run, votive.randn(size[0], n, n + 1).to(dtype))
    agree(run, votive.randn(size[0], n + 1, n, dtype=votive.float64).transpose(1, 2))


def test_the_kernels_serve() -> None:
    x, grid = tensors(FLAT, votive.float32)
    x.requires_grad_()
    assert served_by_native("_grid_sample", lambda: NF.grid_sample(x, grid, align_corners=False))
    back = lambda: NF.grid_sample(x, grid, align_corners=False).sum().backward()
    assert served_by_native("_grid_sample_backward", back)
    theta = votive.randn(1, 2, 3, requires_grad=True)
    made = lambda: NF.affine_grid(theta, (1, 1, 2, 2), False)
    assert served_by_native("_affine_grid", made)
    assert served_by_native("_affine_grid_transpose", lambda: made().sum().backward())
