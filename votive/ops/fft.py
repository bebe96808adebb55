"""Fourier transforms of one dimension, and the three primitives under all of them.

Knows shapes, dtypes, scaling and gradients; the transforms themselves are kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DimError, DtypeError, ShapeError, fail
from ..core.layout import wrap_dim
from .registry import OPS, F, Op, Resolved, composite, structured
from .sizes import int_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .types import Tensor

    # An operator and what it is called with.
    Call = tuple[Op, tuple[Any, ...]]

FFT = ("fft",)


def _with(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])


# All three are linear, so the gradient is the adjoint: the exponent's sign turns over, the scaling
# `n ** -power` stays. A real input of _fft_c2c gets the real part of that from the engine.
structured(
    "_fft_c2c(Tensor input, int[] dim, float power, bool forward)",
    multilinear=("input",),
    batch="dims",
    infer=lambda x, dim, power, forward: x.like(x.shape, dtype=x.dtype.to_complex()),
    grad={"input": lambda c, g: F._fft_c2c(g, c.dim, c.power, not c.forward)},
    doc="Sums of `x e^(-2 pi i j k / n)` (forward) or its conjugate kernel, times `n ** -power`.",
)

# Half a spectrum stands for a whole one: all but its first (and, for even n, last) entries occur
# twice there, as a conjugate pair. The adjoints weigh those by 2 and 1/2.
structured(
    "_fft_r2c(Tensor input, int[] dim, float power, bool forward=True)",
    multilinear=("input",),
    batch="dims",
    infer=lambda x, dim, power, forward: x.like(
        _with(x.shape, dim[-1], x.shape[dim[-1]] // 2 + 1), dtype=x.dtype.to_complex()
    ),
    grad={
        "input": lambda c, g: F._fft_c2r(
            F._fft_pairs(g, c.dim[-1], c.shape("input")[c.dim[-1]], 0.5),
            c.dim,
            c.power,
            c.shape("input")[c.dim[-1]],
            not c.forward,
        )
    },
    doc="The first half, along the last of `dim`, of the transform of real numbers, forward or inverse.",
)

structured(
    "_fft_c2r(Tensor input, int[] dim, float power, int size, bool forward=False)",
    multilinear=("input",),
    batch="dims",
    infer=lambda x, dim, power, size, forward: x.like(_with(x.shape, dim[-1], size), dtype=x.dtype.to_real()),
    grad={"input": lambda c, g: F._fft_pairs(F._fft_r2c(g, c.dim, c.power, not c.forward), c.dim[-1], c.size, 2.0)},
    doc="The transform, real, inverse or forward, of the first half of a Hermitian spectrum.",
)

structured(
    "_fft_pairs(Tensor input, int dim, int size, float factor)",
    batch="dims",
    infer=lambda x, dim, size, factor: x.like(x.shape),
    grad={"input": lambda c, g: F._fft_pairs(g, c.dim, c.size, c.factor)},
    doc="Half a spectrum with the entries that stand for conjugate pairs multiplied by a factor.",
)


def power_of(op: str, norm: str | None, forward: bool) -> float:
    """The power of 1/n that `norm` puts on a transform of this direction."""
    if norm is not None and not isinstance(norm, str):
        raise TypeError(f"{op}: norm must be a str, got {type(norm).__name__}.")
    powers = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}
    found = powers.get("backward" if norm is None else norm)
    if found is None:
        fail(RuntimeError, op, f"norm must be one of {', '.join(powers)}, got {norm!r}.")
    return found if forward else 1.0 - found


def check_size(op: str, size: int) -> int:
    if size < 1:
        fail(ShapeError, op, f"the transform needs at least one data point, got {size}.")
    return size


def transformable(op: str, input: Tensor, real: bool = False) -> Tensor:
    """The input in a type that has a transform: integers become the default float."""
    kind = input._spec.dtype
    if kind in dt.HALF or kind in dt.FLOAT8:
        fail(DtypeError, op, f"not implemented for {kind}; cast the input with .float().")
    if real and kind.is_complex:
        fail(DtypeError, op, f"takes real tensors, got {kind}; use the complex transform.")
    return input if kind.is_inexact else input.to(dt.get_default_dtype())


def resized(x: Tensor, dim: int, size: int) -> Tensor:
    """The input cut or filled up with zeros to `size` along one dimension."""
    have = x._spec.shape[dim]
    if size <= have:
        return x if size == have else F._slice(x, dim, 0, size, 1)
    return F.constant_pad_nd(x, (0, 0) * (x.ndim - 1 - dim) + (0, size - have))


def _place(op: str, input: Tensor, n: int | None, dim: int) -> tuple[int, int | None]:
    """(dimension, size asked for) of a transform along one dimension."""
    if input.ndim == 0:
        fail(DimError, op, f"dim={dim} of a 0-d tensor does not exist; transforms need one.")
    at = wrap_dim(op, int_of(op, "dim", dim), input.ndim, input._spec.shape)
    return at, None if n is None else check_size(op, int_of(op, "n", n))


def _complex(op: str, input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Call:
    x = transformable(op, input)
    at, n = _place(op, input, n, dim)
    size = check_size(op, x._spec.shape[at] if n is None else n)
    return OPS["_fft_c2c"], (resized(x, at, size), (at,), power_of(op, norm, forward), forward)


def _from_real(op: str, input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Call:
    x = transformable(op, input, real=True)
    at, n = _place(op, input, n, dim)
    size = check_size(op, x._spec.shape[at] if n is None else n)
    return OPS["_fft_r2c"], (resized(x, at, size), (at,), power_of(op, norm, forward), forward)


def _to_real(op: str, input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Call:
    x = transformable(op, input)
    at, n = _place(op, input, n, dim)
    size = check_size(op, 2 * (x._spec.shape[at] - 1) if n is None else n)
    half = resized(x.to(x.dtype.to_complex()), at, size // 2 + 1)
    return OPS["_fft_c2r"], (half, (at,), power_of(op, norm, forward), size, forward)


def shortcut(call: Callable[..., Call], name: str, forward: bool, default: Any = -1) -> Callable[..., Resolved]:
    """What a transform comes down to where its input is transformed as it is."""

    def resolve(input: Tensor, n: Any = None, dim: Any = default, norm: str | None = None, s: Any = None) -> Resolved:
        op, given = call(name, input, n if s is None else s, dim, norm, forward)
        return (op, given) if given[0] is input else None

    return resolve


def run(call: Call) -> Tensor:
    op, given = call
    result: Tensor = op(*given)
    return result


@composite(
    namespaces=FFT, method=False, out=True, autocast={"cpu": "float32"}, shortcut=shortcut(_complex, "fft.fft", True)
)
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform `X_k = sum_j x_j e^(-2 pi i j k / n)` along `dim`.

    The input is first cut or filled with zeros to length n. `norm` says where 1/n goes: "backward"
    (on the inverse), "forward" (here) or "ortho" (1/sqrt(n) on both).

    >>> votive.fft.fft(votive.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return run(_complex("fft.fft", input, n, dim, norm, forward=True))


@composite(
    namespaces=FFT, method=False, out=True, autocast={"cpu": "float32"}, shortcut=shortcut(_complex, "fft.ifft", False)
)
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`: `x_j = 1/n sum_k X_k e^(2 pi i j k / n)` along `dim`.

    >>> votive.fft.ifft(votive.tensor([10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j]))
    tensor([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j])
    """
    return run(_complex("fft.ifft", input, n, dim, norm, forward=False))


