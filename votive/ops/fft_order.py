"""The frequencies of a spectrum's entries, and putting the zero frequency in the middle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..core.errors import DtypeError, fail
from ..core.layout import wrap_dim
from .fft import FFT
from .options import deliver, number, options, out_dtype, tensor_options
from .registry import F, composite
from .sizes import int_of, ints

if TYPE_CHECKING:
    from .types import Ints, Tensor, TensorOptions, Unpack


def _frequencies(op: str, n: int, d: float, half: bool, out: Tensor | None, given: TensorOptions) -> Tensor:
    n, d = int_of(op, "n", n), number(op, "d", d)
    if isinstance(d, complex):
        raise TypeError(f"{op}: d must be a real number, got {d}.")
    if n < 0:
        fail(RuntimeError, op, f"n must not be negative, got {n}.")
    wanted, place = options(op, out_dtype(op, out, given))
    if not wanted.is_inexact:
        fail(DtypeError, op, f"dtype must be floating-point, got {wanted}.")
    made = {"dtype": wanted, "device": place}
    if half:
        counts = F.arange(n // 2 + 1, **made)
    else:
        counts = F.cat((F.arange((n + 1) // 2, **made), F.arange(-(n // 2), 0, **made)))
    return deliver(counts * (1.0 / (n * d) if n * d else math.inf), out, given)


@composite(namespaces=FFT, method=False)
@tensor_options()
def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **given: Unpack[TensorOptions]) -> Tensor:
    """The frequency of each entry of `fft`, in cycles per unit, for samples `d` apart.

    >>> votive.fft.fftfreq(5)
    tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """
    return _frequencies("fft.fftfreq", n, d, False, out, given)


@composite(namespaces=FFT, method=False)
@tensor_options()
def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **given: Unpack[TensorOptions]) -> Tensor:
    """The frequency of each entry of `rfft`, in cycles per unit, for samples `d` apart.

    >>> votive.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("fft.rfftfreq", n, d, True, out, given)


def _rolled(op: str, input: Tensor, dim: Ints | None, round_up: int) -> Tensor:
    shape = input._spec.shape
    given = range(input.ndim) if dim is None else ints(op, "dim", dim)
    dims = [wrap_dim(op, d, input.ndim, shape) for d in given]
    return F.roll(input, [(shape[d] + round_up) // 2 for d in dims], dims)


@composite(namespaces=FFT, method=False)
def fftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """A spectrum with its zero frequency moved to the middle along `dim`, by default all.

    >>> votive.fft.fftshift(votive.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _rolled("fft.fftshift", input, dim, 0)


@composite(namespaces=FFT, method=False)
def ifftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> votive.fft.ifftshift(votive.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
    return _rolled("fft.ifftshift", input, dim, 1)
