"""Filling tensors with start values: `votive.nn.init`. Draws outside autograd; knows no module.

Every function writes into the tensor it is given and returns it. `generator` is the source of the
random numbers, the default one when None.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .. import linalg, special
from ..autograd.modes import no_grad
from ..core import dtype as dt
from ..core.rng import Generator
from ..ops.registry import F
from ..tensor import Tensor

_SQRT2 = math.sqrt(2.0)
# Gains from He et al. 2015 (rectifiers) and torch's choices for tanh and selu.
_GAINS = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": _SQRT2,
    "selu": 3.0 / 4,
}


class _Switch(threading.local):
    off: bool = False


_switch = _Switch()


@contextlib.contextmanager
def skipped() -> Iterator[None]:
    """Inside, the functions of this file leave tensors as they are; `skip_init` uses it.

    >>> from votive.nn import init
    >>> with init.skipped():
    ...     init.ones_(votive.zeros(2))
    tensor([0., 0.])
    """
    before, _switch.off = _switch.off, True
    try:
        yield
    finally:
        _switch.off = before


def _filling(fill: Callable[..., Any]) -> Callable[..., Any]:
    """Run without recording, and not at all inside `skipped`."""

    @functools.wraps(fill)
    def run(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if _switch.off:
            return tensor
        with no_grad():
            return fill(tensor, *args, **kwargs)

    return run


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance of signals through a nonlinearity.

    >>> votive.nn.init.calculate_gain("relu")
    1.4142135623730951
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        param = 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param**2))


# --- plain distributions --------------------------------------------------------------------------


@_filling
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Values uniform in [a, b).

    >>> bool((votive.nn.init.uniform_(votive.empty(100), 2, 3) >= 2).all())
    True
    """
    return tensor.uniform_(a, b, generator=generator)


@_filling
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal values.

    >>> votive.nn.init.normal_(votive.empty(2), mean=5, std=0)
    tensor([5., 5.])
    """
    return tensor.normal_(mean, std, generator=generator)


@_filling
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal values, conditioned to lie in [a, b].

    >>> float(votive.nn.init.trunc_normal_(votive.empty(1000), a=-1, b=1).abs().max()) <= 1
    True
    """
    low, high = (a - mean) / std, (b - mean) / std
    # In the upper tail the distribution function rounds to 1; the lower tail keeps its digits.
    side = -1.0 if low > 0 else 1.0
    if side < 0:
        low, high = -high, -low
    u = F.empty(tuple(tensor.shape), dtype=dt.float64, device=tensor.device)
    if high > _FAR:
        u.uniform_(_phi(low), _phi(high), generator=generator)
        z = special.ndtri(u)
    else:
        # Beyond that Φ underflows; there the density is x·exp(-x²/2) to 1 part in 30².
        u.uniform_(math.exp((high**2 - low**2) / 2), 1.0, generator=generator)
        z = -(high**2 - 2 * u.log()).sqrt()
    return tensor.copy_((z * (side * std) + mean).clamp(a, b))


_FAR = -30.0


def _phi(x: float) -> float:
    """The normal distribution function, exact in the lower tail."""
    return math.erfc(-x / _SQRT2) / 2


@_filling
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere.

    >>> votive.nn.init.constant_(votive.empty(2), 0.3)
    tensor([0.3000, 0.3000])
    """
    return tensor.fill_(val)


@_filling
def ones_(tensor: Tensor) -> Tensor:
    """Ones.

    >>> votive.nn.init.ones_(votive.empty(2))
    tensor([1., 1.])
    """
    return tensor.fill_(1.0)


@_filling
def zeros_(tensor: Tensor) -> Tensor:
    """Zeros.

    >>> votive.nn.init.zeros_(votive.empty(2))
    tensor([0., 0.])
    """
    return tensor.zero_()


# --- identities -----------------------------------------------------------------------------------


@_filling
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix.

    >>> votive.nn.init.eye_(votive.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(F.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@_filling
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that passes its channels through, in each group.

    >>> votive.nn.init.dirac_(votive.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    per_group = tensor.shape[0] // groups
    centre = tuple(s // 2 for s in tensor.shape[2:])
    for first in range(0, tensor.shape[0], per_group):
        for channel in range(min(per_group, tensor.shape[1])):
            tensor[(first + channel, channel, *centre)] = 1
    return tensor


# --- scaled by the number of connections ----------------------------------------------------------


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of {['fan_in', 'fan_out']}")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def _xavier_std(tensor: Tensor, gain: float) -> float:
    # Glorot and Bengio 2010, eq. 16.
    return gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))


@_filling
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in ±gain·√(6 / (fan_in + fan_out)).

    >>> float(votive.nn.init.xavier_uniform_(votive.empty(3, 3)).abs().max()) <= 1
    True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return tensor.uniform_(-bound, bound, generator=generator)


@_filling
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain·√(2 / (fan_in + fan_out)).

    >>> votive.nn.init.xavier_normal_(votive.empty(3, 3)).shape
    votive.Size([3, 3])
    """
    return tensor.normal_(0.0, _xavier_std(tensor, gain), generator=generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation of He et al. 2015, eq. 10 and 14; None if there is nothing to fill."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=4)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@_filling
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform in ±gain·√(3 / fan), for layers followed by a rectifier.

    >>> w = votive.nn.init.kaiming_uniform_(votive.empty(4, 6), nonlinearity="relu")
    >>> float(w.abs().max()) <= 1
    True
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return tensor.uniform_(-bound, bound, generator=generator)


@_filling
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with standard deviation gain / √fan, for layers followed by a rectifier.

    >>> votive.nn.init.kaiming_normal_(votive.empty(4, 6), mode="fan_out").shape
    votive.Size([4, 6])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else tensor.normal_(0, std, generator=generator)


# --- structured -----------------------------------------------------------------------------------


@_filling
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Rows or columns, whichever are fewer, orthonormal up to `gain`.

    >>> w = votive.nn.init.orthogonal_(votive.empty(2, 5))
    >>> votive.allclose(w @ w.T, votive.eye(2), atol=1e-6)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, cols = tensor.shape[0], tensor.numel() // tensor.shape[0]
    drawn = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    q, r = linalg.qr(drawn.T if rows < cols else drawn)
    # The signs of r's diagonal make q uniform over orthogonal matrices: Mezzadri 2006.
    q = q * r.diagonal().sign()
    return tensor.copy_((q.T if rows < cols else q).reshape(tensor.shape)).mul_(gain)


@_filling
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal values with a fraction of each column set to zero.

    >>> (votive.nn.init.sparse_(votive.empty(10, 2), 0.3) == 0).sum(0)
    tensor([3, 3])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(sparsity * tensor.shape[0])
    tensor.normal_(0, std, generator=generator)
    order = F.empty(tuple(tensor.shape), device=tensor.device).uniform_(generator=generator)
    return tensor.masked_fill_(order.argsort(0).argsort(0) < zeros, 0)


# --- older names ----------------------------------------------------------------------------------


def _deprecated(new: Callable[..., Any]) -> Callable[..., Any]:
    old = new.__name__[:-1]

    def run(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new.__name__}`.", FutureWarning, stacklevel=2
        )
        return new(*args, **kwargs)

    run.__name__ = run.__qualname__ = old
    run.__doc__ = f"Deprecated name of `{new.__name__}`."
    return run


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
