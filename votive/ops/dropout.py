"""Dropout: what is switched off at random, and how the rest makes up for it. Draws no numbers.

A mask is never kept: it is a function of the key and the counter that the call reserved, so the
gradient is the same operator with the same two numbers.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from ..backends.common.sampling import counters
from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec
from .random import _reserve as reserve
from .random import draw
from .rectifier import SELU_ALPHA, SELU_SCALE
from .registry import OPS, F, Op, composite, structured

if TYPE_CHECKING:
    from .types import Generator, Operand, Sequence, Tensor

NN = ("nn.functional",)


def _infer(x: Spec, key: int, counter: int, p: float) -> Spec:
    if x.dtype.is_complex or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, "dropout", f"not implemented for {x.dtype}; cast it with .to().")
    if not x.dtype.is_floating_point:
        fail(DtypeError, "dropout", f"the scaled result can't be cast to {x.dtype}; use .float().")
    return x.dense_like()


structured(
    "_dropout(Tensor input, Scalar key, Scalar counter, float p)",
    placement="dropout",
    infer=_infer,
    grad={"input": lambda c, g: F._dropout(g, c.key, c.counter, c.p)},
    doc="Each element times 0 with chance p, else times `1 / (1 - p)`, drawn in row-major order.",
)


def drawn_for(op: str, input: Tensor, shape: Sequence[int], generator: Generator | None) -> tuple[int, int]:
    """Key and counter of a dropout mask of `shape`, taken from the generator."""
    return reserve(op, generator, input._spec.device, counters("bernoulli", math.prod(shape)))


def _feature_noise(op: str, input: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Ones and zeros, one for each channel (dimension 1) of each sample (dimension 0)."""
    if input.ndim < 2:
        fail(ShapeError, op, f"needs at least 2 dimensions, got shape {tuple(input.shape)}.")
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    empty = F.empty(shape, dtype=input.dtype, device=input.device)
    return draw("bernoulli", empty, generator, 1 - p)


def _multiply(input: Tensor, by: Operand, inplace: bool) -> Tensor:
    return input.mul_(by) if inplace else input * by


def _scale(op: str, input: Tensor, p: float, inplace: bool, feature: bool, generator: Generator | None) -> Tensor:
    if feature:
        noise = _feature_noise(op, input, p, generator).div_(1 - p)
        return _multiply(input, noise, inplace)
    args = (input, *drawn_for(op, input, input._spec.shape, generator), p)
    return Op.write(OPS["_dropout"], args) if inplace else OPS["_dropout"](*args)


def _saturate(op: str, input: Tensor, p: float, inplace: bool, feature: bool, generator: Generator | None) -> Tensor:
    """Klambauer et al. 2017, "Self-Normalizing Neural Networks", section 3: what is switched off
    takes the value that selu has at minus infinity, and an affine map restores mean and variance.
    """
    low = SELU_ALPHA * SELU_SCALE
    if feature:
        noise = _feature_noise(op, input, p, generator)
    else:
        noise = draw("bernoulli", F.empty_like(input), generator, 1 - p)
    a = 1 / math.sqrt((low * low * p + 1) * (1 - p))
    shift = (noise - 1).mul_(low * a).add_(low * a * p)
    return _multiply(input, noise.mul_(a), inplace).add_(shift)


def _apply(
    op: str,
    input: Tensor,
    p: float,
    train: bool,
    inplace: bool,
    generator: Generator | None = None,
    *,
    feature: bool = False,
    alpha: bool = False,
) -> Tensor:
    p = float(p)
    if not 0 <= p <= 1:
        fail(RuntimeError, op, f"the probability must be between 0 and 1, got {p}.")
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:  # a product, so that NaN stays NaN
        return _multiply(input, 0, inplace)
    return (_saturate if alpha else _scale)(op, input, p, inplace, feature, generator)


def _probability(op: str, p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"{op}: the probability must be between 0 and 1, got {p}.")


# --- votive.nn.functional -------------------------------------------------------------------------


@composite(namespaces=NN, method=False)
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """In training, elements set to zero with chance p, and the others divided by `1 - p`.

    >>> _ = votive.manual_seed(0)
    >>> votive.nn.functional.dropout(votive.ones(5))
    tensor([2., 0., 0., 0., 0.])
    """
    _probability("dropout", p)
    return _apply("dropout", input, p, training, inplace, generator)