@composite(
    namespaces=FFT, method=False, out=True, autocast={"cpu": "float32"}, shortcut=shortcut(_from_real, "fft.rfft", True)
)
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of real numbers, without the half of it that follows by conjugation.

    >>> votive.fft.rfft(votive.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return run(_from_real("fft.rfft", input, n, dim, norm, forward=True))


@composite(
    namespaces=FFT, method=False, out=True, autocast={"cpu": "float32"}, shortcut=shortcut(_to_real, "fft.irfft", False)
)
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: real numbers from half a spectrum; n is needed if it is odd.

    >>> votive.fft.irfft(votive.tensor([10 + 0j, -2 + 2j, -2 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    return run(_to_real("fft.irfft", input, n, dim, norm, forward=False))


@composite(
    namespaces=FFT, method=False, out=True, autocast={"cpu": "float32"}, shortcut=shortcut(_to_real, "fft.hfft", True)
)
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform, real, of a Hermitian signal of which only the first half is given.

    >>> votive.fft.hfft(votive.tensor([1 + 0j, 2 + 1j, 3 + 0j]))
    tensor([ 8.,  0.,  0., -4.])
    """
    return run(_to_real("fft.hfft", input, n, dim, norm, forward=True))


@composite(
    namespaces=FFT,
    method=False,
    out=True,
    autocast={"cpu": "float32"},
    shortcut=shortcut(_from_real, "fft.ihfft", False),
)
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`: the first half of a Hermitian signal from its real spectrum.

    >>> votive.fft.ihfft(votive.tensor([8.0, 0.0, 0.0, -4.0]))
    tensor([1.-0.j, 2.+1.j, 3.-0.j])
    """
    return run(_from_real("fft.ihfft", input, n, dim, norm, forward=False))
