"""Whether both libraries computed the same. A doubt is settled by the same numbers in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .family import Family
from .side import Side, leaves_of, work_of
from .spec import Spec

Array = np.ndarray[Any, Any]
REPEATED = 1_000_000  # numbers of a made array that differ
# Of the largest value: sums in another order differ by far less, and a wrong result by far more.
TOLERANCE = {"float64": 1e-7, "float32": 1e-3, "float16": 1e-2, "bfloat16": 4e-2}


def arrays(result: Any) -> list[Array]:
    """The numbers of a result, as float64 on the host."""
    found = []
    for t in leaves_of(result):
        t = t.detach().to("cpu")
        if t.is_complex():
            found.append(t.numpy())
        else:
            found.append(t.double().numpy())
    return found


def distance(ours: list[Array], theirs: list[Array]) -> float:
    """The largest difference, relative to the largest value of its tensor; infinite where shapes or NaNs differ."""
    worst = 0.0
    if len(ours) != len(theirs):
        return math.inf
    # A gradient that is zero but for rounding is small beside the others of its case.
    least = 1e-2 * max((float(np.abs(b).max(where=np.isfinite(b), initial=0.0)) for b in theirs), default=0.0)
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape:
            return math.inf
        if not a.size:
            continue
        finite = np.isfinite(b)
        if not (np.isfinite(a) == finite).all() or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return math.inf
        if finite.any():
            size = max(least, float(np.abs(b[finite]).max()))
            worst = max(worst, float(np.abs(a[finite] - b[finite]).max()) / (size or 1.0))
    return worst


def disagreement(
    spec: Spec, family: Family, ours: Any, theirs: Any, exact: Callable[[], Side], tolerance: float = 0.0
) -> str:
    """Empty, or how far votive's result is from torch's and both are from float64's."""
    if family.compared is None:
        shapes = [[tuple(t.shape) for t in leaves_of(r)] for r in (ours, theirs)]
        return "" if shapes[0] == shapes[1] else f"shapes {shapes[0]} and {shapes[1]}"
    a, b = (_compared(spec, family, result) for result in (ours, theirs))
    limit = tolerance or TOLERANCE[spec.dtype]
    far = distance(a, b)
    if far <= limit:
        return ""
    text = f"differs by {far:.1e}"
    side = exact()
    if not side.exact:
        return text
    c = _compared(spec, family, work_of(side, family.build(side))())
    errors = distance(a, c), distance(b, c)
    # Both are as far from the truth: the case itself is ill-conditioned, or overflows.
    if errors[0] <= limit or errors[0] <= 2 * errors[1]:
        return ""
    return f"{text}; off by {errors[0]:.1e}, torch by {errors[1]:.1e}"


def _equals(spec: Spec, gradients: Any) -> bool:
    """Whether a case has many equal values: narrow types have few, and long arrays repeat themselves."""
    return spec.dtype in ("bfloat16", "float16") or any(a.size > REPEATED for a in arrays(gradients))


def _compared(spec: Spec, family: Family, result: Any) -> list[Array]:
    assert family.compared is not None
    if spec.grad and spec.op in family.ties and _equals(spec, result[1]):
        return arrays(family.compared(tuple(result[0])))
    if spec.grad:
        return arrays(family.compared(tuple(result[0]))) + arrays(result[1])
    return arrays(family.compared(result))
