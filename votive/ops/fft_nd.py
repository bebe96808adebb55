"""Fourier transforms of two and more dimensions: arguments only, over the primitives of fft.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import ShapeError, fail
from ..core.layout import wrap_dim
from .fft import FFT, check_size, power_of, resized, run, shortcut, transformable
from .registry import OPS, composite
from .sizes import ints

if TYPE_CHECKING:
    from .fft import Call
    from .types import Ints, Tensor


def _places(op: str, input: Tensor, s: Ints | None, dim: Ints | None) -> tuple[list[int], list[int | None]]:
    """Dimensions and the sizes asked for; -1 and None both mean the size that is there."""
    shape = input._spec.shape
    sizes = None if s is None else ints(op, "s", s)
    if dim is None:
        count = input.ndim if sizes is None else len(sizes)
        if count > input.ndim:
            fail(ShapeError, op, f"s has {count} sizes, the input only {input.ndim} dimensions.")
        dims = list(range(input.ndim - count, input.ndim))
    else:
        dims = [wrap_dim(op, d, input.ndim, shape) for d in ints(op, "dim", dim)]
        if len(set(dims)) != len(dims):
            fail(ShapeError, op, f"a dimension appears twice in dim={dim}.")
    if sizes is None:
        return dims, [None] * len(dims)
    if len(sizes) != len(dims):
        fail(ShapeError, op, f"s has {len(sizes)} sizes for {len(dims)} dimensions; give one each.")
    return dims, [None if n == -1 else check_size(op, n) for n in sizes]


def _fit(op: str, x: Tensor, dims: list[int], sizes: list[int | None]) -> Tensor:
    """The input cut or filled with zeros along each dimension."""
    for d, n in zip(dims, sizes, strict=True):
        x = resized(x, d, check_size(op, x._spec.shape[d] if n is None else n))
    return x


def _complex(op: str, input: Tensor, s: Ints | None, dim: Ints | None, norm: str | None, forward: bool) -> Call:
    dims, sizes = _places(op, input, s, dim)
    x = _fit(op, transformable(op, input), dims, sizes)
    return OPS["_fft_c2c"], (x, tuple(dims), power_of(op, norm, forward), forward)


def _some(op: str, dims: list[int]) -> None:
    if not dims:
        fail(RuntimeError, op, "must transform at least one dimension, got none.")


def _from_real(op: str, input: Tensor, s: Ints | None, dim: Ints | None, norm: str | None, forward: bool) -> Call:
    dims, sizes = _places(op, input, s, dim)
    _some(op, dims)
    x = _fit(op, transformable(op, input, real=True), dims, sizes)
    return OPS["_fft_r2c"], (x, tuple(dims), power_of(op, norm, forward), forward)


def _to_real(op: str, input: Tensor, s: Ints | None, dim: Ints | None, norm: str | None, forward: bool) -> Call:
    dims, sizes = _places(op, input, s, dim)
    _some(op, dims)
    x, last = transformable(op, input), sizes[-1]
    size = check_size(op, 2 * (x._spec.shape[dims[-1]] - 1) if last is None else last)
    half = _fit(op, x.to(x.dtype.to_complex()), dims, [*sizes[:-1], size // 2 + 1])
    return OPS["_fft_c2r"], (half, tuple(dims), power_of(op, norm, forward), size, forward)


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_complex, "fft.fftn", True, None),
)
def fftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform over several dimensions, all of them by default.

    >>> votive.fft.fftn(votive.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """
    return run(_complex("fft.fftn", input, s, dim, norm, forward=True))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_complex, "fft.ifftn", False, None),
)
def ifftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`.

    >>> votive.fft.ifftn(votive.tensor([[10.0, -2.0], [-4.0, 0.0]])).real
    tensor([[1., 2.],
            [3., 4.]])
    """
    return run(_complex("fft.ifftn", input, s, dim, norm, forward=False))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_from_real, "fft.rfftn", True, None),
)
def rfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None) -> Tensor:
    """`fftn` of real numbers, without the half along the last of `dim` that follows by conjugation.

    >>> votive.fft.rfftn(votive.ones(2, 4)).real
    tensor([[8., 0., 0.],
            [0., 0., 0.]])
    """
    return run(_from_real("fft.rfftn", input, s, dim, norm, forward=True))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_to_real, "fft.irfftn", False, None),
)
def irfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`: real numbers from half a spectrum.

    >>> votive.fft.irfftn(votive.fft.rfftn(votive.tensor([[1.0, 2.0], [3.0, 4.0]])))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return run(_to_real("fft.irfftn", input, s, dim, norm, forward=False))


