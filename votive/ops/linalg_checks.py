"""What matrix operators ask of their arguments, and how they report failure. Declares none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, LinAlgError, ShapeError, UnsupportedError, fail
from ..core.layout import Shape, Spec, broadcast_shapes
from .registry import F

if TYPE_CHECKING:
    from .types import Tensor


def check_float(op: str, x: Spec, *, half: bool = False, lacks: str = "half") -> None:
    """Raise unless the dtype is floating-point or complex; `half` admits half types too.

    `lacks` says what is refused by NotImplementedError, as in torch: "half" types, "all" or "none".
    """
    narrow = x.dtype in dt.HALF
    if (narrow and half) or (x.dtype.is_inexact and not narrow and x.dtype not in dt.FLOAT8):
        return
    missing = lacks == "all" or (lacks == "half" and narrow)
    fail(
        UnsupportedError if missing else DtypeError,
        op,
        f"takes {'floating-point' if half else 'float32, float64'} and complex tensors, "
        f"got {x.dtype}; cast it with .to().",
    )


def check_matrix(op: str, x: Spec, name: str = "input") -> None:
    """Raise unless there are two dimensions to make a matrix."""
    if x.ndim < 2:
        fail(ShapeError, op, f"{name} needs at least 2 dimensions, got shape {x.shape}.")


def check_square(op: str, x: Spec, name: str = "input") -> None:
    """Raise unless these are square matrices."""
    check_matrix(op, x, name)
    if x.shape[-1] != x.shape[-2]:
        fail(ShapeError, op, f"{name} must hold square matrices, got shape {x.shape}.")


def check_pair(op: str, a: Spec, b: Spec) -> None:
    """Raise unless both have one dtype."""
    if a.dtype is not b.dtype:
        fail(DtypeError, op, f"both arguments must have the same dtype, got {a.dtype} and {b.dtype}; use .to().")


def check_system(op: str, a: Spec, b: Spec, *, left: bool = True) -> tuple[Shape, Shape]:
    """The shapes of both sides of `A X = B` (or `X A = B`) once their batches are broadcast."""
    check_square(op, a, "A")
    check_matrix(op, b, "B")
    check_pair(op, a, b)
    if a.shape[-1] != b.shape[-2 if left else -1]:
        fail(ShapeError, op, f"A and B do not fit: {a.shape} and {b.shape} with left={left}.")
    batch = broadcast_shapes(op, a.shape[:-2], b.shape[:-2])
    return (*batch, *a.shape[-2:]), (*batch, *b.shape[-2:])


def require(op: str, info: Tensor, reason: Callable[[int], str]) -> None:
    """Raise LinAlgError for the first matrix of a batch whose `info` is not 0."""
    if info.is_meta:
        return  # no numbers, nothing to find wrong in them
    # Of a GPU, few numbers are copied in the time in which they would be joined.
    few = info.device.type != "cpu" and info.numel() <= 1024
    if not (any(codes_of(info)) if few else bool(info.any())):
        return
    codes = codes_of(info)
    at = next(i for i, code in enumerate(codes) if code)
    where = f"(Batch element {at}): " if info.ndim else ""
    fail(LinAlgError, op, where + reason(codes[at]))


def codes_of(info: Tensor) -> list[int]:
    """The numbers of a batch in one list."""
    return info.reshape(-1).tolist() if info.ndim > 1 else info.tolist() if info.ndim else [info.item()]


def absent(g: Tensor | None) -> bool:
    """Whether nothing came back through this result: None, or zeros.

    Rules that divide by differences of singular values or eigenvalues must know: 0 / 0 would turn a
    gradient of the values alone into NaN where two of them are equal.
    """
    return g is None or (not g._rg and not g._level and not g.is_meta and not bool(g.any()))


def halve_diagonal(x: Tensor) -> Tensor:
    """The matrices with their diagonal divided by two."""
    return x - F.diag_embed(F.diagonal(x, 0, -2, -1)) / 2


def identity(n: int, like: Tensor) -> Tensor:
    """The identity matrix in the dtype and on the device of a tensor."""
    return F.eye(n, dtype=like.dtype, device=like.device)
