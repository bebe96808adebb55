"""Functions of sizes that keep what they gave, unless sizes are expressions. Knows no layouts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class _Remembered(Protocol[T]):
    """A function that keeps what it gave."""

    __wrapped__: Callable[..., T]

    def __call__(self, *args: Any) -> T: ...


class _Symbolic:
    """While sizes that may change are traced: what tells layouts apart whose sizes are expressions."""

    key: Callable[[Any], Any] | None = None


symbolic = _Symbolic()


def remembered(most: int, typed: bool = False) -> Callable[[Callable[..., T]], _Remembered[T]]:
    """As `functools.lru_cache`, for functions of sizes: nothing is kept while these are expressions."""

    def wrap(fn: Callable[..., T]) -> _Remembered[T]:
        known = lru_cache(most, typed)(fn)

        @wraps(fn)
        def run(*args: Any) -> Any:
            return known(*args) if symbolic.key is None else fn(*args)

        return run

    return wrap
