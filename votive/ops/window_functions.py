"""Window functions under torch's older names: hann_window and kin, periodic by default.

The formulas are those of signal_windows.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.errors import DtypeError, UnsupportedError, fail
from .options import finish, options, tensor_options
from .registry import F, composite
from .signal_windows import BLACKMAN, cosine_sum, kaiser_curve, triangle
from .sizes import int_of

if TYPE_CHECKING:
    from .types import Tensor, TensorOptions, Unpack


def _window(op: str, size: int, periodic: bool, make: Callable[[int, int], Tensor], given: TensorOptions) -> Tensor:
    """The window `make(size, period)`; a periodic one leaves out the repeated last point."""
    size = int_of(op, "window_length", size)
    wanted, place = options(op, given)
    if not wanted.is_inexact:
        fail(DtypeError, op, f"dtype must be floating-point, got {wanted}.")
    if wanted.is_complex:
        fail(UnsupportedError, op, f"not implemented for {wanted}.")
    if size < 0:
        fail(RuntimeError, op, f"window_length must not be negative, got {size}.")
    if size < 2:
        return finish(F.ones((size,), dtype=wanted, device=place), given)
    window = make(size, size if periodic else size - 1)
    return finish(window.to(device=place, dtype=wanted), given)


@composite(method=False)
@tensor_options()
def hann_window(window_length: int, periodic: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Hann window, `0.5 - 0.5 cos(2 pi k / N)`; N is the length, or one less if not periodic.

    >>> votive.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    make = lambda n, period: cosine_sum(n, period, (0.5, 0.5))
    return _window("hann_window", window_length, periodic, make, given)


@composite(method=False)
@tensor_options()
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **given: Unpack[TensorOptions]
) -> Tensor:
    """The Hamming window, `alpha - beta cos(2 pi k / N)`; N is the length, or one less if not
    periodic.

    >>> votive.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    make = lambda n, period: cosine_sum(n, period, (alpha, beta))
    return _window("hamming_window", window_length, periodic, make, given)


@composite(method=False)
@tensor_options()
def blackman_window(window_length: int, periodic: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Blackman window, `0.42 - 0.5 cos(2 pi k / N) + 0.08 cos(4 pi k / N)`.

    >>> votive.blackman_window(5)[1:]
    tensor([0.2008, 0.8492, 0.8492, 0.2008])
    """
    make = lambda n, period: cosine_sum(n, period, BLACKMAN)
    return _window("blackman_window", window_length, periodic, make, given)


@composite(method=False)
@tensor_options()
def bartlett_window(window_length: int, periodic: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Bartlett window, a triangle that starts from 0: `1 - |2 k / N - 1|`.

    >>> votive.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", window_length, periodic, triangle, given)


@composite(method=False)
@tensor_options()
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **given: Unpack[TensorOptions]
) -> Tensor:
    """The Kaiser window, `I0(beta sqrt(1 - u^2)) / I0(beta)`, `u = 2 k / N - 1`.

    >>> votive.kaiser_window(4, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
    make = lambda n, period: kaiser_curve(n, period, beta)
    return _window("kaiser_window", window_length, periodic, make, given)
