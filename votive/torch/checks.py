"""`torch._check` and its kin: conditions that libraries state, with the errors that torch raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor


def _fail(kind: type[Exception], message: Callable[[], str] | None) -> None:
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise kind("Expected cond to be True, but got False." if message is None else str(message()))


def _condition(cond: Any) -> bool:
    if isinstance(cond, Tensor):
        raise TypeError("cond must be a bool, but got <class 'torch.Tensor'>")
    return bool(cond)


def _check(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise a RuntimeError unless a condition holds."""
    if not _condition(cond):
        _fail(RuntimeError, message)


def _check_index(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise an IndexError unless a condition holds."""
    if not _condition(cond):
        _fail(IndexError, message)


def _check_value(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise a ValueError unless a condition holds."""
    if not _condition(cond):
        _fail(ValueError, message)


def _check_type(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise a TypeError unless a condition holds."""
    if not _condition(cond):
        _fail(TypeError, message)


def _check_not_implemented(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise a NotImplementedError unless a condition holds."""
    if not _condition(cond):
        _fail(NotImplementedError, message)


def _check_is_size(i: Any, message: Callable[[], str] | None = None, *, max: Any = None) -> None:
    """Raise a RuntimeError unless a number can be a size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _assert(condition: Any, message: Any) -> None:
    """Raise an AssertionError unless a condition holds; it may be a tensor of one element."""
    if not bool(condition):
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise a RuntimeError where a tensor of one element is zero. It is looked at right away."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


CHECKS: dict[str, Any] = {
    function.__name__: function
    for function in (
        _check,
        _check_index,
        _check_value,
        _check_type,
        _check_not_implemented,
        _check_is_size,
        _assert,
        _assert_async,
    )
}
