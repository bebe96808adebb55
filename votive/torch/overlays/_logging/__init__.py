"""`torch._logging`: what libraries use of it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["DEFAULT_LOGGING", "LazyString", "hide_warnings", "warning_once"]

DEFAULT_LOGGING: dict[str, Any] = {}


class LazyString:
    """A text that is made when it is printed."""

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


@lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """A warning that a logger gets once."""
    logger_obj.warning(*args, **kwargs)


@contextmanager
def hide_warnings(filter_fn: Callable[..., bool] = lambda *args, **options: True) -> Iterator[None]:
    """Show no warning that a function says to hide."""
    before = warnings.showwarning

    def show(*args: Any, **options: Any) -> None:
        if not filter_fn(*args, **options):
            before(*args, **options)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