@composite(namespaces=NN, method=False)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Dropout to the lower limit of selu instead of zero: mean 0 and variance 1 stay as they are.

    >>> _ = votive.manual_seed(0)
    >>> votive.nn.functional.alpha_dropout(votive.zeros(4), 0.5, training=True)
    tensor([ 0.7792, -0.7792, -0.7792, -0.7792])
    """
    _probability("alpha_dropout", p)
    return _apply("alpha_dropout", input, p, training, inplace, generator, alpha=True)


@composite(namespaces=NN, method=False)
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """alpha_dropout of whole channels (dimension 1).

    >>> _ = votive.manual_seed(0)
    >>> votive.nn.functional.feature_alpha_dropout(votive.zeros(1, 2, 2), 0.5, training=True)
    tensor([[[ 0.7792,  0.7792],
             [-0.7792, -0.7792]]])
    """
    op = "feature_alpha_dropout"
    _probability(op, p)
    return _apply(op, input, p, training, inplace, generator, feature=True, alpha=True)


def _channels(
    op: str, input: Tensor, p: float, training: bool, inplace: bool, generator: Generator | None, unbatched: int
) -> Tensor:
    """Feature dropout, of one sample if the input has `unbatched` dimensions."""
    if input.ndim != unbatched:
        return _apply(op, input, p, training, inplace, generator, feature=True)
    result = _apply(op, input.unsqueeze(0), p, training, inplace, generator, feature=True)
    return input if inplace else result.squeeze(0)


@composite(namespaces=NN, method=False)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L).

    >>> _ = votive.manual_seed(0)
    >>> votive.nn.functional.dropout1d(votive.ones(2, 3))
    tensor([[2., 2., 2.],
            [0., 0., 0.]])
    """
    _probability("dropout1d", p)
    if input.ndim not in (2, 3):
        fail(ShapeError, "dropout1d", f"takes (N, C, L) or (C, L), got {tuple(input.shape)}.")
    return _channels("dropout1d", input, p, training, inplace, generator, unbatched=2)


@composite(namespaces=NN, method=False)
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Dropout of whole channels of (N, C, H, W); three dimensions are read as (N, C, L).

    >>> _ = votive.manual_seed(0)
    >>> votive.nn.functional.dropout2d(votive.ones(1, 2, 1, 3))
    tensor([[[[2., 2., 2.]],
    <BLANKLINE>
             [[0., 0., 0.]]]])
    """
    _probability("dropout2d", p)
    if input.ndim != 4:
        instead = "dropout1d" if input.ndim == 3 else "dropout"
        warnings.warn(f"dropout2d: expected (N, C, H, W), got {tuple(input.shape)}; use {instead}.", stacklevel=2)
    return _channels("dropout2d", input, p, training, inplace, generator, unbatched=-1)


@composite(namespaces=NN, method=False)
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    >>> _ = votive.manual_seed(0)
    >>> votive.nn.functional.dropout3d(votive.ones(2, 1, 1, 2))
    tensor([[[[2., 2.]]],
    <BLANKLINE>
    <BLANKLINE>
            [[[0., 0.]]]])
    """
    _probability("dropout3d", p)
    if input.ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: expected (N, C, D, H, W) or (C, D, H, W), got {tuple(input.shape)}; use dropout.", stacklevel=2
        )
    return _channels("dropout3d", input, p, training, inplace, generator, unbatched=4)


# --- the same as torch.dropout and torch.dropout_ -------------------------------------------------


def _top_level(name: str, what: str, *, feature: bool = False, alpha: bool = False) -> None:
    def plain(input: Tensor, p: float, train: bool) -> Tensor:
        return _apply(name, input, p, train, False, feature=feature, alpha=alpha)

    def over(input: Tensor, p: float, train: bool) -> Tensor:
        return _apply(name, input, p, train, True, feature=feature, alpha=alpha)

    for fn, form, text in ((plain, name, what), (over, f"{name}_", f"In-place form of `{name}`.")):
        fn.__doc__ = f"""{text}

        >>> votive.{form}(votive.ones(1, 2), 0.0, True)
        tensor([[1., 1.]])
        """
        composite(fn, name=form, method=False)


_top_level("dropout", "In training, elements set to zero with chance p, others over `1 - p`.")
_top_level("alpha_dropout", "Dropout to the lower limit of selu, for selu networks.", alpha=True)
_top_level("feature_dropout", "Dropout of whole channels (dimension 1).", feature=True)
_top_level("feature_alpha_dropout", "alpha_dropout of whole channels (dimension 1).", feature=True, alpha=True)