@composite(namespaces=FFT, method=False, out=True, shortcut=shortcut(_to_real, "fft.hfftn", True, None))
def hfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None) -> Tensor:
    """The transform, real, of a Hermitian signal given by half along the last of `dim`.

    >>> votive.fft.hfftn(votive.tensor([[1 + 0j, 2 + 0j], [3 + 0j, 4 + 0j]]))
    tensor([[10., -2.],
            [-4.,  0.]])
    """
    return run(_to_real("fft.hfftn", input, s, dim, norm, forward=True))


@composite(namespaces=FFT, method=False, out=True, shortcut=shortcut(_from_real, "fft.ihfftn", False, None))
def ihfftn(input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None) -> Tensor:
    """The inverse of `hfftn`: half of a Hermitian signal from its real spectrum.

    >>> votive.fft.ihfftn(votive.tensor([[10.0, -2.0], [-4.0, 0.0]])).real
    tensor([[1., 2.],
            [3., 4.]])
    """
    return run(_from_real("fft.ihfftn", input, s, dim, norm, forward=False))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_complex, "fft.fft2", True, (-2, -1)),
)
def fft2(input: Tensor, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: str | None = None) -> Tensor:
    """The discrete Fourier transform over two dimensions, the last two by default.

    >>> votive.fft.fft2(votive.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """
    return run(_complex("fft.fft2", input, s, ints("fft.fft2", "dim", dim), norm, forward=True))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_complex, "fft.ifft2", False, (-2, -1)),
)
def ifft2(input: Tensor, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `fft2`.

    >>> votive.fft.ifft2(votive.tensor([[10.0, -2.0], [-4.0, 0.0]])).real
    tensor([[1., 2.],
            [3., 4.]])
    """
    return run(_complex("fft.ifft2", input, s, ints("fft.ifft2", "dim", dim), norm, forward=False))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_from_real, "fft.rfft2", True, (-2, -1)),
)
def rfft2(input: Tensor, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: str | None = None) -> Tensor:
    """`fft2` of real numbers, without the half that follows by conjugation.

    >>> votive.fft.rfft2(votive.ones(2, 4)).real
    tensor([[8., 0., 0.],
            [0., 0., 0.]])
    """
    return run(_from_real("fft.rfft2", input, s, ints("fft.rfft2", "dim", dim), norm, forward=True))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_to_real, "fft.irfft2", False, (-2, -1)),
)
def irfft2(input: Tensor, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `rfft2`: real numbers from half a spectrum.

    >>> votive.fft.irfft2(votive.fft.rfft2(votive.tensor([[1.0, 2.0], [3.0, 4.0]])))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return run(_to_real("fft.irfft2", input, s, ints("fft.irfft2", "dim", dim), norm, forward=False))


@composite(namespaces=FFT, method=False, out=True, shortcut=shortcut(_to_real, "fft.hfft2", True, (-2, -1)))
def hfft2(input: Tensor, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: str | None = None) -> Tensor:
    """The transform, real, of a Hermitian signal given by half along the last dimension.

    >>> votive.fft.hfft2(votive.tensor([[1 + 0j, 2 + 0j], [3 + 0j, 4 + 0j]]))
    tensor([[10., -2.],
            [-4.,  0.]])
    """
    return run(_to_real("fft.hfft2", input, s, ints("fft.hfft2", "dim", dim), norm, forward=True))


@composite(namespaces=FFT, method=False, out=True, shortcut=shortcut(_from_real, "fft.ihfft2", False, (-2, -1)))
def ihfft2(input: Tensor, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `hfft2`: half of a Hermitian signal from its real spectrum.

    >>> votive.fft.ihfft2(votive.tensor([[10.0, -2.0], [-4.0, 0.0]])).real
    tensor([[1., 2.],
            [3., 4.]])
    """
    return run(_from_real("fft.ihfft2", input, s, ints("fft.ihfft2", "dim", dim), norm, forward=False))
