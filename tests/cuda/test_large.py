"""More than 32 bits or a grid can count: offsets beyond 2^31, and more matrices than 65,535."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.nn.functional as F
from votive.backends.cuda import runtime as rt

from .device import EMULATED, agree

emulated = pytest.mark.skipif(not EMULATED, reason="its memory is the host's, which may be sparse")
MANY = 70_000
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux's number; older Pythons lack the name


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The grids of what is launched; nothing runs on an emulated GPU, where it would take long."""
    found: list[tuple[int, ...]] = []
    if EMULATED:
        from votive.backends.cuda.emulated import interpreter

        monkeypatch.setattr(interpreter, "run", lambda program, grid, args: found.append(grid))
    return found


def _many(*shape: int, dtype: Any = vt.float32) -> Any:
    return (vt.arange(MANY * shape[0] * shape[1]) % 7).reshape(MANY, *shape).to(dtype)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: vt.bmm(a.int(), b.int()),
        lambda a, b: vt.bmm(a.double(), b.double()),
        lambda a, b: vt.mm(a[0].int(), b[0].int().repeat(1, MANY * 8)),
        lambda a, b: vt.cdist(a.mT, b),
        lambda a, b: vt.cdist(a.mT, b, p=1.0),
    ],
    ids=["bmm of integers", "bmm", "mm of many columns", "cdist", "cdist by sums"],
)
def test_a_grid_takes_all_that_there_is(call: Callable[..., Any], grids: Any) -> None:
    a, b = _many(2, 3), _many(3, 2)
    ours = call(a.to("cuda"), b.to("cuda"))
    if EMULATED:
        assert grids
        for grid in grids:
            assert all(1 <= n < 65536 for n in grid[1:]), grid
    else:
        agree(ours, call(a, b), "many")


@emulated
def test_the_emulated_gpu_refuses_a_grid_that_no_gpu_takes() -> None:
    from votive.backends.cuda.emulated.interpreter import run

    class Program:
        class fn:
            __name__ = "kernel"

    for grid in ((0,), (1, 65536), (1, 1, 65536), (2**31,)):
        with pytest.raises(vt.cuda.CudaError, match="beyond the limits of a GPU"):
            run(Program, grid, ())


class _Far:
    """An array whose first dimension reaches beyond 2^31 elements, in memory that is mostly holes,
    as another library would show it.
    """

    def __init__(self, a: np.ndarray[Any, Any]) -> None:
        size = a.dtype.itemsize
        rest = a[0].size
        step = max((1 << 31) // (len(a) - 1) + 4096, rest)
        strides = (step * size, *np.ascontiguousarray(a).strides[1:])
        nbytes = (len(a) - 1) * step * size + rest * size
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        try:
            self.memory = mmap.mmap(-1, nbytes, flags=flags)
        except OSError as e:
            pytest.skip(f"no {nbytes:,} bytes of address space: {e}")
        self.raw = (ctypes.c_char * nbytes).from_buffer(self.memory)
        np.ndarray(a.shape, a.dtype, self.raw, 0, strides)[...] = a
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": a.shape,
            "typestr": a.dtype.str,
            "strides": strides,
            "data": (ctypes.addressof(self.raw), False),
        }


_I = vt.tensor([[0, 1, 2, 0], [1, 1, 0, 2]])
_TWICE = {"scale_factor": 2, "mode": "bilinear"}
CALLS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "exp": ((3, 4), lambda x: x.exp()),
    "sum of all": ((3, 4), lambda x: x.sum()),
    "sum of rows": ((3, 4), lambda x: x.sum(1)),
    "sum of columns": ((3, 4), lambda x: x.sum(0)),
    "softmax": ((3, 4), lambda x: x.softmax(0)),
    "largest": ((3, 4), lambda x: x.max(0).values),
    "product": ((3, 4), lambda x: x @ x.mT),
    "gather": ((3, 4), lambda x: x.gather(0, _I.to(x.device))),
    "scatter_reduce": ((3, 4), lambda x: x.scatter_reduce(0, _I.to(x.device), x[:2] * 2, "amax")),
    "histogram": ((9,), lambda x: vt.histogram(x, 3, range=(-2.0, 2.0)).hist),
    "affine_grid": ((2, 2, 3), lambda x: F.affine_grid(x, [2, 1, 3, 4], align_corners=False)),
    "conv1d": ((2, 3, 5), lambda x: F.conv1d(x, x.detach()[:1, :, :2] * 2)),
    "conv1d of one far sample": ((3, 5), lambda x: F.conv1d(x, x.detach()[None, :, :2] * 2)),
    "interpolate": ((4, 2, 3), lambda x: F.interpolate(x.permute(1, 2, 0)[:, :, None], **_TWICE)),
    "attention": ((2, 4, 8), lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)),
}


@emulated
@pytest.mark.parametrize("name", CALLS)
def test_offsets_beyond_32_bits_lead_to_the_right_element(name: str) -> None:
    shape, fn = CALLS[name]
    a = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    far = vt.as_tensor(_Far(a), device="cuda")
    assert far.stride(0) * (shape[0] - 1) >= 2**31
    results = []
    for x in (far.detach().requires_grad_(), vt.tensor(a).requires_grad_()):
        y = fn(x)
        results.append([y, *(vt.autograd.grad(y.sum(), x) if y.requires_grad else ())])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours.detach().cpu().numpy(), theirs.detach().numpy(), rtol=2e-6, atol=2e-6)
    rt.runtime.driver.synchronize()  # before the memory goes
