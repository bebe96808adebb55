"""Forward-mode differentiation by hand: what `votive.autograd.forward_ad` offers."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.mode import mode
from ..tensor import Tensor
from . import interpret as _interpret  # noqa: F401 - tells the dispatcher what becomes of wrapped tensors
from .derivatives import matching
from .wrapped import Dual, Level, dual, next_level, parts


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where there is none.

    >>> import votive.autograd.forward_ad as fwAD
    >>> fwAD.unpack_dual(votive.ones(1)).tangent is None
    True
    """

    primal: Tensor
    tangent: Tensor | None


def _current(level: int | None = None) -> Level | None:
    if level not in (None, 0):
        raise RuntimeError(f"forward AD has one level, 0; got level={level}.")
    return next((v for v in reversed(mode.levels) if v.forward), None)


def enter_dual_level() -> int:
    """Begin to carry tangents; `dual_level` does so for a block."""
    if _current() is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = next_level()
    level.forward = True
    mode.levels = (*mode.levels, level)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Stop: tangents made since then are gone."""
    current = _current()
    if current is None:
        raise RuntimeError("Trying to exit a forward AD level that was not entered.")
    if level not in (None, 0):
        raise RuntimeError(f"Trying to exit a forward AD level that was not the last one that was created: {level}.")
    mode.levels = tuple(v for v in mode.levels if v is not current)


class dual_level:
    """A block in which tensors may carry tangents.

    >>> import votive.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(votive.tensor(3.0), votive.tensor(1.0))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Any:
    """The tensor with a tangent that goes along through operators."""
    current = _current(level)
    if current is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not isinstance(tangent, Tensor):
        raise TypeError(f"make_dual(): argument 'tangent' must be Tensor, not {type(tangent).__name__}")
    value, before = parts(tensor, current.number)
    if before is not None:
        raise RuntimeError("Trying to set a forward gradient on a Tensor that already has one.")
    return dual(value, matching(value, tangent), current.number)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor."""
    current = _current(level)
    if current is None:
        while isinstance(tensor, Dual) and all(v.number != tensor._level for v in mode.levels):
            tensor = tensor._value
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*parts(tensor, current.number))
