"""Window functions of `signal.windows`. Knows their formulas; torch's older names are in
window_functions.py.

Values are computed in float64 and rounded once, so a window is as exact as its dtype allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import UnsupportedError
from .options import finish, number, options, tensor_options
from .registry import F, composite
from .sizes import int_of

if TYPE_CHECKING:
    from .types import Sequence, Tensor, TensorOptions, Unpack

SPACE = ("signal.windows",)
# Coefficients of the sums of cosines: Blackman and Tukey 1958; Nuttall 1981, table II (4-term with
# the lowest side lobes).
BLACKMAN = (0.42, 0.5, 0.08)
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def steps(size: int, start: float = 0.0, scale: float = 1.0) -> Tensor:
    """`(start + k) * scale` for k < size, in float64."""
    return (F.arange(size, dtype=dt.float64) + start) * scale


def cosine_sum(size: int, period: int, coefficients: Iterable[float]) -> Tensor:
    """`sum_i (-1)^i a_i cos(2 pi i k / period)` for k < size."""
    angle = steps(size, scale=2 * math.pi / period)
    terms = [(-1) ** i * a * F.cos(i * angle) for i, a in enumerate(coefficients)]
    return sum(terms[1:], terms[0])


def triangle(size: int, period: int) -> Tensor:
    """1 at the middle of a period, falling to 0 at both ends."""
    return 1 - F.abs(steps(size, scale=2 / period) - 1)


def kaiser_curve(size: int, period: int, beta: float) -> Tensor:
    """`I0(beta sqrt(1 - u^2)) / I0(beta)` for u from -1 to 1 over a period."""
    u = steps(size, scale=2 / period) - 1
    root = abs(beta) * F.sqrt(F.clamp(1 - u * u, 0))
    # By the scaled functions: I0 itself overflows from beta = 713 on.
    top = F.i0e(F.full((), abs(beta), dtype=dt.float64))
    return F.i0e(root) * F.exp(root - abs(beta)) / top


def _window(op: str, M: int, given: TensorOptions, make: Callable[[int], Tensor], one: bool = True) -> Tensor:
    """Check what all windows share, then make the window; one point is 1 (unless not `one`)."""
    M = int_of(op, "M", M)
    if M < 0:
        raise ValueError(f"{op}: M must not be negative, got {M}.")
    try:
        wanted, place = options(op, given, without="pin_memory")
    except UnsupportedError as e:
        raise ValueError(str(e)) from None  # as torch says it here
    if wanted not in (dt.float32, dt.float64):
        raise ValueError(f"{op}: dtype must be float32 or float64, got {wanted}.")
    if M == 0 or (M == 1 and one):
        return finish(F.ones((M,), dtype=wanted, device=place), given)
    return finish(make(M).to(device=place, dtype=wanted), given)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def bartlett(M: int, *, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Bartlett window, a triangle with zeros at its ends: `1 - |2 k / (M - 1) - 1|`.

    >>> votive.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("signal.windows.bartlett", M, given, lambda m: triangle(m, m - sym))


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """A sum of cosines, `sum_i (-1)^i a_i cos(2 pi i k / (M - 1))`.

    >>> votive.signal.windows.general_cosine(4, a=[0.5, 0.5])
    tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    op = "signal.windows.general_cosine"

    def make(m: int) -> Tensor:
        if not isinstance(a, Iterable):
            raise TypeError(f"{op}: a must be a list of coefficients, got {type(a).__name__}.")
        coefficients = [number(op, "a", v) for v in a]
        if not coefficients:
            raise ValueError(f"{op}: a must hold at least one coefficient.")
        return cosine_sum(m, m - sym, coefficients)

    return _window(op, M, given, make)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """A raised cosine, `alpha - (1 - alpha) cos(2 pi k / (M - 1))`.

    >>> votive.signal.windows.general_hamming(4, alpha=0.5)
    tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    return general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, **given)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def hamming(M: int, *, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Hamming window, `0.54 - 0.46 cos(2 pi k / (M - 1))`.

    >>> votive.signal.windows.hamming(4)
    tensor([0.0800, 0.7700, 0.7700, 0.0800])
    """
    return general_hamming(M, sym=sym, **given)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def hann(M: int, *, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Hann window, `0.5 - 0.5 cos(2 pi k / (M - 1))`.

    >>> votive.signal.windows.hann(4)
    tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **given)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def blackman(M: int, *, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Blackman window, `0.42 - 0.5 cos(2 pi k / (M - 1)) + 0.08 cos(4 pi k / (M - 1))`.

    >>> votive.signal.windows.blackman(6)[1:5]
    tensor([0.2008, 0.8492, 0.8492, 0.2008])
    """
    return general_cosine(M, a=BLACKMAN, sym=sym, **given)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def nuttall(M: int, *, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Nuttall window with the lowest side lobes: a sum of four cosines.

    >>> votive.signal.windows.nuttall(5)
    tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    return general_cosine(M, a=NUTTALL, sym=sym, **given)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def cosine(M: int, *, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """Half a wave, `sin(pi (k + 1/2) / M)`.

    >>> votive.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """

    def make(m: int) -> Tensor:
        return F.sin(steps(m, 0.5, math.pi / (m if sym or m == 1 else m + 1)))

    return _window("signal.windows.cosine", M, given, make, one=False)


def _middle(m: int, sym: bool) -> float:
    return (m - 1 if sym or m == 1 else m) / 2


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **given: Unpack[TensorOptions]
) -> Tensor:
    """Decay from `center` to both sides, `e^(-|k - center| / tau)`.

    >>> votive.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    op = "signal.windows.exponential"

    def make(m: int) -> Tensor:
        return F.exp(-F.abs(steps(m, -_middle(m, sym) if center is None else -center, 1 / tau)))

    if tau <= 0:
        raise ValueError(f"{op}: tau must be positive, got {tau}.")
    if sym and center is not None:
        raise ValueError(f"{op}: center must be None for a symmetric window, got {center}.")
    return _window(op, M, given, make, one=False)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The bell curve `e^(-u^2 / (2 std^2))`, u the distance from the middle.

    >>> votive.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    op = "signal.windows.gaussian"
    if std <= 0:
        raise ValueError(f"{op}: std must be positive, got {std}.")

    def make(m: int) -> Tensor:
        return F.exp(-F.square(steps(m, -_middle(m, sym), math.sqrt(0.5) / std)))

    return _window(op, M, given, make, one=False)


@composite(namespaces=SPACE, method=False)
@tensor_options(without="pin_memory")
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **given: Unpack[TensorOptions]) -> Tensor:
    """The Kaiser window, `I0(beta sqrt(1 - u^2)) / I0(beta)` for u from -1 to 1.

    >>> votive.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    op = "signal.windows.kaiser"
    if beta < 0:
        raise ValueError(f"{op}: beta must not be negative, got {beta}.")
    return _window(op, M, given, lambda m: kaiser_curve(m, m - sym, beta))
