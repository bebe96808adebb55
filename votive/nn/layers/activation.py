"""Activations as modules."""

from __future__ import annotations

import warnings

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .option_repr import OptionRepr


class _InPlace(OptionRepr):
    """An activation without other options than `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class Threshold(OptionRepr):
    """The input where it exceeds `threshold`, else `value`.

    >>> votive.nn.Threshold(0.5, 9.0)(votive.tensor([0.0, 1.0]))
    tensor([9., 1.])
    """

    _options = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class ReLU(_InPlace):
    """`max(0, x)`.

    >>> votive.nn.ReLU()(votive.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class RReLU(OptionRepr):
    """Leaky relu whose slope is drawn from `lower..upper` in training.

    >>> votive.nn.RReLU().eval()(votive.tensor([-6.0, 2.0]))
    tensor([-1.3750,  2.0000])
    """

    _options = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(OptionRepr):
    """The input limited to `min_val..max_val`.

    >>> votive.nn.Hardtanh()(votive.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    _options: tuple[str, ...] = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("min_value", min_value), ("max_value", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{name}` is deprecated and rename to `{name[:-2]}`", FutureWarning, stacklevel=2
                )
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise ValueError(f"Hardtanh: max_val {max_val} must exceed min_val {min_val}.")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """`min(max(0, x), 6)`.

    >>> votive.nn.ReLU6()(votive.tensor([-1.0, 9.0]))
    tensor([0., 6.])
    """

    _options = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`.

    >>> votive.nn.Sigmoid()(votive.zeros(1))
    tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return votive.sigmoid(input)


class Hardsigmoid(Module):
    """`min(max(x + 3, 0), 6) / 6`.

    >>> votive.nn.Hardsigmoid()(votive.tensor([-4.0, 0.0]))
    tensor([0.0000, 0.5000])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """Hyperbolic tangent.

    >>> votive.nn.Tanh()(votive.zeros(1))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return votive.tanh(input)


class SiLU(_InPlace):
    """`x * sigmoid(x)`.

    >>> votive.nn.SiLU()(votive.zeros(1))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_InPlace):
    """`x * tanh(softplus(x))`.

    >>> votive.nn.Mish()(votive.zeros(1))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardswish(Module):
    """`x * hardsigmoid(x)`.

    >>> votive.nn.Hardswish()(votive.tensor([-4.0, 3.0]))
    tensor([-0., 3.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class ELU(OptionRepr):
    """The input where positive, else `alpha * (exp(x) - 1)`.

    >>> votive.nn.ELU()(votive.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    _options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(OptionRepr):
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.

    >>> votive.nn.CELU()(votive.tensor([0.0, 2.0]))
    tensor([0., 2.])
    """

    _options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """Self-normalising elu (Klambauer et al. 2017).

    >>> votive.nn.SELU()(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(OptionRepr):
    """The first half along `dim` times the sigmoid of the second half.

    >>> votive.nn.GLU()(votive.tensor([2.0, 0.0]))
    tensor([1.])
    """

    _options = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class GELU(OptionRepr):
    """`x * Phi(x)`, exactly or by tanh.

    >>> votive.nn.GELU("tanh")(votive.zeros(1))
    tensor([0.])
    """

    _options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class Hardshrink(Module):
    """0 within `-lambd..lambd`, else the input.

    >>> votive.nn.Hardshrink()(votive.tensor([0.3, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(OptionRepr):
    """The input where positive, else `negative_slope` times it.

    >>> votive.nn.LeakyReLU(0.1)(votive.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    _options = ("negative_slope",)

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class LogSigmoid(Module):
    """`log(sigmoid(x))` without overflow.

    >>> votive.nn.LogSigmoid()(votive.zeros(1))
    tensor([-0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(OptionRepr):
    """`log(1 + exp(beta x)) / beta`.

    >>> votive.nn.Softplus()(votive.zeros(1))
    tensor([0.6931])
    """

    _options = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Softshrink(Module):
    """The input moved toward 0 by `lambd`.

    >>> votive.nn.Softshrink()(votive.tensor([0.3, 2.0]))
    tensor([0.0000, 1.5000])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(OptionRepr):
    """Leaky relu with learned slopes.

    >>> votive.nn.PReLU()(votive.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    _options = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: DeviceLike = None, dtype: dt.dtype | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(votive.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with votive.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class Softsign(Module):
    """`x / (1 + |x|)`.

    >>> votive.nn.Softsign()(votive.ones(1))
    tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """`x - tanh(x)`.

    >>> votive.nn.Tanhshrink()(votive.zeros(1))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)
