"""Softmax and its logarithm over one dimension. Knows shapes, dtypes and gradients."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import UnsupportedError, fail
from ..core.layout import Spec, wrap_dim
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Callable, Context, Tensor, dtype

NN = ("nn.functional",)


def _canon(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: int) -> tuple[Spec, int]:
        if x.dtype.category != dt.FLOAT or x.dtype in dt.FLOAT8:
            fail(
                UnsupportedError, op, f"not implemented for {x.dtype}; pass dtype= to compute in a floating-point type."
            )
        return x, wrap_dim(op, dim, x.ndim, x.shape)

    return canon


structured(
    "_softmax(Tensor input, int dim)",
    placement="along dim",
    batch="dims",
    canon=_canon("softmax"),
    infer=lambda x, dim: x.dense_like(),
    grad={"input": lambda c, g: F._softmax_backward(g, c.out, c.dim)},
    doc="`e^x / sum(e^x)` along a dimension.",
    rowwise=True,
)

structured(
    "_log_softmax(Tensor input, int dim)",
    placement="along dim",
    batch="dims",
    canon=_canon("log_softmax"),
    infer=lambda x, dim: x.dense_like(),
    grad={"input": lambda c, g: F._log_softmax_backward(g, c.out, c.dim)},
    doc="`x - log(sum(e^x))` along a dimension.",
    rowwise=True,
)


def _again(c: Context, h: Tensor) -> tuple[Tensor, ...]:
    """`y (g - sum(g y))` by y; the map g -> it is symmetric, so by g it is the map itself."""
    return (
        F._softmax_backward(h, c.output, c.dim),
        h * (c.grad - (c.grad * c.output).sum(c.dim, True)) - c.grad * (h * c.output).sum(c.dim, True),
    )


structured(
    "_softmax_backward(Tensor grad, Tensor output, int dim)",
    placement="along dim",
    batch="dims",
    infer=lambda g, y, dim: y.dense_like(),
    grad=_again,
    doc="`y (g - sum(g y))`: the gradient through softmax, from its result y.",
)


def _log_again(c: Context, h: Tensor) -> tuple[Tensor, ...]:
    """`g - e^y sum(g)` by g and by y."""
    p = c.output.exp()
    return (h - (h * p).sum(c.dim, True), -(h * p) * c.grad.sum(c.dim, True))


structured(
    "_log_softmax_backward(Tensor grad, Tensor output, int dim)",
    placement="along dim",
    batch="dims",
    infer=lambda g, y, dim: y.dense_like(),
    grad=_log_again,
    doc="`g - e^y sum(g)`: the gradient through log_softmax, from its result y.",
)


@composite(name="_softmax_composite")
def softmax_composite(input: Tensor, dim: int) -> Tensor:
    """softmax from single operators: what the fused kernel must agree with."""
    e = (input - input.amax(dim, True).detach()).exp()
    return e / e.sum(dim, True)


@composite(name="_log_softmax_composite")
def log_softmax_composite(input: Tensor, dim: int) -> Tensor:
    """log_softmax from single operators: what the fused kernel must agree with."""
    shifted = input - input.amax(dim, True).detach()
    return shifted - shifted.exp().sum(dim, True).log()


@composite(out=True, also=("special.softmax",), autocast={"cuda": "float32"})
def softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """`e^x / sum(e^x)` along `dim`, computed in `dtype` if one is given.

    >>> votive.softmax(votive.tensor([0.0, 0.0, 1.0]), 0)
    tensor([0.2119, 0.2119, 0.5761])
    """
    return F._softmax(input if dtype is None else input.to(dtype), dim)


@composite(out=True, also=("special.log_softmax",), autocast={"cuda": "float32"})
def log_softmax(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """`x - log(sum(e^x))` along `dim`: the logarithm of softmax, without overflow.

    >>> votive.log_softmax(votive.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    return F._log_softmax(input if dtype is None else input.to(dtype), dim)


def _implicit_dim(op: str, ndim: int, stacklevel: int) -> int:
    """torch's old rule for a missing dim: rows of a vector or of a batch of three dimensions."""
    warnings.warn(f"{op}: choosing the dimension implicitly is deprecated; pass dim=.", stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


@composite(name="softmax", namespaces=NN, method=False, autocast={"cuda": "float32"})
def nn_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """`e^x / sum(e^x)` along `dim`.

    >>> votive.nn.functional.softmax(votive.tensor([0.0, 0.0, 1.0]), dim=0)
    tensor([0.2119, 0.2119, 0.5761])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.ndim, _stacklevel)
    return F._softmax(input if dtype is None else input.to(dtype), dim)


@composite(name="log_softmax", namespaces=NN, method=False, autocast={"cuda": "float32"})
def nn_log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """The logarithm of softmax along `dim`, without overflow.

    >>> votive.nn.functional.log_softmax(votive.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input.ndim, _stacklevel)
    return F._log_softmax(input if dtype is None else input.to(dtype), dim)


@composite(namespaces=NN, method=False)
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """`softmax` of logits with Gumbel noise; `hard` gives one-hot samples that keep its gradient.

    >>> votive.nn.functional.gumbel_softmax(votive.tensor([0.0, 100.0]), hard=True)
    tensor([0., 1.])
    """
    # -log of an exponential draw is a Gumbel draw: Jang et al. 2017, section 2.2.
    noise = F.empty_like(logits).exponential_().log()
    soft = softmax((logits - noise) / tau, dim)
    if not hard:
        return soft
    one = F.zeros_like(logits).scatter_(dim, soft.argmax(dim, keepdim=True), 1.0)
    return one - soft.detach() + soft


@composite(namespaces=NN, method=False)
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """`softmax` of the negated input.

    >>> votive.nn.functional.softmin(votive.tensor([0.0, 0.0, 1.0]), dim=0)
    tensor([0.4223, 0.4223, 0.1554])
    """
    if dim is None:
        dim = _implicit_dim("softmin", input.ndim, _stacklevel)
    return softmax(-input, dim, dtype)
