"""Covariance and correlation."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from .array import wrap
from .convert import Tensor, cast, result, to_tensor
from .element_types import FLOAT64, as_dtype, promoted
from .reductions import average


def _rows(m: Any, y: Any, rowvar: bool, dtype: Any) -> Tensor:
    t = to_tensor(m)
    if t.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    other = None if y is None else to_tensor(y, device=t.device)
    if other is not None and other.ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    if dtype is None:
        meet = promoted(t, other) if other is not None else t.dtype.np
        dtype = promoted(wrap(cast(t, meet)), 1.0) if meet.kind in "fcV" else FLOAT64
    parts = []
    for p in (t, other):
        if p is None:
            continue
        p = cast(p, as_dtype(dtype))
        p = p.reshape(1, -1) if p.ndim < 2 else p
        parts.append(p if rowvar or p.shape[0] == 1 else p.t())
    return F.cat(parts) if len(parts) > 1 else parts[0]


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """The covariances of variables, one in each row.

    >>> votive.np.cov([1.0, 2.0, 3.0])
    array(1.)
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = _rows(m, y, rowvar, dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    w = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        v = to_tensor(given, FLOAT64, x.device)
        if v.ndim != 1 or v.shape[0] != x.shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if bool(F.lt(v, 0).any()):
            raise ValueError(f"{name} cannot be negative")
        if name == "fweights" and not bool(F.eq(v, F.round(v)).all()):
            raise TypeError("fweights must be integer")
        w = v if w is None else w * v
    center, total = average(wrap(x), 1, None if w is None else wrap(w), returned=True)
    scale: Any = total.tensor.reshape(-1)[0]
    if w is None:
        left: Any = int(x.shape[1]) - ddof
    elif aweights is None or ddof == 0:
        left = scale - ddof
    else:
        left = scale - ddof * (w * to_tensor(aweights, FLOAT64, x.device)).sum() / scale
    d = x - center.tensor.unsqueeze(1)
    other = d if w is None else d * w
    other = F.conj_physical(other) if d.dtype.is_complex else other
    product = F.matmul(d, other.t())
    value = product / left if not (isinstance(left, int) and left <= 0) else product / 0.0
    return result(value.squeeze())


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The correlations of variables, one in each row.

    >>> votive.np.corrcoef([1.0, 2.0], [2.0, 1.0])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = to_tensor(cov(x, y, rowvar, dtype=dtype))
    if c.ndim == 0:
        return result(c / c)
    spread = F.sqrt(F.real(F.diagonal(c)) if c.dtype.is_complex else F.diagonal(c))
    c = c / spread.unsqueeze(1) / spread.unsqueeze(0)
    if c.dtype.is_complex:
        return wrap(F.complex(F.clamp(F.real(c), -1, 1), F.clamp(F.imag(c), -1, 1)))
    return wrap(F.clamp(c, -1, 1))
