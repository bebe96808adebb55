"""Masked tensors: elements with a mask that says which of them count, and reductions that leave the others out.

>>> x = votive.masked.masked_tensor(votive.tensor([1.0, 2.0]), votive.tensor([True, False]))
>>> x.sum()
MaskedTensor(  1.0000, True)
"""

from __future__ import annotations

from . import rules
from .functions import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from .tensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "rules",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
